/* SPDX-License-Identifier: BSD-3-Clause
 *
 * compiler: clang's command lines, and what is read from its output.
 *
 * A kernel with private arrays that stay in memory must not be vectorised over threads (host_launch.h). Only the optimiser knows which
 * ones stay, so clang prints each function as the vectoriser sees it, and tells which loops were vectorised; entries with an alloca whose
 * loop over threads was make the file compile once more, with those entries serial. The vectoriser would otherwise let iterations share
 * the array: wrong results without a word.
 */
#include "shader/compiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/os/os.h"
#include "base/status.h"
#include "shader/checked.h"
#include "shader/lanes.h"
#include "shader/process.h"

#define COMPILE_TIMEOUT_MS 600000u
#define MAX_ARGUMENTS 96
#define ORDERED "-mllvm", "-enable-interleaved-mem-accesses=false" /* what mps_compile_options.ordered asks for; loops over lanes always do */

typedef struct command {
  const char *arguments[MAX_ARGUMENTS];
  uint32_t count;
} command;

static void add(command *c, const char *argument) {
  if (c->count + 1 < MAX_ARGUMENTS) c->arguments[c->count++] = argument;
  c->arguments[c->count] = NULL;
}

static void add_all(command *c, const char *const *arguments) {
  for (; *arguments; arguments++) add(c, *arguments);
}

static void add_compiler(command *c, const mps_compiler *compiler) {
  add(c, compiler->clang);
  if (compiler->zig) add(c, "clang");
}

static const char *target_of(const mps_compile_options *options) {
  return options->target ? options->target : mps_os_target();
}

static bool is_target(const mps_compile_options *options, const char *prefix) {
  return strncmp(target_of(options), prefix, strlen(prefix)) == 0;
}

/* Texts that a command borrows. */
typedef struct texts {
  char target[64], level[64], standard[32], object_text[1100], list[1100];
} texts;

/* What preprocessing and compiling have in common. */
static void add_language(command *c, const mps_compile_options *options, texts *t) {
  snprintf(t->target, sizeof t->target, "--target=%s", target_of(options));
  snprintf(t->level, sizeof t->level, "-march=%s", options->level ? options->level : "");
  snprintf(t->standard, sizeof t->standard, "-std=%s", options->standard ? options->standard : "c++17");
  add(c, t->target);
  if (options->level) add(c, t->level);
  add(c, "-x");
  add(c, "c++");
  add(c, t->standard);
  static const char *const flags[] = {"-nostdinc", "-fsigned-char", "-fdeclspec", "-fno-exceptions", "-fno-rtti",
                                      "-fno-caret-diagnostics", "-fno-color-diagnostics", "-ferror-limit=20", NULL};
  add_all(c, flags);
  if (is_target(options, "nvptx")) {
    static const char *const ptx[] = {"-nogpulib", "-Xclang", "-target-feature", "-Xclang", "+ptx80", NULL};
    add_all(c, ptx);
  }
}

static uint32_t timeout_of(const mps_compile_options *options) { return options->timeout_ms ? options->timeout_ms : COMPILE_TIMEOUT_MS; }

static mps_status run(const command *c, const mps_compile_options *options, char **out_text, int *out_code) {
  return mps_process_run(c->arguments, timeout_of(options), out_text, out_code);
}

/* Steps that make code, which whoever compiles may run in a way of their own. */
static mps_status run_generating(const command *c, const mps_compile_options *options, char **out_text, int *out_code) {
  if (!options->run_generate) return run(c, options, out_text, out_code);
  return options->run_generate(options->run_context, c->arguments, timeout_of(options), out_text, out_code);
}

/* Sets COMPILE_ERROR with the messages in `text`. */
static mps_status fail(const char *text, const mps_reading *reading, const char *file, const mps_compile_options *options) {
  char *mapped = mps_diagnostics_map(text, reading, file, options->display_source, options->readable);
  mps_status status = mps_error_set_text(MPS_STATUS_COMPILE_ERROR, mapped && mapped[0] ? mapped : text);
  free(mapped);
  return status;
}

/* Writes the preprocessed text to `output`. */
static mps_status preprocess(const mps_compiler *compiler, const char *source, const mps_compile_options *options, const char *output) {
  command c = {0};
  texts t;
  add_compiler(&c, compiler);
  add_language(&c, options, &t);
  add(&c, "-E");
  static const char *const defines[] = {"-D__METAL__=1", "-D__METAL_VERSION__=310", "-D__METAL_MACOS__=1", "-DOPENMPS_KEEP_QUALIFIERS=1", NULL};
  add_all(&c, defines);
  add(&c, "-isystem");
  add(&c, compiler->include);
  for (const char *const *folder = options->includes; folder && *folder; folder++) {
    add(&c, "-I");
    add(&c, *folder);
  }
  add(&c, "-include"); /* as Metal's compiler does: sources do without an #include */
  add(&c, "metal_stdlib");
  if (options->dependency_file) {
    const char *const dependency[] = {"-MD", "-MF", options->dependency_file, "-MT", options->dependency_target, NULL};
    add_all(&c, dependency);
  }
  if (options->quiet) add(&c, "-w");
  add(&c, "-o");
  add(&c, output);
  add(&c, source);
  char *text;
  int code;
  MPS_TRY(run(&c, options, &text, &code));
  mps_status status = MPS_STATUS_OK;
  if (code != 0) status = fail(text, NULL, options->display_name ? options->display_name : source, options);
  free(text);
  return status;
}

static void add_code_generation(command *c, const mps_compile_options *options) {
  add(c, options->optimization ? options->optimization : "-O3");
  static const char *const flags[] = {"-ffp-contract=off", "-fno-math-errno", "-fPIC", "-fvisibility=hidden", "-fno-ident",
                                      "-fno-asynchronous-unwind-tables", "-mllvm", "-inline-threshold=2000",
                                      "-mllvm", "-inlinehint-threshold=2000", "-mllvm", "-locally-hot-callsite-threshold=2000", NULL};
  add_all(c, flags);
  static const char *const ordered[] = {ORDERED, NULL};
  if (options->ordered) add_all(c, ordered);
  if (is_target(options, "x86_64")) {
    add(c, "-Xclang");
    add(c, "-ffloat16-excess-precision=none");
    if (options->level && strcmp(options->level, "x86-64-v4") == 0) add(c, "-mprefer-vector-width=512");
  }
  /* NaN and infinity stay defined: else clang would take a function that returns one for one that never does. */
  static const char *const fast[] = {"-ffast-math", "-fhonor-nans", "-fhonor-infinities", "-ffp-contract=on", NULL};
  if (options->fast_math) add_all(c, fast);
  if (options->standard && strcmp(options->standard, "c++14") == 0) add(c, "-Werror=c++17-extensions"); /* Metal 3 is C++14 */
  static const char *const warnings[] = {"-Wall", "-Wno-unused", "-Wno-unknown-attributes", "-Wno-unknown-pragmas", "-Wno-pass-failed",
                                         "-Wno-duplicate-decl-specifier", "-Wno-nan-infinity-disabled", NULL};
  if (options->quiet) add(c, "-w");
  else add_all(c, warnings);
}

/* True if threads of a kernel meet: at barriers, or in functions of simdgroups. */
static bool threads_meet(const mps_reading *reading) {
  for (uint32_t i = 0; i < reading->kernel_count; i++)
    if (reading->kernels[i].flags) return true;
  return false;
}

/* One run of the compiler over rewritten source. */
typedef struct generation {
  const char *input, *output;
  char serial[1000];  /* numbers of entries whose threads run one by one, each with a comma */
  bool dump;          /* functions are printed as the vectoriser sees them */
  bool lane_loops;    /* the output is what lanes.h takes: text, whose loops are neither vectors nor unrolled by halves */
} generation;

static void add_text_output(command *c) {
  static const char *const flags[] = {"-O2", "-fno-vectorize", "-fno-slp-vectorize", "-mllvm", "-unroll-runtime=false",
                                      "-mllvm", "-unroll-allow-partial=false", "-emit-llvm", "-S", NULL};
  add_all(c, flags);
}

/* *out_text is what clang said, the dump included. */
static mps_status generate(const mps_compiler *compiler, const generation *g, const mps_compile_options *options, const mps_reading *reading,
                           char **out_text, int *out_code) {
  command c = {0};
  texts t;
  add_compiler(&c, compiler);
  add_language(&c, options, &t);
  add_code_generation(&c, options);
  /* Else clang would give each side of a branch its own copy of a function in which threads of both meet behind it. */
  if (threads_meet(reading)) add(&c, "-fconvergent-functions");
  add(&c, g->lane_loops ? "-DOPENMPS_LANE_LOOPS=1" : "-DOPENMPS_LANE_LOOPS=0");
  if (options->mode == MPS_READER_HOST) {
    snprintf(t.list, sizeof t.list, "-DMPS_HOST_SERIAL=%s", g->serial);
    add(&c, t.list);
    add(&c, "-isystem");
    add(&c, compiler->include_core[0] ? compiler->include_core : compiler->include);
    add(&c, "-include");
    add(&c, "shader/host_launch.h");
  }
  if (g->dump) {
    static const char *const flags[] = {"-mllvm", "-print-before=loop-vectorize", "-Rpass=loop-vectorize", NULL};
    add_all(&c, flags);
  }
  static const char *const before_passes[] = {"-Xclang", "-disable-llvm-passes", "-gline-tables-only", "-emit-llvm", NULL};
  if (options->checked) add_all(&c, before_passes);
  if (g->lane_loops) add_text_output(&c);
  else add(&c, is_target(options, "nvptx") || options->checked ? "-S" : "-c");
  add(&c, "-o");
  add(&c, g->output);
  add(&c, g->input);
  return run_generating(&c, options, out_text, out_code);
}

/* One step from IR text: to text with the kind "-S", to an object with "-c". `more`: arguments, NULL-terminated. */
static mps_status generate_from_ir(const mps_compiler *compiler, const char *input, const char *kind, const char *const *more, const char *output,
                                   const mps_compile_options *options) {
  command c = {0};
  texts t;
  add_compiler(&c, compiler);
  snprintf(t.target, sizeof t.target, "--target=%s", target_of(options));
  snprintf(t.level, sizeof t.level, "-march=%s", options->level ? options->level : "");
  add(&c, t.target);
  if (options->level) add(&c, t.level);
  const char *const arguments[] = {"-x", "ir", "-ffp-contract=off", "-fPIC", "-w", kind, strcmp(kind, "-S") == 0 ? "-emit-llvm" : "-fno-ident", NULL};
  add_all(&c, arguments);
  add_all(&c, more);
  const char *const files[] = {"-o", output, input, NULL};
  add_all(&c, files);
  char *text;
  int code;
  MPS_TRY(run_generating(&c, options, &text, &code));
  mps_status status = code == 0 ? MPS_STATUS_OK : fail(text, NULL, input, options);
  free(text);
  return status;
}

/* True if the vectoriser took the loop over threads of the function whose dump begins at `p`: its remark follows the dump. Interleaving
 * alone mixes iterations as well. A remark without a place counts as one of that loop. */
static bool vectorized_threads(const char *p, const char *next_dump) {
  static const char mark[] = ": remark: ";
  while ((p = strstr(p, mark)) != NULL && p < next_dump) {
    const char *line = p;
    while (line[-1] != '\n') line--;
    p += sizeof mark - 1;
    const char *launch = strstr(line, "host_launch.h:");
    bool ours = (launch && launch < p) || *line == '<';
    if (ours && (strncmp(p, "vectorized loop", 15) == 0 || strncmp(p, "interleaved loop", 16) == 0)) return true;
  }
  return false;
}

/* Writes the numbers of entries that hold an alloca and were vectorised over threads to `out`, each with a comma; cuts the dumps off
 * `text`. False if they do not fit. */
static bool find_private_memory(char *text, char *out, size_t capacity) {
  static const char mark[] = "; *** IR Dump Before";
  size_t used = 0;
  out[0] = 0;
  char *first = strstr(text, mark), *end = text + strlen(text);
  for (char *p = first, *next; p; p = next) {
    next = strstr(p + 1, mark);
    const char *stop = next ? next : end;
    const char *define = strstr(p, "\ndefine "), *entry = strstr(p, "mps_entry_"), *alloca_at = strstr(p, " = alloca ");
    if (!define || define >= stop || !entry || entry >= stop || entry > strchr(define + 1, '\n')) continue;
    if (!alloca_at || alloca_at >= stop || !vectorized_threads(p, stop)) continue;
    int length = snprintf(out + used, capacity - used, "%d,", atoi(entry + 10));
    if (length < 0 || (size_t)length >= capacity - used) return false;
    used += (size_t)length;
  }
  if (first) *first = 0;
  return true;
}

/* generate, and once more when kernels turn out to have private memory; *out_code is not 0 when the source is wrong. */
static mps_status generate_minding_private_memory(const mps_compiler *compiler, generation *g, const mps_compile_options *options,
                                                  const mps_reading *reading, const char *file, char **out_text, int *out_code) {
  g->serial[0] = 0;
  g->dump = options->mode == MPS_READER_HOST && reading->kernel_count > 0;
  MPS_TRY(generate(compiler, g, options, reading, out_text, out_code));
  if (*out_code != 0 || !g->dump) return MPS_STATUS_OK;
  bool fits = find_private_memory(*out_text, g->serial, sizeof g->serial);
  if (fits && !g->serial[0]) return MPS_STATUS_OK;
  free(*out_text);
  *out_text = NULL;
  if (!fits) return mps_error_set(MPS_STATUS_COMPILE_ERROR, "%s: error: too many kernels with private arrays in one file: split it", file);
  MPS_LOG(SHADER, DEBUG, "%s: entries with private memory run thread by thread: %s", file, g->serial);
  g->dump = false;
  return generate(compiler, g, options, reading, out_text, out_code);
}

/* Makes loops over lanes of the text in `path`, and an object of them. NOT_IMPLEMENTED: they are not possible. */
static mps_status loop_over_lanes(const mps_compiler *compiler, const char *path, const char *object, const mps_compile_options *options) {
  char looped[1100], *text;
  size_t length;
  mps_lanes_result result;
  int used = snprintf(looped, sizeof looped, "%s.lanes.ll", object);
  if (used < 0 || (size_t)used >= sizeof looped) return mps_error_set(MPS_STATUS_SYSTEM_ERROR, "path too long: %s", object);
  MPS_TRY(mps_file_read(path, &text, &length));
  mps_status status = mps_lanes_transform(text, length, &result);
  free(text);
  MPS_TRY(status);
  status = mps_file_write(looped, result.text, result.length);
  mps_lanes_result_free(&result);
  static const char *const flags[] = {"-O3", ORDERED, NULL};
  return status == MPS_STATUS_OK ? generate_from_ir(compiler, looped, "-c", flags, object, options) : status;
}

/* The second half of compiling: what the reader wrote lies in `input`. */
static mps_status generate_object(const mps_compiler *compiler, const char *input, const char *object, const mps_compile_options *options,
                                  const mps_reading *reading, const char *file, char **out_warnings) {
  char path[1100], *text = NULL;
  int code = 0, used = snprintf(path, sizeof path, "%s.ll", object);
  if (used < 0 || (size_t)used >= sizeof path) return mps_error_set(MPS_STATUS_SYSTEM_ERROR, "path too long: %s", object);
  generation g = {.input = input, .output = object};
  mps_status status = MPS_STATUS_OK;
  if (options->lane_loops && options->mode == MPS_READER_HOST && threads_meet(reading)) {
    g.lane_loops = true;
    g.output = path;
    MPS_TRY(generate_minding_private_memory(compiler, &g, options, reading, file, &text, &code));
    status = code == 0 ? loop_over_lanes(compiler, path, object, options) : MPS_STATUS_OK;
    if (status != MPS_STATUS_OK) {
      MPS_LOG(SHADER, INFO, "%s: each thread gets a stack: %s", file, mps_error_message());
      free(text);
      g.lane_loops = false;
      g.output = object;
    }
  }
  if (!g.lane_loops) MPS_TRY(generate_minding_private_memory(compiler, &g, options, reading, file, &text, &code));
  status = MPS_STATUS_OK;
  if (code != 0) status = fail(text, reading, file, options);
  else if (out_warnings) *out_warnings = mps_diagnostics_map(text, reading, file, options->display_source, options->readable);
  free(text);
  return status;
}

/* ---- checked mode ---- */
/* Turns the IR in the file `path` into what `change` makes of it. */
static mps_status change_file(const char *path, const mps_compiler *compiler, bool instrument) {
  char *text, *changed;
  size_t length;
  MPS_TRY(mps_file_read(path, &text, &length));
  mps_status status = instrument ? mps_checked_instrument(text, length, compiler->include, compiler->include_core, &changed, &length)
                                 : mps_checked_inline(text, length, &changed, &length);
  free(text);
  if (status == MPS_STATUS_OK) status = mps_file_write(path, changed, length);
  free(changed);
  return status;
}

/* In place of generate_object: each access is looked at before anything is optimised. */
static mps_status generate_instrumented(const mps_compiler *compiler, const char *input, const char *object, const mps_compile_options *options,
                                        const mps_reading *reading, const char *file, char **out_warnings) {
  static const char *const inlining[] = {"-O0", NULL};
  static const char *const optimizing[] = {"-O1", "-fno-vectorize", "-fno-slp-vectorize", "-fno-unroll-loops", NULL};
  char ir[1100], inlined[1100], *text;
  int code;
  if (snprintf(ir, sizeof ir, "%s.ll", object) >= (int)sizeof ir - 8) return mps_error_set(MPS_STATUS_SYSTEM_ERROR, "path too long: %s", object);
  snprintf(inlined, sizeof inlined, "%s.1.ll", object);
  mps_compile_options plain = *options;
  plain.optimization = "-O1";
  plain.run_generate = NULL; /* lines of the library count */
  const generation g = {.input = input, .output = ir};
  MPS_TRY(generate(compiler, &g, &plain, reading, &text, &code));
  mps_status status = code == 0 ? MPS_STATUS_OK : fail(text, reading, file, options);
  if (status == MPS_STATUS_OK && out_warnings)
    *out_warnings = mps_diagnostics_map(text, reading, file, options->display_source, options->readable);
  free(text);
  if (status == MPS_STATUS_OK) status = change_file(ir, compiler, false);
  if (status == MPS_STATUS_OK) status = generate_from_ir(compiler, ir, "-S", inlining, inlined, options);
  if (status == MPS_STATUS_OK) status = change_file(inlined, compiler, true);
  return status == MPS_STATUS_OK ? generate_from_ir(compiler, inlined, "-c", optimizing, object, options) : status;
}

/* ---- the table of functions ---- */
/* C and C++ alike; the reader's rows lie in the section mps_functions, whose start the linker names. The pointer to the driver's services
 * is defined by <metal_compute> in each object that has it; in the table's own object it is what is left when none has. Returns the length. */
static int print_table(char *out, size_t capacity, uint32_t function_count) {
  const char *declared = "extern const mps_host_function *const __start_mps_functions[] __attribute__((visibility(\"hidden\")));\n";
  return snprintf(out, capacity,
    "#ifdef __cplusplus\nextern \"C\" {\n#endif\n%s"
    "extern __attribute__((weak, visibility(\"hidden\"))) const void *openmps_services;\n"
    "extern __attribute__((visibility(\"default\"))) const mps_host_library_table mps_host_library;\n"
    "const mps_host_library_table mps_host_library = {MPS_HOST_ABI_VERSION, %u, %s, &openmps_services};\n#ifdef __cplusplus\n}\n#endif\n",
    function_count ? declared : "", function_count, function_count ? "__start_mps_functions" : "0");
}

static mps_status write_rewritten(const char *path, const mps_reading *reading, bool with_table) {
  char table[1024] = "\n# 1 \"table\"\n";
  size_t used = strlen(table);
  if (!with_table) return mps_file_write(path, reading->output, reading->length);
  size_t length = used + (size_t)print_table(table + used, sizeof table - used, reading->kernel_count);
  char *text = malloc(reading->length + length);
  if (!text) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for %zu bytes of source", reading->length + length);
  memcpy(text, reading->output, reading->length);
  memcpy(text + reading->length, table, length);
  mps_status status = mps_file_write(path, text, reading->length + length);
  free(text);
  return status;
}

/* The reader's message in `status`, with the column in the user's own line. */
static mps_status place_error(mps_status status, const char *text, size_t length, const char *file, const mps_compile_options *options) {
  char *message = strdup(mps_error_message());
  mps_reading unchanged;
  if (message && mps_reading_unchanged(text, length, &unchanged) == MPS_STATUS_OK) {
    status = fail(message, &unchanged, file, options);
    mps_reading_free(&unchanged);
  } else if (message) {
    status = mps_error_set_text(status, message);
  }
  free(message);
  return status;
}

mps_status mps_compiler_compile(const mps_compiler *compiler, const char *source, const char *object, const mps_compile_options *options,
                                mps_reading *out_reading, char **out_text, char **out_warnings) {
  *out_reading = (mps_reading){0};
  *out_text = NULL;
  if (out_warnings) *out_warnings = NULL;
  char preprocessed[1100], rewritten[1100];
  int a = snprintf(preprocessed, sizeof preprocessed, "%s.ii", object), b = snprintf(rewritten, sizeof rewritten, "%s.cpp", object);
  if (a < 0 || b < 0 || (size_t)b >= sizeof rewritten) return mps_error_set(MPS_STATUS_SYSTEM_ERROR, "path too long: %s", object);
  MPS_TRY(preprocess(compiler, source, options, preprocessed));
  size_t length;
  MPS_TRY(mps_file_read(preprocessed, out_text, &length));
  bool ptx = is_target(options, "nvptx");
  mps_reader_options reader_options = {.mode = options->mode, .threadgroup_storage = ptx ? "static" : NULL,
                                       .special = options->special};
  const char *file = options->display_name ? options->display_name : source;
  mps_status status = mps_reader_read(*out_text, length, &reader_options, out_reading);
  if (status == MPS_STATUS_COMPILE_ERROR) status = place_error(status, *out_text, length, file, options);
  if (status == MPS_STATUS_OK) status = write_rewritten(rewritten, out_reading, options->table);
  if (status == MPS_STATUS_OK)
    status = (options->checked ? generate_instrumented : generate_object)(
      compiler, rewritten, object, options, out_reading, file, out_warnings);
  if (status != MPS_STATUS_OK) {
    mps_reading_free(out_reading);
    free(*out_text);
    *out_text = NULL;
  }
  return status;
}

/* ---- linking ---- */
/* The object that exports the table of functions. */
static mps_status compile_table(const mps_compiler *compiler, uint32_t function_count, const mps_compile_options *options, const char *output,
                                char *table_object, size_t capacity) {
  char source[1100], text[1024];
  int a = snprintf(source, sizeof source, "%s.table.c", output), b = snprintf(table_object, capacity, "%s.table.o", output);
  if (a < 0 || b < 0 || (size_t)b >= capacity) return mps_error_set(MPS_STATUS_SYSTEM_ERROR, "path too long: %s", output);
  const char *include = "#include \"driver/host/abi.h\"\n";
  size_t used = strlen(strcpy(text, include));
  int length = (int)used + print_table(text + used, sizeof text - used, function_count);
  MPS_TRY(mps_file_write(source, text, (size_t)length));
  command c = {0};
  add_compiler(&c, compiler);
  char target[64];
  snprintf(target, sizeof target, "--target=%s", target_of(options));
  const char *const arguments[] = {target, "-x", "c", "-O1", "-fPIC", "-nostdinc", "-fvisibility=hidden", "-fno-ident", "-I",
                                   compiler->include_core[0] ? compiler->include_core : compiler->include, "-c", "-o", table_object, source,
                                   NULL};
  add_all(&c, arguments);
  char *said;
  int code;
  MPS_TRY(run(&c, options, &said, &code));
  mps_status status = code == 0 ? MPS_STATUS_OK : fail(said, NULL, source, &(mps_compile_options){0});
  free(said);
  return status;
}

/* The C library's block functions, which clang calls by itself, and the loader's part of thread-local memory. */
static bool may_be_undefined(const char *name, size_t length) {
  static const char *const names[] = {"memcpy", "memmove", "memset", "memcmp", "__tls_get_addr"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0) return true;
  return false;
}

/* The linker warns of each undefined symbol; the first one that is not allowed is the error. */
static mps_status check_undefined(const char *text, const char *file) {
  static const char mark[] = "undefined symbol: ";
  for (const char *p = text; (p = strstr(p, mark)) != NULL;) {
    p += sizeof mark - 1;
    size_t length = strcspn(p, "\n");
    if (may_be_undefined(p, length)) continue;
    const char *by = strstr(p, ">>> referenced by ");
    const char *where = by ? by + 18 : "";
    return mps_error_set(MPS_STATUS_COMPILE_ERROR, "%s: error: a kernel calls '%.*s', which kernels do not have (%.*s)", file, (int)length,
                         p, (int)strcspn(where, "\n"), where);
  }
  return MPS_STATUS_OK;
}

mps_status mps_compiler_link(const mps_compiler *compiler, const char *const *objects, uint32_t object_count, uint32_t function_count,
                             const mps_compile_options *options, const char *output) {
  char table_object[1100], response[1100], response_argument[1104];
  if (!options->table) MPS_TRY(compile_table(compiler, function_count, options, output, table_object, sizeof table_object));
  snprintf(response, sizeof response, "%s.objects", output);
  snprintf(response_argument, sizeof response_argument, "@%s", response);
  FILE *list = fopen(response, "w");
  if (!list) return mps_error_set(MPS_STATUS_SYSTEM_ERROR, "%s cannot be written", response);
  for (uint32_t i = 0; i < object_count; i++) fprintf(list, "\"%s\"\n", objects[i]);
  if (fclose(list) != 0) return mps_error_set(MPS_STATUS_SYSTEM_ERROR, "%s cannot be written", response);
  command c = {0};
  static const char *const linker[] = {"-shared", "-z", "defs", "--warn-unresolved-symbols", "--hash-style=gnu", "-z", "now", "-z", "relro",
                                       "--strip-debug", "--no-dependent-libraries", NULL};
  add(&c, compiler->clang);
  if (compiler->zig) {
    add(&c, "ld.lld");
    add_all(&c, linker);
  } else {
    static const char *const driver[] = {"-shared", "-nostdlib", "-fuse-ld=lld",
                                         "-Wl,-z,defs,--warn-unresolved-symbols,--hash-style=gnu,-z,now,-z,relro,--strip-debug,--no-dependent-libraries", NULL};
    add_all(&c, driver);
  }
  const char *const rest[] = {"-o", output, response_argument, options->table ? NULL : table_object, NULL};
  add_all(&c, rest);
  char *text;
  int code;
  MPS_TRY(run(&c, options, &text, &code));
  mps_status status = MPS_STATUS_OK;
  if (code != 0) status = mps_error_set_text(MPS_STATUS_COMPILE_ERROR, text);
  else status = check_undefined(text, options->display_name ? options->display_name : output);
  if (status != MPS_STATUS_OK) remove(output);
  free(text);
  return status;
}

mps_status mps_compiler_set(mps_compiler *compiler, const char *clang, const char *include, const char *include_core) {
  *compiler = (mps_compiler){0};
  int a = snprintf(compiler->clang, sizeof compiler->clang, "%s", clang);
  int b = snprintf(compiler->include, sizeof compiler->include, "%s", include);
  int c = snprintf(compiler->include_core, sizeof compiler->include_core, "%s", include_core ? include_core : "");
  if ((size_t)a >= sizeof compiler->clang || (size_t)b >= sizeof compiler->include || (size_t)c >= sizeof compiler->include_core)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "path too long: %s", clang);
  const char *base = strrchr(clang, '/');
  compiler->zig = strncmp(base ? base + 1 : clang, "zig", 3) == 0;
  return MPS_STATUS_OK;
}
