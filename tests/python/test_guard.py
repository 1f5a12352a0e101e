# SPDX-License-Identifier: BSD-3-Clause
"""Operators under OPENMPS_HEAP_GUARD: no kernel writes outside its buffers, and none reads memory that nobody wrote."""
import subprocess
import sys

import pytest
import torch

from compare import assert_untouched, border, bordered, compare, compare_out, make, surroundings, to_mps

# One or two of each family: those whose kernels work on rows, tiles and tails of their own.
OPERATORS = ("add", "cumsum", "sort", "topk", "sum", "softmax", "nn.functional.layer_norm", "nn.functional.conv2d", "nn.functional.max_pool2d", "index_put", "scatter_add",
             "nn.functional.interpolate.bilinear", "fft.rfft", "linalg.cholesky", "unique", "nn.functional.embedding_bag", "cdist", "nn.functional.unfold", "bmm", "cat")


def test_conformance_under_guard(tmp_path):
    command = [sys.executable, "-m", "tests.conformance", "--dtype", "float32", "--samples", "3", "--processes", "1", "--folder", str(tmp_path)]
    command += [word for name in OPERATORS for word in ("--op", name)]
    done = subprocess.run(command, env={**__import__("os").environ, "OPENMPS_HEAP_GUARD": "7"}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    assert f"{len(OPERATORS)} passed, 0 failed" in done.stdout


def test_the_guard_works(python):
    done = python("""
        import ctypes, torch
        x = torch.zeros(10, device="mps")
        torch.mps.synchronize()
        ctypes.c_float.from_address(x.data_ptr() + 40).value = 1.0
        try:
            (x + 1).sum().item()
            torch.mps.synchronize()
        except RuntimeError as error:
            print(error)
        """, OPENMPS_HEAP_GUARD="3")
    assert done.code == 0, done.err
    assert "wrote outside buffer #" in done.out and "of 40 bytes, at its bytes " in done.out, done.out
    assert "heap error: " in done.err


def test_fresh_memory_is_nan(python):
    done = python("""
        import torch
        print(torch.empty(4, device="mps").isnan().all().item(), torch.empty(4, dtype=torch.int32, device="mps").eq(-1).all().item())
        """, OPENMPS_HEAP_GUARD="4")
    assert done.code == 0 and done.out == "True True\n", done.err


def test_helpers_notice():
    """What compare looks at: a write between or around the elements is found, a write to them is not."""
    x = bordered(make((3, 4)).t())
    assert x.stride() == (1, 4) and torch.equal(x, make((3, 4)).t())
    mps = to_mps(x)
    before = surroundings([mps])
    mps.fill_(3)
    assert_untouched(before, [mps])
    mps.as_strided((1,), (1,), 0).fill_(3)
    with pytest.raises(AssertionError, match="1 elements around a tensor were written, the first of them number 0 of 38"):
        assert_untouched(before, [mps])
    wide = to_mps(border((4, 6), torch.int32)[:, ::2])
    before = surroundings(wide)
    wide.as_strided((4, 3), (6, 2), 1).zero_()
    with pytest.raises(AssertionError, match="12 elements"):
        assert_untouched(before, wide)
    with pytest.raises(AssertionError, match="around a tensor"):
        compare(lambda x: x.as_strided((2,), (1,), 0).zero_() if x.device.type == "mps" else torch.zeros(2), x)


OUT = {
    "add": lambda x, y, out: torch.add(x, y, out=out), "mm": lambda x, y, out: torch.mm(x, y.t(), out=out), "sum": lambda x, y, out: torch.sum(x, 1, out=out),
    "cumsum": lambda x, y, out: torch.cumsum(x, 1, out=out), "sort": lambda x, y, out: torch.sort(x, 1, out=out), "cat": lambda x, y, out: torch.cat([x, y], out=out),
    "topk": lambda x, y, out: torch.topk(x, 3, out=out), "gather": lambda x, y, out: torch.gather(x, 1, (y > 0).long(), out=out),
    "softmax": lambda x, y, out: torch.softmax(x, 1, out=out), "tril": lambda x, y, out: torch.tril(x, out=out), "max": lambda x, y, out: torch.max(x, 0, out=out),
    "var": lambda x, y, out: torch.var(x, 1, out=out), "take": lambda x, y, out: torch.take(x, (y > 0).long(), out=out), "arange": lambda x, y, out: torch.arange(35, out=out),
    "index_select": lambda x, y, out: torch.index_select(x, 1, (y[0] > 0).long(), out=out), "cdist": lambda x, y, out: torch.div(x, 2, out=out),
    "logcumsumexp": lambda x, y, out: torch.logcumsumexp(x, 0, out=out), "rfft": lambda x, y, out: torch.fft.rfft(x, out=out), "kron": lambda x, y, out: torch.kron(x, y, out=out),
    "cholesky": lambda x, y, out: torch.linalg.cholesky(x @ x.t() + 9 * torch.eye(5, device=x.device), out=out), "median": lambda x, y, out: torch.median(x, 1, out=out),
    "bmm": lambda x, y, out: torch.bmm(x[None], y.t()[None], out=out), "nonzero": lambda x, y, out: torch.nonzero(x > 9, out=out), "where": lambda x, y, out: torch.where(x > 0, x, y, out=out),
}


@pytest.mark.parametrize("name", OUT)
def test_out_in_every_layout(name):
    def function(x, y, out=None):
        return OUT[name](x, y, out) if out is not None else OUT[name](x, y, None)

    x, y = make((5, 7)), make((5, 7), seed=1)
    if name == "arange":
        return compare_out(lambda out=None: torch.arange(35, out=out) if out is not None else torch.arange(35))
    compare_out(function, x, y, rtol=1e-4, atol=1e-4)
