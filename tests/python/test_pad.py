# SPDX-License-Identifier: BSD-3-Clause
"""Padding: reflection, replication, constant and circular, in one to three dimensions; values, layouts, gradients."""
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch.nn import functional as F

from compare import ALL_DTYPES, FLOATS, clone, compare, compare_errors, compare_gradients, layouts, make, to_mps

# The CPU rounds half sums at each step.
LOOSE = {torch.float16: {"rtol": 1e-2, "atol": 3e-2}, torch.bfloat16: {"rtol": 5e-2, "atol": 3e-1}}
SHAPES = {1: (2, 3, 7), 2: (2, 3, 5, 6), 3: (2, 3, 4, 5, 6)}
PADDINGS = {1: [(1, 2), (0, 6), (-2, 3), (4, -3), (-1, -1)],
            2: [(1, 2, 3, 4), (5, 0, 0, 4), (-1, 2, 3, -2), (-2, -2, -1, -1), (5, -3, -3, 4)],
            3: [(1, 2, 3, 4, 3, 2), (0, 1, -2, 2, 1, -1), (5, 5, 4, 4, 3, 3)]}
CASES = [(n, p) for n in SHAPES for p in PADDINGS[n]]
MODES = ["reflect", "replicate"]


@pytest.mark.parametrize("mode", MODES + ["constant", "circular"])
@pytest.mark.parametrize("n,padding", CASES)
def test_values_and_layouts(mode, n, padding):
    if mode == "circular" and padding in ((4, -3), (-1, 2, 3, -2), (5, -3, -3, 4), (0, 1, -2, 2, 1, -1)):
        return  # the CPU leaves memory as it was
    for _, x in layouts(make(SHAPES[n], special=True)):
        compare(lambda x: F.pad(x, padding, mode), x, strides=True, rtol=0, atol=0)
    compare(lambda x: F.pad(x, padding, mode), make(SHAPES[n][1:]), strides=True)
    if n == 3:
        compare(lambda x: F.pad(x, padding, mode), make(SHAPES[n]).contiguous(memory_format=torch.channels_last_3d), strides=True)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [d for d in ALL_DTYPES if d != torch.bool])
def test_dtypes(mode, dtype):
    for n, shape in SHAPES.items():
        compare(lambda x: F.pad(x, PADDINGS[n][0], mode), make(shape, dtype), rtol=0, atol=0)
    if dtype in FLOATS or dtype.is_complex:
        for n, shape in SHAPES.items():
            for padding in PADDINGS[n]:
                compare_gradients(lambda x: F.pad(x, padding, mode), make(shape, dtype), **LOOSE.get(dtype, {}))


@pytest.mark.parametrize("mode", MODES + ["circular"])
@pytest.mark.parametrize("n,padding", [case for case in CASES if case[0] > 1])
def test_gradients_in_channels_last(mode, n, padding):
    memory_format = torch.channels_last if n == 2 else torch.channels_last_3d
    x = make(SHAPES[n]).contiguous(memory_format=memory_format)

    def gradient(x, direction):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(F.pad(x, padding, mode), x, direction)[0]

    direction = make(tuple(F.pad(x, padding, mode).shape), seed=1)
    for dtype, loose in LOOSE.items():
        compare(gradient, x.to(dtype), direction.to(dtype).contiguous(memory_format=memory_format), strides=True, **loose)
    for g in (direction, direction.contiguous(memory_format=memory_format), direction[:1].expand(direction.shape)):
        compare(gradient, x, g, strides=True)


@pytest.mark.parametrize("name,n", [(f"{kind}_pad{n}d", n) for kind in ("reflection", "replication") for n in (1, 2, 3)])
def test_backward_entries(name, n):
    """Sums are in PyTorch's order: equal bit for bit. -0 in the gradient becomes 0."""
    x, backward, padding = make(SHAPES[n]), getattr(torch.ops.aten, name + "_backward"), list(PADDINGS[n][0])
    grad = make(tuple(getattr(torch.ops.aten, name)(x, padding).shape), seed=1, special=True)
    for g in (grad, torch.full_like(grad, -0.0)):
        result = compare(lambda g, x: backward(g, x, padding), g, x, rtol=0, atol=0)
        same = backward(to_mps(g), to_mps(x), padding).cpu()
        assert torch.equal(same.nan_to_num().signbit(), result.nan_to_num().signbit())
    compare(lambda g, x, out: backward.grad_input(g, x, padding, grad_input=out), grad, x, torch.empty(0), strides=True)


@pytest.mark.parametrize("name,n", [(f"{kind}_pad{n}d", n) for kind in ("reflection", "replication") for n in (1, 2, 3)])
def test_out(name, n):
    entry, padding = getattr(torch.ops.aten, name), list(PADDINGS[n][0])
    x = make(SHAPES[n])
    shape = entry(x, padding).shape
    compare(lambda x, out: entry.out(x, padding, out=out), x, torch.empty(0), strides=True)
    compare(lambda x, out: entry.out(x, padding, out=out), x, torch.zeros(shape), strides=True)
    if n == 1:
        compare(lambda x, out: entry.out(x, padding, out=out.transpose(0, 1)), x, torch.zeros(shape).transpose(0, 1).contiguous())
    compare(lambda x, out: entry.out(x, padding, out=out.transpose(0, 1)).clone(), x, torch.zeros(shape).transpose(0, 1).contiguous(), strides=True)
    compare_errors(lambda x, out: entry.out(x, padding, out=out), x, torch.zeros(shape, dtype=torch.int64))


def test_conjugate_and_negative():
    compare(lambda x: F.pad(x.conj(), (2, 1), "reflect"), make((2, 7), torch.complex64))
    compare(lambda x: F.pad(x.conj().imag, (2, 1), "replicate"), make((2, 7), torch.complex64))


@pytest.mark.parametrize("mode", MODES)
def test_empty_and_errors(mode):
    compare(lambda x: F.pad(x, (1, 1), mode), torch.zeros(0, 3, 4))
    compare(lambda x: F.pad(x, (1, 1, 1, 1), mode), torch.zeros(0, 3, 4, 4))
    compare_gradients(lambda x: F.pad(x, (1, 1, 1, 1), mode), torch.zeros(0, 3, 4, 4))
    for shape, padding in [((3, 0), (1, 1)), ((3, 0, 4), (1, 1)), ((2, 3, 0, 4), (1, 1, 1, 1)), ((3, 4), (-2, -2)), ((3, 4, 4), (-2, -2, -2, -2)),
                           ((2, 3, 4, 5), (5, 0, 0, 0)), ((2, 3, 4, 5), (0, 0, 0, 4)), ((2, 3), (4, 0)), ((2, 3, 4, 5, 6), (6, 0, 0, 0, 0, 0)),
                           ((2, 3, 4, 5, 6), (0, 0, 0, 0, -4, -4)), ((2, 3, 4, 5), (-3, -3, 0, 0))]:
        x = torch.zeros(shape)
        try:
            F.pad(x, padding, mode)
        except Exception:  # noqa: BLE001 - whatever the CPU refuses
            compare_errors(lambda x: F.pad(x, padding, mode), x)
        else:
            compare(lambda x: F.pad(x, padding, mode), x)
    for name in ("reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "replication_pad1d", "replication_pad2d", "replication_pad3d"):
        n = int(name[-2])
        compare_errors(lambda x, g: getattr(torch.ops.aten, name + "_backward")(g, x, [1] * 2 * n), torch.zeros(SHAPES[n]), torch.zeros(SHAPES[n]))


def test_constant():
    for _, x in layouts(make((2, 3, 5, 6))):
        for padding in ((0, 0), (-1, -2), (-1, 0, -2, -2), (0, 0, 0, 0, -1, 0)):
            compare(lambda x: F.pad(x, padding, value=2.5), x, strides=True)
    for padding in ((-4, 3), (-1, -3), (-5, -5), (-4, 1)):
        compare_errors(lambda x: F.pad(x, padding), make((2, 3)))


@pytest.mark.parametrize("mode", MODES)
def test_long_row(mode):
    compare_gradients(lambda x: F.pad(x, (700, 31), mode), make((2, 40000)))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_padding(data):
    n = data.draw(st.integers(1, 3))
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=n + 2, max_size=n + 2))
    mode = data.draw(st.sampled_from(MODES))
    padding = []
    for size in reversed(sizes[2:]):
        before = data.draw(st.integers(1 - size, size - 1))
        behind = data.draw(st.integers(max(1 - size, 1 - size - before), size - 1))
        padding += [before, behind]
    x = make(tuple(sizes))
    if n > 1 and data.draw(st.booleans()):
        x = x.contiguous(memory_format=torch.channels_last if n == 2 else torch.channels_last_3d)

    def both(x, direction):
        x = x.detach().requires_grad_()
        y = F.pad(x, padding, mode)
        return y, torch.autograd.grad(y, x, direction)[0]

    compare(both, x, make(tuple(F.pad(clone(x), padding, mode).shape), seed=1), strides=True)
