# SPDX-License-Identifier: BSD-3-Clause
"""Cross products and renorm: dtypes, layouts, broadcasting, overlapping results, gradients, errors."""
import pytest
import torch

from compare import FLOATS, INTEGERS, compare, compare_errors, compare_gradients, layouts, make

LOOSE = {torch.float16: {"rtol": 1e-2, "atol": 2e-2}, torch.bfloat16: {"rtol": 5e-2, "atol": 2e-1}}


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS + (torch.complex64,))
def test_cross(dtype):
    loose = LOOSE.get(dtype, {"rtol": 1e-5, "atol": 1e-5} if dtype.is_floating_point or dtype.is_complex else {})
    for _, x in layouts(make((4, 3, 5, 3), dtype, low=-100, high=100)):
        for dim in (1, 3, -1):
            compare(lambda x, y: torch.linalg.cross(x, y, dim=dim), x, make((4, 3, 5, 3), dtype, seed=1, low=-100, high=100), strides=True, **loose)
    compare(torch.linalg.cross, make((3,), dtype), make((3,), dtype, seed=1), **loose)
    compare(torch.cross, make((2, 3, 3), dtype), make((2, 3, 3), dtype, seed=1), **loose)  # the first dimension of size 3
    compare(torch.linalg.cross, make((70000, 3), dtype), make((70000, 3), dtype, seed=1), **loose)
    if dtype in FLOATS or dtype.is_complex:
        compare_gradients(torch.linalg.cross, make((5, 3), dtype), make((5, 3), dtype, seed=1), **loose)


def test_cross_broadcasts():
    for a, b, dim in [((3,), (4, 3), -1), ((5, 1, 3), (4, 3), -1), ((2, 1, 3), (2, 3, 1), 1), ((1, 3), (6, 3), 1)]:
        try:
            torch.linalg.cross(make(a), make(b), dim=dim)
        except RuntimeError:
            compare_errors(lambda x, y: torch.linalg.cross(x, y, dim=dim), make(a), make(b, seed=1))
        else:
            compare(lambda x, y: torch.linalg.cross(x, y, dim=dim), make(a), make(b, seed=1), rtol=1e-5, atol=1e-5)


def test_cross_out():
    x, y = make((4, 3)), make((4, 3), seed=1)
    compare(lambda x, y, out: torch.linalg.cross(x, y, out=out), x, y, torch.zeros(0), strides=True)
    compare(lambda x, y, out: torch.linalg.cross(x, y, out=out.t()), x, y, torch.zeros(3, 4))
    compare_errors(lambda x, y: torch.linalg.cross(x, y, out=x), x, y)
    compare_errors(lambda x, y: torch.linalg.cross(x, y, out=y), x, y)
    compare_errors(lambda x, y: torch.linalg.cross(x, y, out=x[:1].expand(4, 3)), x, y)
    compare(lambda x, y: torch.linalg.cross(x.conj(), y), make((4, 3), torch.complex64), make((4, 3), torch.complex64, seed=1))


def test_cross_empty_and_errors():
    compare(torch.linalg.cross, torch.zeros(0, 3), torch.zeros(0, 3))
    compare_errors(torch.linalg.cross, make((2, 4)), make((2, 4)))
    compare_errors(torch.cross, make((2, 4)), make((2, 4)))
    compare_errors(torch.linalg.cross, make((3,)), make((2, 3)).bool())
    compare_errors(torch.linalg.cross, make((2, 3), torch.bool), make((2, 3), torch.bool))


@pytest.mark.parametrize("dtype", FLOATS + (torch.complex64,))
@pytest.mark.parametrize("p", [0.5, 1, 2, 3, float("inf")])
def test_renorm(dtype, p):
    loose = {torch.float16: {"rtol": 2e-3, "atol": 2e-3}, torch.bfloat16: {"rtol": 1.6e-2, "atol": 1.6e-2}}.get(dtype, {"rtol": 1e-5, "atol": 1e-5})
    for _, x in layouts(make((3, 4, 5, 2), dtype)):
        for dim in (0, 2, -1):
            compare(lambda x: torch.renorm(x, p, dim, 3.0), x, strides=True, **loose)
    compare(lambda x: x.renorm_(p, 1, 2.0), make((3, 4), dtype), **loose)
    compare(lambda x: x[:, ::2].renorm_(p, 0, 2.0), make((3, 8), dtype), **loose)
    compare(lambda x, out: torch.renorm(x, p, 0, 2.0, out=out), make((3, 4), dtype), torch.zeros(0, dtype=dtype), **loose)
    compare_gradients(lambda x: torch.renorm(x, p, 0, 2.0), make((3, 4), dtype), **{k: 10 * v for k, v in loose.items()})


def test_renorm_edges_and_errors():
    compare(lambda x: torch.renorm(x, 2, 0, 1.0), torch.tensor([[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 1.0], [0.6, 0.8]]))
    compare(lambda x: torch.renorm(x, 2, 0, 0.0), make((3, 4)))
    compare(lambda x: torch.renorm(x, 2, 0, 1.0), torch.zeros(0, 3))
    compare_errors(lambda x: torch.renorm(x, 2, 0, 1.0), make((3,)))
    compare_errors(lambda x: torch.renorm(x, -1, 0, 1.0), make((3, 3)))
    compare_errors(lambda x: torch.renorm(x, 2, 0, -1.0), make((3, 3)))
    compare_errors(lambda x: torch.renorm(x, 2, 2, 1.0), make((3, 3)))
    compare_errors(lambda x: torch.renorm(x, 2, 0, 1.0), make((3, 3), torch.int64))
