# SPDX-License-Identifier: BSD-3-Clause
"""What Metal refuses and C++ would take: each with its text, at the line and column of the user's own source."""
import re

import pytest
import torch

INDEX = "uint i [[thread_position_in_grid]]"


def kernel(body, arguments=f"device float *x, {INDEX}"):
    return f"kernel void f({arguments}) {{\n  {body}\n}}\n"


WRONG = [  # source, what the error begins at ("" = line and column follow), its words
    (kernel("x[i] = double(2);"), "double", "'double' is not supported in Metal: use float"),
    ("#define REAL double\n" + kernel("x[i]   =   REAL(2);"), "REAL(", "'double' is not supported in Metal"),
    (kernel("/* here */ again: x[i] += 1; if (x[i] < 3) goto again;"), "goto", "'goto' is not supported in Metal"),
    (kernel("try { x[i] = 1; } catch (...) {}"), "try", "exceptions are not supported in Metal"),
    (kernel("if (i > 5)   throw 1;"), "throw", "exceptions are not supported in Metal"),
    (kernel("float *p = new float[2];"), "new", "'new' is not supported in Metal: kernels cannot allocate memory"),
    (kernel("delete x;"), "delete", "'delete' is not supported in Metal"),
    ("struct s {\n  virtual float g();\n};\n", "virtual", "virtual functions and base classes are not supported in Metal"),
    (kernel("x[i] = *dynamic_cast<device float *>(x);"), "dynamic_cast", "types are not known at run time"),
    (kernel("thread_local int n;"), "thread_local", "use the address space 'thread' or 'threadgroup'"),
    (kernel("static int calls = 0;\n  x[i] = calls++;"), "static", "a static variable must be in the address space 'constant'"),
    (f"\nkernel float f(device float *x,  {INDEX}) {{ return x[i]; }}\n", "float f", "kernel 'f' must return void"),
    ("[[host_name(\"g\")]]  kernel  metal::uint  f(device float *x) { return 1; }\n", "metal", "kernel 'f' must return void"),
    (kernel("", "device float *x [[buffer(1)]],\n   device int *y [[ buffer( 2 - 1 ) ]]"), "buffer( 2", "buffer index 1 is taken by argument 1"),
    (kernel("", "threadgroup float *a [[threadgroup(0)]], threadgroup int *b [[threadgroup(0)]]"), "threadgroup(0)]])",
     "threadgroup index 0 is taken by argument 1 of this kernel"),
    (kernel("", "device float *x [[buffer(31)]]"), "buffer(31", "buffer index 31 is out of range: there are 0 to 30"),
    (kernel("", "device float *x,  uint i [[ thread_position ]]"), "thread_position", "'thread_position' is not an attribute of a kernel's parameter"),
    (kernel("x[i] = 1;", f"device float *y,\n\tfloat *x [[buffer(2)]], {INDEX}"), "float *x", "a kernel's pointer needs the address space 'device'"),
    (kernel("", "thread float &x [[buffer(2)]]"), "thread float", "a kernel's reference needs the address space"),
    (kernel("", f"device float *y,\n  depth2d<float>   t [[texture(0)]], {INDEX}"), "depth2d", "cube, depth and multisampled textures are not supported yet"),
    (kernel("", "device float *y, sampler s [[sampler(3)]], sampler t [[sampler(3)]]"), "sampler(3", "sampler index 3 is taken by argument 2 of this kernel"),
    ("kernel void f(device float *x) {}\nkernel void g(device int *x) {}\n  kernel void f(device int *x) {}\n", "f(device int",
     "the kernel name 'f' is taken by line 1"),
    ("kernel void f(device float *x) {}\ntemplate <typename T> kernel void g(device T *x) {}\n"
     "template [[host_name(\"f\")]] kernel void g<int>(device int *);\n", "g<int>", "the kernel name 'f' is taken by line 1"),
]


@pytest.mark.parametrize(("source", "place", "words"), WRONG)
def test_what_metal_refuses(source, place, words):
    with pytest.raises(SyntaxError, match=re.escape(words)) as caught:
        torch.mps.compile_shader(source)
    error = caught.value
    before = source[: source.rindex(place)]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    assert (error.filename, error.lineno, error.offset) == ("program_source", line, column)
    assert error.text.rstrip("\n") == source.split("\n")[line - 1]
    assert re.match(rf"program_source:{line}:{column}: error: ", error.msg)
    assert "mps_" not in error.msg and "::" not in error.msg and len(error.msg.splitlines()) == 1


def test_what_looks_like_it_and_is_right():
    lib = torch.mps.compile_shader(
        """
        #include <metal_stdlib>
        using namespace metal;
        // double, goto and virtual in a comment
        struct pair { int double_buffer; int gotos; pair() = default; pair(int a) : double_buffer(a), gotos(1) {} void none() = delete; };
        typedef device float *list;
        using number = device float;
        template <typename T> struct texture2 { T t; };
        struct sampled { int kind; };
        static int counted(int n) { static constexpr int step = 2; static const int more = 1; return n * step + more; }
        namespace one { kernel void same(device int *x) { x[0] = 1; } }
        namespace two { kernel void same(device int *x, device int *y) { x[0] = 2; } }
        constant bool flag [[function_constant(0)]];
        constant bool other = !flag;
        kernel void f(list x [[buffer(0)]], number *y [[buffer(1)]], device int *z [[buffer(2), function_constant(flag)]],
                      device float *w [[buffer(2), function_constant(other)]], constant float &c [[buffer(30)]],
                      uint i [[thread_position_in_grid]]) {
          const char word = "double"[0];
          pair p(counted(word == 'd' ? 2 : 0));
          texture2<float> t = {c};
          sampled s = {1};
          w[i] = x[i] + y[i] + p.double_buffer + p.gotos + t.t + s.kind;
        }
        """
    )
    x = torch.arange(4.0, device="mps")
    out = torch.zeros(4, device="mps")
    nothing = torch.zeros(1, device="mps")
    lib.f(x, x, out, *([nothing] * 27), 0.5)
    assert out.tolist() == [value * 2 + 5 + 1 + 0.5 + 1 for value in range(4)]
