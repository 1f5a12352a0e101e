# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers found by rejection: their distributions (fixed seeds), repeatability, independence of layout, and gradients."""
import pytest
import torch
from scipy import stats

from compare import REDUCED, compare, compare_errors, layouts
from test_random import LEVEL, N, counts_fit, fits

TINY = torch.finfo(torch.float32).tiny


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1234)


@pytest.mark.parametrize("alpha", [0.2, 0.99, 1.0, 2.5, 9.0, 1000.0])
def test_gamma(alpha):
    fits(torch._standard_gamma(torch.full((N,), alpha, device="mps")), "gamma", alpha)


@pytest.mark.parametrize("alpha", [[0.3, 2.0], [5.0, 5.0], [0.01, 0.02], [1.0, 2.0, 30.0]])
def test_dirichlet(alpha):
    x = torch._sample_dirichlet(torch.tensor(alpha, device="mps").expand(N, len(alpha)))
    assert torch.allclose(x.sum(-1).cpu(), torch.ones(N), atol=1e-6) and 0 < x.min() and x.max() < 1
    for i, a in enumerate(alpha):
        sample = x[:, i].cpu().double().numpy()
        inside = (sample > 1e-6) & (sample < 1 - 1e-6)  # a float is coarse near 1
        beta = stats.beta(a, sum(alpha) - a)
        low, high = beta.cdf(1e-6), beta.cdf(1 - 1e-6)
        assert abs(inside.mean() - (high - low)) < 0.006
        if inside.sum() > 100:
            assert stats.kstest(sample[inside], lambda v: (beta.cdf(v) - low) / (high - low)).pvalue > LEVEL  # noqa: B023 - used at once


@pytest.mark.parametrize("rate", [0.1, 1.0, 7.0, 10.0, 25.0, 400.0])
def test_poisson(rate):
    law = stats.poisson(rate)
    low, high = int(law.ppf(1e-3)), int(law.ppf(1 - 1e-3))
    x = torch.poisson(torch.full((N,), rate, device="mps")).clamp(low, high) - low
    counts_fit(x, [law.cdf(low)] + [law.pmf(k) for k in range(low + 1, high)] + [law.sf(high - 1)])


@pytest.mark.parametrize("rate", [1e5, 1e7])
def test_poisson_of_large_rates(rate):
    x = torch.poisson(torch.full((N,), rate, device="mps")).cpu().double()
    fits((x + torch.rand(N) - 0.5 - rate) / rate**0.5, "norm", 1 / (6 * rate**0.5))


@pytest.mark.parametrize("count, probability", [(1, 0.3), (10, 0.5), (40, 0.1), (40, 0.9), (30, 0.5), (1000, 0.02), (1000, 0.6), (100_000, 3e-4)])
def test_binomial(count, probability):
    law = stats.binom(count, probability)
    low, high = int(law.ppf(1e-3)), int(law.ppf(1 - 1e-3))
    x = torch.binomial(torch.full((N,), float(count), device="mps"), torch.tensor(probability, device="mps")).clamp(low, high) - low
    counts_fit(x, [law.cdf(low)] + [law.pmf(k) for k in range(low + 1, high)] + ([law.sf(high - 1)] if high > low else []))


def test_binomial_of_many():
    count, p = 1e7, 0.3
    x = torch.binomial(torch.full((N,), count, device="mps"), torch.tensor(p, device="mps")).cpu().double()
    fits((x + torch.rand(N) - 0.5 - count * p) / (count * p * (1 - p)) ** 0.5, "norm")


def test_edges():
    nan, inf = float("nan"), float("inf")
    gamma = torch._standard_gamma(torch.tensor([0.0, 1e-30, 1e-3, 1e20, inf, nan], device="mps")).cpu()
    assert torch.equal(gamma[:2], torch.full((2,), TINY)) and gamma[2] >= TINY and abs(gamma[3] / 1e20 - 1) < 1e-6
    assert gamma[4] == inf and gamma[5].isnan()
    compare(torch._sample_dirichlet, torch.tensor([0.0, 1e-30, 1e-3, 1e20]))
    compare(torch._sample_dirichlet, torch.tensor(1.0))
    compare(torch._sample_dirichlet, torch.ones(2, 0))
    compare(torch.poisson, torch.zeros(5))
    compare(torch.binomial, torch.tensor([-1.0, 2.0, 3.0, 0.0, 5.0]), torch.tensor([0.5, 1.5, -0.5, 0.5, 1.0]))
    compare(torch.binomial, torch.tensor([2.0, 3.0]), torch.tensor([nan, 1.0]))
    assert torch.binomial(torch.tensor([nan], device="mps"), torch.tensor([0.5], device="mps")).isnan().all()
    assert torch.poisson(torch.tensor([1e30, inf], device="mps")).tolist() == [torch.tensor(1e30).item(), inf]
    for function in (torch._standard_gamma, torch._sample_dirichlet, torch.poisson):
        compare(function, torch.empty(0, 3), strides=True)


@pytest.mark.parametrize("dtype", REDUCED)
def test_reduced(dtype):
    alpha = torch.full((N,), 2.5, device="mps", dtype=dtype)
    assert torch._standard_gamma(alpha).dtype == dtype and abs(torch._standard_gamma(alpha).float().mean().item() - 2.5) < 0.02
    assert abs(torch.poisson(alpha).float().mean().item() - 2.5) < 0.02
    d = torch._sample_dirichlet(torch.full((N, 2), 0.05, device="mps", dtype=dtype))
    assert d.dtype == dtype and d.max() < 1 and d.min() > 0


SAMPLERS = {"gamma": torch._standard_gamma, "dirichlet": torch._sample_dirichlet, "poisson": torch.poisson,
            "binomial": lambda x: torch.binomial(x.mul(20).round(), x / 8)}


@pytest.mark.parametrize("name", SAMPLERS)
def test_numbers_go_by_position(name):
    """Layout, the device's threads and neighbours' rejections do not change a number; the seed does."""
    def drawn(x):
        torch.manual_seed(7)
        return SAMPLERS[name](x).cpu()

    x = torch.rand(40, 60) * 7 + 0.1
    expected = drawn(x.to("mps"))
    for layout, y in layouts(x):
        if layout != "expanded":
            assert torch.equal(drawn(y.to("mps") if layout != "transposed" else x.to("mps").t().contiguous().t()), expected)
    assert torch.equal(drawn(x.to("mps")), expected)
    if name != "dirichlet":
        other = x.clone()
        other[::2] += 1
        assert torch.equal(drawn(other.to("mps"))[1::2], expected[1::2])
    torch.manual_seed(8)
    assert not torch.equal(SAMPLERS[name](x.to("mps")).cpu(), expected)
    generator = torch.Generator(device="mps").manual_seed(7)
    if name == "gamma":
        assert torch.equal(torch._standard_gamma(x.to("mps"), generator=generator).cpu(), expected)


def test_strides():
    x = torch.rand(3, 4).t()
    for function in SAMPLERS.values():
        assert function(x.to("mps")).stride() == function(x).stride()


def test_refuses():
    with pytest.raises(RuntimeError, match="invalid Poisson rate, expected rate to be non-negative"):
        torch.poisson(torch.tensor([1.0, -1.0], device="mps"))
        torch.mps.synchronize()
    for function in (torch._standard_gamma, torch._sample_dirichlet, torch.poisson):
        compare_errors(function, torch.ones(3, dtype=torch.int64))
    compare_errors(torch.binomial, torch.ones(3, dtype=torch.int64), torch.ones(3))
    compare_errors(torch.binomial, torch.ones(3), torch.ones(3).half())
    compare_errors(torch._standard_gamma_grad, torch.ones(3), torch.ones(2))
    compare_errors(torch._dirichlet_grad, torch.ones(3), torch.ones(3), torch.ones(3).half())


def grid(*axes):
    return [t.flatten() for t in torch.meshgrid(*[torch.tensor(a) for a in axes], indexing="ij")]


def test_gradient_of_gamma():
    alpha, scale = grid([1e-4, 1e-2, 0.1, 0.5, 1.0, 2.0, 5.0, 8.0, 8.5, 20.0, 100.0, 1e4, 1e6],
                        [0.0, 1e-20, 1e-3, 0.1, 0.3, 0.7, 0.85, 0.91, 0.99, 1.0, 1.01, 1.09, 1.12, 1.5, 3.0, 10.0])
    compare(torch._standard_gamma_grad, alpha, alpha * scale, rtol=2e-4, atol=1e-7)
    x = torch.distributions.Gamma(alpha, torch.ones(())).sample()
    compare(torch._standard_gamma_grad, alpha, x, rtol=2e-4, atol=1e-7)
    compare(torch._standard_gamma_grad, alpha.view(13, 16).t(), torch.ones(16, 1), rtol=2e-4, strides=True)


def test_gradient_of_dirichlet():
    x, alpha, beta = grid([1e-6, 1e-3, 0.05, 0.2, 0.4, 0.5, 0.6, 0.8, 0.99, 0.99999], [1e-2, 0.3, 1.0, 3.0, 6.5, 20.0, 200.0],
                          [1e-2, 0.3, 1.0, 3.0, 6.5, 20.0, 200.0])
    expected = torch._dirichlet_grad(x.double(), alpha.double(), (alpha + beta).double())
    actual = torch._dirichlet_grad(x.to("mps"), alpha.to("mps"), (alpha + beta).to("mps")).cpu()
    usual = torch._dirichlet_grad(x, alpha, alpha + beta)
    good = expected.abs() < 1e30
    error = ((actual - expected).abs() / (expected.abs() + 1e-6))[good]
    own = ((usual - expected).abs() / (expected.abs() + 1e-6))[good]
    assert (error <= 1e-3 + 4 * own).all()


def test_reparameterized_gradients():
    """Through torch.distributions: the same sample and the CPU's formula for its gradient."""
    alpha = torch.tensor([0.2, 0.9, 3.0, 40.0])
    on_mps = alpha.to("mps").requires_grad_()
    sample = torch.distributions.Gamma(on_mps, torch.ones((), device="mps")).rsample((50,))
    sample.sum().backward()
    expected = torch._standard_gamma_grad(alpha.expand(50, 4), sample.detach().cpu()).sum(0)
    assert torch.allclose(on_mps.grad.cpu(), expected, rtol=1e-4)
    on_mps = alpha.to("mps").requires_grad_()
    for distribution in (torch.distributions.Dirichlet(on_mps), torch.distributions.Beta(on_mps, on_mps.detach())):
        sample = distribution.rsample((20,))
        (sample**2).sum().backward()
        assert on_mps.grad.isfinite().all()
    on_mps = alpha.to("mps").requires_grad_()
    sample = torch.distributions.Dirichlet(on_mps).rsample()
    sample.backward(torch.arange(4.0, device="mps"))
    on_cpu, x = alpha.clone(), sample.detach().cpu()
    weights = torch._dirichlet_grad(x, on_cpu, on_cpu.sum().expand(4))
    grad = torch.arange(4.0)
    assert torch.allclose(on_mps.grad.cpu(), weights * (grad - (grad * x).sum()), rtol=1e-3, atol=1e-6)
    assert torch.distributions.NegativeBinomial(torch.tensor(5.0, device="mps"), torch.tensor(0.5, device="mps")).sample((100,)).min() >= 0
