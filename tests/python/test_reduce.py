# SPDX-License-Identifier: BSD-3-Clause
"""Reductions against the CPU: dtypes, sets of dimensions, keepdim, layouts, empty and 0-d tensors, NaN, long sums, errors."""
import itertools
import math

import pytest
import torch

from compare import ALL_DTYPES, COMPLEX, FLOATS, INTEGERS, REDUCED, assert_same, compare, compare_errors, compare_gradients, layouts, make, to_mps

REAL = FLOATS + INTEGERS
SHAPES = [(), (7,), (5, 300), (300, 5), (70, 33), (4, 33, 65), (2, 8, 5, 6)]
LOOSE = {torch.float32: (1e-5, 5e-4), torch.float16: (2e-3, 2e-2), torch.bfloat16: (1.6e-2, 1e-1), torch.complex64: (1e-5, 1e-4)}


def dimensions(x):
    yield None
    for d in range(x.dim()):
        yield (d,)
    for pair in itertools.combinations(range(-x.dim(), 0), 2):
        yield pair


def loose(dtype):
    return dict(zip(("rtol", "atol"), LOOSE.get(dtype, (0, 0))))


def reference(function, x, dtype):
    """The function in double, rounded once: what halves are compared with, since the CPU rounds them on the way."""
    wide = x.to(torch.complex128) if x.is_complex() else x.double() if x.is_floating_point() else x
    return function(wide).to(dtype)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_sum_and_mean(dtype, shape):
    for _, x in layouts(make(shape, dtype)):
        for dim, keepdim in itertools.product(dimensions(x), (False, True)):
            if dim is None and keepdim:
                continue
            options = {} if dim is None else {"dim": dim, "keepdim": keepdim}
            natural = dtype if dtype.is_floating_point or dtype.is_complex else torch.int64
            assert_same(to_mps(x).sum(**options), reference(lambda x: x.sum(**options), x, natural), **loose(dtype))
            if not natural == torch.int64:
                assert_same(to_mps(x).mean(**options), reference(lambda x: x.mean(**options), x, dtype), **loose(dtype))


@pytest.mark.parametrize("source", [torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.uint8, torch.bool])
@pytest.mark.parametrize("target", [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8, torch.bool, torch.complex64])
def test_sum_in_another_dtype(source, target):
    x = make((40, 30), source)
    compare(lambda x: x.sum(dim=0, dtype=target), x, **loose(target))
    compare(lambda x: x.sum(dtype=target), x, **loose(target))
    if target.is_floating_point or target.is_complex:
        compare(lambda x: x.mean(dim=1, dtype=target), x, **loose(target))


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_prod(dtype):
    for _, x in layouts(make((5, 9, 4), dtype, low=-2, high=3)):
        for dim in (0, 1, -1):
            compare(lambda x: x.prod(dim, keepdim=dim == 1), x, **loose(dtype))
    compare(lambda x: x.prod(), make((17,), dtype, low=1, high=4), **loose(dtype))
    compare(lambda x: x.prod(), make((0,), dtype))
    compare(lambda x: x.prod(dim=0), make((0, 3), dtype))


@pytest.mark.parametrize("dtype", FLOATS + (torch.int32,))
def test_nansum(dtype):
    x = make((30, 40), dtype)
    if dtype.is_floating_point:
        x[3, 4] = x[7] = float("nan")
    compare(torch.nansum, x, **loose(dtype))
    for dim in (0, 1, (0, 1)):
        compare(lambda x: torch.nansum(x, dim=dim, keepdim=True), x, **loose(dtype))
    compare(lambda x, o: torch.nansum(x, dim=0, out=o), x, torch.zeros(40, dtype=dtype if dtype.is_floating_point else torch.int64), **loose(dtype))


@pytest.mark.parametrize("dtype", ALL_DTYPES)
def test_any_all_count(dtype):
    for values in (make((6, 50, 9), dtype), torch.zeros(6, 50, 9).to(dtype), torch.ones(6, 50, 9).to(dtype)):
        for _, x in layouts(values):
            for dim in (0, 1, 2):
                compare(lambda x: (x.any(dim), x.all(dim, keepdim=True), torch.count_nonzero(x, dim)), x)
            compare(lambda x: (x.any(), x.all(), torch.count_nonzero(x), x.any((0, 2)), x.all((1, 2)), torch.count_nonzero(x, (0, 1))), x)
    compare(lambda x: (x.any(), x.all(), x.any(0), x.all(0)), make((0, 3), dtype))


def test_any_looks_at_nan_and_minus_zero():
    compare(lambda x: (x.any(), x.all(), torch.count_nonzero(x)), torch.tensor([-0.0, 0.0]))
    compare(lambda x: (x.any(), x.all()), torch.tensor([float("nan"), 1.0]))
    compare(lambda x: (x.any(), torch.count_nonzero(x)), torch.tensor([-0.0, 0.0], dtype=torch.float16))


@pytest.mark.parametrize("dtype", REAL + (torch.bool,))
@pytest.mark.parametrize("shape", SHAPES)
def test_amax_amin(dtype, shape):
    for _, x in layouts(make(shape, dtype, special=True)):
        for dim in dimensions(x):
            options = {} if dim is None else {"dim": dim, "keepdim": True}
            compare(lambda x: (x.amax(**options), x.amin(**options)), x)
        for dim in (None,) + tuple(range(x.dim())):
            compare(lambda x: torch.aminmax(x, dim=dim), x)
        compare(lambda x: (x.max(), x.min()), x)


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("shape", SHAPES)
def test_places_of_extremes(dtype, shape):
    """Small numbers repeat often: of equal values the first one counts."""
    for _, x in layouts(make(shape, dtype, special=True)):
        for dim in range(x.dim()):
            compare(lambda x: (*x.max(dim), *x.min(dim, keepdim=True), x.argmax(dim), x.argmin(dim, keepdim=True)), x)
        compare(lambda x: (x.argmax(), x.argmin()), x)
    compare(lambda x: x.max(0), make((5, 4), torch.bool))


SHORT = (15, 16, 17, 31, 32, 47, 63, 127, 128)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize("length", SHORT)
def test_many_short_rows(dtype, length):
    """Rows of neighbours that are folded side by side: as many as fill tiles and one more, with gaps between them, overlapping, repeated."""
    flat = make((301 * length + 70,), dtype)
    rows = flat[:301 * length].view(301, length)
    ordered = dtype not in COMPLEX
    for x in (rows, flat.as_strided((37, length), (length + 3, 1), 2), flat.as_strided((40, length), (2, 1)), flat[:length].expand(20, length)):
        compare(lambda x: x.sum(1), x, **loose(dtype))
        compare(lambda x: x.count_nonzero(1), x)
        if ordered:
            compare(lambda x: (x.amax(1), x.amin(1), x.any(1), x.all(1)), x)
        if dtype in REAL:
            compare(lambda x: (*x.max(1), *x.min(1), x.argmax(1)), x)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("length", SHORT)
def test_extremes_of_short_rows(dtype, length):
    """A NaN, an infinity and equal values at each place of a row."""
    x = make((3 * length, length), dtype)
    places = torch.arange(length)
    x[places, places] = math.nan
    x[length + places, places] = math.inf
    x[2 * length + places, :] = 1.0
    x[2 * length + places, places] = 2.0
    compare(lambda x: (x.amax(1), x.amin(1), *x.max(1), *x.min(1), x.argmin(1)), x)
    compare(lambda x: torch.linalg.vector_norm(x, math.inf, 1), x)
    y = x.t().contiguous()
    compare(lambda x: (x.amax(0), x.amin(0), *x.max(0), *x.min(0)), y)


@pytest.mark.parametrize("length", [3, 1000, 16384, 40_001, 200_000])
def test_place_of_a_single_extreme(length):
    for place in {0, 1, length // 2, length - 1}:
        for value in (float("nan"), float("inf"), 100.0):
            x = make((length,))
            x[place] = value
            compare(lambda x: (x.argmax(), x.max(), x.max(0)[1]), x)
            x = x.view(-1, 1).expand(-1, 3)
            compare(lambda x: x.max(0), x)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(7,), (5, 300), (300, 5), (4, 33, 65), (2, 8, 5, 6)])
def test_var_and_std(dtype, shape):
    for _, x in layouts(make(shape, dtype)):
        for dim, correction in itertools.product(dimensions(x), (0, 1, 2.5)):
            for function in (torch.var, torch.std):
                expected = reference(lambda x: function(x, dim, correction=correction, keepdim=dim is not None), x, dtype)
                assert_same(function(to_mps(x), dim, correction=correction, keepdim=dim is not None), expected, **loose(dtype))
        assert_same(torch.var_mean(to_mps(x), 0), [reference(lambda x: x.var(0), x, dtype), reference(lambda x: x.mean(0), x, dtype)], **loose(dtype))
        assert_same(torch.std_mean(to_mps(x)), [reference(lambda x: x.std(), x, dtype), reference(lambda x: x.mean(), x, dtype)], **loose(dtype))


def test_var_of_complex():
    compare(lambda x: (x.var(), x.std(0), *torch.var_mean(x, 1)), make((20, 30), torch.complex64), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shift", [0.0, 1e3, 1e5])
@pytest.mark.parametrize("shape,dim", [((1_000_000,), 0), ((300, 2000), 0), ((300, 2000), 1)])
def test_var_survives_a_large_mean(shift, shape, dim):
    x = make(shape) + shift
    expected = x.double().var(dim)
    torch.testing.assert_close(to_mps(x).var(dim).cpu().double(), expected, rtol=2e-6, atol=0)


@pytest.mark.parametrize("dtype", FLOATS + COMPLEX)
@pytest.mark.parametrize("order", [0, 1, 2, 3, 0.5, -1, -2, math.inf, -math.inf])
def test_vector_norm(dtype, order):
    for _, x in layouts(make((20, 7, 30), dtype)):
        for dim in dimensions(x):
            expected = torch.linalg.vector_norm(x.to(torch.complex128 if x.is_complex() else torch.double), order, dim)
            actual = torch.linalg.vector_norm(to_mps(x), order, dim)
            assert_same(actual, expected.to(torch.float32 if dtype.is_complex else dtype), rtol=loose(dtype)["rtol"] * 3, atol=loose(dtype)["atol"])


def test_norm_entries():
    x = make((30, 40))
    compare(lambda x: (x.norm(), x.norm(p=1), x.norm(dim=0), x.norm(p=3, dim=1, keepdim=True)), x, rtol=1e-5)
    compare(lambda x: x.norm(p=2, dim=1, dtype=torch.float32), x.half(), rtol=1e-5)
    compare(lambda x: torch.linalg.vector_norm(x, 2, 0, dtype=torch.float32), make((5, 6), torch.bfloat16), rtol=1e-5)
    compare(torch.linalg.vector_norm, torch.tensor([float("nan"), 1.0]))
    for order in (float("inf"), -float("inf")):  # the gradient compares the norm with abs
        compare_gradients(lambda x: torch.linalg.vector_norm(x, order, 0), make((8, 50), torch.complex64))
    compare(lambda x: torch.linalg.vector_norm(x, math.inf), torch.tensor([1.0, float("nan"), 5.0]))
    compare(lambda x: torch.linalg.vector_norm(x, -math.inf), torch.tensor([1.0, float("nan"), 5.0]))


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS + COMPLEX)
def test_trace(dtype):
    if dtype in REDUCED:
        x = make((5, 9), dtype)
        assert_same(torch.trace(to_mps(x)), reference(torch.trace, x, dtype))
    else:
        compare(torch.trace, make((5, 9), dtype), **loose(dtype))
        compare(torch.trace, make((9, 5), dtype).t(), **loose(dtype))


def test_sums_are_long():
    assert torch.ones(20_000_000, device="mps").sum().item() == 20_000_000
    assert torch.ones(70_000, 300, device="mps").sum(0).eq(70_000).all().item()
    x = torch.ones(1_000_001)
    x[0] = 1e8
    assert abs(to_mps(x).sum().item() - 101_000_000) <= 8  # one unit in the last place
    assert torch.full((70_000,), 1.0, dtype=torch.float16, device="mps").mean().item() == 1.0
    assert torch.ones(3000, dtype=torch.float16, device="mps").sum().item() == 3000
    large = torch.full((3,), 2**62, dtype=torch.int64)
    compare(lambda x: (x.sum(), x.prod()), large)
    compare(lambda x: x.sum(), torch.tensor([2**53 + 1, 1, 1]))


def test_results_do_not_depend_on_layout_of_threads():
    x = make((3_000_000,)).to("mps")
    first = x.sum()
    for _ in range(5):
        assert x.sum().item() == first.item()


@pytest.mark.parametrize("dtype", (torch.float32, torch.int64, torch.bool))
def test_empty(dtype):
    x = make((0, 3), dtype)
    compare(lambda x: (x.sum(), x.sum(0), x.sum(1), x.sum(0, keepdim=True)), x)
    if dtype == torch.float32:
        compare(lambda x: (x.mean(), x.mean(0), x.norm(), x.var(0), x.std(), torch.var_mean(x, 1)[0]), x)
    for function in (torch.amax, torch.argmax, torch.max, torch.aminmax):
        compare_errors(function, x, same_text=function is not torch.aminmax)
    compare_errors(lambda x: x.max(0), x)
    compare(lambda x: x.max(1)[0], x)


def test_results_go_where_they_are_asked_to():
    x = make((6, 50))
    compare(lambda x, o: torch.sum(x, 1, out=o), x, torch.zeros(12)[::2])
    compare(lambda x, o: torch.amax(x, 0, out=o), x, torch.zeros(100)[1::2])
    compare(lambda x, o: torch.argmax(x, 1, out=o), x, torch.zeros(0, dtype=torch.int64))
    compare(lambda x, v, i: torch.max(x, 1, out=(v, i)), x, torch.zeros(12)[::2], torch.zeros(12, dtype=torch.int64)[::2])
    compare(lambda x, o: torch.any(x, 1, out=o), x, torch.zeros(6, dtype=torch.bool))
    compare(lambda x: x.sum(0).add_(x[1]), x, rtol=1e-5)


def test_views_with_bits():
    x = make((30, 20), torch.complex64)
    compare(lambda x: x.conj().sum(0), x, rtol=1e-5, atol=1e-5)
    compare(lambda x: x.conj().imag.sum(0), x, rtol=1e-5, atol=1e-5)


def test_errors():
    x = make((3, 4))
    compare_errors(lambda x: x.sum(2), x)
    compare_errors(lambda x: x.sum((0, 0)), x)
    compare_errors(lambda x: x.to(torch.int32).mean(), x)
    compare_errors(lambda x: x.to(torch.int32).var(), x)
    compare_errors(lambda x: torch.trace(x[0]), x)
    compare_errors(lambda x: x.bool().argmax(), x)


@pytest.mark.parametrize("function", [
    lambda x: x.sum(0), lambda x: x.mean(), lambda x: x.prod(1), lambda x: x.var(0), lambda x: x.std(1, correction=0), lambda x: x.norm(dim=1),
    lambda x: x.norm(p=3), lambda x: x.amax(0), lambda x: x.max(1)[0], lambda x: x.min(), lambda x: x.logsumexp(1), lambda x: torch.aminmax(x, dim=0)[1],
    lambda x: torch.nansum(x, 0), lambda x: torch.trace(x), lambda x: torch.std_mean(x, 0)])
def test_gradients(function):
    compare_gradients(function, make((9, 7)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("function", [torch.any, torch.all])
def test_any_and_all_over_several_dimensions(function):
    for dtype in (torch.float32, torch.uint8, torch.bool, torch.complex64):
        for dim in ((0, 2), (), (1,), None, (-1, 0, 1)):
            for keepdim in (False, True):
                compare(lambda x: function(x, dim, keepdim), make((2, 3, 4), dtype), strides=True)
    compare(lambda x: function(x, (0, 1)), torch.zeros(0, 3))
    compare_errors(lambda x: function(x, (0, 1), out=torch.zeros(3, device=x.device)), make((2, 3)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
@pytest.mark.parametrize("out", [torch.int64, torch.float16, torch.bool])
def test_norm_refuses_a_result_of_another_dtype(dtype, out):
    compare_errors(lambda x: torch.norm(x, 2, out=torch.empty(0, dtype=out, device=x.device)), make((2, 3), dtype))
    compare_errors(lambda x: torch.norm(x, 2, 0, dtype=x.dtype, out=torch.empty(0, dtype=out, device=x.device)), make((2, 3), dtype))


@pytest.mark.parametrize("out", [torch.int64, torch.int8, torch.bool])
def test_mean_refuses_a_whole_result(out):
    compare_errors(lambda x: torch.mean(x, 0, out=torch.empty(0, dtype=out, device=x.device)), make((2, 3)))


def test_largest_complex_magnitude_is_one_of_abs():
    x = make((40, 50), torch.complex64)
    device = x.to("mps")
    assert torch.equal(torch.linalg.vector_norm(device, float("inf"), dim=1), device.abs().amax(1))
    compare_gradients(lambda x: torch.linalg.vector_norm(x, float("inf"), dim=1), x)


# ---- hash_tensor ----


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS + (torch.bool,))
def test_hash(dtype):
    for shape in ((), (7,), (5, 300), (300, 5), (2, 9, 5, 6)):
        for _, x in layouts(make(shape, dtype, low=-100, high=100, special=True)):
            compare(torch.hash_tensor, x)
            for dim in dimensions(x):
                compare(lambda x: torch.hash_tensor(x, () if dim is None else dim, keepdim=x.dim() == 2), x, strides=True)
    for shape in ((3, 20000), (20000, 3)):
        compare(lambda x: (torch.hash_tensor(x), torch.hash_tensor(x, 0), torch.hash_tensor(x, 1)), make(shape, dtype))


def test_hash_sees_all_bits():
    """Each bit pattern as the double that equals it: subnormal numbers, NaNs with a payload, both zeros."""
    compare(lambda x: torch.hash_tensor(x.view(torch.float16), 1), torch.arange(-2**15, 2**15).to(torch.int16).view(-1, 1))
    compare(lambda x: torch.hash_tensor(x.view(torch.bfloat16), 1), torch.arange(-2**15, 2**15).to(torch.int16).view(-1, 1))
    bits = torch.arange(-2**31, 2**31, 65537 * 7).to(torch.int32)
    bits = torch.cat([bits, torch.arange(-2**31, -2**31 + 300, dtype=torch.int32), torch.arange(300, dtype=torch.int32), (2**torch.arange(31)).int()])
    compare(lambda x: torch.hash_tensor(x.view(torch.float32), 1), bits.view(-1, 1))
    compare(lambda x: torch.hash_tensor(x, 1), torch.tensor([[2**63 - 1], [-2**63], [2**53 + 1]]))


def test_hash_out_and_errors():
    x = make((4, 6))
    for out in (torch.empty(0, dtype=torch.uint64), torch.zeros(8, dtype=torch.uint64)[::2]):
        compare(lambda x, out: torch.hash_tensor(x, 1, out=out), x, out)
    compare(lambda x: torch.hash_tensor(x, 1), torch.empty(0, 3))
    compare(lambda x: torch.hash_tensor(x, (0, -1)), torch.tensor(2.0).view(1, 1))
    for dtype in (torch.uint16, torch.uint64, torch.complex64):
        compare_errors(torch.hash_tensor, torch.zeros(3).to(dtype))
    compare_errors(torch.hash_tensor, torch.empty(0))
    compare_errors(lambda x: torch.hash_tensor(x, 0), torch.empty(0, 3))
    compare_errors(lambda x: torch.hash_tensor(x, mode=1), x)
    compare_errors(lambda x: torch.hash_tensor(x, 2), x)
    compare_errors(lambda x: torch.hash_tensor(x, (0, 0)), x)
    compare_errors(lambda x, out: torch.hash_tensor(x, out=out), x, torch.empty(0, dtype=torch.long))
