# SPDX-License-Identifier: BSD-3-Clause
"""scaled_dot_product_attention against the CPU: masks, causal, scale, grouped heads, layouts, gradients, errors, speed."""
import pytest
import torch
from torch.nn import functional as F

from compare import FLOATS, compare, compare_errors, compare_gradients, make

LOOSE = {torch.float32: {"rtol": 2e-5, "atol": 2e-5}, torch.float16: {"rtol": 1e-2, "atol": 5e-3}, torch.bfloat16: {"rtol": 3e-2, "atol": 4e-2}}
attention = F.scaled_dot_product_attention


def operands(dtype, batch=2, heads=3, rows=7, columns=9, depth=8, value_depth=8):
    return (make((batch, heads, rows, depth), dtype), make((batch, heads, columns, depth), dtype, seed=1),
            make((batch, heads, columns, value_depth), dtype, seed=2))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("is_causal", [False, True])
def test_forward(dtype, is_causal):
    q, k, v = operands(dtype)
    loose = LOOSE[dtype]
    compare(lambda q, k, v: attention(q, k, v, is_causal=is_causal), q, k, v, **loose)
    compare(lambda q, k, v: attention(q, k, v, is_causal=is_causal, scale=0.3), q, k, v, **loose)
    compare(lambda q, k, v: attention(q[0], k[0], v[0], is_causal=is_causal), q, k, v, **loose)
    compare(lambda q, k, v: attention(q[0, 0], k[0, 0], v[0, 0], is_causal=is_causal), q, k, v, **loose)
    compare(lambda q, k, v: attention(k, q, v[:, :, :7], is_causal=is_causal), q, k, v, **loose)
    compare(lambda q, k, v: attention(q.mT.contiguous().mT, k[..., ::2, :], v[..., ::2, :], is_causal=is_causal), q, k, v, **loose)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", ["bool", "same", "float"])
@pytest.mark.parametrize("shape", [(7, 9), (1, 9), (7, 1), (2, 1, 7, 9), (2, 3, 7, 9), (1, 3, 1, 9)])
def test_masks(dtype, kind, shape):
    q, k, v = operands(dtype)
    mask = make(shape, torch.bool) if kind == "bool" else make(shape, dtype if kind == "same" else torch.float32, seed=5)
    compare(attention, q, k, v, mask, **LOOSE[dtype])
    compare_gradients(lambda q, k, v: attention(q, k, v, mask.to(q.device)), q, k, v, **LOOSE[dtype])


def test_rows_that_see_nothing_are_zero():
    q, k, v = operands(torch.float32)
    mask = torch.ones(7, 9, dtype=torch.bool)
    mask[3] = False
    compare(attention, q, k, v, mask, **LOOSE[torch.float32])
    compare(attention, q, k, v, torch.zeros(7, 9).masked_fill(~mask, -float("inf")), **LOOSE[torch.float32])
    compare_gradients(lambda q, k, v: attention(q, k, v, mask.to(q.device)), q, k, v, **LOOSE[torch.float32])


@pytest.mark.parametrize("dtype", FLOATS)
def test_heads_inside(dtype):
    """(batch, rows, heads, depth) in memory, as modules make it."""
    q, k, v = (make((2, 7, 3, 8), dtype, seed=i) for i in range(3))
    compare(lambda q, k, v: attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)).transpose(1, 2).reshape(2, 7, 24), q, k, v, **LOOSE[dtype])
    big = [make((2, 150, 3, 8), dtype, seed=i) for i in range(3)]
    compare(lambda q, k, v: attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True), *big, **LOOSE[dtype])


def test_grouped_heads():
    q, k, v = make((2, 6, 5, 8)), make((2, 2, 9, 8), seed=1), make((2, 2, 9, 4), seed=2)
    compare(lambda q, k, v: attention(q, k, v, enable_gqa=True), q, k, v, **LOOSE[torch.float32])
    compare(lambda q, k, v: attention(q, k, v, is_causal=True, enable_gqa=True), q, k, v, **LOOSE[torch.float32])
    compare_gradients(lambda q, k, v: attention(q, k, v, enable_gqa=True), q, k, v, **LOOSE[torch.float32])


def test_several_groups():
    """Scores that do not fit into one group: rows of one head, and heads."""
    q, k, v = (make((1, 2, 1300, 16), seed=i) for i in range(3))
    compare(lambda q, k, v: attention(q, k, v, is_causal=True), q, k, v, rtol=1e-4, atol=1e-4)
    q, k, v = (make((2, 8, 400, 16), seed=i) for i in range(3))
    compare(attention, q, k, v, make((2, 8, 400, 400), torch.bool), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("is_causal", [False, True])
def test_gradients(dtype, is_causal):
    q, k, v = operands(dtype)
    compare_gradients(lambda q, k, v: attention(q, k, v, is_causal=is_causal), q, k, v, **LOOSE[dtype])
    compare_gradients(lambda q, k, v: attention(q, k, v, is_causal=is_causal, scale=0.2), q, k, v, **LOOSE[dtype])


def test_broadcast_and_empty():
    q, k, v = operands(torch.float32)
    compare(lambda q, k, v: attention(q, k[:1], v[:1]), q, k, v, **LOOSE[torch.float32])
    compare(lambda q, k, v: attention(q[:, :, :0], k, v), q, k, v)
    compare(lambda q, k, v: attention(q, k[:, :, :0], v[:, :, :0]), q, k, v)


def test_dropout():
    q, k, v = (make((2, 4, 64, 16), seed=i).to("mps") for i in range(3))
    torch.manual_seed(0)
    once = attention(q, k, v, dropout_p=0.5)
    torch.manual_seed(0)
    assert torch.equal(once.cpu(), attention(q, k, v, dropout_p=0.5).cpu())
    assert not torch.equal(once.cpu(), attention(q, k, v, dropout_p=0.5).cpu())
    ones = torch.ones_like(v)
    mean = torch.stack([attention(q, k, ones, dropout_p=0.5) for _ in range(30)]).mean().item()
    assert abs(mean - 1.0) < 0.02


def test_math_entry():
    q, k, v = operands(torch.float32)
    out, weights = torch.ops.aten._scaled_dot_product_attention_math_for_mps(q.to("mps"), k.to("mps"), v.to("mps"))
    expected, expected_weights = torch.ops.aten._scaled_dot_product_attention_math(q, k, v)
    torch.testing.assert_close(out.cpu(), expected)
    torch.testing.assert_close(weights.cpu(), expected_weights)


def test_encoder_layer():
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    x = make((2, 5, 16))
    for training in (True, False):
        layer.train(training)
        expected = layer(x)
        twin = torch.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
        twin.load_state_dict(layer.state_dict())
        actual = twin.to("mps").train(training)(x.to("mps"))
        torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=1e-5)


def test_errors():
    q, k, v = operands(torch.float32)
    compare_errors(attention, q, k.half(), v)
    compare_errors(attention, q[0, 0, 0], k[0, 0, 0], v)
    compare_errors(attention, q, k, v, torch.ones(7, 9, dtype=torch.int32))
    compare_errors(lambda q, k, v: attention(q, k, v, dropout_p=1.5), q, k, v)
    compare_errors(attention, q, k[:, :2], v[:, :2], same_text=False)
    compare_errors(attention, q, k, v, torch.ones(3, 3), same_text=False)
