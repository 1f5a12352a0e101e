# SPDX-License-Identifier: BSD-3-Clause
"""The seams between torch and OpenMPS: device, memory, copies, storages, generators, events. Results are compared with the CPU's."""
import copy
import gc
import io
import pickle

import numpy
import pytest
import torch
import torch.utils.checkpoint

DTYPES = [torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
          torch.float32, torch.complex32, torch.complex64]


def sample(dtype, *shape, seed=0):
    """Values of every kind that the type holds, on the CPU."""
    generator = torch.Generator().manual_seed(seed)
    if dtype is torch.bool:
        return torch.rand(shape, generator=generator) > 0.5
    if dtype.is_complex:
        return torch.complex(torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)).to(dtype)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(0, 100, shape, generator=generator).to(dtype)


def same(result, expected):
    assert result.device.type == "mps"
    assert result.dtype == expected.dtype and result.shape == expected.shape
    assert equal(result.cpu(), expected)


def equal(a, b):
    """Bit for bit but for the sign of zeros; the CPU compares no complex32."""
    if a.dtype is torch.complex32:
        a, b = torch.view_as_real(a.resolve_conj()), torch.view_as_real(b.resolve_conj())
    return a.dtype == b.dtype and torch.equal(a, b)


# ---- the device ----
def test_first_lines():
    assert torch.backends.mps.is_built() and torch.backends.mps.is_available()
    assert torch.mps.is_available() and torch.mps.device_count() == 1
    assert (torch.ones(5, device="mps") * 2).tolist() == [2.0] * 5
    assert torch.tensor([1, 2], device="mps").device == torch.device("mps:0")
    assert torch.accelerator.current_accelerator().type == "mps"
    assert torch.get_device_module("mps") is torch.mps


def test_device_index():
    assert torch.empty(1, device="mps:0").device == torch.device("mps:0")
    with pytest.raises(RuntimeError):
        torch.empty(1, device="mps:1")


def test_capabilities():
    capability = torch.accelerator.get_device_capability("mps") if hasattr(torch.accelerator, "get_device_capability") else None
    if capability is not None:
        assert torch.float32 in capability["supported_dtypes"]
        assert torch.float64 not in capability["supported_dtypes"] and torch.complex128 not in capability["supported_dtypes"]


# ---- copies ----
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_round_trip(dtype):
    for shape in [(), (1,), (7,), (3, 4), (0,), (2, 0, 3), (65, 33)]:
        value = sample(dtype, *shape)
        same(value.to("mps"), value)


@pytest.mark.parametrize("source", DTYPES, ids=str)
@pytest.mark.parametrize("target", DTYPES, ids=str)
def test_conversion(source, target):
    value = sample(source, 5, 7)
    if source.is_complex and not target.is_complex and target is not torch.bool:
        value = torch.complex(sample(torch.float32, 5, 7), torch.zeros(5, 7)).to(source)
    expected = value.to(target)
    same(value.to("mps").to(target), expected)
    same(value.to(device="mps", dtype=target), expected)
    assert equal(value.to("mps").to("cpu", target), expected)


@pytest.mark.parametrize("make", [
    lambda x: x.t(), lambda x: x[::2, 1:], lambda x: x[:, ::3], lambda x: x.flip(0)[1:], lambda x: x[3:].reshape(-1)[5:17],
    lambda x: x[0].expand(4, -1), lambda x: x.unfold(1, 3, 2), lambda x: x.as_strided((3, 3), (1, 2), 4),
], ids=["t", "step", "columns", "flip", "offset", "expand", "unfold", "as_strided"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.float16, torch.complex64, torch.bool], ids=str)
def test_views(make, dtype):
    value = sample(dtype, 8, 10)
    same(make(value.to("mps")), make(value))
    same(make(value.to("mps")).contiguous(), make(value).contiguous())
    same(make(value).to("mps"), make(value))


def test_copy_into_views():
    expected, result = torch.zeros(6, 8), torch.zeros(6, 8, device="mps")
    source = torch.arange(12.0).reshape(3, 4)
    for target, value in ((expected, source), (result, source), (result, source.to("mps"))):
        target[1:4, ::2] = value
        target.t()[5, :3].copy_(value[0, :3])
        target[5] = 7
        target[4, 2:4] = value[1, 1]
    same(result, expected)


def test_copy_broadcasts_and_refuses():
    result = torch.zeros(3, 4, device="mps")
    result.copy_(torch.arange(4.0))
    same(result, torch.arange(4.0).expand(3, 4))
    result.copy_(torch.arange(3.0, device="mps").unsqueeze(1))
    same(result, torch.arange(3.0).unsqueeze(1).expand(3, 4))
    for wrong in (torch.zeros(5), torch.zeros(2, 3, 4)):
        with pytest.raises(RuntimeError) as cpu:
            torch.zeros(3, 4).copy_(wrong)
        with pytest.raises(RuntimeError) as mps:
            result.copy_(wrong.to("mps"))
        assert str(mps.value) == str(cpu.value)


def test_copy_refuses_overlap():
    x = torch.zeros(8, device="mps")
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer to a single memory location"):
        x[1:].copy_(x[:-1])
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"):
        x[:1].expand(4).copy_(torch.ones(4, device="mps"))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex32], ids=str)
def test_conjugate_and_negative_bits(dtype):
    value = sample(dtype, 4, 5)
    device = value.to("mps")
    same(device.conj(), value.conj())
    same(device.conj().clone(), value.conj().clone())
    same(device.conj().resolve_conj(), value.conj().resolve_conj())
    assert torch.equal(device.conj().imag.cpu(), value.conj().imag)
    assert device[1, 2].conj().item() == value[1, 2].conj().item()
    target, expected = torch.zeros(4, 5, dtype=dtype, device="mps"), torch.zeros(4, 5, dtype=dtype)
    target.conj().copy_(device)
    expected.conj().copy_(value)
    same(target, expected)


def test_float64_is_converted_on_the_way():
    value = torch.tensor([2.0**53, -1.5, 3.0], dtype=torch.float64)
    result = torch.zeros(3, dtype=torch.int64, device="mps")
    result.copy_(value)
    assert result.tolist() == [2**53, -1, 3]
    back = torch.zeros(2, dtype=torch.float64)
    back.copy_(torch.tensor([0.1, 7.0], device="mps"))
    assert back.tolist() == [float(numpy.float32(0.1)), 7.0]


def test_source_is_read_before_the_call_returns():
    source = torch.ones(100_000)
    result = source.to("mps", non_blocking=True)
    source.zero_()
    assert result.sum().item() == 100_000


def test_item_and_numbers():
    for dtype in DTYPES:
        value = sample(dtype, 3)
        if dtype in (torch.uint16, torch.uint32, torch.uint64, torch.complex32):
            assert value.to("mps")[1].item() == value[1].item()
            continue
        assert value.to("mps")[1].item() == value[1].item() and bool(value.to("mps")[2]) == bool(value[2])
    assert torch.tensor(2**62 + 1, device="mps").item() == 2**62 + 1
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        torch.ones(2, device="mps").item()


def test_fill():
    for dtype in DTYPES:
        same(torch.full((3, 2), 1, dtype=dtype, device="mps"), torch.full((3, 2), 1, dtype=dtype))
        same(torch.zeros(5, dtype=dtype, device="mps"), torch.zeros(5, dtype=dtype))
    x = torch.zeros(4, 4, device="mps")
    x[1:3, ::2].fill_(2.5)
    x[0].fill_(torch.tensor(3.0, device="mps"))
    expected = torch.zeros(4, 4)
    expected[1:3, ::2].fill_(2.5)
    expected[0].fill_(3)
    same(x, expected)
    with pytest.raises(RuntimeError, match="cannot be converted to type int8_t without overflow"):
        torch.zeros(2, dtype=torch.int8, device="mps").fill_(300)


# ---- storages ----
def test_storage():
    x = torch.arange(6.0, device="mps")
    storage = x.untyped_storage()
    assert storage.device.type == "mps" and storage.nbytes() == 24
    clone = storage.clone()
    assert clone.device.type == "mps" and clone.data_ptr() != storage.data_ptr()
    same(torch.empty(0, device="mps").set_(clone, 0, (6,), (1,)), torch.arange(6.0))
    assert storage.cpu().tolist() == torch.arange(6.0).untyped_storage().tolist()
    assert torch.arange(6.0).untyped_storage().mps().device.type == "mps"
    made = torch.UntypedStorage(16, device="mps")
    assert made.nbytes() == 16 and made.device.type == "mps"


def test_storage_resize():
    x = torch.arange(6.0, device="mps")
    storage = x.untyped_storage()
    storage.resize_(0)
    assert storage.nbytes() == 0
    storage.resize_(24)
    x.copy_(torch.arange(6.0))
    same(x, torch.arange(6.0))
    storage.resize_(48)
    same(torch.empty(0, device="mps").set_(storage, 0, (6,), (1,)), torch.arange(6.0))


def test_resize_and_set():
    x = torch.arange(4.0, device="mps")
    x.resize_(2, 4)
    same(x.reshape(-1)[:4], torch.arange(4.0))
    x.resize_(2)
    same(x, torch.arange(2.0))
    y = torch.empty(0, device="mps")
    y.set_(torch.arange(5.0, device="mps"))
    same(y, torch.arange(5.0))
    y.set_()
    assert y.shape == (0,) and y.device.type == "mps"
    assert torch.empty(2, 3, 4, 5, device="mps", memory_format=torch.channels_last).stride() == torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_save_and_load(dtype):
    value = sample(dtype, 3, 4)
    kept = {"x": value.to("mps"), "view": value.to("mps")[1:, ::2]}
    file = io.BytesIO()
    torch.save(kept, file)
    for location in (None, "mps", "cpu"):
        file.seek(0)
        loaded = torch.load(file, map_location=location)
        assert loaded["x"].device.type == (location or "mps")
        assert equal(loaded["x"].cpu(), value) and equal(loaded["view"].cpu(), value[1:, ::2])
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    same(torch.load(file, map_location="mps"), value)


def test_pickle_and_deepcopy():
    x = torch.randn(3, 4)
    same(pickle.loads(pickle.dumps(x.to("mps"))), x)
    device = x.to("mps")
    twin = copy.deepcopy(device)
    same(twin, x)
    twin.zero_()
    same(device, x)
    module = torch.nn.Linear(3, 2).to("mps")
    same(copy.deepcopy(module).weight.detach(), module.weight.detach().cpu())


def test_printing():
    assert repr(torch.arange(3, device="mps")) == "tensor([0, 1, 2], device='mps:0')"
    assert "device='mps:0'" in repr(torch.randn(100, 100, device="mps"))
    assert repr(torch.zeros(0, device="mps")) == "tensor([], device='mps:0')"


def test_lazy_clone():
    x = torch.arange(4.0, device="mps")
    y = torch._lazy_clone(x)
    y += 1
    same(x, torch.arange(4.0))
    same(y, torch.arange(4.0) + 1)


# ---- memory ----
def test_memory_counts():
    gc.collect()
    torch.mps.synchronize()
    before = torch.mps.current_allocated_memory()
    x = torch.empty(8 << 20, dtype=torch.uint8, device="mps")
    assert torch.mps.current_allocated_memory() - before >= 8 << 20
    assert torch.mps.driver_allocated_memory() >= torch.mps.current_allocated_memory()
    assert torch.mps.recommended_max_memory() > 0
    stats = torch.accelerator.memory_stats()
    assert stats["allocated_bytes.all.current"] == torch.mps.current_allocated_memory()
    del x
    assert torch.mps.current_allocated_memory() == before
    torch.mps.empty_cache()


def test_empty_tensors_hold_nothing():
    before = torch.mps.current_allocated_memory()
    x = torch.empty(0, 5, device="mps")
    assert torch.mps.current_allocated_memory() == before and x.data_ptr() == 0
    assert x.device == torch.device("mps:0") and x.sum().item() == 0


def test_from_blob_of_our_own_memory():
    """torch.save of a storage goes through memory by its address."""
    x = torch.arange(10.0, device="mps")
    file = io.BytesIO()
    torch.save(x.untyped_storage(), file)
    file.seek(0)
    assert bytes(torch.load(file, weights_only=False).cpu().tolist()) == x.cpu().numpy().tobytes()


def test_pinned():
    x = torch.arange(100.0).pin_memory()
    assert x.is_pinned() and not torch.arange(100.0).is_pinned()
    same(x.to("mps", non_blocking=True), torch.arange(100.0))


# ---- generators ----
def test_generator_state():
    torch.mps.manual_seed(7)
    state = torch.mps.get_rng_state()
    assert state.dtype is torch.uint8 and state.shape == (36,) and state.device.type == "cpu"
    first = torch.rand(1000, device="mps")
    moved = torch.mps.get_rng_state()
    assert not torch.equal(moved, state)
    torch.mps.set_rng_state(state)
    same(torch.rand(1000, device="mps"), first.cpu())
    torch.manual_seed(7)
    same(torch.rand(1000, device="mps"), first.cpu())
    with pytest.raises(RuntimeError, match="RNG state is wrong size"):
        torch.mps.set_rng_state(torch.zeros(5, dtype=torch.uint8))


def test_generator_object():
    generator = torch.Generator("mps")
    assert generator.device.type == "mps" and generator.initial_seed() == 67280421310721
    generator.manual_seed(3)
    a = torch.rand(50, generator=generator, device="mps")
    clone = generator.clone_state() if hasattr(generator, "clone_state") else None
    b = torch.rand(50, generator=generator, device="mps")
    generator.manual_seed(3)
    same(torch.rand(50, generator=generator, device="mps"), a.cpu())
    assert not torch.equal(a.cpu(), b.cpu())
    if clone is not None:
        same(torch.rand(50, generator=clone, device="mps"), b.cpu())
    with torch.random.fork_rng(device_type="mps"):
        torch.rand(3, device="mps")
    with pytest.raises(RuntimeError, match="Expected a 'mps' device type for generator but found 'cpu'"):
        torch.rand(3, generator=torch.Generator(), device="mps")


# ---- streams and events ----
def test_events():
    start, end = torch.mps.Event(enable_timing=True), torch.mps.Event(enable_timing=True)
    assert not start.query()
    start.record()
    x = torch.ones(1 << 20, device="mps")
    for _ in range(4):
        x = x * 1.5
    end.record()
    end.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0
    plain = torch.mps.Event()
    plain.record()
    plain.wait()
    plain.synchronize()
    with pytest.raises(RuntimeError, match="Events were not created with argument 'enable_timing=True'"):
        plain.elapsed_time(end)
    with pytest.raises(RuntimeError, match="Invalid Event ID: 123456"):
        torch._C._mps_recordEvent(123456)


def test_streams():
    stream, event = torch.Stream("mps"), torch.Event("mps")
    assert stream.device.type == "mps"
    x = torch.ones(1000, device="mps")
    event.record()
    event.wait(stream)
    with stream:
        assert torch.accelerator.current_stream() == stream
        y = x * 3
    stream.synchronize()
    assert stream.query() and y.sum().item() == 3000
    y.record_stream(stream)
    torch.accelerator.synchronize()


# ---- operators without a kernel ----
def test_autograd_through_the_bridge():
    x = torch.randn(4, 5, requires_grad=True)
    y = x.detach().to("mps").requires_grad_()
    (x * x + 2).sum().backward()
    (y * y + 2).sum().backward()
    torch.testing.assert_close(y.grad.cpu(), x.grad)


def test_structured_outputs():
    """out= of another size, dtype and layout, and in-place calls, by PyTorch's own rules."""
    a, b = torch.randn(3, 4), torch.randn(4)
    da, db = a.to("mps"), b.to("mps")
    out = torch.empty(0, device="mps")
    torch.add(da, db, out=out)
    same(out, a + b)
    strided = torch.zeros(4, 3, device="mps").t()
    torch.add(da, db, out=strided)
    same(strided, a + b)
    half = torch.empty(3, 4, dtype=torch.float16, device="mps")
    torch.add(da, db, out=half)
    same(half, (a + b).half())
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Int"):
        torch.add(da, db, out=torch.empty(3, 4, dtype=torch.int32, device="mps"))
    with pytest.raises(RuntimeError, match="output with shape"):
        db.add_(da)
    da += 1
    same(da, a + 1)


def test_numbers_and_zero_dimensional_tensors():
    x = torch.arange(1, 6)
    d = x.to("mps")
    same(d + 1, x + 1)
    same(d * 2.5, x * 2.5)
    same(d + torch.tensor(0.5), x + torch.tensor(0.5))
    same(d.float() + torch.tensor(0.5, dtype=torch.float64), x.float() + torch.tensor(0.5, dtype=torch.float64))
    same(d.half() + torch.tensor(1e-3, device="mps"), x.half() + torch.tensor(1e-3))
    same(d > 2.5, x > 2.5)
    same(d == torch.tensor(3), x == torch.tensor(3))
    same(2 ** d, 2 ** x)


# ---- places in torch that ask which device it is ----
@pytest.mark.parametrize("foreach", [None, False, True])
def test_clip_grad_norm(foreach):
    norms = []
    for device in ("cpu", "mps"):
        layer = torch.nn.Linear(4, 3)
        with torch.no_grad():
            layer.weight.copy_(torch.arange(12.0).reshape(3, 4))
            layer.bias.zero_()
        layer.to(device)
        layer(torch.ones(2, 4, device=device)).square().sum().backward()
        norms.append(torch.nn.utils.clip_grad_norm_(layer.parameters(), 1.0, foreach=foreach).cpu())
        norms.append(layer.weight.grad.cpu())
    torch.testing.assert_close(norms[2], norms[0])
    torch.testing.assert_close(norms[3], norms[1])


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoint_replays_random_numbers(reentrant):
    seen = []

    def run(x):
        seen.append(torch.nn.functional.dropout(x, 0.5))
        return seen[-1] * seen[-1]

    x = torch.ones(1000, device="mps", requires_grad=True)
    torch.utils.checkpoint.checkpoint(run, x, use_reentrant=reentrant).sum().backward()
    assert len(seen) == 2 and equal(seen[0].detach().cpu(), seen[1].detach().cpu())


def test_autocast_and_scaler():
    layer = torch.nn.Linear(4, 4).to("mps")
    with torch.autocast("mps"):
        assert layer(torch.ones(2, 4, device="mps")).dtype is torch.float16
    with torch.autocast("mps", dtype=torch.bfloat16):
        assert layer(torch.ones(2, 4, device="mps")).dtype is torch.bfloat16
    assert torch.amp.GradScaler("mps").scale(torch.ones(1, device="mps")).item() == 65536


def test_dlpack():
    x = torch.arange(4.0, device="mps")
    y = torch.from_dlpack(x)
    y += 1
    same(x, torch.arange(4.0) + 1)


def test_profiler():
    with torch.mps.profiler.profile(mode="interval,event"):
        with pytest.raises(RuntimeError, match="Tracing Signposts is already enabled"):
            torch.mps.profiler.start()
    with pytest.raises(RuntimeError, match="Invalid Signpost trace mode: x"):
        torch.mps.profiler.start("x")
