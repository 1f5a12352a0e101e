# SPDX-License-Identifier: BSD-3-Clause
"""What the Python tests share. They run in an environment where `import torch` finds OpenMPS; anything else is an error, not a skip."""
import os
import subprocess
import sys
import tempfile
import textwrap

import pytest
import torch
from hypothesis import settings

# Compiled shaders go into a folder of this run, which its processes share; never into the home of whoever runs it.
if "OPENMPS_CACHE_PATH" not in os.environ:
    CACHE = tempfile.TemporaryDirectory(prefix="openmps-cache-")
    os.environ["OPENMPS_CACHE_PATH"] = CACHE.name

# Every run draws the same examples: what fails once fails again.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")


def pytest_sessionstart(session):
    if not torch.backends.mps.is_available():
        pytest.exit("torch.backends.mps.is_available() is False: OpenMPS is not installed in this environment", returncode=3)


@pytest.fixture(autouse=True)
def settled():
    """An error that a test leaves in the queue belongs to that test."""
    yield
    torch.mps.synchronize()


class Finished:
    def __init__(self, process):
        self.code, self.out, self.err = process.returncode, process.stdout, process.stderr


@pytest.fixture
def python():
    """Runs a piece of Python in a process of its own: python("print(1)", NAME="value") -> code, out, err."""

    def run(code, timeout=120, **environment):
        full = {k: v for k, v in {**os.environ, **environment}.items() if v is not None}
        return Finished(subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=full, capture_output=True, text=True, timeout=timeout))

    return run
