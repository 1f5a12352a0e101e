/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reader: turns preprocessed Metal source into C++ that clang compiles for the host. It rewrites tokens and parses no types: what it
 * needs to know of a kernel's parameters beyond their attributes, templates of host_launch.h deduce from the function's type.
 *
 * - address spaces vanish (`constant` becomes const), `kernel` becomes static, attributes are recorded and removed;
 * - `threadgroup` objects become static thread_local; floating literals without a suffix get f, h and bf become half(), bfloat();
 * - behind each kernel, and in place of each explicit instantiation, stand its entry (host/abi.h) and its row.
 * Newlines stay, so lines are right by themselves; columns are mapped back with mps_reading_column.
 */
#ifndef OPENMPS_SHADER_READER_H
#define OPENMPS_SHADER_READER_H

#include "shader/lexer.h"
#include "shader/specialization.h"

typedef enum mps_reader_mode {
  MPS_READER_HOST,  /* entries for the host driver, collected in the section mps_functions */
  MPS_READER_CHECK, /* no entries: kernels are plain functions and instantiations stay, to see whether everything compiles */
} mps_reader_mode;

typedef struct mps_reader_options {
  mps_reader_mode mode;
  const char *threadgroup_storage; /* what `threadgroup` objects become; NULL: static thread_local */
  const mps_specialization *special; /* this kernel alone is exported, with these constants; NULL: all, and constants are zero */
} mps_reader_options;

typedef struct mps_reader_kernel {
  char *name;     /* host name */
  uint32_t flags; /* MPS_FUNCTION_USES_* */
} mps_reader_kernel;

#define MPS_READER_NO_INDEX UINT32_MAX
typedef struct mps_reader_constant {
  char *name;
  uint32_t index; /* of [[function_constant(index)]]; MPS_READER_NO_INDEX: it could not be read */
} mps_reader_constant;

/* What was read. Entry number n is kernel n; its function is called mps_entry_<n>. */
typedef struct mps_reading {
  char *output;
  size_t length;
  mps_reader_kernel *kernels;
  uint32_t kernel_count;
  mps_reader_constant *constants;
  uint32_t constant_count;
  /* the edit map */
  mps_token_list tokens; /* of the input, which must outlive the reading */
  uint32_t *positions;   /* where each token lies in the output */
} mps_reading;

/* COMPILE_ERROR: "file:line:column: error: ..." lines, as clang writes them; columns are those of the preprocessed text.
 * INVALID_ARGUMENT: options->special does not fit the source. */
MPS_WARN_UNUSED mps_status mps_reader_read(const char *text, size_t length, const mps_reader_options *options, mps_reading *out_reading);
/* What reading would be that changed nothing: for messages of mps_reader_read, which point into `text`. */
MPS_WARN_UNUSED mps_status mps_reading_unchanged(const char *text, size_t length, mps_reading *out_reading);
void mps_reading_free(mps_reading *reading); /* accepts a zeroed one */

/* The column (from 1) in `source_line`, the user's own line `line` of `file`, of what is at `column` of that line in the output.
 * source_line NULL: the column in the preprocessed text. Returns `column` when the line is unknown, 0 for an entry's text. */
uint32_t mps_reading_column(const mps_reading *reading, const char *file, uint32_t line, uint32_t column, const char *source_line);

#endif
