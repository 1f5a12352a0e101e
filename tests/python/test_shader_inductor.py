# SPDX-License-Identifier: BSD-3-Clause
"""torch.compile on mps tensors: Inductor's own Metal kernels, pointwise ones and reductions over threadgroups, called as generated code calls them."""

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


LONG = torch.sin(torch.arange(3 * 2500, dtype=torch.float32)).reshape(3, 2500)


@pytest.mark.parametrize("shape", [(5, 7), (3, 32), (4, 33), (2, 1000), (2, 1025), (1, 5000)], ids=str)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x * 2).sum(-1),
        lambda x: torch.softmax(x, -1),
        lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]),
        lambda x: ((x + 1).amax(-1), (x - 1).amin(-1), x.argmax(-1), x.argmin(-1)),
        lambda x: (torch.var_mean(x, -1)[0], x.mean(-1), (x / 4).prod(-1)),
        lambda x: ((x > 1.5).any(-1), (x > -5).all(-1)),
    ],
    ids=["sum", "softmax", "layer_norm", "extremes", "moments", "any"],
)
def test_reductions_of_rows(function, shape):
    """One threadgroup a row: fewer threads than a simdgroup, full and partial ones, more elements than threads."""
    x = torch.sin(torch.arange(shape[0] * shape[1], dtype=torch.float32) * 0.7).reshape(shape) * 3
    check(function, x, tolerance=1e-4)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32, torch.int64], ids=str)
def test_reductions_of_other_dtypes(dtype):
    x = (LONG * 50).to(dtype)
    function = (lambda x: (x + 1).amax(-1)) if dtype.is_floating_point else (lambda x: ((x + 1).sum(-1), x.amin(-1)))
    check(function, x)


def test_reductions_of_columns_and_of_everything():
    check(lambda x: (x.sin().sum(0), x.var(0), x.amax(0)), LONG, tolerance=2e-5)
    check(lambda x: ((x * x).sum(), x.max()), torch.sin(torch.arange(300 * 257, dtype=torch.float32)).reshape(300, 257), tolerance=1e-4)


def test_scans_between_generated_kernels():
    check(lambda x: (x + 1).cumsum(1) * 2, LONG, tolerance=1e-4)


def test_reductions_with_dynamic_shapes():
    compiled = torch.compile(lambda x: torch.softmax(x * 2, -1).amax(-1), dynamic=True)
    for columns in (3, 31, 32, 65, 1024, 1500):
        x = LONG[:, :columns]
        torch.testing.assert_close(compiled(x.to("mps")).cpu(), torch.softmax(x * 2, -1).amax(-1), rtol=2e-5, atol=2e-5)


def test_a_training_step():
    """Forward, backward and the loss of a small network with norms, compiled, as on the CPU."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(20, 40), torch.nn.LayerNorm(40), torch.nn.GELU(), torch.nn.Linear(40, 10))
    x, target = torch.randn(16, 20), torch.randint(10, (16,))

    def gradients(device):
        copy = torch.nn.Sequential(*[type(m)(*a) for m, a in zip(model, ((20, 40), (40,), (), (40, 10)))]).to(device)
        copy.load_state_dict(model.state_dict())
        step = lambda x, t: torch.nn.functional.cross_entropy(copy(x), t)  # noqa: E731
        loss = (torch.compile(step) if device == "mps" else step)(x.to(device), target.to(device))
        loss.backward()
        return [loss.detach().cpu(), *[p.grad.cpu() for p in copy.parameters()]]

    for actual, expected in zip(gradients("mps"), gradients("cpu")):
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)
