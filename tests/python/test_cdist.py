# SPDX-License-Identifier: BSD-3-Clause
"""Distances between rows: cdist and pdist, all norms, broadcast batches, empty ones, NaN, gradients where a distance is zero."""
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch.nn import functional as F

from compare import compare, compare_errors, compare_gradients, layouts, make, to_mps

INF = float("inf")
NORMS = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 7.5, INF]
MODES = ["use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"]
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


@pytest.mark.parametrize("p", NORMS)
def test_values_and_layouts(p):
    for _, x in layouts(make((2, 5, 7))):
        compare(lambda x, y: torch.cdist(x, y, p), x, make((2, 6, 7), seed=1), strides=True, **CLOSE)
    for _, y in layouts(make((9, 3), seed=2)):
        compare(lambda x, y: torch.cdist(x, y, p), make((4, 3)), y, strides=True, **CLOSE)
    compare(lambda x, y: torch.cdist(x, y, p), make((70, 5)), make((130, 5), seed=1), rtol=1e-4, atol=2e-3)  # p = 2: a matrix product
    compare(lambda x, y: torch.cdist(x, y, p, "donot_use_mm_for_euclid_dist"), make((3, 5)), make((700, 5), seed=1), **CLOSE)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rows", [3, 30])
def test_modes(mode, rows):
    compare(lambda x, y: torch.cdist(x, y, 2.0, mode), make((2, rows, 7)), make((2, 6, 7), seed=1), rtol=1e-4, atol=1e-3)
    compare_gradients(lambda x, y: torch.cdist(x, y, 2.0, mode), make((rows, 7)), make((6, 7), seed=1), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("p", NORMS)
def test_gradients(p):
    compare_gradients(lambda x, y: torch.cdist(x, y, p), make((2, 5, 7)), make((2, 6, 7), seed=1), rtol=1e-4, atol=1e-4)
    compare_gradients(lambda x, y: torch.cdist(x, y, p), make((5, 1)), make((6, 1), seed=1), rtol=1e-4, atol=1e-4)
    compare_gradients(lambda x, y: torch.cdist(x, y, p), make((3, 1, 5, 4)), make((2, 6, 4), seed=1), rtol=1e-4, atol=1e-4)
    x = torch.tensor([[1.0, 2.0, 3.0], [1.0, 0.0, -1.0], [0.0, 0.0, 0.0]])  # equal rows, and rows with equal columns
    compare_gradients(lambda x: torch.cdist(x, x, p), x, **CLOSE)
    compare_gradients(lambda x, y: torch.cdist(x, y, p), x, x.clone(), **CLOSE)


@pytest.mark.parametrize("p", NORMS)
def test_infinities_and_nan(p):
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, float("nan"), 6.0], [1.0, 2.0, 3.0], [INF, -INF, 0.0]])
    y = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0], [INF, 2.0, 3.0]])
    compare(lambda x, y: torch.cdist(x, y, p), x, y, **CLOSE)
    compare_gradients(lambda x, y: torch.cdist(x, y, p), x, y, **CLOSE)


@pytest.mark.parametrize("p", [0.0, 2.0, INF])
def test_empty(p):
    for a, b in [((0, 3), (4, 3)), ((4, 3), (0, 3)), ((4, 0), (5, 0)), ((0, 4, 3), (0, 5, 3)), ((2, 0, 3), (2, 4, 3)), ((1, 4, 3), (0, 2, 3)), ((30, 0), (40, 0))]:
        compare(lambda x, y: torch.cdist(x, y, p), torch.zeros(a), torch.zeros(b), strides=True)
        compare_gradients(lambda x, y: torch.cdist(x, y, p), torch.zeros(a), torch.zeros(b))
    for shape in [(0, 3), (1, 3), (4, 0)]:
        compare(lambda x: F.pdist(x, p), torch.zeros(shape))
        x = torch.zeros(shape, device="mps", requires_grad=True)
        assert not torch.autograd.grad(F.pdist(x, p).sum(), x)[0].any()  # the CPU divides by zero here


@pytest.mark.parametrize("p", NORMS)
def test_pdist(p):
    for _, x in layouts(make((9, 5))):
        compare(lambda x: F.pdist(x, p), x, strides=True, **CLOSE)
    compare(lambda x: F.pdist(x, p), make((140, 3)), **CLOSE)
    compare_gradients(lambda x: F.pdist(x, p), make((9, 20)), rtol=1e-4, atol=1e-4)
    compare_gradients(lambda x: F.pdist(x, p), torch.tensor([[1.0, 2.0], [1.0, 2.0], [1.0, 3.0]]), **CLOSE)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half(dtype):
    """The CPU has no kernel: computed in float and rounded once."""
    x, y, grad = make((5, 7), dtype), make((6, 7), dtype, seed=1), make((5, 6), dtype, seed=2)
    for p in NORMS:
        result = torch.cdist(to_mps(x), to_mps(y), p)
        expected = torch.cdist(x.float(), y.float(), p)
        torch.testing.assert_close(result.cpu(), expected.to(dtype))
        gradient = torch.ops.aten._cdist_backward(to_mps(grad), to_mps(x), to_mps(y), p, result)
        a, b = x.float().requires_grad_(), y.float()
        reference = torch.autograd.grad(torch.cdist(a, b, p), a, grad.float())[0]  # its distances are not rounded to half
        torch.testing.assert_close(gradient.cpu(), reference.to(dtype), rtol=2e-2, atol=2e-2)
        a, on_device = x.float().requires_grad_(), to_mps(x).requires_grad_()
        reference = torch.autograd.grad(F.pdist(a, p).sum(), a)[0]
        gradient = torch.autograd.grad(F.pdist(on_device, p).sum(), on_device)[0]
        torch.testing.assert_close(gradient.cpu(), reference.to(dtype), rtol=2e-2, atol=2e-2)


def test_backward_layouts():
    x, y, grad = make((5, 7)), make((6, 7), seed=1), make((5, 6), seed=2)
    distances = torch.cdist(x, y, 3.0)
    for (_, a), (_, b), (_, g), (_, d) in zip(layouts(x), layouts(y), layouts(grad), layouts(distances)):
        compare(lambda g, a, b, d: torch.ops.aten._cdist_backward(g, a, b, 3.0, d), g, a, b, d, rtol=1e-4, atol=1e-4)


def test_errors():
    for a, b, p in [((3,), (4, 3), 2.0), ((4, 3), (3,), 2.0), ((4, 3), (4, 2), 2.0), ((4, 3), (4, 3), -1.0), ((2, 4, 3), (3, 4, 3), 1.0)]:
        compare_errors(lambda x, y: torch.cdist(x, y, p), torch.zeros(a), torch.zeros(b))
    compare_errors(lambda x: torch.cdist(x, x), torch.zeros(3, 3, dtype=torch.int64))
    compare_errors(lambda x: F.pdist(x), torch.zeros(3))
    compare_errors(lambda x: F.pdist(x, -1.0), torch.zeros(3, 3))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_shape(data):
    batches = st.lists(st.integers(0, 3), max_size=2)
    batch = data.draw(batches)
    other = [data.draw(st.sampled_from([1, size])) for size in batch][data.draw(st.integers(0, len(batch))):]
    rows, others, length = (data.draw(st.integers(0, 70)), data.draw(st.integers(0, 70)), data.draw(st.integers(0, 20)))
    p = data.draw(st.sampled_from(NORMS))
    compare(lambda x, y: torch.cdist(x, y, p, MODES[2]), make((*batch, rows, length)), make((*other, others, length), seed=1), strides=True, **CLOSE)
