# SPDX-License-Identifier: BSD-3-Clause
"""Distinct elements and slices: unique and unique_consecutive, flat and along a dimension."""
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from compare import FLOATS, INTEGERS, compare, compare_errors, layouts

UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
DTYPES = FLOATS + INTEGERS + UNSIGNED + (torch.bool,)
NAN = float("nan")


def some(shape, dtype, seed=0):
    """Small whole numbers, so that many are equal."""
    low = -3 if dtype.is_floating_point or dtype in (torch.int8, torch.int16, torch.int32, torch.int64) else 0
    return torch.randint(low, 5, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def everything(x, **options):
    return torch.unique(x, return_inverse=True, return_counts=True, **options)


@pytest.mark.parametrize("dtype", DTYPES)
def test_unique(dtype):
    for _, x in layouts(some((6, 5, 7), dtype)):
        compare(everything, x, strides=True)
        compare(lambda x: torch.unique(x, sorted=False), x)
    for shape in ((), (0,), (0, 3), (1,), (70_000,)):
        if shape == (70_000,) and dtype in UNSIGNED:
            continue  # the CPU's parallel sort lacks them
        compare(everything, some(shape, dtype))
        compare(lambda x: torch.unique(x, return_counts=True), some(shape, dtype))
        compare(lambda x: torch._unique(x, return_inverse=True), some(shape, dtype))
        compare(lambda x: torch._unique2(x), some(shape, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_unique_consecutive(dtype):
    for _, x in layouts(some((9, 5, 7), dtype)):
        compare(lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True), x)
        compare(lambda x: torch.unique_consecutive(x), x)
        for dim in (0, 1, -1):
            compare(lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True, dim=dim), x)
    for shape in ((), (0,), (1,), (70_000,)):
        compare(lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True), some(shape, dtype))
    compare(lambda x: torch.unique_consecutive(x, return_counts=True, dim=0), some((50,), dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_unique_dim(dtype):
    for shape in ((40, 2), (3, 50), (5, 4, 3), (1, 7), (7, 1), (60,), (33, 1, 2)):
        for _, x in layouts(some(shape, dtype)):
            for dim in range(-1, x.dim()):
                compare(lambda x: everything(x, dim=dim), x, strides=True)
    compare(lambda x: torch.unique(x, dim=0), some((2000, 3), dtype))


def test_order_is_lexicographic():
    x = torch.tensor([[1, 2, 3], [1, 2, -3], [-5, 9, 9], [1, -7, 100], [1, 2, 3], [-5, 9, 8]])
    for dtype in (torch.int8, torch.int64, torch.float32, torch.bfloat16):
        compare(lambda x: everything(x, dim=0), x.to(dtype))
    compare(lambda x: everything(x, dim=0), torch.tensor([[2**62, -(2**63)], [2**62, 2**63 - 1], [-1, 0], [2**62, -(2**63)]]))


def test_special_values():
    x = torch.tensor([1.0, NAN, NAN, 0.0, 0.0, 1.0, -float("inf"), float("inf"), 1e-45])
    for dtype in FLOATS:
        compare(lambda x: everything(x)[::2], x.to(dtype))
        compare(lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True), x.to(dtype))
    compare(lambda x: everything(x)[0].signbit(), torch.tensor([-0.0, 0.0, -1.0]))
    compare(lambda x: everything(x)[0].signbit(), torch.tensor([0.0, -0.0]))
    compare(lambda x: torch.unique_consecutive(x, return_counts=True), torch.tensor([0.0, -0.0, 0.0, 1.0]))
    compare(lambda x: everything(x, dim=0), torch.tensor([[1, NAN], [1, NAN], [0, 1.0]]))
    compare(lambda x: everything(x, dim=0), torch.tensor([[0.0, 1], [-0.0, 1], [0, 0.0]]))
    compare(everything, torch.tensor([2**62, -(2**63), 2**62 + 1, 2**63 - 1, 2**62]))


def test_empty_and_errors():
    for x in (torch.empty(0, 3), torch.empty(3, 0)):
        dim = x.shape.index(0)
        compare(lambda x: everything(x, dim=dim), x)
        compare(lambda x: torch.unique_consecutive(x, dim=dim), x)
        compare_errors(lambda x: torch.unique(x, dim=1 - dim), x)
    compare_errors(lambda x: torch.unique(x, dim=0), torch.empty(0, 0))
    compare_errors(lambda x: torch.unique(x, dim=2), torch.ones(2, 2))
    compare_errors(lambda x: torch.unique(x), torch.tensor([1j]))
    compare_errors(lambda x: torch.unique_consecutive(x), torch.tensor([1j]))
    compare_errors(lambda x: torch.unique(x, dim=0), torch.tensor([1j]))


def test_many_distinct_values():
    x = torch.randperm(100_000, generator=torch.Generator().manual_seed(0))
    compare(everything, x)
    compare(everything, x.float().view(100, 1000))
    compare(lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True), x // 3)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-3, 3), max_size=60), st.sampled_from(FLOATS + (torch.int8, torch.int32, torch.int64)))
def test_unique_property(values, dtype):
    x = torch.tensor(values, dtype=dtype)
    compare(everything, x)
    compare(lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True), x)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_unique_rows_property(data):
    shape = data.draw(st.tuples(st.integers(1, 40), st.integers(1, 4)))
    values = data.draw(st.lists(st.integers(-2, 2), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    x = torch.tensor(values, dtype=data.draw(st.sampled_from((torch.int16, torch.float32, torch.int64)))).view(shape)
    dim = data.draw(st.integers(0, 1))
    compare(lambda x: everything(x, dim=dim), x)
    compare(lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True, dim=dim), x)
