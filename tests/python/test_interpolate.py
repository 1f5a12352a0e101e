# SPDX-License-Identifier: BSD-3-Clause
"""Resizing: modes, sizes and scales, layouts, dtypes, gradients. Bytes and moved elements are equal to the last bit."""
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from compare import FLOATS, compare, compare_errors, compare_gradients, layouts, make, to_mps

LOOSE = {torch.float16: {"rtol": 4e-3, "atol": 4e-3}, torch.bfloat16: {"rtol": 3e-2, "atol": 3e-2}}
NEAREST = ("nearest", "nearest-exact")
SMOOTH = {1: ("linear",), 2: ("bilinear", "bicubic"), 3: ("trilinear",)}
SPACE = (7, 5, 6)
SIZES = (dict(scale_factor=2), dict(scale_factor=1.7), dict(scale_factor=0.45, recompute_scale_factor=True), dict(scale_factor=0.6), dict(size=SPACE),
         dict(size=(5, 9, 3)), dict(size=(1, 1, 1)))


def resize(x, mode, **options):
    """`size` is cut to x's dimensions."""
    if "size" in options:
        options["size"] = options["size"][: x.dim() - 2]
    return F.interpolate(x, mode=mode, **options)


def bytes_like(shape, seed=0):
    return make(shape, torch.uint8, seed=seed, high=256)


def with_channels_last(x):
    yield x
    if x.dim() > 3:
        yield x.contiguous(memory_format=torch.channels_last if x.dim() == 4 else torch.channels_last_3d)


@pytest.mark.parametrize("dtype", FLOATS + (torch.uint8,))
@pytest.mark.parametrize("mode", NEAREST)
@pytest.mark.parametrize("dimensions", (1, 2, 3))
def test_nearest(dtype, mode, dimensions):
    for channels in (3, 17):
        x = bytes_like((2, channels) + SPACE[:dimensions]) if dtype == torch.uint8 else make((2, channels) + SPACE[:dimensions], dtype, special=True)
        for options in SIZES:
            for y in with_channels_last(x):
                compare(resize, y, mode=mode, rtol=0, atol=0, strides=True, **options)
                if dtype in FLOATS:
                    compare_gradients(resize, y.nan_to_num(0, 0, 0), mode=mode, **LOOSE.get(dtype, {}), **options)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("align_corners", (False, True))
@pytest.mark.parametrize("dimensions", (1, 2, 3))
def test_smooth(dtype, align_corners, dimensions):
    loose = LOOSE.get(dtype, {})
    for mode in SMOOTH[dimensions]:
        for channels in (2, 5, 17):
            x = make((2, channels) + SPACE[:dimensions], dtype)
            for options in SIZES:
                for y in with_channels_last(x):
                    compare(resize, y, mode=mode, align_corners=align_corners, strides=True, **loose, **options)
                    compare_gradients(resize, y, mode=mode, align_corners=align_corners, **loose, **options)


@pytest.mark.parametrize("align_corners", (False, True))
@pytest.mark.parametrize("mode", ("bilinear", "bicubic"))
def test_antialias(mode, align_corners):
    for shape in ((2, 3, 17, 11), (1, 20, 6, 9)):
        for options in SIZES + (dict(size=(40, 3)), dict(size=(2, 30))):
            for x in with_channels_last(make(shape)):
                compare(resize, x, mode=mode, align_corners=align_corners, antialias=True, strides=True, **options)
                compare_gradients(resize, x, mode=mode, align_corners=align_corners, antialias=True, **options)


def test_lanczos():
    for options in SIZES:
        compare(resize, make((2, 3, 17, 11)), mode="lanczos", antialias=True, **options)
        compare(resize, bytes_like((2, 5, 17, 11)), mode="lanczos", antialias=True, **options)  # with fewer channels some sizes fail on the CPU
        compare_gradients(resize, make((2, 3, 17, 11)), mode="lanczos", antialias=True, **options)


@pytest.mark.parametrize("dtype", (torch.float16, torch.bfloat16))
def test_antialias_of_halves(dtype):
    """The CPU refuses them; the float result, rounded, is right."""
    x = make((2, 3, 17, 11), dtype)
    for mode in ("bilinear", "bicubic"):
        expected = F.interpolate(x.float(), size=(6, 20), mode=mode, antialias=True).to(dtype)
        actual = F.interpolate(x.to("mps"), size=(6, 20), mode=mode, antialias=True)
        assert actual.dtype == dtype
        torch.testing.assert_close(actual.cpu(), expected)


@pytest.mark.parametrize("antialias", (False, True))
@pytest.mark.parametrize("mode", ("bilinear", "bicubic"))
def test_bytes(mode, antialias):
    """Fixed-point weights: every value is the CPU's."""
    for channels in (1, 3, 4, 7, 18):
        for (height, width), size in (((37, 41), (17, 90)), ((5, 300), (9, 32)), ((8, 8), (8, 31)), ((60, 3), (20, 3)), ((6, 7), (6, 7)), ((3, 2), (50, 40))):
            for align_corners in (False, True):
                for x in with_channels_last(bytes_like((2, channels, height, width))):
                    compare(resize, x, mode=mode, size=size, align_corners=align_corners, antialias=antialias, strides=True)


def test_layouts():
    for _, x in layouts(make((2, 6, 8, 5))):
        for mode in ("nearest", "bilinear", "bicubic"):
            compare(resize, x, mode=mode, size=(11, 4))
        compare(resize, x, mode="bilinear", size=(5, 12), antialias=True)
    for _, x in layouts(bytes_like((2, 6, 8, 5))):
        compare(resize, x, mode="bicubic", size=(11, 4))
    for _, x in layouts(make((2, 6, 8))):
        compare(resize, x, mode="linear", size=(13,))


@pytest.mark.parametrize("mode", ("nearest", "bilinear", "bicubic"))
def test_out_with_strides(mode):
    function = {"nearest": torch._C._nn.upsample_nearest2d, "bilinear": torch._C._nn.upsample_bilinear2d, "bicubic": torch._C._nn.upsample_bicubic2d}[mode]
    x, more = make((2, 3, 6, 5)), () if mode == "nearest" else (False,)
    wide = torch.zeros(2, 3, 22, 26)
    target = to_mps(wide)
    out, expected = target[:, :, ::2, 1::2], wide[:, :, ::2, 1::2]
    function(x, (11, 13), *more, out=expected)
    function(x.to("mps"), (11, 13), *more, out=out)
    assert torch.allclose(target.cpu(), wide, atol=1e-6)


def test_scale_factor_that_disagrees_with_the_size():
    """Twice the size, another scale: PyTorch's kernels for small results ignore the scale, those for large ones do not."""
    for x in (make((1, 2, 10, 10)), make((1, 2, 100, 100)), make((1, 2, 10)), make((1, 2, 10, 10, 10))):
        for mode in NEAREST:
            compare(F.interpolate, x, mode=mode, scale_factor=2.05, rtol=0, atol=0)
            compare_gradients(lambda x: F.interpolate(x, mode=mode, scale_factor=2.05), x)


def test_borders_keep_infinity_apart():
    x = torch.zeros(1, 1, 6, 6)
    x[0, 0, 2, 3], x[0, 0, 5, 5] = float("inf"), float("nan")
    for options in (dict(mode="bilinear"), dict(mode="bicubic"), dict(mode="bilinear", antialias=True), dict(mode="nearest")):
        for size in ((12, 12), (6, 6), (3, 4), (6, 11)):
            compare(F.interpolate, x, size=size, **options)


def test_gradients_do_not_depend_on_the_run():
    x = make((2, 3, 40, 40)).to("mps").requires_grad_()
    grad = make((2, 3, 90, 70)).to("mps")
    results = [torch.autograd.grad(F.interpolate(x, size=(90, 70), mode="bicubic"), x, grad)[0].cpu() for _ in range(3)]
    assert all(torch.equal(results[0], r) for r in results)


def test_empty_and_errors():
    compare(F.interpolate, torch.zeros(0, 3, 4, 4), scale_factor=2)
    compare(F.interpolate, torch.zeros(0, 3, 4, 4), scale_factor=2, mode="bilinear")
    for mode in ("nearest", "bilinear"):
        compare_errors(lambda x: F.interpolate(x, size=(4, 4), mode=mode), torch.zeros(1, 0, 4, 4))
        compare_errors(lambda x: F.interpolate(x, size=(0, 4), mode=mode), make((1, 1, 4, 4)))
        for dtype in (torch.int32, torch.bool, torch.complex64):
            compare_errors(lambda x: F.interpolate(x, size=(5, 5), mode=mode), make((1, 2, 4, 4), dtype))
            compare_errors(lambda x: F.interpolate(x, size=(200, 5), mode=mode), make((1, 2, 4, 4), dtype))
    compare_errors(lambda x: F.interpolate(x, size=(5,), mode="linear"), make((1, 2, 4), torch.uint8))
    compare_errors(lambda x: F.interpolate(x, size=(5, 5), mode="bicubic", antialias=True), make((1, 2, 4, 4), torch.int16))


@st.composite
def calls(draw):
    dimensions = draw(st.integers(1, 3))
    antialias = dimensions == 2 and draw(st.booleans())
    mode = draw(st.sampled_from(SMOOTH[dimensions] if antialias else NEAREST + SMOOTH[dimensions]))
    space = st.tuples(*[st.integers(1, 40 if dimensions < 3 else 9)] * dimensions)
    options = dict(mode=mode, antialias=antialias)
    if mode not in NEAREST:
        options["align_corners"] = draw(st.booleans())
    shape = (draw(st.integers(1, 3)), draw(st.sampled_from((1, 2, 3, 4, 5, 16)))) + draw(space)
    if draw(st.booleans()):
        options["size"] = draw(space)
    else:
        options["scale_factor"] = draw(st.floats(1.0 / min(shape[2:]) + 1e-6, 4.0))
        options["recompute_scale_factor"] = draw(st.booleans())
    byte = draw(st.booleans()) and (dimensions == 2 or mode in NEAREST)
    return shape, byte, draw(st.booleans()), draw(st.integers(0, 9)), options


@given(calls())
@settings(max_examples=150, deadline=None, derandomize=True)
def test_any_call(call):
    shape, byte, channels_last, seed, options = call
    x = bytes_like(shape, seed) if byte else make(shape, seed=seed)
    if channels_last and len(shape) > 3:
        x = x.contiguous(memory_format=torch.channels_last if len(shape) == 4 else torch.channels_last_3d)
    compare(F.interpolate, x, strides=True, **options)
    if not byte:
        compare_gradients(lambda x: F.interpolate(x, **options), x, rtol=1e-5, atol=3e-5)
