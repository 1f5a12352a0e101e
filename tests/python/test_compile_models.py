# SPDX-License-Identifier: BSD-3-Clause
"""Training, attention, autocast, exported programs and optimizer steps under torch.compile on mps against eager mps."""
import copy

import pytest
import torch
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.nn import functional as F

import networks


@pytest.fixture(autouse=True)
def forget():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def twins(make):
    """Two models on mps with the same weights: one for eager, one for torch.compile."""
    torch.manual_seed(0)
    model = make()
    return model.to("mps"), copy.deepcopy(model).to("mps")


def close(actual, expected, rtol=1e-4, atol=1e-5, where=""):
    assert actual.device.type == "mps" and actual.dtype == expected.dtype
    torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol, msg=lambda text: f"{where}: {text}")


def train(model, loss, batches):
    """Losses of all steps, gradients of the first one, parameters and buffers after the last one; each with its name."""
    update = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    seen = {}
    for step, batch in enumerate(batches):
        value = loss(model, batch)
        update.zero_grad()
        value.backward()
        if step == 0:
            seen |= {f"gradient of {name}": p.grad.clone() for name, p in model.named_parameters()}
        update.step()
        seen[f"loss {step}"] = value.detach()
    return seen | {f"{name} after training": t.detach() for name, t in model.state_dict().items()}


def assert_same_training(make, loss, batches, rtol=1e-4, atol=1e-5, **options):
    eager, compiled = twins(make)
    counter = CompileCounterWithBackend("inductor")
    expected = train(eager, loss, batches)
    actual = train(compiled, torch.compile(loss, backend=counter, fullgraph=True, **options), batches)
    assert counter.frame_count == 1, f"compiled {counter.frame_count} times for {len(batches)} batches"
    assert actual.keys() == expected.keys() and len({float(v) for name, v in expected.items() if name.startswith("loss")}) == len(batches)
    for name, value in expected.items():
        close(actual[name], value, rtol, atol, name)


def batches_of(draw, count=3):
    generator = torch.Generator().manual_seed(1)
    return [tuple(t.to("mps") for t in draw(generator)) for _ in range(count)]


@pytest.mark.parametrize("name", ["mlp"])
def test_networks_train(name):
    task = networks.TASKS[name]
    assert_same_training(lambda: networks.make_model(name, 0, "cpu"), task.loss, batches_of(task.batch))


def draw(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).to("mps")


ATTENTION = {
    "plain": ((2, 4, 5, 8), (2, 4, 7, 8), {}),
    "causal": ((2, 4, 6, 8), (2, 4, 6, 8), {"is_causal": True}),
    "mask of bools": ((2, 4, 5, 8), (2, 4, 7, 8), {"attn_mask": lambda: (torch.arange(35) % 3 > 0).reshape(5, 7).to("mps")}),
    "mask of floats": ((2, 4, 5, 8), (2, 4, 7, 8), {"attn_mask": lambda: draw(5, 7), "scale": 0.3}),
    "fewer keys' heads": ((2, 4, 5, 8), (2, 2, 7, 8), {"enable_gqa": True}),
    "three dimensions": ((4, 5, 8), (4, 7, 8), {}),
    "two dimensions": ((5, 8), (7, 8), {}),
}


@pytest.mark.parametrize("gradient", [False, True], ids=["forward", "gradient"])
@pytest.mark.parametrize("name", ATTENTION)
def test_attention_is_traced(name, gradient):
    """Fake tensors go through it with sizes that are symbols; "aot_eager" traces as Inductor does, and compiles nothing."""
    query, key, options = ATTENTION[name]
    options = {k: v() if callable(v) else v for k, v in options.items()}
    results = []
    for function in (F.scaled_dot_product_attention, torch.compile(F.scaled_dot_product_attention, backend="aot_eager", dynamic=True, fullgraph=True)):
        values = [draw(*query).requires_grad_(gradient), draw(*key).requires_grad_(gradient), draw(*key).neg().requires_grad_(gradient)]
        out = function(*values, **options)
        results.append([out.detach(), *(torch.autograd.grad(out.square().sum(), values) if gradient else ())])
    for actual, expected in zip(*reversed(results), strict=True):
        close(actual, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
def test_autocast(dtype):
    """Products in the lower precision inside of the compiled function, as in eager; gradients are float32."""
    task = networks.TASKS["mlp"]
    eager, other = twins(lambda: networks.make_model("mlp", 0, "cpu"))
    batch = batches_of(task.batch, 1)[0]

    def loss(model):
        with torch.autocast("mps", dtype):
            out = model(batch[0])
            return F.mse_loss(out.float(), batch[1]), out

    (value, out), (wanted, wanted_out) = torch.compile(loss, fullgraph=True)(other), loss(eager)
    value.backward(), wanted.backward()
    tolerance = {"rtol": 1e-2, "atol": 1e-3} if dtype == torch.float16 else {"rtol": 5e-2, "atol": 1e-2}
    assert wanted_out.dtype == dtype
    close(out, wanted_out, **tolerance)
    close(value, wanted, **tolerance)
    for (name, a), e in zip(other.named_parameters(), eager.parameters(), strict=True):
        close(a.grad, e.grad, where=name, **tolerance)


def test_an_exported_program_runs_and_compiles():
    eager, other = twins(lambda: nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.Tanh()))
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(4)).to("mps")
    program = torch.export.export(other, (x,), dynamic_shapes=({0: torch.export.Dim("rows", min=2, max=64)},))
    counter = CompileCounterWithBackend("inductor")
    module = program.module()
    compiled = torch.compile(module, backend=counter, dynamic=True)
    with torch.no_grad():
        for rows in (4, 9):
            x = torch.randn(rows, 6, generator=torch.Generator().manual_seed(rows)).to("mps")
            close(module(x), eager(x))
            close(compiled(x), eager(x))
    assert counter.frame_count == 1


def test_a_compiled_optimizer_step():
    """SGD with momentum over several parameters is one compiled function; the learning rate may change."""
    def parameters():
        return [nn.Parameter(torch.linspace(-1, 1, n).to("mps")) for n in (7, 40)]

    results = []
    for compile_ in (lambda step: step, torch.compile):
        values = parameters()
        update = torch.optim.SGD(values, lr=torch.tensor(0.1, device="mps"), momentum=0.9, weight_decay=0.01)
        step = compile_(update.step)
        for number in range(3):
            update.param_groups[0]["lr"].fill_(0.1 / (number + 1))
            for p in values:
                p.grad = p.detach().sin() + number
            step()
        results.append(values)
    for actual, expected in zip(*reversed(results), strict=True):
        close(actual.detach(), expected.detach())


def test_a_break_in_the_middle_goes_on():
    """What Dynamo cannot follow runs in eager between two compiled parts."""
    def function(x):
        y = x.sin() * 2
        scale = 3 if y.sum().item() > 0 else 5
        return (y * scale).exp()

    counter = CompileCounterWithBackend("inductor")
    x = torch.linspace(0, 2, 50).to("mps")
    close(torch.compile(function, backend=counter)(x), function(x))
    assert counter.frame_count >= 2
