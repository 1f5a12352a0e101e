# SPDX-License-Identifier: BSD-3-Clause
"""Running results: cumsum, cumprod, cummax, cummin, logcumsumexp, and what is made of them."""
import math
import os
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from compare import COMPLEX, FLOATS, INTEGERS, REDUCED, assert_same, compare, compare_errors, compare_gradients, layouts, make, to_mps

NUMBERS = FLOATS + INTEGERS + COMPLEX
ORDERED = FLOATS + INTEGERS + (torch.bool,)
INF, NAN = float("inf"), float("nan")


def functions(dtype):
    names = ["cumsum", "cumprod"]
    names += ["logcumsumexp"] if dtype.is_floating_point or dtype.is_complex else []
    names += [] if dtype.is_complex else ["cummax", "cummin"]
    return names


def tolerance(dtype):
    """Halves: the CPU's float accumulator may round another way. Complex logarithms: a few ulp of both parts."""
    return {torch.float16: (2e-3, 4e-3), torch.bfloat16: (1.6e-2, 3e-2)}.get(dtype, (None, None))


def check(name, x, dim, **options):
    rtol, atol = tolerance(x.dtype)
    compare(lambda x: getattr(torch, name)(x, dim, **options), x, rtol=rtol, atol=atol, strides=x.is_contiguous())


@pytest.mark.parametrize("dtype", NUMBERS + (torch.bool,))
def test_layouts_and_dimensions(dtype):
    for shape in ((5, 7, 9), (2, 3, 20, 150), (3, 130, 17)):
        for _, x in layouts(make(shape, dtype, low=-2, high=3)):
            for dim in range(x.dim()):
                for name in functions(dtype):
                    check(name, x, dim)


@pytest.mark.parametrize("dtype", NUMBERS + (torch.bool,))
def test_small_and_empty(dtype):
    for name in functions(dtype):
        check(name, make((), dtype), 0)
        check(name, make((), dtype), -1)
        check(name, make((1,), dtype), 0)
        check(name, make((1, 1, 1), dtype), 1)
        for shape, dim in (((0,), 0), ((3, 0), 0), ((3, 0), 1), ((0, 4), 1)):
            check(name, make(shape, dtype), dim)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
@pytest.mark.parametrize("source", ORDERED + (torch.uint16, torch.uint32, torch.uint64))
def test_dtype_argument(name, source):
    x = torch.tensor([[3, 2, 1, 100, 2], [1, 1, 5, 4, 127]]).to(source)
    for dtype in (None,) + NUMBERS:
        if source.is_floating_point and dtype in INTEGERS:
            continue  # values that do not fit are undefined
        compare(lambda x: getattr(x, name)(1, dtype=dtype), x)
    compare(lambda x: getattr(x, name)(0, dtype=torch.int32), torch.tensor([1.5, 2.5, -3.9]))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap(dtype):
    info = torch.iinfo(dtype)
    x = torch.randint(info.min, min(info.max, 2**62), (3, 500), generator=torch.Generator().manual_seed(0)).to(dtype)
    for name in ("cumsum", "cumprod"):
        compare(lambda x: getattr(x, name)(1, dtype=dtype), x)
        compare(lambda x: getattr(x, name)(0), x)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(name, dtype):
    values = (NAN, INF, -INF, 0.0, -0.0, 1.0, -2.0)
    rows = torch.tensor([(a, b, c, d) for a in values for b in values for c in values for d in values]).to(dtype)
    compare(lambda x: getattr(x, name)(1), rows)
    compare(lambda x: getattr(x, name)(0), rows.t().contiguous())
    wide = rows.repeat_interleave(40, 1)  # groups of whole lanes
    compare(lambda x: getattr(x, name)(1), wide)
    if name in ("cummax", "cummin", "cumsum", "cumprod"):
        result = getattr(torch.tensor([0.0, -0.0, 0.0, -0.0], device="mps"), name)(0)
        expected = getattr(torch.tensor([0.0, -0.0, 0.0, -0.0]), name)(0)
        values = (result, expected) if name in ("cumsum", "cumprod") else (result[0], expected[0])
        assert torch.equal(values[0].signbit().cpu(), values[1].signbit())


@pytest.mark.parametrize("dtype", ORDERED)
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_extremes_have_the_last_place(name, dtype):
    compare(lambda x: getattr(x, name)(0), make((1000,), dtype, low=0, high=4, special=True))
    compare(lambda x: getattr(x, name)(0), make((300, 40), dtype, low=0, high=4, special=True))
    compare(lambda x: getattr(x, name)(0), torch.arange(1000).to(dtype))
    compare(lambda x: getattr(x, name)(0), torch.arange(1000, 0, -1).to(dtype))
    if not dtype.is_floating_point and dtype != torch.bool:
        info = torch.iinfo(dtype)
        compare(lambda x: getattr(x, name)(0), torch.tensor([info.min, info.max, info.min, info.max - 1, info.min + 1], dtype=dtype))


@pytest.mark.parametrize("shape,dim", [((300_001,), 0), ((2, 150_000), 1), ((20_000, 30), 0), ((9_000, 100), 0), ((140_000, 3), 0)])
def test_long_rows_are_as_right_as_double(shape, dim):
    x = make(shape)
    expected = x.double().cumsum(dim).float()
    assert_same(x.to("mps").cumsum(dim), expected, rtol=1.2e-7, atol=0)
    near_one = 1 + 0.001 * x
    assert_same(near_one.to("mps").cumprod(dim), near_one.double().cumprod(dim).float(), rtol=1.2e-7, atol=0)
    assert_same(x.to("mps").logcumsumexp(dim), x.double().logcumsumexp(dim).float(), rtol=1e-6, atol=1e-6)
    for dtype in (torch.float32, torch.int64, torch.uint8):
        for name in ("cummax", "cummin"):
            check(name, make(shape, dtype, high=5), dim)
    check("cumsum", make(shape, torch.int64), dim)
    check("cumsum", make(shape, torch.bool), dim)
    check("cumsum", make(shape, torch.complex64), dim)


def test_sums_of_many_and_of_what_cancels():
    ones = torch.ones(20_000_000, device="mps")
    assert ones.cumsum(0)[-1].item() == 20_000_000.0
    assert torch.ones(5000, dtype=torch.float16, device="mps").cumsum(0)[-1].item() == 5000.0
    assert torch.zeros(300_000, device="mps").logcumsumexp(0)[-1].item() == pytest.approx(math.log(300_000), rel=1e-7)
    x = torch.tensor([1e8, 1.0, -1e8, 1e-3] * 300)
    compare(lambda x: x.cumsum(0), x, rtol=1e-6, atol=0)


def test_beyond_the_range_of_float():
    for x in ([3e38, 3e38, -3e38, -3e38, 1e-30], [3e38, 1e38, -1e38], [-3e38] * 5 + [3e38] * 5, [1e38] * 300 + [-1e38] * 300):
        compare(lambda x: x.cumsum(0), torch.tensor(x), rtol=0, atol=0)
        compare(lambda x: x.cumsum(0), torch.tensor(x)[:, None].repeat(1, 20), rtol=0, atol=0)
    far = ([2.0] * 1100 + [0.5] * 1100, [0.5] * 1200 + [2.0] * 1300)
    for x in ([1e30, 1e30, 1e-30, 1e-30], [1e-30, 1e-30, 1e30], [1e-40, 1e30], [1e30] * 3 + [0.0, INF], *far):
        compare(lambda x: x.cumprod(0), torch.tensor(x), rtol=0, atol=0)
        compare(lambda x: x.cumprod(0), torch.tensor(x)[:, None].repeat(1, 20), rtol=0, atol=0)
    z = torch.tensor([1e30 + 1e30j, 2 - 3j, 1e20j, 1e-35 + 1e-36j, 1e-30, 1e-30])
    compare(lambda z: z.cumprod(0), z)


def test_logarithms_go_on_beyond_pi():
    z = torch.complex(torch.zeros(500), torch.linspace(-20, 20, 500))
    compare(lambda z: z.logcumsumexp(0), z, rtol=1e-5, atol=1e-4)
    z = torch.tensor([complex(a, b) for a in (1.0, -1.0, -INF, 200.0) for b in (0.0, 3.0, -40.0)]).repeat(3)
    compare(lambda z: z.logcumsumexp(0), z, rtol=1e-5, atol=1e-5)
    compare(lambda x: x.logcumsumexp(0), torch.linspace(-1000, 1000, 2000))
    compare(lambda x: x.logcumsumexp(0), torch.linspace(1000, -1000, 2000))


def test_out_in_place_and_overlaps():
    x = make((6, 40))
    for name in ("cumsum", "cumprod"):
        compare(lambda x, out: getattr(torch, name)(x, 1, out=out), x, torch.empty(40, 6).t())
        compare(lambda x, out: getattr(torch, name)(x, 1, out=out), x, torch.empty(6, 40, dtype=torch.float16), rtol=2e-3, atol=2e-3)
        compare(lambda x: getattr(x, name + "_")(1), x)
        compare(lambda x: getattr(x[:, ::2], name + "_")(0), x)
        compare(lambda x: getattr(x.t(), name + "_")(0), x)
        compare(lambda x: getattr(x, name + "_")(0), make((5, 6), torch.int32))
        long = make((200_000,))
        compare(lambda x: getattr(x, name + "_")(0), long)
    moved = to_mps(make((9, 40)))
    expected = moved[1:].cumsum(1)
    torch.cumsum(moved[1:], 1, out=moved[:-1])
    assert torch.equal(moved[:-1], expected)
    compare(lambda x, v, i: torch.cummax(x, 1, out=(v, i)), x, torch.empty(40, 6).t(), torch.empty(6, 80, dtype=torch.long)[:, ::2])
    compare(lambda x, out: torch.logcumsumexp(x, 0, out=out), x, torch.empty(40, 6).t())
    compare(lambda x, out: torch.logcumsumexp(x, 0, out=out), x, torch.empty(0))
    compare(lambda x: x.conj().cumsum(0), make((4, 5), torch.complex64))
    compare(lambda x: x.conj().cumprod(1), make((4, 5), torch.complex64))
    compare(lambda x: torch._neg_view(x).cumsum(0), make((4, 5)))


def test_errors_are_the_cpus():
    x = make((4, 5))
    for name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"):
        compare_errors(lambda x: getattr(x, name)(2), x)
        compare_errors(lambda x: getattr(x, name)(-3), x)
    for dtype in (torch.bool, torch.uint16, torch.uint32, torch.uint64):
        compare_errors(lambda x: x.cumsum(0, dtype=dtype), x)
        compare_errors(lambda x: x.cumprod(0, dtype=dtype), x)
        compare_errors(lambda x: x.logcumsumexp(0), make((4, 5), dtype))
        if dtype != torch.bool:
            compare_errors(lambda x: x.cummax(0), make((4, 5), dtype))
    compare_errors(lambda x: x.logcumsumexp(0), make((4, 5), torch.int64))
    compare_errors(lambda x: x.cummin(0), make((4, 5), torch.complex64))
    compare_errors(lambda x: x.cumsum_(0, dtype=torch.int64), x)
    compare_errors(lambda x, out: torch.cumsum(x, 0, dtype=torch.int32, out=out), x, torch.empty(4, 5))


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
def test_gradients(dtype):
    x = make((5, 30), dtype)
    rtol, atol = {torch.float16: (5e-3, 2e-2), torch.bfloat16: (4e-2, 2e-1)}.get(dtype, (1e-4, 1e-4))
    for name in functions(dtype):
        if name == "cumprod" and dtype in REDUCED:
            continue  # quotients of rounded products: the CPU itself is far from right
        if name in ("cummax", "cummin"):
            compare_gradients(lambda x: getattr(x, name)(1)[0], x, rtol=rtol, atol=atol)
        else:
            compare_gradients(lambda x: getattr(x, name)(1), x, rtol=rtol, atol=atol)
    with_zeros = make((4, 6), low=-2, high=3, dtype=torch.int64).float()
    compare_gradients(lambda x: x.cumprod(1), with_zeros)


def test_what_is_made_of_them():
    x, y = make((6, 50)), make((6, 50), seed=3)
    compare(lambda x: torch.cumulative_trapezoid(x, dx=0.5), x)
    compare(lambda y, x: torch.cumulative_trapezoid(y, x, dim=0), y, x)
    compare(lambda y, x: torch.trapezoid(y, x), y, x)
    compare(lambda x: x.diff(n=2, dim=0), x)
    compare(lambda x: torch.where(x.isnan(), 0, x).cumsum(1), make((6, 50), special=True).clamp(-10, 10))
    compare(lambda x: x.flip(1).cumsum(1).flip(1), x)
    compare(lambda x: (x > 0).cumsum(-1), x)
    compare(lambda x: torch.nn.functional.softmax(x, -1).cumsum(-1) > 0.9, x)


@st.composite
def calls(draw):
    dtype = draw(st.sampled_from((torch.float32, torch.float32, torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64)))
    shape = draw(st.lists(st.sampled_from((1, 2, 3, 7, 17, 65, 130, 300)), min_size=1, max_size=4).filter(lambda s: math.prod(s) <= 40_000))
    x = make([2 * n for n in shape] if draw(st.booleans()) else shape, dtype, seed=draw(st.integers(0, 99)), low=-2, high=3)
    for dim, size in enumerate(shape):
        if x.shape[dim] == 2 * size:
            x = x.narrow(dim, draw(st.integers(0, size)), size) if draw(st.booleans()) else x[(slice(None),) * dim + (slice(draw(st.integers(0, 1)), None, 2),)]
    x = x.permute(draw(st.permutations(range(x.dim()))))
    if draw(st.booleans()):
        x = x[:1].expand(x.shape)
    return draw(st.sampled_from(functions(dtype))), x, draw(st.integers(-x.dim(), x.dim() - 1))


@settings(max_examples=120, deadline=None)
@given(calls())
def test_any_layout_gives_the_cpus_result(call):
    name, x, dim = call
    if x.dtype == torch.complex64 and name == "logcumsumexp":
        # Where the sum nearly cancels, its logarithm is a matter of rounding.
        x = torch.complex(x.real, x.imag * 0.2)
    compare(lambda x: getattr(torch, name)(x, dim), x, rtol=1e-5 if name == "logcumsumexp" else None)


HASHES = """
import hashlib, torch
g = torch.Generator().manual_seed(0)
for shape in ((300_000, 1), (10_000, 20), (70, 900)):
    x = torch.randn(shape, generator=g).to("mps")
    for name in ("cumsum", "cumprod", "logcumsumexp", "softmax"):
        print(hashlib.sha256(getattr(x, name)(0).cpu().numpy().tobytes()).hexdigest())
"""


def test_the_number_of_threads_changes_nothing():
    def run(threads):
        environment = {**os.environ, "OPENMPS_THREADS": threads}
        return subprocess.run([sys.executable, "-c", HASHES], env=environment, check=True, capture_output=True, text=True).stdout

    assert run("1") == run("3")
