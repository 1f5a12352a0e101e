# SPDX-License-Identifier: BSD-3-Clause
"""Maths of kernels/include against double references: accuracy, equal bits on every processor level, and
values that do not depend on their position. The table UNARY records the errors that were measured; the
limits are those, rounded up, and never above 2 ulp."""
import os
from fractions import Fraction

import numpy as np
import pytest

import metal_build as build

np.seterr(all="ignore")
STEP = int(os.environ.get("OPENMPS_TEST_STEP", "997"))  # distance of the sampled bit patterns

# ---- references -----------------------------------------------------------------------------------


def half_turns(x, shift):
    """sin(pi x + shift pi/2), the argument reduced exactly."""
    n = np.rint(2 * x)
    r = (2 * x - n) * (np.pi / 2)
    quadrant = np.where(np.isfinite(n), np.mod(n, 4), 0).astype(int) + shift
    value = np.where(quadrant & 1, np.cos(r), np.sin(r))
    value = np.where(quadrant & 2, -value, value)
    return np.where(np.isfinite(x), value, np.nan)


def sinpi(x):
    s = half_turns(x, 0)
    return np.where(s == 0, np.copysign(0.0, x), s)


def cospi(x):
    return half_turns(x, 1) + 0.0


def tanpi(x):
    s, c = half_turns(x, 0), half_turns(x, 1)
    return np.where(s == 0, np.copysign(0.0, x), s / c)


def round_away(x):
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def fract(x):
    return np.minimum(x - np.floor(x), np.float32(0.99999994).astype(float))


# name: (reference in double, limit in ulp)
UNARY = {
    "acos": (np.arccos, 1.1), "acosh": (np.arccosh, 0.51), "asin": (np.arcsin, 1.2), "asinh": (np.arcsinh, 0.51),
    "atan": (np.arctan, 1.5), "atanh": (np.arctanh, 0.51), "ceil": (np.ceil, 0), "cos": (np.cos, 0.51),
    "cosh": (np.cosh, 1.5), "cospi": (cospi, 0.51), "exp": (np.exp, 1.0), "exp2": (np.exp2, 1.1),
    "exp10": (lambda x: 10.0 ** x, 1.2), "floor": (np.floor, 0), "fract": (fract, 0.5), "log": (np.log, 0.9),
    "log2": (np.log2, 0.9), "log10": (np.log10, 0.8), "rint": (np.rint, 0), "round": (round_away, 0),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.5), "sin": (np.sin, 0.51), "sinh": (np.sinh, 1.7), "sinpi": (sinpi, 0.51),
    "sqrt": (np.sqrt, 0.5), "tan": (np.tan, 0.51), "tanh": (np.tanh, 1.4), "tanpi": (tanpi, 0.51),
    "trunc": (np.trunc, 0), "fabs": (np.abs, 0), "expm1": (np.expm1, 1.5), "log1p": (np.log1p, 0.9),
}
INTERNAL = ("expm1", "log1p")  # not in Metal: kernels reach them only through openmps_math
BINARY = {
    "atan2": (np.arctan2, 1.8), "pow": (np.power, 0.51), "fmod": (np.fmod, 0), "fmin": (np.fmin, 0),
    "fmax": (np.fmax, 0), "copysign": (np.copysign, 0),
}

# ---- kernels --------------------------------------------------------------------------------------


def loop(name, expression, inputs, result, kind):
    parameters = ", ".join(f"const {kind}* __restrict {v}" for v in inputs)
    body = expression.format(*[f"{v}[i]" for v in inputs])
    return (f'extern "C" void {name}({parameters}, {result}* __restrict r, long n) '
            f"{{ for (long i = 0; i < n; ++i) r[i] = {body}; }}\n")


def qualified(name):
    return f"openmps_math::{name}" if name in INTERNAL else f"metal::{name}"


def unary_text(kind, names):
    return "#include <metal_stdlib>\n" + "".join(
        loop(f"f_{name}", qualified(name) + "({})", "x", kind, kind) for name in names)


FLOAT_TEXT = unary_text("float", UNARY)
BINARY_TEXT = "#include <metal_stdlib>\n" + "".join(
    loop(f"f_{name}", f"metal::{name}({{}}, {{}})", "xy", "float", "float")
    for name in (*BINARY, "powr", "fdim", "nextafter")) + loop("f_fma", "metal::fma({}, {}, {})", "xyz", "float", "float")
SMALL_NAMES = [n for n in UNARY if n not in INTERNAL]

# ---- samples and errors ---------------------------------------------------------------------------

SPECIAL_BITS = [0x00000000, 0x00800000, 0x3F000000, 0x3F3504F3, 0x3F800000, 0x3FB504F3, 0x3FC90FDB, 0x40490FDB,
                0x41200000, 0x42AEAC50, 0x42B17218, 0x42B2D4FC, 0x42CE8ED0, 0x4B000000, 0x4B800000, 0x7F800000]


def samples():
    """Every STEP-th pattern, and 600 around each special value of either sign."""
    parts = [np.arange(0, 2 ** 32, STEP, dtype=np.uint64)]
    for bits in SPECIAL_BITS:
        near = np.clip(np.arange(-300, 300) + bits, 0, 2 ** 31 - 1).astype(np.uint64)
        parts += [near, near + 2 ** 31]
    return np.concatenate(parts).astype(np.uint32).view(np.float32)


@pytest.fixture(scope="module")
def x32():
    return samples()


def error_in_ulps(result, exact, mantissa=24, least=-149, top=128):
    """|result - exact| in units of the exact value's last place; infinite where kind or zero's sign differ."""
    result = result.astype(np.float64)
    limit = 2.0 ** top
    exact_held = np.clip(exact, -limit, limit)
    result_held = np.clip(result, -limit, limit)
    exponent = np.clip(np.frexp(np.where(np.isnan(exact), 1.0, exact_held))[1] - mantissa, least, top - mantissa)
    error = np.abs(result_held - exact_held) / np.ldexp(1.0, exponent)
    error[np.isnan(exact)] = 0
    error[np.isnan(exact) != np.isnan(result)] = np.inf
    error[(exact == 0) & (result != 0)] = np.inf
    error[((exact == 0) | (result == 0)) & (np.signbit(exact) != np.signbit(result)) & ~np.isnan(exact)] = np.inf
    return error


def check(error, limit, *shown):
    worst = int(np.argmax(error))
    assert error[worst] <= limit, f"{error[worst]} ulp at {[repr(v[worst]) for v in shown]}"


def same_bits(a, b, bfloat=False):
    """Equal bits; a NaN equals any NaN, since which operand's payload survives is the compiler's choice."""
    unsigned = {2: np.uint16, 4: np.uint32}[a.dtype.itemsize]
    values = [bfloat_values(v) if bfloat else v for v in (a, b)]
    a_nan, b_nan = (np.isnan(v) if v.dtype.kind == "f" else False for v in values)
    return bool(np.all((a.view(unsigned) == b.view(unsigned)) | (a_nan & b_nan)))


def on_all_levels(text, name, *arrays, out=np.float32, bfloat=False):
    """The result, after a check that all levels give the same bits."""
    results = [build.call(build.load(text, level), name, *arrays, out=out) for level in build.LEVELS]
    for level, other in zip(build.LEVELS[1:], results[1:]):
        assert same_bits(results[0], other, bfloat), f"{name}: {level} differs from {build.LEVELS[0]}"
    return results[-1]


# ---- float ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", UNARY)
def test_float_unary(name, x32):
    reference, limit = UNARY[name]
    result = on_all_levels(FLOAT_TEXT, f"f_{name}", x32)
    exact = reference(x32.astype(np.float64))
    if name == "expm1" or name == "asinh":  # these lose the sign of zero or of tiny values in some libraries
        exact = np.where(np.abs(x32) < 1e-30, x32.astype(np.float64), exact)
    check(error_in_ulps(result, exact), limit, x32, result, exact)


@pytest.mark.parametrize("name", [*UNARY])
def test_a_value_does_not_depend_on_its_position(name, x32):
    x = np.ascontiguousarray(x32[::4999][:1500])
    for level in build.LEVELS:
        library = build.load(FLOAT_TEXT, level)
        whole = build.call(library, f"f_{name}", x)
        alone = np.concatenate([build.call(library, f"f_{name}", x[i:i + 1]) for i in range(0, len(x), 5)])
        assert same_bits(whole[::5], alone)
        for start in (1, 3, 7):  # other offsets put each element into another lane or the tail
            assert same_bits(whole[start:start + 1003], build.call(library, f"f_{name}", x[start:start + 1003]))


def pairs(seed, count=400_000):
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2 ** 32, (2, count), dtype=np.uint32)
    x, y = bits.view(np.float32)
    near = rng.uniform(-4, 4, (2, count)).astype(np.float32)
    specials = np.array([0, 1, 2, 3, 0.5, 1 / 3, 2.5, 1e-45, 1.1754944e-38, 3.4028235e38, np.inf, np.nan, 16777215,
                         16777216, 33554432, 8388609, 127, 128, 149, 150, 0.99999994, 1.0000001], np.float32)
    specials = np.concatenate([specials, -specials])
    sx, sy = (v.ravel() for v in np.meshgrid(specials, specials))
    return np.concatenate([x, near[0], sx]), np.concatenate([y, near[1], sy])


@pytest.mark.parametrize("name", BINARY)
def test_float_binary(name):
    x, y = pairs(1)
    if name == "pow":  # exponents that keep the result in range, and bases near 1
        rng = np.random.default_rng(2)
        base = np.exp2(rng.uniform(-126, 127, 400_000)).astype(np.float32)
        power = (rng.uniform(-152, 130, base.size) / np.log2(base)).astype(np.float32)
        close = (1 + rng.uniform(-1e-3, 1e-3, base.size)).astype(np.float32)
        high = (rng.uniform(-150, 128, base.size) / np.log2(close.astype(float))).astype(np.float32)
        whole = rng.integers(-40, 40, base.size).astype(np.float32)
        x = np.concatenate([x, base, close, -base])
        y = np.concatenate([y, power, high, whole])
    reference, limit = BINARY[name]
    result = on_all_levels(BINARY_TEXT, f"f_{name}", x, y)
    wide = np.longdouble if name == "pow" else np.float64
    exact = reference(x.astype(wide), y.astype(wide)).astype(np.float64)
    if name in ("fmin", "fmax"):  # of two zeros either may come out
        zeros = (x == 0) & (y == 0)
        x, y, result, exact = x[~zeros], y[~zeros], result[~zeros], exact[~zeros]
    check(error_in_ulps(result, exact), limit, x, y, result, exact)


def test_powr_and_fdim():
    x, y = pairs(3, 100_000)
    result = on_all_levels(BINARY_TEXT, "f_powr", np.abs(x), y)
    exact = np.abs(x).astype(np.float64) ** y
    plain = ~np.isnan(x) & ~np.isnan(y)
    check(error_in_ulps(result, exact)[plain], 0.51, x[plain], y[plain], result[plain])
    assert np.all(np.isnan(on_all_levels(BINARY_TEXT, "f_powr", -np.abs(x), y))[x != 0])
    difference = on_all_levels(BINARY_TEXT, "f_fdim", x, y)
    expected = np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(x > y, x - y, np.float32(0))).astype(np.float32)
    assert same_bits(difference, expected)


def test_nextafter():
    x, y = pairs(4, 100_000)
    assert same_bits(on_all_levels(BINARY_TEXT, "f_nextafter", x, y), np.nextafter(x, y))


def float_of_fraction(value):
    """A rational rounded once to float: scaled to 24 bits or to the subnormal unit, then ties to even."""
    if value == 0:
        return np.float32(0)
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if magnitude < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - 23, -149)
    return np.float32(float(round(magnitude / unit) * unit) * (1 if value > 0 else -1))


def test_fma_is_rounded_once():
    rng = np.random.default_rng(5)
    bits = rng.integers(0, 2 ** 32, (3, 300_000), dtype=np.uint32).view(np.float32)
    x, y = rng.uniform(-2, 2, (2, 300_000)).astype(np.float32)
    # Sums near a tie of the product's last place, and near cancellation.
    z = np.concatenate([(-(x * y))[:100_000], (x * y * np.float32(2) ** 24)[:100_000],
                        rng.uniform(-1e-6, 1e-6, 100_000).astype(np.float32)])
    tie_x = (1 + rng.integers(0, 2 ** 12, 50_000) * 2.0 ** -12).astype(np.float32)
    tie_y = (1 + rng.integers(0, 2 ** 12, 50_000) * 2.0 ** -12).astype(np.float32)
    tie_z = (rng.choice([-1, 1], 50_000) * 2.0 ** rng.integers(-100, -24, 50_000)).astype(np.float32)
    x, y, z = (np.concatenate(v) for v in ((bits[0], x, tie_x), (bits[1], y, tie_y), (bits[2], z, tie_z)))
    result = on_all_levels(BINARY_TEXT, "f_fma", x, y, z)
    for i in range(300_000, len(x), 97):
        exact = Fraction(float(x[i])) * Fraction(float(y[i])) + Fraction(float(z[i]))
        assert result[i] == float_of_fraction(exact), (x[i], y[i], z[i], result[i])


SECOND_RESULT = """#include <metal_stdlib>
extern "C" void f_modf(const float* x, float* whole, float* r, long n) { for (long i = 0; i < n; ++i) r[i] = metal::modf(x[i], whole[i]); }
extern "C" void f_sincos(const float* x, float* c, float* r, long n) { for (long i = 0; i < n; ++i) r[i] = metal::sincos(x[i], c[i]); }
extern "C" void f_sin(const float* x, float* r, long n) { for (long i = 0; i < n; ++i) r[i] = metal::sin(x[i]); }
extern "C" void f_cos(const float* x, float* r, long n) { for (long i = 0; i < n; ++i) r[i] = metal::cos(x[i]); }
extern "C" void f_frexp(const float* x, int* e, float* r, long n) { for (long i = 0; i < n; ++i) r[i] = metal::frexp(x[i], e[i]); }
extern "C" void f_ldexp(const float* x, const int* k, float* r, long n) { for (long i = 0; i < n; ++i) r[i] = metal::ldexp(x[i], k[i]); }
extern "C" void f_ilogb(const float* x, int* r, long n) { for (long i = 0; i < n; ++i) r[i] = metal::ilogb(x[i]); }
"""


def test_functions_with_a_second_result():
    x = np.ascontiguousarray(samples()[::11])
    second, exponent = np.empty_like(x), np.empty(len(x), np.int32)
    fraction = on_all_levels(SECOND_RESULT, "f_modf", x, second)
    expected = np.modf(x)
    assert same_bits(fraction, expected[0]) and same_bits(second, expected[1])
    assert same_bits(on_all_levels(SECOND_RESULT, "f_sincos", x, second), on_all_levels(SECOND_RESULT, "f_sin", x))
    assert same_bits(second, on_all_levels(SECOND_RESULT, "f_cos", x))
    mantissa = on_all_levels(SECOND_RESULT, "f_frexp", x, exponent)
    expected = np.frexp(x)
    finite = np.isfinite(x)
    assert same_bits(mantissa, expected[0]) and np.array_equal(exponent[finite], expected[1][finite])
    k = np.random.default_rng(6).integers(-320, 320, len(x)).astype(np.int32)
    assert same_bits(on_all_levels(SECOND_RESULT, "f_ldexp", x, k), np.ldexp(x, k))
    plain = finite & (x != 0)
    assert np.array_equal(on_all_levels(SECOND_RESULT, "f_ilogb", x, out=np.int32)[plain], np.frexp(x)[1][plain] - 1)


# Without the two in the middle clang takes each NaN or infinity that a function returns for undefined; without
# the last it fuses multiplications and additions everywhere.
FAST_MATH = ["-ffast-math", "-fhonor-nans", "-fhonor-infinities", "-ffp-contract=on"]


@pytest.mark.parametrize("name", ["exp", "log", "sin", "tan", "tanh", "asinh", "round", "rint", "expm1", "log2"])
def test_fast_math_of_a_user_does_not_touch_the_functions(name, x32):
    x = np.ascontiguousarray(x32[::7])
    level = build.LEVELS[-1]
    precise = build.call(build.load(FLOAT_TEXT, level), f"f_{name}", x)
    fast = build.call(build.load(FLOAT_TEXT, level, FAST_MATH), f"f_{name}", x)
    plain = (x != 0) & (precise != 0)
    assert same_bits(fast[plain], precise[plain])


# ---- half and bfloat ------------------------------------------------------------------------------

ALL_16 = np.arange(65536, dtype=np.uint16)


def bfloat_values(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def bfloat_bits(values):
    """float to bfloat, nearest even; NaN to one pattern."""
    u = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((u + 0x7FFF + ((u >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


@pytest.mark.parametrize("name", SMALL_NAMES)
@pytest.mark.parametrize("kind", ["half", "bfloat"])
def test_all_16_bit_values(kind, name):
    out = np.float16 if kind == "half" else np.uint16
    bits = on_all_levels(unary_text(kind, SMALL_NAMES), f"f_{name}", ALL_16, out=out, bfloat=kind == "bfloat")
    x, result = (v.view(np.float16).astype(np.float32) if kind == "half" else bfloat_values(v) for v in (ALL_16, bits))
    exact = UNARY[name][0](x.astype(np.float64))
    if name == "fract":
        exact = np.where(np.isfinite(x), x.astype(np.float64) - np.floor(x), exact)
    if name == "asinh":
        exact = np.where(np.abs(x) < 1e-30, x.astype(np.float64), exact)
    form = dict(mantissa=11, least=-24, top=16) if kind == "half" else dict(mantissa=8, least=-133, top=128)
    check(error_in_ulps(result, exact, **form), 0.501, x, result, exact)


CONVERSIONS = "#include <metal_stdlib>\n" + "".join([
    loop("float_to_half", "half({})", "x", "half", "float"), loop("float_to_bfloat", "bfloat({})", "x", "bfloat", "float"),
    loop("half_to_float", "float({})", "x", "float", "half"), loop("bfloat_to_float", "float({})", "x", "float", "bfloat"),
    loop("double_to_half", "(half){}", "x", "half", "double"), loop("int_to_half", "half({})", "x", "half", "int"),
    loop("long_to_half", "half({})", "x", "half", "long"), loop("half_to_int", "int({})", "x", "int", "half"),
    loop("int_to_bfloat", "bfloat({})", "x", "bfloat", "int"), loop("half_to_bfloat", "bfloat({})", "x", "bfloat", "half"),
] + [loop(f"{kind}_{word}", f"{{}} {op} {{}}", "xy", kind, kind)
     for kind in ("half", "bfloat") for word, op in (("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/"))] + [
    loop("half_fma", "metal::fma({}, {}, {})", "xyz", "half", "half")])


def test_conversions_of_16_bit_types(x32):
    x = x32[::5]
    x = np.concatenate([x, (ALL_16[:-1].view(np.float16).astype(np.float64)
                            + ALL_16[1:].view(np.float16).astype(np.float64)).astype(np.float32) / 2])  # ties
    assert same_bits(on_all_levels(CONVERSIONS, "float_to_half", x, out=np.float16), x.astype(np.float16))
    result = on_all_levels(CONVERSIONS, "float_to_bfloat", x, out=np.uint16, bfloat=True)
    assert np.array_equal(np.where(np.isnan(x), bfloat_bits(x), result), bfloat_bits(x))
    assert np.all(np.isnan(bfloat_values(result[np.isnan(x)])))
    assert same_bits(on_all_levels(CONVERSIONS, "half_to_float", ALL_16), ALL_16.view(np.float16).astype(np.float32))
    assert same_bits(on_all_levels(CONVERSIONS, "bfloat_to_float", ALL_16), bfloat_values(ALL_16))
    doubles = np.concatenate([x.astype(np.float64), x.astype(np.float64) * (1 + 2.0 ** -40)])
    assert same_bits(on_all_levels(CONVERSIONS, "double_to_half", doubles, out=np.float16), doubles.astype(np.float16))
    whole = np.concatenate([np.arange(-70000, 70000), 2 ** np.arange(31), [-2 ** 31]]).astype(np.int32)
    for name in ("int_to_half", "long_to_half"):
        wide = whole.astype(np.int64) if name == "long_to_half" else whole
        assert same_bits(on_all_levels(CONVERSIONS, name, wide, out=np.float16), whole.astype(np.float64).astype(np.float16))
    assert np.array_equal(on_all_levels(CONVERSIONS, "int_to_bfloat", whole, out=np.uint16), bfloat_bits(whole.astype(np.float32)))
    finite = ALL_16[np.isfinite(ALL_16.view(np.float16))]
    assert np.array_equal(on_all_levels(CONVERSIONS, "half_to_int", finite, out=np.int32),
                          finite.view(np.float16).astype(np.int32))


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "div"])
def test_arithmetic_of_16_bit_types_rounds_each_time(operation):
    rng = np.random.default_rng(7)
    x, y = rng.integers(0, 65536, (2, 300_000)).astype(np.uint16)
    apply = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[operation]
    result = on_all_levels(CONVERSIONS, f"half_{operation}", x, y, out=np.float16)
    exact = apply(x.view(np.float16).astype(np.float64), y.view(np.float16).astype(np.float64))
    assert same_bits(result, exact.astype(np.float16))
    result = on_all_levels(CONVERSIONS, f"bfloat_{operation}", x, y, out=np.uint16, bfloat=True)
    expected = apply(bfloat_values(x), bfloat_values(y))
    assert np.array_equal(np.where(np.isnan(expected), bfloat_bits(expected), result), bfloat_bits(expected))


def test_half_fma_is_rounded_once():
    x, y, z = np.random.default_rng(8).integers(0, 65536, (3, 300_000)).astype(np.uint16)
    result = on_all_levels(CONVERSIONS, "half_fma", x, y, z, out=np.float16)
    exact = [v.view(np.float16).astype(np.longdouble) for v in (x, y, z)]
    exact = (exact[0] * exact[1] + exact[2]).astype(np.float64)  # 64 bits, and no tie is that long
    assert same_bits(result, exact.astype(np.float16))


# ---- the compiler's view --------------------------------------------------------------------------

EVERY_TEXT = {"float": FLOAT_TEXT, "binary": BINARY_TEXT, "second": SECOND_RESULT, "conversions": CONVERSIONS,
              "half": unary_text("half", SMALL_NAMES), "bfloat": unary_text("bfloat", SMALL_NAMES)}
X86_OR_ARM = ["baseline", "v3", "v4", "aarch64"]


@pytest.mark.parametrize("target", X86_OR_ARM)
@pytest.mark.parametrize("text", EVERY_TEXT)
def test_no_library_is_called(text, target):
    built, _ = build.compile_text(EVERY_TEXT[text], target)
    assert [n for n in build.undefined_symbols(built) if n] == []


@pytest.mark.parametrize("text", EVERY_TEXT)
@pytest.mark.parametrize("target", ["v3", "v4"])
def test_every_function_becomes_vector_code(target, text):
    source = EVERY_TEXT[text]
    _, said = build.compile_text(source, target)
    vectorised = {int(line.split(":")[1]) for line in said.splitlines() if "remark: vectorized loop" in line}
    lines = source.splitlines()
    missed = [line.split("(")[0] for number, line in enumerate(lines, 1) if "extern" in line and number not in vectorised]
    assert missed == []


@pytest.mark.parametrize("text", EVERY_TEXT)
def test_ptx(text):
    built, _ = build.compile_text(EVERY_TEXT[text].replace("double_to_half", "d2h"), "ptx")
    ptx = built.read_text()
    assert ".version" in ptx and "call" not in [word for line in ptx.splitlines() for word in line.split()[:1]]
