# SPDX-License-Identifier: BSD-3-Clause
"""os_log in kernels: every conversion against Python's own formatting, vectors, types, levels, threads that meet, checked mode.

Messages go to stderr, so that kernels run in a child process.
"""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys, torch
source = sys.stdin.read()
library = torch.mps.compile_shader(source)
out = torch.zeros(64, device="mps")
library.f(out, threads={threads}, group_size={group})
torch.mps.synchronize()
"""

HEAD = """#include <metal_stdlib>
#include <metal_logging>
using namespace metal;
constant os_log mine("org.example", "kernels");
kernel void f(device float *out, uint i [[thread_position_in_grid]]) {
"""


def messages(body: str, threads: int = 1, group: int = 1, **environment: str) -> list[str]:
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(threads=threads, group=group)],
        input=HEAD + body + "\n}",
        env=dict(os.environ, **environment),
        text=True,
        capture_output=True,
        timeout=600,
    )
    assert child.returncode == 0, child.stderr[-4000:]
    return child.stderr.splitlines()


# Metal's statement, and the line: Python's % writes it for the conversions that both have.
CONVERSIONS = {
    'log("plain")': "plain",
    'log("%d|%i|%u", -5, 1 << 20, 7u)': "-5|1048576|7",
    'log("%x|%X|%o|%#x", -1, 48879u, 8, 255)': "ffffffff|BEEF|10|0xff",
    'log("%ld|%lu|%lld", long(1) << 40, ulong(-1), long(-3))': f"{1 << 40}|{2**64 - 1}|-3",
    'log("%hd|%hhu|%d", short(-2), uchar(200), true)': "-2|200|1",
    'log("%f|%.2f|%8.3f|%-8.1f|", 1.5f, 3.14159f, -2.0f, 0.25f)': "%f|%.2f|%8.3f|%-8.1f|" % (1.5, 3.14159, -2.0, 0.25),
    'log("%e|%g|%G|%a", 12345.678f, 0.0001f, 1e20f, 1.0f)': f"{12345.678:e}|0.0001|1E+20|0x1p+0",
    'log("%f|%f", half(0.5h), bfloat(2.0f))': "0.500000|2.000000",
    'log("%+d|%05d|% d|%-5d|", 3, 42, 7, 9)': "+3|00042| 7|9    |",
    'log("%c%c|100%%", uchar(79), 75)': "OK|100%",
    'log("%v4f|%.1v2f", float4(1, 2, 3, 4), float2(0.5, -1))': "1.000000,2.000000,3.000000,4.000000|0.5,-1.0",
    'log("%v3d|%v2hlx", int3(-1, 0, 1), ushort2(10, 255))': "-1,0,1|a,ff",
    'log("%f|%f|%f", INFINITY, -INFINITY, NAN)': "inf|-inf|nan",
    'log("%d and %f", 1)': "1 and %f",
    'log("%s %q 5%", 1, 2)': "%s %q 5%",
    'log("%d", 2.75f)': "2",
    'log("%f", 3)': "3.000000",
}


@pytest.fixture(scope="module")
def conversions() -> list[str]:
    return messages("".join(f"os_log_default.{statement};\n" for statement in CONVERSIONS))


@pytest.mark.parametrize("number", range(len(CONVERSIONS)), ids=list(CONVERSIONS))
def test_conversion(conversions, number):
    assert len(conversions) == len(CONVERSIONS)
    assert conversions[number] == list(CONVERSIONS.values())[number]


TYPES = 'mine.log_debug("a"); mine.log_info("b"); mine.log("c"); mine.log_error("d"); mine.log_fault("e");'


@pytest.mark.parametrize("level, shown", [("", "abcde"), ("MTLLogLevelInfo", "bcde"), ("MTLLogLevelNotice", "cde"), ("Error", "de"), ("MTLLogLevelFault", "e")])
def test_levels(level, shown):
    assert messages(TYPES, MTL_LOG_LEVEL=level) == [f"[org.example:kernels] {letter}" for letter in shown]


@pytest.mark.parametrize("lanes", ["0", "1"])
def test_threads_that_meet(lanes):
    body = 'float sum = simd_sum(float(i)); threadgroup_barrier(mem_flags::mem_none); if (i % 32 == 5) os_log_default.log("%u: %g", i, sum);'
    assert sorted(messages(body, threads=64, group=64, OPENMPS_SHADER_LANES=lanes)) == ["37: 1520", "5: 496"]


def test_every_thread_a_whole_line():
    lines = messages('out[i] = i; os_log_default.log("thread %u of many", i);', threads=500, group=10)
    assert sorted(lines) == sorted(f"thread {i} of many" for i in range(500))


def test_checked_mode():
    assert messages('mine.log("%d", 5); out[i] = 1;', OPENMPS_SHADER_VALIDATION="1") == ["[org.example:kernels] 5"]


def test_a_long_message_ends_with_dots():
    (line,) = messages('os_log_default.log("%900d%900d", 1, 2);')
    assert len(line) == 999 and line.endswith("...")
