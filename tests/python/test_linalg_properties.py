# SPDX-License-Identifier: BSD-3-Clause
"""Linear algebra on matrices that lie anyhow: batches, strides, transposed and conjugate views, out= that is strided, nothing at all."""
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from compare import clone, compare, make

L = torch.linalg
LOOSE = {"rtol": 2e-3, "atol": 2e-3}
LAYOUTS = ("rows", "columns", "strided", "offset", "batch last", "expanded", "conjugate", "adjoint")
SIZES = st.sampled_from((0, 1, 2, 3, 5, 8, 9, 17, 33, 40))


def laid(x, layout):
    """x with the same values (of the first item where it is expanded), in another place."""
    if x.dim() < 2:
        return x.contiguous()
    if layout == "columns":
        return x.mT.contiguous().mT
    if layout == "strided":
        wide = torch.zeros(*x.shape[:-2], 2 * x.shape[-2] + 1, 3 * x.shape[-1], dtype=x.dtype)
        wide[..., 1::2, ::3] = x
        return wide[..., 1::2, ::3]
    if layout == "offset":
        return torch.cat([torch.zeros(5, dtype=x.dtype), x.flatten()])[5:].view(x.shape)
    if layout == "batch last" and x.dim() > 2:
        return x.movedim(0, -1).contiguous().movedim(-1, 0)
    if layout == "expanded" and x.dim() > 2 and x.shape[0]:
        return x[:1].clone().expand(x.shape)
    if layout == "conjugate" and x.is_complex():
        return x.conj().resolve_conj().conj()
    if layout == "adjoint":
        return x.mH.resolve_conj().contiguous().mH
    return x.contiguous()


@st.composite
def systems(draw):
    """Well conditioned n x n matrices a, b (n x k, rows x columns of any shape c) and out= tensors' layouts."""
    dtype, n, k = draw(st.sampled_from((torch.float32, torch.complex64))), draw(SIZES), draw(SIZES)
    batch, seed = draw(st.sampled_from(((), (1,), (3,), (0,), (2, 3), (2, 0), (20,)))), draw(st.integers(0, 99))
    a = make((*batch, n, n), dtype, seed) / max(n, 1) ** 0.5 + 3 * torch.eye(n, dtype=dtype)
    b, c = make((*batch, n, k), dtype, seed + 1), make((*batch, k, n), dtype, seed + 2)
    return tuple(laid(x, draw(st.sampled_from(LAYOUTS))) for x in (a, b, c)) + (draw(st.sampled_from(("empty", "strided", "columns", "rows"))),)


def with_out(function, kind, *inputs):
    """function(*inputs, out=) into a tensor that lies as `kind` says."""
    result = function(*clone(list(inputs)))
    out = torch.empty(0, dtype=result.dtype) if kind == "empty" else laid(torch.full_like(result, 7).contiguous(), kind)
    compare(lambda o, *values: function(*values, out=o), out, *inputs, **LOOSE)


FUNCTIONS = {
    "inv": lambda a, b, c, **o: L.inv(a, **o),
    "solve": lambda a, b, c, **o: L.solve(a, b, **o),
    "solve right": lambda a, b, c, **o: L.solve(a, c, left=False, **o),
    "solve a vector": lambda a, b, c, **o: L.solve(a, a.select(-1, 0) if a.shape[-1] else a.sum(-1), **o),
    "lu_solve": lambda a, b, c, **o: L.lu_solve(*L.lu_factor(a), b, **o),
    "lu_solve adjoint": lambda a, b, c, **o: L.lu_solve(*L.lu_factor(a), b, adjoint=True, **o),
    "lu_solve right": lambda a, b, c, **o: L.lu_solve(*L.lu_factor(a), c, left=False, **o),
    "lu_solve right, adjoint": lambda a, b, c, **o: L.lu_solve(*L.lu_factor(a), c, left=False, adjoint=True, **o),
    "upper": lambda a, b, c, **o: L.solve_triangular(a, b, upper=True, **o),
    "lower right": lambda a, b, c, **o: L.solve_triangular(a, c, upper=False, left=False, **o),
    "lower unit": lambda a, b, c, **o: L.solve_triangular(a / max(a.shape[-1], 1), b, upper=False, unitriangular=True, **o),
    "upper right unit": lambda a, b, c, **o: L.solve_triangular(a / max(a.shape[-1], 1), c, upper=True, left=False, unitriangular=True, **o),
    "cholesky": lambda a, b, c, **o: L.cholesky(a @ a.mH, **o),
    "cholesky upper": lambda a, b, c, **o: L.cholesky(a @ a.mH, upper=True, **o),
    "cholesky_solve": lambda a, b, c, **o: torch.cholesky_solve(b, L.cholesky(a @ a.mH), **o),
    "det": lambda a, b, c, **o: L.det(a / 3, **o),
    "eigvalsh": lambda a, b, c, **o: L.eigvalsh(a + a.mH, **o),
    "svdvals": lambda a, b, c, **o: L.svdvals(a, **o),
    "matmul": lambda a, b, c, **o: torch.matmul(c, b, **o),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=15, deadline=None, derandomize=True)
@given(systems())
def test_values(name, system):
    a, b, c, out = system
    compare(FUNCTIONS[name], a, b, c, **LOOSE)
    with_out(FUNCTIONS[name], out, a, b, c)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(systems())
def test_factors(system):
    a, b, c, _ = system
    for x in (a, b, c):
        compare(L.lu_factor_ex, x, **LOOSE)
        device = laid(x.to("mps"), "rows")
        p, lower, upper = L.lu(device)
        torch.testing.assert_close((p @ lower @ upper).cpu(), x.resolve_conj(), **LOOSE)
        q, r = L.qr(device)
        torch.testing.assert_close((q @ r).cpu(), x.resolve_conj(), **LOOSE)
        if x.numel():
            torch.testing.assert_close((q.mH @ q).cpu(), torch.eye(q.shape[-1], dtype=x.dtype).expand(*x.shape[:-2], -1, -1), **LOOSE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.complex64])
@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(4, 9), st.integers(0, 20), st.integers(0, 20), st.integers(0, 20), st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS),
       st.sampled_from((0, 1, 0.5)))
def test_many_small_products(dtype, batch, m, k, n, first, second, beta):
    rtol, atol = {torch.bfloat16: (3e-2, 2e-1), torch.float16: (4e-3, 3e-2)}.get(dtype, (2e-5, 2e-5))
    loose = {"rtol": rtol, "atol": atol}
    a, b = laid(make((batch, m, k), dtype), first), laid(make((batch, k, n), dtype, seed=1), second)
    compare(torch.bmm, a, b, **loose)
    compare(lambda x, a, b: torch.baddbmm(x, a, b, beta=beta, alpha=0.75), make((n,), dtype, seed=2), a, b, **loose)
    out = laid(torch.full((batch, m, n), 7, dtype=dtype), second if second != "expanded" else "strided").resolve_conj()
    compare(lambda o, a, b: torch.bmm(a, b, out=o), out, a, b, **loose)


@pytest.mark.parametrize("n", [2, 8, 9])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("left", [True, False])
def test_singular_triangles(n, upper, left):
    a = torch.diag_embed(torch.tensor([0.0] + [2.0] * (n - 1))) + (torch.ones(n, n).triu(1) if upper else torch.ones(n, n).tril(-1))
    for b in (torch.zeros(n, 3), torch.ones(n, 3)):
        compare(lambda a, b: L.solve_triangular(a, b, upper=upper, left=left), a, b if left else b.mT)
