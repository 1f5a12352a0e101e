# SPDX-License-Identifier: BSD-3-Clause
"""Properties of all losses: for random shapes, layouts, dtypes, reductions, weights and ignored classes the values and the gradients are the
CPU's; for halves, which the CPU rounds in between or does not have, those of double precision rounded once."""
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from compare import FLOATS, assert_same, make, to_mps

REDUCTIONS = st.sampled_from(["none", "mean", "sum"])
PRECISE = {torch.float32: (2e-5, 1e-5), torch.float16: (4e-3, 1e-3), torch.bfloat16: (3e-2, 1e-2)}
ELEMENTWISE = {
    "mse": F.mse_loss, "l1": F.l1_loss, "smooth_l1": F.smooth_l1_loss, "huber": F.huber_loss, "soft_margin": F.soft_margin_loss,
    "binary_cross_entropy": F.binary_cross_entropy, "with_logits": F.binary_cross_entropy_with_logits, "poisson": F.poisson_nll_loss,
    "kl_div": F.kl_div, "hinge": F.hinge_embedding_loss,
}


@st.composite
def laid_out(draw, shape, dtype=torch.float32, seed=0, positive=False):
    """A tensor of the shape whose dimensions lie in any order, with gaps and an offset."""
    order = draw(st.permutations(range(len(shape))))
    gaps, offset = draw(st.integers(1, 2)), draw(st.integers(0, 2))
    strides, step = [0] * len(shape), gaps
    for d in order:
        strides[d], step = step, step * max(shape[d], 1)
    x = make((step + offset,), seed=seed + draw(st.integers(0, 50)))
    x = torch.sigmoid(x) if positive else x
    return x.to(dtype).as_strided(shape, strides, offset)


def dimension(limit):
    return st.integers(1, limit)


def check(run, x, dtype, *others):
    """run(x, *others) and the gradient of x."""
    reference = torch.float32 if dtype == torch.float32 else torch.float64

    def reference_of(t):
        return t.to(reference) if isinstance(t, torch.Tensor) and t.is_floating_point() else t

    cpu, mps = reference_of(x).contiguous().requires_grad_(), to_mps(x).requires_grad_()  # some gradients of the CPU's are for contiguous ones only
    expected, actual = run(cpu, *map(reference_of, others)), run(mps, *map(to_mps, others))
    rtol, atol = PRECISE[dtype]
    atol *= max(1, x.numel() // 4)  # terms of a sum are rounded before
    assert_same(actual, expected.detach().to(dtype), rtol, atol)
    g = make(tuple(expected.shape), dtype, seed=5)
    (wanted,), (found,) = torch.autograd.grad(expected, cpu, reference_of(g)), torch.autograd.grad(actual, mps, g.to("mps"))
    assert_same(found, wanted.to(dtype), rtol, atol)


@settings(max_examples=120, deadline=None)
@given(st.data(), st.sampled_from(sorted(ELEMENTWISE)), st.lists(dimension(7), min_size=0, max_size=4), st.sampled_from(FLOATS), REDUCTIONS)
def test_elementwise(data, name, shape, dtype, reduction):
    probabilities = name in ("binary_cross_entropy", "kl_div")
    x = data.draw(laid_out(shape, dtype, positive=probabilities))
    target = data.draw(laid_out(shape, dtype, seed=100, positive=probabilities or name in ("with_logits", "poisson")))
    if name in ("soft_margin", "hinge"):
        target = target.sign()
    weight = data.draw(st.one_of(st.none(), laid_out(shape, dtype, seed=200, positive=True))) if name in ("binary_cross_entropy", "with_logits") else None
    if weight is None:
        check(lambda x, t: ELEMENTWISE[name](x, t, reduction=reduction), x, dtype, target)
    else:
        check(lambda x, t, w: ELEMENTWISE[name](x, t, w, reduction=reduction), x, dtype, target, weight)


@settings(max_examples=120, deadline=None)
@given(st.data(), st.integers(0, 4), dimension(9), st.lists(dimension(4), max_size=2), st.sampled_from(FLOATS), REDUCTIONS, st.booleans(),
       st.sampled_from([0.0, 0.1, 1.0]), st.integers(-1, 8))
def test_cross_entropy(data, batch, classes, spatial, dtype, reduction, weighted, smoothing, ignored):
    shape = [batch, classes, *spatial] if batch else [classes]
    places = [batch, *spatial] if batch else []
    x = data.draw(laid_out(shape, dtype))
    target = torch.randint(0, classes, places, generator=torch.Generator().manual_seed(data.draw(st.integers(0, 50))))
    if data.draw(st.booleans()) and target.dim() > 1:
        target = target.transpose(0, -1).contiguous().transpose(0, -1)
    weight = data.draw(laid_out([classes], dtype, seed=100, positive=True)) if weighted else None
    if reduction == "mean" and (target == ignored).all():
        return  # nothing over nothing
    others = (target,) if weight is None else (target, weight)
    check(lambda x, t, w=None: F.cross_entropy(x, t, w, ignore_index=ignored, reduction=reduction, label_smoothing=smoothing), x, dtype, *others)
    if smoothing == 0.0:
        check(lambda x, t, w=None: F.nll_loss(x, t, w, ignore_index=ignored, reduction=reduction), x, dtype, *others)


@settings(max_examples=80, deadline=None)
@given(st.data(), st.integers(0, 6), dimension(40), st.sampled_from(FLOATS), REDUCTIONS, st.sampled_from([1, 2]), st.booleans(), st.floats(-1, 3, width=16))
def test_margins(data, rows, classes, dtype, reduction, p, weighted, margin):
    shape, seed = [rows, classes] if rows else [classes], torch.Generator().manual_seed(data.draw(st.integers(0, 50)))
    x = data.draw(laid_out(shape, dtype))
    target = torch.randint(0, classes, [rows] if rows else [], generator=seed)
    others = (target, data.draw(laid_out([classes], dtype, seed=100))) if weighted else (target,)
    check(lambda x, t, w=None: F.multi_margin_loss(x, t, p, margin, w, reduction=reduction), x, dtype, *others)
    labels = torch.randint(-1, classes, shape, generator=seed)
    check(lambda x, t: F.multilabel_margin_loss(x, t, reduction=reduction), x, dtype, labels)


@settings(max_examples=80, deadline=None)
@given(st.data(), dimension(9), dimension(4), st.integers(2, 7), st.integers(0, 5), REDUCTIONS, st.booleans(), st.booleans(), st.sampled_from(FLOATS))
def test_ctc(data, steps, batch, classes, longest, reduction, zero_infinity, in_one_row, dtype):
    x = data.draw(laid_out([steps, batch, classes])).log_softmax(2).to(dtype)
    blank = data.draw(st.integers(0, classes - 1))
    inputs = data.draw(st.lists(st.integers(0, steps), min_size=batch, max_size=batch))
    lengths = data.draw(st.lists(st.integers(0, longest), min_size=batch, max_size=batch))
    targets = torch.randint(0, classes - 1, (batch, longest), generator=torch.Generator().manual_seed(data.draw(st.integers(0, 50))))
    targets = targets + (targets >= blank)
    if dtype != torch.float32 and reduction == "mean":
        reduction = "sum"  # PyTorch cannot make a tensor of halves from the lengths
    if in_one_row:
        targets = torch.cat([targets[b, :n] for b, n in enumerate(lengths)])
    check(lambda x, t: F.ctc_loss(x, t, inputs, lengths, blank, reduction, zero_infinity), x, dtype, targets)
