# SPDX-License-Identifier: BSD-3-Clause
"""Operators that move elements (cat, flip, repeat, padding, triangles) and those that make tensors from nothing."""
import pytest
import torch
from torch.nn import functional as F

from compare import ALL_DTYPES, FLOATS, INTEGERS, assert_same, compare, compare_errors, compare_gradients, layouts, make


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cat_and_stack(dtype, dim):
    for _, x in layouts(make((3, 4, 5), dtype)):
        for _, y in layouts(make((3, 4, 5), dtype, seed=2)):
            compare(lambda x, y: torch.cat([x, y, x], dim), x, y, strides=True)
            compare(lambda x, y: torch.stack([x, y], dim), x, y)
    compare(lambda x: torch.cat([x, torch.empty(0, dtype=x.dtype, device=x.device)], dim), make((3, 4, 5), dtype))


def test_cat_promotes():
    compare(lambda a, b, c: torch.cat([a, b, c]), make((3,), torch.int32), make((4,), torch.float16), make((2,), torch.bool))
    compare(lambda a, b, out: torch.cat([a, b], out=out), make((3,), torch.int32), make((4,), torch.int64), torch.zeros(7, dtype=torch.float32))
    compare_errors(lambda a, b: torch.cat([a, b]), make((3, 2)), make((3, 3)))


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_moves(dtype):
    for _, x in layouts(make((2, 4, 3, 5), dtype)):
        compare(lambda x: x.flip(0, -1), x)
        compare(lambda x: x.flip([]), x)
        compare(lambda x: x.repeat(2, 1, 3, 1), x)
        compare(lambda x: x.repeat(2, 1, 1, 1, 2), x)
        compare(lambda x: x.roll((1, -2), (0, 3)), x)
        compare(lambda x: F.pad(x, (1, 2, -1, 1), value=3), x)
        compare(lambda x: F.pad(x, (-1, -2)), x)
        compare(lambda x: F.pixel_shuffle(x, 2), x)
        compare(lambda x: x.permute(2, 0, 3, 1).contiguous(), x)
        compare(lambda x: x.unfold(3, 2, 2).contiguous(), x)
    compare(lambda x: F.pixel_unshuffle(x, 2), make((3, 4, 6), dtype))
    compare(lambda x: x.flip(0), make((0, 3), dtype))
    compare(lambda x: x.repeat(3), make((), dtype))
    compare(lambda x: x.repeat(2, 0), make((2, 3), dtype))


def test_repeat_of_high_rank():
    compare(lambda x: x.repeat(*[2] * 10), make((2,) * 10))


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("diagonal", [0, 1, -2, 40, -40])
def test_triangles(dtype, diagonal):
    for _, x in layouts(make((3, 4, 6), dtype)):
        compare(lambda x: x.tril(diagonal), x)
        compare(lambda x: x.triu(diagonal), x)
        if 0 not in x.stride():
            compare(lambda x: x.triu_(diagonal), x)
    for row, col in ((4, 6), (6, 4), (0, 3), (5, 1)):
        for dtype in (torch.int32, torch.int64):
            assert_same(torch.tril_indices(row, col, diagonal, dtype=dtype, device="mps"), torch.tril_indices(row, col, diagonal, dtype=dtype))
            assert_same(torch.triu_indices(row, col, diagonal, dtype=dtype, device="mps"), torch.triu_indices(row, col, diagonal, dtype=dtype))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_sequences(dtype):
    for arguments in ((5,), (2, 9), (9, 2, -2), (0, 100, 7), (3, 3)):
        assert_same(torch.arange(*arguments, dtype=dtype, device="mps"), torch.arange(*arguments, dtype=dtype))
    for start, end, steps in ((0, 10, 5), (-3, 3, 100), (5, 5, 1), (2, 7, 0), (100, 0, 11)):
        if dtype == torch.uint8 and start < 0:
            continue
        tolerance = {"atol": 1, "rtol": 0} if not dtype.is_floating_point else {}
        assert_same(torch.linspace(start, end, steps, dtype=dtype, device="mps"), torch.linspace(start, end, steps, dtype=dtype), **tolerance)
    assert_same(torch.eye(3, 5, dtype=dtype, device="mps"), torch.eye(3, 5, dtype=dtype))


def test_long_float_sequences_keep_their_digits():
    """The CPU counts in double: position 10 million of steps of 0.1 must not drift."""
    assert_same(torch.arange(0, 1e6, 0.1, device="mps"), torch.arange(0, 1e6, 0.1), rtol=1.2e-7, atol=0)
    assert_same(torch.linspace(0, 1, 1_000_003, device="mps"), torch.linspace(0, 1, 1_000_003), rtol=2e-7, atol=1e-7)
    assert_same(torch.arange(2**53, 2**53 + 5, device="mps"), torch.arange(2**53, 2**53 + 5))


@pytest.mark.parametrize("dtype", FLOATS)
def test_linspace_is_the_cpus_to_the_last_bit(dtype):
    """Bin edges of histograms are made by it: one unit in the last place puts a value into another bin."""
    for start, end, steps in ((-1.465, 0.6036, 101), (0, 1, 11), (0.1, 7.3, 1000), (-3, 5, 7), (2, 2, 3), (5, 1, 1), (-100, 100, 3000)):
        assert_same(torch.linspace(start, end, steps, dtype=dtype, device="mps"), torch.linspace(start, end, steps, dtype=dtype), rtol=0, atol=0)


def test_sequence_errors():
    for call in (lambda d: torch.arange(0, 5, 0, device=d), lambda d: torch.arange(0, 5, -1, device=d), lambda d: torch.linspace(0, 1, -1, device=d),
                 lambda d: torch.arange(0, float("inf"), device=d), lambda d: torch.eye(-1, device=d), lambda d: torch.tril_indices(-1, 2, device=d)):
        with pytest.raises(RuntimeError) as cpu:
            call("cpu")
        with pytest.raises(type(cpu.value)) as mps:
            call("mps")
        assert str(mps.value) == str(cpu.value)


def test_gradients():
    x = make((2, 4, 3, 4))
    for function in (lambda x: torch.cat([x, x * 2], 1), lambda x: x.flip(1), lambda x: x.repeat(1, 2, 1, 1), lambda x: F.pad(x, (1, 1, 2, -1)),
                     lambda x: x.tril(), lambda x: F.pixel_shuffle(x, 2), lambda x: x.unfold(3, 2, 1), lambda x: x.roll(1, 0)):
        compare_gradients(function, x)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_whole_sequences_have_whole_ends(dtype):
    """The ends become whole before the steps are made; an int64 arange is counted in whole numbers."""
    def made(function, *arguments):
        return compare(lambda x: function(*arguments, dtype=dtype, device=x.device), torch.zeros(1))

    made(torch.linspace, 4.3, 1, 50)
    made(torch.linspace, -1, 5, 3)
    compare(lambda x: torch.linspace(1, 2, 0, dtype=torch.bool, device=x.device), torch.zeros(1))
    compare(lambda x: torch.linspace(1, 2, 1, dtype=torch.bool, device=x.device), torch.zeros(1))
    made(torch.arange, 0.5, 5, 1.5)
    made(torch.arange, 0.0, -8.000001, -4.0)
    compare_errors(lambda x: torch.linspace(0, 1e30, 3, dtype=dtype, device=x.device), torch.zeros(1))
    compare_errors(lambda x: torch.arange(0, 5, 0.5, dtype=torch.int64, device=x.device), torch.zeros(1))


def test_unfold_without_dimensions_has_a_gradient():
    compare_gradients(lambda x: x.unfold(0, 1, 1), make(()))
    compare_gradients(lambda x: x.unfold(0, 0, 1), make(()))
