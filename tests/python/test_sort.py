# SPDX-License-Identifier: BSD-3-Clause
"""Sorting and selecting: sort, argsort, topk, kthvalue, median, mode, with ties, NaN and both zeros."""
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from compare import FLOATS, INTEGERS, compare, compare_errors, compare_gradients, layouts, make

REAL = FLOATS + INTEGERS + (torch.bool,)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_sort_is_stable(dtype, descending, dim):
    for _, x in layouts(make((40, 7, 9), dtype, special=True)):
        compare(lambda x: x.sort(dim=dim, descending=descending, stable=True), x)
    compare(lambda x: torch.sort(x, descending=descending), make((), dtype))
    compare(lambda x: torch.sort(x, descending=descending), make((0, 4), dtype))


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("length", [1, 31, 32, 33, 300, 70_000])
def test_sort_lengths(dtype, length):
    x = make((length,), dtype, low=-(2**31) if dtype in (torch.int32, torch.int64) else -100, high=100)
    compare(lambda x: x.sort(stable=True), x)
    compare(lambda x: x.argsort(descending=True, stable=True), x)


def test_sort_of_extremes():
    compare(lambda x: x.sort(stable=True), torch.tensor([2**62, -(2**63), 0, 2**63 - 1, -1, -(2**63)]))
    compare(lambda x: x.sort(stable=True, descending=True), torch.tensor([0.0, -0.0, float("nan"), -float("inf"), 1e-45, -1e-45, float("inf"), float("nan")]))
    compare(lambda x: x.sort(stable=True)[0].signbit(), torch.tensor([0.0, -0.0, 0.0, -0.0]))


def test_sort_out_and_in_place_result():
    x = make((5, 6))
    compare(lambda x, v, i: torch.sort(x, out=(v, i)), x, torch.empty(6, 5).t(), torch.empty(5, 6, dtype=torch.long))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("k", [0, 1, 5, 30])
def test_topk(dtype, largest, k):
    for _, x in layouts(make((6, 30), dtype, special=True)):
        # Which of equal elements are taken is open: values are compared, and that the indices point at them.
        compare(lambda x: x.topk(k, largest=largest)[0], x)
        moved = x.to("mps")
        values, indices = moved.topk(k, largest=largest)
        assert torch.equal(moved.gather(1, indices).nan_to_num(7), values.nan_to_num(7))
        assert all(len(set(row)) == k for row in indices.tolist())
        unsorted = moved.topk(k, largest=largest, sorted=False)[0]
        assert torch.equal(unsorted.sort()[0].nan_to_num(7), values.sort()[0].nan_to_num(7))
    compare(lambda x: x.topk(3, dim=0)[0], make((8, 4, 3), dtype))


def test_topk_distinct_values_give_the_same_indices():
    x = torch.randperm(50_000, generator=torch.Generator().manual_seed(0)).float().view(5, 10_000)
    for k in (1, 50, 9_999):
        compare(lambda x: x.topk(k), x)
        compare(lambda x: x.topk(k, largest=False), x)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("k", [1, 7, 32, 33, 100, 700])
def test_topk_takes_the_first_of_equal_ones(dtype, k):
    rising = torch.arange(3000).div(20, rounding_mode="floor").clamp(max=120).to(dtype)
    x = torch.stack([make((3000,), dtype, low=0, high=100, special=True), rising, rising.flip(0), torch.zeros(3000, dtype=dtype)])
    for y in (x, x.t().contiguous().t()):
        for largest in (True, False):
            values, indices = y.sort(dim=1, descending=largest, stable=True)
            moved = y.to("mps")
            found = moved.topk(k, largest=largest)
            assert torch.equal(found[1].cpu(), indices[:, :k])
            assert torch.equal(found[0].cpu().nan_to_num(7), values[:, :k].nan_to_num(7))
            assert torch.equal(moved.topk(k, largest=largest, sorted=False)[1].cpu(), indices[:, :k].sort(1)[0])


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_kthvalue_and_median(dtype):
    x = torch.randperm(60, generator=torch.Generator().manual_seed(0)).view(4, 15).to(dtype)
    for _, y in layouts(x):
        if 0 in y.stride():
            continue
        for dim in (0, 1):
            compare(lambda y: y.kthvalue(3, dim), y)
            compare(lambda y: y.kthvalue(2, dim, keepdim=True), y)
            compare(lambda y: y.median(dim), y)
            compare(lambda y: y.nanmedian(dim, keepdim=True), y)
        compare(lambda y: y.median(), y)
    compare(lambda y: y.median(), make((), dtype))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_which_of_equal_elements(dtype):
    """The index is the CPU's, whose selections are not stable."""
    n = 3000
    up = torch.arange(n)
    orders = [make((n,), torch.int64, low=0, high=9), up, up.flip(0), torch.cat([up, up.flip(0)]), torch.cat([up[::2], up[1::2]]), up % 7]
    for x in orders + [make((length,), torch.int64, low=0, high=4) for length in (1, 2, 3, 4, 17, 64, 65, 200)]:
        for divisor in (1, 50):
            y = (x // divisor).to(dtype)
            for k in (1, (len(y) + 2) // 3, len(y)):
                compare(lambda y: y.kthvalue(k), y)
            compare(lambda y: y.median(0), y)
            compare(lambda y: y.nanmedian(0), y)
    for _, x in layouts(make((7, 40), torch.int64).to(dtype)):
        if 0 in x.stride():
            continue
        for dim in (0, 1):
            compare(lambda x: x.kthvalue(5, dim), x)
            compare(lambda x: x.median(dim), x)


def test_median_with_nan():
    x = torch.tensor([[1.0, float("nan"), 3.0, 2.0], [4.0, 1.0, 2.0, 3.0], [float("nan")] * 4])
    compare(lambda x: x.median(1), x)
    compare(lambda x: x.nanmedian(1)[0], x)
    many = make((9, 200), special=True).round()
    for dim in (0, 1):
        compare(lambda x: x.median(dim), many)
        compare(lambda x: x.nanmedian(dim), many)
        compare(lambda x: x.kthvalue(8, dim), many)
    compare(lambda x: x.nanmedian(), x)
    compare(lambda x: x.median(), torch.empty(0))


@pytest.mark.parametrize("dtype", REAL)
def test_mode(dtype):
    """The index too, which depends on how the CPU orders equal elements."""
    for shape in ((1,), (16,), (5, 16), (3, 4, 9), (3, 17), (2, 40, 33), (4, 1000), (2, 20_000)):
        for _, x in layouts(make(shape, torch.int64, low=0, high=5).to(dtype)):
            for dim in range(x.dim()):
                compare(lambda x: x.mode(dim), x)
                compare(lambda x: x.mode(dim, keepdim=True), x, strides=True)
    compare(lambda x: x.mode(), make((), dtype))
    compare(lambda x: x.mode(), make((300,), dtype))


def test_mode_of_orders_that_go_deep():
    """Sorted, reversed, organ pipes and a killer of the median of three, which ends in heapsort."""
    n = 3000
    up, half = torch.arange(n), n // 2
    killer = torch.empty(n, dtype=torch.long)
    killer[0:half:2] = torch.arange(1, half + 1, 2)
    killer[1:half:2] = torch.arange(half + 1, n + 1, 2)[: len(killer[1:half:2])]
    killer[half:] = torch.arange(2, 2 * (n - half) + 1, 2)
    for x in (up, up.flip(0), torch.cat([up, up.flip(0)]), killer, torch.cat([up[::2], up[1::2]]), up % 7, torch.zeros(n)):
        for divisor in (1, 3, 100):
            compare(lambda x: x.mode(), x // divisor)


def test_mode_of_special_values_empty_and_out():
    compare(lambda x: x.mode(), torch.tensor([float("nan"), 1.0, 2.0, 1.0]))
    compare(lambda x: x.mode(), torch.tensor([float("nan")] * 3))
    compare(lambda x: x.mode()[0].signbit(), torch.tensor([0.0, -0.0, 3.0]))
    compare(lambda x: x.mode(), torch.empty(0, 3))
    compare(lambda x: x.mode(0, keepdim=True), torch.empty(3, 0))
    compare(lambda x, v, i: torch.mode(x, out=(v, i)), make((4, 6)), torch.empty(8)[::2], torch.empty(4, dtype=torch.long))
    compare(lambda x, v, i: torch.mode(x, 0, out=(v, i)), make((4, 6)), torch.empty(0), torch.empty(0, dtype=torch.long))
    compare_errors(lambda x: x.mode(), torch.empty(3, 0))
    compare_errors(lambda x: x.mode(2), make((4, 5)))
    compare_errors(lambda x: torch.mode(x, out=(torch.empty_like(x), torch.empty_like(x))), make((4,)))
    compare_errors(lambda x: torch.mode(x, out=(x.long(), x.long())), make((4,)))
    compare_errors(lambda x: x.mode(), torch.tensor([1j]))


def test_errors_are_the_cpus():
    x = make((4, 5))
    compare_errors(lambda x: x.topk(6), x)
    compare_errors(lambda x: x.kthvalue(6), x)
    compare_errors(lambda x: x.sort(dim=3), x)
    compare_errors(lambda x: x.median(1), make((4, 0)))


def test_gradients():
    x = torch.randperm(24, generator=torch.Generator().manual_seed(0)).float().view(4, 6)
    for function in (lambda x: x.sort(1)[0], lambda x: x.topk(3)[0], lambda x: x.kthvalue(2)[0], lambda x: x.median(1)[0], lambda x: x.mode(0)[0]):
        compare_gradients(function, x)


def test_topk_into_its_own_input():
    """Indices may take self's memory: rows are read before they are written."""
    x = make((4, 15), torch.int64)
    device = x.to("mps")
    values, indices = torch.topk(device, 15, out=(torch.empty_like(device), device))
    expected = torch.topk(x, 15).values
    assert torch.equal(values.cpu(), expected)
    assert torch.equal(x.gather(1, indices.cpu()), expected)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("call", [lambda x, keep, out: torch.kthvalue(x, 2, keepdim=keep, out=out), lambda x, keep, out: torch.median(x, 0, keep, out=out)])
def test_strided_out_keeps_its_strides(call, keepdim):
    x = make((5, 6))
    shape = call(x, keepdim, None).values.shape
    compare(lambda x, values, indices: call(x, keepdim, (values, indices)), x, torch.zeros(*shape, 2)[..., 0], torch.zeros(*shape, 3, dtype=torch.int64)[..., 0],
            strides=True)


def test_kthvalue_refuses_another_dtype():
    compare_errors(lambda x, values, indices: torch.kthvalue(x, 1, out=(values, indices)), make((3,)), torch.tensor(0), torch.tensor(0))
    compare_errors(lambda x, values, indices: torch.kthvalue(x, 1, out=(values, indices)), make((3,)), torch.tensor(0.0), torch.tensor(0.0))


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_sort_property(data):
    draw = data.draw
    shape = draw(st.lists(st.sampled_from((1, 2, 5, 17, 33, 140)), min_size=1, max_size=3))
    dtype, dim, descending = draw(st.sampled_from(REAL)), draw(st.integers(-len(shape), len(shape) - 1)), draw(st.booleans())
    x = make(shape, dtype, seed=draw(st.integers(0, 99)), low=-draw(st.sampled_from((1, 100))), high=100, special=draw(st.booleans()))
    x = x.permute(draw(st.permutations(range(x.dim()))))
    x = x[:1].expand(x.shape) if draw(st.booleans()) else x
    compare(lambda x: x.sort(dim=dim, descending=descending, stable=True), x)
    compare(lambda x: x.argsort(dim=dim, descending=descending, stable=True), x)
    compare(lambda x: x.msort(), x)
    k = draw(st.integers(1, x.shape[dim]))
    if dtype != torch.bool:  # which the CPU refuses; which of equal elements topk picks is its own affair
        compare(lambda x: x.kthvalue(k, dim)[0], x)
        compare(lambda x: x.topk(k, dim, descending)[0], x)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=300), st.integers(0, 63), st.booleans())
def test_sort_of_any_digits(values, shift, descending):
    """Keys that share some of their bytes, or all but one."""
    x = torch.tensor(values, dtype=torch.int64) >> shift << shift // 2
    for dtype in (torch.int64, torch.int32, torch.int16, torch.uint8):
        compare(lambda x: x.sort(descending=descending, stable=True), x.to(dtype).repeat(2))


@pytest.mark.parametrize("dtype", REAL)
def test_long_rows(dtype):
    """Rows that all threads sort together: few and many different keys, keys that share digits, strided, both orders."""
    for n in (32_768, 40_001, 150_000):
        for x in (make((n,), dtype, low=-100, high=100, special=True), make((n,), dtype, low=-(2**40), high=2**40), make((2 * n,), dtype)[::2],
                  torch.ones(n).to(dtype)):
            for descending in (False, True):
                compare(lambda x: x.sort(descending=descending, stable=True), x)
    x = make((40_000, 1, 1), dtype)
    compare(lambda x: x.sort(dim=0, stable=True), x)
    compare(lambda x, v, i: torch.sort(x, dim=0, stable=True, out=(v, i)), x, torch.zeros(80_000, 1, 1, dtype=dtype)[::2],
            torch.zeros(40_000, 1, 2, dtype=torch.long)[..., 1:])
    compare(lambda x: torch.sort(x, stable=True, out=(x, torch.empty(x.shape, dtype=torch.long, device=x.device)))[1], make((40_000,), dtype))
