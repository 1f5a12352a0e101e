# SPDX-License-Identifier: BSD-3-Clause
"""Functions of torch.special whose truth is worked out here."""
import math
import decimal

import torch

from compare import REDUCED, compare, compare_errors, make


def airy_ai(x):
    """The Maclaurin series, with as many digits as it takes."""
    with decimal.localcontext() as context:
        context.prec = 80
        cube, tiny = decimal.Decimal(x) ** 3, decimal.Decimal(10) ** -70
        total = decimal.Decimal(0)
        starts = ((decimal.Decimal("0.35502805388781723926006318600418317639797917419917752"), decimal.Decimal(1), 1),
                  (decimal.Decimal("-0.25881940379280679840518356018920396347909113835493458"), decimal.Decimal(x), 0))
        for factor, term, k in starts:
            n = 1
            while True:
                total += factor * term
                term *= cube / ((3 * n - k) * (3 * n - k + 1))
                if abs(term) < tiny and n > 60:
                    break
                n += 1
        return float(total)


def test_airy_ai():
    """Against the series, since the CPU is wrong by 2e-5 below -2.09; farther out against the CPU's double."""
    x = torch.cat([torch.linspace(-8, 8, 641), torch.linspace(-3.1, -2, 111), torch.linspace(2, 2.2, 21)])
    truth = torch.tensor([airy_ai(v) for v in x.tolist()], dtype=torch.float64)
    got = torch.special.airy_ai(x.to("mps")).cpu()
    assert ((got - truth).abs() <= torch.where(x < -1, 1.5e-7, 8e-7 * truth.abs())).all()
    for x in (torch.linspace(8, 24, 1001), torch.linspace(-2000, -8, 10001)):
        truth, got = torch.special.airy_ai(x.double()), torch.special.airy_ai(x.to("mps")).cpu()
        assert ((got - truth).abs() <= 1e-6 * truth.abs() + (x < 0) * 3e-7).all()
    compare(torch.special.airy_ai, torch.tensor([float("inf"), -float("inf"), float("nan"), 0.0, -0.0, 104.0, 1e30]))
    compare(torch.special.airy_ai, torch.tensor([-2, 0, 1, 3]))
    compare(torch.special.airy_ai, torch.tensor([True, False]))
    compare(lambda x, out: torch.special.airy_ai(x, out=out), make((3, 4)), torch.zeros(4, 3).t())
    for dtype in REDUCED:
        x = make((100,), dtype)
        torch.testing.assert_close(torch.special.airy_ai(x.to("mps")).cpu(), torch.special.airy_ai(x.float()).to(dtype))
    compare_errors(torch.special.airy_ai, torch.tensor([1j]), same_text=False)


def test_zeta_and_incomplete_gamma_far_away():
    """Where powers underflow or ratios are huge, the limits; NaN beside infinities as on the CPU."""
    s = torch.tensor([40.0, 60.0, 200.0, 80.0, 255.0, 1e4, 30.0, 2.0, 5.0, 38.0])
    q = torch.tensor([50.0, 1e3, 30.0, 200.0, 255.0, 1e4, 100.0, 1e20, -1001.2, 10.0])
    torch.testing.assert_close(torch.special.zeta(s.to("mps"), q.to("mps")).cpu(), torch.special.zeta(s, q), rtol=1e-5, atol=1e-37)
    numbers = torch.tensor([0.0, 1e-3, 1.0, 150.0, 501.0, 13437.7, 4988429.0, 1e20, math.inf, math.nan])
    a, x = numbers.repeat_interleave(len(numbers)), numbers.repeat(len(numbers))
    for function in (torch.special.gammainc, torch.special.gammaincc):
        torch.testing.assert_close(function(a.to("mps"), x.to("mps")).cpu(), function(a, x), rtol=2e-3, atol=1e-6, equal_nan=True)
