/* SPDX-License-Identifier: BSD-3-Clause
 *
 * library: compiled kernels of a device, and the pipelines made of them at first use.
 */
#include "shader/library.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/options.h"
#include "base/status.h"
#include "base/thread.h"
#include "base/time.h"
#include "runtime/device.h"
#include "runtime/stream.h"
#include "shader/build.h"

typedef struct library_use {
  int64_t stream;  /* identifier */
  uint64_t serial; /* of the last step */
} library_use;

struct mps_library {
  _Atomic uint32_t references;
  bool builtin;
  mps_device *device; /* retained unless builtin: the device holds those */
  mps_driver_library *code;
  char *source, *name;         /* NULL: it was not compiled here */
  mps_mutex lock;
  mps_map pipelines;           /* name -> mps_pipeline, under the lock */
  mps_map special;             /* mps_specialization_key -> a library of one kernel, under the lock */
  MPS_ARRAY(library_use) uses; /* under the lock */
};

static const mps_driver_device_vtable *vtable_of(const mps_library *library) { return mps_device_driver(library->device)->vtable; }

/* Takes the code over, also when it fails. */
static mps_status create(mps_device *device, mps_driver_library *code, bool builtin, mps_library **out_library) {
  mps_library *library = calloc(1, sizeof *library);
  if (!library) {
    if (!builtin) mps_device_driver(device)->vtable->unload_library(code);
    return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a library");
  }
  atomic_init(&library->references, 1);
  library->builtin = builtin;
  library->device = builtin ? device : mps_device_retain(device);
  library->code = code;
  mps_mutex_init(&library->lock);
  *out_library = library;
  return MPS_STATUS_OK;
}

/* False if steps may still run the code (a wait was interrupted, a forked child): then it stays loaded. */
static bool wait_for_uses(mps_library *library) {
  for (size_t i = 0; i < library->uses.count; i++) {
    mps_stream *stream;
    if (mps_stream_from_identifier(library->device, library->uses.items[i].stream, &stream) != MPS_STATUS_OK) continue; /* gone, so done */
    if (mps_stream_wait_serial(stream, library->uses.items[i].serial) != MPS_STATUS_OK) return false;
  }
  return true;
}

static void release_special(void *pointer) { mps_library_release(pointer); }

static void destroy(void *pointer) {
  mps_library *library = pointer;
  mps_map_fini(&library->special, release_special);
  if (!library->builtin && wait_for_uses(library)) vtable_of(library)->unload_library(library->code);
  mps_map_fini(&library->pipelines, free);
  MPS_ARRAY_FINI(&library->uses);
  free(library->source);
  free(library->name);
  mps_mutex_fini(&library->lock);
  mps_device *device = library->builtin ? NULL : library->device;
  free(library);
  mps_device_release(device);
}

mps_status mps_library_builtin(mps_device *device, mps_library **out_library) {
  mps_library *library = mps_device_attachment(device, MPS_ATTACHMENT_BUILTIN_LIBRARY);
  if (!library) {
    mps_driver_device *driver = mps_device_driver(device);
    mps_driver_library *code;
    MPS_TRY(driver->vtable->builtin_library(driver, &code));
    MPS_TRY(create(device, code, true, &library));
    library = mps_device_attach(device, MPS_ATTACHMENT_BUILTIN_LIBRARY, library, destroy);
  }
  *out_library = library;
  return MPS_STATUS_OK;
}

/* ---- compiling ---- */
void mps_library_add_include(const char *folder) {
  static mps_mutex lock = MPS_MUTEX_INITIALIZER;
  char list[1024];
  mps_mutex_lock(&lock);
  const char *before = mps_option_string(MPS_OPTION_SHADER_INCLUDE);
  int length = snprintf(list, sizeof list, "%s%s%s", before, before[0] ? ":" : "", folder);
  if (length > 0 && (size_t)length < sizeof list) mps_option_set(MPS_OPTION_SHADER_INCLUDE, list);
  else MPS_LOG(SHADER, WARNING, "the list of folders that shaders include from is too long: %s is left out", folder);
  mps_mutex_unlock(&lock);
}

void mps_library_offer_compiler(const char *path) {
  if (!mps_option_string(MPS_OPTION_CLANG)[0]) mps_option_set(MPS_OPTION_CLANG, path);
}

/* A name that may stand in a #line directive and in messages. */
static void clean_name(const char *name, char *out, size_t capacity) {
  snprintf(out, capacity, "%s", name && name[0] ? name : "program_source");
  for (char *p = out; *p; p++)
    if (*p == '"' || *p == '\\' || (unsigned char)*p < 0x20) *p = '_';
}

/* `special` NULL: all kernels, without values of their constants. */
static mps_status build(mps_device *device, const char *source, const char *name, const mps_specialization *special, mps_library **out_library) {
  uint64_t begin = mps_time_ns();
  mps_driver_library *code = NULL;
  bool cached;
  MPS_TRY(mps_check_fork());
  MPS_TRY(mps_build(mps_device_driver(device), source, name, special, &code, &cached));
  MPS_TRY(create(device, code, false, out_library));
  MPS_LOG(SHADER, INFO, "%s %s in %.1f ms: %u kernels", cached ? "found" : "compiled", name, (double)(mps_time_ns() - begin) * 1e-6,
          mps_library_function_count(*out_library));
  return MPS_STATUS_OK;
}

mps_status mps_library_compile(mps_device *device, const char *source, const char *name, mps_library **out_library) {
  *out_library = NULL;
  if (!source) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "the Metal source is NULL");
  char shown[256];
  clean_name(name, shown, sizeof shown);
  mps_library *library;
  MPS_TRY(build(device, source, shown, NULL, &library));
  library->source = strdup(source);
  library->name = strdup(shown);
  if (!library->source || !library->name) {
    mps_library_release(library);
    return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a shader of %zu bytes", strlen(source));
  }
  *out_library = library;
  return MPS_STATUS_OK;
}

/* The library for these values, borrowed; made without the lock, since that takes long: of two threads that do so the first one's stays. */
static mps_status find_special(mps_library *library, const mps_specialization *special, const char *key, mps_library **out_library) {
  size_t length = strlen(key);
  mps_mutex_lock(&library->lock);
  *out_library = mps_map_get(&library->special, key, length);
  mps_mutex_unlock(&library->lock);
  if (*out_library) return MPS_STATUS_OK;
  mps_library *made;
  MPS_TRY(build(library->device, library->source, library->name, special, &made));
  mps_mutex_lock(&library->lock);
  *out_library = mps_map_get(&library->special, key, length);
  mps_status status = MPS_STATUS_OK;
  if (!*out_library) {
    status = mps_map_set(&library->special, key, length, made);
    if (status == MPS_STATUS_OK) *out_library = made;
  }
  mps_mutex_unlock(&library->lock);
  if (*out_library != made) mps_library_release(made);
  return status;
}

mps_status mps_library_specialize(mps_library *library, const char *function, const mps_function_constant *constants, uint32_t count,
                                  mps_pipeline **out_pipeline) {
  *out_pipeline = NULL;
  const mps_specialization special = {function, constants, count};
  MPS_TRY(mps_specialization_check(&special));
  if (!library->source)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "the shipped kernels have no function constants: only libraries compiled from source do");
  if (!vtable_of(library)->find_function(library->code, function))
    return mps_error_set(MPS_STATUS_NOT_FOUND, "Failed to create function state object for: %s", function);
  char *key = mps_specialization_key(&special);
  if (!key) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a specialisation of %s", function);
  mps_library *made;
  mps_status status = find_special(library, &special, key, &made);
  free(key);
  return status == MPS_STATUS_OK ? mps_library_pipeline(made, function, out_pipeline) : status;
}

mps_status mps_shader_emit(mps_device *device, const char *source, const char *name, mps_shader_stage stage, char **out_text) {
  *out_text = NULL;
  if (!source) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "the Metal source is NULL");
  if (stage < MPS_SHADER_STAGE_PREPROCESSED || stage > MPS_SHADER_STAGE_ASSEMBLY)
    return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "there is no stage %d: stages are 0 to %d", (int)stage, MPS_SHADER_STAGE_ASSEMBLY);
  MPS_TRY(mps_check_fork());
  char shown[256];
  clean_name(name, shown, sizeof shown);
  return mps_build_stage(mps_device_driver(device), source, shown, stage, out_text);
}

/* ---- life, names, pipelines ---- */
mps_library *mps_library_retain(mps_library *library) {
  if (!library->builtin) atomic_fetch_add_explicit(&library->references, 1, memory_order_relaxed);
  return library;
}

void mps_library_release(mps_library *library) {
  if (!library || library->builtin) return;
  if (atomic_fetch_sub_explicit(&library->references, 1, memory_order_acq_rel) == 1) destroy(library);
}

bool mps_library_is_builtin(const mps_library *library) { return library->builtin; }

void mps_library_note_use(mps_library *library, mps_stream *stream, uint64_t serial) {
  int64_t identifier = mps_stream_identifier(stream);
  mps_mutex_lock(&library->lock);
  size_t i = 0;
  while (i < library->uses.count && library->uses.items[i].stream != identifier) i++;
  if (i < library->uses.count) {
    if (library->uses.items[i].serial < serial) library->uses.items[i].serial = serial;
  } else if (MPS_ARRAY_RESERVE(&library->uses, 1) == MPS_STATUS_OK) {
    MPS_ARRAY_PUSH(&library->uses, ((library_use){identifier, serial}));
  } else { /* not noted: then it must never be unloaded */
    atomic_fetch_add_explicit(&library->references, 1, memory_order_relaxed);
  }
  mps_mutex_unlock(&library->lock);
}

uint32_t mps_library_function_count(const mps_library *library) { return vtable_of(library)->function_count(library->code); }

const char *mps_library_function_name(const mps_library *library, uint32_t index) {
  const mps_driver_function *function = index < mps_library_function_count(library) ? vtable_of(library)->function_at(library->code, index) : NULL;
  return function ? function->name : NULL;
}

static mps_pipeline *create_pipeline(mps_library *library, const mps_driver_function *function) {
  mps_pipeline *pipeline = calloc(1, sizeof *pipeline);
  if (!pipeline) return NULL;
  const mps_driver_limits *limits = &mps_device_driver(library->device)->limits;
  uint32_t most = function->max_threads_per_threadgroup;
  if (most == 0 || most > limits->max_threads_per_threadgroup) most = limits->max_threads_per_threadgroup;
  pipeline->function = function;
  pipeline->library = library;
  pipeline->info = (mps_pipeline_info){.name = function->name, .max_threads_per_threadgroup = most,
    .thread_execution_width = limits->thread_execution_width, .static_threadgroup_bytes = function->static_threadgroup_bytes,
    .buffer_count = function->buffer_count};
  return pipeline;
}

mps_status mps_library_pipeline(mps_library *library, const char *function, mps_pipeline **out_pipeline) {
  *out_pipeline = NULL;
  size_t length = strlen(function);
  mps_mutex_lock(&library->lock);
  mps_pipeline *pipeline = mps_map_get(&library->pipelines, function, length);
  mps_status status = MPS_STATUS_OK;
  if (!pipeline) {
    const mps_driver_function *found = vtable_of(library)->find_function(library->code, function);
    pipeline = found ? create_pipeline(library, found) : NULL;
    if (!found) status = mps_error_set(MPS_STATUS_NOT_FOUND, "Failed to create function state object for: %s", function);
    else if (!pipeline) status = mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the pipeline of %s", function);
    else status = mps_map_set(&library->pipelines, function, length, pipeline);
    if (status != MPS_STATUS_OK) {
      free(pipeline);
      pipeline = NULL;
    }
  }
  mps_mutex_unlock(&library->lock);
  *out_pipeline = pipeline;
  return status;
}

const mps_pipeline_info *mps_pipeline_get_info(const mps_pipeline *pipeline) { return &pipeline->info; }
