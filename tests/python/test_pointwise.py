# SPDX-License-Identifier: BSD-3-Clause
"""Pointwise operators against CPU PyTorch: every operator, dtype and layout, with special values."""
import itertools
import math

import pytest
import torch
import torch.nn.functional as F

FLOATS = [torch.float32, torch.float16, torch.bfloat16]
COMPLEX = [torch.complex64]
SIGNED = [torch.int8, torch.int16, torch.int32, torch.int64]
INTS = [torch.uint8, *SIGNED]
BOOL = [torch.bool]

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, math.inf, -math.inf, math.nan, 1e-8, -1e-8, 3.0, 30.0, -30.0, 1e4, 6.0, -6.0]
TOLERANCE = {torch.float32: (4e-6, 1e-6), torch.float16: (2e-3, 1e-3), torch.bfloat16: (1.6e-2, 1e-2), torch.complex64: (1e-5, 1e-5), torch.complex32: (1e-2, 2e-2)}


def values(shape, dtype, low=-4.0, high=4.0, seed=0, special=True):
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) > 0.5
    if dtype.is_complex:
        real, imaginary = (torch.rand(shape, generator=generator) * (high - low) + low for _ in range(2))
        return torch.complex(real, imaginary).to(dtype)
    if not dtype.is_floating_point:
        info = torch.iinfo(dtype)
        x = torch.randint(max(info.min, -60), min(info.max, 60) + 1, shape, generator=generator, dtype=torch.int64).to(dtype)
        if special and x.numel() > 4:
            x.view(-1)[:4] = torch.tensor([info.min, info.max, 0, 1], dtype=dtype)
        return x
    x = (torch.rand(shape, generator=generator) * (high - low) + low).to(dtype)
    if special and x.numel() > len(SPECIAL):
        x.view(-1)[: len(SPECIAL)] = torch.tensor(SPECIAL).to(dtype)
    return x


def layouts(x):
    """Views of equal values and shape on the device, in different layouts: (name, mps tensor)."""
    yield "contiguous", x.to("mps")
    if x.dim() >= 2:
        order = list(range(x.dim()))[::-1]
        yield "transposed", x.permute(order).contiguous().to("mps").permute(order)
        wide = torch.zeros([*x.shape[:-1], x.shape[-1] * 2 + 3], dtype=x.dtype).to("mps")
        strided = wide[..., 1 : 1 + 2 * x.shape[-1] : 2]
        strided.copy_(x.to("mps"))
        yield "strided", strided
    if x.dim() == 4:
        yield "channels_last", x.to("mps").contiguous(memory_format=torch.channels_last)
    flat = torch.zeros(x.numel() + 5, dtype=x.dtype).to("mps")
    offset = flat[5:].view(x.shape)
    offset.copy_(x.to("mps"))
    yield "offset", offset


def check(actual, expected, dtype=None, scale=1.0):
    assert actual.device.type == "mps"
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    rtol, atol = TOLERANCE.get(expected.dtype, (0.0, 0.0))
    torch.testing.assert_close(actual.cpu(), expected, rtol=rtol * scale, atol=atol * scale, equal_nan=True)


ALL = FLOATS + INTS
NUMBERS = FLOATS + INTS + COMPLEX
# name: (function, dtypes, (low, high))
UNARY = {
    **{name: (getattr(torch, name), FLOATS + COMPLEX + [torch.int32, torch.uint8, torch.bool], (-3, 3)) for name in
       "exp exp2 expm1 sin cos tan sinh cosh tanh asinh atan sigmoid sinc sqrt rsqrt log log2 log10 log1p acosh asin acos atanh".split()},
    **{name: (getattr(torch, name), FLOATS + [torch.int32, torch.uint8, torch.bool], (-3, 3)) for name in "erf erfc digamma lgamma i0".split()},
    "erfinv": (torch.erfinv, FLOATS, (-1, 1)),
    "logit": (torch.logit, FLOATS, (0, 1)),
    "logit_eps": (lambda x: torch.logit(x, 0.1), FLOATS, (0, 1)),
    "neg": (torch.neg, NUMBERS, (-4, 4)),
    "abs": (torch.abs, NUMBERS, (-4, 4)),
    "sign": (torch.sign, ALL + BOOL, (-4, 4)),
    "sgn": (torch.sgn, NUMBERS, (-4, 4)),
    "signbit": (torch.signbit, ALL + BOOL, (-4, 4)),
    "reciprocal": (torch.reciprocal, FLOATS + COMPLEX + [torch.int32], (-4, 4)),
    "conj_physical": (torch.conj_physical, NUMBERS, (-4, 4)),
    "angle": (torch.angle, FLOATS + COMPLEX + [torch.int32], (-4, 4)),
    "ceil": (torch.ceil, ALL, (-4, 4)), "floor": (torch.floor, ALL, (-4, 4)), "trunc": (torch.trunc, ALL, (-4, 4)),
    "round": (torch.round, ALL, (-4, 4)), "frac": (torch.frac, FLOATS, (-4, 4)),
    "round_2": (lambda x: torch.round(x, decimals=2), [torch.float32], (-4, 4)),
    "round_-1": (lambda x: torch.round(x, decimals=-1), [torch.float32], (-400, 400)),
    "isnan": (torch.isnan, NUMBERS, (-4, 4)), "isposinf": (torch.isposinf, ALL + BOOL, (-4, 4)), "isneginf": (torch.isneginf, ALL + BOOL, (-4, 4)),
    "isinf": (torch.isinf, ALL, (-4, 4)), "isfinite": (torch.isfinite, ALL, (-4, 4)),
    "nan_to_num": (torch.nan_to_num, NUMBERS, (-4, 4)), "nan_to_num_3": (lambda x: torch.nan_to_num(x, 1.0, 2.0, 3.0), FLOATS, (-4, 4)),
    "logical_not": (torch.logical_not, NUMBERS + BOOL, (-1, 1)), "bitwise_not": (torch.bitwise_not, INTS + BOOL, (-4, 4)),
    "relu": (torch.relu, ALL, (-4, 4)), "square": (torch.square, NUMBERS, (-4, 4)),
    "gelu": (F.gelu, FLOATS, (-6, 6)), "gelu_tanh": (lambda x: F.gelu(x, approximate="tanh"), FLOATS, (-6, 6)),
    "silu": (F.silu, FLOATS, (-6, 6)), "mish": (F.mish, FLOATS, (-6, 6)), "elu": (lambda x: F.elu(x, 1.5), FLOATS, (-6, 6)),
    "selu": (F.selu, FLOATS, (-6, 6)), "celu": (lambda x: F.celu(x, 2.0), FLOATS, (-6, 6)),
    "hardshrink": (F.hardshrink, FLOATS, (-2, 2)), "softshrink": (F.softshrink, FLOATS, (-2, 2)), "hardsigmoid": (F.hardsigmoid, FLOATS, (-6, 6)),
    "hardswish": (F.hardswish, FLOATS, (-6, 6)), "hardtanh": (F.hardtanh, FLOATS + SIGNED, (-3, 3)), "relu6": (F.relu6, FLOATS, (-8, 8)),
    "leaky_relu": (F.leaky_relu, FLOATS, (-6, 6)), "logsigmoid": (F.logsigmoid, FLOATS, (-6, 6)), "softplus": (F.softplus, FLOATS, (-6, 30)),
    "softplus_3": (lambda x: F.softplus(x, 3.0, 5.0), FLOATS, (-6, 6)), "threshold": (lambda x: F.threshold(x, 0.5, 3.0), FLOATS, (-2, 2)),
    "threshold_int": (lambda x: F.threshold(x, 1, 3), INTS, (-2, 2)), "glu": (lambda x: F.glu(x, -1), FLOATS, (-4, 4)),
    **{f"special_{name}": (getattr(torch.special, name), [torch.float32], (0.1, 8)) for name in
       "entr erfcx i0e i1 i1e bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 "
       "scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0".split()},
    "polygamma_1": (lambda x: torch.polygamma(1, x), [torch.float32], (0.5, 8)), "polygamma_3": (lambda x: torch.polygamma(3, x), [torch.float32], (0.5, 8)),
    "pow_0": (lambda x: x ** 0, NUMBERS, (-4, 4)), "pow_1": (lambda x: x ** 1, NUMBERS, (-4, 4)), "pow_2": (lambda x: x ** 2, NUMBERS, (-4, 4)),
    "pow_3": (lambda x: x ** 3, NUMBERS, (-4, 4)), "pow_5": (lambda x: x ** 5, FLOATS + INTS, (-3, 3)), "pow_0.5": (lambda x: x ** 0.5, FLOATS, (0, 4)),
    "pow_-1": (lambda x: x ** -1.0, FLOATS, (-4, 4)), "pow_-2": (lambda x: x ** -2.0, FLOATS, (-4, 4)), "pow_2.3": (lambda x: x ** 2.3, FLOATS, (0, 4)),
    "rpow": (lambda x: 2 ** x, FLOATS, (-4, 4)), "clamp": (lambda x: torch.clamp(x, -1, 2), FLOATS + SIGNED, (-4, 4)),
    "clamp_min": (lambda x: torch.clamp(x, min=1), ALL, (-4, 4)), "clamp_max": (lambda x: torch.clamp(x, max=1.5), ALL, (-4, 4)),
}
# Where the CPU itself answers otherwise for infinities or has no kernel, the finite values are compared.
UNARY.update({
    "special_ndtri": (torch.special.ndtri, [torch.float32], (0, 1)), "special_log_ndtr": (torch.special.log_ndtr, [torch.float32], (-20, 8)),
    "frexp_mantissa": (lambda x: torch.frexp(x)[0], FLOATS, (-9, 9)), "frexp_exponent": (lambda x: torch.frexp(x)[1], FLOATS, (-9, 9)),
})
FINITE = set("digamma lgamma i0 special_i1 special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 polygamma_1 polygamma_3 sinc "
             "special_modified_bessel_i0 special_modified_bessel_i1 special_i0e special_i1e special_erfcx special_log_ndtr frexp_exponent round_2 round_-1 mish gelu".split())
BINARY_SCALARS = [2, -1, 0.5, True]
BINARY = {
    "add": (torch.add, NUMBERS + BOOL), "add_alpha": (lambda a, b: torch.add(a, b, alpha=3), NUMBERS), "sub": (torch.sub, NUMBERS),
    "rsub": (lambda a, b: torch.rsub(a, b, alpha=2), NUMBERS), "mul": (torch.mul, NUMBERS + BOOL), "div": (torch.div, NUMBERS + BOOL),
    "div_trunc": (lambda a, b: torch.div(a, b, rounding_mode="trunc"), ALL), "div_floor": (lambda a, b: torch.div(a, b, rounding_mode="floor"), ALL),
    "floor_divide": (torch.floor_divide, ALL), "fmod": (torch.fmod, ALL), "remainder": (torch.remainder, ALL),
    "maximum": (torch.maximum, ALL + BOOL), "minimum": (torch.minimum, ALL + BOOL), "fmax": (torch.fmax, ALL + BOOL), "fmin": (torch.fmin, ALL + BOOL),
    "pow": (torch.pow, FLOATS), "atan2": (torch.atan2, FLOATS + [torch.int32]), "hypot": (torch.hypot, FLOATS), "copysign": (torch.copysign, FLOATS + [torch.int32]),
    "logaddexp": (torch.logaddexp, FLOATS), "logaddexp2": (torch.logaddexp2, FLOATS), "xlogy": (torch.xlogy, FLOATS + [torch.int32]),
    "xlog1py": (torch.special.xlog1py, FLOATS), "nextafter": (torch.nextafter, [torch.float32, torch.bfloat16]),
    "heaviside": (torch.heaviside, ALL + BOOL), "gcd": (torch.gcd, INTS), "lcm": (torch.lcm, INTS),
    **{name: (getattr(torch, name), ALL + BOOL) for name in "lt le gt ge".split()},
    **{name: (getattr(torch, name), NUMBERS + BOOL) for name in "eq ne".split()},
    **{name: (getattr(torch, name), NUMBERS + BOOL) for name in "logical_and logical_or logical_xor".split()},
    **{name: (getattr(torch, name), INTS + BOOL) for name in "bitwise_and bitwise_or bitwise_xor".split()},
    "lshift": (torch.bitwise_left_shift, INTS), "rshift": (torch.bitwise_right_shift, INTS),
}


def matrix(table):
    return [pytest.param(name, dtype, id=f"{name}-{str(dtype)[6:]}") for name, row in table.items() for dtype in row[1]]


def answer(function, *arguments):
    """(the CPU's result, None), or (None, the type of error it refuses with)."""
    try:
        return function(*arguments), None
    except (RuntimeError, TypeError) as error:
        return None, type(error)


def divide(a, b):
    """torch.div; where complex32 is made, the CPU has no kernel, and its complex64 quotient, rounded, is the reference."""
    if a.device == b.device == torch.device("cpu") and torch.result_type(a, b) == torch.complex32:
        return torch.div(a.to(torch.complex64), b.to(torch.complex64)).to(torch.complex32)
    return torch.div(a, b)


def divides(name):
    return name in ("div_trunc", "div_floor", "floor_divide", "fmod", "remainder")


@pytest.mark.parametrize("name, dtype", matrix(UNARY))
def test_unary(name, dtype):
    function, _, (low, high) = UNARY[name]
    scale = 8.0 if name in FINITE else 1.0
    for shape in [(2, 3, 4, 6), (40, 26), (30,), (0, 4)] + ([] if name == "glu" else [()]):  # glu halves a dimension
        x = values(shape, dtype, low, high, special=name not in FINITE)
        expected = function(x)
        for _, device in layouts(x):
            check(function(device), expected, scale=scale)


@pytest.mark.parametrize("name, dtype", matrix(BINARY))
def test_binary(name, dtype):
    function = BINARY[name][0]
    for left, right in [((40, 26), (40, 26)), ((2, 3, 4, 6), (3, 1, 6)), ((5,), (7, 5)), ((), (4, 4)), ((3, 4), ()), ((0, 3), (1, 3))]:
        a, b = values(left, dtype, seed=1), values(right, dtype, seed=2)
        if divides(name) and not dtype.is_floating_point:
            b = torch.where(b == 0, torch.ones_like(b), b)
        if "shift" in name:
            b = (b % 8).to(dtype)
        if name in ("gcd", "lcm") and dtype.is_signed:  # PyTorch's own division overflows at the smallest integer, and ends the process
            a, b = a.clamp(min=-100), b.clamp(min=-100)
        expected = function(a, b)
        for (_, x), (_, y) in itertools.islice(itertools.product(layouts(a), layouts(b)), 0, None, 2):
            check(function(x, y), expected)


@pytest.mark.parametrize("name, dtype", matrix({k: v for k, v in BINARY.items() if k in
                         "add sub mul div div_floor remainder maximum eq ne lt gt pow fmod".split()}))
@pytest.mark.parametrize("scalar", BINARY_SCALARS)
def test_scalars(name, dtype, scalar):
    function = {"maximum": lambda a, s: torch.clamp(a, min=s)}.get(name, BINARY[name][0])
    x = values((6, 25), dtype)
    if name == "maximum" and dtype == torch.bool and scalar is True:  # only the device takes it; a tensor's bound means the same to the CPU
        expected, refusal = torch.clamp(x, min=torch.tensor(True)), None
    else:
        expected, refusal = answer(function, x, scalar)
    for _, device in layouts(x):
        if refusal:
            with pytest.raises(refusal):
                function(device, scalar)
        else:
            check(function(device, scalar), expected)


@pytest.mark.parametrize("first", FLOATS + INTS + BOOL + COMPLEX)
@pytest.mark.parametrize("second", FLOATS + INTS + BOOL + COMPLEX)
def test_mixed_dtypes(first, second):
    # Adding infinity to a complex number, PyTorch multiplies it by alpha first: the other part becomes NaN. Here it stays.
    special = not (first.is_complex or second.is_complex)
    a, b = values((5, 30), first, seed=3, special=special), values((30,), second, seed=4, special=special)
    for function in (torch.add, torch.mul, divide, torch.eq, torch.ne, torch.lt, torch.maximum):
        zero = values((), second, seed=5)
        for x, y in ((a, b), (a, zero), (zero, a)):
            expected, refusal = answer(function, x, y)
            for left, right in ((x.to("mps"), y.to("mps")), (x if x.dim() == 0 else x.to("mps"), y if y.dim() == 0 else y.to("mps"))):
                if refusal:
                    with pytest.raises(refusal):
                        function(left, right)
                else:
                    check(function(left, right), expected)
    condition = values((5, 30), torch.bool, seed=6)
    check(torch.where(condition.to("mps"), a.to("mps"), b.to("mps")), torch.where(condition, a, b))


def test_comparisons_of_integers_are_exact():
    x = torch.tensor([2**53, 2**53 + 1, 2**62, -(2**62)], dtype=torch.int64)
    for y in (2**53, 2**53 + 1, torch.tensor(2**62)):
        check(x.to("mps") == y, x == y)
        check(x.to("mps") > y, x > y)
    small = torch.arange(0, 256).to(torch.uint8)
    check(small.to("mps") == -1, small == -1)
    check(small.to("mps") > -1, small > -1)
    half = torch.tensor([0.1, 0.2]).half()
    check(half.to("mps") == 0.1, half == 0.1)


@pytest.mark.parametrize("source", FLOATS + INTS + BOOL + COMPLEX + [torch.complex32])
@pytest.mark.parametrize("target", FLOATS + INTS + BOOL + COMPLEX + [torch.complex32])
def test_conversions(source, target):
    x = values((4, 30), torch.complex64 if source == torch.complex32 else source, -100, 100, special=False).to(source)
    if source.is_floating_point and target == torch.uint8:
        x = x.abs()
    expected = x.to(target)
    for _, device in layouts(x):
        got = device.to(target)
        assert got.dtype == target
        torch.testing.assert_close(torch.view_as_real(got.cpu()) if target.is_complex else got.cpu(),
                                   torch.view_as_real(expected) if target.is_complex else expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", NUMBERS + BOOL)
def test_copies_between_layouts(dtype):
    x = values((3, 4, 5, 6), dtype)
    for (_, source), (_, target) in itertools.product(layouts(x), layouts(torch.zeros_like(x))):
        target.copy_(source)
        assert torch.equal(target.cpu().nan_to_num() if dtype.is_floating_point else target.cpu(), x.nan_to_num() if dtype.is_floating_point else x)
    wide = torch.zeros(7, 3, 4, 5, 6, dtype=dtype, device="mps")
    wide.copy_(x.to("mps"))
    check(wide, x.expand(7, 3, 4, 5, 6).contiguous())


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
def test_three_operands(dtype):
    a, b, c = (values((6, 5, 7), dtype, seed=s, special=False) for s in (1, 2, 3))
    w = c[0] if dtype.is_complex else c[0].abs() / 4
    m = lambda t: t.to("mps")
    check(torch.addcmul(m(a), m(b), m(c), value=0.5), torch.addcmul(a, b, c, value=0.5), scale=2)
    check(torch.addcdiv(m(a), m(b), m(c), value=0.5), torch.addcdiv(a, b, c, value=0.5), scale=8)
    check(torch.lerp(m(a), m(b), m(w)), torch.lerp(a, b, w), scale=2)
    check(torch.lerp(m(a), m(b), 0.3), torch.lerp(a, b, 0.3), scale=2)
    if not dtype.is_complex:
        check(torch.clamp(m(a), m(b), m(c)), torch.clamp(a, b, c))
        check(torch.clamp(m(a), max=m(c[0])), torch.clamp(a, max=c[0]))


@pytest.mark.parametrize("dtype", ALL + BOOL + COMPLEX)
def test_choices(dtype):
    a, b, mask = values((6, 25), dtype, seed=1), values((25,), dtype, seed=2), values((6, 1), torch.bool, seed=3)
    m = lambda t: t.to("mps")
    check(torch.where(m(mask), m(a), m(b)), torch.where(mask, a, b))
    check(torch.where(m(mask), m(a), 1), torch.where(mask, a, 1))
    check(m(a).masked_fill(m(mask), 1), a.masked_fill(mask, 1))
    check(m(a).masked_fill(m(mask), torch.tensor(1, dtype=dtype)), a.masked_fill(mask, 1))
    x = m(a).t()
    x.masked_fill_(m(mask).t(), 0)
    check(x, a.masked_fill(mask, 0).t())
    filled = torch.empty(3, 4, dtype=dtype, device="mps").fill_(1)
    check(filled, torch.ones(3, 4, dtype=dtype))
    check(torch.full((3,), 7 if dtype != torch.bool else True, dtype=dtype, device="mps").zero_(), torch.zeros(3, dtype=dtype))


@pytest.mark.parametrize("dtype", FLOATS + [torch.int32])
def test_in_place_and_out(dtype):
    a, b = values((7, 40), dtype, seed=1), values((40,), dtype, seed=2)
    for _, x in layouts(a):
        alias = x
        x += b.to("mps")
        check(alias, a + b)
        x.mul_(2).sub_(1)
        check(x, (a + b).mul_(2).sub_(1))
    for _, out in layouts(torch.zeros_like(a)):
        torch.add(a.to("mps"), b.to("mps"), out=out)
        check(out, a + b)
    empty = torch.empty(0, dtype=dtype, device="mps")
    torch.mul(a.to("mps"), 3, out=empty)
    check(empty, a * 3)
    wide = torch.empty(7, 40, device="mps")
    torch.add(a.to("mps"), b.to("mps"), out=wide)
    if dtype in (torch.float32, torch.int32):
        check(wide, (a + b).float())
    square = values((30, 30), dtype, seed=4).to("mps")
    expected = square.cpu() + square.cpu().t()
    check(square.add_(square.t().clone()), expected)


def test_views_with_conjugate_and_negative_bits():
    z = values((4, 6), torch.complex64)
    d = z.to("mps")
    check(d.conj() * 2, z.conj() * 2)
    check(d.conj().imag.abs(), z.conj().imag.abs())
    check(d.conj().imag + d.imag, z.conj().imag + z.imag)
    check(d.conj().resolve_conj(), z.conj().resolve_conj())
    target = torch.zeros_like(d)
    target.conj().copy_(d)
    check(target, z.conj().resolve_conj())


GRADIENTS = "gelu gelu_tanh silu mish elu hardshrink softshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid softplus threshold relu glu".split() + [
    "sigmoid", "tanh", "logit_eps", "exp", "sqrt", "reciprocal", "erf", "sin", "celu", "selu", "lgamma"]


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients(name, dtype):
    function, _, (low, high) = UNARY[name]
    low = 0.2 if name in ("sqrt", "reciprocal", "lgamma") else low
    x, g = values((6, 30), dtype, low, high, special=False), values((6, 30), dtype, seed=9, special=False)
    g = g[:, :15] if name == "glu" else g
    reference, device = x.clone().requires_grad_(), x.to("mps").requires_grad_()
    function(reference).backward(g)
    function(device).backward(g.to("mps"))
    check(device.grad, reference.grad, scale=4)


def test_prelu_gradients():
    x, w = values((4, 3, 5), torch.float32, special=False), torch.tensor([0.1, 0.2, 0.3])
    results = []
    for device in ("cpu", "mps"):
        a, b = x.to(device, copy=True).requires_grad_(), w.to(device, copy=True).requires_grad_()
        F.prelu(a, b).square().sum().backward()
        results.append((a.grad, b.grad))
    check(results[1][0], results[0][0])
    check(results[1][1], results[0][1], scale=4)


def test_division_of_integers_by_zero_is_zero():
    x = torch.tensor([5, -5, 0], device="mps")
    for function in (lambda a, b: torch.div(a, b, rounding_mode="floor"), torch.remainder, torch.fmod):
        assert function(x, torch.zeros_like(x)).tolist() == [0, 0, 0]
    low = torch.tensor([-(2**31)], dtype=torch.int32, device="mps")
    assert torch.div(low, torch.tensor([-1], dtype=torch.int32, device="mps"), rounding_mode="trunc").tolist() == [-(2**31)]


@pytest.mark.parametrize("name", "igamma igammac zeta chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
                                 "hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u "
                                 "shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w".split())
def test_special_functions_of_two(name):
    function = getattr(torch.special, {"igamma": "gammainc", "igammac": "gammaincc"}.get(name, name))
    a = values((40,), torch.float32, 0.2, 30 if "gamma" in name else 5, special=False).reshape(40, 1)
    if "polynomial" in name:
        a, b = values((40, 1), torch.float32, -1.5, 1.5, special=False), torch.arange(0, 10).float()
        if "shifted" in name:
            a = a.abs()
    elif name == "zeta":
        a, b = a + 1.2, values((20,), torch.float32, 0.1, 20, special=False)
    else:
        b = values((50,), torch.float32, 0.05, 60, special=False)
    expected = function(a.double(), b.double()).float()
    torch.testing.assert_close(function(a.to("mps"), b.to("mps")).cpu(), expected, rtol=1e-4, atol=2e-5)


def test_polar_and_complex():
    a, b = values((5, 6), torch.float32, 0.1, 4, special=False), values((5, 6), torch.float32, special=False, seed=1)
    check(torch.polar(a.to("mps"), b.to("mps")), torch.polar(a, b))
    check(torch.complex(a.to("mps"), b.to("mps")), torch.complex(a, b))


@pytest.mark.parametrize("function", [torch.abs, torch.angle, torch.conj_physical, torch.logit, torch.nan_to_num, F.logsigmoid, torch.isinf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64, torch.int32])
def test_strides_of_functions_that_allocate_their_results(function, dtype):
    x = values((6, 8), dtype, special=False).t()
    if dtype == torch.complex64 and function in (torch.logit, F.logsigmoid) or dtype == torch.int32 and function is F.logsigmoid:
        return
    assert function(x.to("mps")).stride() == function(x).stride()
    if function not in (F.logsigmoid, torch.isinf):
        outs = [torch.empty(0, dtype=function(x).dtype, device=device) for device in ("cpu", "mps")]
        assert function(x.to("mps"), out=outs[1]).stride() == function(x, out=outs[0]).stride()


@pytest.mark.parametrize("call", [lambda x, o: torch.abs(x, out=o), lambda x, o: torch.conj_physical(x, out=o), lambda x, o: torch.heaviside(x, x, out=o),
                                  lambda x, o: torch.frexp(x, out=(o, o)), lambda x, o: torch._C._nn.log_sigmoid(x, out=o),
                                  lambda x, o: F.gelu(x, approximate="asdf")])
def test_texts_of_refusals(call):
    texts = []
    for device in ("cpu", "mps"):
        with pytest.raises(Exception) as raised:
            call(torch.zeros(3, device=device), torch.zeros(3, dtype=torch.int64, device=device))
        texts.append((raised.type, str(raised.value)))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("grad,mask", [(torch.int32, torch.bool), (torch.bool, torch.bool), (torch.complex64, torch.bool), (torch.float32, torch.int64),
                                       (torch.float16, torch.float32)])
def test_dropout_backward_takes_any_dtype(grad, mask):
    expected = torch.ops.aten.native_dropout_backward(torch.tensor([1, 2, 0, 5]).to(grad), torch.tensor([1, 0, 1, 1]).to(mask), 1.25)
    actual = torch.ops.aten.native_dropout_backward(torch.tensor([1, 2, 0, 5]).to(grad).to("mps"), torch.tensor([1, 0, 1, 1]).to(mask).to("mps"), 1.25)
    torch.testing.assert_close(actual.cpu(), expected, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_ldexp(dtype):
    """Whole exponents of every dtype scale exactly; 0-d, broadcast, in place, out=, with gradients; mixed with other operands."""
    x = values((5, 7), dtype)
    for integer in INTS:
        n = (torch.arange(7) * 9 - (0 if integer == torch.uint8 else 30)).to(integer)
        check(torch.ldexp(x.to("mps"), n.to("mps")), torch.ldexp(x, n))
        check(torch.ldexp(x.to("mps").t(), n[0].to("mps")), torch.ldexp(x.t(), n[0]))
        check(x.to("mps").ldexp_(n.to("mps")), x.clone().ldexp_(n))
        out = torch.empty(14, 5, dtype=dtype, device="mps")[::2].t()
        check(torch.ldexp(x.to("mps"), n.to("mps"), out=out), torch.ldexp(x, n))
    far = torch.tensor([2**31 - 1, -(2**31), 128, 1000, -1000, -149, 0])
    check(torch.ldexp(x.to("mps"), far.to("mps")), torch.ldexp(x, far))
    cpu, mps = x.nan_to_num(1, 1, 1).requires_grad_(), x.nan_to_num(1, 1, 1).to("mps").requires_grad_()
    small = torch.arange(7) - 3
    check(torch.autograd.grad(torch.ldexp(mps, small.to("mps")).sum(), mps)[0], torch.autograd.grad(torch.ldexp(cpu, small).sum(), cpu)[0])
    check(torch.ldexp(x.to("mps"), torch.full((7,), 0.5).to("mps")), torch.ldexp(x, torch.full((7,), 0.5)))
    check(torch.ldexp(torch.arange(5).to("mps"), torch.arange(5).to("mps")), torch.ldexp(torch.arange(5), torch.arange(5)))
    with pytest.raises(RuntimeError, match="The size of tensor a"):
        torch.ldexp(x.to("mps"), torch.arange(4).to("mps"))
    with pytest.raises(RuntimeError, match="ldexp can't be cast to the desired output type Int"):
        torch.ldexp(x.to("mps"), small.to("mps"), out=torch.empty(5, 7, dtype=torch.int32, device="mps"))


@pytest.mark.parametrize("alpha", [True, False, 1, 2])
def test_sums_of_bool_into_out(alpha):
    a, b = values((6, 7), torch.bool), values((6, 7), torch.bool, seed=1)
    for make_out in (lambda device: torch.empty(7, 6, dtype=torch.bool, device=device).t(), lambda device: torch.empty(0, dtype=torch.bool, device=device),
                     lambda device: torch.ones(12, 7, dtype=torch.bool, device=device)[::2]):
        expected, out = torch.add(a, b, alpha=alpha, out=make_out("cpu")), make_out("mps")
        assert torch.add(a.to("mps"), b.to("mps"), alpha=alpha, out=out) is out
        check(out, expected)
