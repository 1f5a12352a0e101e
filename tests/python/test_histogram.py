# SPDX-License-Identifier: BSD-3-Clause
"""Counting in bins: bincount, histc, histogram, histogramdd. Counts are exact, sums of weights are added in another order."""
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from compare import FLOATS, INTEGERS, REDUCED, compare, compare_errors, layouts, make, to_mps

NAN, INF = float("nan"), float("inf")


def whole(shape, dtype=torch.float32, high=10, seed=0):
    """Numbers that lie on edges, and weights whose sums are exact."""
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


# ---- bincount ----


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bincount(dtype):
    for n in (1, 7, 20_000):
        x = whole((n,), dtype, high=90)
        for _, y in layouts(x):
            compare(lambda x: torch.bincount(x), y)
        compare(lambda x: torch.bincount(x, minlength=200), x)
        compare(lambda x: torch.bincount(x[::3]), x)
        weights = make((n,))
        compare(lambda x, w: torch.bincount(x, w), x, weights, rtol=1e-4, atol=1e-4)
        compare(lambda x, w: torch.bincount(x, w), x, whole((n * 2,))[::2])
    compare(lambda x: torch.bincount(x, minlength=3), torch.empty(0, dtype=dtype))
    compare(lambda x, w: torch.bincount(x, w), torch.empty(0, dtype=dtype), torch.empty(0))


def test_bincount_of_many_bins():
    x = torch.randint(0, 300_000, (400_000,), generator=torch.Generator().manual_seed(0))
    compare(lambda x: torch.bincount(x), x)
    compare(lambda x: torch.bincount(x.int()), x)


@pytest.mark.parametrize("dtype", REDUCED + INTEGERS + (torch.bool,))
def test_bincount_gives_float32_where_the_cpu_gives_float64(dtype):
    x, w = whole((30_000,), torch.int64), whole((30_000,), dtype)
    result = torch.bincount(x.to("mps"), w.to("mps"))
    assert result.dtype == torch.float32
    assert torch.equal(result.cpu(), torch.bincount(x, w).float())


def test_bincount_of_large_integer_weights_is_exact():
    x, w = torch.zeros(3, dtype=torch.long), torch.tensor([2**40, 1 - 2**40, 5])
    assert torch.bincount(x.to("mps"), w.to("mps")).tolist() == [6.0]


def test_bincount_repeats_to_the_bit():
    x, w = whole((100_000,), torch.int64).to("mps"), make((100_000,)).to("mps")
    first = torch.bincount(x, w)
    for _ in range(3):
        assert torch.equal(torch.bincount(x, w), first)


def test_bincount_errors():
    u = torch.tensor([1, 2, 5])
    compare_errors(lambda x: torch.bincount(x), torch.tensor([1, -2]))
    compare_errors(lambda x: torch.bincount(x, minlength=-1), u)
    compare_errors(lambda x: torch.bincount(x), u.view(3, 1))
    compare_errors(lambda x: torch.bincount(x), torch.tensor(3))
    compare_errors(lambda x: torch.bincount(x), torch.empty(0, 3, dtype=torch.long))
    compare_errors(lambda x, w: torch.bincount(x, w), u, torch.ones(2))
    compare_errors(lambda x, w: torch.bincount(x, w), u, torch.ones(3, 1))
    compare_errors(lambda x, w: torch.bincount(x, w), u, torch.tensor(1.0))
    for dtype in (torch.float32, torch.bool, torch.uint16, torch.complex64):
        compare_errors(lambda x: torch.bincount(x), u.to(dtype))


# ---- histc ----


@pytest.mark.parametrize("dtype", FLOATS)
def test_histc(dtype):
    for _, x in layouts(whole((6, 5, 30), dtype, high=9)):
        compare(lambda x: torch.histc(x, 10), x)
        compare(lambda x: torch.histc(x, 7, -1, 6), x)
        compare(lambda x: torch.histc(x), x)
    for _, x in layouts(make((7, 90), dtype)):
        compare(lambda x: torch.histc(x, 10), x)
        compare(lambda x: torch.histc(x, 33, min=-0.3, max=0.7), x)
    compare(lambda x: torch.histc(x, 3), torch.empty(0, dtype=dtype))
    compare(lambda x: torch.histc(x, 3), torch.tensor(2.0, dtype=dtype))
    compare(lambda x: torch.histc(x, 3), torch.full((5,), 2.0, dtype=dtype))
    compare(lambda x: torch.histc(x, 3, 0, 3), torch.tensor([1, NAN, 2.0, INF, -INF, 3.0, 0.0, -0.0, 3.1], dtype=dtype))
    compare(lambda x, out: torch.histc(x, 4, out=out), make((50,), dtype), torch.empty(8, dtype=dtype)[::2])
    compare(lambda x, out: torch.histc(x, 4, out=out), make((50,), dtype), torch.empty(0, dtype=dtype))


def test_histc_large():
    for bins in (10, 1000):
        compare(lambda x: torch.histc(x, bins), make((150_000,)))


@pytest.mark.parametrize("value", [0.0, -5.0, 1e7, 16777216.0, 1e8, -1e20, 3e38, 3.4028234663852886e38, -3.4028234663852886e38, 1e-45])
def test_histc_of_one_value(value):
    """Its range is the value less and plus 1, or the next floats."""
    for bins in (1, 3, 4, 100):
        compare(lambda x: torch.histc(x, bins), torch.full((3,), value))
        compare(lambda x: torch.histc(x, bins, value, value), torch.full((3,), value))
        if abs(value) < 3e38:
            compare(lambda x: torch.histogram(x, bins), torch.full((3,), value), rtol=0, atol=0)


def test_counts_that_the_dtype_cannot_step_to():
    """The CPU's counts in float16 stay at 2048."""
    ones = torch.ones(5000, dtype=torch.float16, device="mps")
    assert torch.histc(ones, 2, 0, 2).tolist() == [0.0, 5000.0]


def test_histc_errors():
    x = make((6,))
    for call in (lambda x: torch.histc(x, 0), lambda x: torch.histc(x, -1), lambda x: torch.histc(x, 3, 2, 1), lambda x: torch.histc(x, 3, 0, INF),
                 lambda x: torch.histc(x, 3, NAN, 1), lambda x: torch.histc(x, 3, -INF, INF)):
        compare_errors(call, x)
    compare_errors(lambda x: torch.histc(x, 3), torch.tensor([1, INF]))
    compare_errors(lambda x: torch.histc(x, 3), torch.full((2,), 1e20).bfloat16())
    compare_errors(lambda x: torch.histc(x, 3), torch.tensor([1, NAN]), same_text=False)  # the sign of NaN is in the text
    compare_errors(lambda x, out: torch.histc(x, 3, out=out), x, torch.empty(3, dtype=torch.long))
    for dtype in (torch.int32, torch.uint8, torch.bool):
        compare_errors(lambda x: torch.histc(x, 3), torch.tensor([1, 0]).to(dtype))
        compare_errors(lambda x: torch.histc(x, 3, 0, 2), torch.tensor([1, 0]).to(dtype))
    compare_errors(lambda x: torch.histc(x, 3), torch.tensor([1j]))


# ---- histogram ----


def test_histogram():
    for x in (whole((40, 50)), make((40, 50)), make((40, 50)) * 1e-6 + 3, torch.tensor(1.0), torch.empty(0), torch.full((4,), 1e20)):
        for bins in (1, 2, 10, 101):
            for density in (False, True):
                compare(lambda x: torch.histogram(x, bins, density=density), x, rtol=1e-5, atol=0)
        compare(lambda x: torch.histogram(x, 10, range=(-0.7, 1.3)), x, rtol=0, atol=0)
    for _, x in layouts(whole((12, 30), high=30)):
        w = whole((12, 30), seed=1)
        compare(lambda x, w: torch.histogram(x, 29, weight=w, range=(0.0, 29.0)), x, w, rtol=0, atol=0)
        compare(lambda x, w: torch.histogram(x, 7, weight=w.t().contiguous().t(), density=True), x, w)


def test_values_on_edges_of_tenths():
    """Edges that have no exact value: the same rounding decides the same bin."""
    x = torch.arange(0, 2001) / 1000
    for bins, top in ((10, 1.0), (20, 2.0), (200, 2.0), (7, 1.4)):
        compare(lambda x: torch.histogram(x, bins, range=(0.0, top)), x, rtol=0, atol=0)
        compare(lambda x: torch.histc(x, bins, 0, top), x, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_histogram_between_given_edges(dtype):
    edges = torch.tensor([-3.0, -1.0, -1.0, 0.0, 0.25, 2.0, 5.0], dtype=dtype)
    for _, x in layouts(make((8, 15), dtype, special=True)):  # few: the CPU's counts in bfloat16 stay at 256
        compare(lambda x, e: torch.histogram(x, e), x, edges, rtol=0, atol=0)
        compare(lambda x, e, w: torch.histogram(x, e, weight=w), x, edges, whole((8, 15), dtype, high=3), rtol=0, atol=0)
        compare(lambda x: torch.histogram(x, 12, range=(-2.0, 2.0)), x, rtol=0, atol=0)
    compare(lambda x, e: torch.histogram(x, e[::2]), make((50,), dtype), edges, rtol=0, atol=0)
    compare(lambda x, e, h, b: torch.histogram(x, e, out=(h, b)), make((50,), dtype), edges, torch.empty(12, dtype=dtype)[::2], torch.empty(0, dtype=dtype),
            rtol=0, atol=0)
    compare(lambda x, h, b: torch.histogram(x, 4, range=(-1.0, 1.0), out=(h, b)), make((50,), dtype), torch.empty(0, dtype=dtype), torch.empty(5, dtype=dtype),
            rtol=0, atol=0)


def test_histogramdd():
    for shape in ((200, 2), (5, 40, 3), (30, 1), (0, 2)):
        x, n = whole(shape), shape[-1]
        for y in (x, make(shape), whole(shape[::-1]).movedim(0, -1) if len(shape) == 2 else x):
            compare(lambda x: torch.histogramdd(x, [3, 4, 5][:n]), y, rtol=0, atol=0)
            compare(lambda x: torch.histogramdd(x, 4, range=[0.0, 9.0] * n), y, rtol=0, atol=0)
            compare(lambda x: torch.histogramdd(x, 4, density=True), y) if y.numel() else None
            compare(lambda x, w: torch.histogramdd(x, 4, weight=w), y, whole(shape[:-1], high=4), rtol=0, atol=0)
            compare(lambda x, *e: torch.histogramdd(x, list(e)), y, *[torch.tensor([-1.0, 0.0, 2.0, 2.5, 9.0])] * n, rtol=0, atol=0)
    compare(lambda x: torch.histogramdd(x, []), torch.empty(3, 0))


def test_histogram_errors():
    x, y = make((6,)), make((4, 2))
    for call in (lambda x: torch.histogram(x, 0), lambda x: torch.histogram(x, -2), lambda x: torch.histogram(x, 3, range=(2.0, 1.0)),
                 lambda x: torch.histogram(x, 3, range=(2.0, INF)), lambda x: torch.histogram(x, 3, range=(2.0,)),
                 lambda x: torch.histogram(x, 3, weight=x[:5]), lambda x: torch.histogram(x, 3, weight=x.half()), lambda x: torch.histogram(x, x.view(3, 2)),
                 lambda x: torch.histogram(x, x[:1]), lambda x: torch.histogram(x, x[:0]), lambda x: torch.histogram(x, x.half()),
                 lambda x: torch.histogram(x.half(), 3), lambda x: torch.histogram(x.long(), 3), lambda x: torch.histogram(x.long(), 3, range=(0.0, 1.0)),
                 lambda x: torch.histogram(x, 3, out=(x.long(), x.clone())), lambda x: torch.histogram(x, 3, out=(x.clone(), x.long()))):
        compare_errors(call, x)
    compare_errors(lambda x: torch.histogram(x, 3), torch.tensor([1, NAN]))
    for call in (lambda y: torch.histogramdd(y, [2, 2, 2]), lambda y: torch.histogramdd(y[0], [2]), lambda y: torch.histogramdd(y, [2, 0]),
                 lambda y: torch.histogramdd(y, [2, -1]), lambda y: torch.histogramdd(y, [y[0]]), lambda y: torch.histogramdd(y, [2, 2], range=[0.0, 1.0]),
                 lambda y: torch.histogramdd(y, [2, 2], weight=y[:3, 0]), lambda y: torch.histogramdd(y, [2, 2], range=[0.0, 1.0, 3.0, 2.0]),
                 lambda y: torch.histogramdd(y.sum(), [2]), lambda y: torch._histogramdd_from_bin_cts(y[0], [2])):
        compare_errors(call, y)
    compare_errors(lambda y: torch.histogramdd(y, [2, 2]), torch.tensor([[1, NAN], [0, 0]]))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-20, 20), min_size=1, max_size=80), st.integers(1, 40), st.sampled_from((0.1, 0.25, 1.0, 3.0)))
def test_histogram_property(values, bins, scale):
    x = torch.tensor(values) * scale
    compare(lambda x: torch.histogram(x, bins), x, rtol=0, atol=0)
    compare(lambda x: torch.histc(x, bins), x, rtol=0, atol=0)
    hist, _ = torch.histogram(to_mps(x), bins)
    assert hist.sum().item() == len(values)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 100), max_size=80), st.integers(0, 120), st.sampled_from(INTEGERS))
def test_bincount_property(values, minlength, dtype):
    x = torch.tensor(values, dtype=dtype)
    compare(lambda x: torch.bincount(x, minlength=minlength), x)
    compare(lambda x, w: torch.bincount(x, w, minlength), x, whole((len(values),)))
