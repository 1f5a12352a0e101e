# SPDX-License-Identifier: BSD-3-Clause
"""Numbers at the edge, through every family that computes with them: integers that wrap, that are negative, that no double holds; -0.0,
subnormals, halves between two neighbours, floats that no integer holds; tensors of 16 dimensions."""
import math

import pytest
import torch
from torch.nn import functional as F

from compare import INTEGERS, compare, compare_errors, make

SIGNED = [torch.int8, torch.int16, torch.int32, torch.int64]
FLOATS = [torch.float32, torch.float16, torch.bfloat16]
BIG = 2**53


def same_bits(function, *inputs):
    """As compare, and zeros have the CPU's signs."""
    expected = compare(function, *inputs, rtol=0, atol=0)
    actual = function(*[x.to("mps") for x in inputs]).cpu()
    if expected.is_floating_point():
        assert torch.equal(actual.signbit(), expected.signbit())
    return expected


def all_pairs(dtype):
    """Every pair of the numbers where integer arithmetic has its corners."""
    info = torch.iinfo(dtype)
    numbers = sorted({info.min, info.min + 1, -7, -2, -1, 0, 1, 2, 3, 7, info.max - 1, info.max} & set(range(info.min, info.max + 1))
                     if info.bits < 16 else {n for n in (info.min, info.min + 1, -7, -2, -1, 0, 1, 2, 3, 7, info.max - 1, info.max) if n >= info.min})
    x = torch.tensor(numbers, dtype=dtype)
    return x.repeat_interleave(len(x)), x.repeat(len(x))


WRAPPING = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "neg": lambda a, b: -a + b * 0, "abs": lambda a, b: a.abs() + b * 0,
    "square": lambda a, b: a.square() + b * 0, "addcmul": lambda a, b: torch.addcmul(a, a, b, value=3), "cumsum": lambda a, b: (a + b).cumsum(0),
    "cumprod": lambda a, b: (a * 2 + 1 + b * 0).cumprod(0), "and": torch.bitwise_and, "xor": torch.bitwise_xor, "maximum": torch.maximum,
    "minimum": torch.minimum, "clamp": lambda a, b: torch.clamp(a, min=b), "lt": torch.lt, "eq": torch.eq,
    "where": lambda a, b: torch.where(a < b, a, b), "sign": lambda a, b: torch.sign(a) + b * 0,
}


@pytest.mark.parametrize("name", WRAPPING)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap(name, dtype):
    if dtype == torch.uint8 and name == "neg":
        compare(lambda a, b: b - a, *all_pairs(dtype))
        return
    compare(WRAPPING[name], *all_pairs(dtype))


# The CPU dies where the quotient does not fit (the least number by -1), and divides by zero nowhere.
@pytest.mark.parametrize("function", [
    lambda a, b: torch.div(a, b, rounding_mode="floor"), lambda a, b: torch.div(a, b, rounding_mode="trunc"), torch.remainder, torch.fmod,
    torch.floor_divide, torch.true_divide, lambda a, b: a % b, lambda a, b: a // b],
    ids=["floor", "trunc", "remainder", "fmod", "floor_divide", "true_divide", "%", "//"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_division(function, dtype):
    a, b = all_pairs(dtype)
    defined = (b != 0) & ~((a == torch.iinfo(dtype).min) & (b == -1) if dtype in SIGNED else torch.zeros_like(a, dtype=torch.bool))
    compare(function, a[defined], b[defined])
    for divisor in (-3, 2, 7) if dtype in SIGNED else (2, 7):
        compare(lambda a: function(a, divisor), a)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts(dtype):
    a, b = all_pairs(dtype)
    compare(torch.bitwise_left_shift, a, b)   # also by negative counts, and by more than there are bits
    compare(torch.bitwise_right_shift, a, b)
    for count in (0, 1, torch.iinfo(dtype).bits - 1, torch.iinfo(dtype).bits):
        compare(lambda a: a << count, a)
        compare(lambda a: a >> count, a)


@pytest.mark.parametrize("dtype", SIGNED)
def test_integer_powers(dtype):
    a, b = all_pairs(dtype)
    compare(torch.pow, a[b >= 0], b[b >= 0])
    compare(lambda a: a ** 3, a)


BEYOND_DOUBLES = {
    "sum": lambda x: x.sum(), "sum of rows": lambda x: x.sum(1), "sum of columns": lambda x: x.sum(0), "prod": lambda x: x.prod(1),
    "cumsum": lambda x: x.cumsum(0), "amax": lambda x: x.amax(1), "max": lambda x: x.max(1), "argmax": lambda x: x.argmax(1),
    "argmin": lambda x: x.argmin(0), "aminmax": lambda x: x.aminmax(dim=0), "sort": lambda x: x.sort(1)[0], "topk": lambda x: x.topk(3)[0],
    "kthvalue": lambda x: x.kthvalue(2, 1)[0], "median": lambda x: x.median(1)[0], "mode": lambda x: x.mode(1)[0],
    "unique": lambda x: x.unique(return_counts=True), "searchsorted": lambda x: torch.searchsorted(x.sort(1)[0], x),
    "isin": lambda x: torch.isin(x, x[:3]), "eq": lambda x: x == x[:, :1], "lt": lambda x: x < x[:, :1], "eq number": lambda x: x == BIG + 1,
    "gt number": lambda x: x > BIG, "add number": lambda x: x + (BIG + 1), "mul": lambda x: x * 3, "floor": lambda x: x // 7,
    "remainder": lambda x: x % 1000, "where": lambda x: torch.where(x % 2 == 0, x, x + 1), "clamp": lambda x: x.clamp(BIG + 1, BIG + 3),
    "fill": lambda x: torch.full_like(x, BIG + 1), "masked_fill": lambda x: x.masked_fill(x % 2 == 0, BIG + 1),
    "index_add": lambda x: torch.zeros_like(x).index_add(0, torch.tensor([0] * len(x), device=x.device), x),
    "scatter_add": lambda x: torch.zeros_like(x).scatter_add(1, (x % 4).abs(), x), "index_put": lambda x: x.index_put((x[:, 0] % 4,), x[:1] + 1),
    "gather": lambda x: x.gather(1, x % 4), "cat": lambda x: torch.cat([x, x + 1]), "flip": lambda x: x.flip(1), "roll": lambda x: x.roll(1),
    "pad": lambda x: F.pad(x, (1, 1), value=BIG + 1), "matmul": lambda x: x @ x.T, "dot": lambda x: torch.dot(x[0], x[1]), "diff": lambda x: x.diff(),
    "cummax": lambda x: x.cummax(1), "gcd": lambda x: torch.gcd(x, x.roll(1)), "arange": lambda x: torch.arange(BIG, BIG + 5, device=x.device),
    "bitwise": lambda x: x ^ (x << 1), "count_nonzero": lambda x: (x - BIG).count_nonzero(1), "item": lambda x: x[2, 1].item(),
    "tolist": lambda x: x.tolist(), "repeat_interleave": lambda x: x.repeat_interleave(2, 0), "take": lambda x: x.take(x % 5),
    "nonzero": lambda x: (x - BIG - 1).nonzero(),
}


@pytest.mark.parametrize("name", BEYOND_DOUBLES)
def test_int64_beyond_doubles(name):
    """Numbers next to 2^53: one that went through a double becomes its even neighbour."""
    compare(BEYOND_DOUBLES[name], make((5, 6), torch.int64, low=0, high=9) + BIG)


@pytest.mark.parametrize("function", [
    lambda x: x.sum(), lambda x: x.sum(0), lambda x: x.prod(0), lambda x: x.any(), lambda x: x.any(1), lambda x: x.all(0), lambda x: x.cumsum(1),
    lambda x: x.cumprod(1), lambda x: x.argmax(1), lambda x: x.max(1), lambda x: x.min(0), lambda x: x.amax(), lambda x: x.float().mean(),
    lambda x: x.count_nonzero(0), lambda x: x.sort(1), lambda x: x.cummax(0), lambda x: x.logical_xor(~x), lambda x: x + x, lambda x: x * x,
    lambda x: x + 1, lambda x: x | ~x, lambda x: x.unique(), lambda x: x.flip(0), lambda x: x.nonzero()])
@pytest.mark.parametrize("rows", [0, 1, 7])
def test_bool(function, rows):
    x = make((rows, 9), torch.bool)
    try:
        function(x)
    except (IndexError, RuntimeError):
        compare_errors(function, x)
        return
    compare(function, x)


def tiny(dtype):
    """Subnormals, both zeros, and the least normal numbers."""
    info = torch.finfo(dtype)
    step = info.smallest_normal * info.eps
    return torch.tensor([s * k * step for s in (1, -1) for k in (0, 1, 2, 3, 7, 1 / info.eps - 1, 1 / info.eps, 1 / info.eps + 1)],
                        dtype=torch.float64).to(dtype)


SUBNORMAL = {
    "copy": lambda x: x.clone(), "strided": lambda x: x[::2].clone(), "add": lambda x: x + x, "mul": lambda x: x * 0.5, "mul one": lambda x: x * 1,
    "div": lambda x: x / 2, "neg": lambda x: -x, "abs": lambda x: x.abs(), "eq": lambda x: x == 0, "gt": lambda x: x > 0, "sign": lambda x: x.sign(),
    "relu": lambda x: x.relu(), "where": lambda x: torch.where(x > 0, x, -x), "sum": lambda x: x[:8].sum(), "max": lambda x: x.max(),
    "min": lambda x: x[1:8].amin(), "sort": lambda x: x[1:8].sort(descending=True)[0], "cumsum": lambda x: x[:8].cumsum(0),
    "cat": lambda x: torch.cat([x, x]), "float": lambda x: x.float(), "half": lambda x: x.half(), "bfloat16": lambda x: x.bfloat16(),
    "nonzero": lambda x: x.nonzero(), "bool": lambda x: x.bool(), "any": lambda x: x[1:2].any(), "sqrt": lambda x: x[:8].sqrt(),
    "maximum": lambda x: torch.maximum(x, x.flip(0)), "clamp": lambda x: x.clamp(max=0),
    "gather": lambda x: x[torch.tensor([1, 2, 3], device=x.device)], "pool": lambda x: F.max_pool1d(x[None, None], 2),
    "index_add": lambda x: torch.zeros_like(x).index_add(0, torch.arange(len(x), device=x.device), x), "trunc": lambda x: x.trunc(),
    "frac": lambda x: x.frac(),
    "ldexp": lambda x: torch.ldexp(x.view(-1, 1).expand(-1, 8), torch.tensor([-300, -140, -3, -1, 0, 3, 140, 300], device=x.device)),
    "ldexp by a number": lambda x: torch.ldexp(x, torch.tensor(3, device=x.device)), "frexp": lambda x: x.float().frexp()[0],
    "nextafter": lambda x: torch.nextafter(x.float(), torch.ones_like(x).float()),
}


@pytest.mark.parametrize("name", SUBNORMAL)
@pytest.mark.parametrize("dtype", FLOATS)
def test_subnormals_are_kept(name, dtype):
    same_bits(SUBNORMAL[name], tiny(dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_negative_zero(dtype):
    x = torch.tensor([0.0, -0.0, 0.0, -0.0, 1.0, -1.0], dtype=dtype)
    y = torch.tensor([0.0, 0.0, -0.0, -0.0, -0.0, 0.0], dtype=dtype)
    for function in (torch.add, torch.sub, torch.mul, torch.copysign, lambda a, b: torch.where(a == b, a, b)):
        same_bits(function, x, y)
    for function in (torch.neg, torch.abs, torch.round, torch.floor, torch.ceil, torch.trunc, torch.sqrt, torch.sin, torch.tan, torch.asin,
                     torch.sinh, torch.tanh, torch.expm1, torch.log1p, torch.square,
                     lambda x: x * -1, lambda x: torch.atan2(x, x.flip(0)), lambda x: -x[1:], lambda x: x.clone(), lambda x: x.float(),
                     lambda x: x.half(), lambda x: x.bfloat16(), torch.sign):
        same_bits(function, x[:4])


@pytest.mark.parametrize("function",
                         [torch.round, torch.floor, torch.ceil, torch.trunc, torch.frac, lambda x: torch.round(x, decimals=1),
                          lambda x: torch.round(x, decimals=-1)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_rounding_halves(function, dtype):
    same_bits(function, torch.tensor([-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 0.49, 24.9, 25.0, 35.0, -15.0], dtype=dtype))


def test_narrowing_rounds_half_to_even():
    """Every float32 exactly between two halves or two bfloat16, and its neighbours; overflow to infinity."""
    for dtype, bits in ((torch.float16, 10), (torch.bfloat16, 7)):
        ends = torch.arange(2 ** (bits + 1), dtype=torch.float64)
        between = (1 + (ends + 0.5) / 2 ** (bits + 1)).float()
        top = torch.tensor([torch.finfo(dtype).max], dtype=torch.float64)
        near_top = torch.cat([top * k for k in (1.0, 1 + 2.0 ** -(bits + 3), 1 + 2.0 ** -(bits + 2), 1 + 2.0 ** -(bits + 1))]).float()
        x = torch.cat([between, torch.nextafter(between, torch.tensor(0.0)), torch.nextafter(between, torch.tensor(9.0)), near_top,
                       between * 2.0 ** (-14 - 5 if dtype == torch.float16 else -126)])
        x = torch.cat([x, -x])
        for function in (lambda x: x.to(dtype), lambda x: (x * 1).to(dtype), lambda x: torch.empty_like(x, dtype=dtype).copy_(x),
                         lambda x: x.view(2, -1).t().to(dtype)):
            same_bits(function, x)


@pytest.mark.parametrize("target", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool])
@pytest.mark.parametrize("source", FLOATS)
def test_float_to_integer(source, target):
    """Where C defines it: truncation of what fits. Outside, int32 and int64 give what the processor gives."""
    least, most = (0, 1) if target == torch.bool else (torch.iinfo(target).min, torch.iinfo(target).max)
    inside = [v for v in (0.0, -0.0, 0.5, 0.99, 1.5, 2.5, 100.7, -0.5, -0.99, -1.5, -100.7, float(most // 2),
                          float(least)) if least - 1 < v < most + 1]
    compare(lambda x: x.to(target), torch.tensor(inside, dtype=torch.float64).to(source))
    compare(lambda x: x.view(-1, 1).expand(-1, 40).to(target), torch.tensor(inside, dtype=torch.float64).to(source))


@pytest.mark.parametrize("source", SIGNED + [torch.uint8])
def test_integer_to_everything(source):
    x = all_pairs(source)[0].unique()
    for target in INTEGERS + (torch.float32, torch.float16, torch.bfloat16, torch.bool, torch.complex64):
        compare(lambda x: x.to(target), x)


def high_rank(rank, dtype=torch.float32):
    sizes = [2 if d % 3 == 0 else 1 for d in range(rank)]
    return make(sizes, dtype)


RANK = {
    "add": lambda x: x + x, "transposed add": lambda x: x + x.transpose(0, 3),
    "reversed": lambda x: x.permute(*reversed(range(x.dim()))).contiguous(), "sum": lambda x: x.sum(), "sum of one": lambda x: x.sum(3),
    "sum of many": lambda x: x.sum(list(range(0, x.dim(), 3))), "softmax": lambda x: x.softmax(3), "sort": lambda x: x.sort(3)[0],
    "cumsum": lambda x: x.cumsum(3), "max": lambda x: x.max(3), "cat": lambda x: torch.cat([x, x], 3), "flip": lambda x: x.flip(0, 3),
    "roll": lambda x: x.roll((1, 1), (0, 3)), "gather": lambda x: x.gather(3, torch.zeros_like(x, dtype=torch.int64)),
    "index_select": lambda x: x.index_select(3, torch.tensor([1, 0, 1], device=x.device)), "where": lambda x: torch.where(x > 0, x, -x),
    "masked_fill": lambda x: x.masked_fill(x > 0, 1), "narrow": lambda x: x.narrow(3, 1, 1).clone(),
    "repeat": lambda x: x.repeat(*([1] * (x.dim() - 1)), 3), "clone": lambda x: x.transpose(0, 9).clone(), "half": lambda x: x.transpose(0, 9).half(),
    "var": lambda x: x.var(0), "norm": lambda x: x.norm(dim=0), "topk": lambda x: x.topk(1, 3)[0],
    "index": lambda x: x[torch.tensor([1, 0], device=x.device)], "nonzero": lambda x: (x > 0).nonzero(), "any": lambda x: (x > 0).any(3),
    "fill": lambda x: x.clone().transpose(0, 3).fill_(2),
}


@pytest.mark.parametrize("name", RANK)
def test_sixteen_dimensions(name):
    compare(RANK[name], high_rank(16))


def test_infinite_sums_and_means():
    x = torch.tensor([[math.inf, -math.inf, 1.0], [math.inf, math.inf, 1.0], [math.nan, 1.0, 2.0], [-math.inf, 0.0, 0.0]])
    for function in (lambda x: x.sum(1), lambda x: x.mean(1), lambda x: x.prod(1), lambda x: x.logsumexp(1), lambda x: x.softmax(1),
                     lambda x: x.var(1), lambda x: x.cumsum(1), lambda x: x.nansum(1), lambda x: x.amax(1), lambda x: x.argmax(1),
                     lambda x: x.norm(dim=1), lambda x: x.log_softmax(1), lambda x: x.logcumsumexp(1), lambda x: x.cummin(1), lambda x: x.median(1),
                     lambda x: x.nanmedian(1), lambda x: x.clamp(-1, 1), lambda x: x.sort(1), lambda x: x.nan_to_num()):
        compare(function, x)


COMPLEX_FUNCTIONS = ["sqrt", "rsqrt", "exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos",
                     "atan", "asinh", "acosh", "atanh", "sigmoid", "reciprocal",
                     "square", "sgn", "abs", "angle", "isfinite", "isinf", "isnan"]


@pytest.mark.parametrize("name", COMPLEX_FUNCTIONS)
def test_complex_limits(name):
    """Infinities, NaN and both zeros in both parts, as C's Annex G has it: a part that is a number is the CPU's, with its sign."""
    parts = (math.inf, -math.inf, math.nan, 0.0, -0.0, 1.0, -1.0)
    x = torch.tensor([complex(a, b) for a in parts for b in parts], dtype=torch.complex64)
    expected, actual = getattr(torch, name)(x), getattr(torch, name)(x.to("mps")).cpu()
    for e, a in zip((torch.view_as_real(t) if t.is_complex() else t for t in (expected,)),
                    (torch.view_as_real(t) if t.is_complex() else t for t in (actual,))):
        torch.testing.assert_close(a, e, rtol=3e-6, atol=0, equal_nan=True)
        assert not e.is_floating_point() or torch.equal(a.signbit() & ~a.isnan(), e.signbit() & ~e.isnan())


def test_complex_logaddexp():
    """Equal real parts: the first one leads; infinities and NaN."""
    parts = (math.inf, -math.inf, math.nan, 0.0, 1.0, -3.0, 10.0)
    x = torch.tensor([complex(a, b) for a in parts for b in parts], dtype=torch.complex64)
    a, b = x.repeat_interleave(len(x)), x.repeat(len(x))
    expected, actual = torch.logaddexp(a, b), torch.logaddexp(a.to("mps"), b.to("mps")).cpu()
    torch.testing.assert_close(torch.view_as_real(actual), torch.view_as_real(expected), rtol=1e-5, atol=1e-6, equal_nan=True)


def test_complex_logaddexp_near_its_zeros():
    """Sums of e^a and e^b that cancel, down to 1e-6 of either, against double."""
    angle = torch.tensor([math.pi, -math.pi, 3.14, -3.1416, 3.0])
    real = torch.tensor([0.0, 1e-6, -1e-6, 1e-3, -1e-3, 0.1, -0.1, 2.0])
    difference = torch.complex(real.repeat_interleave(len(angle)), angle.repeat(len(real)))
    zero = torch.zeros_like(difference)
    for a, b in ((zero, difference), (difference, zero)):
        exact = torch.log(torch.exp(a.to(torch.complex128)) + torch.exp(b.to(torch.complex128)))
        actual = torch.logaddexp(a.to("mps"), b.to("mps")).cpu().to(torch.complex128)
        for part in (lambda z: z.real, lambda z: z.imag.cos(), lambda z: z.imag.sin()):  # the angle up to whole turns
            torch.testing.assert_close(part(actual), part(exact), rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("base", [7.5, 2, 1.0, 1, True, 2 - 1j])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool, torch.complex64], ids=str)
def test_pow_of_a_scalar_refuses_what_the_cpu_refuses(base, dtype):
    """out= of every dtype, and memory that is shared with the exponents."""
    if dtype == torch.float16 and isinstance(base, complex):
        base = 2.5  # complex halves: the CPU has no power of them
    exponent = make((6,), dtype, low=0)
    for out in (torch.int64, torch.float32, torch.float16, torch.bool, torch.complex64):
        call = lambda e: torch.pow(base, e, out=torch.zeros(6, dtype=out, device=e.device))  # noqa: E731, B023
        try:
            call(exponent)
        except RuntimeError:
            compare_errors(call, exponent)
        else:
            compare(call, exponent)
    shared = lambda x: torch.pow(2.0, x[:5], out=x[1:])  # noqa: E731
    if dtype in (torch.float32, torch.complex64):
        compare_errors(shared, exponent)
