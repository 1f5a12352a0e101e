/* SPDX-License-Identifier: BSD-3-Clause
 *
 * stage: the compiler leaves most of its stages beside the object, in files named after it. The steps that make code are run here: early
 * stages need none of them, and for the last two the step that would write the object writes text in its place. So what is shown is what
 * runs, whichever way the compiler takes.
 */
#include "shader/stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "shader/lanes.h"
#include "shader/process.h"

#define MAX_ARGUMENTS 128

typedef struct stage_run {
  mps_shader_stage stage;
  char text[320]; /* where the last step writes */
} stage_run;

static mps_status skip(char **out_text, int *out_code) {
  *out_code = 0;
  *out_text = strdup("");
  return *out_text ? MPS_STATUS_OK : mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory to compile a shader");
}

/* An mps_compile_run. */
static mps_status run_step(void *context, const char *const *arguments, uint32_t timeout_ms, char **out_text, int *out_code) {
  const stage_run *run = context;
  const char *changed[MAX_ARGUMENTS];
  uint32_t count = 0;
  bool last = false;
  if (run->stage <= MPS_SHADER_STAGE_READER) return skip(out_text, out_code);
  for (uint32_t i = 0; arguments[i]; i++) {
    if (count + 3 > MAX_ARGUMENTS) return mps_error_set(MPS_STATUS_INTERNAL_ERROR, "a command has more than %d words", MAX_ARGUMENTS);
    bool object = strcmp(arguments[i], "-c") == 0;
    last |= object;
    changed[count++] = object ? "-S" : arguments[i];
    if (object && run->stage == MPS_SHADER_STAGE_LLVM) changed[count++] = "-emit-llvm";
    if (last && i > 0 && strcmp(arguments[i - 1], "-o") == 0) changed[count - 1] = run->text;
  }
  changed[count] = NULL;
  if (!last) return mps_process_run(arguments, timeout_ms, out_text, out_code);
  return run->stage < MPS_SHADER_STAGE_LLVM ? skip(out_text, out_code) : mps_process_run(changed, timeout_ms, out_text, out_code);
}

/* Not the compiler's own file: where loops over lanes are not possible, the reason is wanted. */
static mps_status loop_over_lanes(const char *path, const char *name, char **out_text) {
  char *text;
  size_t length;
  mps_lanes_result result;
  if (mps_file_read(path, &text, &length) != MPS_STATUS_OK)
    return mps_error_set(MPS_STATUS_NOT_FOUND, "%s has no kernel whose threads meet, so there are no loops over lanes", name);
  mps_status status = mps_lanes_transform(text, length, &result);
  free(text);
  MPS_TRY(status);
  *out_text = strdup(result.text);
  mps_lanes_result_free(&result);
  return *out_text ? MPS_STATUS_OK : mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the text of %s", name);
}

static mps_status read_stage(const stage_run *run, const char *object, const char *name, char **out_text) {
  static const char *const suffixes[] = {".ii", ".cpp", ".ll", ".1.ll"};
  char path[320];
  size_t length;
  if (run->stage >= MPS_SHADER_STAGE_LLVM) return mps_file_read(run->text, out_text, &length);
  snprintf(path, sizeof path, "%s%s", object, suffixes[run->stage]);
  return run->stage == MPS_SHADER_STAGE_LANES ? loop_over_lanes(path, name, out_text) : mps_file_read(path, out_text, &length);
}

mps_status mps_stage_make(const mps_compiler *compiler, const char *source, const char *folder, const mps_compile_options *options,
                          mps_shader_stage stage, char **out_text) {
  *out_text = NULL;
  stage_run run = {.stage = stage};
  char object[300];
  snprintf(object, sizeof object, "%s/object.o", folder);
  snprintf(run.text, sizeof run.text, "%s/object.text", folder);
  mps_compile_options changed = *options;
  changed.run_generate = run_step;
  changed.run_context = &run;
  if (stage == MPS_SHADER_STAGE_CHECKED) changed.checked = true;
  else if (stage < MPS_SHADER_STAGE_CHECKED) changed.checked = false;
  if (stage == MPS_SHADER_STAGE_LANES) changed.lane_loops = true;
  mps_reading reading;
  char *preprocessed;
  MPS_TRY(mps_compiler_compile(compiler, source, object, &changed, &reading, &preprocessed, NULL));
  mps_reading_free(&reading);
  free(preprocessed);
  return read_stage(&run, object, options->display_name ? options->display_name : source, out_text);
}
