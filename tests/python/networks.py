# SPDX-License-Identifier: BSD-3-Clause
"""Three small networks, their data and one training loop: what the tests of training and the benchmarks share.

Each network is drawn on the CPU from a seed and copied to the device, so that both sides start from the same weights and see the
same batches. Targets carry noise, so that no loss vanishes and relative differences stay meaningful.
"""
import contextlib
import dataclasses

import torch
from torch import nn
from torch.nn import functional as F


class MLP(nn.Module):
    """Two hidden layers, GELU and tanh, for regression."""

    def __init__(self, width=64):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, width), nn.GELU(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 4))

    def forward(self, x):
        return self.layers(x)


class ResidualBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        y = F.relu(self.first_norm(self.first(x)))
        return F.relu(x + self.second_norm(self.second(y)))


class ResidualNet(nn.Module):
    """A convolution net with BatchNorm, a residual block, pooling of both kinds and dropout, for 5 classes."""

    def __init__(self, channels=8, dropout=0.1):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)
        self.block = ResidualBlock(channels)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(channels, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.stem(x))), 2)
        x = F.adaptive_avg_pool2d(self.block(x), 1).flatten(1)
        return self.head(self.dropout(x))


class DecoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.mlp_norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(self.attention_norm(x)).chunk(3, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.mlp_norm(x))


class Decoder(nn.Module):
    """A GPT-like decoder: token and position embeddings, causal attention, GELU, tied to no tokenizer."""

    def __init__(self, vocabulary=32, context=16, width=32, heads=4, layers=2):
        super().__init__()
        self.context = context
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.layers = nn.ModuleList(DecoderLayer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))

    @torch.no_grad()
    def generate(self, tokens, count, temperature=1.0, top_k=8, generator=None):
        """Appends `count` sampled tokens to each row."""
        for _ in range(count):
            logits = self(tokens[:, -self.context:])[:, -1] / temperature
            values, indices = logits.topk(top_k, dim=-1)
            choice = torch.multinomial(values.softmax(-1), 1, generator=generator)
            tokens = torch.cat([tokens, indices.gather(-1, choice)], dim=1)
        return tokens


@dataclasses.dataclass
class Task:
    """A network with its data: `batch(generator)` draws one batch on the CPU, `loss(model, batch)` is what is minimised."""
    make: callable
    batch: callable
    loss: callable


def _mlp_batch(generator):
    x = torch.randn(32, 20, generator=generator)
    y = torch.stack([x[:, :5].sum(1), (x[:, 5:10] ** 2).mean(1), x[:, 10].sin(), x[:, 11] * x[:, 12]], 1)
    return x, y + 0.5 * torch.randn(y.shape, generator=generator)


def _image_batch(generator):
    x = torch.randn(16, 3, 12, 12, generator=generator)
    y = (x.mean((1, 2, 3)) * 20).round().long().remainder(5)
    return x + 0.5 * y[:, None, None, None] * torch.linspace(-1, 1, 12), y


def _text_batch(generator):
    start = torch.randint(32, (8, 1), generator=generator)
    step = torch.randint(1, 4, (8, 1), generator=generator)
    sequence = (start + step * torch.arange(17)).remainder(32)
    noise = torch.randint(32, sequence.shape, generator=generator)
    sequence = torch.where(torch.rand(sequence.shape, generator=generator) < 0.2, noise, sequence)
    return sequence[:, :-1], sequence[:, 1:]


def _cross_entropy(model, batch):
    x, y = batch
    out = model(x)
    return F.cross_entropy(out.flatten(0, -2), y.flatten())


TASKS = {
    "mlp": Task(MLP, _mlp_batch, lambda model, batch: F.mse_loss(model(batch[0]), batch[1].to(batch[0].dtype))),
    "residual": Task(ResidualNet, _image_batch, _cross_entropy),
    "decoder": Task(Decoder, _text_batch, _cross_entropy),
}

OPTIMIZERS = {
    "sgd": lambda p, **options: torch.optim.SGD(p, lr=0.02, momentum=0.9, weight_decay=1e-4, **options),
    "adam": lambda p, **options: torch.optim.Adam(p, lr=2e-3, **options),
    "adamw": lambda p, **options: torch.optim.AdamW(p, lr=2e-3, weight_decay=0.01, **options),
}


def make_model(name, seed, device, dtype=torch.float32, dropout=False):
    """The task's network, drawn on the CPU from `seed`. Without `dropout` its dropout layers pass values through."""
    torch.manual_seed(seed)
    model = TASKS[name].make().to(dtype).to(device)
    if not dropout:
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
    return model


def train(name, device, seed, steps=300, dtype=torch.float32, autocast=None, optimizer="adam", clip=1.0, dropout=False, **options):
    """Trains and returns the losses of all steps, as a float32 tensor on the CPU."""
    task = TASKS[name]
    model = make_model(name, seed, device, dtype, dropout)
    update = OPTIMIZERS[optimizer](model.parameters(), **options)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(update, steps)
    generator = torch.Generator().manual_seed(seed + 1000)
    losses = []
    for _ in range(steps):
        batch = tuple(t.to(device, dtype) if t.is_floating_point() else t.to(device) for t in task.batch(generator))
        context = torch.autocast(torch.device(device).type, autocast) if autocast else contextlib.nullcontext()
        with context:
            loss = task.loss(model, batch)
        update.zero_grad(set_to_none=True)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        update.step()
        schedule.step()
        losses.append(loss.detach())
    return torch.stack(losses).float().cpu()
