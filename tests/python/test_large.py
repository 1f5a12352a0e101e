# SPDX-License-Identifier: BSD-3-Clause
"""Tensors of more than 2^31 elements, a test for each family: positions, counts and strides that 32 bits do not hold. Bytes or halves in one or two
large buffers at a time (6 GB at most), checked where they wrap round. One after the other, in one process."""
import pytest
import torch
from torch.nn import functional as F

pytestmark = pytest.mark.xdist_group("large")  # in one process, one after the other

N = 2**31 + 1024  # elements; a multiple of 1024
PLACES = (0, 1, 2**31 - 1, 2**31, N - 1)  # the last ones are negative, or small, in 32 bits
MARKS = (3, 5, 7, 11, 13)


@pytest.fixture(scope="module")
def shared():
    """Zeros but for MARKS at PLACES. No test may change it."""
    x = torch.zeros(N, dtype=torch.uint8, device="mps")
    for place, mark in zip(PLACES, MARKS):
        x[place] = mark
    yield x
    del x
    torch.mps.empty_cache()


@pytest.fixture
def large(shared):
    yield shared
    torch.mps.synchronize()
    torch.mps.empty_cache()


def at(x, places=PLACES):
    return [x[place].item() for place in places]


def test_pointwise(large):
    y = large + 1
    assert at(y) == [m + 1 for m in MARKS] and y.max().item() == 14 and y.min().item() == 1
    y.mul_(large)
    assert at(y) == [m * (m + 1) for m in MARKS] and y[5:9].tolist() == [0] * 4
    del y
    flipped = large.view(2, -1).t().ne(0)  # strided
    assert flipped[0, 0].item() and flipped[-1, 1].item() and flipped.sum().item() == len(MARKS)


def test_pointwise_of_halves():
    x = torch.ones(N, dtype=torch.float16, device="mps")
    x.add_(0.5)
    assert at(x) == [1.5] * 5
    x[2**31:].mul_(2)
    assert at(x) == [1.5, 1.5, 1.5, 3.0, 3.0]
    assert x.view(2, -1).t()[-1].tolist() == [1.5, 3.0]
    assert x.mean(dtype=torch.float32).item() == pytest.approx(1.5, abs=1e-5)


def test_reduce(large):
    assert large.sum().item() == sum(MARKS)
    assert large.max().item() == 13 and large.argmax().item() == N - 1
    assert large.count_nonzero().item() == len(MARKS)
    assert large.view(2, -1).sum(1).tolist() == [3 + 5, 7 + 11 + 13]
    columns = large.view(-1, 1024).sum(0)
    assert columns[[0, 1, 1023]].tolist() == [14, 5, 20] and columns.sum().item() == sum(MARKS)
    assert large.view(-1, 1024).amax(1)[[0, -2, -1]].tolist() == [5, 7, 13]
    assert large.any().item() and not large.all().item()


def test_copy_and_cat(large):
    half = large[N // 2:]
    y = torch.cat([half, half])
    assert at(y, (2**31 - 1 - N // 2, N // 2 - 1, N - 1, 2**31 - 1, 0)) == [7, 13, 13, 7, 0]
    assert y.sum().item() == 2 * (7 + 11 + 13)
    del y
    y = large.view(2, -1).t().contiguous().view(-1)
    assert at(y, (0, 2, N - 1, N - 2)) == [3, 5, 13, 0] and y.sum().item() == sum(MARKS)
    y.copy_(large)
    assert at(y) == list(MARKS)
    assert large[2**31 - 2:].cpu()[[0, 1, 2, -1]].tolist() == [0, 7, 11, 13]
    del y
    assert large.roll(5)[[5, 6, 4, 3, 2**31 + 5]].tolist() == [3, 5, 13, 0, 11]


def test_index(large):
    places = torch.tensor(PLACES, device="mps")
    assert large[places].tolist() == list(MARKS)
    assert large[places - N].tolist() == list(MARKS)
    assert large.index_select(0, places).tolist() == list(MARKS)
    assert large.gather(0, places).tolist() == list(MARKS)
    assert large.take(places).tolist() == list(MARKS)
    assert large.nonzero().view(-1).tolist() == list(PLACES)
    assert large[large.ne(0)].tolist() == list(MARKS)
    y = large.clone()
    y[places] = 1
    y.scatter_add_(0, places, torch.full((5,), 2, dtype=torch.uint8, device="mps"))
    assert at(y) == [3] * 5
    y.index_put_((places[3:],), torch.tensor([40, 50], dtype=torch.uint8, device="mps"), accumulate=True)
    y.index_fill_(0, places[:1], 9)
    assert at(y) == [9, 3, 3, 43, 53]
    y.masked_fill_(large.ne(0), 4)
    assert at(y) == [4] * 5 and y.sum().item() == 20
    with pytest.raises(torch.AcceleratorError):
        large[torch.tensor([N], device="mps")]
        torch.mps.synchronize()


def test_sort_and_topk(large):
    values, indices = large.topk(5)
    assert values.tolist() == sorted(MARKS, reverse=True) and indices.tolist() == list(PLACES)[::-1]
    values, indices = large.view(1024, -1).topk(2, dim=1)
    assert values[0].tolist() == [5, 3] and values[-1, 0].item() == 13 and indices[-1, 0].item() == N // 1024 - 1


def test_scan():
    x = torch.full((1, 1), 2.0**-10, dtype=torch.float16, device="mps").expand(2, N // 2)
    y = x.cumsum(0)
    assert y[:, [0, -1]].tolist() == [[2.0**-10] * 2, [2.0**-9] * 2] and y[1].amax().item() == 2.0**-9


def test_softmax_and_norm():
    row = torch.linspace(-1, 1, 4096).half().to("mps")
    x = row.expand(2**19 + 1, 4096).contiguous()
    torch.softmax(x, 1, out=x)
    assert torch.equal(x[-1], x[0]) and torch.equal(x[2**19 - 1], x[0])
    torch.testing.assert_close(x[0], F.softmax(row.float(), 0).half())
    row = x[0].float()
    F.normalize(x, dim=1, out=x)
    assert torch.equal(x[-1], x[0]) and torch.equal(x[2**19 - 1], x[0])
    torch.testing.assert_close(x[0], F.normalize(row, dim=0).half())
    assert torch.linalg.vector_norm(x, dim=1, dtype=torch.float32)[[0, 2**19 - 1, 2**19]].tolist() == pytest.approx([1.0] * 3, abs=1e-3)


def test_pool(large):
    x = large.view(1, 1, -1, 1024)
    y = F.max_pool2d(x, (64, 64), ceil_mode=True)
    assert y[0, 0, 0, 0].item() == 5 and y[0, 0, -1, -1].item() == 13 and y[0, 0, -1, 0].item() == 11
    y, places = F.max_pool2d(x, (64, 64), ceil_mode=True, return_indices=True)
    assert places[0, 0, -1, [0, -1]].tolist() == [2**31, N - 1]


def test_random():
    x = torch.empty(N, dtype=torch.uint8, device="mps").random_(0, 256)
    for part in (x[: 2**20], x[2**31 - 2**19: 2**31 + 512], x[-(2**20):]):
        assert part.float().mean().item() == pytest.approx(127.5, abs=0.6)
    assert not torch.equal(x[:1024], x[2**31:]) and not torch.equal(x[: 2**20], x[2**30: 2**30 + 2**20])


def test_pad(large):
    y = F.pad(large.view(1, -1)[:, 3:], (3, 2), value=9).view(-1)
    assert at(y, (0, 2, 2**31 - 1, 2**31, N - 1, N, N + 1)) == [9, 9, 7, 11, 13, 9, 9]


def test_interpolate():
    x = torch.zeros(1, 1, 2**15 + 8, 2**14, dtype=torch.uint8, device="mps")
    x[0, 0, -1, -1], x[0, 0, 2**15, 0] = 5, 7
    y = F.interpolate(x, scale_factor=2, mode="nearest")
    assert y.numel() > 2**31 and y[0, 0, -2:, -2:].sum().item() == 20 and y[0, 0, 2**16: 2**16 + 2, :2].sum().item() == 28
    assert y.sum().item() == 48


def test_search(large):
    steps = torch.zeros(N, dtype=torch.uint8, device="mps")
    steps[2**31 + 1:] = 4
    values = torch.tensor([0, 1, 4, 5], dtype=torch.uint8, device="mps")
    assert torch.searchsorted(steps, values).tolist() == [0, 2**31 + 1, 2**31 + 1, N]
    assert torch.searchsorted(steps, values, right=True).tolist() == [2**31 + 1, 2**31 + 1, N, N]
    del steps
    found = torch.isin(large, values[1:])
    assert found.sum().item() == 1 and found[1].item()


def test_unique(large):
    values, counts = torch.unique_consecutive(large, return_counts=True)
    assert values.tolist() == [3, 5, 0, 7, 11, 0, 13] and counts.tolist() == [1, 1, 2**31 - 3, 1, 1, 1022, 1]
