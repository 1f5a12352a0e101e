# SPDX-License-Identifier: BSD-3-Clause
"""multi_margin_loss and multilabel_margin_loss against the CPU: values, gradients, layouts, results that are asked for, and refusals."""
import pytest
import torch
import torch.nn.functional as F

from compare import REDUCED, assert_same, compare, compare_errors, compare_gradients, layouts, make, to_mps

REDUCTIONS = ["none", "mean", "sum"]
aten = torch.ops.aten


def classes_of(rows, count, seed=3):
    return torch.randint(0, count, (rows,), generator=torch.Generator().manual_seed(seed))


def lists(rows, count, seed=3):
    """Targets up to a -1 that may come anywhere, the same twice among them."""
    return torch.randint(-1, count, (rows, count), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (3, 33), (300, 40), (2, 5000)])
def test_multi_margin(reduction, p, weighted, shape):
    y, w = classes_of(*shape), make((shape[1],), seed=4) if weighted else None
    run = lambda x: F.multi_margin_loss(x, y.to(x.device), p, 0.7, None if w is None else w.to(x.device), reduction=reduction)
    rtol = 1e-5 if shape[1] < 1000 else 1e-4  # the CPU adds up term by term
    compare_gradients(run, make(shape), rtol=rtol)
    compare_gradients(run, make(shape, special=True), rtol=rtol)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (3, 33), (40, 70), (2, 600)])
def test_multilabel_margin(reduction, shape):
    for seed in (3, 4):
        y = lists(*shape, seed=seed)
        compare_gradients(lambda x: F.multilabel_margin_loss(x, y.to(x.device), reduction=reduction), make(shape), rtol=1e-5)
        compare(lambda x, y: aten.multilabel_margin_loss_forward(x, y, REDUCTIONS.index(reduction)), make(shape, special=True), y, rtol=1e-5, strides=True)
    everything = torch.arange(shape[1]).expand(shape)
    compare_gradients(lambda x: F.multilabel_margin_loss(x, everything.to(x.device), reduction=reduction), make(shape), rtol=1e-5)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_vectors_numbers_and_nothing(reduction):
    x, none = make((3, 4)), reduction == "none"
    for a, y in ((x[0], classes_of(1, 4)), (x[0], classes_of(1, 4)[0]), (x[0, 0], torch.zeros(1).long()), (x[0, 0], torch.zeros(()).long())):
        compare_gradients(lambda a: F.multi_margin_loss(a, y.to(a.device), reduction=reduction), a, rtol=1e-5)
    for a, y in ((x[0], lists(1, 4)[0]), (x[0, 0], torch.zeros(1).long()), (x[0, 0], torch.zeros(()).long()), (x[0, :1], torch.zeros(()).long())):
        compare_gradients(lambda a: F.multilabel_margin_loss(a, y.to(a.device), reduction=reduction), a, rtol=1e-5)
    for loss, y in ((F.multi_margin_loss, torch.zeros(0).long()), (F.multilabel_margin_loss, torch.zeros(0, 4).long())):
        result = loss(torch.zeros(0, 4, device="mps", requires_grad=True), y.to("mps"), reduction=reduction)
        assert result.shape == ((0,) if none else ()) and (none or result.item() == 0)
        result.sum().backward()


@pytest.mark.parametrize("p", [1, 2])
def test_layouts(p):
    y, w, g = classes_of(6, 8), make((16,), seed=4)[::2], make((12,), seed=5)[::2]
    spread, labels = torch.stack([y, y], 1)[:, 0], lists(8, 6).t()
    for _, x in layouts(make((6, 8))):
        compare(lambda x, y, w: F.multi_margin_loss(x, y, p, weight=w, reduction="none"), x, spread, w[:1].expand(8), rtol=1e-5, strides=True)
        compare(lambda g, x, y, w: aten.multi_margin_loss_backward(g, x, y, p, 1, w, 0), g, x, spread, w, rtol=1e-5, strides=True)
        compare(lambda x, y: aten.multilabel_margin_loss_forward(x, y.contiguous(), 0), x, lists(6, 8), rtol=1e-5, strides=True)
        mask = aten.multilabel_margin_loss_forward(x, lists(6, 8), 0)[1]
        compare(lambda g, x, y, m: aten.multilabel_margin_loss_backward(g, x, y, 0, m), g, x, lists(6, 8), mask.t().contiguous().t(), rtol=1e-5, strides=True)
    assert_same(F.multilabel_margin_loss(make((6, 8)).to("mps"), to_mps(labels)), F.multilabel_margin_loss(make((6, 8)), labels), rtol=1e-5)
    compare(lambda g, x, y: aten.multi_margin_loss_backward(g, x, y, p, 1), make((3,)), make((6, 8)), y, rtol=1e-5)  # the first element counts


@pytest.mark.parametrize("dtype", REDUCED)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_halves(dtype, reduction):
    """The CPU has none: the double result for the rounded input, rounded once."""
    x, y, labels = make((9, 30), dtype), classes_of(9, 30), lists(9, 30)
    for run in (lambda x: F.multi_margin_loss(x, y.to(x.device), 2, reduction=reduction),
                lambda x: F.multilabel_margin_loss(x, labels.to(x.device), reduction=reduction)):
        exact, ours = x.double().requires_grad_(), x.to("mps").requires_grad_()
        expected, actual = run(exact), run(ours)
        assert_same(actual, expected.detach().to(dtype), rtol=torch.finfo(dtype).eps)
        g = make(tuple(expected.shape), dtype, seed=5)
        assert_same(torch.autograd.grad(actual, ours, g.to("mps")), torch.autograd.grad(expected, exact, g.double())[0].to(dtype),
                    rtol=torch.finfo(dtype).eps, atol=1e-6)


def test_results_go_where_they_are_asked_to():
    x, y, labels = make((6, 4)), classes_of(6, 4), lists(6, 4)
    multi, forward, backward = torch._C._nn.multi_margin_loss, aten.multilabel_margin_loss_forward.output, aten.multilabel_margin_loss_backward.grad_input
    for out in (torch.zeros(3), torch.zeros(12)[::2], torch.zeros(0), torch.zeros(())):
        for reduction in (0, 1, 2):
            compare(lambda x, y, out: multi(x, y, reduction=reduction, out=out), x, y, out, rtol=1e-5, strides=True)
            compare(lambda x, y, out: torch._C._nn.multilabel_margin_loss(x, y, reduction, out=out), x, labels, out, rtol=1e-5, strides=True)
            compare(lambda x, y, out, m: forward(x, y, reduction, output=out, is_target=m), x, labels, out, torch.zeros(5), rtol=1e-5, strides=True)
    mask = aten.multilabel_margin_loss_forward(x, labels, 0)[1]
    for out in (torch.ones(6, 4), torch.ones(4, 6), torch.ones(0)):
        compare(lambda g, x, y, out: aten.multi_margin_loss_backward.grad_input(g, x, y, 1, 1, None, 0, grad_input=out), make((6,)), x, y, out, rtol=1e-5)
        compare(lambda g, x, y, m, out: backward(g, x, y, 0, m, grad_input=out), make((6,)), x, labels, mask, out, rtol=1e-5)
    strided = torch.ones(4, 6).t()
    compare_errors(lambda g, x, y, out: aten.multi_margin_loss_backward.grad_input(g, x, y, 1, 1, None, 0, grad_input=out), make((6,)), x, y, strided)
    compare_errors(lambda g, x, y, m, out: backward(g, x, y, 0, m, grad_input=out), make((6,)), x, labels, mask, strided)
    compare_errors(lambda x, y, m: forward(x, y, 0, output=torch.zeros(0, device=x.device), is_target=m), x, labels, strided)
    for out in (torch.zeros(6).half(), torch.zeros(6).long()):
        compare_errors(lambda x, y, out: multi(x, y, reduction=0, out=out), x, y, out)
        compare_errors(lambda x, y, out: forward(x, y, 0, output=out, is_target=torch.zeros(0, device=x.device)), x, labels, out)
        compare_errors(lambda x, y, out: forward(x, y, 0, output=torch.zeros(0, device=x.device), is_target=out), x, labels, out)


def test_refusals():
    x, y, labels, g = make((3, 4)), classes_of(3, 4), lists(3, 4), torch.ones(3)
    multi, several = F.multi_margin_loss, F.multilabel_margin_loss
    backward, list_backward = aten.multi_margin_loss_backward, aten.multilabel_margin_loss_backward
    for a, b in ((x, y.int()), (x, y[:2]), (x, y[:, None]), (x[:, :0], y), (x[None], y), (x.long(), y), (x[0, :0], y[:1])):
        compare_errors(multi, a, b)
        compare_errors(lambda g, a, b: backward(g, a, b, 1, 1, None, 0), g.to(a.dtype), a, b)
    for a, b in ((x, labels.int()), (x, labels[:, :3]), (x, labels[0]), (x[:, :0], labels[:, :0]), (x[None], labels[None]), (x.long(), labels), (x[0], labels[:1])):
        compare_errors(several, a, b)
    compare_errors(lambda x, y: aten.multi_margin_loss(x, y, 3), x, y)
    compare_errors(lambda x, y: aten.multi_margin_loss(x, y, 1, 1e300), x, y)
    for w in (torch.ones(3), torch.ones(4, 1), torch.ones(4).half(), torch.ones(4).long()):
        compare_errors(lambda x, y, w: aten.multi_margin_loss(x, y, 1, 1, w), x, y, w)
        compare_errors(lambda g, x, y, w: backward(g, x, y, 1, 1, w, 0), g, x, y, w)
    mask = aten.multilabel_margin_loss_forward(x, labels, 0)[1]
    for bad in (torch.ones(3, 1), g.half(), g.long()):
        compare_errors(lambda g, x, y: backward(g, x, y, 1, 1, None, 0), bad, x, y)
        compare_errors(lambda g, x, y, m: list_backward(g, x, y, 0, m), bad, x, labels, mask)
    compare_errors(lambda g, x, y, m: list_backward(g, x, y, 0, m), torch.ones(2), x, labels, mask)
    compare_errors(lambda g, x, y, m: list_backward(g, x, y, 0, m), g, x, labels, mask[:2])
    compare_errors(lambda g, x, y, m: list_backward(g, x, y, 0, m), g, x, labels, mask.half())
    with pytest.raises(RuntimeError, match="grad_output has 2 elements where 3 are expected"):
        backward(torch.ones(2, device="mps"), x.to("mps"), y.to("mps"), 1, 1, None, 0)


def raised(call):
    with pytest.raises(RuntimeError) as caught:
        call()
        torch.mps.synchronize()
    return str(caught.value)


@pytest.mark.parametrize("wrong", [4, -1, 2**40, -2**40])
def test_targets_that_are_no_class(wrong):
    x, y = make((3, 4)).to("mps"), torch.tensor([0, wrong, 3]).to("mps")
    assert "target out of range" in raised(lambda: F.multi_margin_loss(x, y))
    assert "target out of range" in raised(lambda: aten.multi_margin_loss_backward(torch.ones(3, device="mps"), x, y, 1, 1, None, 0))
    labels = torch.tensor([[0, 1, -1, 2], [1, -1, -1, wrong - (wrong == -1)], [0, 1, 2, 3]]).to("mps")
    assert "argument #2 'target' is out of range" in raised(lambda: F.multilabel_margin_loss(x, labels))
    mask = torch.zeros(3, 4, device="mps")
    assert "argument #3 'target' is out of range" in raised(lambda: aten.multilabel_margin_loss_backward(x[:, 0], x, labels, 0, mask))
    good = labels.clamp(-1, 3)
    for value in (2.0, -1.0, float("nan")):
        assert "argument #5 'is_target' is out of range" in raised(lambda: aten.multilabel_margin_loss_backward(x[:, 0], x, good, 0, mask + value))
    compare(F.multi_margin_loss, make((3, 4)), torch.tensor([0, 1, 3]), rtol=1e-5)  # the stream is good again
