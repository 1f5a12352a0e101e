# SPDX-License-Identifier: BSD-3-Clause
"""Random numbers: the distribution (Kolmogorov-Smirnov or chi-square, fixed seeds), repeatability, independence of layout and threads."""
import math

import pytest
import torch
from scipy import stats
from torch.nn import functional as F

from compare import FLOATS, INTEGERS

N = 200_000
LEVEL = 1e-4  # probability of a false alarm; seeds are fixed, so a test that passes goes on passing


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1234)


def fits(sample, distribution, *arguments):
    """Kolmogorov-Smirnov against a named distribution of scipy."""
    assert stats.kstest(sample.float().cpu().numpy().ravel(), distribution, arguments).pvalue > LEVEL


def counts_fit(sample, probabilities):
    """Chi-square of counts of 0..k-1 against probabilities."""
    counts = torch.bincount(sample.cpu().long().ravel(), minlength=len(probabilities)).double()
    expected = torch.tensor(probabilities, dtype=torch.float64) / sum(probabilities) * counts.sum()
    assert len(counts) == len(probabilities)
    keep = expected > 0
    assert counts[~keep].sum() == 0
    assert stats.chisquare(counts[keep].numpy(), expected[keep].numpy()).pvalue > LEVEL


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform(dtype):
    x = torch.empty(N, device="mps", dtype=dtype).uniform_(-2, 3)
    assert x.min() >= -2 and x.max() <= 3 and x.dtype == dtype
    if dtype == torch.float32:
        fits(x, "uniform", -2, 5)
    assert abs(x.float().mean().item() - 0.5) < 0.02
    assert torch.rand(N, device="mps", dtype=dtype).max() < 1


def test_floating_distributions():
    fits(torch.randn(N, device="mps"), "norm")
    fits(torch.empty(N, device="mps").normal_(3, 0.5), "norm", 3, 0.5)
    fits(torch.empty(N, device="mps").exponential_(2.0), "expon", 0, 0.5)
    fits(torch.empty(N, device="mps").cauchy_(1, 2), "cauchy", 1, 2)
    fits(torch.empty(N, device="mps").log_normal_(0.5, 0.25).log(), "norm", 0.5, 0.25)
    assert torch.empty(10 * N, device="mps").exponential_().min() > 0
    complex_normal = torch.randn(N, device="mps", dtype=torch.complex64)
    fits(complex_normal.real, "norm", 0, math.sqrt(0.5))
    fits(complex_normal.imag, "norm", 0, math.sqrt(0.5))


def test_normals_are_independent():
    """Pairs from one Box-Muller step, and neighbours, must not be correlated."""
    x = torch.randn(2 * N, device="mps").cpu().double()
    for lag in (1, 2, 3, 4, 5):
        assert abs((x[:-lag] * x[lag:]).mean().item()) < 5 / math.sqrt(2 * N)


def test_geometric_and_bernoulli():
    x = torch.empty(N, device="mps").geometric_(0.3)
    counts_fit(x.clamp(max=12), [0] + [0.3 * 0.7 ** (k - 1) for k in range(1, 12)] + [0.7**11])
    for dtype in FLOATS + INTEGERS + (torch.bool,):
        b = torch.empty(N, device="mps", dtype=dtype).bernoulli_(0.25)
        assert b.dtype == dtype
        counts_fit(b, [0.75, 0.25])
    p = torch.linspace(0, 1, N, device="mps")
    b = torch.bernoulli(p)
    assert abs(b.mean().item() - 0.5) < 0.01 and abs(b[: N // 10].mean().item() - 0.05) < 0.01
    assert torch.bernoulli(torch.tensor([0.0, 1.0], device="mps").repeat(1000)).view(-1, 2).float().mean(0).tolist() == [0, 1]


def test_integers():
    counts_fit(torch.randint(0, 7, (N,), device="mps"), [1] * 7)
    counts_fit(torch.randint(-3, 4, (N,), device="mps", dtype=torch.int8) + 3, [1] * 7)
    wide = torch.randint(-(2**62), 2**62, (N,), device="mps").cpu()
    assert wide.min() < -(2**61) and wide.max() > 2**61
    counts_fit((wide >> 60) + 4, [1] * 8)
    everything = torch.empty(N, dtype=torch.int64, device="mps").random_(-(2**63), None).cpu()
    counts_fit((everything >> 61) + 4, [1] * 8)
    for dtype, top in ((torch.uint8, 255), (torch.int8, 127), (torch.int16, 2**15 - 1), (torch.float16, 2**11), (torch.bool, 1)):
        x = torch.empty(N, dtype=dtype, device="mps").random_().cpu()
        assert x.min() >= 0 and x.max() == top


@pytest.mark.parametrize("n", [0, 1, 2, 5, 1000])
def test_randperm(n):
    x = torch.randperm(n, device="mps")
    assert x.dtype == torch.int64 and torch.equal(x.sort()[0].cpu(), torch.arange(n))
    assert torch.randperm(n, device="mps", dtype=torch.int32).dtype == torch.int32


def test_randperm_is_even():
    orders = torch.stack([torch.randperm(3, device="mps") for _ in range(6000)]).cpu()
    counts_fit(orders @ torch.tensor([9, 3, 1]), [1 if sorted({k // 9, k // 3 % 3, k % 3}) == [0, 1, 2] else 0 for k in range(22)])


@pytest.mark.parametrize("n", [4096, 4097, 10_001, 300_000])
def test_large_permutations(n):
    """Numbers are dealt to buckets, which are shuffled: neither bounds between buckets nor order within them may be seen."""
    x = torch.randperm(n, device="mps")
    assert torch.equal(x.sort()[0].cpu(), torch.arange(n))
    x = x.cpu()
    table = torch.bincount(torch.arange(n) * 12 // n * 12 + x * 12 // n, minlength=144).view(12, 12)
    assert stats.chi2_contingency(table.numpy()).pvalue > LEVEL
    ascents = (x[1:] > x[:-1]).sum().item()
    assert abs(ascents - (n - 1) / 2) < 5 * math.sqrt((n + 1) / 12)
    assert (x == torch.arange(n)).sum() < 12
    assert not torch.equal(x, torch.randperm(n, device="mps").cpu())


def test_multinomial_of_many_categories():
    for categories in (15, 16, 17, 100, 1000):
        weights = torch.rand(2, categories, generator=torch.Generator().manual_seed(categories))
        weights[:, ::3] = 0
        weights[1, -(categories // 2):] = 0
        weights[1, 1] += 1
        for laid_out in (weights, weights.t().contiguous().t()):
            sample = torch.multinomial(laid_out.to("mps"), N, replacement=True)
            for row, expected in zip(sample, weights):
                counts_fit(row, expected.tolist())


def test_multinomial():
    weights = torch.tensor([0.0, 1.0, 3.0, 0.0, 4.0, 2.0], device="mps")
    counts_fit(torch.multinomial(weights, N, replacement=True), weights.tolist())
    counts_fit(torch.cat([torch.multinomial(weights, 1) for _ in range(3000)]), weights.tolist())
    rows = torch.multinomial(weights.expand(4, 6), N // 10, replacement=True)
    for row in rows:
        counts_fit(row, weights.tolist())
    without = torch.multinomial(weights.expand(500, 6), 4)
    assert all(sorted(row) == [1, 2, 4, 5] for row in without.tolist())
    assert torch.multinomial(weights.half(), 5, replacement=True).dtype == torch.int64


@pytest.mark.parametrize("weights", [[1.0, -1.0], [float("nan"), 1.0], [float("inf"), 1.0], [0.0, 0.0]])
@pytest.mark.parametrize("replacement", [True, False])
def test_multinomial_refuses(weights, replacement):
    with pytest.raises(RuntimeError, match="probability tensor contains|invalid multinomial distribution"):
        torch.multinomial(torch.tensor(weights, device="mps"), 2 if replacement else 1, replacement=replacement)
        torch.mps.synchronize()


@pytest.mark.parametrize("dtype", FLOATS)
def test_dropout(dtype):
    x = torch.ones(N, device="mps", dtype=dtype, requires_grad=True)
    y = F.dropout(x, 0.2)
    kept = y != 0
    counts_fit(kept, [0.2, 0.8])
    assert torch.allclose(y[kept].float(), torch.tensor(1.25, device="mps"), rtol=1e-2)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert torch.equal(F.dropout(x, 0.5, training=False), x) and F.dropout(x, 1.0).abs().sum() == 0
    out, mask = torch.native_dropout(x, 0.2, True)
    assert mask.dtype == torch.bool and torch.equal(out != 0, mask)


def draw(shape=(50, 41)):
    return [torch.rand(shape, device="mps"), torch.randn(shape, device="mps"), torch.randint(0, 1000, shape, device="mps"),
            torch.empty(shape, device="mps").exponential_(), torch.randperm(100, device="mps")]


def test_same_seed_same_numbers():
    torch.mps.manual_seed(5)
    first = draw()
    second = draw()
    assert not any(torch.equal(a, b) for a, b in zip(first, second))
    torch.mps.manual_seed(5)
    assert all(torch.equal(a, b) for a, b in zip(first, draw()))
    torch.manual_seed(5)  # reaches mps as well
    assert all(torch.equal(a, b) for a, b in zip(first, draw()))


def test_state_goes_back_and_forth():
    state = torch.mps.get_rng_state()
    first = draw()
    torch.mps.set_rng_state(state)
    assert all(torch.equal(a, b) for a, b in zip(first, draw()))
    with torch.random.fork_rng(device_type="mps", devices=[0]):
        inside = torch.rand(5, device="mps")
    assert torch.equal(inside, torch.rand(5, device="mps"))


def test_generator_objects():
    a, b = torch.Generator("mps").manual_seed(9), torch.Generator("mps").manual_seed(9)
    assert torch.equal(torch.rand(100, generator=a, device="mps"), torch.rand(100, generator=b, device="mps"))
    assert a.initial_seed() == 9
    c = torch.Generator("mps")
    c.set_state(a.get_state())
    assert torch.equal(torch.randn(100, generator=a, device="mps"), torch.randn(100, generator=c, device="mps"))


@pytest.mark.parametrize("fill", [lambda x: x.uniform_(), lambda x: x.normal_(), lambda x: x.random_(0, 100), lambda x: x.bernoulli_(0.5)])
def test_numbers_do_not_depend_on_layout(fill):
    torch.mps.manual_seed(3)
    straight = fill(torch.empty(30, 50, device="mps"))
    for view in (torch.empty(50, 30, device="mps").t(), torch.empty(30, 100, device="mps")[:, ::2], torch.empty(1501, device="mps")[1:].view(30, 50)):
        torch.mps.manual_seed(3)
        assert torch.equal(fill(view), straight)


def test_arguments_are_checked():
    x = torch.empty(3, device="mps")
    for call in (lambda: x.uniform_(2, 1), lambda: x.normal_(0, -1), lambda: x.exponential_(0), lambda: x.bernoulli_(1.5), lambda: x.geometric_(0),
                 lambda: x.cauchy_(0, -1), lambda: torch.randint(5, 5, (2,), device="mps"), lambda: torch.multinomial(x, 0), lambda: torch.randperm(-1, device="mps")):
        with pytest.raises(RuntimeError):
            call()


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64,
                                   torch.float16, torch.bfloat16, torch.float32])
def test_bounds_of_integers_are_checked(dtype):
    for bounds in [(0, 2**62), (2**40, 2**62), (2**40, None), (-2**40, 1), (-2**40, None), (5, 5), (0, None), (-1, 1), (-1, None)]:
        try:
            torch.zeros(3, dtype=dtype).random_(*bounds)
        except RuntimeError as error:
            with pytest.raises(RuntimeError) as raised:
                torch.zeros(3, dtype=dtype, device="mps").random_(*bounds)
            assert str(raised.value).split("\n")[0] == str(error).split("\n")[0]
        else:
            torch.zeros(3, dtype=dtype, device="mps").random_(*bounds)


def test_bernoulli_of_whole_numbers():
    """As the CPU: refused, but for empty tensors."""
    for dtype in (torch.bool, torch.int32):
        assert torch.bernoulli(torch.zeros(0, 3, dtype=dtype, device="mps")).shape == (0, 3)
        with pytest.raises(NotImplementedError) as cpu:
            torch.bernoulli(torch.zeros(3, dtype=dtype))
        with pytest.raises(NotImplementedError) as mps:
            torch.bernoulli(torch.zeros(3, dtype=dtype, device="mps"))
        assert str(mps.value) == str(cpu.value)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.bool])
def test_large_tensors_of_small_integers_get_the_same_numbers_in_parts(dtype):
    count = 2**22 * 2 + 77
    for fill in (lambda x: x.random_(0, 2), lambda x: x.bernoulli_(0.3)):
        torch.manual_seed(5)
        parts = fill(torch.empty(count, dtype=dtype, device="mps"))
        after = torch.rand(1, device="mps")
        torch.manual_seed(5)
        whole = fill(torch.empty(2 * count, dtype=dtype, device="mps")[::2])
        assert torch.equal(parts, whole) and torch.equal(after, torch.rand(1, device="mps"))
