# SPDX-License-Identifier: BSD-3-Clause
"""Recurrent networks: modules with the same parameters on both devices give the same outputs, states and gradients."""
import itertools

import pytest
import torch

from compare import compare_errors

TOLERANCE = {torch.float32: dict(rtol=1e-4, atol=1e-5), torch.float16: dict(rtol=1e-2, atol=4e-3), torch.bfloat16: dict(rtol=5e-2, atol=3e-2)}


def pair(kind, *arguments, dtype=torch.float32, **options):
    torch.manual_seed(3)
    cpu = kind(*arguments, **options).to(dtype)
    mps = kind(*arguments, **options).to(dtype)
    mps.load_state_dict(cpu.state_dict())
    return cpu, mps.to("mps")


def flat(value):
    return [value] if isinstance(value, torch.Tensor) else [t for v in value for t in flat(v)]


def check(cpu, mps, x, states=None, tolerance=None, weights=(1.0, 0.7, 0.3)):
    """Outputs, states, and gradients of input, states and parameters for a sum weighted by output."""
    tolerance = tolerance or TOLERANCE[x.dtype]
    results = []
    for network, device in ((cpu, "cpu"), (mps, "mps")):
        x_ = x.to(device).requires_grad_()
        states_ = None if states is None else tuple(s.to(device).requires_grad_() for s in states)
        out = network(x_, states_ if states is None or len(states_) > 1 else states_[0])
        total = sum((w * (t.float() * torch.arange(t.numel(), device=device).view(t.shape).sin()).sum()) for w, t in zip(weights, flat(out)) if w)
        gradients = torch.autograd.grad(total, [x_, *(states_ or ()), *network.parameters()], allow_unused=True)
        results.append((flat(out), gradients))
    for e, a in zip(results[0][0], results[1][0]):
        assert a.device.type == "mps" and a.dtype == e.dtype and a.stride() == e.stride()
        torch.testing.assert_close(a.cpu(), e, **tolerance)
    for e, a in zip(results[0][1], results[1][1]):
        assert (e is None) == (a is None)
        if e is not None:
            wide = {**tolerance, "atol": tolerance["atol"] * max(1.0, e.abs().max().item())}
            torch.testing.assert_close(a.cpu(), e, **wide)


@pytest.mark.parametrize("layers, bidirectional, batch_first, bias", list(itertools.product((1, 3), (False, True), (False, True), (False, True))))
def test_lstm(layers, bidirectional, batch_first, bias):
    cpu, mps = pair(torch.nn.LSTM, 5, 7, layers, bidirectional=bidirectional, batch_first=batch_first, bias=bias)
    x = torch.randn(4, 3, 5)
    rows = layers * (2 if bidirectional else 1)
    check(cpu, mps, x)
    check(cpu, mps, x, (torch.randn(rows, 4 if batch_first else 3, 7), torch.randn(rows, 4 if batch_first else 3, 7)))


@pytest.mark.parametrize("weights", [(1, 0, 0), (0, 1, 0), (0, 0, 1)])
def test_gradient_of_one_result(weights):
    cpu, mps = pair(torch.nn.LSTM, 4, 6, 2, bidirectional=True)
    check(cpu, mps, torch.randn(5, 2, 4), (torch.randn(4, 2, 6), torch.randn(4, 2, 6)), weights=weights)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_reduced(dtype):
    cpu, mps = pair(torch.nn.LSTM, 8, 16, 2, dtype=dtype)
    check(cpu, mps, torch.randn(6, 3, 8).to(dtype))


@pytest.mark.parametrize("steps, batch, features, hidden", [(1, 1, 1, 1), (1, 4, 3, 2), (40, 1, 3, 20), (12, 33, 65, 130)])
def test_sizes(steps, batch, features, hidden):
    cpu, mps = pair(torch.nn.LSTM, features, hidden)
    check(cpu, mps, torch.randn(steps, batch, features))


def test_layouts():
    cpu, mps = pair(torch.nn.LSTM, 5, 7)
    x = torch.randn(4, 3, 5)
    for y in (x.transpose(0, 1), x.flip(0)[1:], x[:, :1].expand(4, 3, 5), torch.randn(4, 3, 10)[..., ::2]):
        torch.testing.assert_close(mps(y.to("mps") if y.is_contiguous() else y.contiguous().to("mps"))[0].cpu(), cpu(y)[0], rtol=1e-4, atol=1e-5)
    wide = torch.randn(4, 3, 10)
    torch.testing.assert_close(mps(wide.to("mps")[..., ::2])[0].cpu(), cpu(wide[..., ::2])[0], rtol=1e-4, atol=1e-5)
    column = wide.to("mps").transpose(0, 1)[..., ::2]
    torch.testing.assert_close(mps(column)[0].cpu(), cpu(wide.transpose(0, 1)[..., ::2])[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(mps(x[0].to("mps"))[0].cpu(), cpu(x[0])[0], rtol=1e-4, atol=1e-5)  # without a batch


def test_projections_and_nothing():
    cpu, mps = pair(torch.nn.LSTM, 5, 7, 2, proj_size=3, bidirectional=True)
    check(cpu, mps, torch.randn(4, 3, 5))
    with pytest.raises(RuntimeError, match="LSTM with projections is not currently supported with MPS."):
        hx = [torch.zeros(4, 3, 3, device="mps"), torch.zeros(4, 3, 7, device="mps")]
        torch._lstm_mps(torch.zeros(4, 3, 5, device="mps"), hx, list(mps.parameters()), True, 2, 0.0, False, True, False)
    cpu, mps = pair(torch.nn.LSTM, 5, 7)
    assert mps(torch.randn(4, 0, 5, device="mps"))[0].shape == (4, 0, 7)


def test_dropout():
    cpu, mps = pair(torch.nn.LSTM, 5, 200, 2, dropout=0.5)
    x = torch.randn(6, 8, 5)
    torch.testing.assert_close(mps.eval()(x.to("mps"))[0].cpu(), cpu.eval()(x)[0], rtol=1e-4, atol=1e-5)
    mps.train()
    torch.manual_seed(5)
    first = mps(x.to("mps"))[0]
    torch.manual_seed(5)
    assert torch.equal(mps(x.to("mps"))[0], first) and not torch.equal(mps(x.to("mps"))[0], first)
    # The first layer's outputs times the kept factors, then the second layer by hand.
    torch.manual_seed(5)
    states = [torch.zeros(2, 8, 200, device="mps") for _ in range(2)]
    inputs = x.to("mps").requires_grad_()
    parameters = list(mps.parameters())
    out, _, _, _, _, kept = torch._lstm_mps(inputs, states, parameters, True, 2, 0.5, True, False, False)
    assert torch.equal(out, first) and kept.shape[0] == 3
    factors = kept[2].detach()
    assert set(factors.cpu().unique().tolist()) == {0.0, 2.0} and abs(factors.mean().item() - 1) < 0.05
    below, above = (torch.nn.LSTM(*sizes).to("mps") for sizes in ((5, 200), (200, 200)))
    for network, mine in ((below, parameters[:4]), (above, parameters[4:])):
        for to, from_ in zip(network.parameters(), mine):
            to.data.copy_(from_.data)
    again = x.to("mps").requires_grad_()
    expected = above(below(again)[0] * factors)[0]
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)
    grad = torch.randn(6, 8, 200, device="mps")
    torch.testing.assert_close(torch.autograd.grad(out, inputs, grad)[0], torch.autograd.grad(expected, again, grad)[0], rtol=1e-3, atol=1e-4)


def test_writing_into_the_output_spoils_nothing():
    cpu, mps = pair(torch.nn.LSTM, 5, 7)
    x = torch.randn(4, 3, 5)
    (cpu(x)[0] * 2).sum().backward()
    mps(x.to("mps"))[0].mul_(2).sum().backward()
    torch.testing.assert_close([p.grad.cpu() for p in mps.parameters()], [p.grad for p in cpu.parameters()], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_packed_and_others(kind):
    cpu, mps = pair(kind, 5, 7, 2, bidirectional=True)
    x = torch.randn(5, 3, 5)
    check(cpu, mps, x)
    packed = [torch.nn.utils.rnn.pack_padded_sequence(x.to(device), [5, 3, 1]) for device in ("cpu", "mps")]
    (e, _), (a, _) = cpu(packed[0]), mps(packed[1])
    torch.testing.assert_close(a.data.cpu(), e.data, rtol=1e-4, atol=1e-5)
    for cell in (torch.nn.LSTMCell, torch.nn.GRUCell, torch.nn.RNNCell):
        one, other = pair(cell, 5, 7)
        check(one, other, x[0])


def test_autocast():
    cpu, mps = pair(torch.nn.LSTM, 5, 7)
    x = torch.randn(4, 3, 5)
    with torch.autocast("mps", dtype=torch.float16):
        out = mps(x.to("mps"))[0]
    torch.testing.assert_close(out.float().cpu(), cpu(x)[0], rtol=1e-2, atol=1e-2)


def test_refuses():
    cpu, mps = pair(torch.nn.LSTM, 5, 7)
    for device, network in (("cpu", cpu), ("mps", mps)):
        with pytest.raises(RuntimeError, match="input.size"):
            network(torch.randn(4, 3, 6, device=device))
    parameters = [p.detach() for p in cpu.parameters()]
    compare_errors(lambda x, h, *p: torch.lstm(x, [h], list(p), True, 1, 0.0, False, False, False), torch.randn(4, 3, 5), torch.zeros(1, 3, 7), *parameters)
    compare_errors(lambda x, h, *p: torch.lstm(x, [h, h], list(p), True, 1, 0.0, False, False, False), torch.randn(4, 3, 5).half(),
                   torch.zeros(1, 3, 7), *parameters, same_text=False)
