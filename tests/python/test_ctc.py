# SPDX-License-Identifier: BSD-3-Clause
"""Connectionist temporal classification against the CPU, against double precision, and against a count of all alignments."""
import itertools
import math

import pytest
import torch
import torch.nn.functional as F

from compare import REDUCED, assert_same, compare, compare_errors, compare_gradients, make, to_mps

REDUCTIONS = ["none", "mean", "sum"]
aten = torch.ops.aten


def log_probs(steps, batch, classes, seed=0, dtype=torch.float32):
    return make((steps, batch, classes), seed=seed).log_softmax(2).to(dtype)


def labels(*shape, classes=5, seed=3):
    return torch.randint(1, classes, shape, generator=torch.Generator().manual_seed(seed))


def test_a_small_loss_is_the_sum_over_all_alignments():
    x, target = log_probs(4, 1, 3), [1, 2]
    total = 0.0
    for path in itertools.product(range(3), repeat=4):
        merged = [c for i, c in enumerate(path) if i == 0 or c != path[i - 1]]
        if [c for c in merged if c != 0] == target:
            total += math.exp(sum(x[t, 0, c].item() for t, c in enumerate(path)))
    loss = F.ctc_loss(x.to("mps"), torch.tensor([target]).to("mps"), [4], [2], reduction="none")
    assert abs(loss.item() + math.log(total)) < 1e-5


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize("blank", [0, 4])
@pytest.mark.parametrize("in_one_row", [False, True])
def test_against_the_cpu(reduction, zero_infinity, blank, in_one_row):
    x, inputs, lengths = log_probs(12, 5, 6), [12, 7, 9, 12, 1], [3, 0, 4, 2, 1]
    rows = labels(5, 4) - int(blank == 4)
    rows[0, :3] = torch.tensor([2, 2, 3])  # the same class twice: a blank has to come between
    targets = torch.cat([rows[b, :n] for b, n in enumerate(lengths)]) if in_one_row else rows  # [10] or [5, 4]
    run = lambda x, t: F.ctc_loss(x, t, inputs, lengths, blank, reduction, zero_infinity)
    compare_gradients(lambda x: run(x, targets.to(x.device)), x, rtol=1e-5)
    compare_gradients(lambda x: F.ctc_loss(x, targets.to(x.device), torch.tensor(inputs), torch.tensor(lengths, dtype=torch.int32).to(x.device), blank,
                                           reduction, zero_infinity), x, rtol=1e-5)
    compare_gradients(lambda x: F.ctc_loss(x, targets.int().to(x.device), inputs, lengths, blank, reduction, zero_infinity), x, rtol=1e-5)


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_targets_that_do_not_fit_and_nothing_to_look_at(zero_infinity):
    x = log_probs(3, 4, 4)
    targets = torch.tensor([[1, 2, 3, 1], [1, 1, 1, 1], [1, 2, 2, 2], [2, 2, 2, 2]])
    for inputs, lengths in (([3, 3, 0, 0], [4, 2, 2, 0]), ([3, 3, 1, 2], [0, 0, 0, 0]), ([0, 0, 0, 0], [0, 1, 0, 2])):
        compare_gradients(lambda x: F.ctc_loss(x, targets.to(x.device), inputs, lengths, 0, "none", zero_infinity), x, rtol=1e-5)
        compare_gradients(lambda x: F.ctc_loss(x, targets.to(x.device), inputs, lengths, 0, "mean", zero_infinity), x, rtol=1e-5)


def test_infinities_nan_and_targets_that_are_the_blank():
    x = log_probs(6, 3, 5)
    x[:, 0, 3] = -math.inf
    x[2, 1, 1] = math.nan
    targets = torch.tensor([[1, 2], [1, 2], [0, 0]])
    compare_gradients(lambda x: F.ctc_loss(x, targets.to(x.device), [6, 6, 6], [2, 2, 2], reduction="none"), x, rtol=1e-5)
    compare_gradients(lambda x: F.ctc_loss(x, targets.to(x.device), [6, 2, 6], [0, 2, 1], reduction="none"), x, rtol=1e-5)


def layouts_of(x):
    yield x.transpose(0, 1).contiguous().transpose(0, 1)
    yield x.transpose(0, 2).contiguous().transpose(0, 2)
    wide = torch.zeros(*x.shape[:2], x.shape[2] * 2)
    wide[..., ::2] = x
    yield wide[..., ::2]
    yield x[:, :1].expand(x.shape)
    yield torch.cat([torch.zeros(1, *x.shape[1:]), x])[1:]


def test_layouts():
    targets, inputs, lengths = labels(4, 3), [8, 8, 5, 6], [3, 2, 1, 3]
    wide = torch.zeros(3, 8, dtype=torch.long)
    wide[:, ::2] = targets.t()
    for x in layouts_of(log_probs(8, 4, 5)):
        for t in (targets, wide[:, ::2].t(), targets[:1].expand(4, 3)):
            compare(lambda x, t: F.ctc_loss(x, t, inputs, lengths, reduction="none"), x, t, rtol=1e-5, strides=True)
            loss, alpha = torch._ctc_loss(x, t, inputs, lengths)
            compare(lambda g, x, t, loss, alpha: aten._ctc_loss_backward(g, x, t, inputs, lengths, loss, alpha, 0), make((8,))[::2], x, t, loss,
                    alpha.transpose(0, 2).contiguous().transpose(0, 2), rtol=1e-5, strides=True)
    row = torch.cat([targets[b, :n] for b, n in enumerate(lengths)])
    spread = torch.stack([row, row * 0], 1).view(-1)[::2]  # the CPU takes other targets here
    x = log_probs(8, 4, 5)
    assert_same(F.ctc_loss(x.to("mps"), to_mps(spread), inputs, lengths), F.ctc_loss(x, row, inputs, lengths), rtol=1e-5)


def test_log_alpha():
    x, t, inputs, lengths = log_probs(6, 2, 5), labels(2, 4), [6, 4], [3, 2]
    for targets in (t, torch.cat([t[0, :3], t[1, :2]])):
        loss, alpha = torch._ctc_loss(x, targets, inputs, lengths)
        ours, beginnings = torch._ctc_loss(x.to("mps"), targets.to("mps"), inputs, lengths)
        assert_same(ours, loss, rtol=1e-5)
        assert_same(beginnings[0], alpha[0], rtol=1e-5)
        assert_same(beginnings[1, :4, :5], alpha[1, :4, :5], rtol=1e-5)
        assert (beginnings[1, 4:].cpu() == -math.inf).all() and (beginnings[1, :, 5:].cpu() == -math.inf).all()
    out = [torch.zeros(0, device="mps"), torch.zeros(0, device="mps")]
    aten._ctc_loss.out(x.to("mps"), t.to("mps"), inputs, lengths, out0=out[0], out1=out[1])
    assert_same(out[0], loss, rtol=1e-5)
    aten._ctc_loss.Tensor_out(x.to("mps"), t.to("mps"), torch.tensor(inputs), torch.tensor(lengths), out0=out[0], out1=out[1])
    assert_same(out[0], loss, rtol=1e-5)
    gradient = torch.zeros(0, device="mps")
    aten._ctc_loss_backward.out(torch.ones(2, device="mps"), x.to("mps"), t.to("mps"), inputs, lengths, *out, 0, out=gradient)
    assert_same(gradient, aten._ctc_loss_backward(torch.ones(2), x, t, inputs, lengths, *torch._ctc_loss(x, t, inputs, lengths), 0), rtol=1e-5)
    tensors = aten._ctc_loss_backward.Tensor(torch.ones(2, device="mps"), x.to("mps"), t.to("mps"), torch.tensor(inputs), torch.tensor(lengths), *out, 0)
    assert_same(tensors, gradient.cpu())


def test_long_inputs_are_nearer_to_double_than_the_cpu():
    x, t, lengths = log_probs(400, 4, 30), labels(4, 60, classes=30), [60, 45, 30, 10]
    results = []
    for device, dtype in (("cpu", torch.float64), ("cpu", torch.float32), ("mps", torch.float32)):
        y = x.to(dtype).to(device).requires_grad_()
        loss = F.ctc_loss(y, t.to(device), [400, 399, 300, 200], lengths, reduction="sum")
        results.append((loss.detach().cpu().double(), torch.autograd.grad(loss, y)[0].cpu().double()))
    for exact, cpu, mps in zip(*results):
        assert (mps - exact).abs().max() <= (cpu - exact).abs().max()


@pytest.mark.parametrize("dtype", REDUCED)
def test_halves(dtype):
    """The CPU has none: the double result for the rounded input, rounded once."""
    x, t, lengths = log_probs(40, 3, 8, dtype=dtype), labels(3, 12, classes=8), [12, 5, 8]
    exact = x.double().requires_grad_()
    expected = F.ctc_loss(exact, t, [40, 30, 40], lengths, reduction="none")
    y = x.to("mps").requires_grad_()
    actual = F.ctc_loss(y, t.to("mps"), [40, 30, 40], lengths, reduction="none")
    epsilon = torch.finfo(dtype).eps
    assert_same(actual, expected.detach().to(dtype), rtol=epsilon)
    ones = torch.ones(3, dtype=dtype)
    assert_same(torch.autograd.grad(actual, y, ones.to("mps")), torch.autograd.grad(expected, exact, ones.double())[0].to(dtype), rtol=epsilon, atol=1e-4)


def test_refusals():
    x, t = log_probs(5, 2, 4), labels(2, 2, classes=4)
    calls = [([5, 5], [2, 2], 4), ([5, 5], [2, 2], -1), ([5], [2, 2], 0), ([5, 5], [2], 0), ([5, 6], [2, 2], 0), ([5, -1], [2, 2], 0), ([5, 5], [2, 3], 0),
             ([5, 5], [2, -3], 0), ([5, 5], [2, 2**62], 0)]
    for inputs, lengths, blank in calls:
        compare_errors(lambda x, t: torch._ctc_loss(x, t, inputs, lengths, blank), x, t)
        compare_errors(lambda x, t: torch._ctc_loss(x, t, torch.tensor(inputs), torch.tensor(lengths).to(x.device), blank), x, t)
    for lengths in ([2, 1], [-2, 1], [3, 2]):
        compare_errors(lambda x, t: torch._ctc_loss(x, t, [5, 5], lengths, 0), x, t.view(-1))
    for a, b in ((x, t[None]), (x, t[:1]), (x[0], t), (x, t.float()), (x, t.short()), (x[:0], t), (x[:, :0], t), (x.long(), t)):
        same_text = b.dtype == torch.long  # else the text has the tensor's type
        compare_errors(lambda x, t: torch._ctc_loss(x, t, [5, 5], [2, 1], 0), a, b, same_text=same_text)
    compare_errors(lambda x, t: torch._ctc_loss(x, t, torch.tensor([5.0, 5.0]), torch.tensor([2, 1])), x, t)
    compare_errors(lambda x, t: torch._ctc_loss(x, t, torch.tensor([5, 5]), torch.tensor([2.0, 1.0])), x, t)
    results = torch._ctc_loss(x, t, [5, 5], [2, 2])
    for g, a, b in ((torch.ones(()), x, t), (torch.ones(2, 1), x, t), (torch.ones(2).half(), x, t), (torch.ones(2), x, t.float()),
                    (torch.ones(2), x.long(), t)):
        compare_errors(lambda g, x, t, *r: aten._ctc_loss_backward(g, x, t, [5, 5], [2, 2], *r, 0), g, a, b, *results)


@pytest.mark.parametrize("wrong", [9, 5, -1, -2**40])
def test_targets_that_are_no_class(wrong):
    x, t = log_probs(5, 2, 5).to("mps"), torch.tensor([[1, wrong], [3, 1]]).to("mps")
    with pytest.raises(RuntimeError, match=f"Target {wrong} is out of bounds"):
        F.ctc_loss(x, t, [5, 5], [2, 2]).item()
    assert F.ctc_loss(x, t, [5, 5], [1, 2]).isfinite().item()  # nobody looks at it; the stream is good again
