# SPDX-License-Identifier: BSD-3-Clause
"""Convolutions against the CPU: dimensions, groups, dilation, padding, transposed, layouts, dtypes, empty batches, gradients, errors, speed."""
import pytest
import torch
from torch.nn import functional as F

from compare import FLOATS, compare, compare_errors, compare_gradients, layouts, make

LOOSE = {torch.float32: {"rtol": 2e-5, "atol": 1e-4}, torch.float16: {"rtol": 5e-3, "atol": 3e-2}, torch.bfloat16: {"rtol": 3e-2, "atol": 2.5e-1},
         torch.complex64: {"rtol": 2e-5, "atol": 1e-4}}
OPTIONS = [{}, {"stride": 2}, {"padding": 1}, {"padding": 2, "dilation": 2}, {"stride": 3, "padding": 1}, {"padding": "same"}]
CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
SPACE = {1: (13,), 2: (9, 11), 3: (5, 6, 7)}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_forward(dtype, dimensions, options, groups):
    x, w = make((2, 4, *SPACE[dimensions]), dtype), make((8, 4 // groups, *(3,) * dimensions), dtype, seed=1)
    function = CONV[dimensions]
    for _, y in layouts(x):
        compare(lambda x, w, b: function(x, w, b, groups=groups, **options), y, w, make((8,), dtype, seed=2), **LOOSE[dtype])
    compare(lambda x, w: function(x, w, groups=groups, **options), x[0], w, **LOOSE[dtype])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"stride": 2}, {"stride": 2, "padding": 1, "output_padding": 1}, {"dilation": 2, "padding": 1}])
@pytest.mark.parametrize("groups", [1, 2])
def test_transposed(dtype, dimensions, options, groups):
    x, w = make((2, 4, *SPACE[dimensions]), dtype), make((4, 6 // groups, *(3,) * dimensions), dtype, seed=1)
    function = TRANSPOSED[dimensions]
    for _, y in layouts(x):
        compare(lambda x, w, b: function(x, w, b, groups=groups, **options), y, w, make((6,), dtype, seed=2), **LOOSE[dtype])
    compare(lambda x, w: function(x, w, groups=groups, **options), x[0], w, **LOOSE[dtype])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1}, {"dilation": 2}])
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_gradients(dtype, dimensions, options, groups, transposed):
    x, bias = make((2, 4, *SPACE[dimensions]), dtype), make((8,), dtype, seed=2)
    shape = (4, 8 // groups) if transposed else (8, 4 // groups)
    w = make((*shape, *(3,) * dimensions), dtype, seed=1)
    function = (TRANSPOSED if transposed else CONV)[dimensions]
    compare_gradients(lambda x, w, b: function(x, w, b, groups=groups, **options), x, w, bias, **LOOSE[dtype])


def test_dilated_depthwise_bfloat16_is_right():
    """torch 2.13.0 on the CPU gives wrong weight gradients here: compare with float32."""
    x = make((1, 4, 60, 60), torch.bfloat16).contiguous(memory_format=torch.channels_last)
    w, g = make((8, 1, 3, 3), torch.bfloat16, seed=1), make((1, 8, 56, 56), torch.bfloat16, seed=2).contiguous(memory_format=torch.channels_last)

    def gradient(x, w, g):
        w = w.clone().requires_grad_()
        F.conv2d(x, w, groups=4, dilation=2).backward(g)
        return w.grad

    actual = gradient(x.to("mps"), w.to("mps"), g.to("mps")).cpu().float()
    torch.testing.assert_close(actual, gradient(x.float(), w.float(), g.float()), rtol=2e-2, atol=1.0)


@pytest.mark.parametrize("transposed", [False, True])
def test_only_some_gradients(transposed):
    function, shape = (F.conv_transpose2d, (4, 6, 3, 3)) if transposed else (F.conv2d, (6, 4, 3, 3))
    x, w = make((2, 4, 8, 8)), make(shape, seed=1)
    compare_gradients(lambda w: function(x.to(w.device), w), w, **LOOSE[torch.float32])
    compare_gradients(lambda x: function(x, w.to(x.device)), x, **LOOSE[torch.float32])
    compare_gradients(lambda b: function(x.to(b.device), w.to(b.device), b), make((6,), seed=2), **LOOSE[torch.float32])


@pytest.mark.parametrize("dimensions", [2, 3])
def test_channels_last(dimensions):
    layout = torch.channels_last if dimensions == 2 else torch.channels_last_3d
    x, w = make((2, 4, *SPACE[dimensions])).contiguous(memory_format=layout), make((6, 4, *(3,) * dimensions), seed=1)
    compare(CONV[dimensions], x, w, strides=True, **LOOSE[torch.float32])
    compare(CONV[dimensions], x, w.contiguous(memory_format=layout), strides=True, **LOOSE[torch.float32])
    compare(CONV[dimensions], x.contiguous(), w.contiguous(memory_format=layout), strides=True, **LOOSE[torch.float32])
    compare_gradients(lambda x, w: CONV[dimensions](x.contiguous(memory_format=layout), w, padding=1), x, w, **LOOSE[torch.float32])


def test_large_enough_to_be_cut():
    loose = {"rtol": 1e-4, "atol": 3e-3}
    for shape, weight, options in [((8, 32, 30, 30), (48, 32, 3, 3), {"padding": 1}), ((1, 64, 40, 40), (96, 64, 3, 3), {"padding": 1}),
                                   ((2, 64, 60, 60), (64, 1, 5, 5), {"groups": 64}), ((4, 64, 16, 16), (64, 64, 1, 1), {})]:
        x, w, b = make(shape), make(weight, seed=1), make(weight[:1], seed=2)
        compare(lambda x, w, b: F.conv2d(x, w, b, **options), x, w, b, **loose)
        compare_gradients(lambda x, w, b: F.conv2d(x, w, b, **options), x, w, b, rtol=1e-3, atol=5e-2)
    x, w = make((1, 64, 30, 30)), make((64, 96, 4, 4), seed=1)
    compare(lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1), x, w, **loose)
    compare_gradients(lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1), x, w, rtol=1e-3, atol=5e-2)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_integers(dtype):
    for groups in (1, 2):
        compare(lambda x, w: F.conv2d(x, w, padding=1, stride=2, groups=groups), make((2, 4, 9, 8), dtype), make((6, 4 // groups, 3, 3), dtype, seed=1))
    compare(F.conv1d, make((2, 4, 9), torch.int64), make((6, 4, 3), torch.int64, seed=1))
    compare(F.conv3d, make((2, 4, 5, 6, 7), torch.int64), make((6, 4, 3, 2, 1), torch.int64, seed=1))
    compare(lambda x, w: F.conv_transpose2d(x, w, stride=2), make((2, 4, 5, 6), torch.int64), make((4, 6, 3, 2), torch.int64, seed=1))


def test_complex():
    x, w, b = make((2, 4, 9, 8), torch.complex64), make((6, 4, 3, 3), torch.complex64, seed=1), make((6,), torch.complex64, seed=2)
    compare(F.conv2d, x, w, b, **LOOSE[torch.complex64])
    compare_gradients(F.conv2d, x, w, b, **LOOSE[torch.complex64])
    compare(lambda x, w: F.conv2d(x.conj(), w.conj()), x, w, **LOOSE[torch.complex64])


def test_empty():
    w = make((6, 4, 3, 3))
    compare(F.conv2d, make((0, 4, 8, 8)), w)
    compare_gradients(F.conv2d, make((0, 4, 8, 8)), w)
    compare(F.conv_transpose2d, make((0, 4, 8, 8)), make((4, 6, 3, 3)))


def test_nan_and_infinity_travel():
    x, w = make((1, 3, 9, 9)), make((4, 3, 3, 3), seed=1)
    x[0, 1, 4, 4], x[0, 2, 7, 1] = float("nan"), float("inf")
    compare(F.conv2d, x, w, **LOOSE[torch.float32])


def test_double_backward():
    def penalty(x, w):
        y = F.conv2d(x, w, padding=1).pow(2).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return g.pow(2).sum()

    compare_gradients(penalty, make((1, 3, 6, 6)), make((4, 3, 3, 3), seed=1), rtol=1e-4, atol=1e-2)


def test_errors():
    x, w = torch.ones(1, 2, 5, 5), torch.ones(3, 2, 3, 3)
    compare_errors(F.conv2d, x, torch.ones(3, 4, 3, 3))
    compare_errors(F.conv2d, x, w, torch.ones(7))
    compare_errors(F.conv2d, torch.ones(1, 2, 2, 2), w)
    compare_errors(lambda x, w: F.conv2d(x, w, stride=0), x, w)
    compare_errors(lambda x, w: F.conv2d(x, w, padding=-1), x, w)
    compare_errors(lambda x, w: F.conv2d(x, w, groups=3), x, w)
    for n in (1, 2, 3):  # nothing is left, or less than nothing
        function = getattr(F, f"conv_transpose{n}d")
        compare_errors(lambda x, w: function(x, w, padding=1), torch.ones((1, 1) + (1,) * n), torch.ones((1, 1) + (2,) * n))
        compare_errors(lambda x, w: function(x, w, padding=1), torch.ones((1, 1) + (1,) * n), torch.ones((1, 1) + (1,) * n))
    compare_errors(lambda x, w: F.conv_transpose2d(x, w, padding=1), torch.ones(1, 1, 3, 1), torch.ones(1, 1, 2, 2))
    compare_errors(F.conv2d, x, w.half(), same_text=False)
    compare_errors(F.conv2d, x.bool(), w.bool())
