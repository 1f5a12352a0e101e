# SPDX-License-Identifier: BSD-3-Clause
"""The same numbers, to the bit, whatever the number of threads, and again and again: every family on tensors large enough to be divided."""
import hashlib
import os
import subprocess
import sys

import pytest
import torch
from torch.nn import functional as F

from compare import make

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def gradients(function, *inputs):
    inputs = [x.clone().requires_grad_() if x.is_floating_point() else x for x in inputs]
    output = function(*inputs)
    return [output, *torch.autograd.grad(output.sum(), [x for x in inputs if x.requires_grad])]


def seeded(function):
    torch.manual_seed(3)
    return function()


def programs():
    """name -> results on mps. Sizes are odd, and above what one thread takes."""
    wide, tall, flat = (make(shape, seed=i).to("mps") for i, shape in enumerate([(37, 20011), (20011, 37), (300007,)]))
    images, kernel = make((5, 8, 61, 67)).to("mps"), make((12, 8, 3, 3)).to("mps")
    index = make((200003,), torch.int64, low=0, high=5003).to("mps")
    square = make((3, 131, 131)).to("mps")
    updates = make((200003,)).to("mps")
    # ---- reductions, scans, norms ----
    yield "sum", [flat.sum(), wide.sum(0), wide.sum(1), tall.sum(0), tall.sum(1), flat.half().sum(), (flat > 0).sum()]
    yield "mean, var", [flat.mean(), *torch.var_mean(wide, 1), *torch.var_mean(tall, 0), flat.std(), wide.norm(dim=1), flat.norm(3), flat.logsumexp(0), flat.prod()]
    yield "extremes", [*wide.max(1), *tall.min(0), flat.argmax(), *flat.aminmax(), *wide.median(1), *wide.mode(0)]
    yield "scan", [flat.cumsum(0), wide.cumsum(0), wide.cumsum(1), (wide * 0.01).exp().cumprod(1), flat.logcumsumexp(0), *flat.cummax(0)]
    yield "softmax", gradients(lambda x: x.softmax(1).square(), wide) + gradients(lambda x: x.log_softmax(0).square(), tall)
    yield "norms", gradients(lambda x: F.layer_norm(x, (37,)).square(), tall) + gradients(lambda x: F.batch_norm(x, None, None, training=True).square(), images) + gradients(
        lambda x: F.group_norm(x, 4).square(), images)
    yield "losses", gradients(lambda x: F.cross_entropy(x, (x[:, 0].abs() * 5).long() % 37), tall) + gradients(lambda x: F.mse_loss(x, x.detach() + 1), flat)
    # ---- dense maths ----
    yield "products", [wide @ tall, square @ square, tall.t() @ tall, torch.dot(flat, flat), (wide.half() @ tall.half()), wide.bfloat16() @ tall.bfloat16(), (wide * 9).long() @ (tall * 9).long()]
    yield "convolution", gradients(lambda x, w: F.conv2d(x, w, padding=1), images, kernel) + gradients(lambda x, w: F.conv_transpose2d(x, w, stride=2), images, make((8, 6, 3, 3)).to("mps"))
    yield "factors", [*torch.linalg.lu_factor(square), torch.linalg.cholesky(square @ square.mT + 500 * torch.eye(131, device="mps")), *torch.linalg.qr(square), torch.linalg.solve(square, square[..., :7])]
    yield "attention", gradients(lambda q: F.scaled_dot_product_attention(q, q, q), make((2, 4, 203, 32)).to("mps"))
    yield "recurrent", [seeded(lambda: torch.nn.LSTM(16, 32).to("mps")(make((50, 16, 16)).to("mps"))[0].detach())]
    large = make((700, 700)).to("mps")
    yield "large factors", [*torch.linalg.lu_factor(large), torch.linalg.cholesky(large @ large.mT + 5000 * torch.eye(700, device="mps")), *torch.linalg.qr(large),
                            torch.linalg.solve(large, large[:, :300]), torch.linalg.svdvals(large[:200, :200]), torch.matrix_exp(square / 50)]
    # ---- indices: duplicates are summed in one order ----
    yield "index_put", [torch.zeros(5003, device="mps").index_put((index,), updates, accumulate=True), torch.zeros(5003, device="mps").index_put((index,), updates)]
    yield "index_add", [torch.zeros(5003, device="mps").index_add(0, index, updates), torch.zeros(5003, 3, device="mps").index_add(0, index, make((200003, 3)).to("mps"))]
    yield "scatter", [torch.zeros(5003, device="mps").scatter_add(0, index, updates), torch.zeros(5003, device="mps").scatter(0, index, updates)] + [
        torch.zeros(5003, device="mps").scatter_reduce(0, index, updates, kind) for kind in ("sum", "prod", "mean", "amax", "amin")]
    yield "embedding", gradients(lambda w: F.embedding(index, w).square(), make((5003, 8)).to("mps")) + gradients(
        lambda w: F.embedding_bag(index[:200000].view(-1, 10), w, mode="sum").square(), make((5003, 8)).to("mps"))
    yield "index", gradients(lambda x: x[index].square(), make((5003,)).to("mps")) + gradients(lambda x: x.gather(0, index).square(), make((5003,)).to("mps"))
    yield "sort", [*flat.sort(), *wide.topk(7), *(flat * 3).round().sort(stable=True), *index.unique(return_inverse=True, return_counts=True), torch.searchsorted(flat.sort()[0], updates), index.bincount(), updates.histc(100)]
    lengths = torch.full((37,), 20011 // 37, device="mps")
    lengths[-1] += 20011 - lengths.sum()
    yield "segments", [t for kind in ("sum", "mean", "max", "prod") for t in gradients(lambda x: torch.segment_reduce(x, kind, lengths=lengths), tall * 0.1)] + [torch.hash_tensor(tall, 0)]
    yield "margins", gradients(lambda x: F.multi_margin_loss(x, (x[:, 0].abs() * 5).long() % 37), tall) + gradients(
        lambda x: F.multilabel_margin_loss(x, (x.argsort(1) - 5).clamp(min=-1)), tall)
    yield "ctc", gradients(lambda x: F.ctc_loss(x.view(517, 29, 50)[:500].log_softmax(2), torch.ones(29, 20, dtype=torch.long, device="mps"), [500] * 29, [20] * 29), make((517, 29 * 50)).to("mps"))
    matrix = torch.where(square[0] > 1, square[0], 0).to_sparse_csr()
    yield "sparse", [matrix @ square[1], torch.sparse.mm(matrix, square[1], "amax"), matrix.to_sparse_coo() @ square[1]]
    # ---- images ----
    yield "pool", gradients(lambda x: F.max_pool2d(x, 3, 2), images) + gradients(lambda x: F.avg_pool2d(x, 3, 1), images) + gradients(lambda x: F.adaptive_avg_pool2d(x, 7), images)
    volumes = make((3, 8, 17, 21, 23)).to("mps")
    yield "pool of volumes", gradients(lambda x: F.adaptive_avg_pool3d(x, 5), volumes) + gradients(lambda x: F.adaptive_max_pool3d(x, 5), volumes) + gradients(
        lambda x: seeded(lambda: F.fractional_max_pool3d(x, 2, output_size=9)), volumes) + gradients(lambda x: seeded(lambda: F.fractional_max_pool2d(x, 2, output_size=20)), images)
    yield "interpolate", [t for mode in ("nearest", "bilinear", "bicubic") for t in gradients(lambda x: F.interpolate(x, size=(91, 83), mode=mode).square(), images)]
    yield "grid_sample", gradients(lambda x, g: F.grid_sample(x, g, align_corners=False), images, make((5, 40, 41, 2)).to("mps"))
    yield "fft", [torch.fft.rfft(wide), torch.fft.fft2(images), torch.fft.irfft(torch.fft.rfft(flat))]
    yield "cdist", gradients(lambda x, y: torch.cdist(x, y, 1.5), make((301, 9)).to("mps"), make((203, 9)).to("mps"))
    # ---- random numbers ----
    yield "random", [seeded(lambda f=f: f()) for f in (
        lambda: torch.randn(300007, device="mps"), lambda: torch.rand(300007, device="mps"), lambda: torch.randint(99, (300007,), device="mps"), lambda: torch.randperm(300007, device="mps"),
        lambda: torch.empty(300007, device="mps").exponential_(), lambda: torch.empty(300007, device="mps").cauchy_(), lambda: F.dropout(flat), lambda: torch.bernoulli(flat.sigmoid()),
        lambda: torch.multinomial(flat.sigmoid()[:5000], 4000), lambda: torch.multinomial(flat.sigmoid()[:5000], 9000, True), lambda: torch._standard_gamma(flat.exp()), lambda: torch.poisson(flat.exp()))]


def digests():
    for name, results in programs():
        digest = hashlib.sha256()
        for result in results:
            digest.update(result.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
        yield name, digest.hexdigest()[:16]


@pytest.fixture(scope="module")
def by_threads():
    """threads -> {name: digest}, from processes of their own: the number is fixed when the device starts."""
    found = {}
    for threads in (1, 2, 5):
        environment = os.environ | {"OPENMPS_THREADS": str(threads)}
        done = subprocess.run([sys.executable, __file__], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
        found[threads] = dict(line.split("\t") for line in done.stdout.splitlines())
    return found


NAMES = ["sum", "mean, var", "extremes", "scan", "softmax", "norms", "losses", "products", "convolution", "factors", "large factors", "attention", "recurrent", "index_put", "index_add", "scatter", "embedding", "index", "sort", "segments", "margins", "ctc", "sparse",
         "pool", "pool of volumes", "interpolate", "grid_sample", "fft", "cdist", "random"]


@pytest.mark.parametrize("name", NAMES)
def test_threads_change_nothing(by_threads, name):
    assert len({by_threads[threads][name] for threads in by_threads}) == 1, {threads: by_threads[threads][name] for threads in by_threads}


def test_every_program_is_compared(by_threads):
    assert set(by_threads[1]) == set(NAMES)


if __name__ == "__main__":
    for line in digests():
        print(*line, sep="\t")
