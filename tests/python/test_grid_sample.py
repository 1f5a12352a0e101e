# SPDX-License-Identifier: BSD-3-Clause
"""Sampling at the points of a grid: modes, paddings, corners, points outside, special values, gradients."""
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from compare import FLOATS, compare, compare_errors, compare_gradients, layouts, make

PADDINGS = ("zeros", "border", "reflection")
LOOSE = {"rtol": 1e-5, "atol": 2e-5}
HALVES = (torch.float16, torch.bfloat16)


def modes(dimensions):
    return ("bilinear", "nearest", "bicubic") if dimensions == 2 else ("bilinear", "nearest")


def make_grid(batch, points, dtype=torch.float32, reach=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return ((torch.rand((batch,) + points + (len(points),), generator=generator) * 2 - 1) * reach).to(dtype)


def check(x, grid, **options):
    """Halves: what float gives for them, rounded once. The CPU rounds coordinates and sums on the way, which moves points by whole elements."""
    if x.dtype == torch.float32:
        compare(F.grid_sample, x, grid, strides=True, **options, **LOOSE)
        return
    got = F.grid_sample(x.to("mps"), grid.to("mps"), **options)
    expected = F.grid_sample(x.float(), grid.float(), **options).to(x.dtype)
    assert got.dtype == x.dtype and got.stride() == expected.stride()
    torch.testing.assert_close(got.cpu(), expected, rtol=torch.finfo(x.dtype).eps, atol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("dimensions", (2, 3))
def test_values(dtype, dimensions):
    for shape, points in (((2, 3, 7, 5, 6), (4, 9, 3)), ((1, 2, 1, 1, 1), (3, 2, 2)), ((2, 1, 20, 31, 4), (12, 11, 5))):
        x = make(shape[: 2 + dimensions], dtype)
        for reach in (1.0, 3.3):
            grid = make_grid(shape[0], points[:dimensions], dtype, reach)
            for mode in modes(dimensions):
                for padding in PADDINGS:
                    for corners in (False, True):
                        check(x, grid, mode=mode, padding_mode=padding, align_corners=corners)


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("dimensions", (2, 3))
def test_gradients(padding, dimensions):
    for shape, points in (((2, 3, 7, 5, 6), (4, 9, 3)), ((1, 2, 1, 1, 1), (3, 2, 2)), ((1, 1, 9, 8, 4), (12, 11, 5))):
        for reach in (1.0, 2.5):
            x, grid = make(shape[: 2 + dimensions]), make_grid(shape[0], points[:dimensions], reach=reach)
            for mode in modes(dimensions):
                for corners in (False, True):
                    compare_gradients(lambda x, g: F.grid_sample(x, g, mode=mode, padding_mode=padding, align_corners=corners), x, grid, rtol=2e-5, atol=2e-4)


@pytest.mark.parametrize("dtype", HALVES)
def test_halves_find_the_right_element_of_a_large_picture(dtype):
    """Half has 11 bits and bfloat16 8: a coordinate in them is off by several elements."""
    x, grid = make((1, 2, 345, 456), dtype), make_grid(1, (30, 40), dtype, 1.05)
    for mode in modes(2):
        for padding in PADDINGS:
            check(x * 100, grid, mode=mode, padding_mode=padding, align_corners=False)
    check(make((1, 2, 5, 6, 700), dtype), make_grid(1, (3, 4, 50), dtype), mode="nearest", align_corners=True)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("dimensions", (2, 3))
def test_gradients_of_halves(dtype, dimensions):
    x, grid = make((2, 2, 6, 7, 5)[: 2 + dimensions], dtype), make_grid(2, (3, 4, 2)[:dimensions], dtype, 0.9)
    for mode in modes(dimensions):
        for padding in PADDINGS:
            def gradients(x, grid):
                inputs = [x.detach().requires_grad_(), grid.detach().requires_grad_()]
                return torch.autograd.grad(F.grid_sample(*inputs, mode=mode, padding_mode=padding, align_corners=False).sum(), inputs)
            for got, expected in zip(gradients(x.to("mps"), grid.to("mps")), gradients(x.float(), grid.float())):
                torch.testing.assert_close(got.cpu(), expected.to(dtype), rtol=torch.finfo(dtype).eps, atol=1e-5)


@pytest.mark.parametrize("dimensions", (2, 3))
def test_pixel_centres_and_edges(dimensions):
    """Points exactly on pixels, between them, on the border: no rounding decides."""
    for size in (4, 5):
        axis = torch.linspace(-1.5, 1.5, 13)
        grid = torch.stack(torch.meshgrid(*[axis] * dimensions, indexing="ij"), -1)[None]
        x = make((1, 2) + (size,) * dimensions)
        for mode in modes(dimensions):
            for padding in PADDINGS:
                for corners in (False, True):
                    compare(F.grid_sample, x, grid, mode=mode, padding_mode=padding, align_corners=corners, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("dimensions", (2, 3))
def test_special_points(padding, dimensions):
    grid = make_grid(1, (4, 5, 3)[:dimensions])
    flat = grid.view(-1)
    for place, value in ((0, float("nan")), (7, float("inf")), (9, -float("inf")), (12, 1e10), (14, -1e20), (17, 1e30)):
        flat[place] = value
    for mode in modes(dimensions):
        for corners in (False, True):
            compare(F.grid_sample, make((1, 2, 5, 6, 7)[: 2 + dimensions]), grid, mode=mode, padding_mode=padding, align_corners=corners, rtol=1e-5, atol=2e-5)


def test_infinity_outside_is_not_read():
    x = torch.full((1, 1, 3, 3), float("inf"))
    x[0, 0, 1, 1] = 2.0
    for mode in ("bilinear", "nearest"):
        compare(F.grid_sample, x, torch.tensor([[[[0.0, 0.0], [-5.0, 0.0], [0.9, 0.9]]]]), mode=mode, align_corners=True)


def test_layouts():
    grid = make_grid(2, (3, 4))
    for _, x in layouts(make((2, 3, 6, 5))):
        for _, g in layouts(grid):
            compare(F.grid_sample, x, g, align_corners=False, strides=True, rtol=1e-5, atol=2e-5)
    compare_gradients(lambda x, g: F.grid_sample(x.transpose(2, 3), g, align_corners=False), make((2, 3, 6, 5)), grid, rtol=1e-5, atol=2e-5)
    compare(F.grid_sample, make((2, 3, 6, 5)), grid.permute(0, 3, 1, 2).contiguous().permute(0, 2, 3, 1), align_corners=True, rtol=1e-5, atol=2e-5)


def test_one_gradient_only():
    x, grid = make((2, 3, 6, 5)), make_grid(2, (3, 4))
    compare_gradients(lambda x: F.grid_sample(x, grid.to(x.device), align_corners=False), x)
    compare_gradients(lambda g: F.grid_sample(x.to(g.device), g, align_corners=False), grid, rtol=1e-5, atol=5e-5)


def test_gradients_do_not_depend_on_the_run():
    x, grid = make((2, 3, 9, 9)).to("mps").requires_grad_(), make_grid(2, (80, 70), reach=1.2).to("mps")
    results = [torch.autograd.grad(F.grid_sample(x, grid, align_corners=False).sum(), x)[0].cpu() for _ in range(3)]
    assert all(torch.equal(results[0], r) for r in results)


def test_empty_and_errors():
    compare(F.grid_sample, torch.zeros(0, 3, 4, 4), torch.zeros(0, 2, 2, 2), align_corners=False)
    compare(F.grid_sample, make((1, 3, 4, 4)), torch.zeros(1, 0, 2, 2), align_corners=False)
    compare_gradients(lambda x, g: F.grid_sample(x, g, align_corners=False), make((1, 3, 4, 4)), torch.zeros(1, 0, 2, 2))
    compare_gradients(lambda x, g: F.grid_sample(x, g, align_corners=False), torch.zeros(1, 0, 4, 4), torch.zeros(1, 2, 2, 2))

    def sample(x, g, **options):
        return F.grid_sample(x, g, align_corners=False, **options)
    compare_errors(sample, make((1, 3, 4, 4)), torch.zeros(2, 2, 2, 2))
    compare_errors(sample, make((1, 3, 4, 4)), torch.zeros(1, 2, 2, 3))
    compare_errors(sample, make((1, 3, 0, 4)), torch.zeros(1, 2, 2, 2))
    compare_errors(sample, make((1, 3, 4, 4)), torch.zeros(1, 2, 2, 2, 2))
    compare_errors(lambda x, g: sample(x, g, mode="bicubic"), make((1, 3, 4, 4, 4)), torch.zeros(1, 2, 2, 2, 3))
    compare_errors(sample, make((1, 3, 4, 4), torch.int32), torch.zeros(1, 2, 2, 2))
    compare_errors(sample, make((1, 3, 4, 4, 4), torch.uint8), torch.zeros(1, 2, 2, 2, 3))
    compare_errors(sample, make((1, 3, 4, 4)), torch.zeros(1, 2, 2, 2, dtype=torch.float16))


@st.composite
def calls(draw):
    dimensions = draw(st.integers(2, 3))
    space = st.tuples(*[st.integers(1, 12)] * dimensions)
    return (draw(st.integers(1, 2)), draw(st.integers(1, 4)), draw(space), draw(space), draw(st.sampled_from((0.5, 1.0, 1.5, 4.0))), draw(st.integers(0, 9)),
            dict(mode=draw(st.sampled_from(modes(dimensions))), padding_mode=draw(st.sampled_from(PADDINGS)), align_corners=draw(st.booleans())))


@given(calls())
@settings(max_examples=120, deadline=None, derandomize=True)
def test_any_call(call):
    batch, channels, space, points, reach, seed, options = call
    x, grid = make((batch, channels) + space, seed=seed), make_grid(batch, points, reach=reach, seed=seed)
    compare(F.grid_sample, x, grid, rtol=1e-5, atol=3e-5, **options)
    compare_gradients(lambda x, g: F.grid_sample(x, g, **options), x, grid, rtol=1e-4, atol=5e-4)
