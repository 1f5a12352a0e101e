# SPDX-License-Identifier: BSD-3-Clause
"""Cached graphs as a program sees them: fused optimisers and reduced losses are compiled once and run many times."""
import copy

import pytest
import torch
from openmps import _bridge
from torch import nn


def counted(function, *args, **kwargs):
    """What the graph statistics grew by while the function ran."""
    torch.ones(1, device="mps")  # opens the device
    before = _bridge.graph_statistics()
    function(*args, **kwargs)
    torch.mps.synchronize()
    after = _bridge.graph_statistics()
    return {name: after[name] - before[name] for name in before}


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(37, 23), nn.ReLU(), nn.Linear(23, 11))


OPTIMIZERS = {
    "adam": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1, fused=True),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True, fused=True),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
    "adamw_tensor_lr": lambda p: torch.optim.AdamW(p, lr=torch.tensor(0.01), fused=True),
    "sgd": lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9, nesterov=True, weight_decay=0.1, fused=True),
    "maximize": lambda p: torch.optim.SGD(p, lr=0.01, maximize=True, fused=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_fused_optimizers_follow_the_cpu(name):
    cpu = net()
    mps = copy.deepcopy(cpu).to("mps")
    cpu_optimizer, mps_optimizer = OPTIMIZERS[name](cpu.parameters()), OPTIMIZERS[name](mps.parameters())
    for step in range(5):
        x = torch.randn(8, 37, generator=torch.Generator().manual_seed(step))
        for model, optimizer, data in ((cpu, cpu_optimizer, x), (mps, mps_optimizer, x.to("mps"))):
            optimizer.zero_grad()
            model(data).square().mean().backward()
            optimizer.step()
    for a, b in zip(cpu.parameters(), mps.parameters()):
        torch.testing.assert_close(b.cpu(), a, rtol=2e-5, atol=2e-6)


def test_numbers_do_not_make_new_graphs():
    """Learning rate, momentum and weight decay may change from step to step."""
    parameter = nn.Parameter(torch.randn(41, 43, device="mps"))
    optimizer = torch.optim.SGD([parameter], lr=0.1, momentum=0.9, weight_decay=0.1, fused=True)

    def train():
        for step in range(6):
            optimizer.param_groups[0].update(lr=0.1 / (step + 1), weight_decay=0.1 * (step + 1))
            parameter.grad = torch.ones_like(parameter)
            optimizer.step()

    first, second = counted(train), counted(train)
    assert first["runs"] == second["runs"] == 6
    assert first["misses"] <= 2  # the first step has no momentum yet
    assert second["misses"] == 0 and second["hits"] == 6 and second["compiled"] == 0


def test_losses_are_cached():
    x, y = torch.randn(7, 5, device="mps"), torch.randn(7, 5, device="mps")
    nn.functional.mse_loss(x, y)
    again = counted(lambda: [nn.functional.mse_loss(x, y) for _ in range(10)])
    assert again["hits"] == again["runs"] == 10 and again["misses"] == 0
    same = counted(lambda: nn.functional.mse_loss(x.reshape(5, 7), y.reshape(5, 7)))
    assert same["misses"] == 0  # tensors without gaps are one dimension


def test_mse_of_large_and_strided_tensors():
    for shape in ((2048, 513), (3, 5, 7, 9)):
        x, y = torch.randn(shape), torch.randn(shape)
        for view in (lambda t: t, lambda t: t.transpose(0, 1), lambda t: t[::2], lambda t: t[..., 1:]):
            for reduction in ("mean", "sum"):
                expected = nn.functional.mse_loss(view(x).double(), view(y).double(), reduction=reduction)
                got = nn.functional.mse_loss(view(x.to("mps")), view(y.to("mps")), reduction=reduction)
                torch.testing.assert_close(got.cpu().double(), expected, rtol=1e-6, atol=0)
