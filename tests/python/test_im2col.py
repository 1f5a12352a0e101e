# SPDX-License-Identifier: BSD-3-Clause
"""unfold and fold of images: values, layouts, gradients, errors."""
import pytest
import torch
from torch.nn import functional as F

from compare import FLOATS, compare, compare_errors, compare_gradients, layouts, make

DTYPES = FLOATS + (torch.bool, torch.complex64)
# The CPU rounds half sums at each step.
LOOSE = {torch.float16: {"rtol": 1e-2, "atol": 2e-2}, torch.bfloat16: {"rtol": 5e-2, "atol": 2e-1}}
WINDOWS = [dict(kernel_size=2), dict(kernel_size=3, padding=1), dict(kernel_size=(3, 2), stride=2), dict(kernel_size=(2, 3), dilation=(2, 1), padding=(2, 3)),
           dict(kernel_size=2, stride=(3, 1), dilation=3, padding=1), dict(kernel_size=1), dict(kernel_size=(8, 7), padding=2), dict(kernel_size=1, stride=4, padding=3)]


@pytest.mark.parametrize("options", WINDOWS)
def test_unfold_and_fold(options):
    for dtype in DTYPES:
        x = make((2, 3, 8, 7), dtype)
        for _, y in layouts(x):
            columns = compare(lambda x: F.unfold(x, **options), y, strides=True)
        for _, c in layouts(columns):
            compare(lambda c: F.fold(c, (8, 7), **options), c, strides=True, **(LOOSE.get(dtype, {"rtol": 0, "atol": 0})))
        compare(lambda x: F.unfold(x, **options), x[0])
        compare(lambda c: F.fold(c, (8, 7), **options), columns[0], **LOOSE.get(dtype, {}))


@pytest.mark.parametrize("options", WINDOWS)
@pytest.mark.parametrize("dtype", FLOATS + (torch.complex64,))
def test_gradients(options, dtype):
    x = make((2, 3, 8, 7), dtype)
    compare_gradients(lambda x: F.unfold(x, **options), x, **LOOSE.get(dtype, {}))
    compare_gradients(lambda c: F.fold(c, (8, 7), **options), F.unfold(x, **options), **LOOSE.get(dtype, {}))


def test_out():
    x, pairs = make((2, 3, 5, 6)), [[2, 2], [1, 1], [0, 0], [1, 1]]
    columns = torch.ops.aten.im2col(x, *pairs)
    for shape in ((0,), columns.shape):
        compare(lambda x, out: torch.ops.aten.im2col.out(x, *pairs, out=out), x, torch.zeros(shape), strides=True)
    for shape in ((0,), x.shape):
        compare(lambda c, out: torch.ops.aten.col2im.out(c, [5, 6], *pairs, out=out), columns, torch.zeros(shape), strides=True)


def test_images_larger_than_a_block():
    x = make((1, 2, 130, 140))
    columns = compare(lambda x: F.unfold(x, 3, padding=1), x)
    compare(lambda c: F.fold(c, (130, 140), 3, padding=1), columns, rtol=0, atol=0)
    compare(lambda x: F.unfold(x, 2, padding=2), make((1, 1, 3, 9000)))


def test_conjugate():
    compare(lambda x: F.unfold(x.conj(), 2), make((1, 2, 3, 3), torch.complex64))


def test_empty_and_errors():
    compare(lambda x: F.unfold(x, 2), torch.zeros(0, 3, 4, 4))
    compare(lambda x: F.fold(x, (4, 4), 2), torch.zeros(0, 12, 9))
    for dtype in (torch.int64, torch.uint8):
        compare_errors(lambda x: F.unfold(x, 2), make((1, 1, 4, 4), dtype))
        compare_errors(lambda x: F.fold(x, (4, 4), 2), make((1, 4, 9), dtype))
    x = make((1, 2, 4, 4))
    for arguments in ((5,), (2, 0), (0,), (2, 1, -1), (2, 1, 0, 0)):
        compare_errors(lambda x: F.unfold(x, *arguments), x)
    compare_errors(lambda x: F.unfold(x, 2), make((4, 4)))
    compare_errors(lambda x: F.unfold(x, 2), torch.zeros(1, 0, 4, 4))
    compare_errors(lambda x: F.fold(x, (4, 4), 2), make((1, 5, 9)))
    compare_errors(lambda x: F.fold(x, (4, 4), 2), make((1, 4, 8)))
    compare_errors(lambda x: F.fold(x, (0, 4), 2, padding=2), make((1, 4, 21)))
