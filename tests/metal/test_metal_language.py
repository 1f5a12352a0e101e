# SPDX-License-Identifier: BSD-3-Clause
"""The language side of kernels/include: language.cpp on every level and target, as C++14 without extensions
and without warnings, each header alone, and what must not compile."""
import ctypes
import importlib.util
import threading
from pathlib import Path

import numpy as np
import pytest

import metal_build as build

LANGUAGE = (Path(__file__).parent / "language.cpp").read_text()
IDIOMS = (Path(__file__).parent / "idioms.cpp").read_text()
KERNEL_CHECK = ["-std=c++14", "-Werror=c++17-extensions"]
STRICT = KERNEL_CHECK + ["-Wall", "-Wextra", "-Werror", "-Wno-c++98-compat"]


@pytest.mark.parametrize("level", build.LEVELS)
def test_language(level):
    line = build.load(LANGUAGE, level).language_check()
    assert line == 0, LANGUAGE.splitlines()[line - 1].strip()


@pytest.mark.parametrize("target", build.TARGETS)
def test_language_compiles_as_cxx14_for_every_target(target):
    built, _ = build.compile_text(LANGUAGE, target, STRICT, isystem=False)
    if target == "ptx":
        assert "bar.sync" in built.read_text() or "barrier.sync" in built.read_text()
    else:
        assert [n for n in build.undefined_symbols(built) if n] == []
        assert b"_GLOBAL__sub_I" not in built.read_bytes(), "a constant is initialised at run time"


@pytest.mark.parametrize("target", build.TARGETS)
def test_idioms_compile(target):
    build.compile_text(IDIOMS, target, STRICT, isystem=False)


@pytest.mark.parametrize("header", build.PUBLIC_HEADERS)
def test_each_header_stands_alone(header):
    build.compile_text(f"#include <{header}>\n", "v3", STRICT + ["-fsyntax-only"], isystem=False)


def test_qualifiers_can_be_kept_for_a_reader():
    """With OPENMPS_KEEP_QUALIFIERS the preprocessed user's text has them, and no header uses one."""
    text = "#include <metal_stdlib>\nkernel void copy(device float* a, constant uint& n) { a[n] = 0; }\n"
    built, _ = build.compile_text(text, "v3", ["-E", "-P", "-DOPENMPS_KEEP_QUALIFIERS"])
    lines = built.read_text().splitlines()
    assert lines[-1] == text.splitlines()[1]
    words = set(" ".join(lines[:-1]).replace("(", " ").split())
    assert not words & {"device", "constant", "thread", "threadgroup", "kernel"}


@pytest.mark.parametrize("target", ["v3", "ptx"])
def test_pytorch_headers_compile(target):
    """Shaders that include c10/metal: unsuffixed literals are float, as the reader makes them, and
    functions are overloaded on `constant` and `device`."""
    torch = Path(importlib.util.find_spec("torch").origin).parent / "include"
    names = sorted(p.name for p in (torch / "c10" / "metal").glob("*.h"))
    assert "special_math.h" in names
    text = "#include <metal_stdlib>\n" + "".join(f"#include <c10/metal/{n}>\n" for n in names)
    text += "".join(f"float f_{n}(float x) {{ return c10::metal::{n}(x); }}\n" for n in ("digamma", "erf", "i0", "log_gamma"))
    text += "float2 power(float2 a, float2 b) { return c10::metal::mul(a, b); }\n"
    attributes = ["-Wno-unknown-attributes", "-Wno-ignored-attributes"]  # [[buffer(n)]] and the like
    build.compile_text(text, target, KERNEL_CHECK + attributes + ["-Dconstant=const", "-Xclang", "-cl-single-precision-constant", "-isystem", str(torch)])


@pytest.mark.parametrize("wrong, message", [
    ("void f(thread float4& v) { v.xx = 1; }", "no setter"),
    ("float f(float2 v) { return v.z; }", "no member"),
    ("float f(float2 v, float3 w) { return (v + w).x; }", "invalid operands"),
    ("float2 f(float4 v) { return v; }", "no viable conversion"),
    ("int2 f(float2 v) { return v; }", "no viable conversion"),
    ("float f(int i, float x) { return metal::max(i, x); }", "ambiguous"),
    ("float f(float x) { return metal::expm1(x); }", "no member"),
])
def test_what_metal_refuses(wrong, message):
    with pytest.raises(AssertionError, match=message):
        build.compile_text(f"#include <metal_stdlib>\n{wrong}\n", "v3", ["-fsyntax-only"])


@pytest.mark.parametrize("level", build.LEVELS[-1:])
def test_atomics_between_threads(level):
    library = build.load(LANGUAGE, level)
    total, count = np.zeros(1, np.float32), np.zeros(1, np.uint32)
    threads = [threading.Thread(target=library.add_many, args=(build.pointer(total), build.pointer(count), ctypes.c_int(50_000)))
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total[0] == 200_000 and count[0] == 400_000
