# SPDX-License-Identifier: BSD-3-Clause
"""Losses against double, for each reduction, with weights, ignored and wrong targets, and their gradients."""
import pytest
import torch
import torch.nn.functional as F

from compare import FLOATS, assert_same, compare, compare_errors, compare_gradients, make, to_mps

TOLERANCES = {torch.float32: (1e-5, 1e-5), torch.float16: (4e-3, 4e-3), torch.bfloat16: (3e-2, 3e-2)}
REDUCTIONS = ["none", "mean", "sum"]


def check(function, x, dtype, *others):
    """function(x, *others) and the gradient of x, on mps in dtype and in double on the CPU."""
    x = x.to(dtype)
    cpu, mps = x.double().requires_grad_(), to_mps(x).requires_grad_()
    to_double = [o.to(dtype).double() if o is not None and o.is_floating_point() else o for o in others]
    expected = function(cpu, *to_double)
    actual = function(mps, *(to_mps(o.to(dtype) if o.is_floating_point() else o) if o is not None else None for o in others))
    rtol, atol = TOLERANCES[dtype]
    assert_same(actual, expected.detach().to(dtype), rtol * 4, atol * 4)
    g = make(tuple(expected.shape), dtype, seed=5)
    expected.backward(g.double())
    actual.backward(to_mps(g))
    assert_same(mps.grad, cpu.grad.to(dtype), rtol * 6, atol * 6)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("loss", [F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.l1_loss, F.binary_cross_entropy, F.binary_cross_entropy_with_logits])
def test_elementwise_losses(dtype, reduction, loss):
    x, t = torch.rand(5, 30, generator=torch.Generator().manual_seed(1)), torch.rand(5, 30, generator=torch.Generator().manual_seed(2))
    check(lambda x, t: loss(x, t, reduction=reduction), x * 0.9 + 0.05, dtype, t)
    check(lambda x, t: loss(x, t, reduction=reduction), x.t() * 0.9 + 0.05, dtype, t.t().contiguous())


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_parameters_and_weights(reduction):
    x, t = make((6, 7)), make((6, 7), seed=2)
    compare_gradients(lambda x, t: F.smooth_l1_loss(x, t, reduction=reduction, beta=0.3), x, t, rtol=1e-5)
    compare_gradients(lambda x, t: F.huber_loss(x, t, reduction=reduction, delta=0.3), x, t, rtol=1e-5)
    p, w = torch.sigmoid(x), make((6, 7), seed=3).abs()
    check(lambda p, t, w: F.binary_cross_entropy(p, t, w, reduction=reduction), p, torch.float32, torch.sigmoid(t), w)
    check(lambda p, t, w: F.binary_cross_entropy(p, t, w, reduction=reduction), p, torch.float32, torch.sigmoid(t), w[:1].contiguous())
    compare(lambda p, t: F.binary_cross_entropy(p, t, reduction=reduction), torch.tensor([0.0, 1.0, 0.0, 1.0]), torch.tensor([0.0, 1.0, 1.0, 0.0]))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_broadcasting_and_second_gradients(reduction):
    x, t = make((6, 7)), make((7,), seed=2)
    with pytest.warns(UserWarning):
        compare(lambda x, t: F.mse_loss(x, t, reduction=reduction), x, t, rtol=1e-5)
    compare_gradients(lambda x, t: F.kl_div(F.log_softmax(x, 1), F.softmax(t.expand(6, 7), 1), reduction="batchmean" if reduction == "mean" else reduction), x, t,
                      rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(5,), (7, 5), (5000, 10), (3, 5, 4), (2, 5, 6, 7), (2, 5, 3, 2, 4)])
@pytest.mark.parametrize("weighted", [False, True])
def test_nll_loss(dtype, reduction, shape, weighted):
    classes = shape[0] if len(shape) == 1 else shape[1]
    target = torch.randint(0, classes, () if len(shape) == 1 else shape[:1] + shape[2:], generator=torch.Generator().manual_seed(3))
    w = make((classes,), seed=4).abs() + 0.1 if weighted else None
    check(lambda x, t, w: F.nll_loss(x, t, w, ignore_index=2, reduction=reduction), make(shape), dtype, target, w)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_cross_entropy(reduction):
    x, t = make((40, 10)), torch.randint(0, 10, (40,), generator=torch.Generator().manual_seed(3))
    compare_gradients(lambda x: F.cross_entropy(x, t.to(x.device), reduction=reduction), x, rtol=1e-4, atol=1e-5)
    compare_gradients(lambda x: F.cross_entropy(x, t.to(x.device), reduction=reduction, label_smoothing=0.1, ignore_index=3), x, rtol=1e-4, atol=1e-5)
    compare_gradients(lambda x, p: F.cross_entropy(x, F.softmax(p, 1), reduction=reduction), x, make((40, 10), seed=5), rtol=1e-4, atol=1e-5)
    image = make((2, 5, 6, 7)).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 5, (2, 6, 7), generator=torch.Generator().manual_seed(3))
    compare_gradients(lambda x: F.cross_entropy(x, labels.to(x.device), reduction=reduction), image, rtol=1e-4, atol=1e-5)


def test_nothing_to_average():
    compare(lambda x, t: (F.nll_loss(x, t), F.nll_loss(x, t, reduction="sum"), F.nll_loss(x, t, reduction="none")), make((0, 4)), torch.zeros(0, dtype=torch.long))
    compare(lambda x, t: F.nll_loss(x, t, ignore_index=1), make((3, 4)), torch.ones(3, dtype=torch.long))
    compare(lambda x, t: (F.mse_loss(x, t), F.mse_loss(x, t, reduction="sum")), make((0, 4)), make((0, 4)))


def test_byte_targets_and_wrong_targets():
    compare(F.nll_loss, make((3, 4)), torch.tensor([0, 3, 1], dtype=torch.uint8), rtol=1e-5)
    compare_errors(F.nll_loss, make((2, 3)), torch.tensor([0, 1], dtype=torch.int32))
    for wrong in (6, -1):
        with pytest.raises(RuntimeError, match=f"Target {wrong} is out of bounds"):
            F.nll_loss(make((2, 3)).to("mps"), torch.tensor([0, wrong]).to("mps")).item()
    compare(F.nll_loss, make((2, 3)), torch.tensor([0, 1]), rtol=1e-5)  # the stream is good again


def test_results_go_where_they_are_asked_to():
    x, t = make((5, 4)), make((5, 4), seed=2)
    compare(lambda x, t, o: torch._C._nn.mse_loss(x, t, reduction=0, out=o), x, t, torch.zeros(4, 5).t(), rtol=1e-5)
    compare(lambda x, t, o: torch._C._nn.huber_loss(x, t, reduction=1, out=o), x, t, torch.zeros(()), rtol=1e-5)
