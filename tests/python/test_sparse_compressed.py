# SPDX-License-Identifier: BSD-3-Clause
"""CSR, CSC, BSR and BSC tensors on mps against the CPU: construction, checks, conversions, products, reductions, gradients, errors."""
import copy
import pickle

import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore:Sparse", "ignore:torch.triangular_solve")
LAYOUTS = [torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc]
DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int16, torch.uint8, torch.bool, torch.complex64]
BLOCK = {torch.sparse_bsr: {"blocksize": (2, 3)}, torch.sparse_bsc: {"blocksize": (2, 3)}}


def matrix(*shape, dtype=torch.float32, seed=0, density=0.4):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator, dtype=torch.complex64 if dtype.is_complex else torch.float32) * 3
    return torch.where(torch.rand(shape, generator=generator) < density, x, 0).to(dtype)


def members(x):
    if x.layout == torch.strided:
        return [x]
    rows = x.layout in (torch.sparse_csr, torch.sparse_bsr)
    return [x.crow_indices() if rows else x.ccol_indices(), x.col_indices() if rows else x.row_indices(), x.values()]


def same(function, *inputs, exact=True, tolerance=None):
    """function on the CPU and on mps: the same members where `exact`, else the same dense matrix; or the same error."""
    options = {"rtol": tolerance, "atol": tolerance} if tolerance else {}
    try:
        expected = function(*inputs)
    except (RuntimeError, ValueError, IndexError) as error:
        with pytest.raises(type(error)) as raised:
            function(*[x.to("mps") if isinstance(x, torch.Tensor) else x for x in inputs])
        assert str(raised.value).replace("mps:0", "cpu").replace("MPS", "CPU").splitlines()[0][:120] == str(error).splitlines()[0][:120]
        return
    got = function(*[x.to("mps") if isinstance(x, torch.Tensor) else x for x in inputs])
    for e, g in zip(expected, got) if isinstance(expected, tuple) else [(expected, got)]:
        assert g.device.type == "mps" and (g.dtype, g.layout, g.shape) == (e.dtype, e.layout, e.shape)
        pairs = zip(members(e), members(g), strict=True) if exact else [(e.to_dense(), g.to_dense())]
        for a, b in pairs:
            torch.testing.assert_close(b.cpu(), a, equal_nan=True, **options)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 6), (2, 4, 6), (4, 0), (0, 3)])
def test_to_and_fro(layout, dtype, shape):
    x = matrix(*shape, dtype=dtype) if len(shape) == 2 else matrix(*shape[1:], dtype=dtype).expand(shape).contiguous()
    same(lambda x: x.to_sparse(layout=layout, **BLOCK.get(layout, {})), x)
    if 0 in shape:
        return
    s = x.to_sparse(layout=layout, **BLOCK.get(layout, {}))
    same(lambda s: s.to_dense(), s)
    same(lambda s: s.clone(), s)
    same(lambda s: torch.zeros_like(s), s)
    same(lambda s: torch.empty_like(s).copy_(s), s)
    same(lambda s: s.transpose(-2, -1), s)
    assert torch.equal(s.to("mps").cpu().to_dense(), x) and torch.equal(s.to("mps").to_sparse().to_dense().cpu(), x)
    for target in LAYOUTS:
        if target != layout and (target in BLOCK) == (layout in BLOCK):
            same(lambda s, target=target: s.to_sparse(layout=target, **BLOCK.get(target, {})), s)


def test_construction_and_printing():
    for index in (torch.int64, torch.int32):
        def made(device):
            rows, columns = (torch.tensor(x, dtype=index, device=device) for x in ([0, 2, 3], [0, 2, 1]))
            return torch.sparse_csr_tensor(rows, columns, torch.tensor([1.0, 2, 3], device=device), (2, 3))

        on_cpu, x = made("cpu"), made("mps")
        assert repr(x).replace(", device='mps:0'", "").split() == repr(on_cpu).split()
        assert x.crow_indices().dtype == index and x.is_sparse_csr and x.is_mps and x._nnz() == 3
    x = torch.sparse_csr_tensor([0, 2, 3], [0, 2, 1], [1.0, 2, 3], device="mps")
    assert x.shape == (2, 3) and x.detach().layout == torch.sparse_csr and torch.equal(copy.deepcopy(x).to_dense(), x.to_dense())
    assert torch.equal(pickle.loads(pickle.dumps(x)).to_dense().cpu(), x.to_dense().cpu())
    assert torch.sparse_bsc_tensor([0, 1, 2], [0, 1], torch.ones(2, 2, 2), (4, 4), device="mps").to_dense().sum() == 8
    with torch.inference_mode():
        assert (x.clone() * 2).to_dense().sum() == 12


@pytest.mark.parametrize("is_crow", [True, False])
@pytest.mark.parametrize("compressed, plain", [
    ([0, 2, 3], [0, 1, 1]), ([1, 2, 3], [0, 1, 1]), ([0, 2, 2], [0, 1, 1]), ([0, 4, 3], [0, 1, 1]), ([0, 2, 3], [0, 5, 1]), ([0, 2, 3], [0, -1, 1]),
    ([0, 2, 3], [1, 0, 1]), ([0, 2, 3], [1, 1, 1]), ([1, 5, 4], [9, 9, 9]), ([0, -1, 3], [0, 1, 1]), ([[0, 2, 3], [0, 1, 3]], [[0, 1, 1], [2, 1, 0]]),
])
def test_invariants(is_crow, compressed, plain):
    same(lambda c, p: torch._validate_compressed_sparse_indices(is_crow, c, p, 2, 3, 3) or c, torch.tensor(compressed), torch.tensor(plain))


@pytest.mark.parametrize("mat1", [None, *LAYOUTS])
@pytest.mark.parametrize("mat2", [None, *LAYOUTS])
def test_products(mat1, mat2):
    a, b, c = matrix(4, 6, seed=1), matrix(6, 9, seed=2), torch.randn(4, 9)
    left = a if mat1 is None else a.to_sparse(layout=mat1, **({"blocksize": (2, 2)} if mat1 in BLOCK else {}))
    right = b if mat2 is None else b.to_sparse(layout=mat2, **({"blocksize": (3, 3)} if mat2 in BLOCK else {}))
    if mat1 is None and mat2 is None:
        return
    same(torch.mm, left, right, exact=False, tolerance=1e-5)
    same(lambda c, a, b: torch.addmm(c, a, b, beta=2, alpha=0.5), c, left, right, exact=False, tolerance=1e-5)
    same(lambda c, a, b: torch.addmm(c.to_sparse_csr(), a, b, beta=2), c, left, right, exact=False, tolerance=1e-5)
    if mat1 is not None and mat1 != torch.sparse_bsc:
        same(torch.mv, left, b[:, 0].contiguous(), tolerance=1e-5)
        same(lambda t, a, v: torch.addmv(t, a, v, beta=3, alpha=2), c[:, 0].contiguous(), left, b[:, 0].contiguous(), tolerance=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_all_dtypes(dtype):
    """Against the dense product: the CPU has CSR products for float and complex alone. Bool is "or" of "and"."""
    a, b = matrix(7, 130, dtype=dtype, seed=1), matrix(130, 70, dtype=dtype, seed=2, density=1)
    got = torch.sparse.mm(a.to("mps").to_sparse_csr(), b.to("mps")).cpu()
    wide = {torch.complex64: torch.complex128}.get(dtype, torch.float64 if dtype.is_floating_point else torch.int64)
    expected = a.to(wide) @ b.to(wide)
    expected = expected != 0 if dtype == torch.bool else expected.to(dtype)
    torch.testing.assert_close(got, expected, **({"rtol": 1e-5, "atol": 2e-4} if dtype in (torch.float32, torch.complex64) else {}))
    strided = torch.sparse.mm(a.to("mps").to_sparse_csr(), b.t().contiguous().to("mps").t()).cpu()
    assert torch.equal(strided, got)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_mm_reduce(reduce, dtype):
    a, b = matrix(5, 6, dtype=dtype, seed=1), matrix(6, 70, dtype=dtype, seed=2, density=1)

    def both(a, b):
        a, b = a.to_sparse_csr().requires_grad_(), b.clone().requires_grad_()
        out = torch.sparse.mm(a, b, reduce)
        return out.detach(), *torch.autograd.grad(out.square().sum(), (a, b))

    same(both, a, b, tolerance=1e-5 if dtype == torch.float32 else 0.2)
    same(lambda a, b: torch.sparse.mm(a.to_sparse_csr(), b, reduce), torch.tensor([[1.0, 2], [0, 0]]), torch.tensor([[float("nan"), 1], [2, -float("inf")]]))


def test_reductions():
    for x in (matrix(5, 6), matrix(5, 6, dtype=torch.int32), matrix(5, 6, dtype=torch.complex64), torch.zeros(3, 4)):
        for dims in ([0], [1], [-1], [0, 1] if x.any() else [0]):
            same(lambda x, dims=dims: torch._sparse_csr_sum(x.to_sparse_csr(), dims, True), x, tolerance=1e-5)
            same(lambda x, dims=dims: torch._sparse_csr_prod(x.to_sparse_csr(), dims, True), x, tolerance=1e-4)
    same(lambda x: torch._sparse_csr_sum(x.to_sparse_csr(), [0], False), matrix(3, 3))


def test_sampled_products():
    pattern, a, b = matrix(5, 6, seed=1), matrix(5, 3, seed=2, density=1), matrix(3, 6, seed=3, density=1)
    same(lambda p, a, b: torch.sparse.sampled_addmm(p.to_sparse_csr(), a, b, beta=0.5, alpha=2), pattern, a, b, tolerance=1e-5)
    same(lambda p, a, b: torch.sparse.sampled_addmm(p.to_sparse_csr(), a, b), torch.stack([pattern] * 2), torch.stack([a, a + 1]), torch.stack([b] * 2), tolerance=1e-5)
    for wrong in ((pattern.half(), a.half(), b.half()), (pattern, a, b[:2]), (pattern, a, b[:, :4].contiguous()), (pattern, a.half(), b)):
        same(lambda p, a, b: torch.sparse.sampled_addmm(p.to_sparse_csr(), a, b), *wrong)


def test_sums_and_elementwise():
    a, b, d = matrix(5, 6, seed=1), matrix(5, 6, seed=2), torch.randn(5, 6)
    same(lambda a, b: torch.add(a.to_sparse_csr(), b.to_sparse_csr(), alpha=3), a, b)
    same(lambda a, b: a.to_sparse_csr().add_(b.to_sparse_csr()), a, b)
    same(lambda d, b: d + b.to_sparse_csr(), d, b)
    same(lambda a, b: a.to_sparse_csr() * b.to_sparse_csr(), a, b)
    same(lambda a, d: a.to_sparse_csr() * d, a, d)
    same(lambda a: a.to_sparse_csr() * 3, a)
    same(lambda a, b: a.to_sparse_csr() + b.to_sparse_csc(), a, b)
    same(lambda a, b: a.to_sparse_csr() + b.to_sparse_csr(), a, b.to(torch.complex64))
    same(lambda a: torch.triangular_solve(torch.ones(5, 2, device=a.device), (a.square()[:, :5] + torch.eye(5, device=a.device)).to_sparse_csr())[0], a, tolerance=1e-4)
    for name in ("abs", "sin", "relu", "neg", "tanh", "sgn", "isnan", "angle"):
        same(lambda a, name=name: getattr(a.to_sparse_csr(), name)(), a, tolerance=1e-6)


@pytest.mark.parametrize("function", [
    lambda a, b: torch.sparse.mm(a, b), lambda a, b: a.relu().to_dense() @ b, lambda a, b: torch.sparse.sampled_addmm(a, b @ b.t(), b @ b.t()[:, :6]).to_dense(),
    lambda a, b: (a * 2).to_dense() + b[:, :1],
], ids=["mm", "relu", "sampled", "mul"])
def test_gradients(function):
    a, b = matrix(6, 6, seed=1).to_sparse_csr(), torch.randn(6, 4)

    def gradients(a, b):
        a, b = a.detach().clone().requires_grad_(), b.detach().clone().requires_grad_()
        return tuple(g for g in torch.autograd.grad(function(a, b).square().sum(), (a, b), allow_unused=True) if g is not None)

    same(gradients, a, b, tolerance=1e-3, exact=False)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_embedding_bag_with_sparse_gradients(mode):
    weight, index, offsets = torch.randn(10, 4), torch.tensor([1, 2, 2, 9, 0]), torch.tensor([0, 3])
    scales = torch.rand(5) if mode == "sum" else None
    found = []
    for device in ("cpu", "mps"):
        bag = torch.nn.EmbeddingBag(10, 4, mode=mode, sparse=True, _weight=weight.clone()).to(device)
        update = torch.optim.SparseAdam(bag.parameters(), lr=0.1)
        for _ in range(2):
            update.zero_grad()
            bag(index.to(device), offsets.to(device), per_sample_weights=None if scales is None else scales.to(device)).pow(2).sum().backward()
            gradient = bag.weight.grad
            update.step()
        assert gradient.is_sparse
        found.append((gradient.to_dense().cpu(), bag.weight.detach().cpu()))
    for expected, got in zip(*found):
        torch.testing.assert_close(got, expected)
