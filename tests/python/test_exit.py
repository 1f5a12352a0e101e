# SPDX-License-Identifier: BSD-3-Clause
"""Programs that end while work is under way end cleanly: autograd's device thread, queued steps, unfinished gradients."""
import subprocess
import sys

import pytest

PROGRAMS = {
    "right after a gradient": "print(torch.autograd.grad((x * 2).sum(), x)[0].sum().item())",
    "right after a backward pass": "(x * 2).sum().backward()",
    "after a training step": "m = torch.nn.Linear(3, 1).to('mps')\nu = torch.optim.AdamW(m.parameters())\nm(x).sum().backward()\nu.step()\nm(x).sum().backward()",
    "with steps queued": "y = torch.rand(512, 512, device='mps')\nfor _ in range(20): y = y @ y",
    "with an error pending": "x.detach()[torch.tensor([7], device='mps')]",
    "by sys.exit within a hook": "import sys\nx.register_hook(lambda g: None)\n(x * 2).sum().backward()\nsys.exit(0)",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_process_ends_cleanly(name):
    text = f"import torch\nx = torch.ones(3, device='mps', requires_grad=True)\n{PROGRAMS[name]}\n"
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert "terminate called" not in done.stderr
