# SPDX-License-Identifier: BSD-3-Clause
"""torch.compile on both devices: compiled cpu time (Inductor's C++) / compiled mps time (Inductor's Metal), in the manner of ratio.py.

    python bench/compiled.py [--filter TEXT] [--pairs N] [--rounds N] [--json FILE]

The last rows are what compiling takes, from the first call of a function to its result: wall time, nothing of it in a cache. Each round has a
constant of its own, so that nothing is found of the round before; headers that are compiled once for all are, before the first round.
"""
import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import time
import types

FOLDER = tempfile.TemporaryDirectory(prefix="openmps-bench-")  # named before torch reads where caches are
os.environ["TORCHINDUCTOR_CACHE_DIR"], os.environ["OPENMPS_CACHE_PATH"] = f"{FOLDER.name}/inductor", f"{FOLDER.name}/shaders"

import torch  # noqa: E402
from rich.console import Console  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from tqdm import tqdm  # noqa: E402

import ratio  # noqa: E402
from cases import Case, K, M, chain, tensor  # noqa: E402


def fresh(function):
    """The same function with code of its own: Dynamo keeps what it compiled with the code, for all devices in one list."""
    return types.FunctionType(function.__code__.replace(), function.__globals__, function.__name__, function.__defaults__, function.__closure__)


def inputs_on(device, shapes):
    return [tensor(*shape, seed=seed).to(device) for seed, shape in enumerate(shapes)]


def mlp(x, up, down):
    return F.linear(F.gelu(F.linear(x, up)), down)


def layer_norm(x):
    return F.layer_norm(x, x.shape[-1:])


def softmax(x):
    return torch.softmax(x * 0.5, -1)


def sum_rows(x):
    return (x * x).sum(-1)


def sum_columns(x):
    return (x * x).sum(0)


def extremes(x):
    return (x + 1).amax(-1), x.argmax(-1)


def variance(x):
    return (x + 1).var(-1)


def embedded(weight, index):
    x = F.embedding(index, weight)
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True) + q


def adam(*tensors):
    """AdamW in place on (parameter, gradient, mean, mean of squares), as many as there are."""
    for i in range(0, len(tensors), 4):
        p, g, m, v = tensors[i:i + 4]
        m.lerp_(g, 0.1)
        v.mul_(0.999).addcmul_(g, g, value=0.001)
        p.mul_(0.9999).addcdiv_(m, v.abs().sqrt() + 1e-8, value=-1e-3)


def run_case(function, *shapes, index=None):
    """device -> callable of the compiled function; `index` (rows, count) adds random rows as the last argument."""
    def make(device):
        values = inputs_on(device, shapes)
        if index is not None:
            values.append(torch.randint(index[0], (index[1],), generator=torch.Generator().manual_seed(0)).to(device))
        compiled = torch.compile(fresh(function), dynamic=False)

        def run():
            with torch.no_grad():
                return compiled(*values)
        return run
    return make


CASES = [
    Case("pointwise", "six operators, 64K", run_case(chain, (64 * K,), (64 * K,)), 1.0),
    Case("pointwise", "six operators, 1M", run_case(chain, (M,), (M,)), 1.0),
    Case("pointwise", "six operators, 4M", run_case(chain, (4 * M,), (4 * M,)), 1.0),
    Case("pointwise", "AdamW, 3 tensors of 256K", run_case(adam, *[(256 * K,)] * 12), 1.0),
    Case("reduction", "sum of squares, rows, 1024 x 1024", run_case(sum_rows, (K, K)), 1.0),
    Case("reduction", "sum of squares, columns, 1024 x 1024", run_case(sum_columns, (K, K)), 1.0),
    Case("reduction", "amax and argmax, 1024 x 1024", run_case(extremes, (K, K)), 1.0),
    Case("reduction", "variance, 256 x 1024", run_case(variance, (256, K)), 1.0),
    Case("norm", "layer norm, 256 x 1024", run_case(layer_norm, (256, K)), 1.0),
    Case("norm", "softmax, 1024 x 1024", run_case(softmax, (K, K)), 1.0),
    Case("norm", "embedding and RMS norm, 4K of 8K x 128", run_case(embedded, (8 * K, 128), index=(8 * K, 4 * K)), 1.0),
    Case("dense", "gelu MLP, 128 x 512 x 2048", run_case(mlp, (128, 512), (2048, 512), (512, 2048)), 1.0),
    Case("dense", "attention, 2 x 4 x 256 x 64", run_case(attention, *[(2, 4, 256, 64)] * 3), 1.0),
]

COMPILE = {
    "compile six operators": (chain, [(K,), (K,)]),
    "compile softmax, 64 x 1000": (softmax, [(64, 1000)]),
    "compile gelu MLP": (mlp, [(8, 64), (128, 64), (64, 128)]),
    "compile sums of rows": (sum_rows, [(64, 1000)]),
    "compile AdamW, 2 tensors": (adam, [(K,)] * 4 + [(3 * K,)] * 4),
}


def compile_seconds(function, shapes, device, salt):
    """Wall seconds of the first call of a function that nobody has compiled, Dynamo's part included."""
    values = inputs_on(device, shapes)

    def salted(first, *others):
        return function(first * salt, *others)

    torch._dynamo.reset()
    time.sleep(ratio.SETTLE_SECONDS)
    start = time.perf_counter()
    with torch.no_grad():
        torch.compile(salted, dynamic=False)(*values)
    if device == "mps":
        torch.mps.synchronize()
    return time.perf_counter() - start


def measure_compile(function, shapes, rounds):
    """The first round makes what is made once (precompiled headers) and does not count."""
    samples = []
    for number in range(rounds + 1):
        salt = 1 + (measure_compile.calls + 1) / 1024
        measure_compile.calls += 1
        order = ("cpu", "mps") if number % 2 == 0 else ("mps", "cpu")
        times = {device: compile_seconds(function, shapes, device, salt) for device in order}
        samples.append((times["cpu"], times["mps"]))
    samples = samples[1:]
    return {
        "cpu_seconds": statistics.median(cpu for cpu, _ in samples),
        "mps_seconds": statistics.median(mps for _, mps in samples),
        "ratio": statistics.median(cpu / mps for cpu, mps in samples),
    }


measure_compile.calls = 0


def mean(rows):
    return math.exp(statistics.fmean(math.log(row["ratio"]) for row in rows)) if rows else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="", help="only cases whose group or name holds this text")
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--rounds", type=int, default=3, help="of compiling; 0 leaves those rows out")
    parser.add_argument("--json", help="write the figures to this file")
    arguments = parser.parse_args()
    if not torch.backends.mps.is_available():
        sys.exit("mps is not available: install OpenMPS first (make run)")
    rows, compiling = [], []
    for case in tqdm([c for c in CASES if arguments.filter in c.group or arguments.filter in c.name], desc="bench", disable=not sys.stderr.isatty()):
        torch._dynamo.reset()
        rows.append({"group": case.group, "name": case.name, "goal": case.goal} | ratio.measure(case, arguments.pairs))
    for name, (function, shapes) in COMPILE.items() if arguments.rounds else ():
        if arguments.filter in name:
            compiling.append({"group": "compile", "name": name, "goal": 1.0} | measure_compile(function, shapes, arguments.rounds))
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(ratio.table(rows + compiling, f"compiled cpu time / compiled mps time, torch {torch.__version__}, {torch.get_num_threads()} threads"))
    console.print(f"geometric mean {mean(rows):.2f}; of compiling {mean(compiling):.2f}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"torch": torch.__version__, "threads": torch.get_num_threads(), "mean": mean(rows), "compile_mean": mean(compiling),
                       "rows": rows + compiling}, file, indent=1)


if __name__ == "__main__":
    main()
