# SPDX-License-Identifier: BSD-3-Clause
"""Looking values up: searchsorted, bucketize, isin."""
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from compare import FLOATS, compare, compare_errors, layouts, make

DTYPES = FLOATS + (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
NAN, INF = float("nan"), float("inf")


def boundaries(shape, dtype, special=False):
    return make(shape, dtype, seed=3, special=special).sort(-1)[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("right", [False, True])
def test_searchsorted(dtype, right):
    for shape in ((1,), (2,), (7,), (64,), (1001,)):
        for _, x in layouts(make((5, 40), dtype, special=True)):
            compare(lambda b, x: torch.searchsorted(b, x, right=right), boundaries(shape, dtype), x)
    compare(lambda b, x: torch.bucketize(x, b, right=right, out_int32=True), boundaries((30,), dtype), make((3, 4, 5), dtype))
    compare(lambda b, x: torch.bucketize(x, b, right=right), boundaries((30,), dtype), make((), dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_rows_of_boundaries(dtype):
    for _name, b in layouts(boundaries((3, 4, 9), dtype)):
        for _, x in layouts(make((3, 4, 6), dtype)):
            compare(lambda b, x: torch.searchsorted(b, x, side="right"), b, x)
            compare(lambda b, x: torch.searchsorted(b, x, out_int32=True), b, x)
    compare(lambda b, x: torch.searchsorted(b, x), boundaries((3, 0), dtype), make((3, 2), dtype))
    compare(lambda b, x: torch.searchsorted(b, x), boundaries((3, 2), dtype), make((3, 0), dtype))
    compare(lambda b, x: torch.searchsorted(b, x), boundaries((0, 2), dtype), make((0, 5), dtype))


def test_sorter():
    for shape, values in (((50,), (4, 7)), ((3, 50), (3, 7))):
        b = make(shape)
        for _, order in layouts(b.argsort(-1)):
            if 0 in order.stride():
                continue
            for right in (False, True):
                compare(lambda b, s, x: torch.searchsorted(b, x, sorter=s, right=right), b, order, make(values))


def test_nan_and_boundaries_that_are_not_sorted():
    x = torch.tensor([NAN, INF, -INF, 0.0, -0.0, 1.0, 2.5])
    for b in ([0.0, 1.0, NAN], [-0.0, 0.0, 0.0], [NAN] * 5, [1.0, NAN, 2.0, NAN, 3.0], [3.0, 1.0, 2.0, 0.0], [-INF, INF]):
        for right in (False, True):
            compare(lambda b, x: torch.searchsorted(b, x, right=right), torch.tensor(b), x)


def test_promotion():
    compare(lambda b, x: torch.bucketize(x, b), torch.tensor([1, 2, 3]), torch.tensor([0.5, 1.0, 2.5]))
    compare(lambda b, x: torch.bucketize(x, b), torch.tensor([0.5, 1.5]), torch.arange(4))
    compare(lambda b, x: torch.searchsorted(b, x), torch.tensor([1.0, 2.0]).half(), torch.tensor([1.0, 2.5]).bfloat16())
    compare(lambda b, x: torch.searchsorted(b, x), torch.tensor([1, 200], dtype=torch.uint8), torch.tensor([-1, 100, 300], dtype=torch.int16))
    for value in (2, 2.5, -1, True):
        for b in (torch.tensor([1, 2, 3]), torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]).half()):
            compare(lambda b: torch.searchsorted(b, value), b)
            compare(lambda b: torch.bucketize(value, b, right=True), b)
            compare(lambda b, out: torch.searchsorted(b, value, out=out), b, torch.empty((), dtype=torch.long))


def test_numbers_beyond_the_dtype_wrap():
    b = torch.tensor([0, 1, 7], dtype=torch.int32)
    for value in (2**40, 2**31, -(2**33)):
        compare(lambda b: torch.searchsorted(b, value), b)
        compare(lambda b: torch.isin(value, b), b)
    compare(lambda b: torch.bucketize(1e30, b), torch.tensor([1.0, 2.0]).half())
    compare(lambda b: torch.bucketize(-1, b), torch.tensor([1, 200], dtype=torch.uint8))


def test_out():
    b, x = boundaries((20,), torch.float32), make((4, 6))
    compare(lambda b, x, out: torch.searchsorted(b, x, out=out), b, x, torch.empty(6, 4, dtype=torch.long).t())
    compare(lambda b, x, out: torch.searchsorted(b, x, out_int32=True, out=out), b, x, torch.empty(0, dtype=torch.int32))
    compare(lambda b, x, out: torch.bucketize(x, b, out=out[:, ::2]), b, x, torch.zeros(4, 12, dtype=torch.long))
    whole = torch.arange(12)
    compare(lambda w: torch.searchsorted(torch.tensor([2, 5, 9], device=w.device), w, out=w), whole)


def test_search_errors():
    s, x = torch.tensor([1.0, 2.0, 3.0]), make((2, 3))
    compare_errors(lambda s: torch.searchsorted(s, s, side="x"), s)
    compare_errors(lambda s: torch.searchsorted(s, s, right=True, side="left"), s)
    compare_errors(lambda s: torch.searchsorted(s[None], 2), s)
    compare_errors(lambda s, o: torch.searchsorted(s, s, sorter=o), s, torch.tensor([0, 1]))
    compare_errors(lambda s, o: torch.searchsorted(s, s, sorter=o), s, torch.tensor([0, 1, 2]).int())
    compare_errors(lambda s, o: torch.searchsorted(s, s, sorter=o), s, torch.tensor([0, 1, 3]))
    compare_errors(lambda s, o: torch.searchsorted(s, s, sorter=o), s, torch.tensor([0, 1, -1]))
    compare_errors(lambda s, x: torch.searchsorted(s.expand(3, 3), x), s, x)
    compare_errors(lambda x: torch.searchsorted(x.sum(), x), x)
    compare_errors(lambda s, o: torch.searchsorted(s, s, out=o), s, torch.empty(3, dtype=torch.int32))
    compare_errors(lambda s, o: torch.searchsorted(s, s, out_int32=True, out=o), s, torch.empty(3))
    compare_errors(lambda s, x: torch.bucketize(s, x), s, x)
    compare_errors(lambda x: torch.searchsorted(x, x), torch.tensor([True, False]))
    compare_errors(lambda x: torch.searchsorted(x, x), torch.tensor([1, 2], dtype=torch.uint16))
    compare_errors(lambda x: torch.searchsorted(x, x), torch.tensor([1j, 2]))


def test_warnings_are_the_cpus(python):
    code = """
        import torch, warnings
        def texts(device):
            b, x, s = torch.arange(6., device=device)[::2], torch.ones(4, 3, device=device).t(), torch.arange(6, device=device)[::2].div(2, rounding_mode="floor")
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                torch.searchsorted(b, x)
                torch.searchsorted(b.contiguous(), x.contiguous(), sorter=torch.arange(3, device=device).repeat(2)[::1][:3].expand(3))
            return [str(w.message).split("(Triggered")[0] for w in caught]
        print("|".join(texts("%s")))
    """
    mps, cpu = python(code % "mps"), python(code % "cpu")
    assert mps.code == 0, mps.err
    assert "non-contiguous" in cpu.out and mps.out == cpu.out


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-9, 9), max_size=40), st.lists(st.integers(-10, 10), max_size=40), st.booleans(), st.sampled_from(DTYPES))
def test_searchsorted_property(values, others, right, dtype):
    if dtype == torch.uint8:
        values, others = [abs(v) for v in values], [abs(v) for v in others]
    compare(lambda b, x: torch.searchsorted(b, x, right=right), torch.tensor(sorted(values), dtype=dtype), torch.tensor(others, dtype=dtype))


# ---- isin ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tests", [0, 1, 5, 24, 25, 300])
def test_isin(dtype, tests):
    others = make((tests,), dtype, seed=2, low=-100, high=100, special=True)
    x = torch.cat([make((90,), dtype, low=-100, high=100, special=True), others])
    for invert in (False, True):
        for _, y in layouts(x[:90].view(9, 10)):
            compare(lambda x, t: torch.isin(x, t, invert=invert), y, others)
        compare(lambda x, t: torch.isin(x, t, invert=invert), x, others)
    compare(lambda t: torch.isin(3, t), others)
    compare(lambda x: torch.isin(x, 3, invert=True), x)
    compare(lambda t: torch.isin(2.5, t, invert=True), others)


def test_isin_shapes_and_unique():
    x, t = torch.randperm(200, generator=torch.Generator().manual_seed(0)), torch.arange(0, 400, 3)
    compare(lambda x, t: torch.isin(x, t, assume_unique=True), x, t)
    compare(lambda x, t: torch.isin(x, t, assume_unique=True, invert=True), x.view(10, 20).t(), t.view(2, 67)[:, ::2])
    compare(lambda x, t: torch.isin(x, t), torch.tensor(3), t)
    compare(lambda x, t: torch.isin(x, t), torch.empty(0, 3, dtype=torch.long), t)
    compare(lambda x, t: torch.isin(x, t), x, torch.tensor(7))


def test_isin_special_values():
    few = torch.tensor([NAN, 0.0, INF])
    for t in (few, few.repeat(20)):
        compare(lambda x, t: torch.isin(x, t), torch.tensor([NAN, -0.0, 0.0, INF, -INF, 1.0]), t)
        compare(lambda x, t: torch.isin(x, t, invert=True), torch.tensor([NAN, -0.0, 1.0]), t)
    compare(lambda x, t: torch.isin(x, t), torch.tensor([1.0, NAN]), torch.full((50,), NAN))


def test_isin_promotion_and_out():
    compare(lambda x, t: torch.isin(x, t), torch.tensor([1, 2]), torch.tensor([1.5, 2.0]))
    compare(lambda x, t: torch.isin(x, t), torch.tensor([1, 2], dtype=torch.uint8), torch.tensor([257, 2]))
    compare(lambda x, t: torch.isin(x, t), torch.tensor([16777217]), torch.tensor([16777216.0]))
    compare(lambda x, t: torch.isin(x, t), torch.tensor([1.1]).half(), torch.tensor(1.1))
    compare(lambda t: torch.isin(1.1, t), torch.tensor([1.1]).half())
    compare(lambda x, t, out: torch.isin(x, t, out=out), torch.arange(6).view(2, 3), torch.tensor([4, 2]), torch.empty(3, 2, dtype=torch.bool).t())
    compare(lambda x, t, out: torch.isin(x, t, out=out[:, ::2]), torch.arange(6).view(2, 3), torch.tensor([4, 2]), torch.zeros(2, 6, dtype=torch.bool))
    compare_errors(lambda x, out: torch.isin(x, x, out=out), torch.arange(3), torch.empty(3, dtype=torch.long))
    compare_errors(lambda x: torch.isin(x, x), torch.tensor([True]))
    compare_errors(lambda x: torch.isin(x, x), torch.tensor([1j]))
    compare_errors(lambda x: torch.isin(True, x), torch.tensor([1]))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 30), max_size=60), st.lists(st.integers(0, 30), max_size=60), st.booleans(), st.sampled_from(DTYPES))
def test_isin_property(values, others, invert, dtype):
    compare(lambda x, t: torch.isin(x, t, invert=invert), torch.tensor(values, dtype=dtype), torch.tensor(others, dtype=dtype))
