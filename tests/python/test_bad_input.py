# SPDX-License-Identifier: BSD-3-Clause
"""Bad input, and what it gets: the texts are PyTorch's own, nothing aborts the process, and the program goes on."""
import pytest
import torch

FLOAT64 = "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64. Please use float32 instead."
COMPLEX128 = "Trying to convert ComplexDouble to the MPS backend but it does not have support for that dtype."


@pytest.mark.parametrize("make", [
    lambda: torch.ones(5, dtype=torch.float64, device="mps"),
    lambda: torch.ones(5, dtype=torch.float64).to("mps"),
    lambda: torch.tensor(1.5, dtype=torch.float64, device="mps"),
    lambda: torch.tensor(1.5, dtype=torch.float64).to("mps"),
    lambda: torch.ones(5, device="mps").double(),
    lambda: torch.ones(5, device="mps").to(torch.float64),
    lambda: torch.empty_strided((2,), (1,), dtype=torch.float64, device="mps"),
    lambda: torch.nn.Linear(2, 2).double().to("mps"),
], ids=["ones", "to", "tensor", "scalar.to", "double", "to.dtype", "empty_strided", "module"])
def test_float64(make):
    with pytest.raises(TypeError) as error:
        make()
    assert str(error.value) == FLOAT64


@pytest.mark.parametrize("make", [
    lambda: torch.ones(5, dtype=torch.complex128, device="mps"),
    lambda: torch.ones(5, dtype=torch.complex128).to("mps"),
    lambda: torch.ones(5, device="mps").to(torch.complex128),
], ids=["ones", "to", "to.dtype"])
def test_complex128(make):
    with pytest.raises(TypeError) as error:
        make()
    assert str(error.value) == COMPLEX128


def test_float64_with_the_fallback(python):
    done = python("""
        import torch
        for make in (lambda: torch.ones(5, dtype=torch.float64, device="mps"), lambda: torch.ones(2).double().to("mps")):
            try:
                make()
            except TypeError as error:
                print(error)
        """, PYTORCH_ENABLE_MPS_FALLBACK="1")
    assert done.code == 0 and done.out.splitlines() == [FLOAT64] * 2


@pytest.mark.parametrize("call", [
    lambda a, b: a + b, lambda a, b: torch.mm(a, b), lambda a, b: torch.maximum(a, b), lambda a, b: a.add_(b), lambda a, b: torch.cat([a, b]),
], ids=["add", "mm", "maximum", "add_", "cat"])
def test_two_devices(call):
    for a, b in ((torch.ones(2, 2, device="mps"), torch.ones(2, 2)), (torch.ones(2, 2), torch.ones(2, 2, device="mps"))):
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            call(a, b)


# An operator that has a kernel for the CPU only, whatever torch and OpenMPS learn.
CPU_ONLY = """
        import torch
        torch.library.define("cpu_only::double", "(Tensor x) -> Tensor")
        torch.library.impl("cpu_only::double", "CPU", lambda x: x * 2)
"""


def test_operator_without_kernel(python):
    done = python(CPU_ONLY + """
        try:
            torch.ops.cpu_only.double(torch.eye(3, device="mps"))
        except NotImplementedError as error:
            print(error)
        print((torch.ones(2, device="mps") + 1).tolist())
        """, PYTORCH_ENABLE_MPS_FALLBACK=None)
    text, after = done.out.splitlines()
    assert text.startswith("The operator 'cpu_only::double' is not currently") and "is not currently implemented for the MPS device. If you want this op to be considered" in text
    assert "https://github.com/pytorch/pytorch/issues/141287 and mention use-case, that resulted in missing op as well as commit hash" in text
    assert torch.version.git_version in text
    assert text.endswith("As a temporary fix, you can set the environment variable `PYTORCH_ENABLE_MPS_FALLBACK=1` to use the CPU as a fallback "
                         "for this op. WARNING: this will be slower than running natively on MPS.")
    assert after == "[2.0, 2.0]"


def test_fallback(python):
    done = python(CPU_ONLY + """
        values = [torch.ops.cpu_only.double(torch.tensor([1.0, 2.0]).to("mps")) for _ in range(3)]
        print(values[0].device, values[0].tolist())
        """, PYTORCH_ENABLE_MPS_FALLBACK="1")
    assert done.code == 0, done.err
    assert done.out == "mps:0 [2.0, 4.0]\n"
    text = "The operator 'cpu_only::double' is not currently supported on the MPS backend and will fall back to run on the CPU. This may have performance implications."
    assert done.err.count(text) == 1


def test_memory_beyond_the_limit(python):
    done = python("""
        import torch
        kept = torch.ones(10, device="mps")
        torch.mps.set_per_process_memory_fraction(0.01)
        limit = int(torch.mps.recommended_max_memory() * 0.01)
        try:
            torch.empty(4 * limit, dtype=torch.uint8, device="mps")
        except RuntimeError as error:
            print(type(error).__name__, error)
        print((kept + 1).sum().item(), torch.ones(1000, device="mps").sum().item())
        """)
    assert done.code == 0, done.err
    text, after = done.out.splitlines()
    assert text.startswith("RuntimeError MPS backend out of memory (MPS allocated: ") and ", max allowed: " in text and "Tried to allocate " in text
    assert "Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may cause system failure)." in text
    assert after == "20.0 1000.0"


def test_absurd_size():
    with pytest.raises(RuntimeError, match="Invalid buffer size|out of memory"):
        torch.empty(1 << 60, dtype=torch.uint8, device="mps")
    assert torch.ones(3, device="mps").sum().item() == 3


def test_memory_fraction():
    with pytest.raises(TypeError, match="Invalid type for fraction argument, must be `float`"):
        torch.mps.set_per_process_memory_fraction(1)
    with pytest.raises(ValueError):
        torch.mps.set_per_process_memory_fraction(2.5)


def test_rank():
    with pytest.raises(RuntimeError, match="MPS supports tensors with dimensions <= 16, but got 17."):
        torch.ones((1,) * 17, device="mps")
    with pytest.raises(RuntimeError, match="MPS supports tensors with dimensions <= 16, but got 17."):
        torch.ones((1,) * 17).to("mps")


def test_another_torch(python):
    """A torch that the build does not fit: one sentence, and torch itself untouched."""
    done = python("""
        import sys, warnings
        warnings.simplefilter("always")
        sys.modules["openmps._build"] = type(sys)("openmps._build")
        sys.modules["openmps._build"].torch, sys.modules["openmps._build"].version = "2.1.0", "0.1.0"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import torch
        ours = [w for w in caught if "OpenMPS" in str(w.message)]
        print(len(ours), ours[0].message)
        print(torch.backends.mps.is_built(), torch.backends.mps.is_available(), torch.ones(2).sum().item())
        """)
    assert done.code == 0, done.err
    text, after = done.out.splitlines()
    assert text.startswith("1 OpenMPS 0.1.0 was built for torch 2.1.0 and leaves torch ")
    assert after == "False False 2.0"


def test_forked_child(python):
    """Use in a forked child is refused with a text; the parent goes on."""
    done = python("""
        import os, sys, torch
        x = torch.ones(1000, device="mps") * 2
        x.sum().item()
        child = os.fork()
        if child == 0:
            try:
                torch.ones(3, device="mps")
            except RuntimeError as error:
                print(error, flush=True)
            print(torch.mps._is_in_bad_fork(), flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print((x + 1).sum().item())
        """)
    assert done.code == 0, done.err
    assert done.out.splitlines() == ["Cannot re-initialize MPS in forked subprocess. To use MPS with multiprocessing, you must use the 'spawn' start method",
                                     "True", "3000.0"]


def test_workers_that_inherit_tensors(python):
    """DataLoader workers hold copies of mps tensors which they never use: they end cleanly."""
    done = python("""
        import torch
        held = [torch.randn(1000, device="mps") for _ in range(10)]
        class Data(torch.utils.data.Dataset):
            def __init__(self): self.kept = held
            def __len__(self): return 32
            def __getitem__(self, i): return torch.full((4,), float(i))
        loader = torch.utils.data.DataLoader(Data(), batch_size=8, num_workers=2)
        print(sum(batch.to("mps").sum().item() for batch in loader))
        print(len(held), torch.stack(held).shape)
        """)
    assert done.code == 0, done.err
    assert done.out.splitlines()[0] == str(4.0 * sum(range(32)))
    assert "Traceback" not in done.err and "terminate" not in done.err


def test_index_out_of_range_comes_at_a_wait():
    x = torch.arange(5.0, device="mps")
    with pytest.raises(torch.AcceleratorError, match="out of bounds"):
        y = x[torch.tensor([0, 6], device="mps")]
        y.cpu()
    torch.mps.synchronize()
    assert x.sum().item() == 10


def test_interrupt(python):
    """Ctrl-C ends a wait."""
    done = python("""
        import os, signal, threading, time, torch
        signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background has it ignored
        x = torch.randn(1024, 1024, device="mps")
        threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            while True:
                for _ in range(20):
                    x = x @ x * 1e-3
                torch.mps.synchronize()
        except KeyboardInterrupt:
            print("interrupted")
        torch.mps.synchronize()
        print(torch.ones(2, device="mps").sum().item())
        """)
    assert done.code == 0, done.err
    assert done.out.splitlines() == ["interrupted", "2.0"]
