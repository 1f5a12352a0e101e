# SPDX-License-Identifier: BSD-3-Clause
"""Operators without an MPS entry upstream that are made of native ones: values, out=, errors and random bounds against the CPU."""
import pytest
import torch
from torch.nn import functional as F

from compare import compare, compare_errors, compare_gradients, layouts, make

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64]


@pytest.mark.parametrize("dtype", DTYPES)
def test_take_and_put(dtype):
    index = torch.tensor([[0, 5, -1], [7, 3, 3]])
    for _, x in layouts(make((3, 4), dtype)):
        compare(torch.take, x, index)
        compare(lambda x, i, o: torch.take(x, i, out=o), x, index, torch.zeros(0, dtype=dtype))
        values = make((2, 3), dtype)
        unique = torch.tensor([[0, 5, 11], [7, 3, 2]])
        compare(lambda x, i, v: x.clone().put_(i, v), x, unique, values)
        compare(lambda x, i, v: x.clone().transpose(0, 1).put_(i, v), x, unique, values)
        if dtype not in (torch.bool, torch.float16, torch.bfloat16):
            compare(lambda x, i, v: x.clone().put_(i, v, accumulate=True), x, index, values)
    compare(torch.take, make((3, 4), dtype), torch.empty(0, 2, dtype=torch.int64))


def test_take_and_put_errors():
    x, index = torch.randn(3), torch.tensor([0, 1])
    compare_errors(torch.take, x, index.int())
    compare_errors(torch.take, torch.empty(0), index)
    compare_errors(lambda x, i, o: torch.take(x, i, out=o), x, index, torch.zeros(2, dtype=torch.int64))
    compare_errors(lambda x, i, v: x.put_(i, v), x, index, torch.randn(3))
    compare_errors(lambda x, i, v: x.put_(i, v), x, index, torch.ones(2, dtype=torch.int64))
    compare_errors(lambda x, i, v: x.put_(i, v), torch.empty(0), index, torch.randn(2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32])
def test_channel_shuffle(dtype):
    for shape in ((2, 6, 3), (2, 6, 3, 4), (1, 6, 2, 3, 2), (0, 6, 3, 4)):
        compare(F.channel_shuffle, make(shape, dtype), 3)
    compare(F.channel_shuffle, make((2, 6, 3, 4), dtype).to(memory_format=torch.channels_last), 2)
    compare_errors(F.channel_shuffle, torch.randn(2, 6, 3), 4)
    compare_errors(F.channel_shuffle, torch.randn(2, 6), 2)
    compare_errors(F.channel_shuffle, torch.randn(2, 6, 3), 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64])
def test_reductions_into_a_given_tensor(dtype):
    x = make((4, 5), dtype)
    compare(lambda x, o: torch.max(x, out=o), x, torch.zeros((), dtype=dtype))
    compare(lambda x, o: torch.min(x, out=o), x, torch.zeros((), dtype=dtype))
    compare(torch._aminmax, x)
    compare(torch._aminmax, x, 1, True)
    if dtype.is_floating_point:
        for reduction in (torch.var, torch.std):
            compare(lambda x, o, r=reduction: r(x, 1, correction=2, out=o), x, torch.zeros(4, dtype=dtype), rtol=1e-3)
            compare(lambda x, o, r=reduction: r(x, None, correction=0, keepdim=True, out=o), x, torch.zeros(1, 1, dtype=dtype), rtol=1e-3)


def test_narrow_copy_into_a_given_tensor():
    compare(lambda x, o: torch.narrow_copy(x, 1, 1, 2, out=o), torch.randn(3, 4), torch.zeros(3, 2))
    compare(torch.narrow_copy, torch.randn(3, 4), 0, -2, 1)


@pytest.mark.parametrize("arguments", [(0, 1, 5), (-3, 4, 1), (2.5, -1, 50), (0, 0, 0), (1, 2, 7, 2.0), (0, 3, 4, 0.5)])
def test_logspace(arguments):
    got = torch.logspace(*arguments, device="mps")
    assert got.device.type == "mps"
    torch.testing.assert_close(got.cpu(), torch.logspace(*arguments), rtol=2e-6, atol=0)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64])
def test_logspace_of_integers_is_exact(dtype):
    """The CPU makes integers of the ends first, and computes in double."""
    cases = [(0, 20, 21, 10.0), (0.9, 3.9, 4, 2.0), (0, 7.5, 50, 2.0), (3.7, 0.2, 5, 3.0), (0, 9, 10, -3.0), (0, 2, 5, 0.0), (0, 4, 7, -2.5), (2.5, 3, 1, 2.0),
             (0, 62, 63, 2.0), (0, 18, 1000, 10.0), (1, 1, 3, 7.0), (0, 3, 2049, 9.9), (5, 5, 0, 2.0)]
    cases += [] if dtype == torch.uint8 else [(-2.9, 2.9, 6, 10.0), (-5, -1, 3, 0.5), (-100, 100, 9, 0.1)]
    for start, end, steps, base in cases:
        got = torch.logspace(start, end, steps, base, dtype=dtype, device="mps")
        assert torch.equal(got.cpu(), torch.logspace(start, end, steps, base, dtype=dtype))
    compare(lambda a, b: torch.logspace(a, b, 5, dtype=dtype, device=a.device), torch.tensor(0.7), torch.tensor(2.9))
    compare(lambda a: torch.logspace(a, 3.2, 5, dtype=dtype, device=a.device), torch.tensor(1.5))
    compare(lambda out: torch.logspace(0.5, 3.9, 6, 2.0, out=out), torch.zeros(12, dtype=dtype)[::2])
    compare(lambda out: torch.logspace(0.5, 3.9, 6, 2.0, out=out), torch.zeros(3, 2, dtype=dtype).t())
    compare(lambda out: torch.logspace(0.5, 3.9, 6, 2.0, out=out), torch.zeros(3, dtype=dtype))
    compare_errors(lambda x: torch.logspace(0, float("nan"), 3, dtype=dtype, device=x.device), torch.zeros(1))
    compare_errors(lambda x: torch.logspace(0, 1e20, 3, dtype=dtype, device=x.device), torch.zeros(1))


def test_logspace_refuses_what_the_cpu_refuses():
    for dtype in (torch.bool, torch.uint16, torch.uint32):
        compare_errors(lambda x: torch.logspace(0, 2, 3, dtype=dtype, device=x.device), torch.zeros(1))
    compare_errors(lambda x: torch.logspace(0, 2, -1, device=x.device), torch.zeros(1))
    compare(lambda x: torch.logspace(0.1, 2.3, 4, dtype=torch.bfloat16, device=x.device), torch.zeros(1), rtol=4e-2)


@pytest.mark.parametrize("length", [0, 1, 2, 5, 64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_kaiser_window(length, dtype):
    tolerance = 2e-6 if dtype == torch.float32 else 1e-2
    for periodic in (False, True):
        for beta in (0.0, 1.5, 12.0):
            expected = torch.kaiser_window(length, periodic, beta, dtype=torch.float64)
            got = torch.kaiser_window(length, periodic, beta, dtype=dtype, device="mps")
            assert got.dtype == dtype and got.device.type == "mps"
            torch.testing.assert_close(got.cpu().double(), expected, rtol=tolerance, atol=tolerance)
    with pytest.raises(RuntimeError, match="kaiser_window requires non-negative window_length, got window_length=-1"):
        torch.kaiser_window(-1, device="mps")
    with pytest.raises(RuntimeError, match="kaiser_window expects floating point dtypes"):
        torch.kaiser_window(4, dtype=torch.int64, device="mps")


def test_rrelu():
    x = torch.randn(64, 64)
    compare(F.rrelu, x, 0.1, 0.3, False)
    compare(F.rrelu, torch.randn(2, 5, 5).permute(1, 2, 0), 0.1, 0.3, False, strides=True)
    y, device_x = F.rrelu(x.to("mps"), 0.1, 0.3, True).cpu(), x
    positive = device_x > 0
    assert torch.equal(y[positive], x[positive])
    slopes = (y / x)[~positive]
    assert slopes.min() >= 0.1 - 1e-6 and slopes.max() <= 0.3 + 1e-6
    assert abs(slopes.mean().item() - 0.2) < 0.01  # sigma of the mean: 0.0013
    leaf = x.to("mps").requires_grad_()
    out = F.rrelu(leaf, 0.1, 0.3, True)
    out.sum().backward()
    torch.testing.assert_close(leaf.grad * leaf, out)
    compare_errors(F.rrelu, x, 0.5, 0.2, True)


def test_glu_forward_derivative():
    x, t = torch.randn(4, 6), torch.randn(4, 6)
    compare(lambda x, t: torch.func.jvp(lambda a: F.glu(a, 1), (x,), (t,)), x, t, rtol=1e-5)
    compare_gradients(lambda x: F.glu(x, 0), torch.randn(4, 6))


def test_masked_softmax():
    x = torch.randn(2, 3, 4, 4)
    same, key, square = torch.rand(2, 3, 4, 4) > 0.6, torch.rand(2, 4) > 0.6, torch.rand(4, 4) > 0.6
    same[0, 0, 0] = True  # nothing is left of this row
    compare(lambda x, m: torch._masked_softmax(x, m, 3, 2), x, same, rtol=1e-5)
    compare(lambda x, m: torch._masked_softmax(x, m, 3, 1), x, key, rtol=1e-5)
    compare(lambda x, m: torch._masked_softmax(x, m, 3, 0), x, square, rtol=1e-5)


def test_int_mm():
    a, b = torch.randint(-128, 128, (32, 64), dtype=torch.int8), torch.randint(-128, 128, (64, 32), dtype=torch.int8)
    compare(torch._int_mm, a, b)
    compare(lambda a, b, o: torch._int_mm(a, b, out=o), a, b, torch.zeros(32, 32, dtype=torch.int32))
