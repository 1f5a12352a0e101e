# SPDX-License-Identifier: BSD-3-Clause
"""The command line: `openmps info [--json]`, `openmps cache [clear] [--json]`, `openmps metal FILE.metal ...`."""
import argparse
import ctypes
import json
import os
import platform
import shutil
import sys

# Settings that OpenMPS reads; those in force are shown.
PREFIXES = ("OPENMPS", "PYTORCH_MPS_", "PYTORCH_ENABLE_MPS_FALLBACK", "PYTORCH_DEBUG_MPS_ALLOCATOR")


def find_compiler():
    """The compiler for shaders: OPENMPS_CLANG, else the ziglang wheel; None when there is none."""
    named = os.environ.get("OPENMPS_CLANG")
    if named:
        return shutil.which(named) or f"{named} (not found)"
    try:
        import ziglang
    except ImportError:
        return None
    return os.path.join(os.path.dirname(ziglang.__file__), "zig")


def gather():
    """Everything `info` knows, as plain data."""
    import torch

    import openmps

    facts = {
        "openmps": openmps.__version__,
        "torch": torch.__version__,
        "built_for_torch": openmps._build.torch,
        "python": platform.python_version(),
        "active": openmps.is_active(),
        "compiler": find_compiler(),
        "environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith(PREFIXES)},
    }
    if openmps.is_active():
        from openmps import _bridge

        native, missing = _bridge.coverage()
        facts["device"] = _bridge.device_info()
        facts["memory"] = _bridge.heap_statistics()
        facts["graphs"] = _bridge.graph_statistics()
        facts["coverage"] = {"native": len(native), "entries": len(native) + len(missing), "missing": missing}
        facts["sparse_coverage"] = {key: {"native": sum(names.values()), "entries": len(names), "missing": [n for n, there in names.items() if not there]}
                                    for key, names in _bridge.sparse_coverage().items()}
        facts["cpu_fallback"] = _bridge.fallback_enabled()
    return facts


def show(facts):
    """The same for people."""
    print(f"OpenMPS {facts['openmps']}, built for torch {facts['built_for_torch']}; torch {facts['torch']}, Python {facts['python']}")
    if not facts["active"]:
        print("not active in this process (OPENMPS=0, another torch, or torch has MPS of its own)")
    device = facts.get("device")
    if device:
        gib = 2.0**30
        print(f"device    {device['name']}: {device['core_count']} cores, driver {device['driver']}, kernels {device['kernel_level']}")
        print(f"limits    {device['max_threads_per_threadgroup']} threads a threadgroup, simdgroups of {device['thread_execution_width']}, "
              f"{device['threadgroup_memory_bytes'] // 1024} KiB threadgroup memory")
        print(f"memory    {device['recommended_memory'] / gib:.2f} GiB recommended, {device['max_buffer_length'] / gib:.2f} GiB a buffer"
              + (", unified" if device["unified_memory"] else ""))
        graphs = facts["graphs"]
        print(f"graphs    {graphs['graphs']} cached: {graphs['hits']} hits, {graphs['misses']} misses, {graphs['runs']} runs in this process")
        coverage = facts["coverage"]
        print(f"coverage  {coverage['native']} of {coverage['entries']} MPS entries native; the others "
              + ("run on the CPU (PYTORCH_ENABLE_MPS_FALLBACK)" if facts["cpu_fallback"] else "raise NotImplementedError"))
        coo, csr = (facts["sparse_coverage"][key] for key in ("SparseMPS", "SparseCsrMPS"))
        print(f"sparse    {coo['native']} of {coo['entries']} SparseMPS entries, {csr['native']} of {csr['entries']} SparseCsrMPS entries")
    print(f"compiler  {facts['compiler'] or 'none: pip install openmps[shaders] to compile shaders of your own'}")
    for name, value in facts["environment"].items():
        print(f"setting   {name}={value}")


class CacheInfo(ctypes.Structure):
    """mps_shader_cache_info of include/openmps/library.h."""

    _fields_ = [("path", ctypes.c_char * 1024), ("entries", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("limit", ctypes.c_uint64),
                ("enabled", ctypes.c_bool)]


def cache(clear=False):
    """What compiled shaders take on disk, as plain data; with `clear` what was freed. Starts no device."""
    library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "libopenmps.so"))
    info = CacheInfo()
    library.mps_shader_cache_get_info(ctypes.byref(info))
    facts = {"path": os.fsdecode(info.path), "enabled": info.enabled, "entries": info.entries, "bytes": info.bytes, "limit": info.limit}
    if clear:
        entries, size = ctypes.c_uint64(), ctypes.c_uint64()
        library.mps_shader_cache_clear(ctypes.byref(entries), ctypes.byref(size))
        facts.update(entries=entries.value, bytes=size.value)
    return facts


def show_cache(facts, cleared):
    if cleared:
        print(f"removed {facts['entries']} files, {facts['bytes']} bytes, from {facts['path'] or 'nowhere: HOME is not set'}")
        return
    print(f"path      {facts['path'] or 'none: HOME is not set'}" + ("" if facts["enabled"] else " (not used: OPENMPS_CACHE=0)"))
    print(f"entries   {facts['entries']}")
    print(f"bytes     {facts['bytes']} of {facts['limit']}")


def main():
    parser = argparse.ArgumentParser(prog="openmps", description="PyTorch's mps device on machines without Metal.")
    commands = parser.add_subparsers(dest="command", required=True)
    info = commands.add_parser("info", help="versions, device, coverage and settings")
    info.add_argument("--json", action="store_true", help="as JSON, with the names of the entries that are missing")
    stored = commands.add_parser("cache", help="what compiled shaders take on disk; `openmps cache clear` removes them")
    stored.add_argument("action", nargs="?", choices=["clear"], help="removes every compiled shader")
    stored.add_argument("--json", action="store_true", help="as JSON")
    commands.add_parser("metal", add_help=False, help="lists, runs, checks, times and translates the kernels of a Metal source")
    if sys.argv[1:2] == ["metal"]:  # its options may stand between its arguments, which sub-commands of argparse cannot
        from openmps import _metal

        return _metal.main(sys.argv[2:])
    options = parser.parse_args()
    facts = gather() if options.command == "info" else cache(clear=options.action == "clear")
    if options.json:
        json.dump(facts, sys.stdout, indent=2)
        print()
    elif options.command == "info":
        show(facts)
    else:
        show_cache(facts, options.action == "clear")
    return 0


if __name__ == "__main__":
    sys.exit(main())
