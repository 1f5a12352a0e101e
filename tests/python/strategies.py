# SPDX-License-Identifier: BSD-3-Clause
"""What property tests draw from: shapes, and tensors laid out in every way that a view can have; and what they ask: the same as the CPU.

    shapes(2, 4)                      sizes with 2 to 4 dimensions, 0 and 1 among them
    tensors(shape, dtype)             a tensor of that shape: contiguous, transposed, a slice with steps, expanded, with an offset, channels_last,
                                      lazily conjugated or negated
    agree(function, inputs)           values, dtypes, shapes and what lies around the inputs are the CPU's; or both devices refuse alike
    agree_on_memory(function, memory, views)   the same for calls whose arguments share memory
    PROPERTY                          settings of every property test: fixed examples, few enough for `make test`
"""
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from compare import assert_same, assert_untouched, bordered, clone, compare, make, surroundings, to_mps

PROPERTY = settings(max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
LOOSE = {torch.float16: (4e-3, 4e-3), torch.bfloat16: (3e-2, 3e-2), torch.float32: (1e-5, 2e-5), torch.complex64: (1e-5, 2e-5)}
CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def shapes(least=0, most=4, side=5, empty=True):
    """Sizes of `least` to `most` dimensions of up to `side`; one in eight dimensions is 1, and of 0 elements where `empty`."""
    sizes = st.integers(1, side)
    sizes = st.one_of(*[sizes] * 6, st.just(1), st.just(0)) if empty else st.one_of(*[sizes] * 6, st.just(1))
    return st.lists(sizes, min_size=least, max_size=most).map(tuple)


def _permuted(draw, x):
    order = draw(st.permutations(range(x.dim())))
    return x.permute(order).contiguous().permute([order.index(d) for d in range(x.dim())])


def _stepped(draw, x):
    dim, step = draw(st.integers(0, x.dim() - 1)), draw(st.integers(2, 3))
    sizes = list(x.shape)
    sizes[dim] = sizes[dim] * step
    wide = make(tuple(sizes), x.dtype, seed=9)
    view = wide[(slice(None),) * dim + (slice(draw(st.integers(0, step - 1)), None, step),)]
    view.copy_(x)
    return view


def _expanded(draw, x):
    dim = draw(st.integers(0, x.dim() - 1))
    return x.narrow(dim, 0, 1).contiguous().expand(x.shape)


def _negated(x):
    return torch._neg_view(-x)


def _conjugated(x):
    return x.conj().resolve_conj().conj()


@st.composite
def tensors(draw, shape, dtype=torch.float32, low=-4, high=5, special=False, writable=False):
    """A CPU tensor; `writable`: one that an in-place call may be made on, so not expanded."""
    x = make(shape, dtype, draw(st.integers(0, 3)), low, high, special)
    kinds = ["contiguous", "offset"]
    if x.dim() > 0:
        kinds += ["stepped"]
    if x.dim() > 1:
        kinds += ["permuted", "permuted"]
    if x.dim() > 0 and x.numel() and not writable:
        kinds.append("expanded")
    if x.dim() in CHANNELS_LAST:
        kinds.append("channels_last")
    if dtype.is_complex:
        kinds += ["conjugated", "negated"]
    elif dtype.is_floating_point:
        kinds.append("negated")
    kind = draw(st.sampled_from(kinds))
    if kind == "contiguous":
        return x
    if kind == "offset":
        return bordered(x, draw(st.integers(1, 9)))
    if kind == "channels_last":
        return x.contiguous(memory_format=CHANNELS_LAST[x.dim()])
    if kind == "negated":
        return _negated(x)
    if kind == "conjugated":
        return _conjugated(x)
    return {"stepped": _stepped, "permuted": _permuted, "expanded": _expanded}[kind](draw, x)


def caught(function, values, options):
    try:
        result = function(*values, **options)
        torch.mps.synchronize()
        return result, None
    except Exception as error:  # noqa: BLE001 - whatever it is, the other side must raise the same
        return None, error


def assert_same_error(actual, expected):
    """The CPU refuses: so does mps, with the same type and text. Dtypes that only the CPU lacks may work."""
    if "not implemented for" in str(expected):
        return
    assert actual is not None, f"only the CPU refuses: {expected}"
    assert type(actual) is type(expected), f"{actual!r} instead of {expected!r}"
    assert str(actual).replace("mps:0", "cpu").replace("MPS", "CPU") == str(expected)


def agree(function, *inputs, rtol=None, atol=None, strides=False, **options):
    dtype = next((t.dtype for t in inputs if isinstance(t, torch.Tensor) and t.dtype in LOOSE), None)
    loose = LOOSE.get(dtype, (None, None))
    rtol, atol = loose[0] if rtol is None else rtol, loose[1] if atol is None else atol
    expected = caught(function, clone(list(inputs)), options)[1]
    if expected is None:
        compare(function, *inputs, rtol=rtol, atol=atol, strides=strides, **options)
    else:
        assert_same_error(caught(function, to_mps(list(inputs)), options)[1], expected)


@st.composite
def places(draw, shape, length):
    """(sizes, strides, offset) of a view of `shape` into a memory of `length` elements, without elements that share a place."""
    order = draw(st.permutations(range(len(shape))))
    strides, step = [0] * len(shape), draw(st.integers(1, 2))
    for dim in order:
        strides[dim] = step
        step *= max(shape[dim], 1)
    span = 1 + sum((n - 1) * s for n, s in zip(shape, strides)) if 0 not in shape else 0
    return shape, tuple(strides), draw(st.integers(0, max(length - span, 0)))


def agree_on_memory(function, memory, views, rtol=None, atol=None):
    """function(*tensors) where each tensor is a view, a triple of as_strided, of one memory: that memory afterwards is the same, or the error."""
    cpu, mps = memory.clone(), memory.to("mps")
    expected, error = caught(function, [cpu.as_strided(*v) for v in views], {})
    actual, mps_error = caught(function, [mps.as_strided(*v) for v in views], {})
    if error is not None:
        return assert_same_error(mps_error, error)
    assert mps_error is None, f"only mps refuses: {mps_error}"
    assert_same(mps, cpu, rtol, atol)
    assert_same(actual, expected, rtol, atol)


__all__ = ["LOOSE", "PROPERTY", "agree", "agree_on_memory", "assert_untouched", "places", "shapes", "surroundings", "tensors"]
