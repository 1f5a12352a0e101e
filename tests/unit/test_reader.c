/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_reader: what the shader reader rewrites and what it leaves alone. No compiler is run.
 */
#include <stdlib.h>

#include "shader/reader.h"
#include "test.h"

static mps_reading reading;

static const char *read_mode(const char *source, mps_reader_mode mode) {
  mps_reading_free(&reading);
  mps_reader_options options = {.mode = mode};
  CHECK_OK(mps_reader_read(source, strlen(source), &options, &reading));
  return reading.output ? reading.output : "";
}
static const char *rewrite(const char *source) { return read_mode(source, MPS_READER_HOST); }

/* The output without runs of blanks, so that expectations read well. */
static const char *squeeze(const char *text) {
  static char out[8192];
  size_t used = 0;
  for (; *text && used + 1 < sizeof out; text++) {
    bool blank = *text == ' ' || *text == '\n';
    if (blank && (used == 0 || out[used - 1] == ' ')) continue;
    out[used++] = blank ? ' ' : *text;
  }
  while (used > 0 && out[used - 1] == ' ') used--;
  out[used] = 0;
  return out;
}

static void check_rewritten(const char *source, const char *expected) { CHECK_STRING(squeeze(rewrite(source)), expected); }

static void check_contains(const char *part) {
  if (!reading.output || !strstr(squeeze(reading.output), part)) {
    test_failures++;
    fprintf(stderr, "not found: %s\nin: %s\n", part, reading.output ? squeeze(reading.output) : "");
  }
}

static void suffixes_floating_literals(void) {
  check_rewritten("float a = 1.0;", "float a = 1.0f;");
  check_rewritten("float a = 1.;", "float a = 1.f;");
  check_rewritten("float a = .5e3;", "float a = .5e3f;");
  check_rewritten("float a = 1e-10;", "float a = 1e-10f;");
  check_rewritten("float a = 1E+10;", "float a = 1E+10f;");
  check_rewritten("float a = 1'000.25;", "float a = 1'000.25f;");
  check_rewritten("float a = 0x1.8p3;", "float a = 0x1.8p3f;");
  check_rewritten("float a = 0x1p-126;", "float a = 0x1p-126f;");
  check_rewritten("float a = 0x.8p0;", "float a = 0x.8p0f;");
  check_rewritten("half a = 1.0h;", "half a = half(1.0f);");
  check_rewritten("half a = 1H;", "half a = half(1.0f);");
  check_rewritten("bfloat a = 2.5bf;", "bfloat a = bfloat(2.5f);");
  check_rewritten("bfloat a = 2.5BF;", "bfloat a = bfloat(2.5f);");
  check_rewritten("f(-1.5, x.y, a[0]. b);", "f(-1.5f, x.y, a[0]. b);");
}

static void leaves_other_literals(void) {
  check_rewritten("float a = 1.0f, b = 2.F, c = 0x1p3f;", "float a = 1.0f, b = 2.F, c = 0x1p3f;");
  check_rewritten("int a = 1, b = 0x1f, c = 0xe, d = 1'000, e = 0b101, f = 1u, g = 0x1E, h = 2ul, i = 0xbf, j = 0x1bf;",
                  "int a = 1, b = 0x1f, c = 0xe, d = 1'000, e = 0b101, f = 1u, g = 0x1E, h = 2ul, i = 0xbf, j = 0x1bf;");
  check_rewritten("int a = 0xe+1;", "int a = 0xe+1;");
  check_rewritten("char s[] = \"1.0 device \\\" 2.0\", c = '\\'';", "char s[] = \"1.0 device \\\" 2.0\", c = '\\'';");
  check_rewritten("char s[] = R\"x(1.0 ) \" kernel)x\";", "char s[] = R\"x(1.0 ) \" kernel)x\";");
  check_rewritten("#pragma something 1.0\nint a;", "#pragma something 1.0 int a;");
  check_rewritten("// 1.0\n/* device 2.0 */ int a;", "// 1.0 /* device 2.0 */ int a;");
}

static void drops_address_spaces(void) {
  check_rewritten("float f(device float *a, constant float &b, thread float *c, threadgroup float *d);",
                  "float f( float *a, const float &b, float *c, float *d);");
  check_rewritten("constant float table[2] = {1.0, 2.0};", "const float table[2] = {1.0f, 2.0f};");
  check_rewritten("int f() { return x.device + y->thread + ns::constant; }", "int f() { return x.device + y->thread + ns::constant; }");
  check_rewritten("auto p = reinterpret_cast<device float *>(q);", "auto p = reinterpret_cast< float *>(q);");
}

static void places_threadgroup_objects(void) {
  check_rewritten("void f() { threadgroup float a[32]; }", "void f() { static thread_local float a[32]; }");
  check_rewritten("void f() { g(); threadgroup float a, b[N * 2]; }", "void f() { g(); static thread_local float a, b[N * 2]; }");
  check_rewritten("void f() { threadgroup metal::array<float, 2 * 4> a; }", "void f() { static thread_local metal::array<float, 2 * 4> a; }");
  check_rewritten("void f() { threadgroup float *p = a; }", "void f() { float *p = a; }");
  check_rewritten("void f() { threadgroup float &p = a[0]; }", "void f() { float &p = a[0]; }");
  check_rewritten("void f() { threadgroup_barrier(x); }", "__attribute__((always_inline)) void f() { threadgroup_barrier(x); }");
  check_rewritten("struct s { threadgroup float *p; };", "struct s { float *p; };");
}

static void exports_a_plain_kernel(void) {
  rewrite("kernel void f(device float *a [[buffer(0)]], constant float &b [[buffer(2)]], uint i [[thread_position_in_grid]]) { a[i] = b; }");
  CHECK_INT(reading.kernel_count, 1);
  CHECK_STRING(reading.kernels[0].name, "f");
  CHECK_INT(reading.kernels[0].flags, 0);
  check_contains("static void f( float *a , const float &b , uint i ) { a[i] = b; }");
  check_contains("::mps_host::parallel(0, true), ::mps_host::buffer<(0)>, ::mps_host::constant_buffer<(2)>, ::mps_host::grid_position>");
  check_contains("row(\"f\", mps_entry_0, 0, 0u)");
}

static void knows_each_attribute(void) {
  static const char *const pairs[][2] = {
    {"thread_position_in_grid", "grid_position"}, {"threads_per_grid", "grid_size"},
    {"thread_position_in_threadgroup", "local_position"}, {"thread_index_in_threadgroup", "local_index"},
    {"threadgroup_position_in_grid", "group_position"}, {"threadgroups_per_grid", "group_count"},
    {"threads_per_threadgroup", "group_size"}, {"dispatch_threads_per_threadgroup", "full_group_size"},
    {"thread_index_in_simdgroup", "lane"}, {"simdgroup_index_in_threadgroup", "simdgroup"},
    {"simdgroups_per_threadgroup", "simdgroup_count"}, {"threads_per_simdgroup", "simdgroup_size"},
    {"thread_execution_width", "simdgroup_size"}, {"threadgroup(3)", "threadgroup_memory<(3)>"}, {"buffer(7)", "buffer<(7)>"},
    {"buffer(kIndex + 1)", "buffer<(kIndex + 1)>"},
  };
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    char source[256], expected[128];
    snprintf(source, sizeof source, "kernel void f(uint x [[%s]]) { }", pairs[i][0]);
    snprintf(expected, sizeof expected, ", ::mps_host::%s>;", pairs[i][1]);
    rewrite(source);
    check_contains(expected);
    check_contains("static void f(uint x ) { }");
  }
  mps_reading_free(&reading);
  const char *unknown = "kernel void f(uint x [[color(0)]]) { }";
  CHECK_STATUS(mps_reader_read(unknown, strlen(unknown), &(mps_reader_options){0}, &reading), MPS_STATUS_COMPILE_ERROR);
  CHECK_STRING(mps_error_message(), ":1:24: error: 'color' is not an attribute of a kernel's parameter that OpenMPS knows");
}

static void gives_free_indices(void) {
  rewrite("kernel void f(device float *a, device float *b [[buffer(1)]], constant S &c, threadgroup float *t, device float *d, threadgroup float *u) {}");
  check_contains("buffer<(0)>, ::mps_host::buffer<(1)>, ::mps_host::constant_buffer<(2)>, ::mps_host::threadgroup_memory<(0)>, "
                 "::mps_host::buffer<(3)>, ::mps_host::threadgroup_memory<(1)>>");
  check_contains("parallel(0, false)");
  rewrite("kernel void f(device map<int, float> *a, uint2 p [[ thread_position_in_grid ]]) {}");
  check_contains("buffer<(0)>, ::mps_host::grid_position>");
}

static void reads_function_attributes(void) {
  rewrite("[[max_total_threads_per_threadgroup(64 * 2)]] [[host_name(\"a\" \"b\")]] kernel void f() {}");
  CHECK_STRING(reading.kernels[0].name, "ab");
  check_contains("row(\"ab\", mps_entry_0, 64 * 2, 0u)");
  rewrite("[[kernel]] void g() {}");
  CHECK_STRING(reading.kernels[0].name, "g");
  check_contains("static void g() {}");
  rewrite("kernel [[max_total_threads_per_threadgroup(8)]] void h(device int *x [[buffer(0), maybe_unused]]) {}");
  CHECK_INT(reading.kernel_count, 1);
  rewrite("[[nodiscard]] int f(); struct v { float4 p [[position]]; };");
  check_contains("[[nodiscard]] int f(); struct v { float4 p ; };");
}

static void instantiates_templates(void) {
  static const char text[] =
    "template <typename T, int N = (3 > 2)> kernel void f(device T *a [[buffer(0)]], uint i [[thread_position_in_grid]]) { a[i] = 1; }\n"
    "template [[host_name(\"f_f32\")]] kernel void f<float>(device float *, uint);\n"
    "template [[host_name(\"f_i32\")]] kernel void f<int, 2>(device int *a [[buffer(0)]], uint i [[thread_position_in_grid]]);\n"
    "template [[host_name(\"f_u32\")]] [[kernel]] decltype(f<uint>) f<uint>;\n"
    "typedef decltype(f<float>) type;\n"
    "template [[host_name(\"f_t\")]] kernel type f<short>;\n";
  rewrite(text);
  CHECK_INT(reading.kernel_count, 4);
  CHECK_STRING(reading.kernels[3].name, "f_t");
  check_contains("static constexpr void (*mps_pointer_0)( float *, uint) = &f < float >;");
  check_contains("static constexpr void (*mps_pointer_1) ( int *a , uint i ) = &f < int , 2 >;");
  check_contains("static constexpr decltype(f<uint>) (*mps_pointer_2) = &f < uint >;");
  check_contains("static constexpr type (*mps_pointer_3) = &f < short >;");
  check_contains("mps_pointer_2, ::mps_host::parallel(2, true), ::mps_host::buffer<(0)>, ::mps_host::grid_position>");
  read_mode(text, MPS_READER_CHECK);
  check_contains("template void f<float>( float *, uint);");
  CHECK(strstr(reading.output, "mps_host") == NULL);
  rewrite("template <typename T> kernel void f(device T *a) {}\ntemplate <> [[host_name(\"x\")]] kernel void f<int>(device int *a) {}\n");
  CHECK_INT(reading.kernel_count, 1);
  check_contains("static constexpr void (*mps_pointer_0)( int * a ) = &f < int >;");
  rewrite("namespace a { namespace b { kernel void f(device int *x) {} } }");
  CHECK_INT(reading.kernel_count, 1);
  rewrite("kernel void f(device int *x); kernel void f(device int *x) {}");
  CHECK_INT(reading.kernel_count, 1);
}

/* Limits of threads that speak of the template's parameters are counted where it is instantiated. */
static void limits_threads_of_templates(void) {
  rewrite("template <typename T, int N = 2> [[max_total_threads_per_threadgroup(N * 32)]] kernel void f(device T *a) {}\n"
          "template [[host_name(\"x\")]] kernel void f<float, 4>(device float *);");
  check_contains("template < typename T , int N = 2 > static constexpr unsigned mps_threads_0() { return N * 32; }");
  check_contains("row(\"x\", mps_entry_0, mps_threads_0< float , 4 >(), 0u)");
}

/* A function adds up the sizes of a kernel's threadgroup variables; it takes along the statements that they speak of, and no others. */
static void counts_threadgroup_variables(void) {
  rewrite("kernel void f(uint i [[thread_position_in_grid]]) { threadgroup float a[4], b; }");
  check_contains("static constexpr unsigned mps_shared_0() { unsigned mps_bytes = 0; { struct mps_part { float a [ 4 ] , b; }; "
                 "mps_bytes += 0 + sizeof(mps_part::a) + sizeof(mps_part::b); } return mps_bytes; }");
  check_contains("row(\"f\", mps_entry_0, 0, 0u, mps_shared_0())");
  rewrite("template <typename T, int N> kernel void f(device T *o) {\n"
          "  int other = o[0]; static constexpr int M = N * 2; if (other) { T M2 = N; } else { o[1] = 2; } using V = vec<T, 4>;\n"
          "  struct pair { V v; int n; }; for (int i = 0; i < 2; i++) { constexpr int K = M + 1; threadgroup pair a[K]; } return; }\n"
          "template [[host_name(\"x\")]] kernel void f<float, 2>(device float *);");
  check_contains("template < typename T , int N > static constexpr unsigned mps_shared_0() { unsigned mps_bytes = 0; { constexpr int M = N * 2 ; "
                 "using V = vec < T , 4 > ; struct pair { V v ; int n ; } ; constexpr int K = M + 1 ; struct mps_part { pair a [ K ]; };");
  check_contains("row(\"x\", mps_entry_0, 0, 0u, mps_shared_0< float , 2 >())");
  rewrite("kernel void f(device float *p) { threadgroup decltype(p[0] + 1) a[4]; threadgroup float *q = 0; }");
  CHECK(strstr(reading.output, "mps_shared") == NULL);
}

/* Returns the new end. */
static char *put(char *end, const char *text) {
  size_t length = strlen(text);
  memcpy(end, text, length + 1);
  return end + length;
}

/* An index is an expression that the reader follows as deep as anybody writes one; what is deeper is left to the compiler. */
static void follows_expressions_so_far(void) {
  enum { DEEP = 20000 };
  static const char *const parts[][2] = {{"(", ")"}, {"-", ""}, {"-(", ")"}};
  static char source[4 * DEEP + 200];
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    for (int depth = 8; depth <= DEEP; depth += DEEP - 8) {
      char *end = put(source, "kernel void f(device int *y [[buffer(1)]], device int *x [[buffer(");
      for (int d = 0; d < depth; d++) end = put(end, parts[i][0]);
      end = put(end, "1");
      for (int d = 0; d < depth; d++) end = put(end, parts[i][1]);
      put(end, ")]]) {}");
      mps_reader_options options = {.mode = MPS_READER_HOST};
      mps_reading deep = {0};
      mps_status status = mps_reader_read(source, strlen(source), &options, &deep);
      CHECK_INT(status, depth == 8 ? MPS_STATUS_COMPILE_ERROR : MPS_STATUS_OK); /* index 1 is taken, if it is seen */
      mps_reading_free(&deep);
    }
}

static void joins_address_spaces(void) {
  check_rewritten("float g(device float *a) { return 1; } float g(threadgroup float *b) { return 2; } int x;",
                  "float g( float *a) { return 1; } int x;");
  check_rewritten("float g(device const float *a) { } float g(constant float *a) { }", "float g( const float *a) { }");
  check_rewritten("float g(float *a) { } float g(float *b) { }", "float g(float *a) { } float g(float *b) { }"); /* clang's to refuse */
  check_rewritten("float g(device float *a) { } float g(device int *a) { }", "float g( float *a) { } float g( int *a) { }");
  check_rewritten("float g(device float *a); float g(threadgroup float *a); float g(thread float *a) { }",
                  "float g( float *a); float g( float *a); float g( float *a) { }");
  check_rewritten("s &operator+=(thread s &a, s b) { } s &operator+=(device s &a, s b) { } int x;", "s &operator+=( s &a, s b) { } int x;");
  check_rewritten("namespace a { int f(device int *p) { } } namespace b { int f(thread int *p) { } }",
                  "namespace a { int f( int *p) { } } namespace b { int f( int *p) { } }");
  check_rewritten("template <typename T> struct e<device T *> { T x; }; template <typename T> struct e<thread T *> { T x; }; int y;",
                  "template <typename T> struct e< T *> { T x; }; int y;");
  check_rewritten("struct c { c(int a) thread : x(a) {} c(int b) threadgroup : x(b) {} int x; };", "struct c { c(int a) : x(a) {} int x; };");
  check_rewritten("struct c { c() thread = default; c() device = default; c() constant = default; };", "struct c { c() = default; };");
  check_rewritten("struct c { int f() constant { } int g() const constant; operator int() const thread { } operator int() const device { } };",
                  "struct c { int f() const { } int g() const ; operator int() const { } };");
  check_rewritten("struct c { int operator()(device int *a) { } int operator()(thread int *a) { } };", "struct c { int operator()( int *a) { } };");
  check_rewritten("void g(device int *a) { }\nvoid g(thread int *a) {\n#pragma unroll\nfor (;;) ; }\nint x;", "void g( int *a) { } int x;");
}

/* What a program adds to metal:: stands where the library's own functions of such names are; others stay. */
static void moves_simdgroup_functions(void) {
  check_rewritten("namespace metal { inline pair simd_sum(pair p) { } template <typename T> T quad_max(T a, T b); float sum(float a) { } }",
                  "namespace metal { namespace openmps_lanes { inline pair simd_sum(pair p) { } } using namespace openmps_lanes; "
                  "namespace openmps_lanes { template <typename T> T quad_max(T a, T b); } using namespace openmps_lanes; float sum(float a) { } }");
  check_rewritten("namespace mine { int simd_sum(int a) { } } int simd_sum(int a) { }", "namespace mine { int simd_sum(int a) { } } int simd_sum(int a) { }");
}

/* In templates alone, and with the whole operand in front of the component. */
static void names_components(void) {
  check_rewritten("template <typename T> void f(T v, T *p) { v.x += 1; a.b[1].y <<= 2; p->z >>= 1; this->w -= 1; g(v).x *= v.y; v.x = v.x == 1; v.q += 1; }",
                  "template <typename T> void f(T v, T *p) { ::metal::openmps_detail::component_x(v) += 1; "
                  "::metal::openmps_detail::component_y(a.b[1]) <<= 2; ::metal::openmps_detail::component_z(*(p)) >>= 1; this->w -= 1; "
                  "::metal::openmps_detail::component_x(g(v)) *= v.y; v.x = v.x == 1; v.q += 1; }");
  check_rewritten("void f(float2 v) { v.x += 1; }", "void f(float2 v) { v.x += 1; }");
}

static void assigns_unions(void) {
  check_rewritten("union u { float4 v; float a[4]; };", "union u { float4 v; float a[4]; u &operator=(const u &mps_other) { "
                  "__builtin_memcpy(this, &mps_other, sizeof(*this)); return *this; } };");
  check_rewritten("union u { int a; void operator=(int b) { } }; struct s { union { int a; float b; }; };",
                  "union u { int a; void operator=(int b) { } }; struct s { union { int a; float b; }; };");
}

static void drops_what_hosts_do_not_need(void) {
  check_rewritten("kernel_type coherent; void f(volatile coherent(system) device uint *a);", "kernel_type coherent; void f(volatile uint *a);");
  check_rewritten("void f() {\n#pragma unroll (MIN(N, 4))\nfor (;;) ;\n#pragma unroll\nfor (;;) ; }",
                  "void f() { for (;;) ; #pragma unroll for (;;) ; }");
}

static void finds_function_constants(void) {
  rewrite("constant bool flag [[function_constant(3)]];\nconstant int n = is_function_constant_defined(flag) ? 1 : 2;\n"
          "kernel void f(device int *a, device int *b [[buffer(1), function_constant(flag)]]) { a[0] = n; }");
  CHECK_INT(reading.constant_count, 1);
  if (reading.constant_count == 1) {
    CHECK_STRING(reading.constants[0].name, "flag");
    CHECK_INT(reading.constants[0].index, 3);
  }
  check_contains("const bool flag {}; const int n = !sizeof(flag) ? 1 : 2;");
}

/* Reads with values for the constants of kernel `function`. */
static mps_status specialize(const char *source, const char *function, const mps_function_constant *values, uint32_t count) {
  const mps_specialization special = {function, values, count};
  mps_reading_free(&reading);
  return mps_reader_read(source, strlen(source), &(mps_reader_options){.special = &special}, &reading);
}

static void gives_function_constants_values(void) {
  const float real = -1.5f;
  const int64_t least = INT64_MIN;
  const uint16_t pair[2] = {0x3c00, 0xc000};
  const mps_function_constant values[] = {{.index = 7, .type = MPS_CONSTANT_FLOAT, .value = &real}, {.name = "l", .type = MPS_CONSTANT_LONG, .value = &least},
                                          {.index = 8, .type = MPS_CONSTANT_HALF, .components = 2, .value = pair}};
  static const char text[] = "constant float x [[function_constant(2 * (3 + 1) - 1)]];\ntypedef int64_t wide;\nconstant wide l [[function_constant(1)]];\n"
                             "constant metal::vec<half, 2> v [[function_constant(8)]];\nconstant int unset [[function_constant(9)]];\n"
                             "constant float y = is_function_constant_defined(x) ? x : 1;\n"
                             "template <typename T> kernel void t(device T *a) { a[0] = unset; }\n"
                             "template [[host_name(\"t_f\")]] kernel void t<float>(device float *);\n"
                             "kernel void f(device float *a [[buffer(0), function_constant(x)]]) { a[0] = y; }\nkernel void g(device int *a) { }";
  CHECK_OK(specialize(text, "f", values, 3));
  CHECK_INT(reading.kernel_count, 1);
  CHECK_INT(reading.constants[0].index, 7);
  check_contains("const float x = ::as_type<float>(static_cast<uint>(0xbfc00000u))");
  check_contains("const wide l = static_cast<long>(0x8000000000000000ul);");
  check_contains("v = ::metal::half2(::as_type<half>(static_cast<ushort>(0x3c00u)), ::as_type<half>(static_cast<ushort>(0xc000u)));");
  check_contains("const int unset {}; const float y = !!sizeof(x) ? x : 1;");
  check_contains("::mps_host::argument_where<(x), ::mps_host::buffer<(0)>>");
  CHECK_STATUS(specialize(text, "t_f", values, 3), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "kernel 't_f' uses the function constant 'unset' (index 9) at :7, which has no value: give it one, or have the "
               "source ask is_function_constant_defined(unset)");
  const char *derived = "constant int a [[function_constant(0)]];\nconstant int b = a + 1;\nint g() { return b; }\nkernel void f(device int *o) { *o = g(); }";
  CHECK_STATUS(specialize(derived, "f", NULL, 0), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_OK(specialize("constant int a [[function_constant(0)]];\nkernel void f(device S *o) { o->a = is_function_constant_defined(a); }", "f", NULL, 0));
  CHECK_STATUS(specialize("constant S s [[function_constant(7)]];", "f", values, 1), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "the function constant with index 7 cannot get a value: the type that :1 declares it with is neither a scalar nor a "
               "vector of 2 to 4 scalars");
}

static uint32_t flags_of(const char *source) {
  rewrite(source);
  return reading.kernel_count ? reading.kernels[reading.kernel_count - 1].flags : 99;
}

static void reaches_barriers(void) {
  CHECK_INT(flags_of("kernel void f() { threadgroup_barrier(x); }"), 1);
  CHECK_INT(flags_of("kernel void f(device float *a) { a[0] = simd_sum(a[1]); }"), 2);
  CHECK_INT(flags_of("void g() { simdgroup_barrier(x); } kernel void f() { g(); }"), 3);
  CHECK_INT(flags_of("void g() { threadgroup_barrier(x); } void h() { g(); } kernel void f() { h(); } kernel void k() { }"), 0);
  CHECK_INT(flags_of("struct s { float operator()(float x) const { return simd_max(x); } };\n"
                     "template <typename F> kernel void f(device float *a) { a[0] = F()(a[0]); }\n"
                     "template [[host_name(\"y\")]] kernel void f<s>(device float *);"), 2);
  CHECK_INT(flags_of("struct s { static void go() { threadgroup_barrier(x); } }; using t = s;\n"
                     "kernel void f(device float *a) { t::go(); }"), 1);
  CHECK_INT(flags_of("kernel void f(uint n [[threads_per_simdgroup]], uint l [[thread_index_in_simdgroup]]) { }"), 0);
  rewrite("void g() { threadgroup float a[4]; } kernel void f() { g(); }");
  check_contains("parallel(0, false)");
}

static void refuses_with_place(void) {
  static const char text[] = "# 7 \"some/file.metal\"\nint a;\nkernel void f(device int *x, int y) { }";
  mps_reading_free(&reading);
  CHECK_STATUS(mps_reader_read(text, strlen(text), &(mps_reader_options){0}, &reading), MPS_STATUS_COMPILE_ERROR);
  CHECK_STRING(mps_error_message(), "some/file.metal:8:30: error: parameter 2 of kernel 'f' has no attribute and is neither a pointer nor a reference");
  CHECK_STATUS(mps_reader_read("f(]", 3, &(mps_reader_options){0}, &reading), MPS_STATUS_COMPILE_ERROR);
  CHECK_STRING(mps_error_message(), ":1:3: error: ']' does not match '('");
  CHECK_STATUS(mps_reader_read("}", 1, &(mps_reader_options){0}, &reading), MPS_STATUS_COMPILE_ERROR);
}

/* Broken text of every length must neither crash nor hang. */
static void survives_cut_sources(void) {
  static const char text[] = "# 1 \"x\"\ntemplate <typename T> [[max_total_threads_per_threadgroup(2)]] kernel void f(device T *a [[buffer(0)]]) { "
                             "threadgroup float t[2]; a[0] = 0x1.8p3 + 1.0h; }\n"
                             "template [[host_name(\"f_\" \"f32\")]] kernel void f<float>(device float *);\nconstant int c [[function_constant(0)]];";
  for (size_t length = 0; length <= strlen(text); length++) {
    char *copy = malloc(length + 1);
    memcpy(copy, text, length);
    copy[length] = 0;
    mps_reading other = {0};
    mps_status status = mps_reader_read(copy, length, &(mps_reader_options){0}, &other);
    CHECK(status == MPS_STATUS_OK || status == MPS_STATUS_COMPILE_ERROR);
    mps_reading_free(&other);
    free(copy);
  }
}

static unsigned count_lines(const char *text) {
  unsigned lines = 0;
  for (; *text; text++) lines += *text == '\n';
  return lines;
}

/* Strings that go over several lines: a raw one, and one with a backslash at the end of a line. */
static void counts_lines_of_strings(void) {
  rewrite("# 5 \"u.metal\"\nchar s[] = R\"(\n)\"; x;\n  y;\n");
  CHECK_INT(reading.tokens.line_count, 5);
  const uint32_t last = reading.tokens.count - 2;
  CHECK(mps_token_is(&reading.tokens, last, "y"));
  CHECK_INT(reading.tokens.lines[reading.tokens.tokens[last].line].number, 7);
  CHECK_INT(count_lines(rewrite("[[gpu(\"\\\n\")]] int a;\n")), 2); /* although the attribute goes */
  static const char *const refused[] = {"kernel void f(device int *a [[buffer(R\"(\n)\")]]) {}", "[[host_name(R\"(f)\")]] kernel void f() {}"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    mps_reading_free(&reading);
    CHECK_STATUS(mps_reader_read(refused[i], strlen(refused[i]), &(mps_reader_options){0}, &reading), MPS_STATUS_COMPILE_ERROR);
  }
}

/* The column of `needle` in the output must come back as that of `needle` in the user's own line. */
static void check_column(const char *preprocessed, const char *user, const char *needle) {
  char source[512];
  snprintf(source, sizeof source, "# 5 \"u.metal\"\n%s\n", preprocessed);
  rewrite(source);
  const char *line = strchr(reading.output, '\n');
  const char *at = line ? strstr(line + 1, needle) : NULL;
  CHECK(at != NULL);
  if (!at) return;
  uint32_t column = mps_reading_column(&reading, "u.metal", 5, (uint32_t)(at - line), user);
  CHECK_INT(column, strstr(user, needle) - user + 1);
}

static void maps_columns(void) {
  check_column("  x = 1.0 + 2.0h + here;", "  x = 1.0 + 2.0h + here;", "here");
  check_column("  x = 1.0 + here;", "  x   =   1.0 /* c */ +   here;", "here");
  check_column("kernel void f(device float *a [[buffer(0)]], uint i [[thread_position_in_grid]]) { here; }",
               "kernel void f(device float *a [[buffer(0)]], uint i [[thread_position_in_grid]]) { here; }", "here");
  check_column("x = ((1.0) + (1.0)) + here;", "x = TWICE(1.0) + here;", "here");
  rewrite("# 5 \"u.metal\"\nx = y + 1;\n");
  CHECK_INT(mps_reading_column(&reading, "u.metal", 5, 5, "x =  MACRO;"), 6);
  CHECK_INT(mps_reading_column(&reading, "other.metal", 5, 5, "x = MACRO;"), 5);
}

int main(void) {
  RUN(suffixes_floating_literals);
  RUN(leaves_other_literals);
  RUN(drops_address_spaces);
  RUN(places_threadgroup_objects);
  RUN(exports_a_plain_kernel);
  RUN(knows_each_attribute);
  RUN(gives_free_indices);
  RUN(reads_function_attributes);
  RUN(instantiates_templates);
  RUN(limits_threads_of_templates);
  RUN(counts_threadgroup_variables);
  RUN(follows_expressions_so_far);
  RUN(joins_address_spaces);
  RUN(moves_simdgroup_functions);
  RUN(names_components);
  RUN(assigns_unions);
  RUN(drops_what_hosts_do_not_need);
  RUN(finds_function_constants);
  RUN(gives_function_constants_values);
  RUN(reaches_barriers);
  RUN(refuses_with_place);
  RUN(survives_cut_sources);
  RUN(counts_lines_of_strings);
  RUN(maps_columns);
  mps_reading_free(&reading);
  return test_end();
}
