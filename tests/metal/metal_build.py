# SPDX-License-Identifier: BSD-3-Clause
"""Compiles small C++ texts against kernels/include, for every processor level this machine can run.

Objects are cached in the temporary folder under a hash of everything that went into them. OPENMPS_CLANG
names another clang than the one in the `ziglang` wheel.
"""
import ctypes
import hashlib
import importlib.util
import os
import platform
import shlex
import subprocess
import tempfile
from pathlib import Path

import numpy as np

INCLUDE = Path(__file__).resolve().parents[2] / "kernels" / "include"
HEADERS = sorted(p for p in INCLUDE.rglob("*") if p.is_file())
PUBLIC_HEADERS = sorted(p.name for p in INCLUDE.glob("metal_*"))
CACHE = Path(tempfile.gettempdir()) / f"openmps-metal-tests-{os.getuid()}"

FLAGS = ("-x c++ -std=c++17 -nostdinc -O3 -fPIC -ffp-contract=off -fsigned-char -fdeclspec -Xclang "
         "-ffloat16-excess-precision=none -fno-exceptions -fno-rtti -Rpass=loop-vectorize").split()
TARGETS = {
    "baseline": ["--target=x86_64-linux-gnu", "-march=x86-64"],
    "v3": ["--target=x86_64-linux-gnu", "-march=x86-64-v3"],
    "v4": ["--target=x86_64-linux-gnu", "-march=x86-64-v4", "-mprefer-vector-width=512"],
    "aarch64": ["--target=aarch64-linux-gnu"],
    "ptx": ["--target=nvptx64-nvidia-cuda", "-march=sm_90", "-S"],
}


def _compiler():
    named = os.environ.get("OPENMPS_CLANG")
    if named:
        clang = shlex.split(named)
        return clang, clang + ["-shared", "-nostdlib", "-fuse-ld=lld"]
    origin = importlib.util.find_spec("ziglang").origin
    zig = str(Path(origin).parent / "zig")
    return [zig, "clang"], [zig, "ld.lld", "-shared"]


CLANG, LINKER = _compiler()


def runnable_levels():
    """The levels that this processor can run, lowest first."""
    machine = platform.machine()
    if machine == "aarch64":
        return ["aarch64"]
    assert machine == "x86_64", f"no level is known for {machine}"
    has = np._core._multiarray_umath.__cpu_features__
    levels = ["baseline"]
    if all(has[f] for f in ("AVX2", "FMA3", "F16C")):
        levels.append("v3")
        if all(has[f] for f in ("AVX512F", "AVX512_SKX")):
            levels.append("v4")
    return levels


LEVELS = runnable_levels()


def compile_text(text, target, extra=(), isystem=True):
    """Compile and return (path of the object, what the compiler said); raises on failure."""
    flags = FLAGS + ["-isystem" if isystem else "-I", str(INCLUDE)] + TARGETS[target] + list(extra)
    digest = hashlib.sha256(repr((text, flags, CLANG)).encode())
    for header in HEADERS:
        digest.update(header.read_bytes())
    CACHE.mkdir(mode=0o700, exist_ok=True)
    stem = CACHE / digest.hexdigest()[:24]
    result, said = stem.with_suffix(".o"), stem.with_suffix(".txt")
    if not (result.exists() and said.exists()):
        source = stem.with_suffix(".cpp")
        source.write_text(text)
        partial = stem.with_suffix(f".{os.getpid()}.o")
        mode = [] if "-S" in TARGETS[target] or "-fsyntax-only" in extra else ["-c"]
        run = subprocess.run(CLANG + flags + mode + [str(source), "-o", str(partial)], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        if "-fsyntax-only" in extra:
            partial.write_bytes(b"")
        said.write_text(run.stderr)
        partial.rename(result)
    return result, said.read_text()


def load(text, level, extra=()):
    """Compile for a level, link and load."""
    built, _ = compile_text(text, level, extra)
    library = built.with_suffix(".so")
    if not library.exists():
        partial = built.with_suffix(f".{os.getpid()}.so")
        subprocess.run(LINKER + [str(built), "-o", str(partial)], check=True, capture_output=True)
        partial.rename(library)
    return ctypes.CDLL(str(library))


def undefined_symbols(built):
    """Names that an ELF object wants from elsewhere, read from its symbol table."""
    data = built.read_bytes()
    section_table = int.from_bytes(data[0x28:0x30], "little")
    size, count = int.from_bytes(data[0x3A:0x3C], "little"), int.from_bytes(data[0x3C:0x3E], "little")
    sections = [data[section_table + i * size:section_table + (i + 1) * size] for i in range(count)]

    def field(section, at, width):
        return int.from_bytes(section[at:at + width], "little")

    names = []
    for section in sections:
        if field(section, 4, 4) != 2:  # SHT_SYMTAB
            continue
        strings = field(sections[field(section, 0x28, 4)], 0x18, 8)
        start, length = field(section, 0x18, 8), field(section, 0x20, 8)
        for at in range(start + 24, start + length, 24):
            if int.from_bytes(data[at + 6:at + 8], "little") == 0:  # SHN_UNDEF
                name = strings + int.from_bytes(data[at:at + 4], "little")
                names.append(data[name:data.index(b"\0", name)].decode())
    return names


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def call(library, name, *arrays, out=np.float32):
    """Call a loop function (inputs..., result, count)."""
    result = np.empty(len(arrays[0]), out)
    getattr(library, name)(*map(pointer, arrays), pointer(result), ctypes.c_long(len(result)))
    return result
