# SPDX-License-Identifier: BSD-3-Clause
"""Layer, rms, batch, group, instance and weight norm against double: training and evaluation, mixed dtypes, layouts, gradients."""
import itertools

import pytest
import torch
import torch.nn.functional as F

from compare import FLOATS, assert_same, compare, compare_errors, compare_gradients, make, to_mps

TOLERANCES = {torch.float32: (2e-5, 2e-5), torch.float16: (4e-3, 4e-3), torch.bfloat16: (3e-2, 3e-2)}
GRADIENTS = {torch.float32: (1e-4, 2e-4), torch.float16: (2e-2, 3e-2), torch.bfloat16: (1e-1, 1.5e-1)}


def check(function, tensors, dtypes, seed=7):
    """function(*tensors) with its gradients, each tensor in its dtype on mps, against the same values in double on the CPU."""
    cpu = [None if t is None else t.to(d).double().requires_grad_() for t, d in zip(tensors, dtypes)]
    mps = [None if t is None else to_mps(t.to(d)).requires_grad_() for t, d in zip(tensors, dtypes)]
    expected, actual = function(*cpu), function(*mps)
    assert_same(actual, expected.detach().to(actual.dtype), *TOLERANCES[actual.dtype])
    g = make(tuple(expected.shape), actual.dtype, seed=seed)
    expected.backward(g.double())
    actual.backward(to_mps(g))
    for c, m, d in zip(cpu, mps, dtypes):
        if c is not None:
            assert_same(m.grad, c.grad.to(d), *GRADIENTS[actual.dtype if actual.dtype != torch.float32 else d])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape,count", [((6,), 1), ((5, 7), 1), ((3, 4, 300), 1), ((3, 4, 5), 2), ((64, 1000), 1), ((2, 5000), 1), ((700, 33), 1)])
@pytest.mark.parametrize("parameters", ["none", "same", "float"])
def test_layer_and_rms_norm(dtype, shape, count, parameters):
    inner = list(shape[-count:])
    x = make(shape) * 3 + 5
    w, b = (None, None) if parameters == "none" else (make(tuple(inner), seed=1), make(tuple(inner), seed=2))
    kind = torch.float32 if parameters == "float" else dtype
    check(lambda x, w, b: F.layer_norm(x, inner, w, b), [x, w, b], [dtype, kind, kind])
    if parameters != "float":
        check(lambda x, w: F.rms_norm(x, inner, w, eps=1e-5), [x, w], [dtype, kind])


def test_layer_norm_of_views():
    x = make((9, 4, 20))
    for view in (x.transpose(0, 2), x[:, :, 3:], x[::2], x[:, :1].expand(9, 4, 20)):
        compare_gradients(lambda v: F.layer_norm(v, v.shape[-1:]), view, rtol=1e-4, atol=1e-4)
    far = x * 1e-3 + 1e3
    assert_same(F.layer_norm(to_mps(far), [20]), F.layer_norm(far.double(), [20]).float(), 1e-4, 1e-4)
    compare(lambda x: F.layer_norm(x, [4]), make((0, 4)))
    compare(lambda x: torch.native_layer_norm(x, [20], None, None, 1e-5), x)
    compare_errors(lambda x: F.layer_norm(x, [3]), x)


def test_rms_norm_default_epsilon():
    compare(lambda x: F.rms_norm(x, [20]), make((9, 20)) * 1e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(8, 6), (1000, 10), (4, 5, 3), (4, 8, 5, 6), (2, 300, 7, 7), (16, 3, 32, 32), (2, 4, 3, 4, 5)])
@pytest.mark.parametrize("last", [False, True])
def test_batch_norm(dtype, shape, last):
    x = make(shape) * 2 + 3
    if last and len(shape) >= 4:
        x = x.to(memory_format=torch.channels_last if len(shape) == 4 else torch.channels_last_3d)
    elif last:
        x = x.transpose(0, 1).contiguous().transpose(0, 1)
    channels = shape[1]
    for training, affine in itertools.product((True, False), (True, False)):
        w, b = (make((channels,), seed=1), make((channels,), seed=2)) if affine else (None, None)
        mean, var = make((channels,), seed=3), make((channels,), seed=4).abs() + 0.5
        running = {False: (mean.double(), var.double()), True: (mean.to("mps"), var.to("mps"))}

        def norm(x, w, b):
            m, v = running[x.device.type == "mps"]
            return F.batch_norm(x, m, v, w, b, training=training, momentum=0.3)

        check(norm, [x, w, b], [dtype, torch.float32, torch.float32])
        for ours, theirs in zip(running[True], running[False]):
            assert_same(ours, theirs.float(), 1e-4, 1e-4)
        if training:
            check(lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), [x, w, b], [dtype, dtype, dtype])


def test_batch_norm_module_follows_the_cpu():
    torch.manual_seed(0)
    cpu = torch.nn.BatchNorm2d(7, momentum=None)
    mps = torch.nn.BatchNorm2d(7, momentum=None).to("mps")
    for step in range(3):
        x = make((4, 7, 5, 5), seed=step)
        assert_same(mps(x.to("mps")), cpu(x), 1e-4, 1e-5)
    assert_same(mps.running_var, cpu.running_var, 1e-4, 1e-5)
    assert_same(mps.eval()(x.to("mps")), cpu.eval()(x), 1e-4, 1e-5)
    out = mps.train()(x.to("mps").to(memory_format=torch.channels_last))
    assert out.is_contiguous(memory_format=torch.channels_last)


def test_batch_norm_entries():
    x, w, b = make((4, 5, 6)), make((5,), seed=1), make((5,), seed=2)
    compare(lambda x, w, b, m, v: torch.native_batch_norm(x, w, b, m, v, True, 0.1, 1e-5), x, w, b, torch.zeros(5), torch.ones(5), rtol=1e-4)
    compare(lambda x, w, b, m, v: torch.native_batch_norm(x, w, b, m, v, False, 0.1, 1e-5), x, w, b, torch.zeros(5), torch.ones(5), rtol=1e-4)
    compare(lambda x, w, b, m, v: torch.ops.aten._native_batch_norm_legit(x, w, b, m, v, True, 0.1, 1e-5), x, w, b, torch.zeros(5), torch.ones(5), rtol=1e-4)
    compare(lambda x, w, b: torch.ops.aten._native_batch_norm_legit(x, w, b, True, 0.1, 1e-5), x, w, b, rtol=1e-4)
    compare(lambda x, w, b, m, v: torch.ops.aten._batch_norm_with_update(x, w, b, m, v, 0.1, 1e-5)[:3], x, w, b, torch.zeros(5), torch.ones(5), rtol=1e-4)
    compare(lambda x, w, b, m, v: torch.ops.aten._batch_norm_no_update(x, w, b, m, v, 0.1, 1e-5)[0], x, w, b, torch.zeros(5), torch.ones(5), rtol=1e-4)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape,groups", [((5, 32), 2), ((4, 8, 3), 2), ((2, 8, 5, 6), 4), ((2, 32, 17, 17), 8), ((3, 4, 1), 4), ((2, 6, 50, 70), 1)])
@pytest.mark.parametrize("parameters", ["none", "same", "float"])
def test_group_norm(dtype, shape, groups, parameters):
    x = make(shape) * 2 + 3
    w, b = (None, None) if parameters == "none" else (make((shape[1],), seed=1), make((shape[1],), seed=2))
    kind = torch.float32 if parameters == "float" else dtype
    if shape == (3, 4, 1):  # one element a group: the result is the bias, the gradient nothing
        compare(lambda x: F.group_norm(x, 2), x, rtol=1e-3, atol=1e-3)
        return
    check(lambda x, w, b: F.group_norm(x, groups, w, b), [x, w, b], [dtype, kind, kind])


def test_instance_norm_and_channels_last_group_norm():
    compare_gradients(lambda x, w, b: F.instance_norm(x, weight=w, bias=b), make((3, 5, 6, 7)), make((5,), seed=1), make((5,), seed=2), rtol=1e-4, atol=1e-4)
    x = make((2, 8, 5, 6)).to(memory_format=torch.channels_last)
    compare(lambda x: F.group_norm(x, 4), x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dim", [0, 2])
def test_weight_norm(dim):
    v = make((6, 5, 4))
    g = make((6, 1, 1) if dim == 0 else (1, 1, 4), seed=1)
    compare(lambda v, g: torch._weight_norm_interface(v, g, dim), v, g, rtol=1e-5)
    compare_gradients(lambda v, g: torch._weight_norm(v, g, dim), v, g, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int16, torch.complex64])
def test_batch_norm_names_the_dtype_that_it_refuses(dtype):
    compare_errors(lambda x, m, v: F.batch_norm(x, m, v), make((2, 3, 4), dtype), make((3,), dtype), make((3,), dtype))
