# SPDX-License-Identifier: BSD-3-Clause
"""torch.compile on mps tensors: Inductor's own Metal kernels, pointwise ones, called as generated code calls them."""

import pytest
import torch
from torch._inductor.utils import run_and_get_code


@pytest.fixture(autouse=True)
def forget():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def moved(value, device):
    return value.to(device) if torch.is_tensor(value) and value.dim() else value  # numbers may stay on the CPU


def check(function, *arguments, tolerance=1e-5, **options):
    """Compiled on mps as eager on the CPU, and by generated kernels."""
    out, code = run_and_get_code(torch.compile(function, **options), *(moved(a, "mps") for a in arguments))
    expected = function(*arguments)
    assert "generated_kernel" in code[0]
    for result, wanted in zip(out if isinstance(out, tuple) else (out,), expected if isinstance(expected, tuple) else (expected,)):
        assert result.device.type == "mps"
        torch.testing.assert_close(result.cpu(), wanted, rtol=tolerance, atol=tolerance, equal_nan=True)


X, Y = torch.linspace(-3, 3, 3700).reshape(100, 37), torch.linspace(0.1, 4, 37)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: torch.sin(x) * y + 1,
        lambda x, y: torch.nn.functional.gelu(x * y),
        lambda x, y: torch.where(x > y, x, -y).clamp(-1, 2),
        lambda x, y: torch.special.i0(x) + torch.erf(y) - torch.lgamma(x.abs() + 1),
        lambda x, y: (x.t().contiguous() + 1, x[:, ::2] * 2, x.flip(0)),
        lambda x, y: torch.remainder(x, y) + torch.floor_divide(x, y) + torch.fmod(x, y),
        lambda x, y: torch.cat([x, y.expand(5, 37)]) ** 2,
        lambda x, y: torch.maximum(x, y).log1p().nan_to_num(),
    ],
    ids=range(8),
)
def test_pointwise(function):
    check(function, X, Y)


@pytest.mark.parametrize("dtype, tolerance", [(torch.float16, 2e-3), (torch.bfloat16, 2e-2)], ids=str)
def test_halves(dtype, tolerance):
    check(lambda x, y: torch.tanh(x) * y + x.abs(), X.to(dtype), Y.to(dtype), tolerance=tolerance)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8], ids=str)
def test_whole_numbers(dtype):
    a = torch.arange(1, 101).to(dtype)
    check(lambda a: (a * 3 - 7, a // 3, a % 5, a > 50, a & 12, (a.float() / 2).to(dtype)), a)


def test_conversions_and_bools():
    check(lambda x: ((x > 0) & (x < 2), (x > 0).to(torch.int32) + 1, x.half().float(), x.bfloat16(), x.to(torch.int64)), X)


def test_numbers_from_outside():
    for scale in (2.5, 3.5):
        check(lambda x, s: x * s, X, scale)
    check(lambda x, s: x * s, X, torch.tensor(2.5))
    check(lambda x, s: x * s, X, torch.tensor(2.5, dtype=torch.float64))


def test_indices():
    check(lambda x, i: x[i] + 1, X, torch.tensor([0, 99, -1, 5]))


def test_an_index_out_of_bounds_is_reported():
    compiled = torch.compile(lambda x, i: x[i] + 1)
    compiled(X.to("mps"), torch.tensor([1, 2, 100], device="mps"))
    with pytest.raises(torch.AcceleratorError, match="out of range|out of bounds"):
        torch.mps.synchronize()


def test_dynamic_shapes():
    function = torch.compile(lambda x, y: x.exp() + y, dynamic=True)
    for rows in (3, 7, 1000):
        x, y = torch.linspace(-1, 1, rows * 5).reshape(rows, 5), torch.arange(5.0)
        torch.testing.assert_close(function(x.to("mps"), y.to("mps")).cpu(), x.exp() + y)


def test_random_numbers_repeat_with_their_seed():
    function = torch.compile(lambda x: torch.rand_like(x) + torch.nn.functional.dropout(x, 0.5))
    x = torch.ones(1000, device="mps")
    torch.manual_seed(3)
    first = function(x)
    torch.manual_seed(3)
    assert torch.equal(function(x), first) and first.unique().numel() > 500


def test_a_gradient():
    def gradients(function, device):
        x = X.to(device).requires_grad_()
        (function(x) * Y.to(device)).backward(torch.ones_like(x))
        return x.grad.cpu()

    formula = lambda x: torch.tanh(x) * x.sigmoid()  # noqa: E731
    torch.testing.assert_close(gradients(torch.compile(formula), "mps"), gradients(formula, "cpu"), rtol=1e-5, atol=1e-6)


def test_writes_in_place():
    def function(x):
        x.mul_(2).add_(1)
        return x

    x = X.to("mps")
    out = torch.compile(function)(x)
    assert torch.equal(x.cpu(), X * 2 + 1) and out.data_ptr() == x.data_ptr()


def test_a_wrong_kernel_names_source_and_place():
    from torch._inductor.runtime.runtime_utils import compile_mps_shader

    with pytest.raises(SyntaxError, match="failed to compile kernel void wrong.*with program_source:1:45: error"):
        compile_mps_shader("kernel void wrong(device float *x) { x[0] = y; }")
