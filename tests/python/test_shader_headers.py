# SPDX-License-Identifier: BSD-3-Clause
"""Headers of c10/metal, unchanged from the wheel, in shaders of users: each is included, and functions of it are compared with formulas."""

import functools
import pathlib

import pytest
import torch

compiled = functools.cache(torch.mps.compile_shader)
HEADERS = sorted(path.name for path in (pathlib.Path(torch.__file__).parent / "include/c10/metal").glob("*.h"))


def apply(header, expression, *inputs, out=torch.float32, metal="float"):
    """`expression` of a, b, ... over float tensors and of i."""
    names = "ab"[: len(inputs)]
    parameters = "".join(f", constant float *{n}s" for n in names)
    values = "".join(f"float {n} = {n}s[i]; " for n in names)
    header = f"#include <c10/metal/{header}.h>\n" + ("#include <c10/metal/special_math.h>\n" if header == "igamma" else "")  # it only declares erfc
    library = compiled(
        f"{header}kernel void f(device {metal} *out{parameters}, uint i [[thread_position_in_grid]]) {{ {values}out[i] = {expression}; }}"
    )
    result = torch.zeros(inputs[0].numel() if inputs else 64, dtype=out, device="mps")
    library.f(result, *(x.to("mps") for x in inputs))
    return result.cpu()


@pytest.mark.parametrize("header", HEADERS)
def test_each_header_alone(header):
    library = torch.mps.compile_shader(f"#include <c10/metal/{header}>\nkernel void f(device float *x) {{ x[0] = 1; }}")
    x = torch.zeros(1, device="mps")
    library.f(x)
    assert x.item() == 1


def test_the_headers_that_torch_is_known_to_have():
    assert set(HEADERS) >= {
        f"{name}.h" for name in ("atomic", "common", "error", "expm1f", "igamma", "indexing", "random", "reduction_utils", "special_math", "utils")
    }


def test_all_headers_together():
    library = compiled(
        "".join(f"#include <c10/metal/{header}>\n" for header in HEADERS) + "kernel void f(device float *x) { x[0] = c10::metal::max(1.0f, 2.0f); }"
    )
    x = torch.zeros(1, device="mps")
    library.f(x)
    assert x.item() == 2


X = torch.linspace(-4, 4, 401)
POSITIVE = torch.linspace(0.05, 8, 160)


@pytest.mark.parametrize(
    "expression, formula, x",
    [
        ("erf(a)", torch.erf, X),
        ("erfc(a)", torch.erfc, X),
        ("erfinv(a)", torch.erfinv, X / 4.1),
        ("i0(a)", torch.special.i0, X),
        ("i0e(a)", torch.special.i0e, X),
        ("i1(a)", torch.special.i1, X),
        ("i1e(a)", torch.special.i1e, X),
        ("log_gamma(a)", torch.lgamma, POSITIVE),
        ("digamma(a)", torch.digamma, POSITIVE),
        ("sinc(a)", torch.sinc, X),
        ("spherical_bessel_j0(a)", torch.special.spherical_bessel_j0, X),
        ("entr(a)", torch.special.entr, POSITIVE),
        ("bessel_j0_forward(a)", torch.special.bessel_j0, X),
        ("bessel_y1_forward(a)", torch.special.bessel_y1, POSITIVE),
        ("modified_bessel_k0_forward(a)", torch.special.modified_bessel_k0, POSITIVE),
        ("erfcx(a)", torch.special.erfcx, X),
        ("chebyshev_polynomial_t_forward(a, 5)", lambda x: torch.special.chebyshev_polynomial_t(x, 5), X / 4),
        ("hermite_polynomial_h_forward(a, 4)", lambda x: torch.special.hermite_polynomial_h(x, 4), X),
        ("polygamma(2, a)", lambda x: torch.special.polygamma(2, x), POSITIVE),
    ],
)
def test_special_math(expression, formula, x):
    torch.testing.assert_close(apply("special_math", f"c10::metal::{expression}", x), formula(x.double()).float(), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(
    "header, expression, formula, a, b",
    [
        ("special_math", "zeta(a + 1, b)", lambda a, b: torch.special.zeta(a + 1, b), POSITIVE, POSITIVE.flip(0)),
        ("special_math", "xlogy(a, b)", torch.special.xlogy, POSITIVE, POSITIVE.flip(0)),
        ("special_math", "logaddexp(a, b)", torch.logaddexp, X, X.flip(0)),
        ("igamma", "igamma(a, b)", torch.igamma, POSITIVE, POSITIVE.flip(0)),
        ("igamma", "igammac(a, b)", torch.igammac, POSITIVE, POSITIVE.flip(0)),
        ("utils", "floor_divide(a, b)", lambda a, b: torch.floor_divide(a.float(), b.float()), X, X.flip(0) + 0.003),
        ("utils", "remainder(a, b)", lambda a, b: torch.remainder(a.float(), b.float()), X, X.flip(0) + 0.003),
        ("utils", "fmod(a, b)", lambda a, b: torch.fmod(a.float(), b.float()), X, X.flip(0) + 0.003),
        ("utils", "pow(a, b)", torch.pow, POSITIVE, X[:160]),
        ("utils", "hypot(a, b)", torch.hypot, X, X.flip(0)),
    ],
)
def test_functions_of_two(header, expression, formula, a, b):
    torch.testing.assert_close(apply(header, f"c10::metal::{expression}", a, b), formula(a.double(), b.double()).float(), rtol=2e-4, atol=2e-5)


def test_expm1():
    torch.testing.assert_close(
        apply("expm1f", "c10::metal::expm1f(a)", X), torch.expm1(X.double()).float(), rtol=2e-5, atol=0
    )  # the header leaves the low part of log(2) out


def test_utils():
    nan = torch.tensor([float("nan"), 1, 2, -3])
    other = torch.tensor([0, float("nan"), 1, 4])
    assert torch.equal(apply("utils", "c10::metal::max(a, b)", nan, other).nan_to_num(99), torch.tensor([99.0, 99, 2, 4]))
    assert torch.equal(apply("utils", "c10::metal::min(a, b)", nan, other).nan_to_num(99), torch.tensor([99.0, 99, 1, -3]))
    assert torch.equal(apply("utils", "c10::metal::less(a, b)", nan, other, out=torch.bool, metal="bool"), torch.tensor([False, True, False, True]))
    torch.testing.assert_close(apply("utils", "c10::metal::log1p(a)", POSITIVE), torch.log1p(POSITIVE), rtol=1e-5, atol=1e-7)
    c, d = torch.complex(X, X.flip(0)), torch.complex(X.flip(0), X + 0.5)
    for name, formula in (("mul", torch.mul), ("div", torch.div)):
        library = compiled(
            "#include <c10/metal/utils.h>\nkernel void f(device float2 *out, constant float2 *a, constant float2 *b, "
            f"uint i [[thread_position_in_grid]]) {{ out[i] = c10::metal::{name}(a[i], c10::metal::conj(b[i])); }}"
        )
        out = torch.zeros(401, dtype=torch.complex64, device="mps")
        library.f(out, c.to("mps"), d.to("mps"))
        torch.testing.assert_close(out.cpu(), formula(c, d.conj()).resolve_conj())
    i = torch.arange(64)
    assert torch.equal(apply("utils", "c10::metal::safe_mod(int(i), 7)", out=torch.int32, metal="int"), (i % 7).int())
    assert torch.equal(apply("utils", "c10::metal::floor_divide(int(i) - 30, 7)", out=torch.int32, metal="int"), ((i - 30) // 7).int())
    assert torch.equal(apply("utils", "c10::metal::remainder(int(i) - 30, -7)", out=torch.int32, metal="int"), ((i - 30) % -7).int())
    assert torch.equal(apply("utils", "c10::metal::cast_to<bool>(float2(0, a))", X[::100], out=torch.bool, metal="bool"), X[::100] != 0)


def test_common():
    i = torch.arange(64)
    assert torch.equal(apply("common", "c10::metal::ceil_div(i, 7u)", out=torch.int32, metal="int"), (-(-i // 7)).int())
    assert torch.equal(
        apply("common", "c10::metal::round_up(i, 8u) + c10::metal::max_ndim", out=torch.int32, metal="int"), (-(-i // 8) * 8 + 16).int()
    )


def philox(seed, index):
    """The first word of ten rounds, as the header writes them."""
    mask, key = 2**32 - 1, [seed >> 32, seed & (2**32 - 1)]
    x, y, z, w = 0, 0, index >> 32, index & mask
    for _ in range(9):  # `rounds - 1` of them
        p, q = 0xD2511F53 * x, 0xCD9E8D57 * z  # high words are .x of what the header calls rc0 and rc1
        x, y, z, w = (q >> 32) ^ y ^ key[0], q & mask, (p >> 32) ^ w ^ key[1], p & mask
        key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
    return x


def test_random():
    uniform = apply("random", "c10::metal::rand(42, i)", torch.zeros(20000))
    assert 0 <= uniform.min() and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.02 and uniform.unique().numel() > 19900
    normal = apply("random", "c10::metal::randn(42, i)", torch.zeros(20000))
    assert abs(normal.mean()) < 0.03 and abs(normal.std() - 1) < 0.03
    whole = apply("random", "c10::metal::randint64(7, i, -5, 5)", torch.zeros(20000), out=torch.int64, metal="long")
    assert whole.unique().tolist() == list(range(-5, 5))
    scale = torch.tensor(4.6566127342e-10)
    assert torch.equal(uniform[:200], torch.stack([(philox(42, i) & 0x7FFFFFFF) * scale for i in range(200)]))
    assert torch.equal(uniform, apply("random", "c10::metal::rand(42, i)", torch.zeros(20000)))


def test_indexing():
    library = compiled(
        "#include <c10/metal/indexing.h>\nkernel void f(device float *out, constant float *in, constant long *sizes, constant long *strides, "
        "constant uint &ndim, uint i [[thread_position_in_grid]]) {\n"
        "  out[i] = c10::metal::val_at_offs<float>(in, c10::metal::offset_from_thread_index(i, sizes, strides, ndim));\n}"
    )
    x = torch.arange(24.0, device="mps")
    view = x.reshape(2, 3, 4).permute(2, 0, 1)
    out = torch.zeros(24, device="mps")
    library.f(out, x, list(reversed(view.shape)), [4 * s for s in reversed(view.stride())], 3)
    assert torch.equal(out.cpu(), view.cpu().flatten())


def test_registered_operators():
    library = compiled(
        "#include <c10/metal/indexing.h>\nstruct cube_functor { template <typename T> inline T operator()(const T x) { return x * x * x; } };\n"
        "REGISTER_UNARY_OP(cube, float, float);\nREGISTER_UNARY_OP(cube, int, int);\n"
    )
    assert {"cube_dense_float_float", "cube_strided_float_float", "cube_dense_int_int"} <= set(dir(library))
    x = torch.arange(1000, device="mps", dtype=torch.int32)
    out = torch.empty_like(x)
    library.cube_dense_int_int(out, x, 1000, threads=250)
    assert torch.equal(out.cpu(), x.cpu() ** 3)


@pytest.mark.parametrize(
    "dtype, metal",
    [
        (torch.float32, "float"),
        (torch.int32, "int"),
        (torch.float16, "half"),
        (torch.int16, "short"),
        (torch.int8, "char"),
        (torch.uint8, "uchar"),
        (torch.bfloat16, "bfloat"),
        (torch.bool, "bool"),
        (torch.int64, "long"),
    ],
    ids=str,
)
def test_atomic_add(dtype, metal):
    library = compiled(
        "#include <c10/metal/atomic.h>\nusing c10::metal::AtomicType;\n"
        f"kernel void add(device AtomicType<{metal}>::type *out, constant {metal} *in, uint i [[thread_position_in_grid]]) "
        f"{{ AtomicType<{metal}>::atomic_add(out, i % 8, in[i]); }}"
    )
    x = (torch.arange(64) % 3).to(dtype)
    out = torch.zeros(8, dtype=dtype, device="mps")
    library.add(out, x.to("mps"), threads=64)
    expected = x.reshape(8, 8).any(0) if dtype is torch.bool else x.reshape(8, 8).float().sum(0).to(dtype)
    assert torch.equal(out.cpu(), expected)


def test_atomic_add_of_pairs():
    library = compiled(
        "#include <c10/metal/atomic.h>\nusing c10::metal::AtomicType;\nkernel void add(device AtomicType<float2>::type *out, constant float2 *in, "
        "uint i [[thread_position_in_grid]]) { AtomicType<float2>::atomic_add(out, i % 2, in[i]); }"
    )
    x = torch.complex(torch.arange(1000.0) % 5, torch.ones(1000))
    out = torch.zeros(2, dtype=torch.complex64, device="mps")
    library.add(out, x.to("mps"), threads=1000)
    assert torch.equal(torch.view_as_real(out.cpu()), torch.view_as_real(x.reshape(500, 2).sum(0)))


@pytest.mark.parametrize("name", ["simd_sum", "simd_prod", "simd_max", "simd_min"])
def test_reductions_of_one_thread(name):
    library = compiled(
        "#include <c10/metal/reduction_utils.h>\n"
        f"kernel void f(device float *x, uint i [[thread_position_in_grid]]) {{ x[i] = c10::metal::{name}(x[i]); }}"
    )
    x = torch.arange(10.0, device="mps")
    library.f(x, group_size=1)
    assert torch.equal(x.cpu(), torch.arange(10.0))


def test_programs_add_simdgroup_functions_to_metal():
    """One of a program's own type does not hide those of the library from metal::simd_sum."""
    library = compiled(
        "#include <metal_stdlib>\nstruct pair { float a, b; };\n"
        "namespace metal { inline pair simd_sum(pair p) { return {simd_sum(p.a), simd_sum(p.b)}; } }\n"
        "kernel void f(device float2 *x, uint i [[thread_position_in_grid]]) { "
        "pair s = metal::simd_sum(pair{x[i].x, x[i].y}); x[i] = float2(s.a, s.b + metal::simd_sum(1)); }"
    )
    x = torch.arange(64.0, device="mps").reshape(32, 2)
    total = x.cpu().sum(0) + torch.tensor([0.0, 32.0])
    library.f(x, threads=32, group_size=32)
    assert torch.equal(x.cpu(), total.expand(32, 2))


def test_kernel_templates_assign_to_components():
    """Of a vector whose element type is the template's, with an operator; uniform values and lists in braces that name fewer components."""
    library = compiled(
        "#include <metal_stdlib>\nusing namespace metal;\n"
        "template <typename T> vec<T, 3> walk(vec<T, 3> at, int steps) { for (uniform<int> i = 0; i < steps; i = i + 1) { at.x += T(i); at.z *= 2; } return at; }\n"
        "template <typename T> kernel void f(device T *out, constant int &steps) { "
        "vec<T, 4> v = {1, 2, 3}; vec<T, 3> w = walk<T>({v.x, v.y, v.z}, steps); w.y -= v.w; out[0] = w.x; out[1] = w.y; out[2] = w.z; }\n"
        "using plain = remove_addrspace_t<int>;\n"
        'template [[host_name("f_int")]] kernel void f<plain>(device int *, constant int &);\n'
        'template [[host_name("f_float")]] kernel void f<float>(device float *, constant int &);\n'
    )
    for kernel, dtype in ((library.f_int, torch.int32), (library.f_float, torch.float32)):
        out = torch.zeros(3, dtype=dtype, device="mps")
        kernel(out, 4, threads=1)
        assert out.tolist() == [7, 2, 48]


def test_bfloat_of_a_class_that_converts():
    library = compiled(
        "#include <metal_stdlib>\nstruct no_mask { char x; constexpr operator bool() const thread { return true; } };\n"
        "struct answer { int n; constexpr operator int() const { return n; } };\n"
        "kernel void f(device bfloat *out) { out[0] = bfloat(no_mask{0}); out[1] = bfloat(answer{42}); }"
    )
    out = torch.zeros(2, dtype=torch.bfloat16, device="mps")
    library.f(out, threads=1)
    assert out.tolist() == [1, 42]
