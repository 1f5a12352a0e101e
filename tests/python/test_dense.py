# SPDX-License-Identifier: BSD-3-Clause
"""Matrix products against the CPU: dtypes, layouts, empty dimensions, beta and alpha, conjugates, outputs, gradients, errors."""
import pytest
import torch
from torch.nn import functional as F

from compare import FLOATS, INTEGERS, compare, compare_errors, compare_gradients, layouts, make, to_mps

LOOSE = {torch.float32: {"rtol": 2e-5, "atol": 2e-5}, torch.float16: {"rtol": 4e-3, "atol": 2e-2}, torch.bfloat16: {"rtol": 3e-2, "atol": 1e-1},
         torch.complex64: {"rtol": 2e-5, "atol": 2e-5}}
DTYPES = FLOATS + INTEGERS + (torch.complex64,)
SHAPES = [(1, 1, 1), (5, 7, 3), (17, 65, 129), (64, 64, 64), (1, 50, 33), (50, 1, 33), (3, 4, 0), (0, 4, 3), (3, 0, 4)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("m,n,k", SHAPES)
def test_mm(dtype, m, n, k):
    loose = LOOSE.get(dtype, {})
    for _, a in layouts(make((m, k), dtype)):
        for _, b in layouts(make((k, n), dtype, seed=1)):
            compare(torch.mm, a, b, **loose)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bmm(dtype):
    loose = LOOSE.get(dtype, {})
    for _, a in layouts(make((3, 5, 7), dtype)):
        for _, b in layouts(make((3, 7, 4), dtype, seed=1)):
            compare(torch.bmm, a, b, **loose)
    x, y = make((5, 3, 7), dtype), make((4, 3, 7), dtype, seed=1)
    compare(lambda x, y: torch.bmm(x.transpose(0, 1), y.permute(1, 2, 0)), x, y, **loose)
    compare(torch.bmm, make((0, 2, 3), dtype), make((0, 3, 4), dtype), **loose)
    compare(torch.bmm, make((2, 2, 0), dtype), make((2, 0, 4), dtype), **loose)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("beta,alpha", [(1, 1), (0, 1), (2, 3), (1, 0), (0, 0), (-1, 1)])
def test_added(dtype, beta, alpha):
    loose = LOOSE.get(dtype, {})
    if dtype.is_floating_point:
        beta, alpha = beta * 0.75, alpha * 1.25
    a, b, v, w = make((6, 5), dtype), make((5, 7), dtype, seed=1), make((5,), dtype, seed=2), make((6,), dtype, seed=3)
    for bias in (make((6, 7), dtype, seed=4), make((7,), dtype, seed=4), make((6, 1), dtype, seed=4), make((), dtype, seed=4)):
        compare(lambda c, a, b: torch.addmm(c, a, b, beta=beta, alpha=alpha), bias, a, b, **loose)
        compare(lambda c, a, b: torch.baddbmm(c, a.expand(3, 6, 5), b.expand(3, 5, 7), beta=beta, alpha=alpha), bias, a, b, **loose)
        compare(lambda c, a, b: torch.addbmm(c, a.expand(3, 6, 5), b.expand(3, 5, 7), beta=beta, alpha=alpha), bias, a, b, **loose)
    for bias in (w, make((1,), dtype, seed=4), make((), dtype, seed=4)):
        compare(lambda c, a, v: torch.addmv(c, a, v, beta=beta, alpha=alpha), bias, a, v, **loose)
    compare(lambda c, w, v: torch.addr(c, w, v, beta=beta, alpha=alpha), make((6, 5), dtype, seed=4), w, v, **loose)
    compare(lambda c, a, b: c.addmm_(a, b, beta=beta, alpha=alpha), make((6, 7), dtype, seed=4), a, b, **loose)
    compare(lambda c, a, b: c[::2, 1:8].addmm_(a, b, beta=beta, alpha=alpha), make((12, 9), dtype, seed=4), a, b, **loose)
    compare(lambda c, a, b: c.addbmm_(a[None], b[None], beta=beta, alpha=alpha), make((6, 7), dtype, seed=4), a, b, **loose)


@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors(dtype):
    loose = LOOSE.get(dtype, {})
    for _, a in layouts(make((6, 5), dtype)):
        compare(torch.mv, a, make((5,), dtype, seed=1), **loose)
        compare(lambda a, v: torch.mv(a.t(), v), a, make((6,), dtype, seed=1), **loose)
    for n in (0, 1, 7, 300):
        compare(torch.dot, make((n,), dtype), make((n,), dtype, seed=1), **loose)
        compare(torch.vdot, make((n,), dtype), make((n,), dtype, seed=1), **loose)
    compare(lambda x: torch.dot(x[::3], x[1::3]), make((30,), dtype), **loose)


@pytest.mark.parametrize("dtype", FLOATS + (torch.complex64,))
def test_long_sums(dtype):
    loose = dict(LOOSE[dtype], rtol=1e-3 if dtype != torch.bfloat16 else 2e-2, atol=2e-1 if dtype in (torch.float16, torch.bfloat16) else 2e-3)
    a, b = make((3, 40000), dtype), make((40000, 4), dtype, seed=1)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    result = torch.mm(a.to("mps"), b.to("mps")).cpu()
    torch.testing.assert_close(result.to(wide), torch.mm(a.to(wide), b.to(wide)), **loose)
    torch.testing.assert_close(torch.dot(a[0].to("mps"), b[:, 0].to("mps")).cpu().to(wide), torch.dot(a[0].to(wide), b[:, 0].to(wide)), **loose)


def test_beta_zero_ignores_nan():
    a, b = make((3, 4)), make((4, 5))
    for dtype in FLOATS:
        nan = torch.full((3, 5), float("nan"), dtype=dtype)
        compare(lambda c, a, b: torch.addmm(c, a, b, beta=0), nan, a.to(dtype), b.to(dtype), **LOOSE[dtype])
        compare(lambda c, a, b: torch.mm(a, b, out=c), nan, a.to(dtype), b.to(dtype), **LOOSE[dtype])


def test_nan_and_infinity_travel():
    a, b = make((9, 8)), make((8, 7))
    a[2, 3], a[4, 1], b[5, 6] = float("nan"), float("inf"), -float("inf")
    compare(torch.mm, a, b, **LOOSE[torch.float32])


def test_bool_addr():
    compare(torch.addr, make((3, 4), torch.bool), make((3,), torch.bool, seed=1), make((4,), torch.bool, seed=2))
    compare(lambda c, a, b: torch.addr(c, a, b, beta=False), make((3, 4), torch.bool), make((3,), torch.bool, seed=1), make((4,), torch.bool, seed=2))


def test_addr_promotes():
    compare(torch.addr, make((3, 4), torch.int32), make((3,)), make((4,), torch.float16), rtol=1e-3, atol=1e-3)


def test_integers_wrap():
    big = torch.tensor([[2**40 + 3, -(2**61)], [7, 2**62]])
    compare(torch.mm, big, big)
    compare(torch.mm, make((20, 300), torch.int8, low=-128, high=128), make((300, 20), torch.int8, low=-128, high=128, seed=1))


def test_conjugate_and_negative():
    a, b = make((5, 6), torch.complex64), make((6, 4), torch.complex64, seed=1)
    loose = LOOSE[torch.complex64]
    compare(lambda a, b: a.conj() @ b, a, b, **loose)
    compare(lambda a, b: b.mH @ a.mH, a, b, **loose)
    compare(lambda a, b: torch.addmm(b.conj()[0], a.conj(), b.conj(), alpha=2 + 1j, beta=1j), a, b, **loose)
    compare(lambda a, b: a.imag.neg() @ b.conj().imag, a, b, **loose)
    compare(lambda a, b: torch.dot(a.flatten()[:20].conj(), b.flatten()[:20]), a, b, **loose)
    compare(lambda a, b: torch.vdot(a.flatten()[:20].conj(), b.flatten()[:20]), a, b, **loose)
    compare(lambda a, b: torch.mm(a, b, out=torch.zeros(5, 4, dtype=a.dtype, device=a.device).conj()).resolve_conj(), a, b, **loose)


@pytest.mark.parametrize("dtype", FLOATS)
def test_out(dtype):
    loose = LOOSE[dtype]
    a, b = make((6, 6), dtype), make((6, 6), dtype, seed=1)
    compare(lambda a, b, c: torch.mm(a, b, out=c), a, b, torch.zeros(6, 12, dtype=dtype)[:, ::2], **loose)
    compare(lambda a, b, c: torch.mm(a, b, out=c), a, b, torch.zeros(6, 6, dtype=dtype).t(), **loose)
    compare(lambda a, b, c: torch.mm(a, b, out=c), a, b, torch.zeros(0, dtype=dtype), **loose)
    compare(lambda a, b, c: torch.addmm(c, a, b, out=c), a, b, make((6, 6), dtype, seed=2), **loose)
    # out that is an input: the product of what the inputs held before
    x, y = a.to("mps"), b.to("mps")
    expected = torch.mm(x, y)
    torch.mm(x, y, out=x)
    assert torch.equal(x.cpu(), expected.cpu())
    z = torch.cat([b, b]).to("mps")
    expected = torch.mm(z[:6], z[6:])
    torch.mm(z[:6], z[6:], out=z[3:9])
    assert torch.equal(z[3:9].cpu(), expected.cpu())


@pytest.mark.parametrize("dtype", FLOATS + (torch.int64, torch.complex64))
def test_linear(dtype):
    loose = LOOSE.get(dtype, {})
    w, bias = make((4, 5), dtype, seed=1), make((4,), dtype, seed=2)
    for shape in ((5,), (3, 5), (2, 3, 5), (2, 3, 2, 5), (0, 5), (2, 0, 5)):
        for _, x in layouts(make(shape, dtype)):
            compare(F.linear, x, w, bias, **loose)
            compare(F.linear, x, w, **loose)
    compare(F.linear, make((3, 5), dtype), w.t().contiguous().t(), bias, **loose)
    compare(F.linear, make((3, 5), dtype), make((5,), dtype, seed=1), **loose)
    compare(F.linear, make((3, 5), dtype), w, make((1,), dtype), **loose)
    compare(F.linear, make((3, 5), dtype), w, make((3, 1), dtype), **loose)
    compare(lambda x, w, b: F.linear(x.permute(2, 0, 3, 1), w, b), make((2, 5, 3, 4), dtype), w, bias, **loose)


@pytest.mark.parametrize("dtype", FLOATS + (torch.complex64,))
def test_gradients(dtype):
    loose = LOOSE[dtype]
    compare_gradients(torch.mm, make((4, 5), dtype), make((5, 3), dtype, seed=1), **loose)
    compare_gradients(torch.bmm, make((2, 4, 5), dtype), make((2, 5, 3), dtype, seed=1), **loose)
    compare_gradients(lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), make((3,), dtype), make((4, 5), dtype), make((5, 3), dtype, seed=1), **loose)
    compare_gradients(torch.mv, make((4, 5), dtype), make((5,), dtype, seed=1), **loose)
    compare_gradients(torch.dot, make((5,), dtype), make((5,), dtype, seed=1), **loose)
    compare_gradients(torch.vdot, make((5,), dtype), make((5,), dtype, seed=1), **loose)
    for shape in ((5,), (4, 5), (2, 3, 5), (2, 3, 4, 5)):
        compare_gradients(F.linear, make(shape, dtype), make((3, 5), dtype, seed=1), make((3,), dtype, seed=2), **loose)
    compare_gradients(lambda x, w: F.linear(x.transpose(0, 1), w), make((2, 3, 5), dtype), make((3, 5), dtype, seed=1), **loose)


def test_errors():
    a, h, b = torch.ones(2, 3), torch.ones(3, 2).half(), torch.ones(2, 2, 3)
    compare_errors(torch.mm, a, a)
    compare_errors(torch.mm, a, h)
    compare_errors(torch.bmm, b, b)
    compare_errors(torch.bmm, b, b.mT.half())
    compare_errors(torch.mv, a, torch.ones(4))
    compare_errors(torch.dot, torch.ones(3), torch.ones(4))
    compare_errors(torch.dot, torch.ones(3), torch.ones(3).half())
    compare_errors(torch.dot, a, a)
    compare_errors(torch.addmm, torch.ones(5, 5), a, a.t())
    compare_errors(torch.baddbmm, torch.ones(5), b, b.mT)
    compare_errors(torch.addmv, torch.ones(2).half(), a, torch.ones(3))
    compare_errors(F.linear, a, torch.ones(4, 4))
    compare_errors(F.linear, b, torch.ones(4, 4))
    compare_errors(F.linear, a, a, torch.ones(7))
    compare_errors(F.linear, torch.tensor(1.0), a)
    compare_errors(torch.mm, torch.ones(2, 2).bool(), torch.ones(2, 2).bool())
    compare_errors(torch.addr, torch.ones(5), a, torch.ones(3))
    compare_errors(lambda i: torch.addr(i, i[0], i[0], beta=0.5), torch.ones(3, 3, dtype=torch.int32))


def test_einsum_and_matmul():
    loose = LOOSE[torch.float32]
    compare(torch.matmul, make((2, 1, 3, 4)), make((5, 4, 2), seed=1), **loose)
    compare(torch.matmul, make((4,)), make((5, 4, 2), seed=1), **loose)
    compare(lambda a, b: torch.einsum("bij,bjk->ik", a, b), make((2, 3, 4)), make((2, 4, 5), seed=1), **loose)
    compare(lambda a, b: torch.tensordot(a, b, dims=([1, 0], [0, 1])), make((3, 4, 2)), make((4, 3, 5), seed=1), **loose)


@pytest.mark.parametrize("dtype", FLOATS)
def test_addr_counts_nan_where_alpha_is_zero(dtype):
    nan = torch.tensor([float("nan"), 1.0], dtype=dtype)
    for beta in (0, 1):
        compare(lambda x, a, b: torch.addr(x, a, b, beta=beta, alpha=0), make((2, 3), dtype), nan, make((3,), dtype))


@pytest.mark.parametrize("function", [torch.dot, torch.vdot])
def test_dot_conjugates_lazily_as_the_cpu_does(function):
    a, b = make((5,), torch.complex64), make((5,), torch.complex64, seed=1)
    for views in ((a, b), (a.conj(), b), (a, b.conj()), (a.conj(), b.conj())):
        expected = compare(function, *views, rtol=1e-5)
        assert function(*to_mps(views)).is_conj() == expected.is_conj()
