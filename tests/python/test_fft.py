# SPDX-License-Identifier: BSD-3-Clause
"""Fourier transforms: values against the CPU's in float64, dtypes, strides and errors against the CPU's in float32."""
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from compare import clone, compare, compare_errors, compare_gradients, layouts, make, to_mps

C = torch.complex64


def wide(x):
    if not isinstance(x, torch.Tensor):
        return x
    return x.to(torch.complex128) if x.is_complex() else x.to(torch.float64) if x.is_floating_point() else x


def check(function, *inputs):
    """The relative error is what pocketfft's is: 1e-7 log2(n) at most, over the whole result. Strides are the CPU's."""
    exact, narrow, actual = function(*map(wide, inputs)), function(*map(clone, inputs)), function(*to_mps(list(inputs)))
    assert actual.device.type == "mps" and actual.dtype == narrow.dtype and actual.shape == narrow.shape
    assert actual.stride() == narrow.stride()
    error, size = torch.linalg.vector_norm(actual.cpu().to(exact.dtype) - exact), torch.linalg.vector_norm(exact)
    assert error <= 1e-7 * max(2.0, math.log2(max(actual.numel(), 2)) / 2) * size, f"relative error {float(error / size)}"


# Radices, primes by the definition, primes by convolution, products, two and three steps.
LENGTHS = [*range(1, 33), 37, 49, 61, 67, 74, 100, 121, 127, 131, 134, 256, 257, 268, 305, 500, 729, 1009, 1018, 1021, 1023, 1024, 1025, 2047, 2048, 2049,
           2310, 4096, 4099, 5000, 8198]


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("signals", [1, 2, 16, 19])
def test_lengths(n, signals):
    if n * signals > 50_000:
        return
    x, z, half = make((signals, n)), make((signals, n), C), make((signals, n // 2 + 1), C)
    check(torch.fft.fft, z)
    check(torch.fft.ifft, z)
    check(lambda z: torch.fft.fft(z.t(), dim=0), z)
    check(torch.fft.fft, x)
    check(torch.fft.rfft, x)
    check(lambda x: torch.fft.rfft(x.t(), dim=0), x)
    check(lambda h: torch.fft.irfft(h, n=n), half)
    check(lambda h: torch.fft.irfft(h.t(), n=n, dim=0), half)
    check(lambda x: torch.fft.ihfft(x, norm="ortho"), x)
    if n > 1:
        check(lambda h: torch.fft.hfft(h, n=n), half)


@pytest.mark.parametrize("n", [6, 8, 10, 16, 30, 64])
def test_rows_at_odd_distances(n):
    """Real rows are read two by two only where they begin at even places."""
    x, z = make((33, n + 1)), make((33, n + 1), C)
    for begin in (0, 1):
        check(lambda x: torch.fft.rfft(x[:, begin:begin + n]), x)
        check(lambda z: torch.fft.fft(z[:, begin:begin + n]), z)
        check(lambda z: torch.fft.irfft(z[:, begin:begin + n // 2 + 1], n=n), z)


@pytest.mark.parametrize("n", [65_536, 65_537, 100_000, 131_072, 600_000])
def test_long_ones(n):
    z, x = make((1, n), C), make((n,))
    check(torch.fft.fft, z)
    check(torch.fft.rfft, x)
    check(lambda x: torch.fft.irfft(torch.fft.rfft(x), n=n), x)


def test_three_steps():
    check(torch.fft.ifft, make((3**13,), C))  # 729 * 2187, and 2187 is too long for a tile


@pytest.mark.parametrize("norm", ["forward", "backward", "ortho"])
def test_norms(norm):
    z, x = make((6, 10), C), make((6, 10))
    for f in (torch.fft.fft, torch.fft.ifft, torch.fft.fft2, torch.fft.ifft2, torch.fft.irfft, torch.fft.irfft2, torch.fft.hfft, torch.fft.hfft2):
        check(lambda z: f(z, norm=norm), z)
    for f in (torch.fft.rfft, torch.fft.rfft2, torch.fft.ihfft, torch.fft.ihfft2, torch.fft.fft2):
        check(lambda x: f(x, norm=norm), x)


@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (3,), (1, 3), (0, 2), (3, 0), (2, 1), (0, 1, 2), (3, 2, 1), (0, 1, 2, 3), (-1, -2)])
def test_dimensions_and_layouts(dims):
    for dtype in (torch.float32, C):
        for _, x in layouts(make((3, 4, 5, 6), dtype)):
            for y in (x, x.transpose(0, 1), x.permute(2, 3, 1, 0)):
                check(lambda y: torch.fft.fftn(y, dim=dims), y)
                if dtype == C:
                    check(lambda y: torch.fft.ifftn(y.conj(), dim=dims), y)
                    check(lambda y: torch.fft.irfftn(y, dim=dims), y)
                    check(lambda y: torch.fft.irfftn(y, s=[7] * len(dims), dim=dims), y)
                    check(lambda y: torch.fft.fftn(y.imag, dim=dims), y)
                else:
                    check(lambda y: torch.fft.rfftn(y, dim=dims), y)
                    check(lambda y: torch.fft.rfftn(-y.neg(), dim=dims), y)


def test_many_dimensions():
    check(lambda x: torch.fft.fftn(x), make((2,) * 7, C))
    check(lambda x: torch.fft.rfftn(x, dim=(1, 4, 6)), make((2, 3, 1, 2, 5, 1, 4)))
    check(lambda x: torch.fft.fft(x, dim=3), make((2,) * 12, C).permute(3, 1, 0, 2, 7, 5, 4, 6, 11, 9, 10, 8))


@settings(max_examples=120, deadline=None)
@given(n=st.integers(1, 400), others=st.lists(st.integers(1, 6), max_size=3), place=st.integers(0, 3), kind=st.sampled_from(["fft", "ifft", "rfft", "irfft", "real"]),
       norm=st.sampled_from(["forward", "backward", "ortho"]), both=st.booleans(), flip=st.booleans())
def test_any_length(n, others, place, kind, norm, both, flip):
    sizes = list(others)
    place = min(place, len(sizes))
    sizes.insert(place, n // 2 + 1 if kind == "irfft" else n)
    dims = [place] if not both or len(sizes) == 1 else [(place + 1) % len(sizes), place]
    x = make(tuple(sizes), torch.float32 if kind in ("rfft", "real") else C)
    x = x.transpose(0, -1) if flip and len(dims) == 1 and place not in (0, len(sizes) - 1) else x
    if kind == "irfft":
        check(lambda x: torch.fft.irfftn(x, s=[x.size(d) for d in dims[:-1]] + [n], dim=dims, norm=norm), x)
    else:
        function = {"fft": torch.fft.fftn, "ifft": torch.fft.ifftn, "rfft": torch.fft.rfftn, "real": torch.fft.fftn}[kind]
        check(lambda x: function(x, dim=dims, norm=norm), x)


def test_a_delta_is_a_wave_and_back():
    for n in (8, 9, 67, 1000, 2048, 6000):
        x = torch.zeros(n)
        x[1] = 1
        k = torch.arange(n, dtype=torch.float64)
        wave = torch.exp(-2j * math.pi * k / n)
        assert (torch.fft.fft(x.to("mps")).cpu() - wave).abs().max() < (3e-6 if n == 67 else 5e-7)


def test_signals_do_not_meet():
    for n in (6, 67, 256, 300):
        z = make((21, n), C)
        z[4, n // 2] = complex("nan")
        z[17, 0] = complex("inf")
        result = torch.fft.fft(z.to("mps")).cpu()
        assert result[[4, 17]].isfinite().sum() == 0
        rest = [i for i in range(21) if i not in (4, 17)]
        assert torch.equal(result[rest], torch.fft.fft(make((21, n), C).to("mps")).cpu()[rest])


def test_a_value_does_not_depend_on_its_place():
    for n, f in ((100, torch.fft.fft), (301, torch.fft.fft), (128, torch.fft.rfft), (99, torch.fft.rfft)):
        row = make((n,), C if f is torch.fft.fft else torch.float32).to("mps")
        many = f(row.expand(37, n))
        assert torch.equal(many, many[:1].expand_as(many))
        assert torch.equal(f(row.expand(37, n).t().contiguous(), dim=0).t(), many)


@pytest.mark.parametrize("n", [8, 9])
def test_imaginary_parts_that_do_not_count(n):
    z = make((4, n // 2 + 1), C)
    check(lambda z: torch.fft.irfft(z, n=n), z)
    z[:, 0] = z[:, 0].real + 1e6j
    if n % 2 == 0:
        z[:, -1] = z[:, -1].real - 1e6j
    compare(lambda z: torch.fft.irfft(z, n=n), z, rtol=1e-5)


def test_conjugates_and_parts():
    z = make((5, 12), C)
    check(lambda z: torch.fft.fft(z.conj()), z)
    check(lambda z: torch.fft.irfft(z.conj(), dim=0), z)
    check(lambda z: torch.fft.rfft(z.imag), z)
    check(lambda z: torch.fft.rfft(z.conj().imag), z)


def test_sizes_are_padded_and_cut():
    z, x = make((5, 12), C), make((5, 12))
    for n in (1, 7, 12, 20):
        check(lambda z: torch.fft.fft(z, n=n), z)
        check(lambda x: torch.fft.rfft(x, n=n, dim=0), x)
        check(lambda z: torch.fft.irfft(z, n=n), z)
        check(lambda z: torch.fft.fft2(z, s=(n, 3)), z)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int16, torch.int32, torch.int64])
def test_integers_become_floats(dtype):
    x = make((4, 10), dtype)
    compare(torch.fft.fft, x, strides=True)
    compare(lambda x: torch.fft.rfft2(x), x, strides=True)
    compare(lambda x: torch.fft.irfft(x), x, strides=True)


def test_out():
    z, x = make((4, 6), C), make((4, 6))
    compare(lambda z, out: torch.fft.fft(z, out=out), z, torch.empty(6, 4, dtype=C).t(), strides=True)
    compare(lambda z, out: torch.fft.fft2(z, out=out), z, torch.empty(0, dtype=C), strides=True)
    compare(lambda x, out: torch.fft.rfft(x, out=out), x, torch.empty(4, 8, dtype=C)[:, ::2], strides=True)
    compare(lambda x, out: torch.fft.fft(x, out=out), x, torch.empty(4, 6, dtype=C), strides=True)
    compare(lambda z, out: torch.fft.irfft(z, out=out), z, torch.empty(4, 10), strides=True)
    compare(lambda z, out: torch.fft.ifft(z, out=z), z, z, strides=True)
    for onesided in (True, False):
        compare(lambda x, out: torch._fft_r2c(x, (0, 1), 0, onesided, out=out), x, torch.empty(0, dtype=C), strides=True)
    compare_errors(lambda z, out: torch.fft.fft(z, out=out), z, torch.empty(4, 6))


@pytest.mark.parametrize("normalization", [0, 1, 2])
def test_entries(normalization):
    z, x = make((3, 5, 8), C), make((3, 5, 8))
    for dims in ((1,), (2, 0), (0, 1, 2)):
        for flag in (True, False):
            check(lambda z: torch._fft_c2c(z, dims, normalization, flag), z)
            check(lambda x: torch._fft_r2c(x, dims, normalization, flag), x)
        last = 2 * (z.size(dims[-1]) - 1)
        for size in (last, last + 1):
            check(lambda z: torch._fft_c2r(z, dims, normalization, size), z)
    check(lambda z: torch._fft_c2c(z, (), normalization, True), z)
    check(lambda z: torch._fft_c2r(z, (1,), normalization, 5), z)


def test_refusals():
    z, x = make((2, 5), C), make((2, 5))
    compare_errors(lambda z: torch._fft_r2c(z, (0,), 0, True), z)
    compare_errors(lambda x: torch._fft_c2c(x, (0,), 0, True), x)
    compare_errors(lambda x: torch._fft_c2r(x, (0,), 0, 4), x)
    compare_errors(lambda x: torch._fft_r2c(x, (), 0, True), x)
    compare_errors(lambda x: torch.fft.rfft(x.half()), x)
    compare_errors(lambda x: torch._fft_r2c(x.half(), (1,), 0, True), x)
    compare_errors(lambda x: torch._fft_r2c(x.bfloat16(), (1,), 0, True), x)
    compare_errors(lambda z: torch.fft.rfft(z), z)
    compare_errors(lambda z: torch.fft.fft(z, dim=2), z)
    compare_errors(lambda z: torch.fft.fft2(z, dim=(0, 0)), z)
    compare_errors(lambda z: torch.fft.fft(z, n=0), z)
    compare_errors(lambda z: torch.fft.irfft(z, n=0), z)
    compare_errors(lambda z: torch.fft.fft(z, norm="none"), z)
    compare_errors(torch.fft.fft, torch.ones(()))
    for shape in ((0, 5), (5, 0), (0, 0), (3, 0, 4)):
        for dim in (0, -1):
            compare_errors(lambda z: torch.fft.fft(z, dim=dim), make(shape, C))
            compare_errors(lambda x: torch._fft_r2c(x, (dim % x.dim(),), 0, True), make(shape))


def test_frequencies_and_shifts():
    for n in (8, 9):
        for function in (torch.fft.fftfreq, torch.fft.rfftfreq):
            assert torch.equal(function(n, d=0.3, device="mps").cpu(), function(n, d=0.3))
    compare(lambda x: torch.fft.fftshift(x), make((5, 6)))
    compare(lambda x: torch.fft.ifftshift(x, dim=1), make((5, 6), C))


@pytest.mark.parametrize("function", [
    torch.fft.fft, torch.fft.ifft, torch.fft.irfft, torch.fft.hfft, torch.fft.fft2, torch.fft.irfft2, torch.fft.ifftn,
    lambda z: torch.fft.fft(z.real), lambda z: torch.fft.rfft(z.real), lambda z: torch.fft.rfftn(z.real, norm="ortho"), lambda z: torch.fft.ihfft(z.imag, dim=0),
    lambda z: torch.fft.irfft(z, n=7, dim=0), lambda z: torch.fft.fft(z, n=9).abs()])
def test_gradients(function):
    compare_gradients(function, make((4, 6), C), rtol=1e-4, atol=1e-5)


def test_short_time_transforms():
    x = make((2, 600))
    window = torch.hann_window(64)
    for onesided in (True, False):
        compare(lambda x, w: torch.stft(x, 64, hop_length=16, window=w, center=False, onesided=onesided, return_complex=True), x, window, strides=True, atol=1e-4)
    compare(lambda x, w: torch.istft(torch.stft(x, 64, hop_length=16, window=w, center=False, return_complex=True), 64, 16, window=w, center=True), x, window,
            atol=1e-4)
    compare_gradients(lambda x: torch.stft(x, 50, window=torch.ones(50, device=x.device), center=False, return_complex=True).abs(), x, rtol=1e-4, atol=1e-4)


def test_plans_of_many_lengths_come_and_go():
    z = make((3, 400), C).to("mps")
    for _ in range(2):  # more tables than are kept
        for n in range(100, 200):
            expected = torch.fft.fft(z.cpu()[:, :n].to(torch.complex128))
            assert (torch.fft.fft(z[:, :n]).cpu() - expected).abs().max() < 1e-4


def test_streams_share_tables():
    z = make((20, 343), C).to("mps")
    torch.mps.synchronize()
    expected = torch.fft.fft(z).cpu()
    stream = torch.Stream(device="mps")
    with stream:
        other = torch.fft.fft(z)
    stream.synchronize()
    assert torch.equal(other.cpu(), expected)


@pytest.mark.parametrize("level", ["x86-64"])
def test_other_processors_agree(python, level):
    code = """
        import torch
        torch.manual_seed(0)
        for shape in ((33, 120), (17, 77), (20, 67), (1, 4096), (5, 1024)):
            z = torch.randn(shape, dtype=torch.complex64)
            for x in (z, z.real):
                e = torch.fft.fft(x.to(torch.complex128))
                assert (torch.fft.fft(x.to("mps")).cpu() - e).norm() <= 1e-6 * e.norm(), shape
        print("right")
    """
    result = python(code, OPENMPS_KERNEL_LEVEL=level)
    assert result.out.strip() == "right", result.err
