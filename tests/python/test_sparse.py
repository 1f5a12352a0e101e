# SPDX-License-Identifier: BSD-3-Clause
"""Sparse COO tensors on mps against the CPU: values, coordinates, gradients. Results whose order of entries is free are compared dense."""
import pytest
import torch

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.complex64]
pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks", "ignore:Sparse CSR tensor support")


def sparse(shape, sparse_dim, nnz, dtype=torch.float32, seed=0, coalesced=False):
    generator = torch.Generator().manual_seed(seed)
    indices = torch.stack([torch.randint(max(s, 1), (nnz,), generator=generator) for s in shape[:sparse_dim]]) if sparse_dim else torch.zeros(0, nnz, dtype=torch.int64)
    values = torch.randn(nnz, *shape[sparse_dim:], generator=generator, dtype=torch.complex64 if dtype.is_complex else torch.float32) * 3
    result = torch.sparse_coo_tensor(indices, values.to(dtype), shape)
    return result.coalesce() if coalesced else result


def same(function, *inputs, exact_entries=False, tolerance=None):
    """function on the CPU and on mps; sparse results as dense ones, and entry by entry where asked."""
    expected = function(*inputs)
    got = function(*[x.to("mps") if isinstance(x, torch.Tensor) else x for x in inputs])
    assert got.device.type == "mps" and got.dtype == expected.dtype and got.layout == expected.layout and got.shape == expected.shape
    options = {"rtol": tolerance, "atol": tolerance} if tolerance else {}
    if got.layout == torch.sparse_coo:
        assert (got.sparse_dim(), got.dense_dim()) == (expected.sparse_dim(), expected.dense_dim())
        if exact_entries:
            assert got.is_coalesced() == expected.is_coalesced()
            assert torch.equal(got._indices().cpu(), expected._indices())
            torch.testing.assert_close(got._values().cpu(), expected._values(), **options)
        got, expected = got.to_dense(), expected.to_dense()
    torch.testing.assert_close(got.cpu(), expected, **options)


SHAPES = [((5, 6), 2, 12), ((5, 6, 3), 2, 12), ((7,), 1, 9), ((3, 4, 5), 3, 20), ((4, 5), 2, 0), ((4, 5), 2, 1), ((4, 0), 1, 3)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape, sparse_dim, nnz", SHAPES)
def test_coalesce(shape, sparse_dim, nnz, dtype):
    x = sparse(shape, sparse_dim, nnz, dtype)
    same(lambda x: x.coalesce(), x, exact_entries=True, tolerance=2e-2 if dtype in (torch.float16, torch.bfloat16) else None)
    same(lambda x: x.to_dense(), x, tolerance=5e-2 if dtype in (torch.float16, torch.bfloat16) else None)


@pytest.mark.parametrize("shape, sparse_dim, nnz", SHAPES)
def test_dense_to_sparse_and_back(shape, sparse_dim, nnz):
    dense = sparse(shape, sparse_dim, nnz).to_dense()
    same(lambda x: x.to_sparse(), dense, exact_entries=True)
    same(lambda x: x.to_sparse(1), dense, exact_entries=True)
    same(lambda x: x.to_sparse().to_dense(), dense)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64])
@pytest.mark.parametrize("shape, sparse_dim, nnz", SHAPES)
def test_sums(shape, sparse_dim, nnz, dtype):
    for coalesced in (False, True):
        a, b = (sparse(shape, sparse_dim, nnz, dtype, seed, coalesced) for seed in (1, 2))
        same(torch.add, a, b)
        same(lambda a, b: torch.sub(a, b, alpha=2), a, b)
        same(torch.add, torch.ones(shape, dtype=dtype), b)
    same(lambda a, b: a.clone().add_(b), a, b)


def test_sums_of_two_dtypes():
    same(torch.add, sparse((5, 6), 2, 8), sparse((5, 6), 2, 8, torch.int64))
    same(torch.add, torch.ones(5, 6, dtype=torch.int32), sparse((5, 6), 2, 8))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64])
@pytest.mark.parametrize("shape, sparse_dim, nnz", SHAPES)
def test_products(shape, sparse_dim, nnz, dtype):
    a, b = (sparse(shape, sparse_dim, nnz, dtype, seed) for seed in (3, 4))
    same(torch.mul, a, b)
    same(lambda a: a * 3, a)
    same(lambda a: a * 2.5, a)
    dense = sparse(shape, sparse_dim, max(nnz, 2), dtype, 5).to_dense()
    if a._values().numel() > 0:
        same(torch.mul, a, dense)
        same(torch.mul, dense, a)
    same(lambda a: -a / 2, a)


@pytest.mark.parametrize("name", ["abs", "sin", "sqrt", "tanh", "sgn", "log1p", "erf", "floor", "isnan", "relu", "neg", "deg2rad"])
def test_unary(name):
    x = sparse((5, 6, 2), 2, 10).abs() if name in ("sqrt", "log1p") else sparse((5, 6, 2), 2, 10)
    same(lambda x: getattr(x, name)(), x, tolerance=2e-6)


def test_reductions_and_shapes():
    x = sparse((5, 6, 2), 2, 14)
    same(torch.sparse.sum, x, tolerance=1e-5)
    for dims in (0, 1, 2, [0, 1], [1, 2], [0, 1, 2]):
        same(lambda x, dims=dims: torch.sparse.sum(x, dims), x, tolerance=1e-5)
    same(lambda x: x.transpose(0, 1), x)
    same(lambda x: x.unsqueeze(1), x)
    same(lambda x: torch.cat([x, x], 1), x)
    same(lambda x: x.norm(), x, tolerance=1e-5)
    same(lambda x: x.to(torch.float16), x)
    assert x.to("mps")._nnz() == 14 and x.to("mps").to("cpu")._nnz() == 14


def test_index_select():
    x = sparse((5, 6, 4), 2, 14)
    for dim, index in ((0, [4, 0, 0]), (1, [5, -1, 2]), (2, [3, 1]), (0, []), (-2, [1, 1, 1])):
        same(lambda x, i, dim=dim: x.index_select(dim, i), x, torch.tensor(index, dtype=torch.int64))
    with pytest.raises(IndexError, match="out of range for tensor of size"):
        x.to("mps").index_select(0, torch.tensor([5], device="mps"))


def test_matrix_products():
    a, dense = sparse((5, 6), 2, 12), torch.randn(6, 4)
    same(torch.sparse.mm, a, dense, tolerance=1e-5)
    same(torch.mm, a, dense, tolerance=1e-5)
    same(lambda t, a, d: torch.addmm(t, a, d, beta=0.5, alpha=2), torch.randn(5, 4), a, dense, tolerance=1e-5)
    same(lambda t, a, d: torch.sparse.addmm(t, a, d), torch.randn(1, 4), a, dense, tolerance=1e-5)
    same(torch.mv, a, torch.randn(6), tolerance=1e-5)
    same(torch.sparse.mm, a, sparse((6, 7), 2, 13), tolerance=1e-5)
    same(torch.bmm, sparse((3, 4, 5), 3, 20), torch.randn(3, 5, 2), tolerance=1e-5)
    same(torch.sparse.mm, sparse((5, 6), 2, 0), dense)


@pytest.mark.parametrize("shape, sparse_dim, nnz", [((5, 6), 2, 12), ((5, 6, 3), 2, 12), ((7,), 1, 5), ((3, 4, 5), 3, 20)])
def test_softmax(shape, sparse_dim, nnz):
    for dim in range(len(shape)):
        x = sparse(shape, sparse_dim, nnz, seed=dim).coalesce()
        same(lambda x, dim=dim: torch.sparse.softmax(x, dim), x, exact_entries=True, tolerance=1e-6)
        same(lambda x, dim=dim: torch.sparse.log_softmax(x, dim), x, exact_entries=True, tolerance=2e-6)


def gradients(function, *inputs):
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    out = function(*leaves)
    (torch.sparse.sum(out * out) if out.layout == torch.sparse_coo else (out * out).sum()).backward()
    return [leaf.grad.to_dense() if leaf.grad.layout == torch.sparse_coo else leaf.grad for leaf in leaves]


@pytest.mark.parametrize("name, function, inputs", [
    ("softmax", lambda x: torch.sparse.softmax(x, 1), [sparse((5, 6), 2, 12, coalesced=True)]),
    ("log_softmax", lambda x: torch.sparse.log_softmax(x, 0), [sparse((5, 6, 2), 2, 12, coalesced=True)]),
    ("softmax of values", lambda x: torch.sparse.softmax(x, 2), [sparse((5, 6, 2), 2, 12, coalesced=True)]),
    ("sum", lambda x: torch.sparse.sum(x, 0), [sparse((5, 6, 2), 2, 12, coalesced=True)]),
    ("sum of values", lambda x: torch.sparse.sum(x, [1, 2]), [sparse((5, 6, 2), 2, 12, coalesced=True)]),
    ("mm", torch.sparse.mm, [sparse((5, 6), 2, 12, coalesced=True), torch.randn(6, 4)]),
    ("to_dense", lambda x: x.to_dense(), [sparse((5, 6), 2, 12, coalesced=True)]),
    ("add", torch.add, [sparse((5, 6), 2, 12, coalesced=True), sparse((5, 6), 2, 12, seed=1, coalesced=True)]),
    ("mul", torch.mul, [sparse((5, 6), 2, 12, coalesced=True), sparse((5, 6), 2, 12, seed=1, coalesced=True)]),
])
def test_gradients(name, function, inputs):
    for expected, got in zip(gradients(function, *inputs), gradients(function, *[x.to("mps") for x in inputs])):
        torch.testing.assert_close(got.cpu(), expected, rtol=1e-5, atol=1e-5)


def test_sparse_mask():
    mask = sparse((5, 6), 2, 8, coalesced=True)
    same(lambda x, m: x.sparse_mask(m), torch.randn(5, 6), mask, exact_entries=True)
    same(lambda x, m: x.sparse_mask(m), sparse((5, 6), 2, 12, seed=7), mask)


def test_embedding_with_sparse_gradients():
    weight, index = torch.randn(10, 4), torch.tensor([1, 2, 2, 9])
    results = []
    for device in ("cpu", "mps"):
        table = torch.nn.Embedding(10, 4, sparse=True, _weight=weight.clone()).to(device)
        update = torch.optim.SparseAdam(table.parameters(), lr=0.1)
        for _ in range(3):
            update.zero_grad()
            table(index.to(device)).pow(2).sum().backward()
            update.step()
        results.append(table.weight.detach().cpu())
    torch.testing.assert_close(results[1], results[0])
