# SPDX-License-Identifier: BSD-3-Clause
"""Entries that PyTorch's operator database never reaches, called by their names: out= forms, in-place forms, parts of modules.

CASES is also what tools/coverage_page.py traces: {entry: (function, inputs, dtypes)}, inputs being a function of the dtype.
"""
import pytest
import torch
from openmps import _bridge
from torch.nn import functional as F

from compare import ALL_DTYPES, FLOATS, INTEGERS, assert_same, compare, flatten, make, to_mps

A = torch.ops.aten
F32 = (torch.float32,)
SHIFTS = INTEGERS
LOOSE = {torch.float32: (1e-5, 2e-5), torch.float16: (1e-2, 1e-2), torch.bfloat16: (5e-2, 6e-2)}


def new(x, dtype=None):
    """An out= that is resized."""
    return torch.empty(0, dtype=dtype or x.dtype, device=x.device)


def one(*shape, **options):
    return lambda dtype: [make(shape, dtype, **options)]


def two(*shape):
    return lambda dtype: [make(shape, dtype), make(shape, dtype, seed=1)]


def after(function):
    """What an in-place call leaves."""
    def call(*inputs):
        function(*inputs)
        return inputs

    return call


CASES = {}


ENTRIES = set(_bridge.coverage()[0])


def case(entry, function, inputs, dtypes=FLOATS):
    CASES[entry] = (function, inputs, dtypes)


# ---- pointwise ----
def positive(dtype):
    return [make((3, 4), dtype), make((3, 4), dtype, seed=1).abs() % 4]


case("__ilshift__.Tensor", lambda x, y: A.__ilshift__.Tensor(x.clone(), y), positive, SHIFTS)
case("__irshift__.Tensor", lambda x, y: A.__irshift__.Tensor(x.clone(), y), positive, SHIFTS)
case("__lshift__.Tensor", lambda x, y: A.__lshift__.Tensor(x, y), positive, SHIFTS)
case("__rshift__.Tensor", lambda x, y: A.__rshift__.Tensor(x, y), positive, SHIFTS)
case("__ilshift__.Scalar", lambda x: A.__ilshift__.Scalar(x.clone(), 2), one(3, 4), SHIFTS)
case("__irshift__.Scalar", lambda x: A.__irshift__.Scalar(x.clone(), 2), one(3, 4), SHIFTS)
case("__lshift__.Scalar", lambda x: A.__lshift__.Scalar(x, 1), one(3, 4), SHIFTS)
case("__rshift__.Scalar", lambda x: A.__rshift__.Scalar(x, 1), one(3, 4), SHIFTS)
case("clamp_max.out", lambda x: A.clamp_max.out(x, 1, out=new(x)), one(3, 4), FLOATS + INTEGERS)
case("hardswish_", after(lambda x: A.hardswish_(x)), one(3, 4))
case("hardswish.out", lambda x: A.hardswish.out(x, out=new(x)), one(3, 4))
case("hardtanh_", after(lambda x: A.hardtanh_(x, -1, 2)), one(3, 4), FLOATS + INTEGERS[1:])
case("relu_", after(lambda x: A.relu_(x)), one(3, 4), FLOATS + INTEGERS)
case("remainder.Scalar_Tensor", lambda x: A.remainder.Scalar_Tensor(7, x), one(3, 4, low=1), FLOATS + INTEGERS)
case("glu_backward.grad_input", lambda g, x: A.glu_backward.grad_input(g, x, 1, grad_input=new(x)), lambda d: [make((3, 2), d), make((3, 4), d, 1)])
case("hardtanh_backward.grad_input", lambda g, x: A.hardtanh_backward.grad_input(g, x, -1, 1, grad_input=new(x)), two(3, 4))
case("log_sigmoid_backward.grad_input",
     lambda g, x: A.log_sigmoid_backward.grad_input(g, x, A.log_sigmoid_forward(x)[1], grad_input=new(x)), two(3, 4))

# ---- losses ----
case("binary_cross_entropy.out", lambda x, y: A.binary_cross_entropy.out(x.sigmoid(), y.sigmoid(), None, 0, out=torch.zeros_like(x)), two(3, 4), F32)
case("binary_cross_entropy_backward.grad_input",
     lambda x, y: A.binary_cross_entropy_backward.grad_input(x, x.sigmoid(), y.sigmoid(), None, 0, grad_input=torch.zeros_like(x)), two(3, 4), F32)
case("huber_loss.out", lambda x, y: A.huber_loss.out(x, y, 1, 0.7, out=new(x)), two(3, 4))
case("mse_loss_backward.grad_input",
     lambda x, y: A.mse_loss_backward.grad_input(torch.ones((), dtype=x.dtype, device=x.device), x, y, 1, grad_input=new(x)), two(3, 4))


def classes(dtype):
    return [make((2, 5, 3, 4), dtype), make((2, 3, 4), torch.int64, low=0, high=5), make((5,), dtype, 2).abs()]


def nll2d_backward(x, y, w, **out):
    weight = A.nll_loss2d_forward(x, y, w, 1, -100)[1]
    gradient = torch.ones((), dtype=x.dtype, device=x.device)
    return (A.nll_loss2d_backward.grad_input if out else A.nll_loss2d_backward)(gradient, x, y, w, 1, -100, weight, **out)


case("nll_loss2d_forward", lambda x, y, w: A.nll_loss2d_forward(x, y, w, 1, -100), classes)
case("nll_loss2d_forward.output", lambda x, y, w: A.nll_loss2d_forward.output(x, y, w, 0, 2, output=new(x), total_weight=new(x)), classes)
case("nll_loss2d_backward", nll2d_backward, classes)
case("nll_loss2d_backward.grad_input", lambda x, y, w: nll2d_backward(x, y, w, grad_input=torch.zeros_like(x)), classes)

# ---- windows, pools, resizing, padding ----
case("col2im.out", lambda x: A.col2im.out(x, [4, 4], [2, 2], [1, 1], [0, 0], [1, 1], out=new(x)), one(2, 8, 9))
case("im2col.out", lambda x: A.im2col.out(x, [2, 2], [1, 1], [1, 0], [1, 2], out=new(x)), one(2, 3, 5, 6))
case("adaptive_avg_pool2d.out", lambda x: A.adaptive_avg_pool2d.out(x, [2, 3], out=new(x)), one(2, 3, 5, 6))
case("max_pool3d_with_indices.out", lambda x: A.max_pool3d_with_indices.out(x, [2, 2, 2], out=new(x), indices=new(x, torch.int64)),
     one(2, 3, 4, 5, 6))


def pool3d_gradient(x):
    y, indices = A.max_pool3d_with_indices(x, [2, 2, 2])
    return A.max_pool3d_with_indices_backward.grad_input(y, x, [2, 2, 2], [2, 2, 2], [0, 0, 0], [1, 1, 1], False, indices, grad_input=new(x))


case("max_pool3d_with_indices_backward.grad_input", pool3d_gradient, one(2, 3, 4, 5, 6))
case("max_unpool2d.out", lambda x: A.max_unpool2d.out(*A.max_pool2d_with_indices(x, [2, 2]), [4, 6], out=new(x)), one(2, 3, 4, 6), F32)
case("max_unpool3d.out", lambda x: A.max_unpool3d.out(*A.max_pool3d_with_indices(x, [2, 2, 2]), [4, 4, 6], [2, 2, 2], [0, 0, 0], out=new(x)),
     one(2, 3, 4, 4, 6), F32)
for exact in ("upsample_nearest", "_upsample_nearest_exact"):
    for n, sizes in ((2, [7, 3]), (3, [7, 3, 5])):
        forward, backward = getattr(A, f"{exact}{n}d").out, getattr(A, f"{exact}{n}d_backward").grad_input
        full = [2, 3, 4, 5, 6][: n + 2]
        case(f"{exact}{n}d.out", lambda x, f=forward, s=sizes: f(x, s, out=new(x)), one(*full))
        case(f"{exact}{n}d_backward.grad_input", lambda x, b=backward, s=sizes, full=full: b(x, s, full, grad_input=new(x)), one(2, 3, *sizes))
case("reflection_pad2d", lambda x: A.reflection_pad2d(x, [1, 2, 2, 1]), one(2, 3, 4, 5))
case("_upsample_bicubic2d_aa.out", lambda x: A._upsample_bicubic2d_aa.out(x, [3, 4], False, out=new(x)), one(2, 3, 7, 9), F32)
for n, sizes in ((2, [2, 3, 4, 5]), (3, [2, 3, 4, 5, 6])):
    for kind in ("reflection", "replication"):
        pad = [1, 2] * n
        grown = sizes[:2] + [s + 3 for s in sizes[2:]]
        forward, backward = getattr(A, f"{kind}_pad{n}d"), getattr(A, f"{kind}_pad{n}d_backward")
        case(f"{kind}_pad{n}d.out", lambda x, f=forward, p=pad: f.out(x, p, out=new(x)), one(*sizes))
        both = lambda d, g=grown, s=sizes: [make(g, d), make(s, d, 1)]  # noqa: E731 - the loop's values are kept
        if f"{kind}_pad{n}d_backward" in ENTRIES:
            case(f"{kind}_pad{n}d_backward", lambda g, x, b=backward, p=pad: b(g, x, p), both, F32)
        case(f"{kind}_pad{n}d_backward.grad_input", lambda g, x, b=backward, p=pad: b.grad_input(g, x, p, grad_input=new(x)), both, F32)


def points(n):
    return lambda d: [make([2, 3, 4, 5, 6][: n + 2], d), make([2, 3, 2, 4][: n + 1] + [n], d, 1) / 2]


case("grid_sampler_2d", lambda x, g: A.grid_sampler_2d(x, g, 0, 1, False), points(2), F32)
case("grid_sampler_3d", lambda x, g: A.grid_sampler_3d(x, g, 0, 0, True), points(3), F32)
case("grid_sampler_2d_backward", lambda x, g: A.grid_sampler_2d_backward(A.grid_sampler_2d(x, g, 0, 0, False), x, g, 0, 0, False, [True, True]),
     points(2), F32)
case("grid_sampler_3d_backward", lambda x, g: A.grid_sampler_3d_backward(A.grid_sampler_3d(x, g, 0, 1, False), x, g, 0, 1, False, [True, True]),
     points(3), F32)

# ---- norms ----
def channels(dtype):
    return [make((4, 3, 5), dtype), make((3,), dtype, 1), make((3,), dtype, 2), make((3,), dtype, 3), make((3,), dtype, 4).abs() + 0.5]


case("native_batch_norm.out",
     lambda x, w, b, m, v: A.native_batch_norm.out(x, w, b, m.clone(), v.clone(), True, 0.1, 1e-5, out=new(x), save_mean=new(x), save_invstd=new(x)),
     channels, F32)
case("_native_batch_norm_legit.out",
     lambda x, w, b, m, v: A._native_batch_norm_legit.out(x, w, b, m.clone(), v.clone(), True, 0.1, 1e-5, out=new(x), save_mean=new(x),
                                                          save_invstd=new(x)), channels, F32)
case("_native_batch_norm_legit.no_stats", lambda x, w, b, m, v: A._native_batch_norm_legit.no_stats(x, w, b, True, 0.1, 1e-5), channels, F32)
case("_native_batch_norm_legit.no_stats_out",
     lambda x, w, b, m, v: A._native_batch_norm_legit.no_stats_out(x, w, b, True, 0.1, 1e-5, out=new(x), save_mean=new(x), save_invstd=new(x)),
     channels, F32)
case("native_batch_norm_backward",
     lambda x, w, b, m, v: A.native_batch_norm_backward(x.tanh(), x, w, m, v, None, None, False, 1e-5, [True, True, True]), channels, F32)
case("batch_norm_backward",
     lambda x, w, b, m, v: A.batch_norm_backward(x.tanh(), x, w, m, v, m, v, False, 1e-5, [True, True, True], new(x, torch.uint8)), channels, F32)
case("_batch_norm_with_update.out",
     lambda x, w, b, m, v: A._batch_norm_with_update.out(x, w, b, m.clone(), v.clone(), 0.1, 1e-5, out=new(x), save_mean=new(x), save_invstd=new(x),
                                                         reserve=new(x, torch.uint8))[:3], channels, F32)
case("_weight_norm_interface", lambda v, g: A._weight_norm_interface(v, g, 0)[0], lambda d: [make((4, 3, 2), d), make((4, 1, 1), d, 1)], F32)
case("_weight_norm_interface_backward", lambda v, g: A._weight_norm_interface_backward(v.tanh(), v, g, A._weight_norm_interface(v, g, 0)[1], 0),
     lambda d: [make((4, 3, 2), d), make((4, 1, 1), d, 1)], F32)
case("norm.dtype_out", lambda x: A.norm.dtype_out(x, 2, [1], False, dtype=torch.float32, out=new(x, torch.float32)), one(3, 4), F32)

# ---- indices, sets, histograms ----
case("nonzero_static.out", lambda x: A.nonzero_static.out(x, size=9, fill_value=-1, out=new(x, torch.int64)), one(3, 4), ALL_DTYPES)
case("unique_dim_consecutive", lambda x: A.unique_dim_consecutive(x, 0, True, True), lambda d: [make((6, 2), d, low=0, high=2)], FLOATS + INTEGERS)
case("bucketize.Scalar", lambda x: A.bucketize.Scalar(1, x.sort()[0]), one(9), FLOATS + INTEGERS)
case("searchsorted.Scalar", lambda x: A.searchsorted.Scalar(x.sort()[0], 1), one(9), FLOATS + INTEGERS)
case("searchsorted.Scalar_out", lambda x: A.searchsorted.Scalar_out(x.sort()[0], 1, out=new(x, torch.int64)), one(9), FLOATS + INTEGERS)
case("isin.Scalar_Tensor_out", lambda x: A.isin.Scalar_Tensor_out(1, x, out=new(x, torch.bool)), one(9), FLOATS + INTEGERS)
case("isin.Tensor_Scalar_out", lambda x: A.isin.Tensor_Scalar_out(x, 1, out=new(x, torch.bool)), one(9), FLOATS + INTEGERS)
case("scatter.value_reduce_out", lambda x, i: A.scatter.value_reduce_out(x, 0, i, 2, reduce="add", out=new(x)),
     lambda d: [make((3, 4), d), torch.tensor([[0, 2, 1, 1], [0, 0, 0, 0]])], FLOATS + INTEGERS)
case("histogram.bin_ct_out", lambda x: A.histogram.bin_ct_out(x, 5, hist=new(x), bin_edges=new(x)), one(20), F32)
case("histogram.bins_tensor_out", lambda x: A.histogram.bins_tensor_out(x, torch.arange(-3.0, 4, device=x.device), hist=new(x), bin_edges=new(x)),
     one(20), F32)
case("repeat_interleave.Tensor", lambda x: A.repeat_interleave.Tensor(x.abs()), one(9), (torch.int32, torch.int64))
case("linalg_solve_triangular.out",
     lambda a, b: A.linalg_solve_triangular.out(a.tril() + 5 * torch.eye(4, device=a.device), b, upper=False, out=new(b)), two(4, 4), F32)
case("range.out", lambda x: A.range.out(1, 9, 2, out=new(x)), one(1), FLOATS[:1] + INTEGERS[1:])

# ---- memory ----
case("_copy_from", lambda x: A._copy_from(x, torch.zeros_like(x)) if x.device.type == "mps" else x.clone(), one(3, 4), ALL_DTYPES)
case("_copy_from_and_resize", lambda x: A._copy_from_and_resize(x, new(x)) if x.device.type == "mps" else x.clone(), one(3, 4), ALL_DTYPES)
case("set_", lambda x: A.set_(x.clone()), one(3, 4), ALL_DTYPES)
case("set_.source_Tensor", lambda x: A.set_.source_Tensor(new(x), x), one(3, 4), ALL_DTYPES)
case("set_.source_Storage", lambda x: new(x).set_(x.untyped_storage()), one(3, 4), ALL_DTYPES)
case("is_set_to", lambda x: [torch.tensor(A.is_set_to(x, y)).to(x.device) for y in (x, x.clone(), x[None][0], x[:1])], one(3, 4), ALL_DTYPES)
case("_assert_async", after(lambda x: A._assert_async((x == x).all())), one(3), F32)
case("_assert_async.msg", after(lambda x: A._assert_async.msg((x == x).all(), "all is well")), one(3), F32)


# ---- gradients of random variables, attention, packed weights ----
def of_gamma(dtype):
    return [make((9,), dtype).abs() + 0.3, make((9,), dtype, 1).abs() + 0.1]


def of_dirichlet(dtype):
    x = make((4, 3), dtype).abs() + 0.1
    alpha = make((4, 3), dtype, 1).abs() + 0.5
    return [x / x.sum(1, keepdim=True), alpha, alpha.sum(1, keepdim=True).expand(4, 3)]


case("_standard_gamma_grad", lambda a, x: A._standard_gamma_grad(a, x), of_gamma, F32)
case("_dirichlet_grad", lambda x, a, t: A._dirichlet_grad(x, a, t), of_dirichlet, F32)
case("_scaled_dot_product_attention_math_for_mps", lambda q, k: (A._scaled_dot_product_attention_math_for_mps(q, k, k)[0] if q.device.type == "mps"
     else F.scaled_dot_product_attention(q, k, k)), two(2, 3, 5, 8))


def packed(dtype):
    return [make((3, 40), dtype), torch.randint(-128, 128, (7, 40), dtype=torch.int8, generator=torch.Generator().manual_seed(1)),
            make((7,), dtype, 1).abs() / 100]


def in_double(x, w, scale):
    return (x.double() @ (w.double() * scale.double()[:, None]).t()).to(x.dtype)


def values_of_4_bits():
    return torch.randint(16, (32, 64), generator=torch.Generator().manual_seed(3))


def int4(x, scales):
    values = values_of_4_bits()
    if x.device.type == "cpu":
        wide = scales.double().repeat_interleave(32, 0)  # depth x columns x (scale, zero)
        return (x.double() @ ((values.double() - 8) * wide[..., 0].t() + wide[..., 1].t()).t()).to(x.dtype)
    halves = (values[:, ::2] << 4 | values[:, 1::2]).to(torch.uint8).to(x.device)
    return A._weight_int4pack_mm(x, A._convert_weight_to_int4pack(halves, 2), 32, scales)


for entry in ("_weight_int4pack_mm", "_convert_weight_to_int4pack"):
    case(entry, int4, lambda d: [make((5, 64), d).contiguous(), make((2, 32, 2), d, 1).abs() / 10])
case("_weight_int8pack_mm", lambda x, w, s: A._weight_int8pack_mm(x, w, s) if x.device.type == "mps" else in_double(x, w, s), packed)

# ---- optimisers, scaling of gradients ----
def group(dtype):
    return [make((5, 3), dtype), make((5, 3), dtype, 1), make((5, 3), dtype, 2), make((5, 3), dtype, 3).abs(), make((5, 3), dtype, 4).abs() + 3]


ADAM = dict(beta1=0.9, beta2=0.99, weight_decay=0.1, eps=1e-6, amsgrad=True, maximize=False)
for name in ("_fused_adam_", "_fused_adamw_"):
    for overload in ("default", "tensor_lr"):
        def adam(*t, name=name, overload=overload):
            rate = torch.tensor(0.01, device=t[0].device) if overload == "tensor_lr" else 0.01
            getattr(getattr(A, name), overload)(*[[x] for x in t], [torch.tensor(3.0, device=t[0].device)], lr=rate, **ADAM)

        case(name + ("" if overload == "default" else ".tensor_lr"), after(adam), group, F32)
SGD = dict(weight_decay=0.1, momentum=0.9, dampening=0.1, nesterov=False, maximize=True, is_first_step=False)
case("_fused_sgd_", after(lambda p, g, b: A._fused_sgd_([p], [g], [b], lr=0.1, **SGD)), lambda d: group(d)[:3], F32)
case("_fused_sgd_.tensor_lr", after(lambda p, g, b: A._fused_sgd_.tensor_lr([p], [g], [b], lr=torch.tensor(0.1, device=p.device), **SGD)),
     lambda d: group(d)[:3], F32)
case("_amp_foreach_non_finite_check_and_unscale_",
     after(lambda g, h, found, scale: A._amp_foreach_non_finite_check_and_unscale_([g, h], found, scale)),
     lambda d: [make((5,), d, special=False), make((9,), d, special=True), torch.zeros(1), torch.full((1,), 0.5)])
case("_amp_update_scale_", after(lambda scale, tracker, found: A._amp_update_scale_(scale, tracker, found, 2.0, 0.5, 3)),
     lambda d: [torch.full((1,), 8.0), torch.full((1,), 2, dtype=torch.int32), torch.zeros(1)], F32)


# ---- entries that only mps has: the CPU's side is the operator they are a part of ----
def on_mps(mine, theirs):
    return lambda *inputs: (mine if inputs[0].device.type == "mps" else theirs)(*inputs)


def image(dtype):
    return [make((2, 4, 7, 6), dtype), make((6, 4, 3, 2), dtype, 1)]


def transposed(dtype):
    return [make((2, 4, 7, 6), dtype), make((4, 5, 3, 2), dtype, 1)]


def gradients(function):
    def call(x, w):
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        y = function(x, w)
        return torch.autograd.grad(y, (x, w), y.detach().tanh())

    return call


def convolved(x, w):
    return F.conv2d(x, w, None, (2, 1), (1, 0), (1, 2))


def convolved_transposed(x, w):
    return F.conv_transpose2d(x, w, None, (2, 1), (1, 0), (1, 0), 1, (1, 2))


case("_mps_convolution", on_mps(lambda x, w: A._mps_convolution(x, w, None, [1, 0], [2, 1], [1, 2], 1), convolved), image)
case("_mps_convolution_transpose", on_mps(lambda x, w: A._mps_convolution_transpose(x, w, [1, 0], [1, 0], [2, 1], [1, 2], 1), convolved_transposed),
     transposed)
case("mps_convolution_backward",
     on_mps(lambda x, w: A.mps_convolution_backward(x, convolved(x, w).tanh(), w, [1, 0], [2, 1], [1, 2], 1, [True, True, False])[:2],
            gradients(convolved)), image, F32)
case("mps_convolution_transpose_backward",
     on_mps(lambda x, w: A.mps_convolution_transpose_backward(x, convolved_transposed(x, w).tanh(), w, [1, 0], [1, 0], [2, 1], [1, 2], 1,
                                                              [True, True]),
            gradients(convolved_transposed)), transposed, F32)


def lstm_gradients(x, *weights):
    """On mps through _lstm_mps and lstm_mps_backward."""
    x = x.detach().requires_grad_()
    weights = [w.detach().requires_grad_() for w in weights]
    state = torch.zeros(1, 3, 4, device=x.device)
    y, h, c = torch.lstm(x, (state, state), weights, True, 1, 0.0, True, False, False)
    return y, h, c, torch.autograd.grad([y, c], [x, *weights], [y.detach().tanh(), c.detach()])


LSTM = [(16, 5), (16, 4), (16,), (16,)]
case("_lstm_mps", lstm_gradients, lambda d: [make((6, 3, 5), d), *[make(s, d, i) / 3 for i, s in enumerate(LSTM)]], F32)
case("lstm_mps_backward", lstm_gradients, lambda d: [make((1, 3, 5), d), *[make(s, d, i) / 3 for i, s in enumerate(LSTM)]], F32)


@pytest.mark.parametrize("entry, dtype", [(e, d) for e, (_, _, dtypes) in CASES.items() for d in dtypes], ids=str)
def test_entry(entry, dtype):
    function, inputs, _ = CASES[entry]
    rtol, atol = LOOSE.get(dtype, (0, 0))
    compare(function, *inputs(dtype), rtol=rtol, atol=atol)


@pytest.mark.parametrize("entry", CASES)
def test_layout_of_inputs_is_nothing(entry):
    """Inputs that are transposed or have an offset give what the CPU gives without: some of its kernels take every input for contiguous."""
    function, inputs, dtypes = CASES[entry]
    rtol, atol = LOOSE.get(dtypes[0], (0, 0))

    def turned(t):
        if t.dim() > 1:
            return t.transpose(0, -1).contiguous().transpose(0, -1)
        return torch.cat([t, t])[t.numel():] if t.dim() == 1 else t

    if entry == "set_.source_Storage" or "pack" in entry:
        return  # the whole storage is the result; asks for contiguous input, as the CPU
    actual = function(*to_mps([turned(t) for t in inputs(dtypes[0])]))
    assert_same(actual, function(*inputs(dtypes[0])), rtol, atol)


# ---- random: values have nothing to be compared with ----
RANDOM = {
    "native_dropout": (lambda x: A.native_dropout(x, 0.5, True), FLOATS), "normal.Tensor_float": (lambda x: A.normal.Tensor_float(x, 2.0), FLOATS),
    "normal.Tensor_float_out": (lambda x: A.normal.Tensor_float_out(x, 2.0, out=new(x)), FLOATS),
    "normal.float_Tensor": (lambda x: A.normal.float_Tensor(1.0, x.abs()), FLOATS),
    "normal.float_Tensor_out": (lambda x: A.normal.float_Tensor_out(1.0, x.abs(), out=new(x)), FLOATS),
    "random_": (lambda x: A.random_(x.clone()), FLOATS + INTEGERS), "random_.to": (lambda x: A.random_.to(x.clone(), 9), FLOATS + INTEGERS),
    "_standard_gamma": (lambda x: A._standard_gamma(x.abs() + 0.1), FLOATS),
    "randperm.generator_out": (lambda x: A.randperm.generator_out(20, generator=None, out=new(x)), INTEGERS[1:]),
    "_sample_dirichlet": (lambda x: A._sample_dirichlet(x.abs() + 0.1), FLOATS),
}


@pytest.mark.parametrize("entry, dtype", [(e, d) for e, (_, dtypes) in RANDOM.items() for d in dtypes], ids=str)
def test_random_entry(entry, dtype):
    """The same after the same seed, whatever the layout, finite, and other than before."""
    function, x = RANDOM[entry][0], make((4, 5), dtype)

    def run(x):
        torch.manual_seed(7)
        return [t.cpu() for t in flatten(function(to_mps(x)))]

    first = run(x)
    assert all(t.double().isfinite().all() for t in first) and first[0].dtype == dtype
    assert all(torch.equal(a, b) for a, b in zip(first, run(x)))
    assert all(torch.equal(a, b) for a, b in zip(first, run(x.t().contiguous().t())))
    assert not torch.equal(first[0], flatten(function(to_mps(x)))[0].cpu())


def test_every_case_is_an_entry():
    assert set(CASES) | set(RANDOM) <= ENTRIES
