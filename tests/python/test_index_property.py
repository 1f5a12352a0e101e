# SPDX-License-Identifier: BSD-3-Clause
"""Indexing with any shapes, layouts and indices (negative, duplicate, expanded): the CPU's result, the same bits for any number of threads, and
errors for indices out of range wherever they stand."""
import os
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from compare import compare, make

DTYPES = (torch.float32, torch.float32, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64)
LOOSE = {torch.float32: {"rtol": 1e-5, "atol": 1e-4}, torch.bfloat16: {"rtol": 3e-2, "atol": 0.2}, torch.complex64: {"rtol": 1e-5, "atol": 1e-4}}


def whole(dtype):
    """Sums of such values are exact, whatever the order."""
    return {} if dtype == torch.complex64 else {"low": -2, "high": 3}


def laid_out(draw, x):
    """x's values, laid out in one of several ways."""
    kind = draw(st.sampled_from(("contiguous", "transposed", "strided", "offset")))
    if kind == "transposed" and x.dim() > 1:
        return x.transpose(0, -1).contiguous().transpose(0, -1)
    if kind == "strided" and x.dim():
        wide = torch.zeros(*x.shape[:-1], 2 * x.shape[-1], dtype=x.dtype)
        wide[..., ::2] = x
        return wide[..., ::2]
    if kind == "offset" and x.dim():
        return torch.cat([x.new_zeros(3), x.reshape(-1)])[3:].view(x.shape)
    return x.contiguous()


def indices(draw, shape, below, negative):
    """Random indices: of few different values now and then, negative ones where they count from the end, expanded in places."""
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    index = torch.randint(draw(st.sampled_from((1, 2, below, below))) if below > 2 else below, shape, generator=generator)
    if negative and draw(st.booleans()):
        index = index - below * torch.randint(2, shape, generator=generator)
    if index.dim() > 1 and draw(st.booleans()):
        return index.narrow(draw(st.integers(0, index.dim() - 1)), 0, 1).expand(shape)
    return laid_out(draw, index) if not draw(st.booleans()) else laid_out(draw, index.int())


@st.composite
def points(draw):
    """Data, a dimension, and an index (of the data's rank) that gather and scatter take."""
    shape = draw(st.lists(st.sampled_from((1, 2, 3, 5, 17, 130, 300)), min_size=1, max_size=3).filter(lambda s: torch.Size(s).numel() < 20_000))
    dim = draw(st.integers(0, len(shape) - 1))
    size = [draw(st.sampled_from((1, n // 2 + 1, n))) for n in shape]
    size[dim] = draw(st.sampled_from((1, 7, shape[dim], 140)))
    dtype = draw(st.sampled_from(DTYPES))
    x = laid_out(draw, make(shape, dtype, seed=draw(st.integers(0, 9)), **whole(dtype)))
    return dtype, x, dim, indices(draw, size, shape[dim], False)


@settings(max_examples=80, deadline=None)
@given(points(), st.data())
def test_gather_and_scatter(call, data):
    dtype, x, dim, index = call
    compare(lambda x, i: x.gather(dim, i), x, index)
    index = index.long()
    source = laid_out(data.draw, make(tuple(index.shape), dtype, seed=3, **whole(dtype)))
    compare(lambda x, i, s: x.scatter_add(dim, i, s), x, index, source, **LOOSE.get(dtype, {}))
    compare(lambda x, i: x.scatter(dim, i, 1), x, index)
    if dtype in (torch.float32, torch.int64, torch.int32):
        for reduce in ("sum", "amax", "amin", "mean"):
            include_self = data.draw(st.booleans())
            compare(lambda x, i, s: x.scatter_reduce(dim, i, s, reduce, include_self=include_self), x, index, source, **LOOSE.get(dtype, {}))


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_rows_and_advanced_indexing(data):
    draw = data.draw
    shape = draw(st.lists(st.sampled_from((1, 2, 3, 5, 17, 70)), min_size=1, max_size=3))
    dtype, dim = draw(st.sampled_from(DTYPES)), draw(st.integers(0, len(shape) - 1))
    x, count = laid_out(draw, make(shape, dtype, **whole(dtype))), draw(st.sampled_from((0, 1, 9, 150)))
    loose = LOOSE.get(dtype, {})
    vector = indices(draw, (count,), shape[dim], False)
    compare(lambda x, i: x.index_select(dim, i), x, vector)
    source = laid_out(draw, make(shape[:dim] + [count] + shape[dim + 1:], dtype, seed=3, **whole(dtype)))
    compare(lambda x, i, s: x.index_add(dim, i, s), x, vector, source, **loose)
    wrapped = indices(draw, (count,), shape[dim], True).long()
    compare(lambda x, i: x.index_fill(dim, i, 1), x, wrapped)
    compare(lambda x, i: x[(slice(None),) * dim + (i,)], x, wrapped)
    compare(lambda x, i: x.take(i), x, indices(draw, (count,), x.numel(), True).long())
    both = [indices(draw, (count,), n, True).long() for n in shape]
    compare(lambda x, *i: x[i], x, *both)
    values = make((count,), dtype, seed=4, **whole(dtype))
    compare(lambda x, v, *i: x.index_put(i, v, accumulate=True), x, values, *both, **loose)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_masks(data):
    draw = data.draw
    shape = draw(st.lists(st.sampled_from((1, 2, 3, 17, 130)), min_size=1, max_size=3))
    x = laid_out(draw, make(shape, draw(st.sampled_from(DTYPES))))
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(draw(st.integers(0, 99)))) < draw(st.sampled_from((0.0, 0.02, 0.5, 1.0)))
    mask = laid_out(draw, mask)
    compare(lambda x, m: x.masked_select(m), x, mask)
    compare(lambda m: m.nonzero(), mask)
    compare(lambda x, m, s: x.masked_scatter(m, s), x, mask, make((x.numel(),), x.dtype, seed=5))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_bags(data):
    draw = data.draw
    rows, width, count = draw(st.integers(1, 40)), draw(st.sampled_from((1, 16, 17, 64, 130))), draw(st.integers(0, 200))
    weight = laid_out(draw, make((rows, width), **whole(torch.float32)))
    index = indices(draw, (count,), rows, False).long()
    offsets = torch.tensor([0] + sorted(draw(st.lists(st.integers(0, count), max_size=12))))
    mode, padding = draw(st.sampled_from(("sum", "mean", "max"))), draw(st.sampled_from((None, rows - 1)))
    compare(lambda w, i, o: F.embedding_bag(i, w, o, mode=mode, padding_idx=padding), weight, index, offsets, rtol=1e-5, atol=1e-5)
    if mode == "sum":
        compare(lambda w, i, o, s: F.embedding_bag(i, w, o, mode=mode, padding_idx=padding, per_sample_weights=s), weight, index, offsets,
                make((count,), seed=2), rtol=1e-5, atol=1e-4)


# The large cases below reach every way in which work is shared: rows, columns, parts with copies of the data, and slices of the data.
LARGE = {
    "rows": ((40, 300), 1, (40, 500)),
    "columns": ((300, 200), 0, (150, 200)),
    "few": ((100,), 0, (70_000,)),
    "one": ((1,), 0, (40_000,)),
    "parts": ((5_000,), 0, (90_001,)),
    "slices": ((200_000,), 0, (60_000,)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.int16, torch.bool, torch.complex64])
@pytest.mark.parametrize("case", LARGE)
def test_large_scatters(case, dtype):
    shape, dim, size = LARGE[case]
    x, source = make(shape, dtype, **whole(dtype)), make(size, dtype, seed=2, **whole(dtype))
    index = torch.randint(shape[dim], size, generator=torch.Generator().manual_seed(1))
    loose = {"rtol": 1e-3, "atol": 2e-2} if dtype in (torch.float16, torch.complex64) else {}
    compare(lambda x, i, s: x.scatter_add(dim, i, s), x, index, source, **loose)
    if dtype != torch.complex64 and dtype != torch.bool:
        for reduce in ("amax", "amin"):
            compare(lambda x, i, s: x.scatter_reduce(dim, i, s, reduce, include_self=False), x, index, source)
    if dtype == torch.int64:
        compare(lambda x, i, s: x.scatter_reduce(dim, i, s, "prod"), x, index, source)
        compare(lambda x, i, s: x.scatter_reduce(dim, i, s, "mean"), x, index, source)
    compare(lambda x, i: x.gather(dim, i), x, index)


def test_parts_keep_negative_zeros():
    """Elements to which nothing, or only -0, is added stay as they are."""
    x, index = torch.full((3,), -0.0), torch.zeros(50_000, dtype=torch.long)
    result = x.to("mps").scatter_add(0, index.to("mps"), torch.full((50_000,), -0.0, device="mps")).cpu()
    assert torch.signbit(result).all()


@pytest.mark.parametrize("case", LARGE)
@pytest.mark.parametrize("bad", [-1, None])
def test_errors_of_large_scatters(case, bad):
    shape, dim, size = LARGE[case]
    index = torch.zeros(size, dtype=torch.long)
    index.view(-1)[index.numel() * 2 // 3] = shape[dim] if bad is None else bad
    x, index = torch.zeros(shape, device="mps"), index.to("mps")
    for call in (lambda: x.gather(dim, index), lambda: x.scatter(dim, index, 1.0), lambda: x.scatter_add(dim, index, torch.ones(size, device="mps"))):
        call()
        with pytest.raises(torch.AcceleratorError, match=f"is out of bounds for dimension {dim} with size {shape[dim]}"):
            torch.mps.synchronize()
    assert torch.equal(x.cpu(), torch.zeros(shape))


HASHES = """
import hashlib, torch
from torch.nn import functional as F
g = torch.Generator().manual_seed(0)
def show(x):
    print(hashlib.sha256(x.cpu().contiguous().numpy().tobytes()).hexdigest())
for shape, dim, size in %r:
    x, source = torch.randn(shape, generator=g).to("mps"), torch.randn(size, generator=g).to("mps")
    index = torch.randint(shape[dim], size, generator=g).to("mps")
    show(x.scatter_add(dim, index, source))
    show(x.scatter(dim, index, source))
    show(x.scatter_reduce(dim, index, source, "mean"))
    show(x.gather(dim, index))
index = torch.randint(300, (20_000,), generator=g).to("mps")
weight = torch.randn(300, 70, generator=g).to("mps").requires_grad_()
rows = torch.randn(20_000, 70, generator=g).to("mps")
show(weight.detach().index_add(0, index, rows))
show(torch.autograd.grad((F.embedding(index, weight) * rows).sum(), weight)[0])
bags = F.embedding_bag(index, weight, torch.arange(0, 20_000, 40, device="mps"), mode="mean")
show(bags.detach())
show(torch.autograd.grad((bags * rows[:500]).sum(), weight)[0])
show(torch.zeros(300, 300, device="mps").index_put((index, index.flip(0)), rows[:, 0], accumulate=True))
show(rows[rows > 0.3])
show(rows.masked_scatter(rows > 0, rows.flatten().flip(0)))
show((rows > 1).nonzero())
torch.manual_seed(1)
for n in (100, 5_000, 300_000):
    show(torch.randperm(n, device="mps"))
show(torch.multinomial(rows.abs().t(), 500, replacement=True))
show(torch.multinomial(rows.abs(), 5))
show(rows.sort(0)[0])
show(index.unique(return_inverse=True)[1])
"""


def test_the_number_of_threads_changes_nothing():
    def run(threads):
        environment, code = {**os.environ, "OPENMPS_THREADS": threads}, HASHES % (list(LARGE.values()),)
        return subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True).stdout

    first = run("1")
    assert first == run("2") == run("5")
    assert len(first.split()) == 4 * len(LARGE) + 15
