# SPDX-License-Identifier: BSD-3-Clause
"""The package: autoload, what importing costs and starts, the command line."""
import json
import subprocess
import sys


def test_import_torch_is_enough(python):
    done = python("import torch; print(torch.backends.mps.is_available(), (torch.ones(5, device='mps') * 2).tolist())")
    assert done.code == 0 and done.out.strip() == "True [2.0, 2.0, 2.0, 2.0, 2.0]" and done.err == ""


def test_switches(python):
    for environment in ({"OPENMPS": "0"}, {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}):
        done = python("import torch; print(torch.backends.mps.is_built(), torch.backends.mps.is_available())", **environment)
        assert done.code == 0 and done.out.strip() == "False False" and done.err == ""


def test_late_import(python):
    done = python("""
        import torch, openmps
        print(openmps.is_active(), torch.ones(2, device="mps").sum().item())
        """, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.code == 0 and done.out.strip() == "True 2.0"


def test_too_late_import(python):
    done = python("""
        import torch
        torch._C._mps_is_available()
        import openmps
        print(openmps.is_active(), torch.backends.mps.is_available())
        """, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
    assert done.code == 0 and done.out.strip() == "False False" and "import openmps right after torch" in done.err


def test_import_starts_nothing(python):
    done = python("""
        import os, threading
        os.environ["OPENMPS"] = "0"
        import torch
        before = len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))
        os.environ["OPENMPS"] = "1"
        import openmps
        openmps._autoload()
        assert openmps.is_active()
        from openmps import _bridge
        assert not _bridge.device_is_open()
        torch.manual_seed(0)
        assert not _bridge.device_is_open()
        assert (len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))) == before
        children = open(f"/proc/self/task/{os.getpid()}/children").read() if os.path.exists(f"/proc/self/task/{os.getpid()}/children") else ""
        assert children == ""
        """)
    assert done.code == 0, done.err


def test_import_cost(python):
    """At most 60 ms of CPU time and 30 MB over `import torch` alone; the least of three, for other processes disturb."""
    code = """
        import os, time
        os.environ["OPENMPS"] = "0"
        import torch
        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        os.environ["OPENMPS"] = "1"
        memory, begin = resident(), time.process_time()
        import openmps
        openmps._autoload()
        print(time.process_time() - begin, resident() - memory)
        """
    runs = [[float(x) for x in python(code).out.split()] for _ in range(3)]
    seconds, size = min(r[0] for r in runs), min(r[1] for r in runs)
    assert seconds <= 0.060, f"{seconds * 1e3:.1f} ms"
    assert size <= 30e6, f"{size / 1e6:.1f} MB"


def test_info():
    text = subprocess.run([sys.executable, "-m", "openmps", "info"], capture_output=True, text=True, check=True).stdout
    assert "coverage" in text and "of 533 MPS entries native" in text
    facts = json.loads(subprocess.run([sys.executable, "-m", "openmps", "info", "--json"], capture_output=True, text=True, check=True).stdout)
    assert facts["active"] and facts["device"]["driver"] == "host" and facts["coverage"]["entries"] == 533
    assert facts["coverage"]["native"] + len(facts["coverage"]["missing"]) == 533
