# SPDX-License-Identifier: BSD-3-Clause
"""Products with weights of 8 and 4 bits against the formula in double."""
import itertools

import pytest
import torch

from compare import FLOATS, compare

TOLERANCE = {torch.float32: 2e-6, torch.float16: 6e-4, torch.bfloat16: 5e-3}  # of the sum of absolute products


def fits(out, x, weight):
    x, weight = x.double(), weight.double()
    bound = (x.abs() @ weight.abs().t()) * (2e-7 if out.dtype == torch.float32 else 2e-6) + (x @ weight.t()).abs() * TOLERANCE[out.dtype] + 1e-9
    assert out.device.type == "mps" and ((out.cpu().double() - x @ weight.t()).abs() <= bound).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("rows, columns, depth", [(1, 32, 64), (3, 40, 96), (5, 7, 33), (15, 64, 256), (16, 33, 50), (40, 64, 128), (0, 3, 4), (2, 3, 0)])
def test_8_bits(dtype, rows, columns, depth):
    torch.manual_seed(1)
    x, w, s = torch.randn(rows, depth).to(dtype), torch.randint(-128, 128, (columns, depth), dtype=torch.int8), torch.rand(columns).to(dtype)
    out = torch._weight_int8pack_mm(x.to("mps"), w.to("mps"), s.to("mps"))
    assert out.dtype == dtype and out.shape == (rows, columns)
    fits(out, x, w.double() * s.double()[:, None])


@pytest.mark.parametrize("dtype, group, tiles", list(itertools.product(FLOATS, (32, 64, 128, 256), (2, 8))))
def test_4_bits(dtype, group, tiles):
    torch.manual_seed(2)
    for rows, columns, depth in ((1, 32, 256), (6, 40, 512), (20, 64, 256)):
        values = torch.randint(16, (columns, depth))
        packed = torch._convert_weight_to_int4pack((values[:, ::2] << 4 | values[:, 1::2]).to(torch.uint8).to("mps"), tiles)
        assert packed.shape == (columns // 8, depth // (16 * tiles), 32, tiles // 2) and packed.dtype == torch.int32
        scales = torch.stack([torch.rand(depth // group, columns) + 0.1, torch.randn(depth // group, columns)], 2).to(dtype)
        x = torch.randn(rows, depth).to(dtype)
        out = torch._weight_int4pack_mm(x.to("mps"), packed, group, scales.to("mps"))
        wide = scales.double().repeat_interleave(group, 0)  # depth x columns x 2
        assert out.dtype == dtype
        fits(out, x, (values.double() - 8) * wide[..., 0].t() + wide[..., 1].t())


def test_packing():
    """A row after the other, the lower column in the lower half of a byte."""
    values = torch.randint(16, (16, 64))
    packed = torch._convert_weight_to_int4pack((values[:, ::2] << 4 | values[:, 1::2]).to(torch.uint8).to("mps"), 2).cpu()
    expected = (values[:, 1::2] << 4 | values[:, ::2]).to(torch.uint8)
    assert torch.equal(packed.view(torch.uint8).flatten(), expected.flatten())


def test_like_cpu():
    x, w = torch.randn(4, 64).bfloat16(), torch.randint(-128, 128, (32, 64), dtype=torch.int8)
    compare(torch._weight_int8pack_mm, x, w, torch.rand(32).bfloat16() / 100, rtol=1.6e-2, atol=1e-1)
    storage = torch.rand(64).bfloat16() / 100
    compare(torch._weight_int8pack_mm, x, w, storage[::2].contiguous(), rtol=1.6e-2, atol=1e-1)


@pytest.mark.parametrize("change, text", [
    (lambda x, w, s: (x.int(), w, s), "expect A to be either 32-bit or 16-bit float tensor."), (lambda x, w, s: (x.t(), w, s), "expect A to be contiguous."),
    (lambda x, w, s: (x, w.float(), s), "expect B to be int8 tensor."), (lambda x, w, s: (x, w[:, :32].contiguous(), s), r"expect B.size\(1\) == 64"),
    (lambda x, w, s: (x, w, s[:3]), "expect scales to be 1d tensor with size 32"), (lambda x, w, s: (x, w, s.half()), "expected scalar type")])
def test_refuses_8_bits(change, text):
    arguments = torch.randn(4, 64, device="mps"), torch.zeros(32, 64, dtype=torch.int8, device="mps"), torch.rand(32, device="mps")
    with pytest.raises(RuntimeError, match=text):
        torch._weight_int8pack_mm(*change(*arguments))


def test_refuses_4_bits():
    bytes_ = torch.zeros(32, 64, dtype=torch.uint8, device="mps")
    with pytest.raises(RuntimeError, match="innerKTiles need to be 2, 4, or 8, got 3"):
        torch._convert_weight_to_int4pack(bytes_, 3)
    with pytest.raises(RuntimeError, match="expect weight to be kByte."):
        torch._convert_weight_to_int4pack(bytes_.int(), 2)
    packed, x = torch._convert_weight_to_int4pack(bytes_, 2), torch.randn(2, 128, device="mps")
    scales = torch.ones(4, 32, 2, device="mps")
    for arguments, text in (((x, packed, 16, scales), "qGroupSize to be 32, 64, 128 or 256, got 16"), ((x, packed[0], 32, scales), "expect B to 4d tensor."),
                            ((x, packed.float(), 32, scales), "expect B to be int32 tensor."), ((x, packed, 32, scales[:, :8]), "3d tensor with sizes"),
                            ((x[:, :64].contiguous(), packed, 32, scales), "do not fit"), ((x, packed, 32, scales[:2]), "do not fit")):
        with pytest.raises(RuntimeError, match=text):
            torch._weight_int4pack_mm(*arguments)
