# SPDX-License-Identifier: BSD-3-Clause
"""repeat_interleave, assertions on the device, permute, and tensors of zeros without memory."""
import pytest
import torch

from compare import compare, compare_errors, compare_gradients, layouts, make


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_repeat_interleave(dtype):
    repeats = make((50,), dtype, low=0, high=5)
    for _, r in layouts(repeats):
        compare(torch.repeat_interleave, r)
    wide = make((100,), dtype, low=0, high=5)
    compare(lambda r: torch.repeat_interleave(r[::2]), wide)
    compare(lambda r: torch.repeat_interleave(r, output_size=int(repeats.sum())), repeats)
    for empty in ([], [0, 0], [0, 3]):
        compare(torch.repeat_interleave, torch.tensor(empty, dtype=dtype))
    compare(torch.repeat_interleave, make((5000,), dtype, low=0, high=3))


def test_repeat_interleave_of_a_tensor():
    x, repeats = make((4, 5)), torch.tensor([1, 0, 3, 2])
    compare(lambda x, r: x.repeat_interleave(r, 0), x, repeats)
    compare(lambda x, r: x.repeat_interleave(r, 0, output_size=6), x, repeats)
    compare(lambda x, r: x.repeat_interleave(r), x, torch.tensor([3]))
    compare(lambda x: x.repeat_interleave(3, 1), x)
    compare(lambda x, r: x.conj().repeat_interleave(r, 0), make((4, 5), torch.complex64), repeats)
    compare_gradients(lambda x, r: x.repeat_interleave(r, 0), x, repeats)
    compare_errors(lambda x, r: x.repeat_interleave(r, 1), x, repeats)


def test_repeat_interleave_errors():
    for repeats in ([1, -1, 3], [1, -2, 1], [-3]):
        compare_errors(torch.repeat_interleave, torch.tensor(repeats))
    compare_errors(torch.repeat_interleave, torch.tensor([[1]]))
    for dtype in (torch.uint8, torch.int16, torch.float32, torch.bool):
        compare_errors(torch.repeat_interleave, torch.ones(2, dtype=dtype))
    with pytest.raises(RuntimeError, match="allocated size does not match required size"):
        torch.repeat_interleave(torch.tensor([1, 2], device="mps"), output_size=5).cpu()
    with pytest.raises(RuntimeError, match="repeats can not be negative"):
        torch.repeat_interleave(torch.tensor([4, -1], device="mps"), output_size=3).cpu()


@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.float32, torch.float16, torch.complex64])
def test_assert_async(dtype):
    one, zero = torch.ones((), dtype=dtype, device="mps"), torch.zeros(1, dtype=dtype, device="mps")
    torch._assert_async(one)
    torch._assert_async(one, "no")
    torch.mps.synchronize()
    torch._assert_async(zero)
    with pytest.raises(torch.AcceleratorError, match="^Expected Tensor with single nonzero value, but got zero$"):
        torch.mps.synchronize()
    torch._assert_async(one, "not this")
    torch._assert_async(zero, "x must be 100% %V positive")
    torch._assert_async(zero, "not that")
    with pytest.raises(torch.AcceleratorError, match="^x must be 100% %V positive$"):
        torch.mps.synchronize()
    torch.mps.synchronize()


def test_assert_async_on_data():
    torch._assert_async(torch.tensor(float("nan"), device="mps"))
    torch.mps.synchronize()
    for message, text in (("zero", "^zero$"), ("", "^Assertion is failed$")):
        torch._assert_async(torch.tensor(-0.0, device="mps"), message)
        with pytest.raises(RuntimeError, match=text):
            torch.mps.synchronize()
    for count in (0, 2):
        compare_errors(torch._assert_async, torch.ones(count))


def test_many_assertions():
    one = torch.ones((), device="mps")
    for i in range(1100):  # more texts than are kept
        torch._assert_async(one, f"text {i}")
    torch._assert_async(torch.zeros((), device="mps"), "one more")
    with pytest.raises(RuntimeError, match="assertion failed"):
        torch.mps.synchronize()


def test_permute():
    x = make((2, 3, 4))
    compare(lambda x: x.permute(2, 0, 1), x, strides=True)
    compare(lambda x: torch.permute(x, (-1, 0, 1)), x, strides=True)
    compare_gradients(lambda x: x.permute(1, 0, 2), x)
    for dims in ((0, 1), (0, 0, 1), (0, 1, 3)):
        compare_errors(lambda x: x.permute(dims), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.complex64, torch.bool])
def test_zero_tensor(dtype):
    zero = torch._efficientzerotensor((2, 3), dtype=dtype, device="mps")
    expected = torch._efficientzerotensor((2, 3), dtype=dtype)
    assert zero._is_zerotensor() and zero.device.type == "mps" and zero.stride() == expected.stride() and zero.dtype == dtype
    assert torch.equal(zero.cpu(), torch.zeros(2, 3, dtype=dtype))
    x = make((2, 3), dtype)
    compare(lambda x: x + torch._efficientzerotensor((2, 3), dtype=dtype, device=x.device), x)
    compare(lambda x: (x * torch._efficientzerotensor((2, 3), dtype=dtype, device=x.device)).clone(), x)
    compare(lambda x: torch.cat([x, torch._efficientzerotensor((2, 3), dtype=dtype, device=x.device)]), x)
    compare(lambda x: x.copy_(torch._efficientzerotensor((2, 3), dtype=dtype, device=x.device)), x)


def test_forward_mode():
    def derivative(x, t):
        return torch.func.jvp(lambda x: (x.sin() * x).sum(0) + x[0].detach() + torch.stack([x[0], torch.ones_like(x[0])]).sum(0), (x,), (t,))

    compare(derivative, make((3, 4)), make((3, 4), seed=1), rtol=1e-5, atol=1e-5)
    compare(lambda x, t: torch.func.jvp(lambda x: torch.linalg.cross(x, torch.ones_like(x)), (x,), (t,)), make((4, 3)), make((4, 3), seed=1))
