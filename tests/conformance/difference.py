# SPDX-License-Identifier: BSD-3-Clause
"""Compares a result on mps with the CPU's and says in one line what differs first: device, dtype, shape, strides, view, NaN or value.

Where values differ by more than the tolerance, the same call in double precision decides: a result that is as near to it as the CPU's is
right. (Half precision is computed in float here and rounded once; the CPU rounds in between.)
"""
import torch
from torch.testing._comparison import default_tolerances


class Failure(Exception):
    """A difference: its kind (one word) and a line for the reader."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def flatten(value):
    """The leaves of lists, tuples and dicts, in order."""
    if isinstance(value, (list, tuple)):
        return [leaf for element in value for leaf in flatten(element)]
    if isinstance(value, dict):
        return [leaf for key in value for leaf in flatten(value[key])]
    return [value]


def comparable(tensor):
    """Without lazy bits; complex halves, of which the CPU knows little, as complex64."""
    tensor = tensor.resolve_conj().resolve_neg()
    return tensor.to(torch.complex64) if tensor.dtype == torch.complex32 else tensor


def close(actual, expected, rtol, atol):
    return torch.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=True)


def nearer(actual, expected, exact, rtol, atol, epsilon):
    """True where `actual` is close to `exact`, or not farther from it than `expected` is. Where sums are inside (epsilon is not 0), the
    error may also be some epsilons of the largest element: terms cancel."""
    wide = torch.complex128 if exact.is_complex() else torch.float64
    rounded = close(actual, exact.to(actual.dtype), rtol, atol)
    if not (exact.is_floating_point() or exact.is_complex()):
        return rounded
    error, allowed = (actual.to(wide) - exact.to(wide)).abs(), (expected.to(wide) - exact.to(wide)).abs()
    good = rounded | (error <= allowed)
    if epsilon:
        sizes = exact.abs()[exact.isfinite()]
        good |= error <= 8 * epsilon * (sizes.max() if sizes.numel() else 0)
    return good


def number(tensor, index):
    value = tensor[index].item()
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def first_difference(actual, expected, good):
    """(kind, line) about the first element where `good` is False."""
    bad = (~good).nonzero()
    index = tuple(bad[0].tolist())
    nan = (actual.isnan() != expected.isnan()).any().item()
    place = f" at {index}" if index else ""
    return "nan" if nan else "value", (f"mps {number(actual, index)}, cpu {number(expected, index)}{place}, "
                                       f"{len(bad)} of {good.numel()} differ")


def as_wide_as_the_device(tensor):
    """What the CPU gives in double precision whatever it gets (bincount with weights) is float on a device without doubles."""
    narrow = {torch.float64: torch.float32, torch.complex128: torch.complex64}
    return tensor.to(narrow[tensor.dtype]) if isinstance(tensor, torch.Tensor) and tensor.dtype in narrow else tensor


def check_form(actual, expected):
    """Everything but the values. Returns whether the values are left to compare."""
    if not isinstance(expected, torch.Tensor):
        if isinstance(expected, torch.device) or type(actual) is not type(expected):
            if isinstance(expected, torch.device) and isinstance(actual, torch.device):
                return False
            raise Failure("type", f"mps gives {type(actual).__name__}, cpu {type(expected).__name__}")
        return False
    if not isinstance(actual, torch.Tensor):
        raise Failure("type", f"mps gives {actual!r:.60}, cpu a tensor")
    if actual.device.type != "mps":
        raise Failure("device", f"the result is on {actual.device}")
    if actual.dtype != expected.dtype:
        raise Failure("dtype", f"dtype: mps {actual.dtype}, cpu {expected.dtype}")
    if actual.shape != expected.shape:
        raise Failure("shape", f"shape: mps {tuple(actual.shape)}, cpu {tuple(expected.shape)}")
    if actual.layout != expected.layout:
        raise Failure("layout", f"layout: mps {actual.layout}, cpu {expected.layout}")
    return True


def in_rows(expected):
    """The strides of a result whose matrices lie in rows on mps if the CPU has laid them out in columns (rows.txt); else the CPU's."""
    rows = torch.empty(expected.shape, device="meta").stride()
    columns = (*rows[:-2], 1, max(expected.shape[-2], 1)) if expected.dim() > 1 else rows
    return rows if expected.stride() == columns else expected.stride()


def check_memory(actual, expected, rows=False):
    """Strides, offset and the lazy bits. Last, so that a wrong value is said first."""
    if expected.layout != torch.strided:
        return
    strides = in_rows(expected) if rows else expected.stride()
    if actual.stride() != strides and expected.numel() > 0:
        raise Failure("strides", f"strides: mps {actual.stride()}, {'rows' if rows else 'cpu'} {strides}, shape {tuple(expected.shape)}")
    if actual.is_conj() != expected.is_conj() or actual.is_neg() != expected.is_neg():
        raise Failure("view", f"conj, neg bits: mps {actual.is_conj()}, {actual.is_neg()}, cpu {expected.is_conj()}, {expected.is_neg()}")


def check_values(actual, expected, tolerance, exact, sums):
    """`exact` is a function that gives the result in double precision, or None; `sums`: the operator adds many elements up."""
    actual, expected = actual.detach().cpu(), expected.detach()
    if expected.layout != torch.strided:
        actual, expected = actual.to_dense(), expected.to_dense()
    original = expected.dtype
    actual, expected = comparable(actual), comparable(expected)
    if torch.equal(actual, expected):
        return
    rtol, atol = tolerance or (0, 0)
    default = default_tolerances(original)
    rtol, atol = max(rtol, default[0]), max(atol, default[1])
    good = close(actual, expected, rtol, atol)
    if good.all():
        return
    truth = exact() if exact else None
    truth = truth.to_dense() if isinstance(truth, torch.Tensor) and truth.layout != torch.strided else truth
    if isinstance(truth, torch.Tensor) and truth.shape == expected.shape and truth.is_complex() == expected.is_complex():
        epsilon = torch.finfo(original).eps if sums and (original.is_floating_point or original.is_complex) else 0
        good |= nearer(actual, expected, comparable(truth.detach()), rtol, atol, epsilon)
    if not good.all():
        raise Failure(*first_difference(actual, expected, good))


def check_same(actual, expected, tolerance=None, exact=None, values=True, memory=True, sums=False, rows=False):
    """Raises Failure unless the two results (any nesting) are the same to a user. `rows`: the operator is in rows.txt."""
    actual, expected = flatten(actual), [as_wide_as_the_device(e) for e in flatten(expected)]
    if len(actual) != len(expected):
        raise Failure("type", f"mps gives {len(actual)} results, cpu {len(expected)}")
    for number_, (a, e) in enumerate(zip(actual, expected)):
        try:
            if check_form(a, e):
                if values:
                    check_values(a, e, tolerance, exact and (lambda: flatten(exact())[number_]), sums)
                if memory:
                    check_memory(a, e, rows)
            elif values and not isinstance(e, torch.device) and a != e and not (a != a and e != e):
                same_number(a, e, tolerance)
        except Failure as failure:
            where = f"result {number_}: " if len(expected) > 1 else ""
            raise Failure(failure.kind, where + str(failure)) from None


def same_number(actual, expected, tolerance):
    """Of results that are no tensors."""
    if isinstance(expected, (float, complex)):
        check_values(torch.tensor(actual, device="mps"), torch.tensor(expected), tolerance, None, False)
    elif isinstance(expected, (int, bool, str, torch.Size, torch.dtype)):
        raise Failure("value", f"mps {actual!r:.60}, cpu {expected!r:.60}")
