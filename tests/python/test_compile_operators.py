# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's operator database under torch.compile on mps against eager mps, and against eager CPU where eager mps gives something else.

Every run compiles the operators of KINDS, those of one kind and dtype together, which takes a fraction of the time and lets Inductor fuse
them. OPENMPS_COMPILE_ALL=1 compiles every operator, each by itself: some 1,700 cases of one to three seconds of processor time.
"""
import os
import random

import numpy
import pytest
import torch
from torch._inductor.utils import run_and_get_code
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

import compare

OPERATORS = {op.full_name: op for op in op_db}
DTYPES = {"f32": torch.float32, "i64": torch.int64, "f16": torch.float16}
TOLERANCES = {torch.float32: (1e-5, 1e-5), torch.float16: (2e-3, 2e-3)}  # kernels compute halves in float, eager rounds between steps
# Series and recurrences of c10/metal/special_math.h, which stop earlier than the CPU's.
LOOSER = {"special.zeta": 1e-4, "lgamma": 1e-4, "digamma": 1e-4, "polygamma.polygamma_n_0": 1e-3, "special.bessel_y0": 1e-4, "igamma": 1e-4, "igammac": 1e-4}
MOST_SAMPLES, MOST_ELEMENTS = 24, 10_000
# Not compiled: eager has none, or upstream's Metal does not compile. Upstream's Inductor writes no sinh, cosh, asinh, acosh, hypot, copysign and ndtri.
EXCEPT = {("lerp", "i64"): "eager refuses it", ("sign", "i64"): "metal::sign is not there for integers"}

# What Inductor lowers in the same way: (names, dtypes).
KINDS = {
    "arithmetic": ("add sub mul div.no_rounding_mode div.floor_rounding div.trunc_rounding floor_divide remainder fmod pow neg abs sign square "
                   "clamp maximum minimum addcmul lerp where", "f32 i64 f16"),
    "activations": ("nn.functional.relu nn.functional.gelu nn.functional.silu nn.functional.mish nn.functional.elu nn.functional.hardswish "
                    "nn.functional.softplus nn.functional.leaky_relu nn.functional.logsigmoid nn.functional.hardtanh nn.functional.glu", "f32"),
    "reductions": ("sum mean prod amax amin any all count_nonzero logsumexp linalg.vector_norm max.reduction_no_dim nansum", "f32"),
    "places of extremes": ("argmax argmin max.reduction_with_dim min.reduction_with_dim aminmax", "f32"),
    "moments": ("var var_mean std nn.functional.layer_norm nn.functional.group_norm nn.functional.instance_norm", "f32"),
    "softmax and losses": ("softmax log_softmax nn.functional.nll_loss nn.functional.cross_entropy nn.functional.mse_loss nn.functional.huber_loss "
                           "nn.functional.kl_div nn.functional.cosine_similarity nn.functional.normalize", "f32"),
    "scans": ("cumsum cumprod cummax cummin logcumsumexp trapezoid diff", "f32 i64"),
    "sorting": ("sort topk kthvalue median mode msort argsort unique searchsorted", "f32"),
    "indexing": ("gather index_select take take_along_dim index_fill masked_fill masked_select nn.functional.embedding __getitem__ index_copy "
                 "select_scatter slice_scatter", "f32"),
    "scattering": ("scatter scatter_add index_add index_put scatter_reduce.sum scatter_reduce.amax put bincount histc", "f32"),
    "views": ("expand permute transpose unfold view reshape squeeze unsqueeze narrow chunk split select movedim as_strided diagonal unbind flip roll "
              "rot90 tril triu", "f32"),
    "joining": ("cat stack hstack dstack repeat tile nn.functional.pad.constant nn.functional.pad.reflect constant_pad_nd diag_embed block_diag meshgrid.list_of_tensors", "f32"),
    "products": ("mm bmm addmm baddbmm matmul nn.functional.linear outer nn.functional.scaled_dot_product_attention", "f32"),
}


@pytest.fixture(autouse=True)
def forget():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def sample_of(op, dtype):
    """(input, args, kwargs) of the largest of the first samples that is not large, on the CPU; always the same."""
    torch.manual_seed(0), numpy.random.seed(0), random.seed(0)
    best, most = None, -1
    for _, sample in zip(range(MOST_SAMPLES), op.sample_inputs("cpu", dtype), strict=False):
        size = sum(t.numel() for t in pytree.tree_leaves((sample.input, sample.args, sample.kwargs)) if isinstance(t, torch.Tensor))
        if most < size <= MOST_ELEMENTS:
            best, most = sample, size
    return best.input, best.args, best.kwargs


def on(device, sample):
    """A copy with the same strides; what names a device names this one."""
    def moved(value):
        if isinstance(value, torch.Tensor):
            return compare.to_mps(value) if device == "mps" else compare.clone(value)
        return torch.device(device) if value == "cpu" or isinstance(value, torch.device) else value
    return pytree.tree_map(moved, sample)


def call(op, sample):
    value, args, kwargs = sample
    return op.op(value, *args, **kwargs)


def compiled(ops, samples):
    """The results of all the operators from one compiled function."""
    functions = [op.op for op in ops]

    def run(samples):
        results = []
        for function, (value, args, kwargs) in zip(functions, samples, strict=True):
            results.append(function(value, *args, **kwargs))
        return results

    return torch.compile(run, dynamic=False)(samples)


def difference(actual, expected, rtol, atol):
    """None when the same; otherwise what differs. Values alone may be on another device."""
    actual, expected = pytree.tree_leaves(actual), pytree.tree_leaves(expected)
    if len(actual) != len(expected):
        return f"{len(actual)} results in place of {len(expected)}"
    for a, e in zip(actual, expected, strict=True):
        if not isinstance(e, torch.Tensor):
            if a != e:
                return f"{a} in place of {e}"
            continue
        try:
            torch.testing.assert_close(a, e, rtol=rtol, atol=atol, equal_nan=True, check_device=False)
        except AssertionError as error:
            return str(error).replace("\n", " ")
    return None


def failure(op, dtype, sample, actual):
    """None when `actual` is what eager gives on mps, or on the CPU; otherwise what differs."""
    rtol, atol = TOLERANCES.get(dtype, (0, 0))
    rtol, atol = max(rtol, LOOSER.get(op.full_name, 0)), max(atol, LOOSER.get(op.full_name, 0))
    expected = call(op, on("mps", sample))
    for a, e in zip(pytree.tree_leaves(actual), pytree.tree_leaves(expected), strict=False):
        if isinstance(e, torch.Tensor) and a.device != e.device:
            return f"the result is on {a.device}, of eager on {e.device}"
    found = difference(actual, expected, rtol, atol)
    return found and difference(actual, call(op, on("cpu", sample)), rtol, atol) and found


def alone(op, dtype, sample):
    """None, or what differs, or the error of compiling this operator by itself."""
    torch._dynamo.reset()
    try:
        return failure(op, dtype, sample, compiled([op], [on("mps", sample)])[0])
    except Exception as error:  # noqa: BLE001 - whatever it is belongs into the report
        return f"{type(error).__name__}: {str(error)[:400]}"


@pytest.mark.parametrize("kind, dtype", [(kind, dtype) for kind, (_, dtypes) in KINDS.items() for dtype in dtypes.split()])
def test_operators(kind, dtype):
    ops = [OPERATORS[name] for name in KINDS[kind][0].split() if (name, dtype) not in EXCEPT]
    dtype = DTYPES[dtype]
    ops = [op for op in ops if dtype in op.supported_dtypes("mps")]
    assert ops
    samples = [sample_of(op, dtype) for op in ops]
    try:
        results = compiled(ops, [on("mps", sample) for sample in samples])
        found = [failure(*case) for case in zip(ops, [dtype] * len(ops), samples, results, strict=True)]
    except Exception as error:  # noqa: BLE001 - one of them cannot be compiled: which?
        found = [alone(op, dtype, sample) for op, sample in zip(ops, samples, strict=True)]
        assert any(found), f"each operator compiles, all together do not: {error}"
    wrong = [f"{op.full_name}: {text}" for op, text in zip(ops, found, strict=True) if text]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8], ids=str)
def test_many_threads_add_to_one_place(dtype):
    generator = torch.Generator().manual_seed(0)
    index, values = torch.randint(5, (1000,), generator=generator), torch.randint(4, (1000,), generator=generator).to(dtype) % 2

    def function(index, values):
        return torch.zeros(5, dtype=values.dtype, device=values.device).index_put((index,), values, accumulate=True)

    (out,), code = run_and_get_code(lambda *a: (torch.compile(function)(*a),), index.to("mps"), values.to("mps"))
    assert torch.equal(out.cpu(), function(index, values))
    assert dtype != torch.float32 or "atomic_add" in code[0]


def test_random_operators():
    """Philox numbers of Inductor's own: the same for a seed, others for another; each of its distribution."""
    def function(x):
        return torch.rand_like(x), torch.randn_like(x), torch.randint_like(x, 3, 9), torch.nn.functional.dropout(x, 0.25), torch.bernoulli(x * 0.3)

    run, x = torch.compile(function, fullgraph=True), torch.ones(20_000, device="mps")
    torch.manual_seed(5)
    first = run(x)
    other = run(x)
    torch.manual_seed(5)
    for a, b, c, (mean, variance) in zip(first, run(x), other, [(0.5, 1 / 12), (0, 1), (5.5, 35 / 12), (1, 1 / 3), (0.3, 0.21)], strict=True):
        assert torch.equal(a, b) and not torch.equal(a, c)
        assert abs(a.mean().item() - mean) < 0.03 and abs(a.var().item() - variance) < 0.05 * max(1, variance)
    assert first[0].min() >= 0 and first[0].max() < 1 and set(first[2].unique().tolist()) == set(range(3, 9))


def test_random_operators_as_in_eager():
    """With Inductor's fallback_random the numbers are eager's."""
    def function(x):
        return torch.rand_like(x) * 2, torch.nn.functional.dropout(x, 0.5) + 1

    x = torch.ones(300, device="mps")
    with torch._inductor.config.patch(fallback_random=True):
        torch.manual_seed(1)
        actual = torch.compile(function)(x)
    torch.manual_seed(1)
    for a, e in zip(actual, function(x), strict=True):
        assert torch.equal(a, e)


def test_long_reductions_over_several_dimensions():
    """More elements than a threadgroup has threads, those of one result apart from each other, and the place of an extreme among equals."""
    def function(x):
        return x.var((0, 2)), x.sum((0, 2)), x.argmax(), x.flatten().argmin(), (x > 2.9).any(), (x * x).mean(1), x.prod(0)

    x = (torch.sin(torch.arange(40 * 6 * 50, dtype=torch.float32)) * 3).reshape(40, 6, 50)
    x[3, 2, 1] = x[30, 1, 7] = 4
    for actual, expected in zip(torch.compile(function)(x.to("mps")), function(x), strict=True):
        torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=1e-4)


if os.environ.get("OPENMPS_COMPILE_ALL") == "1":
    EVERY = [(name, short) for name, op in OPERATORS.items() for short, dtype in DTYPES.items() if dtype in op.supported_dtypes("mps")]

    @pytest.mark.parametrize("name, dtype", EVERY)
    def test_every_operator(name, dtype):
        """Each operator by itself. Where eager refuses the sample, compiled has to refuse it too."""
        op, dtype = OPERATORS[name], DTYPES[dtype]
        sample = sample_of(op, dtype)
        try:
            call(op, on("mps", sample))
        except Exception:  # noqa: BLE001 - whatever eager raises
            with pytest.raises(Exception):  # noqa: B017
                pytree.tree_map(lambda t: t.cpu() if isinstance(t, torch.Tensor) else t, compiled([op], [on("mps", sample)]))
            return
        found = alone(op, dtype, sample)
        assert not found, found
