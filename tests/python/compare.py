# SPDX-License-Identifier: BSD-3-Clause
"""Runs the same call on CPU and mps tensors and compares everything a user could see: values, dtypes, shapes, errors.

    compare(lambda x, i: x[i], x, index)              values and dtypes of all results, and of the inputs afterwards (in-place calls)
    compare_gradients(function, *inputs)              gradients of the floating inputs too
    compare_errors(function, *inputs)                 the same exception type and text
    compare_out(function, *inputs)                    out= laid out in every way, with bytes around it that must stay
    layouts(x)                                        x contiguous, transposed, offset, strided, expanded, channels_last, ...

compare and compare_out also look at the elements of each storage that belong to no tensor given: nothing may write there.
"""
import torch
from torch.testing import assert_close

REDUCED = (torch.float16, torch.bfloat16)
FLOATS = (torch.float32,) + REDUCED
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
COMPLEX = (torch.complex64,)
ALL_DTYPES = FLOATS + INTEGERS + (torch.bool,) + COMPLEX

# Relative and absolute tolerance by dtype, as PyTorch's own (torch.testing), integers exact.
TOLERANCES = {torch.float32: (1.3e-6, 1e-5), torch.float16: (1e-3, 1e-3), torch.bfloat16: (1.6e-2, 1e-2), torch.complex64: (1.3e-6, 1e-5)}


def make(shape, dtype=torch.float32, seed=0, low=-4, high=5, special=False):
    """A CPU tensor that is the same for the same arguments. `special` sprinkles NaN, infinities and both zeros over floats."""
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.randint(2, shape, generator=generator).bool()
    if dtype.is_complex:
        return torch.randn(shape, dtype=torch.complex64, generator=generator).to(dtype)
    if not dtype.is_floating_point:
        low = max(low, 0) if dtype in (torch.uint8, torch.uint16, torch.uint32, torch.uint64) else low
        return torch.randint(low, high, shape, generator=generator).to(dtype)
    x = torch.randn(shape, generator=generator)
    if special and x.numel() >= 8:
        flat = x.view(-1)
        places = torch.randperm(flat.numel(), generator=generator)[:6]
        flat[places] = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e30 if dtype != torch.float16 else 6e4])
    return x.to(dtype)


def border(shape, dtype):
    """Memory with a value that operators neither expect nor should touch."""
    return torch.full(shape, 7 if dtype != torch.bool else True, dtype=dtype)


def bordered(x, margin=19):
    """A CPU tensor with the sizes, strides and values of x in a storage that is `margin` elements longer at both ends."""
    if x.layout != torch.strided or x.numel() == 0 or min(x.stride(), default=0) < 0:
        return x
    length = 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride()))
    result = border((length + 2 * margin,), x.dtype).as_strided(x.shape, x.stride(), margin)
    if 0 in x.stride():
        result[tuple(slice(0, 1) if s == 0 else slice(None) for s in x.stride())] = x[tuple(slice(0, 1) if s == 0 else slice(None) for s in x.stride())]
        return result
    return result.copy_(x)


def surroundings(value):
    """For each strided tensor its geometry and the elements of its storage that are none of its own, on the CPU; None when it fills its storage."""
    found = []
    for x in flatten(value):
        if not isinstance(x, torch.Tensor) or x.layout != torch.strided or x.is_quantized:
            continue
        x = x.detach()
        length = x.untyped_storage().nbytes() // x.element_size()
        if length == x.numel():
            found.append(None)
            continue
        own = torch.zeros(length, dtype=torch.bool)
        own.as_strided(x.size(), x.stride(), x.storage_offset()).fill_(True) if x.numel() else None
        flat = torch.empty(0, dtype=x.dtype, device=x.device).set_(x.untyped_storage(), 0, (length,), (1,)).cpu()
        geometry = (x.data_ptr(), x.size(), x.stride(), x.storage_offset())
        found.append((geometry, flat.view(torch.uint8).view(length, -1)[~own]))
    return found


def assert_untouched(before, value):
    """Nothing was written around the tensors whose surroundings(value) are `before`, but for those that were laid out anew, as a resized out= is."""
    after = surroundings(value)
    assert len(after) == len(before)
    for a, b in zip(after, before):
        if b is None or a is None or a[0] != b[0]:
            continue
        places = (a[1] != b[1]).any(1).nonzero().flatten().tolist() if a[1].numel() else []
        assert not places, f"{len(places)} elements around a tensor were written, the first of them number {places[0]} of {len(b[1])}"


def layouts(x):
    """(name, tensor) pairs with x's values (or as many as the layout keeps), each laid out in another way. They are CPU tensors whose
    storage goes to the device as it is: to_mps keeps strides and offset."""
    yield "contiguous", x.contiguous()
    if x.dim() >= 2:
        yield "transposed", x.transpose(0, -1).contiguous().transpose(0, -1)
        wide = border((*x.shape[:-1], x.shape[-1] * 2), x.dtype)
        wide[..., ::2] = x
        yield "strided", wide[..., ::2]
    if x.dim() >= 1:
        longer = border((x.numel() + 8,), x.dtype)
        longer[3:-5] = x.reshape(-1)
        yield "offset", longer[3:-5].view(x.shape)
    if x.dim() == 4:
        yield "channels_last", x.contiguous(memory_format=torch.channels_last)
    if x.dim() >= 2 and x.shape[0] > 0:
        yield "expanded", x[:1].contiguous().expand(x.shape)


def to_mps(value):
    """A copy on mps with the same sizes, strides and storage offset; lists and tuples element by element."""
    if isinstance(value, (list, tuple)):
        return type(value)(to_mps(v) for v in value)
    if not isinstance(value, torch.Tensor):
        return value
    length = value.untyped_storage().nbytes() // value.element_size()
    flat = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage(), 0, (length,), (1,))
    result = flat.to("mps").as_strided(value.size(), value.stride(), value.storage_offset())
    if value.is_conj():
        result = result.conj()
    if value.is_neg():
        result = torch._neg_view(result)
    return result.requires_grad_(value.requires_grad) if value.requires_grad else result


def clone(value):
    """A CPU copy with the same layout, so that an in-place call does not spoil the next comparison."""
    if isinstance(value, (list, tuple)):
        return type(value)(clone(v) for v in value)
    if not isinstance(value, torch.Tensor):
        return value
    length = value.untyped_storage().nbytes() // value.element_size()
    flat = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage(), 0, (length,), (1,)).clone()
    result = flat.as_strided(value.size(), value.stride(), value.storage_offset())
    result = result.conj() if value.is_conj() else result
    result = torch._neg_view(result) if value.is_neg() else result
    return result.requires_grad_(value.requires_grad) if value.requires_grad else result


def flatten(value):
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in flatten(v)]
    return [value]


def assert_same(actual, expected, rtol=None, atol=None, strides=False):
    actual, expected = flatten(actual), flatten(expected)
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected):
        if not isinstance(e, torch.Tensor):
            assert a == e, f"{a} is not {e}"
            continue
        assert a.device.type == "mps", f"the result is on {a.device}"
        assert a.dtype == e.dtype, f"dtype {a.dtype}, expected {e.dtype}"
        assert a.shape == e.shape, f"shape {tuple(a.shape)}, expected {tuple(e.shape)}"
        if strides:
            assert a.stride() == e.stride(), f"strides {a.stride()}, expected {e.stride()}"
        default = TOLERANCES.get(e.dtype, (0.0, 0.0))
        assert_close(a.detach().cpu(), e.detach(), rtol=default[0] if rtol is None else rtol, atol=default[1] if atol is None else atol, equal_nan=True)


def compare(function, *inputs, rtol=None, atol=None, strides=False, **options):
    """Returns the CPU's result after having checked that mps gives the same, and leaves its inputs in the same state."""
    cpu_inputs, mps_inputs = clone(list(inputs)), to_mps(list(inputs))
    around = surroundings(mps_inputs)
    expected = function(*cpu_inputs, **options)
    actual = function(*mps_inputs, **options)
    assert_same(actual, expected, rtol, atol, strides)
    assert_untouched(around, mps_inputs)
    for mps, cpu in zip(flatten(mps_inputs), flatten(cpu_inputs)):
        if isinstance(cpu, torch.Tensor):
            default = TOLERANCES.get(cpu.dtype, (0.0, 0.0))
            assert_close(mps.detach().cpu(), cpu.detach(), rtol=default[0] if rtol is None else rtol, atol=default[1] if atol is None else atol, equal_nan=True)
    return expected


def outputs(results):
    """(name, tensors) with the sizes and dtypes of results, laid out in all ways that out= may be, bordered."""
    results = [torch.ones_like(r, memory_format=torch.contiguous_format) for r in flatten(results)]
    for name in ("contiguous", "transposed", "strided", "offset", "channels_last"):
        laid_out = [dict(layouts(r)).get(name) for r in results]
        if all(r is not None for r in laid_out):
            yield name, [bordered(r) for r in laid_out]


def compare_out(function, *inputs, rtol=None, atol=None, **options):
    """function(*inputs, out=...) with out= in every layout: the values and strides of out= are the CPU's, and what lies around it stays."""
    results = function(*clone(list(inputs)), **options)
    for name, outs in outputs(results):
        single = isinstance(results, torch.Tensor)
        cpu, mps = clone(outs), to_mps(outs)
        around = surroundings(mps)
        function(*clone(list(inputs)), out=cpu[0] if single else tuple(cpu), **options)
        function(*to_mps(list(inputs)), out=mps[0] if single else tuple(mps), **options)
        try:
            assert_same(mps, cpu, rtol, atol, strides=True)
            assert_untouched(around, mps)
        except AssertionError as error:
            raise AssertionError(f"out= {name}: {error}") from None


def compare_gradients(function, *inputs, rtol=None, atol=None, seed=1, **options):
    """Values, and gradients of all floating-point inputs for one random direction."""
    cpu_inputs = [t.clone().requires_grad_() if isinstance(t, torch.Tensor) and (t.is_floating_point() or t.is_complex()) else t for t in inputs]
    mps_inputs = [t.detach().to("mps").requires_grad_() if isinstance(t, torch.Tensor) and t.requires_grad else to_mps(t) for t in cpu_inputs]
    expected, actual = function(*cpu_inputs, **options), function(*mps_inputs, **options)
    assert_same(actual, expected, rtol, atol)
    pairs = [(a, e) for a, e in zip(flatten(actual), flatten(expected)) if isinstance(e, torch.Tensor) and e.requires_grad]
    directions = [make(tuple(e.shape), e.dtype, seed=seed + i) for i, (_, e) in enumerate(pairs)]
    wanted_cpu = [t for t in cpu_inputs if isinstance(t, torch.Tensor) and t.requires_grad]
    wanted_mps = [t for t in mps_inputs if isinstance(t, torch.Tensor) and t.requires_grad]
    cpu = torch.autograd.grad([e for _, e in pairs], wanted_cpu, directions, allow_unused=True)
    mps = torch.autograd.grad([a for a, _ in pairs], wanted_mps, [d.to("mps") for d in directions], allow_unused=True)
    for a, e in zip(mps, cpu):
        assert (a is None) == (e is None)
        if e is not None:
            assert_same(a, e, rtol, atol)


def compare_errors(function, *inputs, same_text=True):
    """Both devices raise the same type; with the same text unless `same_text` is False. Returns the CPU's exception."""
    def catch(values):
        try:
            function(*values)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other side must raise the same
            return error
        return None

    expected, actual = catch(clone(list(inputs))), catch(to_mps(list(inputs)))
    assert expected is not None, "the CPU does not refuse this: the test says nothing"
    assert type(actual) is type(expected), f"{actual!r} instead of {expected!r}"
    if same_text:
        assert str(actual) == str(expected)
    return expected
