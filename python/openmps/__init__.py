# SPDX-License-Identifier: BSD-3-Clause
"""OpenMPS: PyTorch's `mps` device on machines without Metal.

`import torch` is enough: torch calls _autoload() through the entry point group `torch.backends`. Importing starts nothing: no thread, no
device memory, no compiler. `OPENMPS=0` leaves torch alone.
"""
import os
import warnings

from . import _build

__version__ = _build.version
__all__ = ["is_active"]

_active = False
_tried = False


def is_active():
    """True when the mps device of this process is OpenMPS's."""
    return _active


def _fits(installed):
    """The C++ interface of torch changes with each minor version."""
    return installed.split(".")[:2] == _build.torch.split(".")[:2]


def _install(torch):
    """Puts OpenMPS into `torch`, and returns why not, if it does not."""
    global _active
    if not _fits(torch.__version__):
        return f"OpenMPS {__version__} was built for torch {_build.torch} and leaves torch {torch.__version__} as it is: build it again"
    from . import _patch

    _active = _patch.install(torch)
    return None if _active else "the mps hooks of torch were used before OpenMPS was loaded: import openmps right after torch"


def _autoload():
    """Called at the end of `import torch`. Never raises: torch would turn that into a failed import."""
    global _tried
    try:
        import torch

        if _tried or os.environ.get("OPENMPS", "1") == "0" or torch._C._has_mps:
            return
        _tried = True
        refusal = _install(torch)
    except Exception as error:  # whatever it is, torch goes on without mps
        refusal = f"OpenMPS could not be loaded ({type(error).__name__}: {error})"
    if refusal:
        warnings.warn(refusal, RuntimeWarning, stacklevel=2)


_autoload()
