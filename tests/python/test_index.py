# SPDX-License-Identifier: BSD-3-Clause
"""Reading and writing through indices: gather, scatter, advanced indexing, index_*, masks, embeddings."""
import pytest
import torch
from torch.nn import functional as F

from compare import ALL_DTYPES, FLOATS, INTEGERS, compare, compare_errors, compare_gradients, layouts, make

REAL = FLOATS + INTEGERS


def index_for(shape, below, seed=5):
    return torch.randint(below, shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_index_select(dtype, dim):
    for _, x in layouts(make((4, 5, 6), dtype)):
        compare(lambda x, i: x.index_select(dim, i), x, index_for((7,), 4))
        compare(lambda x, i: x.index_select(dim, i), x, index_for((7,), 4).int())
    compare(lambda x, i: torch.index_select(x, 0, i), make((), dtype), torch.tensor([0]))
    compare(lambda x, i: torch.index_select(x, 1, i), make((3, 4), dtype), torch.empty(0, dtype=torch.long))


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_gather(dtype, dim):
    for _, x in layouts(make((4, 5, 6), dtype)):
        for _, index in layouts(index_for((3, 4, 2), (4, 5, 6)[dim])):
            compare(lambda x, i: x.gather(dim, i), x, index)
    compare(lambda x, i: x.gather(0, i), make((), dtype), torch.tensor(0))


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_scatter(dtype):
    index = torch.stack([torch.randperm(6, generator=torch.Generator().manual_seed(i))[:3] for i in range(4)])
    for _, x in layouts(make((4, 6), dtype)):
        if 0 in x.stride():
            continue
        compare(lambda x, i, s: x.scatter(1, i, s), x, index, make((4, 5), dtype, seed=2))
        compare(lambda x, i, s: x.scatter_(1, i, s), x, index, make((4, 5), dtype, seed=2))
        compare(lambda x, i: x.scatter_(1, i, 3), x, index)
    compare(lambda x, i, s: x.scatter(0, i, s), make((), dtype), torch.tensor(0), make((), dtype, seed=1))


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("dim", [0, 1])
def test_scatter_add_sums_duplicates(dtype, dim):
    x, index, source = make((5, 7), dtype), index_for((9, 6) if dim == 0 else (5, 40), 5), make((9, 6) if dim == 0 else (5, 40), dtype, seed=3)
    for _, i in layouts(index):
        for _, s in layouts(source):
            compare(lambda x, i, s: x.scatter_add(dim, i, s), x, i, s, rtol=2e-2 if dtype in (torch.float16, torch.bfloat16) else None,
                    atol=5e-2 if dtype in (torch.float16, torch.bfloat16) else None)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce(dtype, reduce, include_self):
    x, index, source = make((6, 5), dtype), index_for((8, 5), 6), make((8, 5), dtype, seed=3, low=-2, high=3)
    loose = {"rtol": 2e-2, "atol": 2e-2} if dtype in (torch.float16, torch.bfloat16) else {}
    compare(lambda x, i, s: x.scatter_reduce(0, i, s, reduce, include_self=include_self), x, index, source, **loose)


def test_scatter_reduce_nan_wins():
    x = torch.tensor([0.0, 1.0, float("nan")])
    source, index = torch.tensor([float("nan"), 2.0, 3.0, -1.0]), torch.tensor([0, 0, 1, 2])
    for reduce in ("amax", "amin"):
        compare(lambda x, i, s: x.scatter_reduce(0, i, s, reduce), x, index, source)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_index_add_copy_fill(dtype):
    index, source = index_for((6,), 4), make((6, 5), dtype, seed=2)
    loose = {"rtol": 2e-2, "atol": 3e-2} if dtype in (torch.float16, torch.bfloat16) else {}
    for _, x in layouts(make((4, 5), dtype)):
        if 0 in x.stride():
            continue
        compare(lambda x, i, s: x.index_add(0, i, s), x, index, source, **loose)
        compare(lambda x, i, s: x.index_copy_(0, i, s), x, torch.tensor([2, 0, 3]), source[:3])
        compare(lambda x, i: x.index_fill_(1, i, 2), x, torch.tensor([0, -1]))
    if dtype != torch.bool:
        compare(lambda x, i, s: x.index_add_(0, i, s, alpha=2), make((4, 5), dtype), index, source, **loose)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
@pytest.mark.filterwarnings("ignore:index_reduce")
def test_index_reduce(dtype, reduce):
    loose = {"rtol": 2e-2, "atol": 2e-2} if dtype in (torch.float16, torch.bfloat16) else {}
    for include_self in (True, False):
        compare(lambda x, i, s: x.index_reduce(0, i, s, reduce, include_self=include_self), make((4, 5), dtype), index_for((6,), 4),
                make((6, 5), dtype, seed=2, low=-2, high=3), **loose)


INDEXINGS = {
    "one": lambda x, i, j, m: x[i],
    "negative": lambda x, i, j, m: x[i - 4],
    "middle": lambda x, i, j, m: x[:, i],
    "two": lambda x, i, j, m: x[i, j],
    "two_apart": lambda x, i, j, m: x[i, :, j],
    "broadcast": lambda x, i, j, m: x[i[:, None], j],
    "mask": lambda x, i, j, m: x[m],
    "mask_and_index": lambda x, i, j, m: x[:, m[0, :, 0]],
    "matrix_index": lambda x, i, j, m: x[i.view(2, 3)],
    "list": lambda x, i, j, m: x[[0, 2, 1]],
    "empty": lambda x, i, j, m: x[i[:0]],
}


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("indexing", INDEXINGS)
def test_advanced_indexing(dtype, indexing):
    for _, x in layouts(make((4, 5, 6), dtype)):
        compare(INDEXINGS[indexing], x, index_for((6,), 4), index_for((6,), 4, seed=6), make((4, 5, 6), torch.bool))


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("accumulate", [True, False])
def test_index_put(dtype, accumulate):
    i, j = index_for((8,), 4), index_for((8,), 5, seed=6)
    if not accumulate:
        i, j = torch.tensor([0, 1, 2, 3]), torch.tensor([4, 3, 2, 0])
    values = make((len(i), 6), dtype, seed=3)
    loose = {"rtol": 2e-2, "atol": 3e-2} if dtype in (torch.float16, torch.bfloat16) else {}
    for _, x in layouts(make((4, 5, 6), dtype)):
        if 0 in x.stride():
            continue
        compare(lambda x, i, j, v: x.index_put_((i, j), v, accumulate=accumulate), x, i, j, values, **loose)
        compare(lambda x, i, j, v: x.index_put((i, j), v, accumulate=accumulate), x, i, j, values[0, 0].clone(), **loose)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_assignments(dtype):
    def assign(x, i, m, v):
        x[i] = v[:6].view(6, 1).expand(6, 5)
        x[m] = 1
        x[1, 2] = 0
        x[:, 3] = x[:, 4]
        return x
    compare(assign, make((7, 5), dtype), torch.randperm(7, generator=torch.Generator().manual_seed(0))[:6], make((7, 5), torch.bool), make((6,), dtype, seed=4))


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_masks(dtype):
    for _, x in layouts(make((5, 6, 3), dtype)):
        mask = make((5, 6, 1), torch.bool, seed=8)
        compare(lambda x, m: x.masked_select(m), x, mask)
        compare(lambda x: x.nonzero(), x)
        compare(lambda x: torch.nonzero(x, as_tuple=True), x)
        compare(lambda x, m: x.masked_fill(m, 1), x, mask)
        compare(lambda x, m, s: x.masked_scatter(m, s), x, mask, make((90,), dtype, seed=2))
    compare(lambda x: x.nonzero(), make((), dtype))
    compare(lambda x: x.nonzero(), make((0, 3), dtype))


def test_large_masks_are_in_order():
    x = make((300_000,))
    compare(lambda x: x[x > 0.5], x)
    compare(lambda x: (x > 1).nonzero(), x.view(100, 30, 100))


def test_duplicates_do_not_depend_on_threads():
    """A long walk is shared by slices; the result must be that of one thread."""
    index, source = index_for((200_000,), 50), make((200_000,))
    compare(lambda i, s: torch.zeros(50, device=s.device).index_add_(0, i, s), index, source, rtol=1e-4, atol=1e-3)
    first = torch.zeros(50, device="mps").index_add_(0, index.to("mps"), source.to("mps"))
    for _ in range(5):
        assert torch.equal(first, torch.zeros(50, device="mps").index_add_(0, index.to("mps"), source.to("mps")))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("options", [{}, {"padding_idx": 3}, {"scale_grad_by_freq": True}])
def test_embedding(dtype, options):
    indices = index_for((4, 9), 11)
    loose = {"rtol": 2e-2, "atol": 2e-2} if dtype != torch.float32 else {}
    compare_gradients(lambda w: F.embedding(indices.to(w.device), w, **options), make((11, 8), dtype), **loose)


def test_gradients():
    x, i = make((5, 6)), index_for((3, 6), 5)
    compare_gradients(lambda x: x.gather(0, i.to(x.device)), x)
    compare_gradients(lambda x: x[i.to(x.device)[:, 0]], x)
    compare_gradients(lambda x, s: x.scatter_add(0, i.to(x.device), s), x, make((3, 6), seed=2))
    compare_gradients(lambda x, s: x.index_copy(0, torch.tensor([1, 3], device=x.device), s), x, make((2, 6), seed=2))
    compare_gradients(lambda x: x.masked_select(x.detach() > 0), x)


@pytest.mark.parametrize("call", [
    lambda x, i: x.gather(0, i.view(-1, 1)), lambda x, i: x[i], lambda x, i: x.index_select(0, i),
    lambda x, i: x.scatter(0, i.view(-1, 1), 1.0), lambda x, i: x.index_add(0, i, x[: i.numel()]), lambda x, i: F.embedding(i, x),
])
@pytest.mark.parametrize("bad", [4, -5, 2**40])
def test_index_out_of_range_is_raised_at_the_next_wait(call, bad):
    x = make((4, 5)).to("mps")
    index = torch.tensor([0, bad, 1], device="mps")
    call(x, index)
    with pytest.raises(torch.AcceleratorError, match=f"index {bad} is out of bounds for dimension 0 with size 4"):
        torch.mps.synchronize()
    torch.mps.synchronize()  # told once
    assert torch.equal(x.cpu(), make((4, 5)))


def test_errors_are_the_cpus():
    x, i = make((4, 5)), torch.tensor([0, 1])
    compare_errors(lambda x, i: x.index_select(5, i), x, i)
    compare_errors(lambda x, i: x.gather(0, i), x, i)
    compare_errors(lambda x, i: x[i, i, i], x, i)
    compare_errors(lambda x, i: x.index_put((i,), torch.ones(3, device=x.device)), x, i)
    compare_errors(lambda x, m: x.masked_select(m), x, make((3, 5), torch.bool))
    compare_errors(lambda x, i: x[i.float()], x, i)


def test_empty_index_of_any_dtype():
    compare(lambda x, i: x.gather(0, i), make((5,)), torch.empty(0, dtype=torch.uint8))
    compare(lambda x, i: x.scatter(0, i, 1.0), make((5,)), torch.empty(0, dtype=torch.uint8))


@pytest.mark.parametrize("dtype,value", [(torch.int8, 1000), (torch.float32, 1j), (torch.float16, 1e10), (torch.float32, 1e300)])
def test_a_value_that_does_not_fit(dtype, value):
    x = make((4,), dtype)
    compare_errors(lambda x, m: x.masked_fill(m, value), x, make((4,), torch.bool))
    compare_errors(lambda x, i: x.index_fill(0, i, value), x, torch.tensor([1]))
    compare(lambda x, i: x.index_fill(0, i, 3), x, torch.tensor([1, -1]))
    if dtype == torch.float32:
        compare_errors(lambda x, m, v: x.masked_fill(m, v), x, make((4,), torch.bool), torch.tensor(1j))


def test_index_select_refuses_overlapping_results():
    compare_errors(lambda x, i: torch.index_select(x, 1, i, out=torch.zeros(1, device=x.device).expand(2, 6)), make((3, 6)), torch.tensor([0, 1]))


@pytest.mark.parametrize("shape", [(5, 4), (6,), (2, 3, 4), ()])
def test_nonzero_lays_coordinates_out_as_the_cpu_does(shape):
    x = make(shape, torch.int32)
    compare(lambda x: x.nonzero(), x, strides=True)
    compare(lambda x: torch.nonzero(x, out=torch.empty(0, dtype=torch.int64, device=x.device)), x, strides=True)
    rows = x.nonzero().shape[0]
    compare(lambda x: torch.nonzero(x, out=torch.empty(rows, len(shape), dtype=torch.int64, device=x.device)), x, strides=True)


def test_adding_complex_halves():
    x, source, index = make((4, 3), torch.complex32), make((5, 3), torch.complex32, seed=1), torch.tensor([0, 3, 0, 1, 0])
    compare(lambda x, i, s: x.index_add(0, i, s), x, index, source, rtol=2e-3, atol=1e-2)
    compare(lambda x, i, s: x.index_add_(0, i, s, alpha=-1), x, index, source, rtol=2e-3, atol=1e-2)
    compare(lambda x, i, s: x.index_put((i,), s, accumulate=True), x, index, source, rtol=2e-3, atol=1e-2)
