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
VOLUME = (4, 16, 16, 32, 32)


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


def on(function, *shapes, dtype=torch.float32, layout=torch.contiguous_format):
    def make(device):
        inputs = [tensor(*shape, dtype=dtype, seed=i).to(device).contiguous(memory_format=layout) for i, shape in enumerate(shapes)]
        return lambda: function(*inputs)
    return make


def channels_last(function, shape):
    def make(device):
        x = tensor(*shape).contiguous(memory_format=torch.channels_last).to(device)
        return lambda: function(x)
    return make


def fractional(pool, size):
    """Pooling with given samples, the same on each device."""
    samples = {}

    def run(x):
        key = x.device.type, x.dim()
        if key not in samples:
            samples[key] = torch.rand(*x.shape[:2], x.dim() - 2, generator=torch.Generator().manual_seed(0)).to(x.device)
        return pool(x, 2, size, _random_samples=samples[key])
    return run


def index_case(size):
    def make(device):
        source = tensor(size).to(device)
        index = torch.randint(size, (size,), generator=torch.Generator().manual_seed(0)).to(device)
        return lambda: source[index]
    return make


def indexed(function, size, count, *shapes, dtype=torch.float32, index_dtype=torch.int64):
    """function(index, *tensors) with `count` random indices below `size`, the same on each device."""
    def make(device):
        index = torch.randint(size, (count,), generator=torch.Generator().manual_seed(0)).to(index_dtype).to(device)
        inputs = [tensor(*shape, dtype=dtype, seed=i).to(device) for i, shape in enumerate(shapes)]
        return lambda: function(index, *inputs)
    return make


def masked(function, *shapes):
    """function(mask, *tensors) with a mask of the first tensor's shape, of which half is set."""
    def make(device):
        inputs = [tensor(*shape, seed=i).to(device) for i, shape in enumerate(shapes)]
        mask = tensor(*shapes[0], seed=9).to(device) > 0
        return lambda: function(mask, *inputs)
    return make


def spread(function, *shapes, dtype, below=2**62):
    """function(*tensors) of integers that are spread over what the dtype holds, or over [0, below)."""
    def make(device):
        below_ = min(below, torch.iinfo(dtype).max)
        inputs = [torch.randint(below_, shape, generator=torch.Generator().manual_seed(i)).to(dtype).to(device) for i, shape in enumerate(shapes)]
        return lambda: function(*inputs)
    return make


def bag(mode, rows=32 * K, width=64, bags=512, dtype=torch.float32, weighted=False, backward=False):
    """16K random indices in bags of one length."""
    def make(device):
        index = torch.randint(rows, (16 * K,), generator=torch.Generator().manual_seed(0)).to(device)
        offsets = torch.arange(0, 16 * K, 16 * K // bags).to(device)
        weight = tensor(rows, width, dtype=dtype).to(device).requires_grad_(backward)
        scales = tensor(16 * K, dtype=dtype, seed=1).to(device) if weighted else None
        if backward:
            return lambda: torch.autograd.grad(F.embedding_bag(index, weight, offsets, mode=mode).sum(), weight)
        return lambda: F.embedding_bag(index, weight, offsets, mode=mode, per_sample_weights=scales)
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


def ctc(steps, batch, classes, longest):
    """The loss of log_softmax and its gradient."""
    def make(device):
        x = tensor(steps, batch, classes).to(device).requires_grad_()
        targets = torch.randint(1, classes, (batch, longest), generator=torch.Generator().manual_seed(0)).to(device)
        return lambda: torch.autograd.grad(F.ctc_loss(x.log_softmax(2), targets, [steps] * batch, [longest] * batch), x)
    return make


def classified(*shape):
    """cross_entropy and its gradient."""
    def make(device):
        x = tensor(*shape).to(device).requires_grad_()
        target = torch.randint(shape[1], (shape[0], *shape[2:]), generator=torch.Generator().manual_seed(0)).to(device)
        return lambda: torch.autograd.grad(F.cross_entropy(x, target), x)
    return make


def backward(function, *shape, dtype=torch.float32):
    """The gradient alone, for a random one of the result."""
    def make(device):
        x = tensor(*shape, dtype=dtype).to(device).requires_grad_()
        y, g = function(x), tensor(*shape, dtype=dtype, seed=1).to(device)
        return lambda: torch.autograd.grad(y, x, g, retain_graph=True)
    return make


def softmax_cases():
    for name, function in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):
        for shape, dim in SOFTMAX_LAYOUTS:
            size = " x ".join(map(str, shape))
            yield Case("softmax", f"{name} over {dim}, {size}", on(lambda x, f=function, d=dim: f(x, d), shape), goal=1.0)
            yield Case("softmax", f"{name} backward over {dim}, {size}", backward(lambda x, f=function, d=dim: f(x, d), *shape), goal=1.0)


SOFTMAX_LAYOUTS = (((16 * K, 4), 1), ((8 * K, 10), 1), ((2 * K, 32), 1), ((K, 64), 1), ((512, 128), 1), ((1024, 1024), 1), ((4, 32 * K), 1),
                   ((16, 64, 64), 1), ((1024, 1024), 0))
def whole_numbers(function, high, *shape, dtype=torch.int64, layout=torch.contiguous_format):
    """function of random whole numbers below `high`."""
    def make(device):
        x = torch.randint(high, shape, generator=torch.Generator().manual_seed(0)).to(dtype).to(device).contiguous(memory_format=layout)
        return lambda: function(x)
    return make


def sampled(mode, channels, size, grid_size):
    """grid_sample along a turned and shrunk grid."""
    def make(device):
        x = tensor(8, channels, size, size).to(device)
        turn = torch.tensor([[0.9, 0.3, 0.1], [-0.3, 0.9, 0.0]]).expand(8, 2, 3)
        grid = F.affine_grid(turn, (8, channels, grid_size, grid_size), align_corners=False).to(device)
        return lambda: F.grid_sample(x, grid, mode=mode, align_corners=False)
    return make


def resized(mode, antialias=False, **size):
    corners = {} if mode.startswith("nearest") else {"align_corners": False}
    return lambda x: F.interpolate(x, mode=mode, antialias=antialias, **corners, **size)


LAYOUTS = {"inner": ((2048, 2048), 1), "outer": ((2048, 2048), 0), "middle": ((64, 1024, 64), 1), "rows of 32": ((64 * K, 32), 1)}
REDUCTIONS = {"sum": torch.sum, "mean": torch.mean, "amax": torch.amax, "argmax": torch.argmax, "var": torch.var, "prod": torch.prod,
              "norm": lambda x, d: torch.linalg.vector_norm(x, dim=d), "logsumexp": torch.logsumexp}


def reductions():
    for layout, (shape, d) in LAYOUTS.items():
        for name, f in REDUCTIONS.items():
            yield f"{name} {layout}", on(lambda x, f=f, d=d: f(x, d), shape)
        for name in ("sum", "amax", "argmax", "prod"):
            yield f"{name} {layout}, int64", whole_numbers(lambda x, f=REDUCTIONS[name], d=d: f(x, d), 100, *shape)
        for f in (torch.any, torch.all):
            yield f"{f.__name__} {layout}, bool", whole_numbers(lambda x, f=f, d=d: f(x, d), 2, *shape, dtype=torch.bool)
        for dtype in (torch.float16, torch.bfloat16):
            for name in ("sum", "amax"):
                yield f"{name} {layout}, {str(dtype)[6:]}", on(lambda x, f=REDUCTIONS[name], d=d: f(x, d), shape, dtype=dtype)
    for length in (16, 48, 63, 128):
        yield f"sum rows of {length}", on(lambda x: x.sum(1), (M // length, length))


def moves():
    square, picture = (2048, 2048), (16, 32, 56, 56)
    yield "transposed bf16", on(lambda x: x.t().contiguous(), square, dtype=torch.bfloat16)
    yield "heads, 16 x 256 x 8 x 64", on(lambda x: x.permute(0, 2, 1, 3).contiguous(), (16, 256, 8, 64))
    yield "cat columns", on(lambda a, b: torch.cat([a, b], 1), (1024, 1024), (1024, 1024))
    yield "stack", on(lambda a, b: torch.stack([a, b]), (M,), (M,))
    yield "stack behind", on(lambda a, b: torch.stack([a, b], -1), (M,), (M,))
    yield "flip rows", on(lambda x: x.flip(0), square)
    yield "flip columns", on(lambda x: x.flip(1), square)
    yield "roll", on(lambda x: x.roll(100, 1), square)
    yield "repeat", on(lambda x: x.repeat(4, 1), (1024, 1024))
    yield "tile", on(lambda x: x.tile(2, 2), (1024, 1024))
    for mode in ("constant", "reflect", "replicate", "circular"):
        yield f"pad {mode}", on(lambda x, mode=mode: F.pad(x, (1, 1, 1, 1), mode=mode), picture)
    yield "where, 1M", on(lambda x, y: torch.where(x > 0, x, y), (M,), (M,))
    yield "masked_fill", on(lambda x: x.masked_fill(x > 0, 1.0), (M,))
    yield "tril", on(torch.tril, square)
    yield "triu", on(torch.triu, square)
    yield "clone channels last", on(torch.clone, (32, 64, 56, 56), layout=torch.channels_last)
    yield "to channels last", on(lambda x: x.contiguous(memory_format=torch.channels_last), (32, 64, 56, 56))
    yield "from channels last", on(lambda x: x.contiguous(), (32, 64, 56, 56), layout=torch.channels_last)
    yield "histc", on(lambda x: torch.histc(x, 100, -3, 3), (M,))
    yield "bincount 256", whole_numbers(torch.bincount, 256, M)
    for pair in ("float32 float16", "float32 bfloat16", "float16 float32", "bfloat16 float32", "float32 int32", "float32 int64", "int64 float32",
                 "uint8 float32", "float32 uint8", "bool float32", "float32 bool", "int64 int32", "int32 int64"):
        a, b = pair.split()
        yield f"{a} to {b}", whole_numbers(lambda x, b=b: x.to(getattr(torch, b)), 2, M, dtype=getattr(torch, a))


def pictures():
    for mode in ("nearest", "bilinear", "bicubic"):
        twice = resized(mode, scale_factor=2)
        yield f"{mode} up", on(twice, (8, 16, 64, 64))
        yield f"{mode} down", on(resized(mode, size=(100, 100)), (8, 16, 224, 224))
        yield f"{mode} up, channels last", on(twice, (8, 16, 64, 64), layout=torch.channels_last)
        for channels in (1, 3, 4):
            for name, layout in (("", torch.contiguous_format), (", channels last", torch.channels_last)):
                yield f"{mode} up, {channels} of uint8{name}", whole_numbers(twice, 256, 4, channels, 128, 128, dtype=torch.uint8, layout=layout)
        yield f"grid_sample {mode}, 3 of 256", sampled(mode, 3, 256, 224)
        yield f"grid_sample {mode}, 16 of 64", sampled(mode, 16, 64, 128)
    for mode in ("bilinear", "bicubic"):
        down = resized(mode, antialias=True, size=(100, 100))
        yield f"{mode} antialias", on(down, (8, 3, 224, 224))
        for channels in (1, 3, 4):
            for name, layout in (("", torch.contiguous_format), (", channels last", torch.channels_last)):
                yield f"{mode} antialias, {channels} of uint8{name}", whole_numbers(down, 256, 8, channels, 224, 224, dtype=torch.uint8, layout=layout)


def transforms():
    for rows, n in ((32 * K, 16), (8 * K, 64), (4 * K, 100), (4 * K, 128), (2 * K, 256), (1024, 512), (512, 1024), (4 * K, 127), (1024, 1009), (1, M)):
        yield f"fft {rows} x {n}", on(torch.fft.fft, (rows, n), dtype=torch.complex64)
        yield f"rfft {rows} x {n}", on(torch.fft.rfft, (rows, n))
    for batch, n in ((64, 64), (16, 256), (1, 1024)):
        yield f"fft2 {batch} x {n} x {n}", on(torch.fft.fft2, (batch, n, n), dtype=torch.complex64)
        yield f"rfft2 {batch} x {n} x {n}", on(torch.fft.rfft2, (batch, n, n))


def distances():
    for p in (1.0, 2.0, 3.0, float("inf")):
        yield f"cdist {p:g}, 512 x 512 x 64", on(lambda a, b, p=p: torch.cdist(a, b, p=p), (512, 64), (512, 64))
        yield f"pdist {p:g}, 512 x 64", on(lambda a, p=p: F.pdist(a, p=p), (512, 64))
    yield "renorm, 1024 x 1024", on(lambda x: x.renorm(2, 0, 1.0), (1024, 1024))


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
    Case("dense", "conv2d 3x3, 16 x 32 x 56 x 56",
         on(lambda x, w: F.conv2d(x, w, padding=1), (16, 32, 56, 56), (64, 32, 3, 3)), goal=0.8),
    Case("dense", "attention 4 x 8 x 256 x 64", on(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
                                                  (4, 8, 256, 64), (4, 8, 256, 64), (4, 8, 256, 64))),
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
    *softmax_cases(),
    Case("softmax", "gelu, 64K", pointwise(F.gelu, 64 * K, 1), goal=1.0),
    Case("softmax", "gelu backward, 64K", backward(F.gelu, 64 * K), goal=1.0),
    Case("softmax", "gelu backward, 1M", backward(F.gelu, M), goal=1.0),
    Case("loss", "cross entropy and gradient, 4K x 32", classified(4 * K, 32), goal=1.0),
    Case("loss", "cross entropy and gradient, 1024 x 1000", classified(1024, 1000), goal=1.0),
    Case("loss", "cross entropy and gradient, 8 x 21 x 64 x 64", classified(8, 21, 64, 64), goal=1.0),
    Case("loss", "ctc and gradient, 50 x 16 x 20, 30", ctc(50, 16, 20, 30), goal=1.0),
    Case("loss", "ctc and gradient, 200 x 8 x 1000, 50", ctc(200, 8, 1000, 50), goal=1.0),
    Case("loss", "multi margin and gradient, 1024 x 1000",
         gradient(lambda x: F.multi_margin_loss(x, torch.zeros(1024, dtype=torch.long, device=x.device)), (1024, 1000)), goal=1.0),
    Case("norm", "layer norm, 1024 x 64", on(lambda x, w, b: F.layer_norm(x, (64,), w, b), (1024, 64), (64,), (64,)), goal=1.0),
    Case("norm", "layer norm and gradients, 1024 x 64", gradient(lambda x, w, b: F.layer_norm(x, (64,), w, b), (1024, 64), (64,), (64,)), goal=1.0),
    Case("norm", "layer norm and gradients, 1024 x 1024", gradient(lambda x, w, b: F.layer_norm(x, (1024,), w, b), (1024, 1024), (1024,), (1024,))),
    Case("norm", "batch norm and gradients, 32 x 64 x 56 x 56",
         gradient(lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), (32, 64, 56, 56), (64,), (64,))),
    Case("norm", "group norm and gradients, 32 x 64 x 56 x 56",
         gradient(lambda x, w, b: F.group_norm(x, 8, w, b), (32, 64, 56, 56), (64,), (64,))),
    Case("pool", "max_pool2d 3, 32 x 64 x 56 x 56", on(lambda x: F.max_pool2d(x, 3, 2, 1), (32, 64, 56, 56)), goal=1.0),
    Case("pool", "max_pool2d 3 and gradient", gradient(lambda x: F.max_pool2d(x, 3, 2, 1), (32, 64, 56, 56)), goal=1.0),
    Case("pool", "max_pool2d 3 channels last", channels_last(lambda x: F.max_pool2d(x, 3, 2, 1), (32, 64, 56, 56)), goal=0.5),
    Case("pool", "max_pool2d 2 and gradient, 64K", gradient(lambda x: F.max_pool2d(x, 2), (4, 16, 32, 32)), goal=1.0),
    Case("pool", "max_pool3d 2 and gradient, 4 x 16 x 16 x 32 x 32", gradient(lambda x: F.max_pool3d(x, 2), VOLUME), goal=1.0),
    Case("pool", "avg_pool2d 2, 32 x 64 x 56 x 56", on(lambda x: F.avg_pool2d(x, 2), (32, 64, 56, 56)), goal=1.0),
    Case("pool", "avg_pool2d 3 and gradient", gradient(lambda x: F.avg_pool2d(x, 3, 1, 1), (32, 64, 56, 56)), goal=1.0),
    Case("pool", "avg_pool2d 2 channels last", channels_last(lambda x: F.avg_pool2d(x, 2), (32, 64, 56, 56)), goal=1.0),
    Case("pool", "adaptive_avg_pool2d 1 and gradient", gradient(lambda x: F.adaptive_avg_pool2d(x, 1), (32, 512, 7, 7)), goal=1.0),
    Case("pool", "adaptive_avg_pool2d 5 and gradient", gradient(lambda x: F.adaptive_avg_pool2d(x, 5), (32, 64, 28, 28)), goal=1.0),
    Case("pool", "adaptive_max_pool2d 1, 32 x 512 x 7 x 7", on(lambda x: F.adaptive_max_pool2d(x, 1), (32, 512, 7, 7)), goal=1.0),
    Case("pool", "adaptive_max_pool2d 5 and gradient", gradient(lambda x: F.adaptive_max_pool2d(x, 5), (32, 64, 28, 28)), goal=1.0),
    Case("pool", "adaptive_avg_pool3d 5 and gradient", gradient(lambda x: F.adaptive_avg_pool3d(x, 5), VOLUME), goal=1.0),
    Case("pool", "adaptive_max_pool3d 5 and gradient", gradient(lambda x: F.adaptive_max_pool3d(x, 5), VOLUME), goal=1.0),
    Case("pool", "fractional_max_pool2d 2 and gradient", gradient(fractional(F.fractional_max_pool2d, 20), (32, 64, 28, 28)), goal=1.0),
    Case("pool", "fractional_max_pool3d 2 and gradient", gradient(fractional(F.fractional_max_pool3d, 10), VOLUME), goal=1.0),
    Case("index", "gather rows, 2048 x 2048",
         indexed(lambda i, x: x.gather(1, i.view(2048, 512)), 2048, M, (2048, 2048)), goal=1.0),
    Case("index", "gather columns, 2048 x 2048",
         indexed(lambda i, x: x.gather(0, i.view(512, 2048)), 2048, M, (2048, 2048)), goal=1.0),
    Case("index", "gather bf16, 1-d, 1M of 1M", indexed(lambda i, x: x.gather(0, i), M, M, (M,), dtype=torch.bfloat16), goal=1.0),
    Case("index", "gather i64, rows of 64",
         indexed(lambda i, x: x.gather(1, i.view(16 * K, 64)), 64, M, (16 * K, 64), dtype=torch.int64), goal=1.0),
    Case("index", "gather, 64K", indexed(lambda i, x: x.gather(0, i), 64 * K, 64 * K, (64 * K,)), goal=1.0),
    Case("index", "gather int32 indices, 1M",
         indexed(lambda i, x: x.gather(0, i), M, M, (M,), index_dtype=torch.int32), goal=1.0),
    Case("index", "scatter_add, 1M into 64K",
         indexed(lambda i, x, y: x.scatter_add(0, i, y), 64 * K, M, (64 * K,), (M,)), goal=1.0),
    Case("index", "scatter_add, 1M into 1M", indexed(lambda i, x, y: x.scatter_add(0, i, y), M, M, (M,), (M,)), goal=1.0),
    Case("index", "scatter_add, 64K into 100",
         indexed(lambda i, x, y: x.scatter_add(0, i, y), 100, 64 * K, (100,), (64 * K,)), goal=1.0),
    Case("index", "scatter_add rows, 2048 x 512",
         indexed(lambda i, x, y: x.scatter_add(1, i.view(2048, 512), y), 2048, M, (2048, 2048), (2048, 512)), goal=1.0),
    Case("index", "scatter_add columns, 512 x 2048",
         indexed(lambda i, x, y: x.scatter_add(0, i.view(512, 2048), y), 2048, M, (2048, 2048), (512, 2048)), goal=1.0),
    Case("index", "scatter_add expanded, 16K x 64",
         indexed(lambda i, x, y: x.scatter_add(0, i[:, None].expand(-1, 64), y), 32 * K, 16 * K, (32 * K, 64), (16 * K, 64)), goal=1.0),
    Case("index", "scatter_add bf16, 1M into 64K",
         indexed(lambda i, x, y: x.scatter_add(0, i, y), 64 * K, M, (64 * K,), (M,), dtype=torch.bfloat16), goal=1.0),
    Case("index", "scatter_add i64, 1M into 64K",
         indexed(lambda i, x, y: x.scatter_add(0, i, y), 64 * K, M, (64 * K,), (M,), dtype=torch.int64), goal=1.0),
    Case("index", "scatter rows, 2048 x 512",
         indexed(lambda i, x, y: x.scatter(1, i.view(2048, 512), y), 2048, M, (2048, 2048), (2048, 512)), goal=1.0),
    Case("index", "scatter, 1M into 1M", indexed(lambda i, x, y: x.scatter(0, i, y), M, M, (M,), (M,)), goal=1.0),
    Case("index", "scatter value, 64K into 1M", indexed(lambda i, x: x.scatter(0, i, 2.0), M, 64 * K, (M,)), goal=1.0),
    Case("index", "scatter_reduce amax, 1M into 64K",
         indexed(lambda i, x, y: x.scatter_reduce(0, i, y, "amax"), 64 * K, M, (64 * K,), (M,)), goal=1.0),
    Case("index", "index_add, 16K x 64",
         indexed(lambda i, x, y: x.index_add(0, i, y), 32 * K, 16 * K, (32 * K, 64), (16 * K, 64)), goal=1.0),
    Case("index", "index_add 1-d, 256K into 64K",
         indexed(lambda i, x, y: x.index_add(0, i, y), 64 * K, 256 * K, (64 * K,), (256 * K,)), goal=1.0),
    Case("index", "index_copy, 16K x 64",
         indexed(lambda i, x, y: x.index_copy(0, i, y), 32 * K, 16 * K, (32 * K, 64), (16 * K, 64)), goal=1.0),
    Case("index", "index_put, 256K into 1M",
         indexed(lambda i, x, y: x.index_put((i,), y), M, 256 * K, (M,), (256 * K,)), goal=1.0),
    Case("index", "index_put accumulate, 256K into 64K",
         indexed(lambda i, x, y: x.index_put((i,), y, accumulate=True), 64 * K, 256 * K, (64 * K,), (256 * K,)), goal=1.0),
    Case("index", "index_put accumulate two, 256K into 256 x 256",
         indexed(lambda i, x, y: x.index_put((i, i.flip(0)), y, accumulate=True), 256, 256 * K, (256, 256), (256 * K,)), goal=1.0),
    Case("index", "index_put accumulate rows, 16K x 64",
         indexed(lambda i, x, y: x.index_put((i,), y, accumulate=True), 32 * K, 16 * K, (32 * K, 64), (16 * K, 64)), goal=1.0),
    Case("index", "index_select rows, 16K of 64K x 64",
         indexed(lambda i, x: x.index_select(0, i), 64 * K, 16 * K, (64 * K, 64)), goal=1.0),
    Case("index", "index_select columns, 512 of 2048 x 2048",
         indexed(lambda i, x: x.index_select(1, i), 2048, 512, (2048, 2048)), goal=1.0),
    Case("index", "index_select bytes, 1M of 1M",
         indexed(lambda i, x: x.index_select(0, i), M, M, (M,), dtype=torch.uint8), goal=1.0),
    Case("index", "index two, 1M of 1024 x 1024", indexed(lambda i, x: x[i, i.flip(0)], 1024, M, (1024, 1024)), goal=1.0),
    Case("index", "index rows, 16K of 64K x 64", indexed(lambda i, x: x[i], 64 * K, 16 * K, (64 * K, 64)), goal=1.0),
    Case("index", "take 1M of 1M", indexed(lambda i, x: x.take(i), M, M, (M,)), goal=1.0),
    Case("index", "index 1M of 1M", index_case(M), goal=1.0),
    Case("index", "embedding, 16K of 32K x 64", indexed(lambda i, w: F.embedding(i, w), 32 * K, 16 * K, (32 * K, 64)), goal=1.0),
    Case("index", "embedding and gradient, 16K of 32K x 64", embedding, goal=1.0),
    Case("index", "embedding_bag sum, 16K in 512 bags, 32K x 64", bag("sum"), goal=1.0),
    Case("index", "embedding_bag mean, 16K in 512 bags, 32K x 64", bag("mean"), goal=1.0),
    Case("index", "embedding_bag max, 16K in 512 bags, 32K x 64", bag("max"), goal=1.0),
    Case("index", "embedding_bag sum, 16K in 512 bags, 32K x 256", bag("sum", width=256), goal=1.0),
    Case("index", "embedding_bag sum, 16K in 512 bags, 1K x 64", bag("sum", rows=K), goal=1.0),
    Case("index", "embedding_bag sum, 16K in 8K bags, 32K x 16", bag("sum", width=16, bags=8 * K), goal=1.0),
    Case("index", "embedding_bag sum bf16, 16K in 512 bags, 32K x 64", bag("sum", dtype=torch.bfloat16), goal=1.0),
    Case("index", "embedding_bag sum weighted, 16K in 512 bags, 32K x 64", bag("sum", weighted=True), goal=1.0),
    Case("index", "embedding_bag sum and gradient, 16K in 512 bags", bag("sum", backward=True), goal=1.0),
    Case("index", "masked_select, 1M", on(lambda x: x[x > 0], (M,)), goal=1.0),
    Case("index", "masked_select i64, 64K", on(lambda x: x[x > 0], (64 * K,), dtype=torch.int64), goal=1.0),
    Case("index", "masked_select with a mask, 1024 x 1024", masked(lambda m, x: x.masked_select(m), (1024, 1024)), goal=1.0),
    Case("index", "masked_scatter, 1M", masked(lambda m, x, y: x.masked_scatter(m, y), (M,), (M,)), goal=1.0),
    Case("index", "masked_fill, 1M", masked(lambda m, x: x.masked_fill(m, 0.0), (M,)), goal=1.0),
    Case("index", "nonzero f32, 1M", masked(lambda m, x: (x * m).nonzero(), (M,)), goal=1.0),
    Case("index", "nonzero, 1024 x 1024", masked(lambda m, x: m.nonzero(), (1024, 1024)), goal=1.0),
    Case("index", "nonzero, few of 1M", on(lambda x: (x > 3).nonzero(), (M,)), goal=1.0),
    Case("index", "where, 4M", on(lambda x, y: torch.where(x > 0, x, y), (4 * M,), (4 * M,))),
    Case("index", "cat 4 x 1M", on(lambda a, b, c, d: torch.cat([a, b, c, d]), *[(M,)] * 4)),
    Case("index", "copy transposed, 2048 x 2048", on(lambda x: x.t().contiguous(), (2048, 2048))),
    Case("order", "sort, 256K", on(lambda x: x.sort()[0], (256 * K,)), goal=1.0),
    Case("order", "sort i64, 256K", spread(lambda x: x.sort()[0], (256 * K,), dtype=torch.int64), goal=1.0),
    Case("order", "sort bytes, 1M", spread(lambda x: x.sort()[0], (M,), dtype=torch.uint8), goal=1.0),
    Case("order", "sort rows, 1024 x 1024", on(lambda x: x.sort(1)[0], (1024, 1024)), goal=1.0),
    Case("order", "sort columns, 1024 x 1024", on(lambda x: x.sort(0)[0], (1024, 1024)), goal=1.0),
    Case("order", "sort many rows of 16, 64K x 16", on(lambda x: x.sort(1)[0], (64 * K, 16)), goal=1.0),
    Case("order", "sort bf16, 64K", on(lambda x: x.sort()[0], (64 * K,), dtype=torch.bfloat16), goal=1.0),
    Case("order", "argsort, 64K", on(lambda x: x.argsort(), (64 * K,)), goal=1.0),
    Case("order", "argsort, sorted before, 1M", on(lambda x: x.cumsum(0).argsort(), (M,)), goal=1.0),
    Case("order", "msort, 1024 x 256", on(lambda x: x.msort(), (1024, 256)), goal=1.0),
    Case("order", "topk 50, 64 x 32K", on(lambda x: x.topk(50)[0], (64, 32 * K)), goal=1.0),
    Case("order", "topk 5, 4096 x 1000", on(lambda x: x.topk(5)[0], (4096, 1000)), goal=1.0),
    Case("order", "topk 1000 of 1M", on(lambda x: x.topk(1000)[0], (M,)), goal=1.0),
    Case("order", "topk 8, columns, 1024 x 1024", on(lambda x: x.topk(8, 0)[0], (1024, 1024)), goal=1.0),
    Case("order", "kthvalue, 1024 x 1024", on(lambda x: x.kthvalue(100, 1)[0], (1024, 1024)), goal=1.0),
    Case("order", "median, 1024 x 1024", on(lambda x: x.median(1)[0], (1024, 1024)), goal=1.0),
    Case("order", "searchsorted, 1M in 1K", on(lambda b, x: torch.searchsorted(b.sort()[0], x), (K,), (M,)), goal=1.0),
    Case("order", "searchsorted, 256K in 1M", on(lambda b, x: torch.searchsorted(b, x), (M,), (256 * K,)), goal=1.0),
    Case("order", "searchsorted rows, 1024 x 256 in 1024 x 64",
         on(lambda b, x: torch.searchsorted(b, x), (1024, 64), (1024, 256)), goal=1.0),
    Case("order", "bucketize, 1M in 16", on(lambda b, x: torch.bucketize(x, b), (16,), (M,)), goal=1.0),
    Case("order", "bucketize, 64K in 1K", on(lambda b, x: torch.bucketize(x, b), (K,), (64 * K,)), goal=1.0),
    Case("order", "isin, 256K in 1K", spread(lambda x, y: torch.isin(x, y), (256 * K,), (K,), dtype=torch.int64), goal=1.0),
    Case("order", "unique i64, 256K of many", spread(lambda x: x.unique(), (256 * K,), dtype=torch.int64), goal=1.0),
    Case("order", "unique i64, 1M of 1000", spread(lambda x: x.unique(), (M,), dtype=torch.int64, below=1000), goal=1.0),
    Case("order", "unique i64, 64K of 100, inverse and counts",
         spread(lambda x: x.unique(return_inverse=True, return_counts=True)[0], (64 * K,), dtype=torch.int64, below=100), goal=1.0),
    Case("order", "unique f32, 256K", on(lambda x: x.unique(), (256 * K,)), goal=1.0),
    Case("order", "unique i32, 1M of 64K", spread(lambda x: x.unique(), (M,), dtype=torch.int32, below=64 * K), goal=1.0),
    Case("order", "unique bytes, 1M", spread(lambda x: x.unique(), (M,), dtype=torch.uint8), goal=1.0),
    Case("order", "unique rows, 64K x 4", spread(lambda x: x.unique(dim=0), (64 * K, 4), dtype=torch.int64, below=30), goal=1.0),
    Case("order", "unique_consecutive, 1M", spread(lambda x: x.unique_consecutive(), (M,), dtype=torch.int64, below=2), goal=1.0),
    Case("random", "randn, 1M", created(lambda device: torch.randn(M, device=device)), goal=1.0),
    Case("random", "randn, 64K", created(lambda device: torch.randn(64 * K, device=device)), goal=1.0),
    Case("random", "normal_, 1M", on(lambda x: x.normal_(), (M,)), goal=1.0),
    Case("random", "normal_ bf16, 1M", on(lambda x: x.normal_(), (M,), dtype=torch.bfloat16), goal=1.0),
    Case("random", "rand, 1M", created(lambda device: torch.rand(M, device=device)), goal=1.0),
    Case("random", "uniform_, 64K", on(lambda x: x.uniform_(), (64 * K,)), goal=1.0),
    Case("random", "uniform_ f16, 1M", on(lambda x: x.uniform_(), (M,), dtype=torch.float16), goal=1.0),
    Case("random", "exponential_, 1M", on(lambda x: x.exponential_(), (M,)), goal=1.0),
    Case("random", "bernoulli_ 0.3, 1M", on(lambda x: x.bernoulli_(0.3), (M,)), goal=1.0),
    Case("random", "bernoulli_ bool, 64K", on(lambda x: (x > 0).bernoulli_(0.3), (64 * K,)), goal=1.0),
    Case("random", "bernoulli of each, 1M", on(lambda x: torch.bernoulli(x.sigmoid()), (M,)), goal=1.0),
    Case("random", "cauchy_, geometric_, log_normal_, 256K",
         on(lambda x: x.cauchy_().geometric_(0.3).log_normal_(), (256 * K,)), goal=1.0),
    Case("random", "random_, 1M", on(lambda x: x.random_(0, 1000), (M,), dtype=torch.int64), goal=1.0),
    Case("random", "randint, 64K", created(lambda device: torch.randint(100, (64 * K,), device=device)), goal=1.0),
    Case("random", "dropout, 1M", on(lambda x: F.dropout(x, 0.5), (M,)), goal=1.0),
    Case("random", "dropout bf16, 64K", on(lambda x: F.dropout(x, 0.5), (64 * K,), dtype=torch.bfloat16), goal=1.0),
    Case("random", "randperm, 1M", created(lambda device: torch.randperm(M, device=device)), goal=1.0),
    Case("random", "randperm, 64K", created(lambda device: torch.randperm(64 * K, device=device)), goal=1.0),
    Case("random", "multinomial, 64 of 1024 x 4096",
         on(lambda x: torch.multinomial(x.abs(), 64, replacement=True), (1024, 4096)), goal=1.0),
    Case("random", "multinomial, 1M of 1000", on(lambda x: torch.multinomial(x.abs(), M, replacement=True), (1000,)), goal=1.0),
    Case("random", "multinomial without replacement, 64 of 1024 x 4096",
         on(lambda x: torch.multinomial(x.abs(), 64), (1024, 4096)), goal=1.0),
    Case("scan", "cumsum, 1M", on(lambda x: x.cumsum(0), (M,)), goal=1.0),
    Case("scan", "cumsum, 64K", on(lambda x: x.cumsum(0), (64 * K,)), goal=1.0),
    Case("scan", "cumsum rows, 1024 x 1024", on(lambda x: x.cumsum(1), (1024, 1024)), goal=1.0),
    Case("scan", "cumsum columns, 1024 x 1024", on(lambda x: x.cumsum(0), (1024, 1024)), goal=1.0),
    Case("scan", "cumsum i64 rows, 1024 x 1024", on(lambda x: x.cumsum(1), (1024, 1024), dtype=torch.int64), goal=1.0),
    Case("scan", "cumsum of a mask, 1M", on(lambda x: (x > 0).cumsum(0), (M,)), goal=1.0),
    Case("scan", "cumsum bf16 rows, 1024 x 1024", on(lambda x: x.cumsum(1), (1024, 1024), dtype=torch.bfloat16), goal=1.0),
    Case("scan", "cumprod rows, 1024 x 1024", on(lambda x: x.cumprod(1), (1024, 1024)), goal=1.0),
    Case("scan", "cumprod columns, 1024 x 1024", on(lambda x: x.cumprod(0), (1024, 1024)), goal=1.0),
    Case("scan", "cummax, 1M", on(lambda x: x.cummax(0)[0], (M,)), goal=1.0),
    Case("scan", "cummax rows, 1024 x 1024", on(lambda x: x.cummax(1)[0], (1024, 1024)), goal=1.0),
    Case("scan", "cummax columns, 1024 x 1024", on(lambda x: x.cummax(0)[0], (1024, 1024)), goal=1.0),
    Case("scan", "cummin i64 rows, 1024 x 1024", spread(lambda x: x.cummin(1)[0], (1024, 1024), dtype=torch.int64), goal=1.0),
    Case("scan", "logcumsumexp rows, 1024 x 1024", on(lambda x: x.logcumsumexp(1), (1024, 1024)), goal=1.0),
    Case("scan", "logcumsumexp columns, 1024 x 1024", on(lambda x: x.logcumsumexp(0), (1024, 1024)), goal=1.0),
    Case("training", "MLP, batch 32", training("mlp"), goal=0.9),
    Case("training", "MLP, width 512, batch 256", wide_mlp, goal=0.9),
    Case("training", "residual net", training("residual"), goal=0.9),
    Case("training", "decoder", training("decoder"), goal=0.9),
]
CASES += [Case(family.__name__, name, make, goal=1.0) for family in (reductions, moves, pictures, transforms, distances) for name, make in family()]
