# SPDX-License-Identifier: BSD-3-Clause
"""Lets autograd's device thread come to rest before the interpreter ends.

A backward pass on mps runs on a thread of autograd's own, which drops the graph after the caller has its gradients, and wants the GIL for that.
Where the program ends right then, the interpreter ends that thread in the middle of C++ code that may not be unwound: "terminate called
without an active exception", an abort after all work was done.
"""
import atexit
import ctypes
import glob
import threading
import time

PATIENCE_SECONDS = 2.0


def install(torch):
    atexit.register(_drain, torch)


def _device_threads():
    """Folders of autograd's threads under /proc."""
    found = []
    for path in glob.glob("/proc/self/task/*/comm"):
        try:
            with open(path) as file:
                if file.read().startswith("pt_autograd"):
                    found.append(path.removesuffix("comm"))
        except OSError:
            pass  # that thread has just ended
    return found


def _pass(torch):
    """A backward pass without results: autograd's thread takes it up when it is done with everything before."""
    try:
        leaf, gradient = torch.zeros((), device="mps", requires_grad=True), torch.zeros((), device="mps")
        for tensor in (leaf, gradient):  # for ever: the reference that the thread drops must not be the last one
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(tensor))
        torch.autograd.backward([leaf], [gradient])
    except Exception:  # out of memory, a forked child, a failed kernel: the program ends as it would have
        pass


def _sleeps(folder):
    try:
        with open(f"{folder}stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "S"
    except OSError:
        return True


def _wait_for_sleep(folders):
    """Waits, without the GIL, until the threads were found asleep three times in a row: none wants the GIL then, nor is about to."""
    deadline, quiet = time.monotonic() + PATIENCE_SECONDS, 0
    while quiet < 3 and time.monotonic() < deadline:
        time.sleep(0.001)
        quiet = quiet + 1 if all(_sleeps(folder) for folder in folders) else 0


def _drain(torch):
    folders = _device_threads()
    if not folders:
        return
    try:
        # From a thread of its own: the pass carries the thread-local state of its caller, whose Python objects would want the GIL again.
        caller = threading.Thread(target=_pass, args=(torch,), daemon=True)
        caller.start()
        caller.join(timeout=10)
    except RuntimeError:  # no more threads
        pass
    _wait_for_sleep(folders)
