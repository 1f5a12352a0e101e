# SPDX-License-Identifier: BSD-3-Clause
"""Bools whose bytes are neither 0 nor 1, as a view of uint8 gives them: every byte but 0 is true, for whatever reads one. Results are those of the
same bools with bytes 0 and 1, on the CPU, and of these bytes there."""
import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from compare import flatten, to_mps

A = torch.ops.aten
SHAPES = [(5, 6), (24, 50), (300, 400)]  # kernels of one formula, programs, more than one thread


def at(n, x):
    """Places in [0, 7), one for each element."""
    return (torch.arange(n, device=x.device) * 5 + 3) % 7


def scattered(name):
    return lambda m, n, x: n.flatten()[:7].scatter_reduce(0, at(m.numel(), x), m.flatten(), name)


def once(name):
    return lambda m, n, x: n.flatten()[:7].scatter_reduce(0, at(7, x), m.flatten()[:7], name)


def assigned(m, n, x):
    x = x.clone()
    x[m] = 4
    return x


SELECTING = {
    "index": lambda m, n, x: x[m], "index columns": lambda m, n, x: x[:, m[0]], "index rows": lambda m, n, x: x[m[:, 1], :2],
    "index a bool": lambda m, n, x: n[m], "index transposed": lambda m, n, x: x.t()[m.t()],
    "masked_select": lambda m, n, x: x.half().masked_select(m), "nonzero": lambda m, n, x: m.nonzero(),
    "nonzero transposed": lambda m, n, x: m.t().nonzero(), "nonzero_static": lambda m, n, x: torch.nonzero_static(m, size=9),
    "argwhere": lambda m, n, x: torch.argwhere(m), "where": lambda m, n, x: torch.where(m), "count_nonzero": lambda m, n, x: m.count_nonzero(),
    "count_nonzero of rows": lambda m, n, x: m.count_nonzero(1), "masked_scatter": lambda m, n, x: x.masked_scatter(m, -x),
    "index_put": lambda m, n, x: x.index_put((m,), x.new_tensor(5)),
    "index_put, adding": lambda m, n, x: x.index_put((m,), x.new_tensor(5), accumulate=True), "setitem": assigned,
    "masked_fill": lambda m, n, x: x.masked_fill(m, 7), "masked_fill of bools": lambda m, n, x: n.masked_fill(m, True),
    "where of numbers": lambda m, n, x: torch.where(m, x, -x), "where of bools": lambda m, n, x: torch.where(m, n, ~n),
    "where of scalars": lambda m, n, x: torch.where(m, 1, 2), "to_sparse": lambda m, n, x: m.to_sparse().indices(),
    "isin": lambda m, n, x: torch.isin(m.int(), n.int().flatten()[:3]),
}
REDUCING = {
    "any": lambda m, n, x: m.any(), "all": lambda m, n, x: m.all(), "any of rows": lambda m, n, x: m.any(1),
    "all of columns": lambda m, n, x: m.all(0), "sum": lambda m, n, x: m.sum(), "sum of rows": lambda m, n, x: m.sum(1),
    "sum of columns": lambda m, n, x: m.sum(0), "sum, transposed": lambda m, n, x: m.t().sum(0),
    "sum as bool": lambda m, n, x: m.sum(1, dtype=torch.bool), "sum as int32": lambda m, n, x: m.sum(1, dtype=torch.int32),
    "sum as float": lambda m, n, x: m.sum(1, dtype=torch.float32), "mean": lambda m, n, x: m.mean(dtype=torch.float32),
    "nansum": lambda m, n, x: m.nansum(1), "prod": lambda m, n, x: m.prod(1), "prod of all": lambda m, n, x: (m | True).prod(),
    "prod as bool": lambda m, n, x: m.prod(0, dtype=torch.bool), "max": lambda m, n, x: m.max(), "min": lambda m, n, x: m.min(),
    "max of rows": lambda m, n, x: m.max(1), "min of columns": lambda m, n, x: m.min(0), "amax": lambda m, n, x: m.amax(1),
    "amin": lambda m, n, x: m.amin(0), "aminmax": lambda m, n, x: torch.aminmax(m, dim=1), "hash_tensor": lambda m, n, x: torch.hash_tensor(m),
    "equal": lambda m, n, x: torch.tensor(torch.equal(m, m.int() != 0)), "cumsum": lambda m, n, x: m.cumsum(1),
    "cumsum of columns": lambda m, n, x: m.cumsum(0), "cumsum as int16": lambda m, n, x: m.cumsum(1, dtype=torch.int16),
    "cumprod": lambda m, n, x: m.cumprod(1), "cummax": lambda m, n, x: m.cummax(1), "cummin": lambda m, n, x: m.cummin(0),
    "sort": lambda m, n, x: m.sort(stable=True), "sort of all": lambda m, n, x: m.flatten().sort(stable=True, descending=True),
    "mode": lambda m, n, x: m.mode(), "unique": lambda m, n, x: m.unique(return_inverse=True, return_counts=True),
    "unique rows": lambda m, n, x: m[:, :2].unique(dim=0, return_inverse=True),
    "unique_consecutive": lambda m, n, x: m.unique_consecutive(return_counts=True), "item": lambda m, n, x: torch.tensor([bool(b) for b in m[0, :6]]),
}
COMBINING = {
    "==": lambda m, n, x: m == n, "!=": lambda m, n, x: m != n, "<": lambda m, n, x: m < n, ">=": lambda m, n, x: m >= n, "&": lambda m, n, x: m & n,
    "|": lambda m, n, x: m | n, "^": lambda m, n, x: m ^ n, "~": lambda m, n, x: ~m, "logical_and": lambda m, n, x: m.logical_and(n),
    "logical_or": lambda m, n, x: m.logical_or(n), "logical_xor": lambda m, n, x: m.logical_xor(n), "logical_not": lambda m, n, x: m.logical_not(),
    "maximum": lambda m, n, x: torch.maximum(m, n), "minimum": lambda m, n, x: torch.minimum(m, n), "+": lambda m, n, x: m + n,
    "*": lambda m, n, x: m * n, "* float": lambda m, n, x: m * x, "+ int": lambda m, n, x: m + 2, "== scalar": lambda m, n, x: m == 1,
    "sign": lambda m, n, x: m.sign(), "float": lambda m, n, x: m.float(), "half": lambda m, n, x: m.t().half(),
    "to uint8": lambda m, n, x: m.to(torch.uint8), "copy_": lambda m, n, x: torch.empty_like(m, dtype=torch.int64).copy_(m),
    "fused": lambda m, n, x: ((m == n) & ~m).float() * x, "dropout": lambda m, n, x: A.native_dropout_backward(x, m, 2.0),
    "masked softmax": lambda m, n, x: A._masked_softmax(x, m, 1, 0), "outer": lambda m, n, x: torch.outer(m[0], n[0]),
    "fold": lambda m, n, x: F.fold(m[:2, :4].reshape(1, 4, 2).repeat(1, 1, 2), (3, 3), 2),
    "attention": lambda m, n, x: F.scaled_dot_product_attention(*[x[:5, :6].sin()[None, None]] * 3,
                                                                attn_mask=(m[:5, :5] | torch.eye(5, dtype=torch.bool, device=m.device))),
    "attention, bytes": lambda m, n, x: F.scaled_dot_product_attention(*[x[:5, :6].sin()[None, None]] * 3,
                                                                       attn_mask=torch.cat([m[:5, 1:2], m[:5, :4]], 1)),
    "index_add": lambda m, n, x: n.flatten()[:7].index_add(0, at(m.numel(), x), m.flatten()),
    "put": lambda m, n, x: n.flatten()[:7].put(at(m.numel(), x), m.flatten(), accumulate=True),
    "index_put of bools": lambda m, n, x: n.flatten()[:7].index_put((at(m.numel(), x),), m.flatten(), accumulate=True),
    "scatter_add": lambda m, n, x: n.flatten()[:7].scatter_add(0, at(m.numel(), x), m.flatten()),
    "scatter, multiplied": lambda m, n, x: n.flatten()[:7].scatter(0, at(7, x), m.flatten()[:7], reduce="multiply"),
    **{f"scatter_reduce {name}": scattered(name) for name in ("sum", "prod", "amax", "amin")},
    **{f"scatter_reduce {name}, once": once(name) for name in ("sum", "prod", "amax", "amin")},
}
CASES = {**SELECTING, **REDUCING, **COMBINING}


def bools(shape, seed):
    """More than half are true, as every byte; some rows are all true or all false."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randint(1, 256, shape, dtype=torch.uint8, generator=g) * torch.randint(0, 3, shape, generator=g).clamp(max=1).to(torch.uint8)
    x[1] = torch.arange(shape[1]) % 255 + 1
    x[3] = 0
    x[:, 2] = torch.tensor([2, 4, 128, 255, 1])[torch.arange(shape[0]) % 5]
    return x


def plain(result):
    return [t.cpu().view(torch.uint8) != 0 if t.dtype == torch.bool else t.cpu() for t in flatten(result)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:The reduce argument of torch.scatter")
def test_every_byte_but_zero_is_true(name, shape):
    m, n, x = bools(shape, 1), bools(shape, 2), torch.arange(float(shape[0] * shape[1])).view(shape)
    expected = plain(CASES[name](m != 0, n != 0, x))
    assert_close(plain(CASES[name](m.view(torch.bool), n.view(torch.bool), x)), expected, rtol=1e-5, atol=1e-5, equal_nan=True)
    m, n, x = to_mps([m, n, x])
    assert_close(plain(CASES[name](m.view(torch.bool), n.view(torch.bool), x)), expected, rtol=1e-5, atol=1e-5, equal_nan=True)


def test_an_assertion_holds_for_any_byte_but_zero():
    torch._assert_async(torch.tensor([6], dtype=torch.uint8, device="mps").view(torch.bool))
    torch.mps.synchronize()
