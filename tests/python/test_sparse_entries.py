# SPDX-License-Identifier: BSD-3-Clause
"""Every entry that upstream registers under its sparse MPS keys, called by its name on mps and on the CPU: SparseMPS and SparseCsrMPS."""
import pytest
import torch

from openmps import _bridge

pytestmark = pytest.mark.filterwarnings("ignore:Sparse", "ignore:.*deprecated", "ignore:An output with one or more elements was resized")
ENTRIES = {key: list(names) for key, names in _bridge.sparse_coverage().items()}
DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64]
COO, CSR = "SparseMPS", "SparseCsrMPS"


def values(shape, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool or not (dtype.is_floating_point or dtype.is_complex):
        return torch.randint(0 if dtype in (torch.bool, torch.uint8) else -4, 2 if dtype == torch.bool else 5, shape, generator=generator).to(dtype)
    return (torch.rand(shape, generator=generator, dtype=torch.complex64 if dtype.is_complex else torch.float32) * 1.6 - 0.8).to(dtype)


def coo(dtype=torch.float32, shape=(4, 5), sparse_dim=2, nnz=9, seed=0, coalesced=False):
    generator = torch.Generator().manual_seed(seed)
    indices = torch.stack([torch.randint(n, (nnz,), generator=generator) for n in shape[:sparse_dim]])
    result = torch.sparse_coo_tensor(indices, values((nnz, *shape[sparse_dim:]), dtype, seed), shape)
    if not coalesced:
        return result
    # A pattern without duplicates: bool and half have no sums of them on the CPU everywhere.
    kept = torch.sparse_coo_tensor(indices, torch.ones(nnz), shape[:sparse_dim]).coalesce().indices()
    return torch.sparse_coo_tensor(kept, values((kept.shape[1], *shape[sparse_dim:]), dtype, seed), shape, is_coalesced=True)


def csr(dtype=torch.float32, seed=0):
    return torch.sparse_csr_tensor([0, 2, 2, 5], [1, 3, 0, 2, 3], values((5,), dtype, seed), (3, 4))


def dense(*shape, dtype=torch.float32, seed=3):
    return values(shape, dtype, seed)


# What an entry takes besides sparse `self` (and out=): arguments made on the CPU, as a function of the dtype.
INDICES = torch.tensor([[0, 1, 3], [2, 0, 4]])
CALLS = {
    "add.Tensor": lambda t: [(coo(t), coo(t, seed=1)), (dense(4, 5, dtype=t), coo(t))],
    "sub.Tensor": lambda t: [(coo(t), coo(t, seed=1))],
    "mul.Tensor": lambda t: [(coo(t, coalesced=True), coo(t, seed=1, coalesced=True)), (coo(t), dense(4, 5, dtype=t))],
    "div.Tensor": lambda t: [(coo(t, coalesced=True), torch.tensor(2, dtype=t))],
    "div.Tensor_mode": lambda t: [(coo(t, coalesced=True), torch.tensor(2, dtype=t), {"rounding_mode": "floor"})],
    "floor_divide": lambda t: [(coo(t, coalesced=True), torch.tensor(2, dtype=t))],
    "pow.Tensor_Scalar": lambda t: [(coo(t, coalesced=True), 2)],
    "bmm": lambda t: [(coo(t, (3, 4, 5), 3, 20), dense(3, 5, 2, dtype=t))],
    "mm": lambda t: [(coo(t), dense(5, 3, dtype=t)), (coo(t), coo(t, (5, 6), seed=1))],
    "mv": lambda t: [(coo(t), dense(5, dtype=t))],
    "addmm": lambda t: [(dense(4, 3, dtype=t), coo(t), dense(5, 3, dtype=t)), (dense(4, 3, dtype=t), coo(t), dense(5, 3, dtype=t), {"beta": 2, "alpha": 3})],
    "_sparse_sparse_matmul": lambda t: [(coo(t), coo(t, (5, 6), seed=1))],
    "_sparse_broadcast_to": lambda t: [(coo(t, (4, 1)), (2, 4, 5))],
    "cat": lambda t: [([coo(t), coo(t, seed=1)], 1)],
    "copy_": lambda t: [(coo(t), coo(t, seed=1))],
    "copy_sparse_to_sparse_": lambda t: [(coo(t), coo(t, seed=1))],
    "empty_like": lambda t: [(coo(t),)],
    "narrow_copy": lambda t: [(coo(t), 1, 1, 3)],
    "permute": lambda t: [(coo(t), (1, 0))],
    "unsqueeze": lambda t: [(coo(t), 1)],
    "sum": lambda t: [(coo(t),)],
    "sum.dim_IntList": lambda t: [(coo(t), [1]), (coo(t), [0, 1])],
    "native_norm": lambda t: [(coo(t, coalesced=True),)],
    "native_norm.ScalarOpt_dim_dtype": lambda t: [(coo(t, coalesced=True), 2, [0, 1], False, None)],
    "norm.ScalarOpt_dim_dtype": lambda t: [(coo(t, coalesced=True), 2, [0, 1], False, {"dtype": torch.float32})],
    "norm.ScalarOpt_dim": lambda t: [(coo(t, coalesced=True), 2, [0, 1], False)],
    "_sparse_sum_backward": lambda t: [(coo(t, (5,), 1, 4, coalesced=True), coo(t, coalesced=True), [0])],
    "_sparse_softmax": lambda t: [(coo(t, coalesced=True), 1, False)],
    "_sparse_log_softmax": lambda t: [(coo(t, coalesced=True), 0, False)],
    "_sparse_softmax_backward_data": lambda t: [(coo(t, coalesced=True), coo(t, coalesced=True), 1, coo(t, coalesced=True))],
    "_sparse_log_softmax_backward_data": lambda t: [(coo(t, coalesced=True), coo(t, coalesced=True), 1, coo(t, coalesced=True))],
    "_coalesce": lambda t: [(coo(t),)],
    "sparse_resize_": lambda t: [(coo(t), (6, 7), 2, 0)],
    "sparse_resize_and_clear_": lambda t: [(coo(t), (3, 7), 1, 1)],
    "sparse_mask": lambda t: [(dense(4, 5, dtype=t), coo(t, seed=2, coalesced=True)), (coo(t), coo(t, seed=2, coalesced=True))],
    "_sparse_mask_projection": lambda t: [(coo(t), coo(t, seed=2)), (coo(t), coo(t, seed=2), True)],
    "_coalesced_": lambda t: [(coo(t, nnz=1), True)],
    "_to_sparse.sparse_dim": lambda t: [(coo(t), 2)],
    "_to_sparse": lambda t: [(coo(t), {"layout": torch.sparse_csr})],
    "index_select": lambda t: [(coo(t), 1, torch.tensor([4, 0, 0])), (coo(t, (4, 5), 1), 1, torch.tensor([4, 0]))],
    "view_as_real": lambda t: [(coo(torch.complex64),)],
    "view_as_complex": lambda t: [(coo(torch.float32, (4, 5, 2), 2),)],
    "indices": lambda t: [(coo(t, coalesced=True),)],
    "values": lambda t: [(coo(t, coalesced=True),)],
    "any": lambda t: [(coo(torch.bool, coalesced=True),)],
}
# Factories: (arguments, options) without a sparse argument.
FACTORIES = {
    "empty.memory_format": lambda t: (([4, 5],), {"layout": torch.sparse_coo, "dtype": t}),
    "_sparse_coo_tensor_with_dims": lambda t: ((1, 1, (4, 5)), {"layout": torch.sparse_coo, "dtype": t}),
    "_sparse_coo_tensor_with_dims_and_tensors": lambda t: ((2, 0, (4, 5), INDICES, values((3,), t)), {"layout": torch.sparse_coo, "dtype": t}),
}
CSR_CALLS = {"_to_sparse.sparse_dim": lambda t: [(csr(t), 2)]}
# Stems whose entries in place take a dense or a shared self there, as the functional one does not.
IN_PLACE = {"floor_divide_.Tensor": "floor_divide", "div_.Tensor_mode": "div.Tensor_mode"}
OUT = {"div.out": "div.Tensor", "div.out_mode": "div.Tensor_mode", "add.out": "add.Tensor", "sub.out": "sub.Tensor", "mul.out": "mul.Tensor",
       "floor_divide.out": "floor_divide", "pow.Tensor_Scalar_out": "pow.Tensor_Scalar", "conj_physical.out": None}


def operator(name):
    base, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, base), overload or "default")


def stem(name):
    """The functional entry that an entry in place or with out= goes with, for its arguments."""
    if name in OUT or name in IN_PLACE:
        return OUT.get(name) or IN_PLACE.get(name) or name.split(".")[0]
    if name in CALLS or name in FACTORIES:
        return name
    base, _, overload = name.partition(".")
    base = base[:-1] if base.endswith("_") else base
    return f"{base}.{overload}" if overload and overload != "out" else base


def is_out(name):
    return any(a.is_out for a in operator(name)._schema.arguments)


def moved(value, device):
    if isinstance(value, torch.Tensor):
        return value.clone() if device == "cpu" else value.to(device)
    return [moved(v, device) for v in value] if isinstance(value, list) else value


def calls(key, name, dtype):
    """[(arguments, options)] on the CPU."""
    if name in FACTORIES:
        return [FACTORIES[name](dtype)]
    if name == "zeros.out":
        return [(([3, 4],), {"out": coo(dtype)})]
    table = CSR_CALLS if key == CSR else CALLS
    made = table.get(stem(name), lambda t: [(csr(t),)] if key == CSR else [(coo(t, coalesced=True),)])(dtype)
    result = []
    for call in made:
        options = dict(call[-1]) if isinstance(call[-1], dict) else {}
        result.append((call[:-1] if options else call, options))
    return result


def run(key, name, dtype, device):
    """The results of all calls of an entry, or the class of the error."""
    results = []
    for arguments, options in calls(key, name, dtype):
        try:
            here = [moved(a, device) for a in arguments]
            there = {k: moved(v, device) for k, v in options.items()}
            if name in FACTORIES:
                there["device"] = device
            if is_out(name) and "out" not in there:
                functional = operator(stem(name))(*[moved(a, device) for a in arguments], **options)
                there["out"] = torch.zeros_like(functional) if key == COO else functional.clone().fill_(1)
            results.append((operator(name)(*here, **there), here if name.split(".")[0].endswith("_") else []))
        except Exception as error:  # noqa: BLE001 - compared
            results.append(error)
    return results


def leaves(value):
    return [leaf for v in value for leaf in leaves(v)] if isinstance(value, (list, tuple)) else [value]


def check(expected, got, tolerance):
    if not isinstance(expected, torch.Tensor):
        assert got == expected
        return
    assert got.device.type == "mps" and (got.dtype, got.shape, got.layout) == (expected.dtype, expected.shape, expected.layout)
    if got.layout == torch.sparse_coo:
        assert (got.sparse_dim(), got.dense_dim(), got.is_coalesced()) == (expected.sparse_dim(), expected.dense_dim(), expected.is_coalesced())
    if got.layout != torch.strided:
        wide = torch.float32 if expected.dtype in (torch.float16, torch.bfloat16, torch.bool) else expected.dtype
        got, expected = got.to(wide).to_dense(), expected.to(wide).to_dense()
    torch.testing.assert_close(got.cpu(), expected, equal_nan=True, **tolerance)


# What the CPU refuses whatever it is given; mps says the same.
REFUSED = {"_to_sparse.sparse_dim": "Sparse to Sparse conversion not supported", "norm.ScalarOpt_dim_dtype": "does not support 'dtype' argument"}
# Values of new memory, and the CPU's for these.
UNDEFINED = {"empty.memory_format", "empty_like"}


@pytest.mark.parametrize("key, name", [(key, name) for key, names in ENTRIES.items() for name in names])
def test_entry(key, name):
    if key == COO and name in REFUSED:
        for device in ("cpu", "mps"):
            assert all(isinstance(r, RuntimeError) and REFUSED[name] in str(r) for r in run(key, name, torch.float32, device)), device
        return
    computed = 0
    for dtype in DTYPES:
        tolerance = {"rtol": 2e-2, "atol": 1e-1} if dtype in (torch.float16, torch.bfloat16) else {"rtol": 1e-5, "atol": 1e-5}
        for expected, got in zip(run(key, name, dtype, "cpu"), run(key, name, dtype, "mps"), strict=True):
            if isinstance(expected, Exception):
                # What the CPU has no kernel for may be there on mps; other errors are the same.
                assert not isinstance(got, Exception) or type(got) is type(expected) or "not implemented for" in str(expected), (dtype, expected, got)
                assert isinstance(got, Exception) or "not implemented for" in str(expected) or "not supported" in str(expected), (dtype, expected)
                continue
            assert not isinstance(got, Exception), (dtype, got)
            computed += 1
            for e, g in zip(leaves(expected), leaves(got), strict=True):
                check(*((e.clone().zero_(), g.clone().zero_()) if name in UNDEFINED else (e, g)), tolerance)
    assert computed, f"no dtype of {name} has a kernel on the CPU with these arguments"


def test_every_entry_has_a_kernel():
    found = _bridge.sparse_coverage()
    assert {key: len(names) for key, names in found.items()} == {COO: 160, CSR: 13}
    assert all(there for names in found.values() for there in names.values())
