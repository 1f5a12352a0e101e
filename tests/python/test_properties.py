# SPDX-License-Identifier: BSD-3-Clause
"""Calls drawn at random, family by family, with arguments laid out in every way: the CPU's results, or its refusals."""
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from compare import ALL_DTYPES, FLOATS, INTEGERS, compare_gradients, make
from strategies import PROPERTY, agree, agree_on_memory, places, shapes, tensors

REAL = FLOATS + INTEGERS
HALVES = {torch.float16: (1e-2, 1e-2), torch.bfloat16: (5e-2, 8e-2)}  # where the CPU rounds half sums at each step


def broadcast_pair(draw, dtype, other=None):
    """Two tensors that broadcast against each other."""
    shape = draw(shapes(0, 4))
    thinned = tuple(draw(st.sampled_from((n, 1))) for n in shape)
    return draw(tensors(shape, dtype)), draw(tensors(thinned[draw(st.integers(0, len(shape))):], other or dtype))


def pointwise(draw):
    dtypes = st.sampled_from(ALL_DTYPES)
    x, y = broadcast_pair(draw, draw(dtypes), draw(dtypes))
    function = draw(st.sampled_from((torch.add, torch.sub, torch.mul, torch.maximum, torch.eq, torch.lt, torch.atan2, torch.copysign, torch.where)))
    if function is torch.where:
        return lambda x, y: torch.where(x != 0, x, y), [x, y]
    return function, [x, y]


def unary(draw):
    x = draw(tensors(draw(shapes(0, 5)), draw(st.sampled_from(ALL_DTYPES)), special=True))
    return draw(st.sampled_from((torch.neg, torch.abs, torch.exp, torch.tanh, torch.sigmoid, torch.sgn, torch.square, torch.isnan, torch.logical_not, torch.floor,
                                 torch.bitwise_not, F.relu, F.gelu, F.silu, F.hardswish, torch.conj_physical, torch.angle))), [x]


def reduce(draw):
    shape = draw(shapes(0, 4))
    x = draw(tensors(shape, draw(st.sampled_from(ALL_DTYPES))))
    keep = draw(st.booleans())
    dims = draw(st.lists(st.integers(-len(shape), len(shape) - 1), max_size=3)) if shape else []
    one = dims[0] if dims else 0
    return draw(st.sampled_from((
        lambda x: x.sum(dims, keep), lambda x: x.mean(dims, keep), lambda x: x.amax(dims, keep), lambda x: x.amin(one, keep), lambda x: x.prod(one, keep),
        lambda x: x.any(one, keep), lambda x: x.all(dims, keep) if dims else x.all(), lambda x: x.argmax(one, keep), lambda x: x.var(dims, correction=1, keepdim=keep),
        lambda x: x.std(dims, correction=0, keepdim=keep), lambda x: x.max(one, keep), lambda x: x.count_nonzero(one), lambda x: x.nansum(dims, keep),
        lambda x: torch.aminmax(x, dim=one, keepdim=keep), lambda x: x.sum(dims, keep, dtype=torch.float32), lambda x: torch.linalg.vector_norm(x, 2, dims, keep),
        lambda x: torch.linalg.vector_norm(x, float("inf"), one, keep), lambda x: x.norm(1)))), [x]


def padding(draw):
    x = draw(tensors(draw(shapes(1, 5)), draw(st.sampled_from(ALL_DTYPES))))
    mode = draw(st.sampled_from(("constant", "reflect", "replicate", "circular")))
    count = draw(st.integers(1, 3))
    amounts = draw(st.lists(st.integers(-2, 3), min_size=2 * count, max_size=2 * count))
    return lambda x: F.pad(x, amounts, mode), [x]


def distances(draw):
    batch, rows, others, length = draw(shapes(0, 1)), draw(st.integers(0, 30)), draw(st.integers(0, 30)), draw(st.integers(0, 9))
    p = draw(st.sampled_from((0.0, 0.5, 1.0, 2.0, 3.0, float("inf"))))
    x, y = draw(tensors((*batch, rows, length))), draw(tensors((*batch, others, length)))
    return lambda x, y: torch.cdist(x, y, p, "donot_use_mm_for_euclid_dist"), [x, y]


def histograms(draw):
    x = draw(tensors(draw(shapes(0, 3, 9)), torch.float32))
    bins = draw(st.integers(1, 9))
    return draw(st.sampled_from((lambda x: torch.histc(x, bins, -3, 3), lambda x: torch.histogram(x, bins, range=(-3.0, 3.0))))), [x]


def resizing(draw):
    n = draw(st.integers(1, 3))
    x = draw(tensors(draw(st.tuples(*[st.integers(1, 5)] * (n + 2))), draw(st.sampled_from(FLOATS))))
    mode = draw(st.sampled_from(("nearest", "nearest-exact", {1: "linear", 2: "bilinear", 3: "trilinear"}[n])))
    size = draw(st.tuples(*[st.integers(1, 9)] * n))
    return lambda x: F.interpolate(x, size, mode=mode), [x]


def sampling(draw):
    n = draw(st.integers(2, 3))
    x = draw(tensors(draw(st.tuples(st.just(2), *[st.integers(1, 5)] * (n + 1)))))
    grid = draw(tensors((2, *draw(st.tuples(*[st.integers(1, 5)] * n)), n))) / 2
    options = dict(mode=draw(st.sampled_from(("bilinear", "nearest"))), padding_mode=draw(st.sampled_from(("zeros", "border", "reflection"))), align_corners=draw(st.booleans()))
    return lambda x, grid: F.grid_sample(x, grid, **options), [x, grid]


def transforms(draw):
    x = draw(tensors(draw(shapes(1, 4, 7)), draw(st.sampled_from((torch.float32, torch.complex64)))))
    dim = draw(st.integers(-x.dim(), x.dim() - 1))
    return draw(st.sampled_from((lambda x: torch.fft.fft(x, dim=dim), lambda x: torch.fft.ifft(x, dim=dim), lambda x: torch.fft.irfft(x, dim=dim),
                                 lambda x: torch.fft.rfft(x, dim=dim), lambda x: torch.fft.fftn(x)))), [x]


def norms(draw):
    dtype = draw(st.sampled_from(FLOATS))
    kind = draw(st.sampled_from(("layer", "group", "batch", "instance", "rms")))
    shape = (draw(st.integers(0, 3)), draw(st.sampled_from((2, 4, 6))), *draw(shapes(1, 3)))
    x = draw(tensors(shape, dtype))
    own = shape[-1:] if kind in ("layer", "rms") else shape[1:2]
    weight, bias = draw(st.one_of(st.none(), tensors(own, dtype))), draw(st.one_of(st.none(), tensors(own, dtype)))
    if kind == "layer":
        return lambda x, w, b: F.layer_norm(x, own, w, b), [x, weight, bias]
    if kind == "rms":
        return lambda x, w: F.rms_norm(x, own, w, 1e-5), [x, weight]
    if kind == "group":
        return lambda x, w, b: F.group_norm(x, 2, w, b), [x, weight, bias]
    if kind == "instance":
        return lambda x, w, b: F.instance_norm(x, weight=w, bias=b), [x, weight, bias]
    mean, var = draw(tensors(own, dtype)), draw(tensors(own, dtype)).abs() + 0.5
    training = draw(st.booleans())
    return lambda x, m, v, w, b: F.batch_norm(x, m.detach().clone(), v.detach().clone(), w, b, training), [x, mean, var, weight, bias]


def rearranging(draw):
    shape = draw(shapes(1, 4))
    dtype = draw(st.sampled_from(ALL_DTYPES))
    x, dim = draw(tensors(shape, dtype)), draw(st.integers(-len(shape), len(shape) - 1))
    other = draw(tensors(tuple(draw(st.integers(0, 3)) if d == dim % len(shape) else n for d, n in enumerate(shape)), draw(st.sampled_from((dtype, dtype, torch.float32)))))
    amount, target = draw(st.integers(-3, 3)), draw(st.sampled_from(ALL_DTYPES))
    order = draw(st.permutations(range(len(shape))))
    return draw(st.sampled_from((
        lambda x, y: torch.cat([x, y], dim), lambda x, y: torch.stack([x, x.clone()], dim), lambda x, y: x.flip(dim), lambda x, y: x.roll(amount, dim),
        lambda x, y: x.clone(), lambda x, y: x.contiguous(), lambda x, y: x.to(target), lambda x, y: x.permute(order).reshape(-1), lambda x, y: x.repeat(2, *[1] * x.dim()),
        lambda x, y: x.tril(amount), lambda x, y: x.triu(amount), lambda x, y: torch.empty_like(x).copy_(x), lambda x, y: x.unfold(dim, 1, 1).clone(),
        lambda x, y: x.diagonal(amount).clone(), lambda x, y: torch.cat([y, x, y], dim).sum(dim), lambda x, y: x.movedim(dim, 0).contiguous()))), [x, other]


def windows(draw):
    x = draw(tensors((*draw(shapes(1, 2)), draw(st.integers(1, 9)), draw(st.integers(1, 9))), draw(st.sampled_from(FLOATS + (torch.complex64,)))))
    pair = st.tuples(st.integers(1, 3), st.integers(1, 3))
    kernel, dilation, pad, stride = draw(pair), draw(pair), draw(st.tuples(st.integers(0, 2), st.integers(0, 2))), draw(pair)
    if draw(st.booleans()):
        return lambda x: F.unfold(x, kernel, dilation, pad, stride), [x]
    size = (draw(st.integers(1, 7)), draw(st.integers(1, 7)))
    blocks = [max((n + 2 * p - d * (k - 1) - 1) // s + 1, 0) for n, p, d, k, s in zip(size, pad, dilation, kernel, stride)]
    return lambda x: F.fold(x, size, kernel, dilation, pad, stride), [draw(tensors((2, 2 * kernel[0] * kernel[1], blocks[0] * blocks[1]), x.dtype))]


def attention(draw):
    dtype = draw(st.sampled_from(FLOATS))
    batch, heads, rows, keys, depth = draw(st.integers(0, 2)), draw(st.integers(1, 3)), draw(st.integers(1, 9)), draw(st.integers(1, 9)), draw(st.sampled_from((1, 4, 8, 16)))
    q, k, v = draw(tensors((batch, heads, rows, depth), dtype)), draw(tensors((batch, heads, keys, depth), dtype)), draw(tensors((batch, heads, keys, depth), dtype))
    mask = draw(st.sampled_from((None, torch.bool, dtype)))
    if mask is not None:
        mask = draw(tensors((batch, heads, rows, keys), mask))
        if mask.dtype == torch.bool:
            mask = mask.index_fill(-1, torch.tensor([0]), True)  # rows that see nothing are NaN on one path of the CPU and 0 on another
        return lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), [q, k, v, mask]
    causal = draw(st.booleans())
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal), [q, k, v]


def convolutions(draw):
    n, dtype = draw(st.integers(1, 3)), draw(st.sampled_from(FLOATS))
    groups, transposed = draw(st.sampled_from((1, 1, 2))), draw(st.booleans())
    channels, outputs = groups * draw(st.integers(1, 3)), groups * draw(st.integers(1, 3))
    each = st.tuples(*[st.integers(1, 3)] * n)
    x = draw(tensors((draw(st.integers(0, 2)), channels, *draw(st.tuples(*[st.integers(1, 7)] * n))), dtype))
    kernel = draw(each)
    weight = draw(tensors((channels, outputs // groups, *kernel) if transposed else (outputs, channels // groups, *kernel), dtype))
    bias = draw(st.one_of(st.none(), tensors((outputs,), dtype)))
    stride, dilation, pad = draw(each), draw(each), draw(st.tuples(*[st.integers(0, 2)] * n))
    function = getattr(F, f"conv{'_transpose' if transposed else ''}{n}d")
    if transposed:
        left = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in zip(x.shape[2:], stride, pad, dilation, kernel)]
        if min(left) < 1 and x.size(0) > 1:  # for batches of float32 the CPU's oneDNN gives nothing or fails, where its other kernels refuse
            x = x[:1]
        return lambda x, w, b: function(x, w, b, stride, pad, 0, groups, dilation), [x, weight, bias]
    return lambda x, w, b: function(x, w, b, stride, pad, dilation, groups), [x, weight, bias]


def bags(draw):
    rows, width = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    indices = draw(st.lists(st.integers(0, rows - 1), max_size=20))
    offsets = sorted(draw(st.lists(st.integers(0, len(indices)), max_size=5)))
    offsets = [0, *offsets]
    kind = draw(st.sampled_from((torch.int32, torch.int64)))
    weight = draw(tensors((rows, width), draw(st.sampled_from(FLOATS))))
    mode, last = draw(st.sampled_from(("sum", "mean", "max"))), draw(st.booleans())
    return (lambda w, i, o: F.embedding_bag(i, w, o, mode=mode, include_last_offset=last)), [weight, torch.tensor(indices, dtype=kind), torch.tensor(offsets, dtype=kind)]


def packed_products(draw):
    rows, columns, depth = draw(st.integers(0, 9)), draw(st.integers(1, 9)), draw(st.integers(0, 40))
    dtype = draw(st.sampled_from(FLOATS))
    x, scales = draw(tensors((rows, depth), dtype)).contiguous(), make((columns,), dtype, 2).abs()
    weight = torch.randint(-128, 128, (columns, depth), dtype=torch.int8, generator=torch.Generator().manual_seed(draw(st.integers(0, 3))))
    wide = lambda x, w, s: (x.double() @ (w.double() * s.double()[:, None]).t()).to(x.dtype)  # noqa: E731 - the CPU rounds to bfloat16 in between
    return lambda x, w, s: torch._weight_int8pack_mm(x, w, s) if x.device.type == "mps" else wide(x, w, s), [x, weight, scales]


def recurrent(draw):
    kind = draw(st.sampled_from((torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)))
    features, hidden, layers = draw(st.integers(1, 5)), draw(st.integers(1, 5)), draw(st.integers(1, 2))
    first, both = draw(st.booleans()), draw(st.booleans())
    torch.manual_seed(draw(st.integers(0, 3)))
    model = kind(features, hidden, layers, batch_first=first, bidirectional=both, bias=draw(st.booleans()))
    x = draw(tensors((*draw(st.tuples(st.integers(1, 5), st.integers(1, 4))), features)))
    weights = [w.detach() for w in model.parameters()]

    def function(x, *weights):
        own = kind(features, hidden, layers, batch_first=first, bidirectional=both, bias=model.bias).to(x.device)
        own.load_state_dict(dict(zip(dict(own.named_parameters()), weights)))
        with torch.no_grad():
            return own(x)

    return function, [x, *weights]


FAMILIES = [pointwise, unary, reduce, padding, distances, histograms, resizing, sampling, transforms, norms, rearranging, windows, attention, convolutions, bags,
            packed_products, recurrent]
SUMS = {norms, attention, convolutions, bags, packed_products, resizing, recurrent, windows, reduce}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f.__name__)
@given(st.data())
@PROPERTY
def test_like_the_cpu(family, data):
    function, inputs = family(data.draw)
    dtype = next(t.dtype for t in inputs if t is not None)
    rtol, atol = HALVES.get(dtype, (None, None)) if family in SUMS else (None, None)
    if family in (convolutions, attention, recurrent) and dtype == torch.float32:
        rtol, atol = 1e-4, 1e-4
    agree(function, *inputs, rtol=rtol, atol=atol)


SMOOTH = [padding, distances, resizing, sampling, transforms, norms, windows, attention, convolutions]


@pytest.mark.parametrize("family", SMOOTH, ids=lambda f: f.__name__)
@given(st.data())
@PROPERTY
def test_gradients_like_the_cpu(family, data):
    function, inputs = family(data.draw)
    inputs = [t.float() if t is not None and t.is_floating_point() else t for t in inputs]
    if not any(t is not None and (t.is_floating_point() or t.is_complex()) for t in inputs):
        return
    try:
        result = function(*inputs)
    except (RuntimeError, NotImplementedError, IndexError, ValueError):
        return  # what is refused is the other test's subject
    if result.numel():
        compare_gradients(function, *inputs, rtol=1e-3, atol=1e-3)


# ---- arguments that share memory ----
ALIASED = {
    "add_": lambda x, y: x.add_(y), "mul out=": lambda x, y: torch.mul(y, 2, out=x), "copy_": lambda x, y: x.copy_(y), "exp out=": lambda x, y: torch.exp(y, out=x),
    "addcmul_": lambda x, y: x.addcmul_(y, y), "lerp_": lambda x, y: x.lerp_(y, 0.5), "where out=": lambda x, y: torch.where(y > 0, y, x, out=x),
    "maximum out=": lambda x, y: torch.maximum(x, y, out=x), "masked_fill_": lambda x, y: x.masked_fill_(y > 0, 1), "fill_": lambda x, y: x.fill_(3) + y,
    "clamp_": lambda x, y: x.clamp_(-1, 1), "sub_": lambda x, y: x.sub_(y, alpha=2), "relu_": lambda x, y: x.relu_() + y, "zero_": lambda x, y: x.zero_() + y,
}


@pytest.mark.parametrize("name", ALIASED)
@given(st.data())
@PROPERTY
def test_overlap_like_the_cpu(name, data):
    """The same view twice, views that meet nowhere, and views that overlap in part, which the CPU refuses."""
    shape = data.draw(shapes(1, 3, 4))
    first = data.draw(places(shape, 200))
    second = data.draw(st.one_of(st.just(first), places(shape, 200)))
    agree_on_memory(ALIASED[name], make((200,)), [first, second], rtol=1e-5, atol=1e-5)
