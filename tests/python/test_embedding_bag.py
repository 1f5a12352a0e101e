# SPDX-License-Identifier: BSD-3-Clause
"""Bags of embeddings: the four results in the CPU's shapes and dtypes, gradients, and what is refused."""
import itertools

import pytest
import torch
from torch.nn import functional as F

from compare import FLOATS, compare, compare_errors, compare_gradients, layouts, make

INDICES = torch.tensor([1, 2, 4, 2, 9, 4, 0, 4, 4])
OFFSETS = torch.tensor([0, 2, 2, 6, 7, 9])  # bag 1 and, without a last offset, bag 5 are empty
MODES = {0: "sum", 1: "mean", 2: "max"}


def results(name, mode, keep):
    """The results of one entry. Sums leave bag_size and the maxima to nobody: only their shapes are compared."""
    def call(weight, indices, offsets, scales, last, padding):
        out = list(getattr(torch, name)(weight, indices, offsets, False, mode, False, scales, last, padding))
        return out if keep else out[:2] + [torch.zeros_like(t) for t in out[2:]]

    return call


@pytest.mark.parametrize("name", ["_embedding_bag", "_embedding_bag_forward_only"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width", [1, 5, 64, 70])
def test_results(name, mode, width):
    for dtype, last, padding, (index, offset) in itertools.product(
            FLOATS, (False, True), (-1, 4), ((torch.int64, torch.int64), (torch.int32, torch.int32), (torch.int32, torch.int64))):
        weight = make((10, width), dtype, seed=3)
        function = results(name, mode, keep=mode == 2)
        compare(function, weight, INDICES.to(index), OFFSETS.to(offset), None, last, padding, strides=True)
        if mode == 0:
            compare(function, weight, INDICES.to(index), OFFSETS.to(offset), make((9,), dtype, seed=4), last, padding, strides=True)


def test_bag_sizes():
    def sizes(weight, padding):
        return torch._embedding_bag(weight, INDICES, OFFSETS, False, 1, False, None, False, padding)[2]

    weight = make((10, 3))
    for padding in (-1, 4):
        expected = sizes(weight, padding)
        actual = torch._embedding_bag(weight.to("mps"), INDICES.to("mps"), OFFSETS.to("mps"), False, 1, False, None, False, padding)[2]
        assert torch.equal(actual.cpu(), expected) and actual.dtype == expected.dtype


@pytest.mark.parametrize("mode", MODES)
def test_layouts(mode):
    for _, weight in layouts(make((10, 6))):
        compare(results("_embedding_bag", mode, keep=mode == 2), weight, INDICES, OFFSETS, None, False, -1)
    for _, indices in layouts(INDICES):
        compare(results("_embedding_bag", mode, keep=mode == 2), make((10, 6)), indices, OFFSETS, None, True, -1)
    strided = torch.stack([OFFSETS, OFFSETS + 1], 1)[:, 0]
    compare(results("_embedding_bag", mode, keep=mode == 2), make((10, 6)), INDICES, strided, None, False, 2)


@pytest.mark.parametrize("mode", MODES)
def test_last_offset_before_the_end(mode):
    offsets = torch.tensor([0, 3, 5, 7])
    for padding in (-1, 2):
        compare(results("_embedding_bag", mode, keep=mode == 2), make((10, 6)), INDICES, offsets, None, True, padding)


@pytest.mark.parametrize("mode", MODES)
def test_nothing(mode):
    none = torch.empty(0, dtype=torch.int64)
    for indices, offsets in ((none, none), (none, torch.zeros(3, dtype=torch.int64)), (INDICES, torch.zeros(1, dtype=torch.int64))):
        compare(results("_embedding_bag", mode, keep=mode == 2), make((10, 6)), indices, offsets, None, False, -1)
    compare_gradients(lambda w: F.embedding_bag(none.to(w.device), w, torch.zeros(3, dtype=torch.int64, device=w.device), mode=MODES[mode]), make((4, 2)))


def test_maximum_with_nan():
    weight = make((10, 6), special=True)
    compare(results("_embedding_bag", 2, keep=True), weight, INDICES, OFFSETS, None, False, -1)


@pytest.mark.parametrize("mode", MODES.values())
@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients(mode, dtype):
    for last, padding, index in itertools.product((False, True), (None, 4), (torch.int64, torch.int32)):

        def bag(weight, indices, offsets):
            return F.embedding_bag(indices, weight, offsets, mode=mode, include_last_offset=last, padding_idx=padding)  # noqa: B023 - used at once

        rtol, atol = (None, None) if dtype == torch.float32 else (2e-2, 3e-2)  # the CPU rounds after each addition
        compare_gradients(bag, make((10, 5), dtype), INDICES.to(index), OFFSETS.to(index), rtol=rtol, atol=atol)


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("padding", [None, 4])
def test_gradients_scaled_by_frequency(mode, padding):
    """By the frequency of the row's own index, as documented. (PyTorch's CPU kernel takes that of another index.)"""
    gradients = []
    for frequency in (False, True):
        weight = make((10, 5)).to("mps").requires_grad_()
        out = F.embedding_bag(INDICES.to("mps"), weight, OFFSETS.to("mps"), mode=mode, padding_idx=padding, scale_grad_by_freq=frequency)
        out.backward(make((6, 5), seed=2).to("mps"))
        gradients.append(weight.grad.cpu())
    torch.testing.assert_close(gradients[1], gradients[0] / INDICES.bincount(minlength=10).clamp(min=1)[:, None])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("padding", [None, 4])
@pytest.mark.parametrize("width", [3, 40])
def test_gradients_of_scales(dtype, padding, width):
    def bag(weight, scales, indices, offsets):
        return F.embedding_bag(indices, weight, offsets, mode="sum", per_sample_weights=scales, padding_idx=padding)

    rtol, atol = (None, None) if dtype == torch.float32 else (2e-2, 5e-2)
    compare_gradients(bag, make((10, width), dtype), make((9,), dtype, seed=7), INDICES, OFFSETS, rtol=rtol, atol=atol)


def test_rows_of_indices():
    indices = INDICES.view(3, 3)
    for mode in MODES.values():
        compare(lambda w, i: F.embedding_bag(i, w, mode=mode), make((10, 5)), indices)


def test_large():
    generator = torch.Generator().manual_seed(5)
    indices = torch.randint(5000, (40_000,), generator=generator)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), torch.randint(40_000, (1999,), generator=generator).sort()[0]])
    for mode in MODES.values():
        compare_gradients(lambda w, i, o: F.embedding_bag(i, w, o, mode=mode), make((5000, 96)), indices, offsets, rtol=1e-5, atol=1e-4)


def test_same_bits():
    weight, indices = make((50, 300)).to("mps").requires_grad_(), torch.randint(50, (3000,), device="mps")
    offsets = torch.arange(0, 3000, 30, device="mps")
    grads = {torch.autograd.grad(F.embedding_bag(indices, weight, offsets).square().sum(), weight)[0].cpu().numpy().tobytes() for _ in range(3)}
    assert len(grads) == 1


@pytest.mark.parametrize("indices, offsets, text", [([1, 10], [0, 1], "index 10 is out of bounds"), ([1, -1], [0, 1], "index -1 is out of bounds"),
                                                    ([1, 2], [1, 2], r"offsets\[0\] has to be 0"), ([1, 2], [0, 3], r"offsets\[-1\] can not be greater")])
def test_wrong_data(indices, offsets, text):
    with pytest.raises(RuntimeError, match=text):
        F.embedding_bag(torch.tensor(indices, device="mps"), make((10, 3)).to("mps"), torch.tensor(offsets, device="mps"))
        torch.mps.synchronize()


def test_refuses():
    weight, scales = make((10, 3)), make((9,))
    compare_errors(lambda w, i, o, s: torch._embedding_bag(w, i, o, False, 1, False, s), weight, INDICES, OFFSETS, scales)
    compare_errors(lambda w, i, o, s: torch._embedding_bag(w, i, o, False, 0, False, s), weight, INDICES, OFFSETS, scales[:4], same_text=False)
    compare_errors(lambda w, i, o, s: torch._embedding_bag(w, i, o, False, 0, False, s), weight, INDICES, OFFSETS, scales.half(), same_text=False)
    compare_errors(lambda w, i, o: torch._embedding_bag(w, i, o), weight, INDICES.view(3, 3, 1), OFFSETS)
    compare_errors(lambda w, i, o: torch._embedding_bag(w, i, o), weight, INDICES, OFFSETS.view(2, 3))
    compare_errors(lambda w, i, o: torch._embedding_bag(w, i, o), weight[0], INDICES, OFFSETS)
    compare_errors(lambda w, i, o: torch._embedding_bag(w, i, o), weight, INDICES.float(), OFFSETS, same_text=False)
