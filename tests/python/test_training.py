# SPDX-License-Identifier: BSD-3-Clause
"""Three networks train on mps to the same losses as on the CPU: same weights, same batches, 300 steps, five seeds."""
import copy
import io

import pytest
import torch
from torch import nn

import networks

SEEDS = range(5)
WINDOW = 20  # steps over which a curve is averaged before it is compared


def smooth(losses):
    return losses.unfold(0, WINDOW, WINDOW).mean(-1)


def assert_same_curves(name, tolerance, **options):
    """Means over windows of 20 steps, averaged over the seeds, differ by less than `tolerance`; and both sides learn."""
    cpu = torch.stack([smooth(networks.train(name, "cpu", seed, **options)) for seed in SEEDS])
    mps = torch.stack([smooth(networks.train(name, "mps", seed, **options)) for seed in SEEDS])
    assert torch.isfinite(mps).all()
    assert cpu.mean(0)[-1] < 0.9 * cpu.mean(0)[0], "the reference itself does not learn: the test says nothing"
    difference = ((mps.mean(0) - cpu.mean(0)).abs() / cpu.mean(0)).max().item()
    assert difference < tolerance, f"{name}: loss curves differ by {difference:.2%}, allowed {tolerance:.0%}"


@pytest.mark.parametrize("name", networks.TASKS)
def test_curves_float32(name):
    assert_same_curves(name, 0.01)


@pytest.mark.parametrize("optimizer", networks.OPTIMIZERS)
@pytest.mark.parametrize("flavour", ["loop", "foreach", "fused"])
def test_curves_optimizers(optimizer, flavour):
    options = {"loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}[flavour]
    assert_same_curves("mlp", 0.01, optimizer=optimizer, steps=100, **options)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("name", networks.TASKS)
def test_curves_reduced_precision(name, dtype):
    """Weights and data in f16 or bf16 throughout; SGD, since Adam's epsilon vanishes in f16 on either device."""
    assert_same_curves(name, 0.05, dtype=dtype, optimizer="sgd")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("name", networks.TASKS)
def test_curves_autocast(name, dtype):
    """Autocast on mps against plain float32 on the CPU: autocast must not change where training goes."""
    cpu = torch.stack([smooth(networks.train(name, "cpu", seed)) for seed in SEEDS]).mean(0)
    mps = torch.stack([smooth(networks.train(name, "mps", seed, autocast=dtype)) for seed in SEEDS]).mean(0)
    difference = ((mps - cpu).abs() / cpu).max().item()
    assert difference < 0.05, f"{name}: loss curves differ by {difference:.2%}"


def test_dropout_curve():
    """With dropout the masks differ, so only the mean over seeds and windows can agree."""
    assert_same_curves("residual", 0.10, dropout=True)


def test_grad_scaler_skips_a_step():
    """An infinite gradient makes GradScaler skip the step and halve its scale; the next finite one is applied."""
    model = networks.make_model("mlp", 0, "mps")
    update = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("mps", init_scale=2.0**16, growth_interval=1000)
    generator = torch.Generator().manual_seed(0)
    batch = tuple(t.to("mps") for t in networks.TASKS["mlp"].batch(generator))

    def step(factor):
        update.zero_grad()
        with torch.autocast("mps", torch.float16):
            loss = networks.TASKS["mlp"].loss(model, batch)
        scaler.scale(loss * factor).backward()
        scaler.step(update)
        scaler.update()

    before = copy.deepcopy([p.detach().cpu() for p in model.parameters()])
    step(float("inf"))
    assert all(torch.equal(b, p.detach().cpu()) for b, p in zip(before, model.parameters()))
    assert scaler.get_scale() == 2.0**15
    step(1.0)
    assert any(not torch.equal(b, p.detach().cpu()) for b, p in zip(before, model.parameters()))
    assert all(torch.isfinite(p).all() for p in model.parameters())
    assert scaler.get_scale() == 2.0**15


def test_generation_by_sampling():
    model = networks.make_model("decoder", 0, "mps")
    start = torch.zeros(4, 1, dtype=torch.long, device="mps")
    torch.mps.manual_seed(7)
    first = model.generate(start, 24)
    torch.mps.manual_seed(7)
    second = model.generate(start, 24)
    assert first.shape == (4, 25) and first.device.type == "mps"
    assert torch.equal(first.cpu(), second.cpu())
    assert first.min() >= 0 and first.max() < 32
    greedy = model.generate(start, 8, top_k=1).cpu()
    reference = networks.make_model("decoder", 0, "cpu").generate(start.cpu(), 8, top_k=1)
    assert torch.equal(greedy, reference)


def test_checkpoint_goes_both_ways():
    """A model saved on one device loads on the other, optimiser state included, and goes on to the same losses."""
    model = networks.make_model("mlp", 3, "mps")
    update = torch.optim.AdamW(model.parameters())
    x, y = (t.to("mps") for t in networks.TASKS["mlp"].batch(torch.Generator().manual_seed(1)))
    nn.functional.mse_loss(model(x), y).backward()
    update.step()
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "update": update.state_dict()}, file)
    for device in ("cpu", "mps"):
        file.seek(0)
        state = torch.load(file, map_location=device, weights_only=True)
        other = networks.make_model("mlp", 4, device)
        other.load_state_dict(state["model"])
        again = torch.optim.AdamW(other.parameters())
        again.load_state_dict(state["update"])
        assert all(t.device.type == device for t in other.state_dict().values())
        torch.testing.assert_close(other(x.to(device)).cpu(), model(x).cpu(), rtol=1e-5, atol=1e-6)


def test_no_leak_over_a_thousand_steps():
    """Steps 100 to 1,000 leave allocated memory as it was and the process within 4 MB."""
    def resident():
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

    task = networks.TASKS["mlp"]
    model = networks.make_model("mlp", 0, "mps")
    update = torch.optim.Adam(model.parameters())
    generator = torch.Generator().manual_seed(0)
    batch = tuple(t.to("mps") for t in task.batch(generator))
    for step in range(1, 1001):
        update.zero_grad(set_to_none=True)
        loss = task.loss(model, batch)
        loss.backward()
        update.step()
        if step in (100, 1000):
            del loss
            update.zero_grad(set_to_none=True)
            torch.mps.synchronize()
            if step == 100:
                memory, size = torch.mps.current_allocated_memory(), resident()
    assert torch.mps.current_allocated_memory() == memory
    assert resident() - size < 4096, f"the process grew by {resident() - size} KiB in 900 steps"
