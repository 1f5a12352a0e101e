/* SPDX-License-Identifier: BSD-3-Clause
 *
 * compiler: clang as a process. Preprocesses Metal source, hands it to the reader, compiles what the reader wrote, links.
 */
#ifndef OPENMPS_SHADER_COMPILER_H
#define OPENMPS_SHADER_COMPILER_H

#include "shader/reader.h"

typedef struct mps_compiler {
  char clang[1024];   /* path of clang, or of a zig that carries one */
  char include[1024]; /* folder of metal_stdlib; driver/host/abi.h and shader/host_launch.h lie there or in `include_core` */
  char include_core[1024]; /* "" = the same folder */
  bool zig;
} mps_compiler;

/* The clang and the headers of this process: OPENMPS_CLANG, else the ziglang package beside this library, else zig or clang in PATH.
 * NOT_FOUND says what to install. */
MPS_WARN_UNUSED mps_status mps_compiler_find(mps_compiler *out_compiler);
/* Uses this clang and these folders. */
MPS_WARN_UNUSED mps_status mps_compiler_set(mps_compiler *compiler, const char *clang, const char *include, const char *include_core);

/* Runs a command, as mps_process_run does. */
typedef mps_status (*mps_compile_run)(void *context, const char *const *arguments, uint32_t timeout_ms, char **out_text, int *out_code);

typedef struct mps_compile_options {
  const char *target;  /* "x86_64-linux-gnu"; NULL: this machine's */
  const char *level;   /* -march */
  const char *standard; /* NULL: "c++17" */
  const char *optimization; /* NULL: "-O3" */
  const char *display_name; /* what the source is called in messages; NULL: its path */
  const char *display_source; /* the text that messages' columns are of; NULL: the file's */
  const char *dependency_file, *dependency_target; /* as of -MD; NULL: none */
  const char *const *readable; /* folders whose files may be opened to map columns of messages, NULL-terminated; NULL: any file */
  const char *const *includes; /* further -I folders, NULL-terminated; may be NULL */
  mps_reader_mode mode;
  const mps_specialization *special; /* as in mps_reader_options */
  bool table;          /* the object is a library by itself: the table of its functions is in it */
  /* Loops over threads promise that no round depends on another one. Where that is promised, clang makes one wide access of neighbours without
   * asking what lies between them: a store would move over another store, or a load, of the same place and thread. True forbids that. */
  bool ordered;
  bool lane_loops;     /* kernels whose threads meet become loops over lanes (lanes.h), if all of the source can */
  bool fast_math;
  bool checked;        /* accesses ask the driver (shader/checked.h) */
  bool quiet;          /* no warnings */
  uint32_t timeout_ms; /* 0: ten minutes */
  mps_compile_run run_generate; /* in place of mps_process_run for steps that make code; NULL: that */
  void *run_context;
} mps_compile_options;

/* Compiles the Metal file `source` to the object `object`, with files beside it for what lies between. out_reading (the caller frees it;
 * it is borrowed from *out_text, which the caller frees after it) tells the kernels. COMPILE_ERROR: the messages, with the user's lines
 * and columns. *out_warnings (may be NULL) is what the compiler said of a source that it accepted; the caller frees it. */
MPS_WARN_UNUSED mps_status mps_compiler_compile(const mps_compiler *compiler, const char *source, const char *object,
                                                const mps_compile_options *options, mps_reading *out_reading, char **out_text,
                                                char **out_warnings);

/* Links objects that hold `function_count` kernels to the shared object `output`; options->table: it is in the object. COMPILE_ERROR names
 * an undefined symbol: kernels may call nothing but each other. */
MPS_WARN_UNUSED mps_status mps_compiler_link(const mps_compiler *compiler, const char *const *objects, uint32_t object_count,
                                             uint32_t function_count, const mps_compile_options *options, const char *output);

/* Rewrites clang's messages: columns are mapped back, summary lines and what points into generated text go away. The caller frees the
 * result; NULL when out of memory. `source`: the text that the user wrote in `file`; NULL: read from the file itself. `readable`: as in
 * mps_compile_options: a #line directive may name any file, and its text would be taken for the user's. */
char *mps_diagnostics_map(const char *text, const mps_reading *reading, const char *file, const char *source, const char *const *readable);

#endif
