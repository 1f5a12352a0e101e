# SPDX-License-Identifier: BSD-3-Clause
"""What of a result is not determined, or is wrong on the CPU, element by element.

Indices of equal elements: those of mps must name elements equal to the values, each once; then the CPU's are taken for them.
Single elements: a function of the arguments says which are not compared, docs/fidelity.md says why.
"""
import fnmatch

import torch

from .difference import Failure

# The place of `dim` among the positional arguments; and whether a row has several indices, all different.
PLACE_OF_DIM = {"kthvalue": 2, "topk": 2, "median": 1, "nanmedian": 1, "mode": 1, "sort": 1, "argsort": 1}
SEVERAL = ("sort", "topk")


def dim_of(name, arguments):
    args, kwargs = arguments
    place = PLACE_OF_DIM[name]
    return kwargs.get("dim", args[place] if len(args) > place and not isinstance(args[place], torch.Tensor) else -1)


def check_indices(source, dim, values, indices, several):
    source, values, indices = source.cpu(), values.cpu(), indices.cpu()
    if values.dim() < source.dim():
        values, indices = values.unsqueeze(dim), indices.unsqueeze(dim)
    named = source.gather(dim, indices) if source.dim() else source.expand(indices.shape)
    wrong = (named != values) & ~(named.isnan() & values.isnan())
    if wrong.any():
        raise Failure("value", f"the index at {tuple(wrong.nonzero()[0].tolist())} does not name an element equal to the value")
    if several and source.dim() and (indices.sort(dim).values.diff(dim=dim) == 0).any():
        raise Failure("value", "an index occurs twice")


def pair_of(result):
    """values, indices; also those of the out= check, which come first in a list."""
    result = result[0] if isinstance(result, list) and result and isinstance(result[0], (list, tuple)) else result
    return result if isinstance(result, (list, tuple)) and len(result) == 2 else None


def settle_indices(name, actual, expected, arguments):
    """Puts the CPU's indices into the result of mps, if its own are right."""
    ours, theirs = pair_of(actual), pair_of(expected)
    if name == "argsort" and isinstance(actual, torch.Tensor) and actual.shape == expected.shape:
        source, dim = arguments[0][0].detach().cpu(), dim_of(name, arguments)
        if source.dim():
            check_indices(source, dim, source.gather(dim, expected), actual, True)
            actual.copy_(expected)
    if name in PLACE_OF_DIM and ours and ours[1].dtype == torch.int64 and ours[1].shape == theirs[1].shape:
        check_indices(arguments[0][0].detach(), dim_of(name, arguments), ours[0].detach(), ours[1], name in SEVERAL)
        ours[1].copy_(theirs[1])


def infinite(*inputs):
    return sum(x.isinf() for x in inputs if isinstance(x, torch.Tensor)) > 0


def complex_infinite(*inputs):
    involved = [x for x in inputs if isinstance(x, torch.Tensor)]
    return infinite(*involved) if any(x.is_complex() for x in involved) else torch.zeros((), dtype=torch.bool)


def pole(x, *_):
    return (x <= 0) & (x == x.round()) if x.dtype != torch.bool else ~x


def pole_or_infinite(x, *_):
    return pole(x) | x.isinf()


def zeta(s, q, *_):
    """Infinities; powers so high that the CPU's corrections become NaN where the sum is 0; sums of powers of both signs beyond float's range."""
    s, q = (torch.as_tensor(x, dtype=torch.float64) for x in (s, q))
    return s.isinf() | q.isinf() | (s > 1e6) | ((s > 100) & (q < 0))


def power(x, y, *_):
    involved = [t for t in (x, y) if isinstance(t, torch.Tensor) and t.is_complex()]
    if not involved:
        return torch.zeros((), dtype=torch.bool)
    double = [torch.as_tensor(t).to(torch.complex128) for t in (x, y)]
    overflow = (double[1] * double[0].log()).real > 88  # the signs of infinities are those of an angle without a correct digit
    return (sum(((t == 0) | ~t.isfinite()) for t in involved) > 0) | overflow


def near_pole(x, *_):
    return (1 + (-x).exp()).abs() < 0.1


def smallest_integer(*inputs):
    return sum((x == torch.iinfo(x.dtype).min for x in inputs if isinstance(x, torch.Tensor) and x.dtype.is_signed), torch.zeros(())) > 0


# operator pattern -> elements that are not compared
ELEMENTS = {
    "gcd": smallest_integer,  # no positive number of that type is its absolute value; the sign on the CPU depends on the type
    "pow": power, "__rpow__": power,  # complex x^0 is 1 here; powers of complex infinities have no agreed value
    "nn.functional.silu.complex": near_pole,  # 1 and exp(-x) cancel: both devices are far from the truth
    "__radd__": infinite,  # adding infinity to a complex number makes the other part NaN on the CPU, where alpha = 1 multiplies it
    **{name: complex_infinite for name in ("add", "sub", "rsub", "__rsub__")},
    "polygamma.*": pole_or_infinite,  # poles: the CPU gives a large finite number; and NaN at infinity
    "special.polygamma.*": pole_or_infinite,
    "special.zeta": zeta, "special.bessel_*": infinite, "special.modified_bessel_i*": infinite,  # limits, where the CPU gives NaN
    "i0": infinite, "special.i0e": infinite, "special.i1": infinite, "special.i1e": infinite,  # the CPU gives NaN at infinity
}


def left_out(name, arguments, shape):
    """A mask of the result's shape, or None."""
    for pattern, function in ELEMENTS.items():
        if fnmatch.fnmatch(name, pattern):
            mask = function(*arguments[0])
            return mask.cpu().expand(shape) if mask.any() else None
    return None


TRANSFORMERS = ("nn.Transformer", "nn.TransformerEncoder", "nn.TransformerEncoderLayer", "nn.TransformerDecoderLayer")

# (operator, dtype) -> (rtol, atol), where neither OpInfo's tolerance nor the call in double precision judges well.
TOLERANCES = {
    # exp(y log x): the error grows with |y log x|, on both sides.
    ("pow", torch.complex64): (1e-5, 1e-5), ("__rpow__", torch.complex64): (1e-5, 1e-5),
    # x / (1 + exp(-x)) near the poles, where 1 and exp(-x) cancel.
    ("nn.functional.silu.complex", torch.complex64): (2e-5, 1e-5),
    # |x|^2 + |y|^2 - 2xy cancels where the distance is small, and the gradient divides by it.
    ("cdist", torch.float32): (2e-5, 2e-5),
    # The gradient of two weights cancels: what is left of it is the rounding of terms a million times larger.
    ("cov", torch.bfloat16): (1.6e-2, 1e-3),
    # Scores of 60 are rounded to 8 bits before their exponential: a quarter of the result.
    ("nn.functional.multi_head_attention_forward", torch.bfloat16): (2e-1, 1e-1),
    # A composite of ten operators, each of which rounds to half.
    **{(f"nn.functional.linear_cross_entropy.{kind}", torch.float16): (2e-2, 1e-3) for kind in ("chunked", "chunked_none")},
    **{(f"nn.functional.linear_cross_entropy.{kind}", torch.bfloat16): (1e-1, 2e-2) for kind in ("chunked", "chunked_none")},
    **{(name, torch.float16): (2e-2, 5e-3) for name in TRANSFORMERS},
    # Gradients through steps of time, each of which rounds to half.
    **{(name, torch.float16): (5e-3, 5e-4) for name in ("nn.LSTM", "nn.GRU")},
}


def tolerance(name, dtype):
    return TOLERANCES.get((name, dtype))
