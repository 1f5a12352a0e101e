# SPDX-License-Identifier: BSD-3-Clause
"""`openmps metal`: listing, running, checking, timing and translating kernels from the command line.

Most of it is called in this process, where compiled sources are found again; what settings of a process decide runs in one of its own.
"""
import json
import os
import re
import subprocess
import sys

import numpy
import pytest
from openmps import _metal
from openmps._metal_signatures import parameters, signatures
from openmps._metal_values import TYPES, Refusal, argument

# No threads meet here, and the word that would say so must not appear: signatures are then not needed for a run.
SOURCE = """#include <metal_stdlib>
using namespace metal;
kernel void saxpy(device const float *x, device float *y, constant float &a, uint i [[thread_position_in_grid]]) {
  y[i] += a * x[i];
}
struct Settings { uint n; float by; half less; };
kernel void scale(device float *x, constant Settings &s, uint i [[thread_position_in_grid]]) {
  if (i < s.n) x[i] = x[i] * s.by - s.less;
}
kernel void sum3(device float *out, constant packed_float3 &v) { out[0] = v[0] + v[1] + v[2]; }
kernel void place(device uint *out, uint3 p [[thread_position_in_grid]], uint3 n [[threads_per_grid]]) {
  out[(p.z * n.y + p.y) * n.x + p.x] = p.x + 10 * p.y + 100 * p.z;
}
kernel void third(device float *out [[buffer(2)]], uint i [[thread_position_in_grid]]) { out[i] = i; }
kernel void idle(uint i [[thread_position_in_grid]]) {}
#define NEXT(T) kernel void next_##T(device T *x, uint i [[thread_position_in_grid]]) { x[i] = x[i] + T(1); }
NEXT(char) NEXT(uchar) NEXT(short) NEXT(ushort) NEXT(int) NEXT(uint) NEXT(long) NEXT(ulong) NEXT(half) NEXT(float) NEXT(bfloat)
kernel void next_bool(device bool *x, uint i [[thread_position_in_grid]]) { x[i] = !x[i]; }
kernel void next_complex64(device float2 *x, uint i [[thread_position_in_grid]]) { x[i] = x[i] + float2(1, 0); }
"""
GROUPS = """#include <metal_stdlib>
using namespace metal;
template <typename T> [[kernel]] void total(device T *out [[buffer(1)]], device const T *in [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  out[i] = simd_sum(in[i]);
}
template [[host_name("total_float")]] [[kernel]] void total<float>(device float *out [[buffer(1)]], device const float *in [[buffer(0)]],
                                                                   uint i [[thread_position_in_grid]]);
template [[host_name("total_int")]] kernel decltype(total<int>) total<int>;
[[max_total_threads_per_threadgroup(64)]] kernel void groups(device uint *out, uint i [[thread_position_in_grid]],
                                                             uint size [[threads_per_threadgroup]]) {
  out[i] = size;
}
kernel void given(device float *out, threadgroup float *tile, uint i [[thread_position_in_grid]]) { out[i] = tile[0]; }
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.metal").write_text(SOURCE)
    (tmp_path / "groups.metal").write_text(GROUPS)
    numpy.save("x.npy", numpy.arange(8, dtype=numpy.float32))
    numpy.save("y.npy", numpy.ones(8, numpy.float32))
    return tmp_path


@pytest.fixture
def metal(folder, capsys):
    """Calls the command in this process: metal(word...) -> (status, output, errors)."""

    def call(*words):
        capsys.readouterr()
        status = _metal.main([str(w) for w in words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def command(*words, text=None, **environment):
    """The command in a process of its own."""
    full = {k: v for k, v in {**os.environ, **environment}.items() if v is not None}
    return subprocess.run([sys.executable, "-m", "openmps", "metal", *words], env=full, input=text, capture_output=True, text=True, timeout=900)


# ---- arguments ----
RANDOM = numpy.random.default_rng(0)
VALUES = {
    "int:5": ("int32", (), 5), "int:-0x10": ("int32", (), -16), "float:1,2.5,-3e2": ("float32", (3,), [1, 2.5, -300]), "half:inf": ("float16", (), numpy.inf),
    "bool:true,0": ("bool", (2,), [True, False]), "complex64:1+2j": ("complex64", (), 1 + 2j), "bfloat:1.5,-2": ("bfloat16", (2,), [1.5, -2]),
    "ulong:18446744073709551615": ("uint64", (), 2**64 - 1), "zeros:float:4": ("float32", (4,), [0] * 4), "ones:bfloat16:2x2": ("bfloat16", (2, 2), [[1, 1]] * 2),
    "arange:char:2x3": ("int8", (2, 3), [[0, 1, 2], [3, 4, 5]]), "zeros:half:0": ("float16", (0,), []),
}
REFUSED = {
    "5": "'5' is no argument: an argument is one of\n  FILE.npy",
    "5,float:2": "'5,float:2': '5' has no type; write int:5 or float:5",
    "int:3000000000": "'int:3000000000': 3000000000 does not fit int32, which goes from -2147483648 to 2147483647",
    "uchar:-1": "'uchar:-1': -1 does not fit uint8, which goes from 0 to 255",
    "half:70000": "'half:70000': 70000 does not fit float16",
    "bfloat:3.4e38": "'bfloat:3.4e38': 3.4e38 does not fit bfloat16",
    "int:1.5": "'int:1.5': '1.5' is no int32",
    "bool:2": "'bool:2': '2' is no bool",
    "double:1": "'double:1': Metal has no double; use float32",
    "zeros:float64:4": "'zeros:float64:4': Metal has no float64; use float32",
    "zeros:complex128:4": "'zeros:complex128:4': Metal has no complex128; use complex64",
    "zeros:real:4": "'zeros:real:4': 'real' is no type; known are bool, char,",
    "zeros:float": "'zeros:float' wants a type and a shape, as zeros:float32:1024",
    "zeros:float:4x": "'zeros:float:4x': '4x' is no shape; write 1024 or 4x256",
    "zeros:float:99999999999999": "an array of 99999999999999 float32 cannot be made: ",
    "arange:float:99999999999999999999": "an array of 99999999999999999999 float32 cannot be made: ",
    "missing.npy": "missing.npy: No such file or directory",
    "real:missing.npy": "'real:missing.npy': 'real' is no type",
    "double.npy": "double.npy holds float64, which Metal does not have: write float32:double.npy to convert it",
    "text.npy": "text.npy holds <U1, which kernels cannot use: save it as one of bool, complex64, float16",
    "objects.npy": "objects.npy is no .npy file of numbers: ",
    "no.npy": "no.npy is no .npy file: it does not begin with \\x93NUMPY",
    "short.npy": "short.npy is no .npy file of numbers: ",
    "float:complex.npy": "'float:complex.npy': complex64 does not become float32; save its real or imaginary part",
    "float:text.npy": "'float:text.npy': <U1 does not become float32: only numbers are converted",
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    numpy.save("double.npy", numpy.array([[0.5, 2.5]]))
    numpy.save("text.npy", numpy.array(["a"]))
    numpy.save("objects.npy", numpy.array([{}], object), allow_pickle=True)
    numpy.save("complex.npy", numpy.ones(2, numpy.complex64))
    numpy.save("other_order.npy", numpy.asfortranarray(numpy.arange(6, dtype=">f4").reshape(2, 3)))
    (tmp_path / "no.npy").write_text("hello")
    (tmp_path / "short.npy").write_bytes((tmp_path / "complex.npy").read_bytes()[:-1])


@pytest.mark.parametrize("text", VALUES)
def test_argument(text):
    found, (name, shape, values) = argument(text, RANDOM), VALUES[text]
    assert (found.type_name, found.array.shape) == (name, shape)
    assert numpy.array_equal(found.shown(), numpy.array(values, found.shown().dtype))
    assert found.bytes().dtype == numpy.uint8 and numpy.array_equal(found.read(found.bytes()).bytes(), found.bytes())


@pytest.mark.parametrize("text", REFUSED)
def test_refused_argument(files, text):
    with pytest.raises(Refusal, match=re.escape(REFUSED[text])):
        argument(text, RANDOM)


def test_arguments_from_files(files):
    assert argument("float:double.npy", RANDOM).array.tolist() == [[0.5, 2.5]]
    assert argument("int:double.npy", RANDOM).array.tolist() == [[0, 2]]
    assert argument("bfloat:double.npy", RANDOM).shown().tolist() == [[0.5, 2.5]]
    assert argument("other_order.npy", RANDOM).bytes().view("<f4").tolist() == [0, 1, 2, 3, 4, 5]
    assert argument("none", RANDOM).array is None and argument("none", RANDOM).bytes().size == 0


def test_random_arguments():
    def drawn(text):
        return argument(text, numpy.random.default_rng(1)).array

    for name in set(TYPES.values()) - {"bfloat16"}:
        assert drawn(f"random:{name}:1000").dtype == name and len(set(drawn(f"random:{name}:1000").tolist())) > 1
        assert numpy.array_equal(drawn(f"random:{name}:9"), drawn(f"random:{name}:9"))
    assert 0 <= drawn("random:float:1000").min() and drawn("random:float:1000").max() < 1
    assert 0 <= drawn("random:long:1000").min() and drawn("random:long:1000").max() == 99


def test_structs_lie_as_in_c():
    assert argument("uchar:1,float:2,half:3", RANDOM).bytes().tolist() == [1, 0, 0, 0, 0, 0, 0, 64, 0, 66, 0, 0]
    assert argument("ushort:1,2,bfloat:1.5", RANDOM).bytes().tolist() == [1, 0, 2, 0, 0xC0, 0x3F]


def test_bfloat_rounds_to_even():
    bits = [argument(f"bfloat:{v}", RANDOM).array.item() for v in ("1.00390625", "1.01171875", "nan", "-0")]
    assert bits == [0x3F80, 0x3F82, 0x7FC0, 0x8000]


# ---- signatures ----
def test_parameters():
    text = "device T *a, constant Row &row [[buffer(0)]], threadgroup float *t [[threadgroup(1)]], threadgroup int *u, uint i [[thread_position_in_grid]], "
    text += "constant metal::array<device float *, 2> &list, device float (*rows)[4], device int *last [[buffer(COUNT + 1)]]"
    found = parameters(text)
    assert [f[:3] for f in found[:5]] == [("buffer", 1, "a"), ("buffer", 0, "row"), ("threadgroup", 1, "t"), ("threadgroup", 0, "u"), ("buffer", 2, "list")]
    assert found[4][3] == "constant metal::array<device float *, 2> &" and found[-1] == ("buffer", -1, "last", "device int *")


def test_signatures_of_what_is_not_understood():
    assert signatures("kernel int f(device int *x) {} kernel void (") == {}
    assert signatures("int kernels; kernel void f(device int *x) {}") == {"f": [("buffer", 0, "x", "device int *")]}


# ---- listing ----
def test_lists_kernels(metal):
    status, out, err = metal("groups.metal")
    assert (status, err) == (0, "")
    assert out == """groups.metal: 4 kernels
given  (at most 1024 threads a threadgroup)
  buffer 0       out          device float *
  threadgroup 0  tile         threadgroup float *
groups  (at most 64 threads a threadgroup)
  buffer 0       out          device uint *
total_float  (at most 1024 threads a threadgroup)
  buffer 1       out          device float *
  buffer 0       in           device const float *
total_int  (at most 1024 threads a threadgroup)
  buffer 1       out          device T *
  buffer 0       in           device const T *
"""


def test_lists_as_json(metal):
    status, out, _ = metal("a.metal", "--json")
    kernels = {k["name"]: k for k in json.loads(out)["kernels"]}
    assert status == 0 and json.loads(out)["file"] == "a.metal" and len(kernels) == 19
    assert kernels["scale"] == {"name": "scale", "max_threads_per_threadgroup": 1024, "arguments": [
        {"kind": "buffer", "index": 0, "name": "x", "type": "device float *"}, {"kind": "buffer", "index": 1, "name": "s", "type": "constant Settings &"}]}
    assert kernels["third"]["arguments"][0]["index"] == 2 and kernels["idle"]["arguments"] == []
    assert kernels["next_half"]["arguments"][0]["type"] == "device half *"


def test_a_wrong_source(metal, folder):
    (folder / "wrong.metal").write_text("// é\nkernel void f(device float *x) {\n\tx[0] = /* é */ missing;\n  x[1] = also;\n}\n")
    status, out, err = metal("wrong.metal")
    assert (status, out) == (1, "")
    assert err == """wrong.metal:3:18: error: use of undeclared identifier 'missing'
    3 | \tx[0] = /* é */ missing;
      | \t               ^
wrong.metal:4:10: error: use of undeclared identifier 'also'
    4 |   x[1] = also;
      |          ^
"""
    assert metal("wrong.metal", "--emit", "llvm") == (1, "", err)
    assert metal("wrong.metal", "zeros:float:2") == (1, "", err)


def test_sources_that_are_none(metal, folder):
    (folder / "empty.metal").write_text("// nothing\n")
    (folder / "latin.metal").write_bytes("// é".encode("latin-1"))
    (folder / "zero.metal").write_bytes(b"//\0")
    assert metal("empty.metal") == (0, "empty.metal has no kernels: one begins with `kernel void NAME(...)`\n", "")
    assert metal("empty.metal", "--threads", 1)[0] == 2
    assert metal("missing.metal") == (2, "", "openmps metal: missing.metal: No such file or directory\n")
    assert metal("latin.metal") == (2, "", "openmps metal: latin.metal is no text in UTF-8: byte 3 is 0xe9\n")
    assert metal("zero.metal") == (2, "", "openmps metal: zero.metal is no text: byte 2 is zero\n")


# ---- running ----
def test_prints_what_changed(metal):
    status, out, err = metal("a.metal", "--kernel", "saxpy", "x.npy", "y.npy", "float:2")
    assert (status, out, err) == (0, "1: float32 [8]\n[ 1.  3.  5.  7.  9. 11. 13. 15.]\n", "")
    assert metal("a.metal", "--kernel", "idle", "--threads", 4) == (0, "idle ran over 4 threads and changed none of its arrays\n", "")


def test_prints_and_saves_what_is_asked_for(metal):
    words = ["a.metal", "x.npy", "--kernel", "saxpy", "--print", "a", "y.npy", "--save", "1=out.npy", "float:2", "--save", "x=same.npy", "--print", "0"]
    status, out, err = metal(*words)
    assert (status, out, err) == (0, "2: float32 []\n2.0\n0: float32 [8]\n[0. 1. 2. 3. 4. 5. 6. 7.]\n", "")
    assert numpy.array_equal(numpy.load("out.npy"), 1 + 2 * numpy.arange(8, dtype=numpy.float32)) and numpy.load("out.npy").dtype == numpy.float32
    assert numpy.array_equal(numpy.load("same.npy"), numpy.load("x.npy"))


@pytest.mark.parametrize("name", TYPES)
def test_round_trip(metal, name):
    dtype = numpy.dtype("uint16" if name == "bfloat" else TYPES[name])
    values = numpy.array([[0, 1], [1, 0]] if name == "bool" else [[0, 1], [2, 100]], "float32" if name == "bfloat" else dtype)
    numpy.save("in.npy", values)
    given = "bfloat:in.npy" if name == "bfloat" else "in.npy"
    status, out, err = metal("a.metal", "--kernel", f"next_{name}", given, "--save", "0=out.npy")
    found = numpy.load("out.npy")
    assert (status, out) == (0, "") and found.dtype == dtype and found.shape == (2, 2)
    if name == "bfloat":
        assert err == "openmps metal: out.npy holds the bits of bfloat as uint16, for numpy has no bfloat\n"
        assert found.tolist() == [[0x3F80, 0x4000], [0x4040, 0x42CA]]
        assert metal("a.metal", "--kernel", "next_bfloat", "out.npy")[1] == f"0: uint16 [2, 2]\n{numpy.array([[0x4000, 0x4040], [0x4080, 0x42CC]])}\n"
    else:
        assert err == "" and numpy.array_equal(found, ~values if name == "bool" else values + dtype.type(1))


def test_structs_and_vectors(metal):
    assert metal("a.metal", "--kernel", "scale", "x.npy", "uint:3,float:2,half:0.5") == (0, "0: float32 [8]\n[-0.5  1.5  3.5  3.   4.   5.   6.   7. ]\n", "")
    assert metal("a.metal", "--kernel", "sum3", "zeros:float:1", "float:1,2,4") == (0, "0: float32 [1]\n[7.]\n", "")
    numpy.save("rows.npy", numpy.array([(3, 2, 0.5, 0)], [("n", "u4"), ("by", "f4"), ("less", "f2"), ("pad", "u2")]))
    assert metal("a.metal", "--kernel", "scale", "ones:float:4", "rows.npy") == (0, "0: float32 [4]\n[1.5 1.5 1.5 1. ]\n", "")


def test_grids(metal):
    assert metal("a.metal", "--kernel", "place", "zeros:uint:2x2x3", "--threads", "3,2,2", "--save", "0=p.npy")[0] == 0
    assert numpy.load("p.npy").tolist() == [[[0, 1, 2], [10, 11, 12]], [[100, 101, 102], [110, 111, 112]]]
    assert metal("a.metal", "--kernel", "third", "none", "none", "zeros:float:3") == (0, "2: float32 [3]\n[0. 1. 2.]\n", "")
    assert metal("a.metal", "--kernel", "third", "none", "none", "zeros:float:3", "--threads", "2")[1] == "2: float32 [3]\n[0. 1. 0.]\n"
    assert metal("groups.metal", "--kernel", "groups", "zeros:uint:3") == (0, "0: uint32 [3]\n[3 3 3]\n", "")
    assert metal("groups.metal", "--kernel", "groups", "zeros:uint:3", "--group", "2", "--threads", "3,1")[1] == "0: uint32 [3]\n[2 2 1]\n"
    assert metal("groups.metal", "--kernel", "total_int", "ones:int:32", "zeros:int:32", "--save", "out=t.npy", "--group", "32")[0] == 0
    assert numpy.load("t.npy").tolist() == [32] * 32


def test_times(metal):
    words = ["a.metal", "--kernel", "saxpy", "x.npy", "y.npy", "float:2"]
    status, out, _ = metal(*words, "--time", 3, "--save", "1=out.npy")
    assert status == 0 and re.fullmatch(r"median [\d.]+ (s|ms|us), min [\d.]+ (s|ms|us) of 3 runs; 68 bytes bound, [\d.]+ GB/s\n", out)
    assert numpy.load("out.npy").tolist() == [1, 3, 5, 7, 9, 11, 13, 15]  # each run found the arrays as they were given
    status, out, _ = metal(*words[:3], "--time", *words[3:], "--json")
    facts = json.loads(out)
    assert (facts["kernel"], facts["threads"], facts["group"], facts["changed"]) == ("saxpy", [8], None, [1])
    times = facts["time"]
    assert times["runs"] == 20 and 0 < times["min_seconds"] <= times["median_seconds"] and times["bytes"] == 68
    assert times["gigabytes_per_second"] == pytest.approx(68e-9 / times["median_seconds"])


RUN = ["a.metal", "--kernel", "saxpy"]
STOPS = {
    "which kernel": (["a.metal", "x.npy"], "a.metal has 19 kernels, say which with --kernel: idle, next_bfloat, "),
    "no such kernel": (["a.metal", "--kernel", "sxpy", "x.npy"], "--kernel sxpy: a.metal has no such kernel, but idle, "),
    "threads are missing": (["a.metal", "--kernel", "idle"], "--threads is missing: it is the number of elements of the first array"),
    "numbers are no grid": (["a.metal", "--kernel", "idle", "int:5"], "--threads is missing"),
    "four dimensions": ([*RUN, "--threads", "1,1,1,1"], "--threads 1,1,1,1: give one to three numbers, as 1024 or 64,64"),
    "an empty group": ([*RUN, "x.npy", "--group", "0"], "--group 0: numbers are 1 or more"),
    "a large group": ([*RUN, "x.npy", "y.npy", "float:2", "--group", "64,32"], "--group 64,32 is 2048 threads: 'saxpy' takes at most 1024"),
    "a limited kernel": (["groups.metal", "--kernel", "groups", "zeros:uint:99", "--group", "65"], "--group 65 is 65 threads: 'groups' takes at most 64"),
    "an argument short": ([*RUN, "x.npy", "y.npy"], "kernel 'saxpy' takes an argument at buffer index 2, and none is set"),
    "32 arguments": ([*RUN, *["x.npy"] * 32], "32 arguments are given: Metal binds at most 31 buffers"),
    "a wrong argument": ([*RUN, "z.npy"], "z.npy: No such file or directory"),
    "threadgroup memory": (["groups.metal", "--kernel", "given", "x.npy"], "'given' takes threadgroup memory (tile, index 0), whose length only a program can give"),
    "print what is not there": ([*RUN, "x.npy", "y.npy", "float:2", "--print", "3"], "--print 3: there is no such array; 3 arguments are given, numbered from 0"),
    "print by a wrong name": ([*RUN, "x.npy", "y.npy", "float:2", "--print", "z"], "--print z: there is no such array; 3 arguments are given, numbered from 0; 'saxpy' names x, y, a"),
    "save without a file": ([*RUN, "x.npy", "y.npy", "float:2", "--save", "1"], "--save 1: write INDEX=FILE.npy, as 0=out.npy"),
    "save another kind": ([*RUN, "x.npy", "y.npy", "float:2", "--save", "1=a.txt"], "--save 1=a.txt: results are written as .npy files"),
    "no runs": ([*RUN, "x.npy", "--time", "0"], "--time 0: the number of runs is 1 or more"),
    "a negative seed": ([*RUN, "x.npy", "--seed", "-1"], "--seed -1: seeds are 0 or more"),
    "emit and run": (["a.metal", "x.npy", "--emit", "llvm"], "--emit shows the whole source and runs nothing: leave the arguments out"),
    "emit a kernel": (["a.metal", "--kernel", "saxpy", "--emit", "llvm"], "--emit shows the whole source and runs nothing: leave --kernel out"),
    "output without emit": ([*RUN, "x.npy", "-o", "a.npy"], "-o a.npy belongs to --emit; results are written with --save INDEX=FILE.npy"),
    "json and print": ([*RUN, "x.npy", "--json", "--print", "0"], "--print and --json are two forms of output"),
    "check nothing": (["a.metal", "--check"], "--check looks at a run: give the kernel's arguments"),
    "no such folder": (["a.metal", "-I", "nowhere"], "-I nowhere: there is no such folder"),
}


@pytest.mark.parametrize("name", STOPS)
def test_refused_command(metal, name):
    words, expected = STOPS[name]
    status, out, err = metal(*words)
    assert (status, out) == (2, "") and err.startswith(f"openmps metal: {expected}")


def test_results_that_cannot_be_written(metal):
    words = [*RUN, "x.npy", "y.npy", "float:2", "--save", "1=nowhere/out.npy"]
    assert metal(*words) == (1, "", "--save nowhere/out.npy: No such file or directory\n")
    assert metal("a.metal", "--emit", "preprocessed", "-o", "nowhere/a.ll") == (2, "", "openmps metal: -o nowhere/a.ll: No such file or directory\n")


# ---- stages ----
STAGES = {
    "preprocessed": ("kernel void groups(device uint *out", "namespace metal {"),
    "reader": ("mps_entry_0", "namespace metal {"),
    "lanes": ("void @mps_group_", "void @mps_threads_0(ptr"),
    "checked": ("call ptr @mps.access(", "program_source"),
    "llvm": ("mps_host_library", "kernel void"),
    "assembly": (".globl\tmps_host_library", "define void"),
}


@pytest.mark.parametrize("stage", _metal.STAGES)
def test_stage(metal, stage):
    present, absent = STAGES[stage]
    status, out, err = metal("groups.metal", "--emit", stage)
    assert (status, err) == (0, "") and present in out and absent not in out
    if stage != "checked":  # its lines for debuggers have a sum over a text with the name of a temporary folder
        assert metal("groups.metal", "--emit", stage) == (0, out, "")


def test_stages_in_files_and_without_lanes(metal):
    assert metal("a.metal", "--emit", "preprocessed", "-o", "a.txt") == (0, "", "")
    with open("a.txt") as file:
        assert "kernel void next_half(device half *x" in file.read()
    assert metal("a.metal", "--emit", "lanes") == (1, "", "a.metal has no kernel whose threads meet, so there are no loops over lanes\n")


# ---- processes of their own ----
WRONG = """kernel void smooth(device float *out, device const float *in, uint i [[thread_position_in_grid]]) {
  float left = i > 0 ? in[i - 1] : in[0];
  out[i] = (left + in[i] + in[i + 1]) / 3;
}
"""


def test_check(folder):
    (folder / "smooth.metal").write_text(WRONG)
    found = command("smooth.metal", "--check", "zeros:float:1000", "arange:float:1000", "--save", "0=out.npy")
    assert found.returncode == 1 and found.stdout == "" and not os.path.exists("out.npy")
    assert found.stderr == ("smooth.metal:3: kernel 'smooth' reads 4 bytes at offset 4000 of buffer 1, which has 4000 bytes, in thread (999, 0, 0)\n"
                            "    3 |   out[i] = (left + in[i] + in[i + 1]) / 3;\n")


def test_check_of_a_right_run(folder):
    (folder / "smooth.metal").write_text(WRONG)
    found = command("smooth.metal", "--check", "zeros:float:3", "ones:float:4", MTL_SHADER_VALIDATION=None)
    assert (found.returncode, found.stdout, found.stderr) == (0, "0: float32 [3]\n[1. 1. 1.]\n", "")


def test_stages_of_a_checked_run(folder):
    found = command("a.metal", "--check", "--emit", "llvm")
    assert found.returncode == 0 and found.stderr == "" and found.stdout != command("a.metal", "--emit", "llvm").stdout
    assert "vector.body" not in found.stdout


def test_standard_input_and_folders(folder):
    (folder / "given").mkdir()
    (folder / "given" / "one.h").write_text("#define ONE 1\n")
    (folder / "two.h").write_text("#define TWO 2\n")
    text = '#include <one.h>\n#include "two.h"\nkernel void f(device int *x) { x[0] = ONE + TWO; }\n'
    found = command("-", "-I", "given", "zeros:int:1", text=text)
    assert (found.returncode, found.stdout, found.stderr) == (0, "0: int32 [1]\n[3]\n", "")
    wrong = command("-", text="kernel void f(device int *x) { x = 1.5; y; }")
    assert wrong.returncode == 1 and "<stdin>:1:41: error: use of undeclared identifier 'y'\n" in wrong.stderr


def test_without_openmps_and_without_numpy(folder):
    off = command("a.metal", OPENMPS="0")
    assert off.returncode == 1 and off.stderr.startswith("OpenMPS is not active in this process (OPENMPS=0,")
    code = "import sys; sys.modules['numpy'] = None; from openmps import _metal; sys.exit(_metal.main(['a.metal', '--kernel', 'idle', '--threads', '1']))"
    missing = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=900)
    assert missing.returncode == 1 and missing.stderr.endswith("running a kernel needs numpy, for arrays and .npy files: pip install 'openmps[shaders]'\n")


def test_help(folder):
    found = command("--help")
    assert found.returncode == 0 and found.stdout.startswith("usage: openmps metal FILE ") and "random:float:1000000" in found.stdout
    assert command("a.metal", "--emit", "soup").returncode == 2
