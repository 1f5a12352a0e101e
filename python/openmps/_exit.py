# SPDX-License-Identifier: BSD-3-Clause
"""Lets autograd's device thread come to rest before the interpreter ends.

A backward pass on mps runs on a thread of autograd's own, which drops the graph after the caller has its gradients, and wants the GIL for that.
Where the program ends right then, the interpreter ends that thread in the middle of C++ code that may not be unwound: "terminate called
without an active exception", an abort after all work was done.
"""
import atexit
import glob
import threading

_last = []  # kept for ever: its reference must not be the last one that the thread drops


def install(torch):
    atexit.register(_drain, torch)


def _device_thread_runs():
    for path in glob.glob("/proc/self/task/*/comm"):
        try:
            with open(path) as file:
                if file.read().startswith("pt_autograd"):
                    return True
        except OSError:
            pass  # that thread has just ended
    return False


def _pass(torch):
    """A backward pass without results: autograd's thread takes it up when it is done with everything before."""
    try:
        leaf = torch.zeros((), device="mps", requires_grad=True)
        _last.extend([leaf, torch.zeros((), device="mps")])
        torch.autograd.backward([leaf], [_last[-1]])
    except Exception:  # out of memory, a forked child, a failed kernel: the program ends as it would have
        pass


def _drain(torch):
    try:
        if not _device_thread_runs():
            return
        # From a thread of its own: the pass carries the thread-local state of its caller, whose Python objects would want the GIL again.
        caller = threading.Thread(target=_pass, args=(torch,), daemon=True)
        caller.start()
        caller.join(timeout=10)
    except RuntimeError:  # no more threads
        pass
