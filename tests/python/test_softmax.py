# SPDX-License-Identifier: BSD-3-Clause
"""softmax and log_softmax against double, along every dimension of every layout, with their gradients."""
import pytest
import torch
import torch.nn.functional as F

from compare import FLOATS, assert_same, compare, compare_errors, compare_gradients, layouts, make, to_mps

TOLERANCES = {torch.float32: (1e-5, 1e-6), torch.float16: (2e-3, 1e-3), torch.bfloat16: (1.6e-2, 1e-2)}
SHAPES = [(), (7,), (5, 300), (300, 5), (1000, 10), (4, 33, 65), (3, 5000), (2, 8, 5, 6), (3, 0, 4)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", [F.softmax, F.log_softmax])
@pytest.mark.parametrize("shape", SHAPES)
def test_values(dtype, function, shape):
    rtol, atol = TOLERANCES[dtype]
    for _, x in layouts(make(shape, dtype) * 3):
        for dim in range(max(1, x.dim())):
            assert_same(function(to_mps(x), dim), function(x.double(), dim).to(dtype), rtol, atol)


@pytest.mark.parametrize("function", [F.softmax, F.log_softmax])
def test_infinities_and_nan(function):
    x = make((6, 40))
    x[0] = -float("inf")
    x[1, 3] = float("inf")
    x[2, 5] = float("nan")
    x[3] = 1e30
    x[4, ::2] = -float("inf")
    compare(lambda x: (function(x, 0), function(x, 1)), x)


@pytest.mark.parametrize("function", [F.softmax, F.log_softmax])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_gradients(function, dim):
    compare_gradients(lambda x: function(x, dim), make((6, 70, 5)), rtol=1e-4, atol=1e-5)
    compare_gradients(lambda x: function(x.transpose(0, 2), dim), make((6, 70, 5)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", FLOATS[1:])
def test_gradients_of_halves(dtype):
    x, g = make((40, 70), dtype), make((40, 70), dtype, seed=3)
    for function in (F.softmax, F.log_softmax):
        wide = x.double().requires_grad_()
        function(wide, 1).backward(g.double())
        half = x.to("mps").requires_grad_()
        function(half, 1).backward(g.to("mps"))
        rtol, atol = TOLERANCES[dtype]
        assert_same(half.grad, wide.grad.to(dtype), rtol * 4, atol * 4)


def test_dtype_and_out():
    x = make((5, 30), torch.float16)
    compare(lambda x: F.softmax(x, 1, dtype=torch.float32), x, rtol=1e-5)
    compare(lambda x, o: torch.softmax(x, 1, out=o), make((5, 30)), torch.zeros(30, 5).t(), rtol=1e-5)
    compare(lambda x: F.softmax(x, 1, dtype=torch.float32), make((5, 30), torch.int64), rtol=1e-5)
    compare_errors(lambda x: F.softmax(x, 2), make((5, 30)))


def test_long_rows_and_rows_of_one():
    compare(lambda x: F.softmax(x, 0), make((300_000,)), rtol=1e-5, atol=1e-9)
    compare(lambda x: (F.softmax(x, 1), F.log_softmax(x, 1)), make((300, 1)))
    compare(lambda x: F.softmax(x, 1).sum(1), make((64, 4096)), rtol=1e-5)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("function", [F.softmax, F.log_softmax])
def test_rows_that_are_cut(dtype, function):
    rtol, atol = TOLERANCES[dtype]
    for shape in ((65_536,), (3, 100_001), (2, 70_000, 1)):
        x, dim = make(shape, dtype) * 3, 0 if len(shape) == 1 else 1
        for y in (x, torch.stack((x, x), -1)[..., 0] if len(shape) == 1 else x[:, 1:]):
            assert_same(function(to_mps(y), dim), function(y.double(), dim).to(dtype), rtol, atol)
        result = function(x.double(), dim).to(dtype)
        grad = make(shape, dtype, seed=1)
        backward = torch._softmax_backward_data if function is F.softmax else torch._log_softmax_backward_data
        expected = backward(grad.double(), result.double(), dim, torch.float64).to(dtype)
        assert_same(backward(to_mps(grad), to_mps(result), dim, dtype), expected, rtol * 10, atol * 10)


@pytest.mark.parametrize("function", [F.softmax, F.log_softmax])
def test_infinities_and_nan_in_rows_that_are_cut(function):
    x = make((6, 70_000))
    x[0] = -float("inf")
    x[1, 30_000] = float("inf")
    x[2, 50_000] = float("nan")
    x[3] = 1e30
    x[4, :40_000] = -float("inf")
    x[5, 20_000:] -= 500
    compare(lambda x: function(x, 1), x)
