# SPDX-License-Identifier: BSD-3-Clause
"""torch.mps.compile_shader: calling kernels, converting arguments, errors, order with operators, lifetime, threads.

Kernels are compiled once for the file (`shader`), or by the test that is about compiling.
"""

import concurrent.futures
import functools
import gc
import re
import threading

import pytest
import torch

compiled = functools.cache(torch.mps.compile_shader)

DTYPES = {
    torch.float32: "float",
    torch.float16: "half",
    torch.bfloat16: "bfloat",
    torch.int64: "long",
    torch.int32: "int",
    torch.int16: "short",
    torch.int8: "char",
    torch.uint8: "uchar",
    torch.uint16: "ushort",
    torch.uint32: "uint",
    torch.uint64: "ulong",
    torch.bool: "bool",
}

KERNELS = """
#include <metal_stdlib>
using namespace metal;
kernel void arange(device float *x, uint i [[thread_position_in_grid]]) { x[i] = i; }
kernel void multiples(device float *x, constant float &step, uint i [[thread_position_in_grid]]) { x[i] = i * step; }
kernel void long_multiples(device long *x, constant long &step, uint i [[thread_position_in_grid]]) { x[i] = i * step; }
kernel void bytes(device uchar *out, constant uchar *in, uint i [[thread_position_in_grid]]) { out[i] = in[i]; }
kernel void twice(device float *out, device const float *in, uint i [[thread_position_in_grid]]) { out[i] = 2 * in[i]; }
kernel void positions(device int *out, uint3 p [[thread_position_in_grid]], uint3 n [[threads_per_grid]]) {
  out[(p.z * n.y + p.y) * n.x + p.x] = p.x + 10 * p.y + 100 * p.z;
}
kernel void groups(device uint *out, uint i [[thread_position_in_grid]], uint size [[threads_per_threadgroup]],
                   uint local [[thread_position_in_threadgroup]], uint group [[threadgroup_position_in_grid]]) {
  out[3 * i] = size, out[3 * i + 1] = local, out[3 * i + 2] = group;
}
kernel void group_shape(device uint *out, uint3 p [[thread_position_in_grid]], uint3 n [[threads_per_grid]], uint3 size [[threads_per_threadgroup]]) {
  device uint *o = out + 3 * ((p.z * n.y + p.y) * n.x + p.x);
  o[0] = size.x, o[1] = size.y, o[2] = size.z;
}
struct Pointers { array<device float *, 64> at; };
kernel void through_pointers(constant Pointers &pointers, uint2 p [[thread_position_in_grid]]) { pointers.at[p.y][p.x] = p.y + p.x * 0.25f; }
kernel void sum_of_two(device float *out, constant array<device const float *, 2> &in, uint i [[thread_position_in_grid]]) {
  out[i] = in[0][i] + in[1][i];
}
[[max_total_threads_per_threadgroup(64)]] kernel void limited(device float *x, uint i [[thread_position_in_grid]]) { x[i] = 1; }
kernel void slow(device float *x, constant int &turns, uint i [[thread_position_in_grid]]) {
  float v = x[i];
  for (int t = 0; t < turns; t++) v = sin(v) + 1;
  x[i] = v;
}
kernel void nothing(device float *x, device float *unused, uint i [[thread_position_in_grid]]) { x[i] = 5; }
"""


@pytest.fixture
def shader():
    return compiled(KERNELS)


def zeros(*size, dtype=torch.float32):
    return torch.zeros(*size, dtype=dtype, device="mps")


# ---- kernels and libraries ----
def test_a_kernel_runs_over_its_first_tensor(shader):
    x = zeros(1000)
    assert shader.arange(x) is None
    assert torch.equal(x.cpu(), torch.arange(1000.0))


def test_a_library_lists_its_kernels():
    library = torch.mps.compile_shader(
        "kernel void b(device int *x) { x[0] = 1; }\nkernel void a(device int *x) { x[0] = 2; }\n"
        "template <typename T> kernel void t(device T *x) { x[0] = 3; }\n"
        'template [[host_name("t_int")]] kernel void t<int>(device int *);\n'
    )
    assert dir(library) == ["a", "b", "t_int"]
    assert type(library) is torch._C._mps_ShaderLibrary and type(library.a) is torch._C._mps_MetalKernel
    assert library.a is not library.a
    x = zeros(1, dtype=torch.int32)
    for name, value in (("a", 2), ("b", 1), ("t_int", 3)):
        getattr(library, name)(x)
        assert x.item() == value


def test_a_kernel_tells_its_limits(shader):
    kernel = shader.arange
    assert (kernel.max_threads_per_threadgroup, kernel.thread_execution_width, kernel.static_thread_group_memory_length) == (1024, 32, 0)
    assert shader.limited.max_threads_per_threadgroup == 64
    with pytest.raises(AttributeError):
        kernel.max_threads_per_threadgroup = 1


def test_unions_of_vectors_are_copied_and_assigned():
    library = torch.mps.compile_shader(
        """
        #include <metal_stdlib>
        using namespace metal;
        union bits { uint2 whole; uchar4 parts[2]; };
        bits mixed(thread const uint2 &key, uint n) { bits b; b.whole.x = key.x + n; b.whole[1] = key.y; return b; }
        kernel void f(device uint2 *x, uint i [[thread_position_in_grid]]) {
          bits b = mixed(x[i], i), c = {uint2(0)};
          c = b;
          x[i] = uint2(c.parts[0].x, c.parts[1].y);
        }
        """
    )
    x = torch.tensor([[0x0105, 0x0700], [0x0210, 0x0903]], dtype=torch.int32, device="mps")
    library.f(x, threads=2)
    assert x.tolist() == [[5, 7], [0x11, 9]]


def test_a_kernel_tells_the_bytes_of_its_threadgroup_variables():
    library = torch.mps.compile_shader(
        """
        #include <metal_stdlib>
        using namespace metal;
        kernel void plain(device float *x, threadgroup float *given [[threadgroup(0)]], uint i [[thread_index_in_threadgroup]]) {
          threadgroup float4 a[32];
          threadgroup atomic_uint n;
          if (x[0] > 0) {
            struct pair { half2 v; int i; };
            threadgroup pair more[3], one;
            more[i % 3].i = one.i = i;
            a[i % 32].x = more[0].i + given[0];
          }
          atomic_store_explicit(&n, 1, memory_order_relaxed);
          x[i] = a[i % 32].x;
        }
        template <typename T, int N> kernel void sized(device T *x, uint i [[thread_index_in_threadgroup]]) {
          constexpr int count = N * 2;
          threadgroup T a[count][4];
          a[i % count][0] = x[i];
          threadgroup_barrier(mem_flags::mem_threadgroup);
          x[i] = a[(i + 1) % count][0];
        }
        template [[host_name("sized_half")]] kernel void sized<half, 3>(device half *, uint);
        template [[host_name("sized_float")]] kernel void sized<float, 5>(device float *, uint);
        kernel void none(device float *x) {}
        """
    )
    sizes = {name: getattr(library, name).static_thread_group_memory_length for name in dir(library)}
    assert sizes == {"plain": 32 * 16 + 4 + 4 * 8, "sized_half": 6 * 4 * 2, "sized_float": 10 * 4 * 4, "none": 0}


def test_an_unknown_kernel_is_told_by_name(shader):
    with pytest.raises(RuntimeError, match="^Failed to create function state object for: absent"):
        _ = shader.absent
    with pytest.raises(AttributeError):  # names that Python's protocols ask for
        _ = shader.__wrapped__


def test_a_source_may_be_empty_of_kernels():
    assert dir(torch.mps.compile_shader("constant int three = 3;")) == []


# ---- errors of the source ----
@pytest.mark.parametrize(
    "source, line, column, words",
    [
        ("kernel void f(device float *x) {\n  x[0] = missing + 1;\n}\n", 2, 10, "use of undeclared identifier 'missing'"),
        (
            "#include <c10/metal/utils.h>\n#include <metal_stdlib>\n\nkernel void f(device float *x) {\n\tx[0] = c10::metal::absent(1);\n}",
            5,
            21,
            "no member named 'absent'",
        ),
        ("kernel void f(device float *x) { /* äöü */ y[0] = 1; }", 1, 44, "undeclared identifier 'y'"),
        (
            "kernel void f(device float *x, uint i [[thread_position_in_grid]], uint j [[thread_position_in_grid]]) { x[i] = k; }",
            1,
            113,
            "identifier 'k'",
        ),
        ("kernel void f(device float *x) { x[0] = x[1] }", 1, 45, "expected ';'"),
        ("kernel void f(device float *x, float y) {}", 1, 32, "parameter 2 of kernel 'f' has no attribute"),
        ("#include <absent.h>\n", 1, 10, "'absent.h' file not found"),
        ("#define ONE one\nkernel void f(device float *x) {\n  x[0] = 1.5 + ONE;\n}", 3, 16, "undeclared identifier 'one'"),
        ("kernel void f(device float *x) { x[0] = 0.5 * half(1) + unknown; }", 1, 57, "undeclared identifier 'unknown'"),
    ],
)
def test_a_wrong_source_is_a_syntax_error_at_its_place(source, line, column, words):
    with pytest.raises(SyntaxError, match=re.escape(words)) as caught:
        torch.mps.compile_shader(source)
    error = caught.value
    assert (error.filename, error.lineno, error.offset) == ("program_source", line, column)
    assert error.text.rstrip("\n") == source.split("\n")[line - 1]
    assert error.msg.startswith(f"program_source:{line}:") and "mps_" not in error.msg


def test_all_errors_of_a_source_are_told():
    with pytest.raises(SyntaxError) as caught:
        torch.mps.compile_shader("kernel void f(device float *x) {\n  x[0] = a;\n  x[1] = b;\n}")
    assert [line.split(": ")[0] for line in caught.value.msg.splitlines()] == ["program_source:2:10", "program_source:3:10"]


def test_a_function_that_is_only_declared_is_told_by_name():
    with pytest.raises(SyntaxError, match=r"^program_source: error: a kernel calls 'absent\(float\)'"):
        torch.mps.compile_shader("float absent(float x);\nkernel void f(device float *x) { x[0] = absent(1); }")


def test_a_source_is_text_without_null_bytes():
    with pytest.raises(ValueError, match="null byte"):
        torch.mps.compile_shader("kernel void f() {}\0")
    with pytest.raises(TypeError):
        torch.mps.compile_shader(3)


def test_source_with_headers_written_into_it_compiles():
    import pathlib

    from torch.utils._cpp_embed_headers import _embed_headers

    lines = [
        "#include <c10/metal/utils.h>\n",
        "kernel void f(device float *x, uint i [[thread_position_in_grid]]) { x[i] = c10::metal::max(float(i), 2.0f); }\n",
    ]
    source = _embed_headers(lines, [pathlib.Path(torch.__file__).parent / "include"], set())
    assert "#include <c10" not in source
    x = zeros(4)
    torch._C._mps_compileShader(source).f(x)
    assert x.tolist() == [2, 2, 2, 3]


# ---- metallib ----
def test_compiled_libraries_of_apple_are_refused_in_words(tmp_path):
    path = tmp_path / "kernels.metallib"
    path.write_bytes(b"MTLB" + bytes(100))
    with pytest.raises(RuntimeError, match="Failed to load metallib: it holds AIR.*compile_shader"):
        torch.mps.load_metallib(path.read_bytes())
    with pytest.raises(RuntimeError, match=f"Failed to load metallib from '{path}': it holds AIR"):
        torch.mps.load_metallib(path)
    with pytest.raises(RuntimeError, match="Failed to load metallib from '.*absent': No such file"):
        torch.mps.load_metallib(str(tmp_path / "absent"))
    with pytest.raises(RuntimeError, match="Failed to load metallib: it is no Metal library"):
        torch.mps.load_metallib(bytearray(b"ELF"))
    with pytest.raises(TypeError, match="expected bytes or path, got int"):
        torch.mps.load_metallib(3)


# ---- tensors as arguments ----
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_buffers_of_each_dtype(dtype):
    metal = DTYPES[dtype]
    library = compiled(
        f"kernel void twist(device {metal} *out, device const {metal} *in, constant {metal} *last, uint i [[thread_position_in_grid]]) "
        "{ out[i] = i % 2 ? in[i] : last[0]; }"
    )
    values = torch.tensor([0, 1, 0, 1, 1, 7, 100], dtype=torch.int64).to(dtype)
    x, out = values.to("mps"), zeros(7, dtype=dtype)
    library.twist(out, x, x[6:])
    expected = values.clone()
    expected[::2] = values[6]
    assert torch.equal(out.cpu().view(torch.uint8), expected.view(torch.uint8))


@pytest.mark.parametrize("dtype, metal", [(torch.complex64, "float2"), (torch.complex32, "half2")])
def test_complex_numbers_are_pairs(dtype, metal):
    library = compiled(
        f"kernel void turn(device {metal} *out, constant {metal} *in, uint i [[thread_position_in_grid]]) {{ out[i] = {metal}(-in[i].y, in[i].x); }}"
    )
    x = torch.complex(torch.arange(5.0), torch.tensor([0.5, -1, 2, 0, 8])).to(dtype)
    out = zeros(5, dtype=dtype)
    library.turn(out, x.to("mps"))
    assert torch.equal(torch.view_as_real(out.cpu()), torch.view_as_real((x.to(torch.complex64) * 1j).to(dtype)))


def test_a_view_begins_at_its_offset_and_strides_are_ignored(shader):
    x = zeros(10)
    shader.arange(x[4:7])
    assert x.tolist() == [0, 0, 0, 0, 0, 1, 2, 0, 0, 0]
    y = zeros(4, 4)
    shader.arange(y[1:, ::2])  # six elements from the second row on
    assert y.flatten().tolist() == [0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0, 0, 0, 0]
    z = zeros(2, 3)
    shader.arange(z.t())
    assert z.flatten().tolist() == [0, 1, 2, 3, 4, 5]
    halves = zeros(8, dtype=torch.float16)
    shader.arange(halves[4:].view(torch.float32))
    assert halves.view(torch.float32).tolist() == [0, 0, 0, 1]


def test_a_tensor_of_no_dimension_is_one_thread_and_one_value(shader):
    x = torch.tensor(3.0, device="mps")
    out = zeros(())
    shader.twice(out, x)
    assert out.item() == 6
    y = zeros(4)
    shader.multiples(y, torch.tensor(2.5, device="mps"))
    assert y.tolist() == [0, 2.5, 5, 7.5]


def test_empty_tensors_bind_nothing_and_run_nothing(shader):
    shader.arange(zeros(0))
    shader.twice(zeros(3)[3:], zeros(0, 4))
    x = zeros(2)
    shader.nothing(x, zeros(0))
    shader.arange(x, threads=0)
    shader.positions(x.int(), threads=(4, 0, 2))
    assert x.tolist() == [5, 5]


def test_arguments_may_be_one_memory(shader):
    x = torch.arange(1000.0, device="mps")
    shader.twice(x, x)
    assert torch.equal(x.cpu(), torch.arange(1000.0) * 2)


def test_cpu_scalars_are_read_at_the_call(shader):
    x, step = zeros(4), torch.tensor(2.5)
    shader.multiples(x, step)
    step.fill_(100)
    assert x.tolist() == [0, 2.5, 5, 7.5]


@pytest.mark.parametrize(
    "value, expected",
    [
        (torch.tensor(2.5, dtype=torch.float64), torch.tensor(2.5)),
        (torch.tensor(1 + 2j, dtype=torch.complex128), torch.tensor(1 + 2j, dtype=torch.complex64)),
        (torch.tensor(1 + 2j).conj(), torch.tensor(1 - 2j)),
        (torch.tensor([1.0, 2.0, 3.0])[1], torch.tensor(2.0)),
        *((torch.tensor(1, dtype=dtype), torch.tensor(1, dtype=dtype)) for dtype in DTYPES),
    ],
)
def test_cpu_scalars_of_each_dtype(shader, value, expected):
    expected = expected.resolve_conj().reshape(1).view(torch.uint8)
    out = zeros(expected.numel(), dtype=torch.uint8)
    shader.bytes(out, value)
    assert torch.equal(out.cpu(), expected)


def test_a_cpu_scalar_counts_as_the_first_tensor(shader):
    out = zeros(4, dtype=torch.uint8)
    library = compiled("kernel void later(constant int &v, device uchar *out, uint i [[thread_position_in_grid]]) { out[i] = v; }")
    library.later(torch.tensor(7, dtype=torch.int32), out)
    assert out.tolist() == [7, 0, 0, 0]


def test_other_devices_and_layouts_are_refused(shader):
    x = zeros(2)
    for tensor, words in (
        (torch.ones(2), "Passed CPU tensor to MPS op"),
        (torch.ones(1), "Passed CPU tensor to MPS op"),
        (torch.ones(2, device="meta"), "Passed META tensor to MPS op"),
        (x.to_sparse(), "Passed Sparse tensor to a Metal kernel"),
    ):
        with pytest.raises(RuntimeError, match=words):
            shader.twice(x, tensor)
        with pytest.raises(RuntimeError, match="Passed"):
            shader.sum_of_two(x, [x, tensor])


# ---- numbers, lists ----
def inline(shader, value, count, **options):
    out = zeros(count, dtype=torch.uint8)
    shader.bytes(out, value, **options)
    return out.cpu()


def bytes_of(values, dtype):
    return torch.tensor(values).to(dtype).reshape(-1).view(torch.uint8)


@pytest.mark.parametrize(
    "value, dtype",
    [
        (5, torch.int64),
        (-(2**63), torch.int64),
        (2**63 - 1, torch.int64),
        (True, torch.int64),
        (False, torch.int64),
        (0.1, torch.float32),
        ([1, 2, -3], torch.int64),
        ((7,), torch.int64),
        ([True, False], torch.int64),
        ([0.5, 1.25], torch.float32),
        ((0.1, 0.2, 0.3), torch.float32),
    ],
)
def test_numbers_and_lists_are_bytes(shader, value, dtype):
    expected = bytes_of(value, dtype)
    assert torch.equal(inline(shader, value, expected.numel()), expected)


@pytest.mark.parametrize(
    "name, dtype",
    [("fp16", torch.float16), ("bf16", torch.bfloat16), ("int32", torch.int32), ("int16", torch.int16), ("int8", torch.int8), ("uint8", torch.uint8)],
)
def test_numbers_are_cast_as_told(shader, name, dtype):
    for value in (3, 3.75, True, [1, 2, 100], (0.5, 2.25)):
        expected = bytes_of(value, dtype)
        assert torch.equal(inline(shader, value, expected.numel(), arg_casts=name), expected)
        assert torch.equal(inline(shader, value, expected.numel(), arg_casts={1: name}), expected)


def test_casts_by_number_leave_others_alone(shader):
    assert torch.equal(inline(shader, 1.5, 4, arg_casts={0: "fp16", 7: "int8"}), bytes_of(1.5, torch.float32))
    assert torch.equal(inline(shader, torch.tensor(1.5), 4, arg_casts="fp16"), bytes_of(1.5, torch.float32))


def test_casts_of_what_does_not_fit(shader):
    assert torch.equal(inline(shader, 300, 1, arg_casts="uint8"), torch.tensor([44], dtype=torch.uint8))
    assert torch.equal(
        inline(shader, [1e9, -1e9, float("nan")], 3, arg_casts="int8"), torch.tensor([127, -128, 0], dtype=torch.int8).view(torch.uint8)
    )
    assert torch.equal(inline(shader, 1e300, 4), bytes_of(float("inf"), torch.float32))


@pytest.mark.parametrize(
    "casts, words",
    [
        ("float32", "Unsupported cast instruction"),
        ({1: "double"}, "Unsupported cast instruction"),
        ({1: 3}, "Unsupported cast instruction"),
        (["fp16"], "Unexpected caster arg type"),
        (("fp16",), "Unexpected caster arg type"),
        (16, "Unexpected caster arg type"),
        ({"1": "fp16"}, "Unexpected caster arg type"),
    ],
)
def test_unknown_casts_are_refused(shader, casts, words):
    with pytest.raises(RuntimeError, match=words):
        shader.multiples(zeros(2), 1.0, arg_casts=casts)


@pytest.mark.parametrize(
    "value, words",
    [
        ([], "Empty list/tuple can not be an argument to metal kernel"),
        ((), "Empty list/tuple can not be an argument to metal kernel"),
        ([1, 2.0], "Unexpected argument types"),
        (["a"], "Unexpected argument types"),
        ([None], "Unexpected argument types"),
        ([[1]], "Unexpected argument types"),
        ("text", "Unsupported argument type"),
        (None, "Unsupported argument type"),
        (1j, "Unsupported argument type"),
        ({1: 2}, "Unsupported argument type"),
        ([1] * 513, "4104 inline bytes do not fit: all of a dispatch take 1 to 4096"),
    ],
)
def test_other_values_are_refused(shader, value, words):
    with pytest.raises(RuntimeError, match=words):
        shader.bytes(zeros(8, dtype=torch.uint8), value)


def test_whole_numbers_have_64_bits(shader):
    for value in (2**63, -(2**63) - 1, [2**64]):
        with pytest.raises(OverflowError):
            shader.bytes(zeros(8, dtype=torch.uint8), value)


def test_a_list_fills_what_fits(shader):
    values = list(range(512))
    assert torch.equal(inline(shader, values, 4096), bytes_of(values, torch.int64))


def test_lists_of_tensors_are_argument_buffers(shader):
    tensors = [zeros(5) for _ in range(64)]
    shader.through_pointers(tensors, threads=(5, 64))
    for i, tensor in enumerate(tensors):
        assert tensor.tolist() == [i + 0.25 * j for j in range(5)]


def test_argument_buffers_read_views_that_are_gone_afterwards(shader):
    out, base = zeros(1000), torch.arange(2000.0, device="mps")
    for _ in range(50):
        shader.sum_of_two(out, (base[1000:] * 2, base[500:] + 1))
        torch.full((1000,), -1.0, device="mps")  # takes memory that was freed
    expected = torch.arange(1000.0, 2000) * 2 + torch.arange(500.0, 1500) + 1
    assert torch.equal(out.cpu(), expected)


# ---- grids ----
@pytest.mark.parametrize("threads", [(7,), [7], 7, torch.Size([7])], ids=str)
def test_threads_in_one_dimension(shader, threads):
    x = zeros(10)
    shader.multiples(x, 1.0, threads=threads)
    assert x.tolist() == [0, 1, 2, 3, 4, 5, 6, 0, 0, 0]


@pytest.mark.parametrize("nx, ny, nz, group", [(3, 4, 5, None), (3, 4, 5, (2, 3, 2)), (1, 1, 9, (1, 1, 4)), (9, 1, 1, (8, 4, 2)), (5, 7, 1, None)])
def test_threads_in_three_dimensions(shader, nx, ny, nz, group):
    out = zeros(nz, ny, nx, dtype=torch.int32)
    shader.positions(out, threads=(nx, ny, nz), group_size=group)
    z, y, x = torch.meshgrid(torch.arange(nz), torch.arange(ny), torch.arange(nx), indexing="ij")
    assert torch.equal(out.cpu(), (x + 10 * y + 100 * z).int())


def test_group_sizes(shader):
    def sizes(count, **options):
        out = zeros(count, 3, dtype=torch.int32)
        shader.groups(out.view(torch.uint32), threads=count, **options)
        return out.cpu()

    assert set(sizes(10)[:, 0].tolist()) == {10}  # as many as fit
    many = sizes(2500)
    assert torch.equal(many[:, 2], torch.arange(2500, dtype=torch.int32) // 1024) and torch.equal(
        many[:, 1], torch.arange(2500, dtype=torch.int32) % 1024
    )
    assert many[-1, 0] == 2500 - 2048  # the last one is cut
    four = sizes(10, group_size=4)
    assert four[:, 0].tolist() == [4] * 8 + [2] * 2 and four[:, 1].tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]
    assert torch.equal(sizes(10, group_size=[4]), four)
    shape = zeros(2, 2000, 3, dtype=torch.int32)
    shader.group_shape(shape.view(torch.uint32), threads=(2000, 2))
    assert shape[0, 0].tolist() == [1024, 1, 1]
    shader.group_shape(shape.view(torch.uint32), threads=(2000, 2), group_size=(8, 2))
    assert shape[1, 17].tolist() == [8, 2, 1]


def test_wrong_grids_are_refused(shader):
    x = zeros(8)
    for options, error, words in (
        ({"threads": [1, 2, 3, 4]}, RuntimeError, "Number of threads is undefined or has wrong dimension"),
        ({"threads": []}, RuntimeError, "Dispatch dimensions must be less than 3 and non-empty"),
        ({"threads": (2, 4), "group_size": 2}, RuntimeError, "size and group_size must have same number of dimensions"),
        ({"group_size": (2, 1)}, RuntimeError, "size and group_size must have same number of dimensions"),
        ({"group_size": 1025}, ValueError, "Threadgroup size exceeds 1024 limit"),
        ({"group_size": 2**40}, ValueError, "Threadgroup size exceeds 1024 limit"),
        ({"threads": (8, 8, 8), "group_size": (16, 16, 8)}, ValueError, "Threadgroup size exceeds 1024 limit"),
        ({"group_size": 0}, RuntimeError, "threadgroup size is zero"),
        ({"threads": -1}, ValueError, "threads must not be negative, but got -1"),
        ({"threads": 2.0}, TypeError, "threads must be an int or a sequence"),
        ({"threads": "8"}, TypeError, "threads must be an int or a sequence"),
        ({"group_size": (1.5,)}, TypeError, "group_size must be an int or a sequence"),
        ({"threads": 2**33}, RuntimeError, "a grid of 8589934592 threads is too long"),
        ({"error_buf_idx": 31}, RuntimeError, "buffer index 31 is out of range"),
        ({"error_buf_idx": -1}, ValueError, "error_buf_idx must not be negative"),
    ):
        with pytest.raises(error, match=words):
            shader.arange(x, **options)
    with pytest.raises(ValueError, match="Threadgroup size exceeds 64 limit"):
        shader.limited(x, group_size=65)
    with pytest.raises(TypeError):
        shader.arange(x, grid=8)
    assert x.tolist() == [0] * 8


def test_a_call_without_a_tensor_needs_threads():
    library = compiled("kernel void f(constant long &a, constant long &b) {}")
    library.f(1, 2, threads=1)
    with pytest.raises(RuntimeError, match="Number of threads is undefined or has wrong dimension"):
        library.f(1, 2)


def test_missing_arguments_are_told_and_further_ones_ignored(shader):
    x = zeros(4)
    with pytest.raises(RuntimeError, match="kernel 'multiples' takes an argument at buffer index 1, and none is set"):
        shader.multiples(x)
    shader.multiples(x, 2.0, 3.0, x)
    assert x.tolist() == [0, 2, 4, 6]
    with pytest.raises(RuntimeError, match="buffer index 31 is out of range"):
        shader.arange(*[x] * 32)


# ---- errors of kernels ----
REPORTING = """
#include <c10/metal/error.h>
kernel void check(device float *x, constant long &limit, device c10::metal::ErrorMessages *errors, uint i [[thread_position_in_grid]]) {
  if (i >= limit) {
    TORCH_REPORT_ERROR(errors, "Index ", long(i), " out of range [0, ", limit, ")");
    return;
  }
  x[i] = 1;
}
"""


def test_a_kernel_reports_errors_at_the_next_wait():
    library, x = compiled(REPORTING), zeros(5)
    library.check(x, 4, error_buf_idx=2)
    with pytest.raises(torch.AcceleratorError, match=re.escape("Index 4 out of range [0, 4)")):
        torch.mps.synchronize()
    torch.mps.synchronize()  # told once
    assert x.tolist() == [1, 1, 1, 1, 0]
    library.check(x, -5, error_buf_idx=2, threads=1)
    with pytest.raises(torch.AcceleratorError, match=re.escape("Index 0 out of range [0, -5)")):
        x.cpu()
    library.check(x, 100, error_buf_idx=2)
    assert x.tolist() == [1] * 5


def test_many_reports_are_one_error():
    library, x = compiled(REPORTING), zeros(5000)
    library.check(x, 2, error_buf_idx=2)
    with pytest.raises(torch.AcceleratorError, match=r"Index \d+ out of range \[0, 2\)"):
        torch.mps.synchronize()
    library.check(x, 5000, error_buf_idx=2)
    torch.mps.synchronize()


def test_operators_report_beside_kernels():
    library, x = compiled(REPORTING), zeros(5)
    library.check(x, 4, error_buf_idx=2)
    with pytest.raises(torch.AcceleratorError, match="Index 4"):
        torch.mps.synchronize()
    x[torch.tensor([7], device="mps")] = 1
    with pytest.raises(torch.AcceleratorError, match="index 7 is out of bounds"):
        torch.mps.synchronize()


# ---- order, lifetime, threads ----
def test_kernels_and_operators_keep_their_order(shader):
    x = torch.ones(1000, device="mps")
    for _ in range(20):
        y = x + 1
        shader.twice(x, y)
        x -= y
        shader.twice(y, x)
        x.copy_(y / 2)
    expected = torch.ones(1000)
    for _ in range(20):
        expected = (expected + 1) * 2 - (expected + 1)
    assert torch.equal(x.cpu(), expected)


def test_a_kernel_runs_on_the_current_stream(shader):
    x, event = torch.ones(100000, device="mps"), torch.mps.Event(enable_timing=True)
    shader.slow(x, 20)
    event.record()
    event.synchronize()
    expected = torch.ones(1)
    for _ in range(20):
        expected = expected.sin() + 1
    assert torch.allclose(x.cpu(), expected.expand(100000))


def test_tensors_and_libraries_may_go_while_work_is_queued():
    def work():
        library = torch.mps.compile_shader(
            "kernel void count(device int *x, device const int *by, uint i [[thread_position_in_grid]]) { x[i] += by[i]; }"
        )
        x = zeros(100000, dtype=torch.int32)
        kernel = library.count
        del library
        for turn in range(20):
            kernel(x, torch.full((100000,), turn, dtype=torch.int32, device="mps"))
        return x

    results = [work() for _ in range(3)]
    gc.collect()
    for x in results:
        assert torch.equal(x.cpu(), torch.full((100000,), sum(range(20)), dtype=torch.int32))


def test_a_kernel_keeps_its_library():
    kernel = torch.mps.compile_shader("kernel void f(device float *x) { x[0] = 8; }").f
    gc.collect()
    x = zeros(1)
    kernel(x)
    assert x.item() == 8 and kernel.max_threads_per_threadgroup == 1024


def test_a_failed_call_leaves_nothing_behind(shader):
    x = zeros(4)
    torch.mps.synchronize()
    before = torch.mps.current_allocated_memory()
    for _ in range(50):
        with pytest.raises(RuntimeError):
            shader.multiples(x, None)
    assert torch.mps.current_allocated_memory() == before
    shader.multiples(x, 1.0)
    assert x.tolist() == [0, 1, 2, 3]


def test_many_threads_call_at_once(shader):
    def work(number):
        x, total = zeros(257), zeros(257)
        for turn in range(100):
            shader.multiples(x, float(number + turn))
            total += x
        return total.cpu()

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(16)))
    for number, result in enumerate(results):
        assert torch.equal(result, torch.arange(257.0) * sum(number + turn for turn in range(100)))


def test_many_threads_compile_at_once():
    def work(number):
        x = zeros(3)
        torch.mps.compile_shader(f"kernel void f(device float *x, uint i [[thread_position_in_grid]]) {{ x[i] = {number}; }}").f(x)
        return x.tolist()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(6))) == [[n] * 3 for n in range(6)]


def test_other_threads_run_while_a_shader_compiles():
    done = threading.Event()
    compiling = threading.Thread(target=lambda: (torch.mps.compile_shader("kernel void f(device float *x) { x[0] = 1.25; }"), done.set()))
    compiling.start()
    turns = 0
    while not done.wait(0.001):
        turns += 1
    compiling.join()
    assert turns > 10


def test_kernels_write_for_autograd_functions(shader):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            out = torch.empty_like(x)
            shader.twice(out, x)
            return out

        @staticmethod
        def backward(context, gradient):
            out = torch.empty_like(gradient)
            shader.twice(out, gradient.contiguous())
            return out

    x = torch.arange(6.0, device="mps").reshape(2, 3).requires_grad_()
    Twice.apply(x).mul(torch.arange(3.0, device="mps")).sum().backward()
    assert x.grad.tolist() == [[0, 2, 4], [0, 2, 4]]


def test_an_interrupt_ends_the_wait_for_a_long_kernel(python):
    finished = python("""
        import os, signal, sys, time, torch
        library = torch.mps.compile_shader("kernel void slow(device float *x, constant int &turns, uint i [[thread_position_in_grid]]) {"
                                           "  float v = x[i]; for (int t = 0; t < turns; t++) v = metal::sin(v) + 1; x[i] = v; }")
        x = torch.ones(64, device="mps")
        for _ in range(20):
            library.slow(x, 2_000_000)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite that runs in the background may ignore it
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        for wait in (torch.mps.synchronize, lambda: globals().pop("library")):  # its last reference: what it runs is waited for
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            begin = time.monotonic()
            try:
                wait()
                for _ in range(50):
                    time.sleep(0.1)
                print("not interrupted")
            except KeyboardInterrupt:
                print("interrupted" if time.monotonic() - begin < 2 else "late")
        sys.stdout.flush()
        os._exit(0)  # the rest of the work, a minute on a busy machine, is no part of this
    """)
    assert finished.out.split("\n")[:2] == ["interrupted"] * 2 and finished.code == 0, finished.out + finished.err


def test_templates_of_one_name():
    """Each instantiation takes the attributes of the template that its arguments fit: the other's parameters stand in another order."""
    library = torch.mps.compile_shader(
        """
        struct none {};
        template <typename T, typename Mask, int N, bool Twice>
        [[kernel, max_total_threads_per_threadgroup(N * 2)]] void f(device T *out [[buffer(1)]], device const T *in [[buffer(0)]],
                                                                    uint i [[thread_position_in_grid]]) { out[i] = in[i] * N * (Twice ? 2 : 1); }
        template <typename T, int N, int M, bool Twice = false>
        [[kernel, max_total_threads_per_threadgroup(N * 4)]] void f(uint i [[thread_position_in_grid]], device T *out [[buffer(0)]],
                                                                    device const T *in [[buffer(1)]]) { out[i] = in[i] + M; }
        template [[host_name("masked")]] [[kernel]] decltype(f<float, none, 8, true>) f<float, none, 8, true>;
        template [[host_name("plain")]] [[kernel]] decltype(f<float, 16, 3>) f<float, 16, 3>;
        template [[host_name("twice")]] [[kernel]] decltype(f<float, 8, 5, true>) f<float, 8, 5, true>;
        """
    )
    x = torch.arange(10.0, device="mps")
    results = {}
    for name, order in {"masked": "io", "plain": "oi", "twice": "oi"}.items():
        out = torch.zeros_like(x)
        getattr(library, name)(*(x if c == "i" else out for c in order))
        results[name] = out.cpu()
    assert torch.equal(results["masked"], torch.arange(10.0) * 16)
    assert torch.equal(results["plain"], torch.arange(10.0) + 3)
    assert torch.equal(results["twice"], torch.arange(10.0) + 5)
    assert [getattr(library, name).max_threads_per_threadgroup for name in results] == [16, 64, 32]
