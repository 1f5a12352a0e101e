# SPDX-License-Identifier: BSD-3-Clause
"""Linear algebra: factors, systems, spectra and least squares, over layouts, batches, empty matrices, out= and singular input."""
import itertools

import pytest
import torch

from compare import compare, compare_errors, compare_gradients, layouts, make, to_mps

DTYPES = (torch.float32, torch.complex64)
BATCHES = ((), (3,), (2, 3), (0,))
LARGE = 700  # cut into pieces for the workers
L = torch.linalg
LOOSE = {"rtol": 1e-3, "atol": 1e-3}


def square(n, batch=(), dtype=torch.float32, seed=0):
    """Well conditioned: solutions of both devices agree to a few digits less than the dtype has."""
    return make(batch + (n, n), dtype, seed) / max(n, 1) ** 0.5 + 3 * torch.eye(n, dtype=dtype)


def positive(n, batch=(), dtype=torch.float32, seed=0):
    x = make(batch + (n, n), dtype, seed)
    return x @ x.mH / max(n, 1) + torch.eye(n, dtype=dtype)


def arrangements(x):
    """x itself, column-major, in every second element, behind an offset, as a conjugate view."""
    yield x
    yield x.mT.contiguous().mT
    wide = torch.zeros(*x.shape[:-1], 2 * x.shape[-1], dtype=x.dtype)
    wide[..., ::2] = x
    yield wide[..., ::2]
    if x.dim() > 2:
        yield x.transpose(0, 1).contiguous().transpose(0, 1)
    if x.is_complex():
        yield x.conj().resolve_conj().conj()
        yield x.mH.resolve_conj().mH


def close(a, b):
    torch.testing.assert_close(a.cpu().resolve_conj(), b.resolve_conj(), **LOOSE)


# ---- Cholesky ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(dtype, batch, upper):
    for n in (0, 1, 5, 33):
        for a in arrangements(positive(n, batch, dtype)):
            compare(lambda a: L.cholesky(a, upper=upper), a, strides=True, **LOOSE)
            compare(lambda a: L.cholesky_ex(a, upper=upper), a, strides=True, **LOOSE)
            compare(lambda a: torch.cholesky(a, upper=upper), a, strides=True, **LOOSE)
            factor = L.cholesky(a, upper=upper)
            compare(lambda f: torch.cholesky_inverse(f, upper=upper), factor, strides=True, **LOOSE)
            compare(lambda b, f: torch.cholesky_solve(b, f, upper=upper), make(batch + (n, 2), dtype), factor, strides=True, **LOOSE)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [False, True])
def test_large_cholesky(dtype, upper):
    a = positive(LARGE, (), dtype)
    factor = compare(lambda a: L.cholesky(a, upper=upper), a, strides=True, **LOOSE)
    compare(lambda b, f: torch.cholesky_solve(b, f, upper=upper), make((LARGE, 300), dtype), factor, **LOOSE)
    a[LARGE - 3, LARGE - 3] = -1e4
    compare(lambda a: L.cholesky_ex(a, upper=upper).info, a)


def test_cholesky_of_one_triangle_and_broadcasts():
    a = positive(6)
    a[0, 5] = float("nan")
    compare(lambda a: L.cholesky(a), a)
    compare(lambda a: L.cholesky(a, upper=True), a.mT)
    compare(lambda b, f: torch.cholesky_solve(b, f), make((3, 1, 4, 2)), L.cholesky(positive(4, (2,))), **LOOSE)
    compare(lambda a, l, i: L.cholesky_ex(a, out=(l, i)), positive(4), torch.empty(4, 8)[:, ::2], torch.empty(0, dtype=torch.int32), **LOOSE)
    compare(lambda a, o: torch.cholesky_inverse(a, out=o), positive(4), torch.zeros(4, 4), **LOOSE)


def test_not_positive_definite():
    bad, good = torch.tensor([[1.0, 2.0], [2.0, 1.0]]), torch.eye(2)
    for a in (bad, torch.stack([good, bad])):
        compare_errors(lambda a: L.cholesky(a), a)
        compare_errors(lambda a: torch.cholesky(a), a)
        compare_errors(lambda a: L.cholesky_ex(a, check_errors=True), a)
        compare(lambda a: L.cholesky_ex(a).info, a)
    compare_errors(lambda a: torch.cholesky_inverse(a), torch.zeros(2, 2))
    compare_errors(lambda a: L.cholesky(a), torch.ones(2, 3))
    compare_errors(lambda a: L.cholesky(a), torch.ones(3))
    compare_errors(lambda a: L.cholesky(a), torch.ones(3, 3, dtype=torch.int32))
    compare_errors(lambda a: L.cholesky(a), torch.eye(3, dtype=torch.float16))


# ---- LU and systems ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("shape", [(5, 5), (7, 4), (4, 7), (0, 3), (3, 0), (1, 1), (40, 40)])
def test_lu(dtype, batch, shape):
    for a in arrangements(make(batch + shape, dtype)):
        compare(L.lu_factor, a, **LOOSE)
        compare(L.lu_factor_ex, a, **LOOSE)
        compare(L.lu, a, **LOOSE)
        data, pivots = L.lu_factor(a)
        compare(lambda d, p: torch.lu_unpack(d, p), data, pivots, **LOOSE)
        compare(lambda d, p: torch.lu_unpack(d, p, unpack_data=False), data, pivots)
        compare(lambda d, p: torch.lu_unpack(d, p, unpack_pivots=False), data, pivots)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(LARGE, LARGE), (900, 500), (500, 900)])
def test_large_lu(dtype, shape):
    a = make(shape, dtype)
    if shape[0] == shape[1]:
        a += 40 * torch.eye(LARGE, dtype=dtype).roll(9, 0)  # pivots are not those of rounding
    p, low, up = L.lu(a.to("mps"))
    close(p @ low @ up, a)
    x = compare(L.lu_factor, a, rtol=1e-2, atol=1e-2)
    if shape[0] == shape[1]:
        for left in (True, False):
            for adjoint in (False, True):
                compare(lambda d, p, b: L.lu_solve(d, p, b, left=left, adjoint=adjoint), x[0], x[1], make((LARGE, LARGE), dtype), **LOOSE)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_lu_solve(dtype, left, adjoint):
    for batch, others in (((), ()), ((3,), (3,)), ((3,), (2, 1)), ((2, 1), (3,)), ((0,), (0,))):
        for n, k in ((5, 2), (1, 1), (0, 2), (4, 0)):
            data, pivots = L.lu_factor(square(n, batch, dtype))
            b = make(others + ((n, k) if left else (k, n)), dtype)
            for given in arrangements(b):
                compare(lambda d, p, b: L.lu_solve(d, p, b, left=left, adjoint=adjoint), data, pivots, given, strides=True, **LOOSE)
    compare(lambda b, d, p: torch.lu_solve(b, d, p), make((4, 2), dtype), *L.lu_factor(square(4, (), dtype)), **LOOSE)


@pytest.mark.parametrize("dtype", DTYPES)
def test_solve_inv_det(dtype):
    for batch in BATCHES:
        for n in (0, 1, 4, 30):
            for a in arrangements(square(n, batch, dtype)):
                compare(L.inv, a, strides=True, **LOOSE)
                compare(lambda a: L.inv_ex(a), a, **LOOSE)
                compare(lambda a: a.slogdet(), a, **LOOSE)
                compare(lambda a: a.det(), a / 2, rtol=1e-2, atol=1e-2)
                for left in (True, False):
                    compare(lambda a, b: L.solve(a, b, left=left), a, make(batch + ((n, 3) if left else (3, n)), dtype), **LOOSE)
                compare(lambda a, b: L.solve(a, b), a, make(batch + (n,), dtype), **LOOSE)
                compare(lambda a, b: L.solve_ex(a, b).info, a, make(batch + (n, 1), dtype))
    compare(lambda a: L.matrix_power(a, -3), square(5, (2,), dtype), **LOOSE)
    compare(lambda a, o: L.inv(a, out=o), square(5, (), dtype), torch.zeros(5, 10, dtype=dtype)[:, ::2], **LOOSE)
    compare(lambda a: torch.linalg.inv(a, out=a), square(5, (), dtype), **LOOSE)
    compare(lambda a: L.tensorinv(a, ind=1), square(6, (), dtype).view(6, 2, 3), **LOOSE)
    compare(L.inv, square(LARGE, (), dtype), **LOOSE)


def test_singular():
    singular, batch = torch.zeros(3, 3), torch.stack([torch.eye(3), torch.ones(3, 3)])
    for a in (singular, batch):
        compare_errors(L.inv, a)
        compare_errors(lambda a: L.solve(a, torch.ones(a.shape[:-1] + (1,), device=a.device)), a)
        compare_errors(lambda a: L.lu_factor_ex(a, check_errors=True), a)
        compare_errors(lambda a: L.solve_ex(a, torch.ones(a.shape[:-1] + (1,), device=a.device), check_errors=True), a)
        compare_errors(lambda a: L.inv_ex(a, check_errors=True), a)
        compare(lambda a: L.lu_factor_ex(a), a)
        compare(lambda a: (L.det(a), L.slogdet(a)), a)
    compare_errors(L.inv, torch.ones(2, 3))
    compare_errors(lambda a: L.lu_factor(a, pivot=False), torch.eye(3))
    compare_errors(lambda a: L.lu(a, pivot=False), torch.eye(3))
    compare_errors(lambda a: L.solve(a, a[:2]), torch.eye(3))
    compare_errors(lambda a: L.inv(a), torch.eye(3, dtype=torch.bfloat16))


@pytest.mark.parametrize("pivots", [[9, 1, 2], [0, 1, 2], [-1, 1, 2]])
def test_wrong_pivots(pivots):
    with pytest.raises(RuntimeError, match="(?i)pivots"):
        torch.lu_unpack(torch.eye(3, device="mps"), torch.tensor(pivots, dtype=torch.int32, device="mps"))[0].cpu()
    with pytest.raises(RuntimeError, match="Pivots given to lu_solve must all be"):
        L.lu_solve(torch.eye(3, device="mps"), torch.tensor(pivots, dtype=torch.int32, device="mps"), torch.eye(3, device="mps")).cpu()
    with pytest.raises(RuntimeError, match="Pivots given to ldl_solve must all satisfy"):
        L.ldl_solve(torch.eye(3, device="mps"), torch.tensor([p or 4 for p in pivots], dtype=torch.int32, device="mps") + 3, torch.eye(3, device="mps")).cpu()


# ---- triangles ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_solve_triangular(dtype, upper, left, unit):
    for batch, others in (((), ()), ((3,), (3,)), ((2, 1), (3,)), ((0,), (0,))):
        for n, k in ((4, 3), (1, 1), (0, 2), (3, 0)):
            for a in arrangements(square(n, batch, dtype)):
                for b in arrangements(make(others + ((n, k) if left else (k, n)), dtype)):
                    compare(lambda a, b: L.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit), a, b, strides=True, **LOOSE)
    a, b = square(LARGE, (), dtype), make((LARGE, 600) if left else (600, LARGE), dtype)
    a = (a.triu() if upper else a.tril()) / (LARGE if unit else 1)
    compare(lambda a, b: L.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit), a, b, **LOOSE)
    compare(lambda a, b, o: L.solve_triangular(a, b, upper=upper, left=left, out=o), square(4, (), dtype), make((4, 4), dtype),
            torch.empty(4, 8, dtype=dtype)[:, ::2], **LOOSE)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transpose", [True, False])
def test_triangular_solve(dtype, transpose):
    for upper in (True, False):
        for unit in (True, False):
            for a in arrangements(square(4, (2,), dtype)):
                compare(lambda b, a: torch.triangular_solve(b, a, upper, transpose, unit), make((3, 1, 4, 2), dtype), a, strides=True, **LOOSE)
    compare(lambda b, a: torch.triangular_solve(b, a), make((0, 2), dtype), square(0, (), dtype))


def test_triangular_errors():
    compare_errors(lambda a, b: L.solve_triangular(a, b, upper=True), torch.eye(3), torch.ones(2, 2))
    compare_errors(lambda a, b: L.solve_triangular(a, b, upper=True), torch.eye(3), torch.ones(3))
    compare(lambda a, b: L.solve_triangular(a, b, upper=True), torch.eye(3), torch.eye(3, dtype=torch.complex64))
    compare_errors(lambda a, o: L.solve_triangular(a, a, upper=True, out=o), torch.eye(3), torch.zeros(3, 3, dtype=torch.complex64))
    compare_errors(lambda a, b: torch.triangular_solve(b, a), torch.eye(3), torch.ones(2, 2))
    for function in (lambda a: L.solve_triangular(a, a, upper=True), lambda a: torch.triangular_solve(a, a), L.lu_factor, L.ldl_factor, L.eigh, L.eig,
                     lambda a: L.lstsq(a, a), lambda a: L.solve(a, a), torch.cholesky, torch.cholesky_inverse, lambda a: torch.cholesky_solve(a, a)):
        compare_errors(function, torch.eye(3, dtype=torch.float16))


# ---- LDL ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hermitian", [False, True])
def test_ldl(dtype, hermitian):
    for batch in BATCHES:
        for n in (0, 1, 6):
            x = make(batch + (n, n), dtype)
            a = x + (x.mH if hermitian else x.mT)
            compare(lambda a: L.ldl_factor_ex(a, hermitian=hermitian), a, strides=True, **LOOSE)
            data, pivots = L.ldl_factor(a + 9 * torch.eye(n, dtype=dtype), hermitian=hermitian)
            compare(lambda d, p, b: L.ldl_solve(d, p, b, hermitian=hermitian), data, pivots, make(batch + (n, 2), dtype), strides=True, **LOOSE)
    compare_errors(lambda a: L.ldl_factor_ex(a, check_errors=True), torch.zeros(3, 3))


# ---- QR ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("shape", [(5, 5), (7, 3), (3, 7), (0, 3), (3, 0), (1, 1), (33, 20)])
def test_qr(dtype, mode, shape):
    for batch in BATCHES:
        for a in arrangements(make(batch + shape, dtype)):
            compare(lambda a: L.qr(a, mode=mode), a, strides=True, **LOOSE)
    compare(lambda a, q, r: L.qr(a, mode=mode, out=(q, r)), make(shape, dtype), torch.empty(0, dtype=dtype), torch.empty(0, dtype=dtype), strides=True, **LOOSE)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(600, 600), (900, 300), (300, 900)])
def test_large_qr(dtype, shape):
    a = make(shape, dtype) + 30 * torch.eye(*shape, dtype=dtype)
    compare(L.qr, a, strides=True, rtol=1e-2, atol=1e-2)
    q, r = L.qr(a.to("mps"), mode="complete")
    close(q @ r, a)
    close(q.mH @ q, torch.eye(shape[0], dtype=dtype))
    other = make((shape[0], 400), dtype)
    reflectors, tau = torch.geqrf(a)
    compare(lambda f, t, o: torch.ormqr(f[:, : t.numel()], t, o, transpose=True), reflectors, tau, other, **LOOSE)
    compare(lambda f, t, o: torch.ormqr(f[:, : t.numel()], t, o, left=False), reflectors, tau, other.mT, **LOOSE)


@pytest.mark.parametrize("dtype", DTYPES)
def test_householder(dtype):
    for batch in BATCHES:
        for shape in ((5, 3), (4, 4), (3, 5), (0, 0), (3, 0)):
            for a in arrangements(make(batch + shape, dtype)):
                reflectors, tau = compare(torch.geqrf, a, strides=True, **LOOSE)
                if shape[0] < shape[1]:
                    continue
                compare(L.householder_product, reflectors, tau, strides=True, **LOOSE)
                compare(L.householder_product, reflectors, tau[..., :2], strides=True, **LOOSE)
                for transpose in (False, True):
                    for left in (True, False):
                        other = make(batch + ((shape[0], 2) if left else (2, shape[0])), dtype)
                        compare(lambda f, t, o: torch.ormqr(f, t, o, left=left, transpose=transpose), reflectors, tau, other, strides=True, **LOOSE)
    compare(lambda f, t, o: L.householder_product(f, t, out=o), make((5, 3), dtype), make((3,), dtype), torch.zeros(5, 6, dtype=dtype)[:, ::2], **LOOSE)
    compare(lambda f, t: L.householder_product(f, t, out=f), make((5, 3), dtype), make((3,), dtype), **LOOSE)


def test_householder_errors():
    for f, t in ((torch.ones(3), torch.ones(3)), (torch.ones(3, 4), torch.ones(3)), (torch.ones(4, 3), torch.ones(4)), (torch.ones(4, 3), torch.ones(2, 3)),
                 (torch.ones(2, 4, 3), torch.ones(5, 3)), (torch.ones(4, 3), torch.ones(3, dtype=torch.complex64))):
        compare_errors(L.householder_product, f, t)
    f, t, o, c = torch.ones(4, 3), torch.ones(3), torch.ones(4, 2), torch.complex64
    for reflectors, scales, other in ((f, t, torch.ones(5, 2)), (f, torch.ones(4), o), (f, t, torch.ones(4)), (f.expand(2, 4, 3), t.expand(2, 3), o), (f, t.to(c), o),
                    (f.expand(2, 4, 3), t.expand(2, 3), o.expand(3, 4, 2)), (f, torch.ones(2), o), (f, torch.ones(5), o), (f, t, o.to(c))):
        compare_errors(torch.ormqr, reflectors, scales, other)
    compare_errors(torch.geqrf, torch.ones(3))
    for function in (torch.geqrf, lambda a: L.householder_product(a, a[0]), lambda a: torch.ormqr(a, a[0], a), L.qr):
        compare_errors(function, torch.ones(3, 3, dtype=torch.float16))
    compare_errors(lambda a: L.qr(a, mode="x"), torch.eye(3))


# ---- spectra: vectors are compared by what they make ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", [(5, 5), (7, 3), (3, 7), (0, 3), (3, 0), (1, 1), (40, 30)])
def test_svd(dtype, full, shape):
    for batch in BATCHES:
        for a in arrangements(make(batch + shape, dtype)):
            expected, (u, s, vh) = L.svd(a, full_matrices=full), L.svd(to_mps(a), full_matrices=full)
            for x, y in zip((u, s, vh), expected):
                assert x.device.type == "mps" and x.shape == y.shape and x.dtype == y.dtype and x.stride() == y.stride()
            close(s, expected.S)
            k = s.shape[-1]
            close(u[..., :k] * s.unsqueeze(-2).to(dtype) @ vh[..., :k, :], a)
            if a.numel():
                close(u.mH @ u, torch.eye(u.shape[-1], dtype=dtype).expand(batch + (u.shape[-1],) * 2))
                close(vh @ vh.mH, torch.eye(vh.shape[-2], dtype=dtype).expand(batch + (vh.shape[-2],) * 2))
            else:
                compare(lambda a: tuple(L.svd(a, full_matrices=full)), a)
            compare(L.svdvals, a, strides=True, **LOOSE)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("uplo", ["L", "U", "l"])
def test_eigh(dtype, uplo):
    for batch in BATCHES:
        for n in (0, 1, 6, 40):
            x = make(batch + (n, n), dtype)
            for a in arrangements(x + x.mH):
                expected, (values, vectors) = L.eigh(a, uplo), L.eigh(to_mps(a), uplo)
                assert values.stride() == expected[0].stride() and vectors.stride() == expected[1].stride() and vectors.dtype == dtype
                close(values, expected[0])
                close(vectors * values.unsqueeze(-2).to(dtype) @ vectors.mH, a)
                compare(lambda a: L.eigvalsh(a, uplo), a, strides=True, **LOOSE)
    a = positive(5)
    a[0, 4] = 1e3
    compare(lambda a: L.eigvalsh(a, uplo), a, **LOOSE)


@pytest.mark.parametrize("dtype", DTYPES)
def test_eig(dtype):
    for batch in BATCHES:
        for n in (0, 1, 2, 7, 30):
            for a in arrangements(make(batch + (n, n), dtype)):
                expected, (values, vectors) = L.eig(a), L.eig(to_mps(a))
                for x, y in zip((values, vectors), expected):
                    assert x.shape == y.shape and x.dtype == y.dtype and x.stride() == y.stride()
                close(values, expected[0])
                close(to_mps(a).to(torch.complex64) @ vectors, (vectors * values.unsqueeze(-2)).cpu())
                compare(L.eigvals, a, strides=True, **LOOSE)
    compare(lambda a, o: L.eigvals(a, out=o), square(4, (), dtype), torch.empty(0, dtype=torch.complex64), **LOOSE)


def test_spectra_errors():
    nan = torch.full((3, 3), float("nan"))
    with pytest.raises(RuntimeError, match="should not contain infs or NaNs"):
        L.eigvals(nan.to("mps"))  # the CPU's dies of it
    for function in (L.eig, L.svd, L.svdvals, L.eigvalsh):
        compare_errors(function, nan)
    for function in (L.eig, L.eigvals, L.svd, L.svdvals, L.eigvalsh):
        compare_errors(function, torch.ones(3, 3, dtype=torch.int32))
        compare_errors(function, torch.ones(3))
    compare_errors(lambda a: L.svd(a, driver="gesvd"), torch.eye(3))
    compare_errors(lambda a: L.eigh(a, "X"), torch.eye(3))
    compare_errors(L.eigh, torch.ones(2, 3))
    compare_errors(L.eig, torch.ones(2, 3))
    compare_errors(L.svd, torch.ones(3, 3, dtype=torch.float16))


# ---- least squares and what is built on the rest ----


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
def test_lstsq(dtype, driver):
    for batch in BATCHES:
        for m, n in ((5, 5), (8, 3), (3, 8), (0, 3), (3, 0)):
            for a in arrangements(make(batch + (m, n), dtype)):
                compare(lambda a, b: tuple(L.lstsq(a, b, driver=driver)), a, make(batch + (m, 2), dtype), strides=True, **LOOSE)
            if batch != (0,):
                compare(lambda a, b: tuple(L.lstsq(a, b, driver=driver)), make(batch + (m, n), dtype), make(batch + (m,), dtype), strides=True, **LOOSE)


def test_lstsq_ranks_and_errors():
    a = make((6, 4))
    a[:, 3] = a[:, 2]
    for driver in ("gelsy", "gelsd", "gelss"):
        compare(lambda a, b: tuple(L.lstsq(a, b, driver=driver)), a, make((6, 2)), **LOOSE)
        if driver != "gelsy":  # the CPU's starts from pivots that it did not set
            compare(lambda a, b: tuple(L.lstsq(a, b, rcond=0.5, driver=driver)), make((6, 4)), make((6, 2)), **LOOSE)
    compare_errors(lambda a, b: L.lstsq(a, b), torch.eye(3), torch.ones(2, 2))
    compare_errors(lambda a, b: L.lstsq(a, b), torch.ones(3), torch.ones(3))
    compare_errors(lambda a, b: L.lstsq(a, b), torch.eye(3), torch.eye(3, dtype=torch.complex64))
    compare_errors(lambda a, b: L.lstsq(a, b, driver="x"), torch.eye(3), torch.eye(3))
    compare_errors(lambda a, b: L.lstsq(a, b), torch.ones(2, 3, 3), torch.ones(3))


@pytest.mark.parametrize("dtype", DTYPES)
def test_composites(dtype):
    a = make((4, 5), dtype)
    compare(L.pinv, a, **LOOSE)
    compare(lambda a: L.pinv(a, hermitian=True), positive(4, (2,), dtype), **LOOSE)
    compare(L.matrix_rank, a)
    compare(lambda a: L.matrix_rank(a, hermitian=True), positive(4, (2,), dtype))
    for p in (None, 2, -2, 1, "fro", "nuc", float("inf")):
        compare(lambda a: L.cond(a, p), square(4, (2,), dtype), **LOOSE)
    for order in (2, -2, "nuc"):
        compare(lambda a: L.matrix_norm(a, order), a, **LOOSE)
    compare(lambda a: L.multi_dot([a, a.mT, a]), a, **LOOSE)
    compare(lambda a: torch.logdet(a.abs() + 9 * torch.eye(4, device=a.device)), square(4), **LOOSE)
    compare(lambda a, b: L.tensorsolve(a, b), square(6, (), dtype).view(2, 3, 6), make((2, 3), dtype), **LOOSE)


@pytest.mark.parametrize("dtype", DTYPES)
def test_matrix_exp(dtype):
    for scale in (0, 1e-3, 0.1, 1, 3):
        compare(L.matrix_exp, make((4, 4), dtype) * scale, **LOOSE)
        compare(L.matrix_exp, make((2, 3, 4, 4), dtype) * scale * torch.tensor([1, 0.1, 0.01], dtype=dtype).view(3, 1, 1), **LOOSE)
    for shape in ((3, 1, 1), (0, 0), (0, 3, 3)):
        compare(L.matrix_exp, make(shape, dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_matrix_exp_of_halves(dtype):
    a = make((3, 4, 4), dtype)  # the CPU's halves overflow: what is right is float's value, rounded
    torch.testing.assert_close(L.matrix_exp(a.to("mps")).cpu(), L.matrix_exp(a.float()).to(dtype))


def test_matrix_exp_is_as_near_as_the_cpu():
    """In double precision, whatever the norm."""
    for size, scale in itertools.product((2, 5, 20, 100), (0.01, 0.3, 1.0, 3.0, 10.0)):
        for dtype in (torch.float32, torch.complex64):
            a = make((size, size), dtype, seed=size) * scale / size**0.5
            truth = L.matrix_exp(a.to(torch.promote_types(dtype, torch.float64)))
            cpu, mps = ((x - truth).abs().max() / truth.abs().max() for x in (L.matrix_exp(a), L.matrix_exp(a.to("mps")).cpu()))
            assert mps < 1.5 * cpu + 2e-7, (size, scale, dtype, mps, cpu)


def test_matrix_exp_of_what_is_not_finite():
    for value in (float("nan"), float("inf")):
        a = torch.eye(3)
        a[0, 1] = value
        assert not L.matrix_exp(a.to("mps")).isfinite().all()
    compare_errors(L.matrix_exp, torch.ones(2, 3))
    compare_errors(L.matrix_exp, torch.ones(3, 3, dtype=torch.int64))


@pytest.mark.parametrize("dtype", DTYPES)
def test_gradients(dtype):
    a, b, p = square(4, (2,), dtype), make((2, 4, 3), dtype), positive(4, (2,), dtype)
    for function in (L.inv, L.det, L.lu, L.matrix_exp, L.qr, lambda a: L.pinv(a)):
        compare_gradients(function, a, **LOOSE)
    for function in (L.solve, lambda a, b: L.solve_triangular(a, b, upper=True), lambda a, b: L.solve(a.mH, b), lambda a, b: L.lstsq(a, b).solution):
        compare_gradients(function, a, b, **LOOSE)
    compare_gradients(lambda p: L.cholesky(p + p.mH), p, **LOOSE)
    compare_gradients(lambda p: L.eigvalsh(p + p.mH), p, **LOOSE)
    compare_gradients(lambda p: torch.cholesky_inverse(L.cholesky(p + p.mH)), p, **LOOSE)
    compare_gradients(lambda b, p: torch.cholesky_solve(b, L.cholesky(p)), b, p, **LOOSE)
    compare_gradients(lambda a: L.svdvals(a), b, **LOOSE)
    compare_gradients(lambda a: L.eig(a).eigenvalues.abs(), a, **LOOSE)
    compare_gradients(lambda a: a.slogdet()[1], a, **LOOSE)
    compare_gradients(lambda f, t: L.householder_product(f, t), make((4, 3), dtype), make((3,), dtype), **LOOSE)


@pytest.mark.parametrize("dtype", DTYPES)
def test_out(dtype):
    """Results in tensors that are empty, in rows, in columns, and in every second element."""
    a, b = square(4, (2,), dtype), make((2, 4, 3), dtype)
    data, pivots = L.lu_factor(a)
    ld, ld_pivots = L.ldl_factor(a + a.mT)
    reflectors, tau = torch.geqrf(a)
    factor = L.cholesky(a @ a.mH)
    calls = [(lambda o, a: L.inv(a, out=o), a), (lambda o, a, b: L.solve(a, b, out=o), a, b), (lambda o, d, p, b: L.lu_solve(d, p, b, out=o), data, pivots, b),
             (lambda o, d, p, b: L.lu_solve(d, p, b.mT, left=False, adjoint=True, out=o), data, pivots, b), (lambda o, a: torch.cholesky_inverse(a, out=o), factor),
             (lambda o, d, p, b: L.ldl_solve(d, p, b, out=o), ld, ld_pivots, b), (lambda o, a, b: L.solve_triangular(a, b, upper=True, out=o), a, b),
             (lambda o, a: torch.cholesky(a, out=o), a @ a.mH), (lambda o, a: L.cholesky(a, out=o), a @ a.mH),
             (lambda o, b, f: torch.cholesky_solve(b, f, out=o), b, factor),
             (lambda o, f, t: L.householder_product(f, t, out=o), reflectors, tau), (lambda o, f, t, b: torch.ormqr(f, t, b, out=o), reflectors, tau, b),
             (lambda o, a: L.pinv(a, out=o), b), (lambda o, a: L.det(a, out=o), a), (lambda o, a: L.matrix_power(a, -2, out=o), a)]
    for call, *inputs in calls:
        shape = call(torch.empty(0, dtype=dtype), *inputs).shape
        wide = torch.zeros(shape[:-1] + (2 * shape[-1],), dtype=dtype)[..., ::2]
        turned = torch.zeros(shape[::-1], dtype=dtype).permute(*reversed(range(len(shape))))
        for out in (torch.empty(0, dtype=dtype), torch.zeros(shape, dtype=dtype), turned, wide):
            compare(call, out, *inputs, **LOOSE)
    real = torch.float32
    empty = lambda *types: [torch.empty(0, dtype=t) for t in types]  # noqa: E731
    compare(lambda o, a: L.lu_factor(a, out=o), empty(dtype, torch.int32), a, **LOOSE)
    compare(lambda o, a: L.lu(a, out=o), empty(dtype, dtype, dtype), a, **LOOSE)
    compare(lambda o, a: torch.geqrf(a, out=o), empty(dtype, dtype), a, **LOOSE)
    compare(lambda o, a: L.slogdet(a, out=o), empty(dtype, real), a, **LOOSE)
    compare(lambda o, a: L.ldl_factor(a, out=o), empty(dtype, torch.int32), a + a.mT, **LOOSE)
    compare(lambda o, a: L.eigvals(a, out=o[0]), empty(torch.complex64), a, **LOOSE)
    compare(lambda o, a: L.eigvalsh(a, out=o[0]), empty(real), a + a.mH, **LOOSE)
    compare(lambda o, a: L.svdvals(a, out=o[0]), empty(real), b, **LOOSE)
    compare(lambda o, a: L.svd(a, out=o).S, [torch.empty(0, dtype=dtype), torch.empty(0), torch.empty(0, dtype=dtype)], torch.eye(3, dtype=dtype), **LOOSE)
    compare_errors(lambda a, o: L.inv(a, out=o), a, torch.empty(0, dtype=torch.int32))
    compare_errors(lambda a, o: torch.cholesky_inverse(a, out=o), a, torch.empty(0, dtype=torch.int32))


def test_many_small_matrices():
    a = square(3, (5000,))
    compare(L.inv, a, **LOOSE)
    compare(L.cholesky, positive(3, (5000,)), **LOOSE)
    compare(L.eigvalsh, positive(3, (5000,)), **LOOSE)
    compare(L.det, a, **LOOSE)


def test_values_do_not_depend_on_position():
    a = square(8)
    together = L.inv(a.expand(300, 8, 8).contiguous().to("mps")).cpu()
    assert torch.equal(together, together[:1].expand_as(together))


@pytest.mark.parametrize("name, x", list(layouts(positive(6, (4,)))))
def test_layouts(name, x):
    compare(L.inv, x, **LOOSE)
    compare(L.eigvalsh, x, **LOOSE)
    compare(L.qr, x, **LOOSE)
