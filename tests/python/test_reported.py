# SPDX-License-Identifier: BSD-3-Clause
"""What users met on Apple's implementation, by kind: results written past the strides of an in-place target, offsets that were lost, chains of
views, random numbers on slices, whole numbers beyond floats, dtypes that were missing, sizes beyond a tile, ties, and NaN. Each kind is tried
over its siblings."""
import pytest
import torch
from torch.nn import functional as F

from compare import ALL_DTYPES, FLOATS, INTEGERS, compare, compare_gradients, layouts, make, to_mps

LOOSE = {torch.float16: (1e-2, 1e-2), torch.bfloat16: (5e-2, 6e-2)}
BIG = 2**53 + 1  # no double, let alone a float, holds it


# ---- an in-place call writes through the strides and the offset of its target ----
IN_PLACE = {
    "addcmul_": lambda x, a, b: x.addcmul_(a, b, value=2), "addcdiv_": lambda x, a, b: x.addcdiv_(a, b + 9),
    "add_": lambda x, a, b: x.add_(a, alpha=3), "mul_": lambda x, a, b: x.mul_(a), "copy_": lambda x, a, b: x.copy_(a),
    "fill_": lambda x, a, b: x.fill_(3), "zero_": lambda x, a, b: x.zero_(), "clamp_": lambda x, a, b: x.clamp_(-1, 1),
    "relu_": lambda x, a, b: x.relu_(), "masked_fill_": lambda x, a, b: x.masked_fill_(a > 0, 5),
    "masked_scatter_": lambda x, a, b: x.masked_scatter_(a > 0, b.contiguous()), "lerp_": lambda x, a, b: x.lerp_(a, b),
    "index_fill_": lambda x, a, b: x.index_fill_(1, torch.tensor([1, 3], device=x.device), 7),
    "index_add_": lambda x, a, b: x.index_add_(0, torch.tensor([2, 0, 2], device=x.device), a[:3]),
    "index_copy_": lambda x, a, b: x.index_copy_(0, torch.tensor([2, 0], device=x.device), a[:2]),
    "scatter_": lambda x, a, b: x.scatter_(1, (a > 0).long(), 4), "scatter_add_": lambda x, a, b: x.scatter_add_(1, (a > 0).long(), b),
    "index_put_": lambda x, a, b: x.index_put_((torch.tensor([0, 1], device=x.device),), a[:2]),
    "put_": lambda x, a, b: x.put_(torch.tensor([0, 3, 5], device=x.device), a[0, :3]), "cumsum_": lambda x, a, b: x.cumsum_(1),
    "tril_": lambda x, a, b: x.tril_(), "triu_": lambda x, a, b: x.triu_(1), "exp_": lambda x, a, b: x.exp_(),
    "sigmoid_": lambda x, a, b: x.sigmoid_(), "pow_": lambda x, a, b: x.pow_(2), "floor_divide_": lambda x, a, b: x.floor_divide_(b.abs() + 1),
    "copysign_": lambda x, a, b: x.copysign_(a), "baddbmm_": lambda x, a, b: x[None].baddbmm_((a @ b.t())[None], a[None]),
    "addmm_": lambda x, a, b: x.addmm_(a @ b.t(), a), "addmv_": lambda x, a, b: x[0].addmv_(a.t() @ b, a[0]),
    "fill_diagonal_": lambda x, a, b: x.fill_diagonal_(2),
    "sort out=": lambda x, a, b: torch.sort(a, 1, out=(x, torch.empty(0, dtype=torch.int64, device=x.device))),
    "cat out=": lambda x, a, b: torch.cat([a[:2], b[2:]], out=x), "mm out=": lambda x, a, b: torch.mm(a @ b.t(), a, out=x),
    "matmul out=": lambda x, a, b: torch.matmul(a @ b.t(), b, out=x),
}


def bases(shape):
    """(memory, view of it) pairs: a slice of rows and columns, every other element, a transpose, the middle of a vector."""
    rows, columns = shape
    yield lambda m: m[1:1 + rows, 2:2 + columns], (rows + 2, columns + 3)
    yield lambda m: m[::2, ::3], (2 * rows, 3 * columns)
    yield lambda m: m.t(), (columns, rows)
    yield lambda m: m[3:3 + rows * columns].view(shape), (rows * columns + 9,)
    yield lambda m: m[:, 1].permute(1, 0), (columns, 3, rows)


@pytest.mark.parametrize("name", IN_PLACE)
def test_written_through_strides(name):
    for place, (view, size) in enumerate(bases((5, 4))):
        memory, a, b = make(size, seed=place), make((5, 4), seed=7), make((5, 4), seed=8)

        def function(memory, a, b):
            IN_PLACE[name](view(memory), a, b)
            return memory  # the view, and all around it

        compare(function, memory, a, b, rtol=1e-5, atol=1e-5)
        compare(function, memory, a.t().contiguous().t(), b[:1].expand(5, 4) if name != "masked_scatter_" else b, rtol=1e-5, atol=1e-5)


# ---- a chain of views is what it is on the CPU, and is read and copied so ----
CHAINS = {
    "slice of a transpose": lambda x: x.t()[1:, ::2], "transpose of a slice": lambda x: x[1:, 2:].t(), "unsqueezed slice": lambda x: x[2:, None, 1],
    "select, then expand": lambda x: x[1][:, None].expand(-1, 3), "narrow twice": lambda x: x.narrow(0, 1, 4).narrow(1, 2, 2),
    "diagonal of a slice": lambda x: x[1:].diagonal(1), "chunk": lambda x: x.chunk(3, 1)[1], "split": lambda x: x.split([1, 2, 3])[2],
    "unfold": lambda x: x.unfold(0, 3, 2), "as_strided": lambda x: x.as_strided((3, 2), (5, 2), 4), "view of a slice": lambda x: x[2:].view(-1)[3:],
    "flatten, then every third": lambda x: x.flatten()[1::3], "movedim": lambda x: x[None].movedim(0, 2)[..., 0],
    "squeeze": lambda x: x[:1].squeeze(0)[2:], "element": lambda x: x[2, 3], "empty slice": lambda x: x[3:3], "unbind": lambda x: x.unbind(1)[2],
    "swapaxes, then reshape": lambda x: x.swapaxes(0, 1).reshape(-1)[5:], "repeat of a slice": lambda x: x[::2].repeat(1, 2),
    "broadcast": lambda x: x[:, :1].broadcast_to(6, 7),
}
READERS = {
    "cpu": lambda v: v.cpu(), "clone": lambda v: v.clone(), "add": lambda v: v + v, "to half": lambda v: v.to(torch.float16),
    "sum": lambda v: v.sum(), "contiguous": lambda v: v.contiguous(), "cat": lambda v: torch.cat([v, v]) if v.dim() else v,
    "compare": lambda v: v > 0, "where": lambda v: torch.where(v > 0, v, -v), "softmax": lambda v: v.softmax(-1) if v.dim() else v,
    "copy into": lambda v: torch.zeros(v.shape, device=v.device).copy_(v), "max": lambda v: v.max() if v.numel() else v,
    "nonzero": lambda v: v.nonzero(), "cumsum": lambda v: v.cumsum(0) if v.dim() else v, "sort": lambda v: v.sort(-1)[0] if v.dim() else v,
    "argmax": lambda v: v.argmax() if v.numel() else v, "masked_select": lambda v: v[v > 0], "norm": lambda v: v.norm(),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_chains_of_views(chain):
    x = make((6, 5))
    on_cpu, on_mps = CHAINS[chain](x), CHAINS[chain](to_mps(x))
    assert (on_mps.shape, on_mps.stride(), on_mps.storage_offset()) == (on_cpu.shape, on_cpu.stride(), on_cpu.storage_offset())
    for name, reader in READERS.items():
        if name == "cpu":
            assert torch.equal(on_mps.cpu(), on_cpu) and on_mps.cpu().tolist() == on_cpu.tolist()
        else:
            compare(lambda x: reader(CHAINS[chain](x)), x, rtol=1e-5, atol=1e-5)


def test_copies_between_devices_with_any_layout():
    x = make((6, 5, 4))
    for name, cpu in layouts(x):
        for dtype in ALL_DTYPES:
            assert torch.equal(cpu.to("mps").to(dtype).cpu(), cpu.to(dtype)), (name, dtype)
            target = torch.zeros(6, 5, 8, dtype=dtype, device="mps")[..., ::2]
            target.copy_(cpu)
            assert torch.equal(target.cpu(), cpu.to(dtype)), (name, dtype)
            back = torch.zeros(4, 5, 6, dtype=dtype).permute(2, 1, 0)
            back.copy_(to_mps(cpu))
            assert torch.equal(back, cpu.to(dtype)), (name, dtype)


def test_reinterpreted_bytes_of_a_slice():
    x = make((6, 8), torch.int32, low=-2**31 + 1, high=2**31 - 1)
    compare(lambda x: x[2:, 4:].view(torch.int16), x)
    compare(lambda x: x[1:].view(torch.uint8), x)
    compare(lambda x: x[1:].view(torch.float32).view(torch.int32), x)
    z = make((6, 8), torch.complex64)
    compare(lambda z: [torch.view_as_real(z[1:, ::2]), z[2:].real + 1, z[:, 3:].imag * 2, z[1:].conj().imag + 0,
                       torch.view_as_real(z[::2].conj().resolve_conj())], z)
    compare(lambda z: torch.view_as_complex(torch.view_as_real(z)[2:]) * 2, z)


# ---- random numbers on a slice fill that slice, and nothing else ----
@pytest.mark.parametrize("name, call",
                         [("normal_", lambda v: v.normal_()), ("uniform_", lambda v: v.uniform_()), ("bernoulli_", lambda v: v.bernoulli_(0.5)),
                          ("random_", lambda v: v.random_(2, 99)),
                                        ("exponential_", lambda v: v.exponential_()), ("log_normal_", lambda v: v.log_normal_()),
                                        ("cauchy_", lambda v: v.cauchy_()), ("geometric_", lambda v: v.geometric_(0.5)),
                                        ("dropout", lambda v: F.dropout(v, 0.5, inplace=True))])
def test_random_on_slices(name, call):
    for view, size in bases((50, 40)):
        memory = torch.full(size, 7.0, device="mps")
        mask = torch.zeros(size, dtype=torch.bool)
        view(mask).fill_(True)
        call(view(memory))
        host = memory.cpu()
        assert (host[~mask] == 7.0).all()
        assert (host[mask] != 7.0).float().mean() > 0.9 and host[mask].unique().numel() > 1


# ---- whole numbers are whole: beyond 2^24 and 2^53, and sums wrap ----
@pytest.mark.parametrize("call", [
    lambda x: x.sum(), lambda x: x.cumsum(0), lambda x: x.amax(), lambda x: x.amin(), lambda x: x.max(0), lambda x: x.sort()[0],
    lambda x: x.topk(3)[0], lambda x: x.unique(), lambda x: x.prod(), lambda x: x * 3 - 1, lambda x: x // 7, lambda x: x % 1000, lambda x: x.argmax(),
    lambda x: x.median(), lambda x: x == x.flip(0), lambda x: x.clamp(-BIG, BIG), lambda x: x.abs(), lambda x: x >> 3,
    lambda x: x.index_add(0, torch.tensor([0, 0, 1], device=x.device), x[:3]),
    lambda x: x.scatter_reduce(0, torch.tensor([0, 0, 1, 2, 2, 2], device=x.device), x, "amax"),
    lambda x: x.scatter_reduce(0, torch.tensor([0, 0, 1, 2, 2, 2], device=x.device), x, "prod"),
    lambda x: x.scatter_add(0, torch.tensor([0, 0, 1, 2, 2, 2], device=x.device), x), lambda x: torch.where(x > BIG - 1, x, -x),
    lambda x: torch.isin(x, x[:2]), lambda x: torch.searchsorted(x.sort()[0], x), lambda x: torch.maximum(x, x.roll(1)),
    lambda x: torch.gcd(x, x.roll(1)), lambda x: x.cummax(0), lambda x: torch.cat([x, x]), lambda x: x.view(2, 3) @ x.view(3, 2),
    lambda x: x.repeat_interleave(2), lambda x: torch.full((3,), BIG, device=x.device), lambda x: torch.arange(BIG, BIG + 5, device=x.device),
    lambda x: torch.bincount(x.abs() % 9), lambda x: x.nonzero(), lambda x: x.to(torch.int32), lambda x: x.neg().bitwise_and(255),
    lambda x: torch.dot(x, x), lambda x: x.diff(), lambda x: x.remainder(-1000)])
def test_whole_numbers(call):
    compare(call, torch.tensor([BIG, -BIG - 2, 2**62 + 1, 5, BIG + 2, -3]))


# ---- dtypes that were missing or wrong ----
DTYPES = {
    "cumsum": (lambda x: x.cumsum(0), ALL_DTYPES), "cumprod": (lambda x: x.cumprod(0), ALL_DTYPES), "sum": (lambda x: x.sum(0), ALL_DTYPES),
    "any": (lambda x: x.any(0), ALL_DTYPES), "prod": (lambda x: x.prod(0), ALL_DTYPES), "argmax": (lambda x: x.argmax(0), FLOATS + INTEGERS),
    "sort": (lambda x: x.sort(dim=0, stable=True), FLOATS + INTEGERS + (torch.bool,)), "topk": (lambda x: x.topk(2, 0)[0], FLOATS + INTEGERS),
    "unique": (lambda x: x.unique(), FLOATS + INTEGERS + (torch.bool,)), "tril": (lambda x: x.tril(), ALL_DTYPES),
    "where": (lambda x: torch.where(x != 0, x, 1), ALL_DTYPES), "flip": (lambda x: x.flip(0), ALL_DTYPES),
    "roll": (lambda x: x.roll(1, 0), ALL_DTYPES), "nonzero": (lambda x: x.nonzero(), ALL_DTYPES),
    "scatter_add": (lambda x: x.scatter_add(0, torch.zeros_like(x, dtype=torch.int64).real, x), FLOATS[:1] + INTEGERS),
    "index": (lambda x: x[:, torch.tensor([2, 0], device=x.device)], ALL_DTYPES),
    "pad": (lambda x: F.pad(x[None], (1, 2), "replicate"), FLOATS + INTEGERS),
    "reflect": (lambda x: F.pad(x[None], (1, 2), "reflect"), FLOATS + INTEGERS), "pow": (lambda x: x ** 2, FLOATS + INTEGERS + (torch.complex64,)),
    "remainder": (lambda x: x.remainder(3), FLOATS + INTEGERS), "trunc": (lambda x: x.trunc(), FLOATS + INTEGERS),
    "true division": (lambda x: x / 2, ALL_DTYPES), "sqrt": (lambda x: x.abs().sqrt(), FLOATS + INTEGERS), "var": (lambda x: x.var(0), FLOATS),
    "max_pool2d": (lambda x: F.max_pool2d(x[None], 2), FLOATS + INTEGERS), "matmul": (lambda x: x @ x.t(), FLOATS + INTEGERS + (torch.complex64,)),
    "logical": (lambda x: torch.logical_xor(x, x.flip(0)), ALL_DTYPES), "isin": (lambda x: torch.isin(x, x[0]), FLOATS + INTEGERS),
    "gather": (lambda x: x.gather(0, torch.zeros(1, 4, dtype=torch.int64, device=x.device)), ALL_DTYPES),
    "masked_fill": (lambda x: x.masked_fill(x != 0, 1), ALL_DTYPES), "eye": (lambda x: torch.eye(4, dtype=x.dtype, device=x.device), ALL_DTYPES),
    "linspace": (lambda x: torch.linspace(0, 9, 4, dtype=x.dtype, device=x.device), FLOATS + INTEGERS),
    "mixed": (lambda x: x + torch.ones(4, dtype=torch.float16, device=x.device), ALL_DTYPES), "round": (lambda x: x.round(decimals=0), FLOATS),
    "silu": (lambda x: F.silu(x), FLOATS), "conv1d": (lambda x: F.conv1d(x[None], x[None, :, :2].contiguous()), FLOATS),
    "bitwise": (lambda x: ~x, INTEGERS + (torch.bool,)),
    "interpolate": (lambda x: F.interpolate(x[None, None], scale_factor=2.0), FLOATS + (torch.uint8,)),
    "adaptive": (lambda x: F.adaptive_avg_pool2d(x[None], (2, 3)), FLOATS), "conj": (lambda x: x.conj() * 1, ALL_DTYPES),
}


@pytest.mark.parametrize("name, dtype", [(n, d) for n, (_, dtypes) in DTYPES.items() for d in dtypes], ids=str)
def test_dtypes(name, dtype):
    rtol, atol = LOOSE.get(dtype, (1e-5, 1e-5))
    x = make((3, 4), dtype)
    compare(DTYPES[name][0], x, rtol=rtol, atol=atol)
    compare(DTYPES[name][0], make((4, 3), dtype).t(), rtol=rtol, atol=atol)


def test_scalars_of_double_precision():
    compare(lambda x: x * 0.1 + 1e-30, make((5,)))
    third = torch.tensor(1 / 3, dtype=torch.float64)
    assert torch.equal((to_mps(make((5,))) * third).cpu(), make((5,)) * third)


# ---- layers on memory that is not contiguous ----
LAYERS = {
    "linear": lambda x: F.linear(x, x[:, :4].t()[:4, :].t()[:3].contiguous().new_ones(3, 8)[:, ::1], None),
    "layer_norm": lambda x: F.layer_norm(x, (8,)), "softmax": lambda x: x.softmax(-1), "log_softmax": lambda x: x.log_softmax(0),
    "gelu": lambda x: F.gelu(x), "batch_norm": lambda x: F.batch_norm(x, None, None, training=True), "group_norm": lambda x: F.group_norm(x, 4),
    "normalize": lambda x: F.normalize(x, dim=1), "cosine": lambda x: F.cosine_similarity(x, x.flip(0)), "mse": lambda x: F.mse_loss(x, x.flip(0)),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.arange(6, device=x.device)), "smooth_l1": lambda x: F.smooth_l1_loss(x, x.flip(1)),
    "std": lambda x: x.std(1), "cumsum": lambda x: x.cumsum(1), "matmul": lambda x: x @ x.t(), "bmm": lambda x: x[None] @ x.t()[None],
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x), "glu": lambda x: F.glu(x, 1), "conv1d": lambda x: F.conv1d(x[None], x[None, :, :3]),
    "max_pool1d": lambda x: F.max_pool1d(x[None], 2), "interpolate": lambda x: F.interpolate(x[None], 5, mode="linear"),
    "attention": lambda x: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None]),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x[None, :4, :, None], 2),
    "embedding": lambda x: F.embedding(torch.tensor([1, 4, 1], device=x.device), x), "logsumexp": lambda x: x.logsumexp(1),
    "prelu": lambda x: F.prelu(x, x[0, :1].detach()), "avg_pool": lambda x: F.avg_pool1d(x[None], 3, 2),
    "unfold": lambda x: F.unfold(x[None, None], 2), "pad": lambda x: F.pad(x[None], (2, 1), "reflect"),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_of_any_layout(name):
    for _, x in layouts(make((6, 8))):
        compare(LAYERS[name], x, rtol=1e-4, atol=1e-4)  # equal rows have a variance of nothing but rounding
    turned = make((8, 12))[:, ::2]
    compare_gradients(lambda x: LAYERS[name](x.t()), turned, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
def test_convolutions_of_any_layout(mode):
    torch.manual_seed(0)
    layer = torch.nn.Conv2d(4, 6, 3, padding=1, padding_mode=mode)
    weight = layer.weight.detach().permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)
    for _, x in layouts(make((2, 4, 7, 6))):
        for w in (weight, layer.weight.detach().contiguous(memory_format=torch.channels_last)):
            def function(x, w, b):
                own = torch.nn.Conv2d(4, 6, 3, padding=1, padding_mode=mode).to(x.device)
                own.weight, own.bias = torch.nn.Parameter(w), torch.nn.Parameter(b)
                return own(x).detach()

            compare(function, x, w, layer.bias.detach(), rtol=1e-4, atol=1e-5)


# ---- sizes beyond a tile, a block, 2^15 and 2^16 ----
@pytest.mark.parametrize("length", [31, 32, 33, 1023, 1025, 32769, 65537])
def test_long_rows(length):
    x = make((3, length))
    compare(lambda x: [x.sum(1), x.amax(1), x.softmax(1), x.sort(1)[0], x.argmin(1), x.norm(dim=1), x.var(1), F.layer_norm(x, (length,))], x,
            rtol=1e-4, atol=1e-4)
    compare(lambda x: x @ x.t(), x, rtol=1e-3, atol=2e-2)
    compare(lambda x: [x.topk(17, 1)[0], x.t().sum(0), (x > 0).sum(1), x.unique().numel() * x.new_ones(1), x.cummax(1)[0]], x, rtol=1e-4, atol=1e-4)


def test_sixteen_dimensions():
    x = make((2,) * 14 + (1, 3))
    compare(lambda x: [x + 1, x.sum(3), x.flip(0, 5), x.transpose(0, 13).contiguous(), x.cumsum(2), torch.cat([x, x], 7), x[:, 1:, ::2],
                       x.amax((0, 4, 9))], x, rtol=1e-5, atol=1e-5)


# ---- ties, NaN, infinities, nothing at all ----
@pytest.mark.parametrize("dtype", FLOATS + INTEGERS + (torch.bool,), ids=str)
def test_ties(dtype):
    x = make((40,), dtype, low=0, high=3)
    compare(lambda x: [x.sort(stable=True), x.int().argmax(), x.int().argmin(), x.unique(return_inverse=True, return_counts=True),
                       x.to(torch.int64).mode()], x if dtype == torch.bool else x.round())
    if dtype != torch.bool:
        compare(lambda x: [x.max(0), x.min(0), x.cummax(0), x.cummin(0)], x.round())


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_nan(dtype):
    x = make((8, 9), dtype, special=True)
    compare(lambda x: [x.max(), x.amin(1), x.argmax(1), x.sort(1)[0], x.clamp(-1, 1), x.clamp(min=float("nan")), torch.maximum(x, x.flip(0)),
                       torch.fmin(x, x.flip(0)), x.nan_to_num(), x.isnan(), x.nansum(1), x.isinf(),
                       x == x, x.sign(), torch.where(x.isnan(), 0, x), x.cummax(1)[0], x.median(1)[0], x.unique().isnan().sum()], x, rtol=1e-2,
                       atol=1e-2)


@pytest.mark.parametrize("call",
                         [lambda x: x.sum(), lambda x: x.sum(0), lambda x: x + 1, lambda x: x.cumsum(1), lambda x: x.sort(1), lambda x: x.prod(1),
                          lambda x: x.any(), lambda x: x @ x.t(), lambda x: x.softmax(1), lambda x: x.nonzero(),
                                  lambda x: torch.cat([x, x]), lambda x: x.unique(), lambda x: F.relu(x), lambda x: F.layer_norm(x, (4,)),
                                  lambda x: x.mean(), lambda x: x.flip(0), lambda x: x[:, [1, 2]], lambda x: x.clone().fill_(1), lambda x: x.norm(),
                                  lambda x: F.linear(x, x.new_ones(3, 4)), lambda x: F.mse_loss(x, x), lambda x: x.topk(2, 1),
                                  lambda x: F.pad(x, (1, 1)), lambda x: x.argsort(1), lambda x: x.repeat(2, 2), lambda x: x.std(1)])
def test_empty(call):
    compare(call, torch.zeros(0, 4))
