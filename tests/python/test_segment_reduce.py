# SPDX-License-Identifier: BSD-3-Clause
"""Reductions of neighbouring rows: segment_reduce by lengths and by offsets, its gradient, and what is refused."""
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from compare import FLOATS, compare, compare_errors, layouts, make, to_mps

REDUCTIONS = ("sum", "mean", "prod", "max", "min", "amax", "amin")
NAN = float("nan")
backward = torch.ops.aten._segment_reduce_backward


def bounds(*lengths):
    """(lengths, offsets)"""
    lengths = torch.tensor(lengths)
    return lengths, torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)])


def check(data, reduce, lengths=None, offsets=None, **options):
    """Values and gradient. Halves are compared with the result in float, rounded once."""
    def run(data, lengths, offsets):
        data = data.detach().requires_grad_()
        result = torch.segment_reduce(data, reduce, lengths=lengths, offsets=offsets, **options)
        weights = torch.linspace(-1, 2, result.numel()).view(result.shape).to(result)
        return result.detach(), torch.autograd.grad(result, data, weights)[0]

    if data.dtype == torch.float32:
        compare(run, data, lengths, offsets, strides=True)
        return
    given = to_mps(data)
    actual = run(given, to_mps(lengths), to_mps(offsets))
    value = run(data.float(), lengths, offsets)[0].to(data.dtype)
    torch.testing.assert_close(actual[0].cpu(), value, equal_nan=True)
    weights = torch.linspace(-1, 2, value.numel()).view(value.shape).to(data.dtype)
    gradient = backward(weights.float(), value.float(), data.float(), reduce, lengths=lengths, offsets=offsets, axis=options.get("axis", 0),
                        initial=options.get("initial"))
    torch.testing.assert_close(actual[1].cpu(), gradient.to(data.dtype), equal_nan=True)


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_rows(reduce, dtype):
    lengths, offsets = bounds(3, 0, 1, 40, 2)
    for shape in ((46,), (46, 1), (46, 3), (46, 5, 13), (46, 64), (46, 130)):
        for _, x in layouts(make(shape, dtype)):
            check(x, reduce, lengths)
    x = make((46, 3), dtype)
    check(x, reduce, lengths.int())
    check(x, reduce, offsets=offsets)
    check(x, reduce, offsets=offsets.int())
    for initial in (0, 1.5, -2, 7):
        check(x, reduce, lengths, initial=initial)


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_axis(reduce):
    lengths = torch.tensor([[2, 3, 1], [0, 6, 0]])
    offsets = torch.cat([torch.zeros(2, 1, dtype=torch.long), lengths.cumsum(1)], 1)
    for shape in ((2, 6), (2, 6, 4), (2, 6, 70)):
        for _, x in layouts(make(shape)):
            for _, rows in layouts(lengths):
                check(x, reduce, rows, axis=1)
            check(x, reduce, offsets=offsets, axis=1)
            check(x, reduce, offsets=offsets.t().contiguous().t(), axis=1)
    check(make((2, 3, 6)), reduce, torch.tensor([[[2, 4], [6, 0], [0, 6]], [[1, 5], [3, 3], [4, 2]]]), axis=-1)
    compare(lambda x, n: torch.segment_reduce(x, reduce, lengths=n, axis=1), make((1, 6)), lengths)  # more rows of lengths than of data


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_special_values(reduce):
    x = torch.tensor([1.0, NAN, 3.0, NAN, 2.0, 0.0, 0.0, -0.0, 4.0, float("inf"), -float("inf"), 0.0, 5.0, 5.0, -5.0])
    lengths, offsets = bounds(3, 1, 0, 1, 4, 2, 4)
    for initial in (None, NAN, 0.0, float("inf")):
        check(x, reduce, lengths, initial=initial)
        check(x, reduce, offsets=offsets, initial=initial)
    check(torch.zeros(6), reduce, torch.tensor([2, 1, 3]))
    check(torch.tensor([0.0, 3, 2, 0, 0, 2, 5, 0]), reduce, torch.tensor([3, 3, 2]))


def test_equal_extremes_share_a_positive_gradient_only():
    """As on the CPU, which divides what is above 0."""
    data, value, lengths = torch.tensor([3.0, 3, 1, 3, 3]), torch.tensor([3.0, 3.0]), torch.tensor([3, 2])
    for grad in ([2.0, -2.0], [-1.0, 1.0], [NAN, 0.0]):
        result = compare(lambda g, v, d, n: backward(g, v, d, "max", lengths=n), torch.tensor(grad), value, data, lengths)
    assert result[3] == 0
    compare(lambda g, v, d, n: backward(g, v, d, "max", lengths=n), torch.ones(2), torch.tensor([9.0, 3.0]), data, lengths)


def test_unsafe_and_parts():
    x = make((9, 3))
    compare(lambda x, n: torch.segment_reduce(x, "sum", lengths=n, unsafe=True), x, torch.tensor([2, 3]))
    compare(lambda x, n: torch.segment_reduce(x, "sum", offsets=n), x, torch.tensor([2, 3, 7]))
    compare(lambda x, n: torch.segment_reduce(x, "mean", lengths=n, offsets=torch.tensor([0, 9], device=x.device)), x, torch.tensor([4, 5]))
    check(x, "prod", torch.tensor([2, 3]), unsafe=True)
    check(x, "max", offsets=torch.tensor([1, 3, 8]))


def test_empty():
    none = torch.empty(0, dtype=torch.long)
    for reduce in REDUCTIONS:
        compare(lambda x, n: torch.segment_reduce(x, reduce, lengths=n), torch.empty(0, 3), torch.tensor([0, 0]), strides=True)
        compare(lambda x, n: torch.segment_reduce(x, reduce, lengths=n), torch.empty(3, 0), torch.tensor([1, 2]), strides=True)
        compare(lambda x, n: torch.segment_reduce(x, reduce, offsets=n, axis=1), torch.empty(0, 3), torch.empty(0, 2, dtype=torch.long), strides=True)
    compare(lambda x, n: torch.segment_reduce(x, "sum", lengths=n, unsafe=True), make((3, 2)), none, strides=True)
    compare(lambda x, n: torch.segment_reduce(x, "sum", offsets=n), make((3, 2)), torch.tensor([0]), strides=True)
    compare(lambda g, x, n: backward(g, g, x, "sum", lengths=n), torch.empty(0, 2), make((3, 2)), none)


def test_out():
    x, (lengths, offsets) = make((6, 4)), bounds(1, 5)
    for out in (torch.empty(0), torch.zeros(4, 2).t(), torch.zeros(2, 8)[:, ::2]):
        compare(lambda x, n, out: torch.ops.aten.segment_reduce.out(x, "mean", lengths=n, out=out), x, lengths, out)
        compare(lambda x, n, out: torch.ops.aten._segment_reduce_backward.out(x[:2], x[:2], x, "mean", offsets=n, out=out), x, offsets, torch.empty(0))
    compare_errors(lambda x, n: torch.ops.aten.segment_reduce.out(x, "sum", lengths=n, out=torch.empty(0, dtype=torch.int, device=x.device)), x, lengths)


def test_errors():
    x, (lengths, _) = make((6, 4)), bounds(1, 5)
    reduce = torch.segment_reduce
    compare_errors(lambda x, n: reduce(x, "median", lengths=n), x, lengths)
    compare_errors(lambda x: reduce(x, "sum"), x)
    compare_errors(lambda x, n: reduce(x, "sum", indices=n), x, lengths)
    compare_errors(lambda x, n: reduce(x, "sum", lengths=n), x, torch.tensor([1, 4]))
    compare_errors(lambda x, n: reduce(x, "sum", lengths=n), x, torch.tensor([-1, 7]))
    for name in ("lengths", "offsets"):
        for axis in (1, -1, 5):
            compare_errors(lambda x, n: reduce(x, "sum", axis=axis, **{name: n}), x, lengths)
        compare_errors(lambda x, n: reduce(x, "sum", **{name: n}), x, torch.tensor(6))
        compare_errors(lambda x, n: reduce(x, "sum", **{name: n}), torch.tensor(1.0), torch.tensor([1]))
        compare_errors(lambda x, n: reduce(x, "sum", **{name: n}), x, torch.tensor([6.0]))
        compare_errors(lambda x, n: reduce(x, "sum", **{name: n}), x, torch.tensor([6], dtype=torch.int16))
        compare_errors(lambda x, n: backward(x, x, x, "sum", **{name: n}), x, torch.tensor([6.0]))
    compare_errors(lambda x, n: reduce(x, "sum", lengths=n), x, torch.empty(0, dtype=torch.long))
    compare_errors(lambda x, n: reduce(x, "sum", offsets=n), x, torch.empty(0, dtype=torch.long))
    compare_errors(lambda x, n: reduce(x, "sum", lengths=n), x.long(), lengths)
    compare_errors(lambda x, n: reduce(x, "sum", lengths=n), x.to(torch.complex64), lengths)
    compare_errors(lambda x, n: reduce(x, "sum", lengths=n, initial=1e6), x.half(), lengths)
    compare_errors(lambda x, n: reduce(x, "sum", lengths=n, initial=2j), x, lengths)
    compare_errors(lambda x, n: backward(x, x, x, "median", lengths=n), x, lengths)
    compare_errors(lambda x: backward(x, x, x, "sum"), x)
    compare_errors(lambda x, n: backward(x.half(), x, x, "sum", lengths=n), x, lengths)


@pytest.mark.parametrize("options", [{"lengths": [2, 9]}, {"lengths": [2, -1]}, {"offsets": [0, 3, 2]}, {"offsets": [-1, 3]}, {"offsets": [0, 7]}])
def test_segments_outside_are_reported_and_read_nothing(options):
    """The CPU reads beyond its memory, or raises an error of its own."""
    x = make((6, 4)).to("mps")
    name, values = next(iter(options.items()))
    with pytest.raises(torch.AcceleratorError):
        torch.segment_reduce(x, "sum", unsafe=True, **{name: torch.tensor(values, device="mps")})
        torch.mps.synchronize()
    torch.mps.synchronize()


def test_too_few_rows_of_bounds():
    x, n = make((6, 4)).to("mps"), torch.tensor([[1, 3]], device="mps")
    with pytest.raises(RuntimeError, match="expected lengths for 6 rows of data, got 1"):
        torch.segment_reduce(x, "sum", lengths=n, axis=1)


def test_many_rows_add_up_precisely():
    x = torch.ones(3_000_000)
    assert torch.segment_reduce(x.to("mps"), "sum", lengths=torch.tensor([3_000_000], device="mps")).item() == 3_000_000
    x = make((100_000,), seed=3)
    actual = torch.segment_reduce(x.to("mps"), "mean", lengths=torch.tensor([100_000], device="mps")).item()
    assert abs(actual - x.double().mean().item()) < 1e-7


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.lists(st.integers(0, 70), max_size=2), st.sampled_from(REDUCTIONS),
       st.sampled_from([None, 0.0, 0.5, -3.0]), st.booleans(), st.sampled_from(FLOATS))
def test_any_segments(lengths, inner, reduce, initial, by_offsets, dtype):
    n, offsets = bounds(*lengths)
    x = make((sum(lengths), *inner), dtype, seed=len(inner)).clamp(-1.5, 1.5)
    check(x, reduce, **({"offsets": offsets} if by_offsets else {"lengths": n}), initial=initial)
