# SPDX-License-Identifier: BSD-3-Clause
"""Pooling: windows, padding, ceil mode, dilation, adaptive sizes, unpooling; values, indices and gradients."""
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from compare import FLOATS, assert_same, compare, compare_errors, compare_gradients, layouts, make, to_mps

A = torch.ops.aten
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


AVERAGES = {1: (F.avg_pool2d, A.avg_pool2d_backward), 2: (F.avg_pool2d, A.avg_pool2d_backward), 3: (F.avg_pool3d, A.avg_pool3d_backward)}


@pytest.mark.parametrize("divisor", [None, 3, -7, 2**24 + 1, 2**31 + 1, 2**53 + 1, -(2**25 + 3)])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_means_of_whole_numbers_are_exact(dimensions, divisor):
    """Neither sums nor divisors go through floats, which hold no whole number beyond 2^24; doubles end at 2^53."""
    forward, backward = AVERAGES[dimensions]
    space = {1: (1, 40), 2: (9, 10), 3: (5, 6, 7)}[dimensions]
    for window, stride, padding in ((2, 1, 0), (3, 2, 1), (space, space, 0)):
        window, stride = ((1, window), (1, stride)) if dimensions == 1 and isinstance(window, int) else (window, stride)
        padding = (0, padding) if dimensions == 1 else padding
        for channels in (2, 20):
            x = make((2, channels, *space), torch.int64, low=-2**59, high=2**59)
            for _, y in layouts(x):
                expected = compare(lambda x: forward(x, window, stride, padding, count_include_pad=False, divisor_override=divisor), y)
            grad = make(expected.shape, torch.int64, low=-2**59, high=2**59)
            compare(lambda g, x: backward(g, x, *[[n] if isinstance(n, int) else list(n) for n in (window, stride, padding)], False, False, divisor), grad, x)


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


ADAPTIVE_3D = [1, 3, (2, 5, 4), (6, 7, 5), (None, 2, None), (9, 3, 11)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", ADAPTIVE_3D)
def test_adaptive_3d(dtype, size):
    loose, x = LOOSE.get(dtype, {}), make((2, 3, 6, 7, 5), dtype)
    for _, y in [*layouts(x), ("channels_last_3d", x.contiguous(memory_format=torch.channels_last_3d))]:
        compare(lambda y: F.adaptive_avg_pool3d(y, size), y, strides=True, **loose)
        compare(lambda y: F.adaptive_max_pool3d(y, size, return_indices=True), y, strides=True)
    compare(lambda x: F.adaptive_avg_pool3d(x, size), x[0], strides=True, **loose)
    compare(lambda x: F.adaptive_max_pool3d(x, size, return_indices=True), make((3, 6, 7, 5), dtype, special=True))
    compare_gradients(lambda x: F.adaptive_avg_pool3d(x, size), x, **loose)
    compare_gradients(lambda x: F.adaptive_max_pool3d(x, size), x, **loose)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kernel, size", [(2, 4), (3, 1), (1, 6), ((2, 3), (5, 2)), (5, 3)])
def test_fractional_2d(dtype, kernel, size):
    x, samples = make((2, 3, 9, 11), dtype, special=True), torch.rand(2, 3, 2, generator=torch.Generator().manual_seed(3)).to(dtype)
    for _, y in layouts(x):
        compare(lambda y, s: F.fractional_max_pool2d(y, kernel, size, _random_samples=s, return_indices=True), y, samples, strides=True)
    compare(lambda y, s: F.fractional_max_pool2d(y, kernel, size, _random_samples=s, return_indices=True), x[0], samples[:1])
    compare_gradients(lambda y: F.fractional_max_pool2d(y, kernel, size, _random_samples=samples.to(y.device)), make((2, 3, 9, 11), dtype), **LOOSE.get(dtype, {}))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kernel, size", [(2, 3), (3, 1), ((2, 3, 1), (5, 2, 4))])
def test_fractional_3d(dtype, kernel, size):
    x, samples = make((2, 3, 7, 9, 6), dtype, special=True), torch.rand(2, 3, 3, generator=torch.Generator().manual_seed(3)).to(dtype)
    for _, y in [*layouts(x), ("channels_last_3d", x.contiguous(memory_format=torch.channels_last_3d))]:
        compare(lambda y, s: F.fractional_max_pool3d(y, kernel, size, _random_samples=s, return_indices=True), y, samples, strides=True)
    compare(lambda y, s: F.fractional_max_pool3d(y, kernel, size, _random_samples=s, return_indices=True), x[0], samples[:1])
    compare_gradients(lambda y: F.fractional_max_pool3d(y, kernel, size, _random_samples=samples.to(y.device)), make((2, 3, 7, 9, 6), dtype), **LOOSE.get(dtype, {}))


@pytest.mark.parametrize("dtype", FLOATS)
def test_fractional_samples_round_as_the_dtype_does(dtype):
    """Where windows begin is computed in the tensor's dtype: every sample that a half can hold, and long planes."""
    samples = torch.arange(256, dtype=torch.float32).div(256).to(dtype).view(1, 128, 2)
    x = make((1, 128, 60, 70), dtype)
    compare(lambda x, s: F.fractional_max_pool2d(x, 2, (33, 41), _random_samples=s, return_indices=True), x, samples)


@pytest.mark.parametrize("dtype", (torch.int64, torch.bool, torch.complex64))
def test_new_operators_refuse_other_dtypes(dtype):
    x, indices = torch.zeros(2, 3, 4, 5, 6, dtype=dtype), torch.zeros(2, 3, 2, 2, 2, dtype=torch.int64)
    small, aten = x[..., :2, :2, :2], torch.ops.aten
    compare_errors(lambda x: aten._adaptive_avg_pool3d(x, [2, 2, 2]), x)
    compare_errors(aten._adaptive_avg_pool3d_backward, small, x)
    compare_errors(lambda x: F.adaptive_max_pool3d(x, 2), x)
    compare_errors(aten.adaptive_max_pool3d_backward, small, x, indices)
    compare_errors(lambda x: aten.fractional_max_pool2d(x, [2, 2], [2, 2], torch.zeros(3, 4, 2, dtype=dtype, device=x.device)), x[0])
    compare_errors(lambda x: aten.fractional_max_pool3d(x, [2] * 3, [2] * 3, torch.zeros(2, 3, 3, dtype=dtype, device=x.device)), x)
    compare_errors(lambda g, x, i: aten.fractional_max_pool2d_backward(g, x, [2] * 2, [2] * 2, i), x[0, ..., :2, :2], x[0], torch.zeros(3, 4, 2, 2, dtype=torch.int64))
    compare_errors(lambda g, x, i: aten.fractional_max_pool3d_backward(g, x, [2] * 3, [2] * 3, i), small, x, indices)


def test_errors_3d():
    x, g, indices = make((2, 3, 4, 5, 6)), make((2, 3, 2, 2, 2)), torch.zeros(2, 3, 2, 2, 2, dtype=torch.int64)
    aten = torch.ops.aten
    compare_errors(lambda x: aten._adaptive_avg_pool3d(x, [2, 2]), x)
    compare_errors(lambda x: aten._adaptive_avg_pool3d(x, [2, 2, 2]), x[0, 0])
    compare_errors(lambda x: aten._adaptive_avg_pool3d(x, [2, 2, 2]), x[:, :, :0])
    compare_errors(lambda x, out: aten.adaptive_avg_pool3d.out(x, [2, 2, 2], out=out), x, torch.empty(0, dtype=torch.float16))
    compare_errors(aten._adaptive_avg_pool3d_backward, g, x[0])
    compare_errors(aten._adaptive_avg_pool3d_backward, g[:, :, :0], x)
    compare_errors(aten._adaptive_avg_pool3d_backward, g.half(), x)
    compare_errors(lambda x: F.adaptive_max_pool3d(x, 2), x[:, :, :0])
    compare_errors(lambda x: F.fractional_max_pool3d(x, 2, (2, 2, 6), _random_samples=torch.zeros(2, 3, 3, device=x.device)), x)
    compare_errors(lambda x: F.fractional_max_pool2d(x, 2, 2, _random_samples=torch.zeros(2, 3, 3, device=x.device)), x[0])
    for size in ([3, 2, 2], [2, 3, 2], [2, 2, 3]):
        compare_errors(lambda g, x, i: aten.fractional_max_pool3d_backward(g, x, [2] * 3, size, i), g, x, indices)
    compare_errors(lambda g, x, i: aten.fractional_max_pool3d_backward(g, x, [2] * 3, [2] * 3, i), g.half(), x, indices)
    compare_errors(lambda g, x, i: aten.fractional_max_pool3d_backward(g, x, [2] * 3, [2] * 3, i), g, x, indices.int())


def test_out_of_any_layout_3d():
    """Against results that were allocated: the CPU writes a strided out= as if it were contiguous."""
    x, g = make((2, 3, 4, 5, 6)), make((2, 3, 2, 2, 2))
    aten = torch.ops.aten
    for out in (torch.empty(0), torch.empty(2, 3, 2, 2, 2).transpose(0, 4).contiguous().transpose(0, 4), torch.empty(2, 3, 2, 2, 4)[..., ::2]):
        out = out.to("mps") if out.numel() == 0 else to_mps(out)
        strides = out.stride() if out.numel() else (24, 8, 4, 2, 1)
        assert_same(aten.adaptive_avg_pool3d.out(x.to("mps"), [2, 2, 2], out=out), F.adaptive_avg_pool3d(x, 2))
        assert out.stride() == strides
    for out in (torch.empty(0, device="mps"), torch.empty(3, 2, 4, 5, 6, device="mps").transpose(0, 1)):
        strides = out.stride() if out.numel() else (360, 120, 30, 6, 1)
        assert_same(aten.adaptive_avg_pool3d_backward.grad_input(g.to("mps"), x.to("mps"), grad_input=out), aten._adaptive_avg_pool3d_backward(g, x))
        assert out.stride() == strides


def test_windows_without_elements():
    """Dilation can jump over the whole input: the maximum of nothing is -inf, and its number what the CPU says."""
    compare(lambda x: torch.ops.aten.max_pool2d_with_indices(x, [2], [3], [1], [3], True), make((1, 2, 1, 1)))
    compare(lambda x: F.max_pool2d(x, 2, 3, 1, 3, True), make((1, 2, 1, 1)))


def test_gradients_of_gradients_of_max_pool2d():
    def second(x):
        first, = torch.autograd.grad((F.max_pool2d(x, 2) ** 3).sum(), x, create_graph=True)
        return torch.autograd.grad((first ** 2).sum(), x)[0]
    x = make((2, 3, 6, 8))
    torch.testing.assert_close(second(x.to("mps").requires_grad_()).cpu(), second(x.clone().requires_grad_()))


# ---- any shape, any window, any layout ----

def places(draw, shape, dtype):
    """A tensor of the shape with small whole numbers (sums of which are exact, and which are often equal), laid out in one of many ways."""
    seed = draw(st.integers(0, 1 << 16))
    layout = draw(st.sampled_from(["contiguous", "channels_last", "transposed", "strided", "offset", "expanded"]))
    x = make(shape, dtype, seed=seed) if not dtype.is_floating_point else make(shape, torch.int64, seed=seed).to(dtype)
    if dtype.is_floating_point and x.numel() and draw(st.integers(0, 3)) == 0:
        x.view(-1)[draw(st.integers(0, x.numel() - 1))] = draw(st.sampled_from([float("nan"), float("inf"), -float("inf"), -0.0]))
    if layout == "channels_last" and x.dim() in (4, 5):
        return x.contiguous(memory_format=torch.channels_last if x.dim() == 4 else torch.channels_last_3d)
    return dict(layouts(x)).get(layout, x)


def gradients(function, x):
    """The result, and the gradient for a direction of whole numbers, on the device of x."""
    x = x.detach().requires_grad_()
    y = function(x)
    direction = make(tuple(y.shape), torch.int64, seed=5).to(y.dtype).to(y.device)
    return [y.detach(), torch.autograd.grad(y, x, direction)[0]] if y.requires_grad else [y]


def check(function, x, with_gradient, **options):
    if with_gradient and x.is_floating_point():
        compare(lambda x: gradients(function, x), x, **options)
    else:
        compare(function, x, **options)


CHANNELS = st.sampled_from([1, 2, 3, 16, 17, 40])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.data())
def test_any_window(data):
    draw, n = data.draw, data.draw(st.sampled_from([2, 3]))
    kind = draw(st.sampled_from(["max", "average"]))
    dtype = draw(st.sampled_from(FLOATS + (torch.int64,) + ((torch.uint8, torch.int32) if kind == "max" else ())))
    if kind == "average" and n == 3 and dtype in (torch.float16, torch.bfloat16):
        dtype = torch.float32  # the CPU has no halves here
    kernel, stride = [[draw(st.integers(1, 5)) for _ in range(n)] for _ in range(2)]
    padding = [draw(st.integers(0, k // 2)) for k in kernel]
    dilation = [draw(st.sampled_from([1, 1, 2, 3])) for _ in range(n)] if kind == "max" else [1] * n
    space = [draw(st.integers((k - 1) * d + 1, (k - 1) * d + (40 if i == n - 1 else 9))) for i, (k, d) in enumerate(zip(kernel, dilation))]
    batch = draw(st.sampled_from([(), (0,), (1,), (2,)]))
    x = places(draw, (*batch, draw(CHANNELS), *space), dtype)
    ceil = draw(st.booleans())
    loose = LOOSE.get(dtype, {})
    if kind == "max":
        pool = getattr(torch.nn.functional, f"max_pool{n}d")
        check(lambda x: pool(x, kernel, stride, padding, dilation, ceil_mode=ceil), x, True, strides=n == 2, **loose)
        compare(lambda x: pool(x, kernel, stride, padding, dilation, ceil_mode=ceil, return_indices=True), x)
    else:
        pool = getattr(torch.nn.functional, f"avg_pool{n}d")
        more = dict(ceil_mode=ceil, count_include_pad=draw(st.booleans()), divisor_override=draw(st.sampled_from([None, None, 3, -2])))
        check(lambda x: pool(x, kernel, stride, padding, **more), x, True, **loose)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(st.data())
def test_any_adaptive_or_fractional_size(data):
    draw, n = data.draw, data.draw(st.sampled_from([2, 3]))
    dtype = draw(st.sampled_from(FLOATS))
    space = [draw(st.integers(3, 70 if i == n - 1 else 8)) for i in range(n)]
    batch, channels = draw(st.sampled_from([(), (0,), (1,), (2,)])), draw(CHANNELS)
    x = places(draw, (*batch, channels, *space), dtype)
    loose = LOOSE.get(dtype, {})
    size = [draw(st.sampled_from([1, s, draw(st.integers(1, 2 * s))])) for s in space]
    check(lambda x: getattr(F, f"adaptive_avg_pool{n}d")(x, size), x, True, **loose)
    check(lambda x: getattr(F, f"adaptive_max_pool{n}d")(x, size), x, True, **loose)
    compare(lambda x: getattr(F, f"adaptive_max_pool{n}d")(x, size, return_indices=True), x)
    if batch == (0,):
        return
    kernel = [draw(st.integers(1, s - 1)) for s in space]
    size = [draw(st.integers(1, s - k)) for s, k in zip(space, kernel)]
    samples = torch.rand(batch[0] if batch else 1, channels, n, generator=torch.Generator().manual_seed(draw(st.integers(0, 99)))).to(dtype)
    pool = getattr(F, f"fractional_max_pool{n}d")
    check(lambda x: pool(x, kernel, size, _random_samples=samples.to(x.device)), x, True, **loose)
    compare(lambda x: pool(x, kernel, size, _random_samples=samples.to(x.device), return_indices=True), x)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.data())
def test_any_long_line(data):
    """Lines longer than what a kernel keeps of one, and windows as wide."""
    draw = data.draw
    length, kernel = draw(st.integers(900, 5000)), draw(st.sampled_from([1, 2, 3, 31, 32, 63, 700, 2000]))
    kernel = min(kernel, length)
    stride, padding = draw(st.sampled_from([1, 2, 3, 15, 16, 63, 64, 500])), draw(st.integers(0, kernel // 2))
    x = places(draw, (2, draw(st.sampled_from([1, 2])), draw(st.sampled_from([1, 3])), length), draw(st.sampled_from([torch.float32, torch.bfloat16])))
    loose = {"rtol": 1e-5, "atol": 1e-4} if x.dtype == torch.float32 else LOOSE[x.dtype]
    check(lambda x: F.max_pool2d(x, (1, kernel), (1, stride), (0, padding)), x, True, **loose)
    check(lambda x: F.avg_pool2d(x, (1, kernel), (1, stride), (0, padding), count_include_pad=False), x, x.dtype == torch.float32, **loose)
    size = (1, draw(st.integers(1, 1500)))
    check(lambda x: F.adaptive_max_pool2d(x, size), x, True, **loose)
    check(lambda x: F.adaptive_avg_pool2d(x, size), x, x.dtype == torch.float32, **loose)
