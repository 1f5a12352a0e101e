# SPDX-License-Identifier: BSD-3-Clause
"""What `make bench` times: each case makes the same computation on any device and says what ratio it has to reach.

A case is a function `device -> callable`; the callable does one run. Preparation is outside of the timing.
"""
import dataclasses
import os
import sys
import typing

import torch
from torch.nn import functional as F

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests", "python"))
import networks  # noqa: E402

K, M = 1024, 1024 * 1024


@dataclasses.dataclass
class Case:
    group: str
    name: str
    make: typing.Callable
    goal: float | None = None       # least ratio cpu time / mps time; None: only shown
    busy_goal: float | None = None  # the same with one core kept busy by another process


def tensor(*shape, dtype=torch.float32, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def pointwise(function, size, count=2, dtype=torch.float32):
    def make(device):
        inputs = [tensor(size, dtype=dtype, seed=i).to(device) for i in range(count)]
        return lambda: function(*inputs)
    return make


def chain(a, b):
    return F.relu(torch.tanh(a * b + a) * 0.5 + b)


def on(function, *shapes, dtype=torch.float32):
    def make(device):
        inputs = [tensor(*shape, dtype=dtype, seed=i).to(device) for i, shape in enumerate(shapes)]
        return lambda: function(*inputs)
    return make


def index_case(size):
    def make(device):
        source = tensor(size).to(device)
        index = torch.randint(size, (size,), generator=torch.Generator().manual_seed(0)).to(device)
        return lambda: source[index]
    return make


def training(name):
    def make(device):
        task = networks.TASKS[name]
        model = networks.make_model(name, 0, device)
        update = torch.optim.AdamW(model.parameters(), lr=1e-3)
        batch = tuple(t.to(device) for t in task.batch(torch.Generator().manual_seed(0)))

        def step():
            loss = task.loss(model, batch)
            update.zero_grad(set_to_none=True)
            loss.backward()
            update.step()
        return step
    return make


def wide_mlp(device):
    torch.manual_seed(0)
    model = networks.MLP(width=512).to(device)
    update = torch.optim.SGD(model.parameters(), lr=1e-3)
    x, y = tensor(256, 20).to(device), tensor(256, 4, seed=1).to(device)

    def step():
        loss = F.mse_loss(model(x), y)
        update.zero_grad(set_to_none=True)
        loss.backward()
        update.step()
    return step


CASES = [
    Case("overhead", "add, 8 elements", pointwise(torch.add, 8), goal=1 / 1.3),
    Case("pointwise", "add, 64K", pointwise(torch.add, 64 * K), goal=0.95, busy_goal=3.0),
    Case("pointwise", "add, 4M", pointwise(torch.add, 4 * M), goal=0.95),
    Case("pointwise", "add, 16M", pointwise(torch.add, 16 * M), goal=2.5),
    Case("pointwise", "exp, 1M", pointwise(torch.exp, M, 1)),
    Case("pointwise", "gelu, 1M", pointwise(F.gelu, M, 1)),
    Case("pointwise", "add bf16, 4M", pointwise(torch.add, 4 * M, 2, torch.bfloat16)),
    Case("pointwise", "add transposed, 2048 x 2048", on(lambda a, b: a + b.t(), (2048, 2048), (2048, 2048))),
    Case("chain", "six operators, 64K", pointwise(chain, 64 * K)),
    Case("chain", "six operators, 1M", pointwise(chain, M)),
    Case("chain", "six operators, 4M", pointwise(chain, 4 * M)),
    Case("chain", "six operators, 16M", pointwise(chain, 16 * M)),
    Case("dense", "matmul 1024", on(torch.mm, (1024, 1024), (1024, 1024)), goal=0.95),
    Case("dense", "bmm 64 x 128", on(torch.bmm, (64, 128, 128), (64, 128, 128))),
    Case("dense", "conv2d 3x3, 16 x 32 x 56 x 56", on(lambda x, w: F.conv2d(x, w, padding=1), (16, 32, 56, 56), (64, 32, 3, 3)), goal=0.8),
    Case("dense", "attention 4 x 8 x 256 x 64", on(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
                                                  (4, 8, 256, 64), (4, 8, 256, 64), (4, 8, 256, 64))),
    Case("reduce", "sum, 4M", on(torch.sum, (4 * M,))),
    Case("reduce", "sum rows, 2048 x 2048", on(lambda x: x.sum(1), (2048, 2048))),
    Case("reduce", "sum columns, 2048 x 2048", on(lambda x: x.sum(0), (2048, 2048))),
    Case("reduce", "softmax, 1024 x 1024", on(lambda x: x.softmax(-1), (1024, 1024))),
    Case("reduce", "layer norm, 1024 x 1024", on(lambda x: F.layer_norm(x, (1024,)), (1024, 1024))),
    Case("index", "take 1M of 1M", index_case(M)),
    Case("index", "cat 4 x 1M", on(lambda a, b, c, d: torch.cat([a, b, c, d]), *[(M,)] * 4)),
    Case("index", "copy transposed, 2048 x 2048", on(lambda x: x.t().contiguous(), (2048, 2048))),
    Case("index", "sort, 256K", on(lambda x: x.sort()[0], (256 * K,))),
    Case("index", "topk 50, 64 x 32K", on(lambda x: x.topk(50)[0], (64, 32 * K))),
    Case("random", "randn, 1M", lambda device: lambda: torch.randn(M, device=device)),
    Case("training", "MLP, batch 32", training("mlp"), goal=0.9),
    Case("training", "MLP, width 512, batch 256", wide_mlp, goal=0.9),
    Case("training", "residual net", training("residual"), goal=0.9),
    Case("training", "decoder", training("decoder"), goal=0.9),
]
