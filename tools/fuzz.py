# SPDX-License-Identifier: BSD-3-Clause
"""Fuzzes the C core for a time: the shader reader, the heap and the graph compiler share it. Exits with 1 when one of them finds something.

The seed is printed, and is another one in every run unless --seed gives it. What the reader or the heap fell over lies in a file
fuzz-TARGET-SEED.input in the build folder; the message says how to run it again.
"""

import argparse
import os
import pathlib
import random
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--kernels", type=pathlib.Path, required=True, help="the folder of the compiled kernel libraries")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1, 2**31))
    options = parser.parse_args()
    build = options.build.resolve()
    seconds, seed = str(max(options.seconds // 3, 1)), str(options.seed)
    corpus = [*sorted((ROOT / "kernels").glob("*.metal")), *sorted((ROOT / "tests/metal").glob("*.cpp"))]
    environment = dict(os.environ, OPENMPS_KERNEL_PATH=str(options.kernels.resolve()), OPENMPS_FUZZ_SEED=seed, OPENMPS_FUZZ_SECONDS=seconds)
    failed = False
    for name, arguments in (("fuzz_reader", corpus), ("fuzz_heap", []), ("test_graph_fuzz", None)):
        command = [build / "bin" / name]
        if arguments is not None:
            command += ["--seed", seed, "--seconds", seconds, *arguments]
        print(f"== {name}, {seconds} s, seed {seed}", flush=True)
        failed |= subprocess.run([str(c) for c in command], cwd=build, env=environment, check=False).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
