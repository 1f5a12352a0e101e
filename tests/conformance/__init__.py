# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own database of operators (OpInfo) and modules (ModuleInfo), run on mps against the CPU. `python -m tests.conformance --help`."""
