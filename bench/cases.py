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


def indexed(function, size, count, *shapes):
    """function(index, *tensors) with `count` random indices below `size`, the same on each device."""
    def make(device):
        index = torch.randint(size, (count,), generator=torch.Generator().manual_seed(0)).to(device)
        inputs = [tensor(*shape, seed=i).to(device) for i, shape in enumerate(shapes)]
        return lambda: function(index, *inputs)
    return make


def embedding(device):
    index = torch.randint(32 * K, (16 * K,), generator=torch.Generator().manual_seed(0)).to(device)
    weight = tensor(32 * K, 64).to(device).requires_grad_()
    return lambda: torch.autograd.grad(F.embedding(index, weight).sum(), weight)


def gradient(function, *shapes):
    """The gradients of function(*tensors).sum()."""
    def make(device):
        inputs = [tensor(*shape, seed=i).to(device).requires_grad_() for i, shape in enumerate(shapes)]
        return lambda: torch.autograd.grad(function(*inputs).sum(), inputs)
    return make


def created(function):
    return lambda device: lambda: function(device)


def systems(function, n, *batch, dtype=torch.float32, positive=False):
    """function(a, b) of well conditioned (positive definite) n x n matrices and four right-hand sides each."""
    def make(device):
        a, b = tensor(*batch, n, n, dtype=dtype), tensor(*batch, n, 4, dtype=dtype, seed=1)
        a = (a @ a.mT / n if positive else a / n**0.5) + 3 * torch.eye(n)
        a, b = a.to(device), b.to(device)
        return lambda: function(a, b)
    return make


def recurrent(kind, steps, batch, features, hidden, gradients=False):
    def make(device):
        torch.manual_seed(0)
        network, x = kind(features, hidden).to(device), tensor(steps, batch, features).to(device)

        def forward():
            with torch.no_grad():
                return network(x)[0]
        return (lambda: torch.autograd.grad(network(x)[0].sum(), list(network.parameters()))) if gradients else forward
    return make


def int8_product(rows, dtype):
    def make(device):
        weight = torch.randint(-128, 127, (K, K), generator=torch.Generator().manual_seed(0)).to(torch.int8).to(device)
        scales, x = (torch.rand(K, generator=torch.Generator().manual_seed(1)) / 100).to(dtype).to(device), tensor(rows, K, dtype=dtype).to(device)
        return lambda: torch._weight_int8pack_mm(x, weight, scales)
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
    *[Case("linalg", f"{name} {n}" + (f", batch {batch[0]}" if batch else ""), systems(function, n, *batch, positive=name == "cholesky"),
            goal=0.7 if n in (32, 256) else 0.95)  # docs/decisions/0012-linalg-speed.md
      for name, function in (("lu_factor", lambda a, b: torch.linalg.lu_factor(a)), ("solve", torch.linalg.solve), ("inv", lambda a, b: torch.linalg.inv(a)),
                             ("cholesky", lambda a, b: torch.linalg.cholesky(a)), ("qr", lambda a, b: torch.linalg.qr(a)))
      for n, *batch in ((8,), (64,), (256,), (1024,), (4, 1000), (32, 32))],
    *[Case("linalg", f"bmm {batch} x {n}", on(torch.bmm, (batch, n, n), (batch, n, n)), goal=0.8) for n, batch in ((3, 10000), (8, 256), (16, 100))],
    Case("linalg", "bmm 1000 x 4, bf16", on(torch.bmm, (1000, 4, 4), (1000, 4, 4), dtype=torch.bfloat16), goal=0.95),
    *[Case("linalg", f"int8 product, {rows} rows, bf16", int8_product(rows, torch.bfloat16), goal=0.95) for rows in (8, 128)],
    *[Case("linalg", f"{name} 256", systems(function, 256, positive=True))
      for name, function in (("det", lambda a, b: torch.det(a)), ("eigh", lambda a, b: torch.linalg.eigh(a)), ("lstsq", torch.linalg.lstsq))],
    *[Case("rnn", f"{kind.__name__} 32 x 16, 64 to 128" + (", gradients" if gradients else ""), recurrent(kind, 32, 16, 64, 128, gradients),
           goal=None if kind is torch.nn.LSTM else 0.95)
      for kind in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN) for gradients in (False, True)],
    Case("reduce", "sum, 4M", on(torch.sum, (4 * M,))),
    Case("reduce", "sum rows, 2048 x 2048", on(lambda x: x.sum(1), (2048, 2048))),
    Case("reduce", "sum columns, 2048 x 2048", on(lambda x: x.sum(0), (2048, 2048))),
    Case("reduce", "sum middle, 64 x 1024 x 64", on(lambda x: x.sum(1), (64, 1024, 64))),
    Case("reduce", "sum complex, 1M", on(torch.sum, (M,), dtype=torch.complex64)),
    Case("reduce", "max with index, rows, 2048 x 2048", on(lambda x: x.max(1)[0], (2048, 2048))),
    Case("reduce", "argmax columns, 2048 x 2048", on(lambda x: x.argmax(0), (2048, 2048))),
    Case("reduce", "variance rows, 2048 x 2048", on(lambda x: x.var(1), (2048, 2048))),
    Case("reduce", "norm, 4M", on(torch.linalg.vector_norm, (4 * M,))),
    Case("reduce", "softmax, 1024 x 1024", on(lambda x: x.softmax(-1), (1024, 1024))),
    Case("reduce", "layer norm, 1024 x 1024", on(lambda x: F.layer_norm(x, (1024,)), (1024, 1024))),
    Case("reduce", "softmax gradient, 1024 x 1024", gradient(lambda x: x.softmax(-1), (1024, 1024))),
    Case("norm", "layer norm and gradients, 1024 x 1024", gradient(lambda x, w, b: F.layer_norm(x, (1024,), w, b), (1024, 1024), (1024,), (1024,))),
    Case("norm", "batch norm and gradients, 32 x 64 x 56 x 56",
         gradient(lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), (32, 64, 56, 56), (64,), (64,))),
    Case("norm", "group norm and gradients, 32 x 64 x 56 x 56",
         gradient(lambda x, w, b: F.group_norm(x, 8, w, b), (32, 64, 56, 56), (64,), (64,))),
    Case("pool", "max_pool2d 3, 32 x 64 x 56 x 56", on(lambda x: F.max_pool2d(x, 3, 2, 1), (32, 64, 56, 56))),
    Case("pool", "max_pool2d 3 and gradient", gradient(lambda x: F.max_pool2d(x, 3, 2, 1), (32, 64, 56, 56))),
    Case("pool", "avg_pool2d 2, 32 x 64 x 56 x 56", on(lambda x: F.avg_pool2d(x, 2), (32, 64, 56, 56))),
    Case("pool", "adaptive_avg_pool2d 1 and gradient", gradient(lambda x: F.adaptive_avg_pool2d(x, 1), (32, 512, 7, 7))),
    Case("index", "gather rows, 2048 x 2048", indexed(lambda i, x: x.gather(1, i.view(2048, 512)), 2048, M, (2048, 2048))),
    Case("index", "scatter_add, 1M into 64K", indexed(lambda i, x, y: x.scatter_add(0, i, y), 64 * K, M, (64 * K,), (M,))),
    Case("index", "index_put accumulate, 256K into 64K",
         indexed(lambda i, x, y: x.index_put((i,), y, accumulate=True), 64 * K, 256 * K, (64 * K,), (256 * K,))),
    Case("index", "index_select rows, 16K of 64K x 64", indexed(lambda i, x: x.index_select(0, i), 64 * K, 16 * K, (64 * K, 64))),
    Case("index", "embedding and gradient, 16K of 32K x 64", embedding),
    Case("index", "masked_select, 1M", on(lambda x: x[x > 0], (M,))),
    Case("index", "where, 4M", on(lambda x, y: torch.where(x > 0, x, y), (4 * M,), (4 * M,))),
    Case("index", "take 1M of 1M", index_case(M)),
    Case("index", "cat 4 x 1M", on(lambda a, b, c, d: torch.cat([a, b, c, d]), *[(M,)] * 4)),
    Case("index", "copy transposed, 2048 x 2048", on(lambda x: x.t().contiguous(), (2048, 2048))),
    Case("index", "sort, 256K", on(lambda x: x.sort()[0], (256 * K,))),
    Case("index", "topk 50, 64 x 32K", on(lambda x: x.topk(50)[0], (64, 32 * K))),
    Case("random", "randn, 1M", created(lambda device: torch.randn(M, device=device))),
    Case("random", "rand, 1M", created(lambda device: torch.rand(M, device=device))),
    Case("random", "dropout, 1M", on(lambda x: F.dropout(x, 0.5), (M,))),
    Case("random", "randperm, 1M", created(lambda device: torch.randperm(M, device=device))),
    Case("random", "multinomial, 64 of 1024 x 4096", on(lambda x: torch.multinomial(x.abs(), 64, replacement=True), (1024, 4096))),
    Case("training", "MLP, batch 32", training("mlp"), goal=0.9),
    Case("training", "MLP, width 512, batch 256", wide_mlp, goal=0.9),
    Case("training", "residual net", training("residual"), goal=0.9),
    Case("training", "decoder", training("decoder"), goal=0.9),
]
