/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_lanes: lane loops against the same kernels run thread by thread (each thread has a stack of its own and stops at each
 * meeting), bit for bit, in groups of many sizes; what is refused. Needs a clang (OPENMPS_CLANG).
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "base/os/fiber.h"
#include "shader/compiler.h"
#include "shader/lanes.h"
#include "shader/process.h"
#include "test.h"

#define MAX_THREADS 1024u
#define WIDTH 32u
#define STACK_BYTES ((size_t)32 << 10)
#define KERNEL_COUNT 21u
#define LOOP_DEPTH 8u
#define ELEMENTS (MAX_THREADS * 8)

/* ---- threads one after another ---- */
typedef struct thread {
  mps_fiber fiber;
  enum { READY, MEETING, WAITING, DONE } state;
  const void *site, *a, *b;
  void *result;
  unsigned a_bytes, b_bytes, result_bytes;
  void (*exchange)(void);
  unsigned depth; /* loops that it is in, the outermost first */
  struct {
    const void *site;
    unsigned rounds;
  } loops[LOOP_DEPTH];
} thread;

typedef void thread_function(const void *, unsigned);

static thread threads[MAX_THREADS];
static mps_fiber scheduler;
static unsigned running;
static thread_function *function;
static const void *argument;
static unsigned char *stacks;

static void stop(int state) {
  threads[running].state = state;
  mps_fiber_switch(&threads[running].fiber, &scheduler);
}
static void barrier(void) { stop(WAITING); }
static void meet(const void *site, const void *a, unsigned a_bytes, const void *b, unsigned b_bytes, void *result, unsigned result_bytes,
                 void (*exchange)(void)) {
  thread *t = &threads[running];
  t->site = site, t->a = a, t->b = b, t->result = result;
  t->a_bytes = a_bytes, t->b_bytes = b_bytes, t->result_bytes = result_bytes;
  t->exchange = exchange;
  stop(MEETING);
}
static unsigned *enter_loop(const void *site) {
  thread *t = &threads[running];
  t->loops[t->depth].site = site;
  t->loops[t->depth].rounds = 0;
  return &t->loops[t->depth++].rounds;
}
static void leave_loop(void) { threads[running].depth--; }
static void thread_main(void *self) {
  mps_fiber_entered(self);
  function(argument, running);
  threads[running].state = DONE;
  mps_fiber_leave(self, &scheduler);
}

/* Negative: a is behind b. By the loops that they are in, then by the place. */
static int compare_places(const thread *a, const thread *b) {
  for (unsigned i = 0;; i++) {
    uintptr_t at_a = (uintptr_t)(i < a->depth ? a->loops[i].site : a->site), at_b = (uintptr_t)(i < b->depth ? b->loops[i].site : b->site);
    if (at_a != at_b) return at_a < at_b ? -1 : 1;
    if (i >= a->depth || i >= b->depth) return 0;
    if (a->loops[i].rounds != b->loops[i].rounds) return a->loops[i].rounds < b->loops[i].rounds ? -1 : 1;
  }
}

/* Those meet that are behind all others of a simdgroup. False: nobody waits for others. */
static int let_meet(thread *lanes, unsigned count) {
  static _Alignas(64) unsigned char a[WIDTH * 16], b[WIDTH * 16], results[WIDTH * 16];
  const thread *first = NULL;
  unsigned active = 0;
  for (unsigned i = 0; i < count; i++)
    if (lanes[i].state == MEETING && (!first || compare_places(&lanes[i], first) < 0)) first = &lanes[i];
  if (!first) return 0;
  for (unsigned i = 0; i < count; i++) {
    if (lanes[i].state != MEETING || compare_places(&lanes[i], first) != 0) continue;
    active |= 1u << i;
    if (first->a_bytes) memcpy(a + i * first->a_bytes, lanes[i].a, first->a_bytes);
    if (first->b_bytes) memcpy(b + i * first->b_bytes, lanes[i].b, first->b_bytes);
  }
  unsigned bytes = first->result_bytes;
  if (first->b_bytes) ((void (*)(const void *, const void *, void *, unsigned))first->exchange)(a, b, results, active);
  else if (first->exchange) ((void (*)(const void *, void *, unsigned))first->exchange)(a, results, active);
  for (unsigned i = 0; i < count; i++) {
    if (!(active >> i & 1)) continue;
    if (bytes) memcpy(lanes[i].result, results + i * bytes, bytes);
    lanes[i].state = READY;
  }
  return 1;
}

static void run_reference(thread_function *thread_of_group, const void *context, unsigned count) {
  function = thread_of_group;
  argument = context;
  mps_fiber_of_thread(&scheduler);
  for (unsigned i = 0; i < count; i++) {
    threads[i].state = READY;
    threads[i].depth = 0;
    CHECK_OK(mps_fiber_create(&threads[i].fiber, stacks + i * STACK_BYTES, STACK_BYTES, thread_main, &threads[i].fiber));
  }
  for (int waiting = 1; waiting;) {
    waiting = 0;
    for (unsigned first = 0; first < count; first += WIDTH) {
      unsigned end = first + WIDTH < count ? first + WIDTH : count;
      do {
        for (running = first; running < end; running++)
          if (threads[running].state == READY) mps_fiber_switch(&scheduler, &threads[running].fiber);
      } while (let_meet(threads + first, end - first));
    }
    for (unsigned i = 0; i < count; i++) {
      if (threads[i].state != WAITING) continue;
      threads[i].state = READY;
      waiting = 1;
    }
  }
  for (unsigned i = 0; i < count; i++) mps_fiber_destroy(&threads[i].fiber);
}

/* ---- compiling ---- */
typedef struct entry {
  thread_function *thread;
  void (*group)(const void *, unsigned, void *);
  const unsigned *bytes;
} entry;

static mps_compiler compiler;
static char folder[1024];

/* Runs clang (or a tool of zig) with words that are split at blanks. */
static int clang(const char *tool, const char *words) {
  char text[4000], *said = NULL;
  const char *arguments[64] = {compiler.clang};
  int count = 1, code = 1;
  if (compiler.zig) arguments[count++] = tool;
  snprintf(text, sizeof text, "%s", words);
  for (char *word = strtok(text, " "); word && count < 63; word = strtok(NULL, " ")) arguments[count++] = word;
  CHECK_OK(mps_process_run(arguments, 300000, &said, &code));
  if (code != 0) fprintf(stderr, "%s\n", said ? said : "");
  CHECK_INT(code, 0);
  free(said);
  return code == 0;
}

static const entry *load(const char *name, void **out_library) {
  char path[1200], words[3000];
  snprintf(words, sizeof words, "-shared -o %s/%s.so %s/%s.o", folder, name, folder, name);
  if (!clang(compiler.zig ? "ld.lld" : "", words)) return NULL;
  snprintf(path, sizeof path, "%s/%s.so", folder, name);
  *out_library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!*out_library) fprintf(stderr, "%s\n", dlerror());
  CHECK(*out_library != NULL);
  return *out_library ? dlsym(*out_library, "mps_entries") : NULL;
}

/* What makes IR of a kernel: loops of known length are unrolled, so that private arrays become values; no vectors yet. */
#define BEFORE "-O2 -fno-vectorize -fno-slp-vectorize"
/* Half needs a processor of this century, or a runtime library. */
#define CODE "-march=native -fPIC -fvisibility=hidden -fno-exceptions -fno-rtti -ffp-contract=off -fno-asynchronous-unwind-tables"

static const entry *build_reference(void **library) {
  char words[3000];
  snprintf(words, sizeof words, "-x c++ -std=c++17 -nostdinc -O0 " CODE " -DMPS_REFERENCE -I " OPENMPS_TEST_SOURCE "/src -c -o %s/reference.o "
           OPENMPS_TEST_SOURCE "/tests/unit/lanes_kernels.cpp", folder);
  const entry *entries = clang("clang", words) ? load("reference", library) : NULL;
  static const struct {
    void (*meet)(const void *, const void *, unsigned, const void *, unsigned, void *, unsigned, void (*)(void));
    void (*barrier)(void);
    unsigned *(*enter_loop)(const void *);
    void (*leave_loop)(void);
  } services = {meet, barrier, enter_loop, leave_loop};
  const void **place = entries ? dlsym(*library, "mps_reference") : NULL;
  CHECK(place != NULL);
  if (place) *place = &services;
  return place ? entries : NULL;
}

static const entry *build_lanes(const char *level, const char *processor, void **library) {
  char words[3000], path[1200];
  snprintf(words, sizeof words, "-x c++ -std=c++17 -nostdinc %s %s " CODE " -I " OPENMPS_TEST_SOURCE "/src -emit-llvm -S -o %s/lanes.ll "
           OPENMPS_TEST_SOURCE "/tests/unit/lanes_kernels.cpp", level, processor, folder);
  if (!clang("clang", words)) return NULL;
  char *text = NULL;
  size_t length = 0;
  mps_lanes_result result = {0};
  snprintf(path, sizeof path, "%s/lanes.ll", folder);
  CHECK_OK(mps_file_read(path, &text, &length));
  CHECK_OK(mps_lanes_transform(text, length, &result));
  CHECK_INT(result.function_count, KERNEL_COUNT);
  snprintf(path, sizeof path, "%s/looped.ll", folder);
  if (result.text) CHECK_OK(mps_file_write(path, result.text, result.length));
  mps_lanes_result_free(&result);
  free(text);
  snprintf(words, sizeof words, "-x ir %s -O3 -Wno-pass-failed -fPIC -c -o %s/lanes.o %s", processor, folder, path);
  return clang("clang", words) ? load("lanes", library) : NULL;
}

/* ---- running ---- */
typedef struct memory {
  float in[ELEMENTS], out[ELEMENTS];
  unsigned words[ELEMENTS], counts[ELEMENTS];
  float shared[ELEMENTS];
} memory;

typedef struct context {
  const float *in;
  float *out;
  unsigned *words, *counts;
  float *shared;
  unsigned threads, n;
} context;

static context prepare(memory *m, unsigned count, unsigned seed) {
  memset(m, 0, sizeof *m);
  for (unsigned i = 0; i < ELEMENTS; i++) {
    seed = seed * 1664525u + 1013904223u;
    m->in[i] = (float)(seed >> 28);
    m->counts[i] = seed >> 24 & 31;
  }
  for (unsigned i = 0; i < MAX_THREADS; i++) m->words[4000 + i] = i % 7;
  return (context){m->in, m->out, m->words, m->counts, m->shared, count, 5};
}

static memory expected, actual;

static void compare(unsigned kernel, unsigned count) {
  for (unsigned i = 0; i < ELEMENTS; i++) {
    if (memcmp(&expected.out[i], &actual.out[i], sizeof(float)) == 0 && expected.words[i] == actual.words[i] &&
        memcmp(&expected.shared[i], &actual.shared[i], sizeof(float)) == 0)
      continue;
    fprintf(stderr, "kernel %u, %u threads, element %u: out %g, expected %g; word %u, expected %u; shared %g, expected %g\n", kernel, count, i,
            (double)actual.out[i], (double)expected.out[i], actual.words[i], expected.words[i], (double)actual.shared[i], (double)expected.shared[i]);
    test_failures++;
    return;
  }
}

/* Sums of small whole numbers are exact, whatever their order. */
static void compare_with_formula(unsigned kernel, unsigned count) {
  float total = 0;
  for (unsigned i = 0; i < count; i++) total += actual.in[i];
  if (kernel == 0) CHECK(actual.out[0] == total && actual.out[count - 1] == total);
  if (kernel == 1) CHECK(actual.out[0] == total);
  if (kernel == 12) CHECK(actual.out[count - 1] == actual.in[count - 1] * 2 + (float)(count - 1));
}

static void run_all(const entry *reference, const entry *lanes) {
#if defined(__SANITIZE_THREAD__) /* nothing here runs side by side, and each switch takes it microseconds */
  static const unsigned sizes[] = {1, 33};
#else
  static const unsigned sizes[] = {1, 7, 32, 33, 64, 100, 256, 1000, 1024};
#endif
  for (unsigned kernel = 0; kernel < KERNEL_COUNT; kernel++) {
    for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
      unsigned count = sizes[s], rounded = (count + 31) / 32 * 32;
      size_t bytes = ((size_t)*lanes[kernel].bytes * rounded + 63) / 64 * 64;
      unsigned char *storage = aligned_alloc(64, bytes);
      if (!storage) abort();
      memset(storage, 0xa5, bytes);
      context a = prepare(&expected, count, kernel * 77 + count), b = prepare(&actual, count, kernel * 77 + count);
      run_reference(reference[kernel].thread, &a, count);
      lanes[kernel].group(&b, count, storage);
      compare(kernel, count);
      compare_with_formula(kernel, count);
      free(storage);
    }
  }
}

static void run_both(const char *level, const char *processor) {
  void *reference_library = NULL, *lanes_library = NULL;
  const entry *reference = build_reference(&reference_library), *lanes = reference ? build_lanes(level, processor, &lanes_library) : NULL;
  if (lanes) run_all(reference, lanes);
  if (lanes_library) dlclose(lanes_library);
  if (reference_library) dlclose(reference_library);
}

static void agrees_with_threads(void) { run_both("-O1", "-march=native"); }
static void agrees_when_optimized_before(void) { run_both(BEFORE, "-march=native -mprefer-vector-width=512"); }

/* ---- loops that the vectoriser takes ---- */
static const char vectorized_source[] =
  "#define MPS_COLLECTIVE_DECLARE(declaration) extern \"C\" __attribute__((convergent, nomerge)) declaration;\n"
  "#include \"shader/host_collectives.h\"\n"
  "struct context { const float *in; float *out, *shared; unsigned n, threads; };\n"
  "extern \"C\" void mps_threads_0(const context *c, unsigned t) {\n" /* a load, arithmetic, a store; a private array that is unrolled */
  "  float own[4];\n"
  "  for (int i = 0; i < 4; i++) own[i] = c->in[t] * static_cast<float>(i + 2);\n"
  "  c->shared[t] = own[0] - own[1] * own[2] - own[3];\n"
  "  mps_collective_barrier(1);\n"
  "  c->out[t] = c->shared[c->threads - 1 - t] / 3;\n"
  "}\n"
  "extern \"C\" void mps_threads_1(const context *c, unsigned t) {\n" /* a loop that all go round alike; a count kept over a barrier */
  "  float total = 0;\n"
  "  for (unsigned i = 0; i < c->n; i++) total += c->in[i * c->threads + t] * 5;\n"
  "  c->shared[t] = total;\n"
  "  mps_collective_barrier(1);\n"
  "  for (unsigned s = c->threads / 2; s > 0; s >>= 1) {\n"
  "    if (t < s) c->shared[t] -= c->shared[t + s];\n"
  "    mps_collective_barrier(1);\n"
  "  }\n"
  "}\n";

/* The text of a function, up to its end. */
static const char *function_text(const char *text, const char *name, size_t *length) {
  const char *at = strstr(text, name), *end = at ? strstr(at, "\n}") : NULL;
  *length = end ? (size_t)(end - at) : 0;
  return at;
}

static void check_vectorized(const char *text, const char *name, const char *instruction) {
  size_t length;
  const char *at = function_text(text, name, &length), *found = at ? strstr(at, instruction) : NULL;
  if (found && found < at + length) return;
  fprintf(stderr, "%s has no '%s'\n", name, instruction);
  test_failures++;
}

static void is_vectorized_over_lanes(void) {
  char path[1200], words[3000], *text = NULL;
  size_t length = 0;
  mps_lanes_result result = {0};
  snprintf(path, sizeof path, "%s/simple.cpp", folder);
  CHECK_OK(mps_file_write(path, vectorized_source, strlen(vectorized_source)));
  snprintf(words, sizeof words, "-x c++ -std=c++17 -nostdinc " BEFORE " " CODE " -I " OPENMPS_TEST_SOURCE "/src -emit-llvm -S -o %s/simple.ll %s", folder,
           path);
  if (!clang("clang", words)) return;
  snprintf(path, sizeof path, "%s/simple.ll", folder);
  CHECK_OK(mps_file_read(path, &text, &length));
  CHECK_OK(mps_lanes_transform(text, length, &result));
  free(text);
  text = NULL;
  if (result.function_count == 2) {
    CHECK_INT(result.functions[0].values, 0); /* all that is needed behind the barrier is computed anew */
    CHECK_OK(mps_file_write(path, result.text, result.length));
    snprintf(words, sizeof words, "-x ir -O3 -march=native -Wno-pass-failed -emit-llvm -S -o %s/vectors.ll %s", folder, path);
    snprintf(path, sizeof path, "%s/vectors.ll", folder);
    if (clang("clang", words)) CHECK_OK(mps_file_read(path, &text, &length));
  }
  mps_lanes_result_free(&result);
  if (!text) return;
  check_vectorized(text, "void @mps_group_0(", "fdiv <");
  check_vectorized(text, "void @mps_group_0(", "fsub <");
  check_vectorized(text, "void @mps_group_1(", "fmul <");
  check_vectorized(text, "void @mps_group_1(", "fsub <");
  free(text);
}

/* ---- what is refused ---- */
#define HEAD "define void @mps_threads_0(ptr %0, i32 %1) {\n"
#define TAIL "  ret void\n}\ndeclare void @mps_collective_barrier(i32)\n"

static void check_refused(const char *text, const char *reason) {
  mps_lanes_result result;
  CHECK_STATUS(mps_lanes_transform(text, strlen(text), &result), MPS_STATUS_NOT_IMPLEMENTED);
  if (!strstr(mps_error_message(), reason)) {
    fprintf(stderr, "'%s' is not in '%s'\n", reason, mps_error_message());
    test_failures++;
  }
  CHECK(result.text == NULL);
}

static void refuses_what_it_does_not_know(void) {
  check_refused(HEAD "  %3 = invoke i32 @f()\n" TAIL, "unknown instruction 'invoke'");
  check_refused(HEAD "  musttail call void @f()\n" TAIL, "unknown instruction 'musttail'");
  check_refused(HEAD "  %3 = call ptr @llvm.stacksave.p0()\n" TAIL, "llvm.stacksave");
  check_refused(HEAD "  call void asm sideeffect \"\", \"\"()\n" TAIL, "not understood");
  check_refused(HEAD "  %3 = alloca i8, i32 %1, align 4\n" TAIL, "private array");
  check_refused(HEAD "  %3 = alloca <vscale x 4 x i32>, align 4\n" TAIL, "private array");
  check_refused(HEAD "  %3 = add i32 %1, %9\n" TAIL, "%9 is not defined");
  check_refused(HEAD "  call void @mps_threads_0(ptr %0, i32 %1)\n" TAIL, "mps_threads_0");
  check_refused(HEAD "  br label %4\n\n4:\n  %5 = load i32, ptr %0\n  store i32 %5, ptr %0\n" TAIL "%5 = type { i32 }\n", "a type and a value");
  check_refused("define i32 @mps_threads_0(ptr %0, i32 %1) {\n  ret i32 0\n}\n", "returns something");
  check_refused("define void @mps_threads_0(ptr %0, i64 %1) {\n  ret void\n}\n", "expected i32");
  check_refused("define void @mps_threads_0(ptr %0, i32 %1, i32 %2) {\n  ret void\n}\n", "more than two");
  check_refused(HEAD "  %3 = add i32 %1, 1\n", "does not end");
}

static void refuses_meetings_elsewhere(void) {
  check_refused("define void @f() {\n  call void @mps_collective_barrier(i32 1)\n  ret void\n}\n" HEAD "  call void @f()\n" TAIL,
                "outside of thread functions");
  check_refused("@table = global ptr @mps_collective_barrier\n" HEAD TAIL, "outside of thread functions");
  check_refused(HEAD "  store ptr @mps_collective_barrier, ptr %0\n" TAIL, "mps_collective_barrier");
  check_refused(HEAD "  %3 = call float @mps_collective_sum_f32(float 1.0)\n" TAIL, "no mps_lanes_sum_f32");
  check_refused(HEAD "  %4 = load ptr, ptr %0\n  %3 = load <vscale x 4 x i32>, ptr %4\n  call void @mps_collective_barrier(i32 1)\n"
                "  store <vscale x 4 x i32> %3, ptr %4\n" TAIL, "kept over a meeting");
}

#define ROUND(what) "  call void @mps_collective_loop_" what "(i32 noundef 7)\n"

static void refuses_loops_that_are_not_in_each_other(void) {
  check_refused(HEAD ROUND("next") TAIL, "counted loops");
  check_refused(HEAD ROUND("leave") TAIL, "counted loops");
  check_refused(HEAD ROUND("stop") TAIL, "not understood");
  check_refused(HEAD "  call void @mps_collective_loop_enter(i32 %1)\n" TAIL, "no constant name");
  check_refused(HEAD ROUND("enter") "  %3 = icmp eq i32 %1, 0\n  br i1 %3, label %4, label %5\n\n4:\n" ROUND("leave") "  br label %5\n\n5:\n" TAIL,
                "from within a counted loop");
}

static void keeps_other_text(void) {
  const char *text = "source_filename = \"x\"\ndefine i32 @f() {\n  ret i32 1\n}\n@mps_group_0_bytes = external constant i32\n"
                     "declare void @mps_group_0(ptr, i32, ptr)\n" HEAD "  call void @mps_collective_barrier(i32 1)\n" TAIL "!0 = !{i32 1}\n";
  mps_lanes_result result;
  CHECK_OK(mps_lanes_transform(text, strlen(text), &result));
  CHECK_INT(result.function_count, 1);
  if (result.text) {
    CHECK(strstr(result.text, "define i32 @f()") != NULL);
    CHECK(strstr(result.text, "define hidden void @mps_group_0(") != NULL);
    CHECK(strstr(result.text, "mps_threads_0") == NULL);
    CHECK(strstr(result.text, "declare void @mps_") == NULL);
    CHECK(strstr(result.text, "!0 = !{i32 1}") != NULL);
  }
  if (result.functions) CHECK_INT(result.functions[0].meetings, 1);
  mps_lanes_result_free(&result);
  mps_lanes_result_free(&result);
}

int main(void) {
  CHECK_OK(mps_compiler_find(&compiler));
  CHECK_OK(mps_temporary_create(folder, sizeof folder));
  stacks = malloc(MAX_THREADS * STACK_BYTES);
  if (!stacks) return 1;
  RUN(keeps_other_text);
  RUN(refuses_what_it_does_not_know);
  RUN(refuses_meetings_elsewhere);
  RUN(refuses_loops_that_are_not_in_each_other);
  RUN(is_vectorized_over_lanes);
  RUN(agrees_with_threads);
  RUN(agrees_when_optimized_before);
  mps_temporary_remove(folder);
  free(stacks);
  return test_end();
}
