# SPDX-License-Identifier: BSD-3-Clause
"""Pooling: windows, padding, ceil mode, dilation, adaptive sizes, unpooling; values, indices and gradients."""
import pytest
import torch
from torch.nn import functional as F

from compare import FLOATS, compare, compare_errors, compare_gradients, layouts, make

LOOSE = {torch.float16: {"rtol": 1e-2, "atol": 5e-3}, torch.bfloat16: {"rtol": 4e-2, "atol": 3e-2}}
WINDOWS_2D = [dict(kernel_size=2), dict(kernel_size=3, stride=2, padding=1), dict(kernel_size=(3, 2), stride=(1, 2), padding=(1, 0)),
              dict(kernel_size=3, stride=2, ceil_mode=True), dict(kernel_size=(1, 4), stride=3)]


@pytest.mark.parametrize("dtype", FLOATS + (torch.int64, torch.int32, torch.uint8))
@pytest.mark.parametrize("options", WINDOWS_2D + [dict(kernel_size=2, dilation=2), dict(kernel_size=3, padding=1, dilation=(2, 1), ceil_mode=True)])
def test_max_pool2d(dtype, options):
    for _, x in layouts(make((2, 3, 11, 9), dtype, special=dtype.is_floating_point)):
        compare(lambda x: F.max_pool2d(x, **options), x, strides=True)
        compare(lambda x: F.max_pool2d(x, return_indices=True, **options), x)
    compare(lambda x: F.max_pool2d(x, **options), make((3, 11, 9), dtype))
    if dtype in FLOATS:
        compare_gradients(lambda x: F.max_pool2d(x, **options), make((2, 3, 11, 9), dtype), **LOOSE.get(dtype, {}))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("options", WINDOWS_2D)
@pytest.mark.parametrize("more", [{}, {"count_include_pad": False}, {"divisor_override": 3}])
def test_avg_pool2d(dtype, options, more):
    loose = LOOSE.get(dtype, {})
    for _, x in layouts(make((2, 3, 11, 9), dtype)):
        compare(lambda x: F.avg_pool2d(x, **options, **more), x, strides=True, **loose)
    compare(lambda x: F.avg_pool2d(x, **options, **more), make((3, 11, 9), dtype), **loose)
    compare_gradients(lambda x: F.avg_pool2d(x, **options, **more), make((2, 3, 11, 9), dtype), **loose)


@pytest.mark.parametrize("options", [dict(kernel_size=2), dict(kernel_size=(2, 3, 1), stride=2, padding=(1, 1, 0)), dict(kernel_size=3, stride=2, ceil_mode=True)])
def test_pool3d(options):
    for _, x in layouts(make((2, 3, 6, 7, 5))):
        compare(lambda x: F.max_pool3d(x, return_indices=True, **options), x)
        compare(lambda x: F.avg_pool3d(x, **options), x)
    compare(lambda x: F.avg_pool3d(x, **options), make((3, 6, 7, 5)))
    compare_gradients(lambda x: F.max_pool3d(x, **options), make((2, 3, 6, 7, 5)))
    compare_gradients(lambda x: F.avg_pool3d(x, count_include_pad=False, **options), make((2, 3, 6, 7, 5)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [1, 3, (4, 5), (11, 9), (None, 2), (13, 20)])
def test_adaptive(dtype, size):
    loose = LOOSE.get(dtype, {})
    for _, x in layouts(make((2, 3, 11, 9), dtype)):
        compare(lambda x: F.adaptive_avg_pool2d(x, size), x, **loose)
        compare(lambda x: F.adaptive_max_pool2d(x, size, return_indices=True), x)
    compare(lambda x: F.adaptive_avg_pool2d(x, size), make((3, 11, 9), dtype), **loose)
    compare_gradients(lambda x: F.adaptive_avg_pool2d(x, size), make((2, 3, 11, 9), dtype), **loose)
    compare_gradients(lambda x: F.adaptive_max_pool2d(x, size), make((2, 3, 11, 9), dtype), **loose)


def test_one_dimension():
    x = make((2, 3, 17))
    compare(lambda x: F.max_pool1d(x, 3, 2, return_indices=True), x)
    compare(lambda x: F.avg_pool1d(x, 3, 2, 1), x)
    compare(lambda x: F.adaptive_avg_pool1d(x, 5), x)
    compare(lambda x: F.adaptive_max_pool1d(x, 5), x)


def test_unpool():
    x = make((2, 3, 8, 6))
    compare(lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2), x)
    y = make((2, 3, 4, 6, 4))
    compare(lambda y: F.max_unpool3d(*F.max_pool3d(y, 2, return_indices=True), 2), y)


def test_empty_and_errors():
    compare(lambda x: F.max_pool2d(x, 2), torch.zeros(0, 3, 4, 4))
    compare(lambda x: F.avg_pool2d(x, 2), torch.zeros(0, 3, 4, 4))
    compare_errors(lambda x: F.max_pool2d(x, 5), make((1, 1, 3, 3)))
    compare_errors(lambda x: F.max_pool2d(x, 2, padding=2), make((1, 1, 3, 3)))
    compare_errors(lambda x: F.avg_pool2d(x, 0), make((1, 1, 3, 3)))
    compare_errors(lambda x: F.max_pool2d(x, 2), make((3, 3)))


def test_unpool_keeps_channels_last():
    x = make((2, 3, 6, 8)).contiguous(memory_format=torch.channels_last)
    values, indices = F.max_pool2d(x, 2, return_indices=True)
    compare(lambda v, i: F.max_unpool2d(v, i, 2), values, indices, strides=True)
