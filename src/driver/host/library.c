/* SPDX-License-Identifier: BSD-3-Clause
 *
 * library: compiled kernels in shared objects. The shipped ones are openmps-kernels-<level>.so; the best level that the processor
 * supports and that is there is loaded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dylib.h"
#include "base/log.h"
#include "base/options.h"
#include "base/os/os.h"
#include "driver/host/checks.h"
#include "driver/host/host.h"

static const char *const level_names[] = {"x86-64-v4", "x86-64-v3", "x86-64"};
#define LEVEL_COUNT (sizeof level_names / sizeof level_names[0])

/* ---- a library ---- */
static mps_host_entry entry_of(const mps_driver_library *library, const char *name) {
  const mps_driver_function *function = mps_host_find_function(library, name);
  return function ? (mps_host_entry)function->entry : NULL;
}

/* Finds the conversions of kernels/convert.metal; those that are absent stay NULL. */
static void find_conversions(mps_driver_library *library) {
  static const char *const compute_names[] = {
#define X(name, suffix, metal, bytes) #suffix,
      MPS_COMPUTE_LIST(X)
#undef X
  };
  mps_host_conversions *c = &library->conversions;
  char name[64];
  for (unsigned k = 0; k < MPS_COMPUTE_COUNT; k++) {
    const char *compute = compute_names[k];
    for (unsigned d = 0; d < MPS_DTYPE_COUNT; d++) {
      const char *dtype = mps_dtype_name((mps_dtype)d);
      snprintf(name, sizeof name, "load_%s_%s", dtype, compute);
      c->load[d][k] = entry_of(library, name);
      snprintf(name, sizeof name, "store_%s_%s", compute, dtype);
      c->store[k][d] = entry_of(library, name);
      snprintf(name, sizeof name, "round_%s_%s", dtype, compute);
      c->round[d][k] = entry_of(library, name);
    }
    snprintf(name, sizeof name, "cast_%s_%s", compute, compute);
    c->cast_same[k] = entry_of(library, name);
    snprintf(name, sizeof name, "copy_%s", compute);
    c->copy[k] = entry_of(library, name);
    snprintf(name, sizeof name, "negate_%s", compute);
    c->negate[k] = entry_of(library, name);
  }
  c->conjugate = entry_of(library, "conjugate_c64");
}

static mps_status add_functions(mps_driver_library *library, const mps_host_library_table *table) {
  for (uint32_t i = 0; i < table->function_count; i++) {
    const mps_host_function *from = table->functions[i];
    mps_driver_function *to = &library->functions[i];
    *to = (mps_driver_function){.name = from->name,
                                .max_threads_per_threadgroup = from->max_threads_per_threadgroup,
                                .static_threadgroup_bytes = from->static_threadgroup_bytes,
                                .buffer_count = from->buffer_count,
                                .buffer_mask = from->buffer_mask,
                                .flags = from->flags,
                                .entry = (void (*)(const void *))from->entry};
    mps_status status = mps_map_set(&library->by_name, from->name, strlen(from->name), to);
    if (status != MPS_STATUS_OK) return status;
  }
  library->function_count = table->function_count;
  return MPS_STATUS_OK;
}

mps_status mps_host_library_create(const mps_host_library_table *table, const char *path, mps_driver_library **out_library) {
  *out_library = NULL;
  if (table->abi_version != MPS_HOST_ABI_VERSION) {
    return mps_error_set(MPS_STATUS_NOT_FOUND, "%s was built for kernel interface %u, this is %u; build the kernels again", path,
                         table->abi_version, (unsigned)MPS_HOST_ABI_VERSION);
  }
  mps_driver_library *library = calloc(1, sizeof *library);
  if (!library) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the kernel library %s", path);
  library->functions = calloc(table->function_count ? table->function_count : 1, sizeof *library->functions);
  mps_status status = library->functions ? add_functions(library, table)
                                         : mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the functions of %s", path);
  if (status != MPS_STATUS_OK) {
    mps_host_unload_library(library);
    return status;
  }
  if (table->services) *table->services = &mps_host_group_services;
  find_conversions(library);
  *out_library = library;
  return MPS_STATUS_OK;
}

mps_status mps_host_load_library(mps_driver_device *device, const void *image, size_t length, const char *path,
                                 mps_driver_library **out_library) {
  (void)device;
  (void)image;
  (void)length;
  *out_library = NULL;
  if (!path) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "the host driver loads kernels from a file: give its path");
  mps_dylib *dylib;
  mps_status status = mps_dylib_open(path, &dylib);
  if (status != MPS_STATUS_OK) return status;
  const mps_host_library_table *table = mps_dylib_symbol(dylib, "mps_host_library");
  status = table ? mps_host_library_create(table, path, out_library)
                 : mps_error_set(MPS_STATUS_NOT_FOUND, "%s is no kernel library: it has no symbol mps_host_library", path);
  if (status != MPS_STATUS_OK) {
    mps_dylib_close(dylib);
    return status;
  }
  (*out_library)->dylib = dylib;
  void *checked = mps_dylib_symbol(dylib, "mps_host_checked");
  if (checked) {
    status = mps_host_checks_prepare(checked, path);
    for (uint32_t i = 0; i < (*out_library)->function_count; i++) {
      (*out_library)->functions[i].handle = checked;
      (*out_library)->functions[i].flags |= MPS_FUNCTION_CHECKED;
    }
  }
  if (status == MPS_STATUS_OK) return status;
  mps_host_unload_library(*out_library);
  *out_library = NULL;
  return status;
}

void mps_host_unload_library(mps_driver_library *library) {
  if (!library) return;
  mps_map_fini(&library->by_name, NULL);
  free(library->functions);
  mps_dylib_close(library->dylib);
  free(library);
}

uint32_t mps_host_function_count(const mps_driver_library *library) { return library->function_count; }

const mps_driver_function *mps_host_function_at(const mps_driver_library *library, uint32_t index) {
  return index < library->function_count ? &library->functions[index] : NULL;
}

const mps_driver_function *mps_host_find_function(const mps_driver_library *library, const char *name) {
  return mps_map_get(&library->by_name, name, strlen(name));
}

/* ---- the shipped kernels ---- */
static bool file_exists(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return false;
  fclose(file);
  return true;
}

static mps_status kernel_directory(char *out, size_t capacity) {
  const char *chosen = mps_option_string(MPS_OPTION_KERNEL_PATH);
  if (*chosen) {
    if ((size_t)snprintf(out, capacity, "%s", chosen) < capacity) return MPS_STATUS_OK;
    return mps_error_set(MPS_STATUS_NOT_FOUND, "OPENMPS_KERNEL_PATH is longer than %zu bytes", capacity - 1);
  }
  mps_status status = mps_os_library_directory(out, capacity);
  if (status != MPS_STATUS_OK) return status;
  size_t length = strlen(out);
  if ((size_t)snprintf(out + length, capacity - length, "/kernels") < capacity - length) return MPS_STATUS_OK;
  return mps_error_set(MPS_STATUS_NOT_FOUND, "the path of the kernel directory is too long: %s", out);
}

/* The first level to try; LEVEL_COUNT where the processor's is not in the list. */
static size_t first_level(const char *level) {
  size_t i = 0;
  while (i < LEVEL_COUNT && strcmp(level_names[i], level) != 0) i++;
  return i;
}

/* True and `path` filled in when the kernels of this level are there. */
static bool find_level(const char *directory, const char *level, char *path, size_t capacity) {
  return (size_t)snprintf(path, capacity, "%s/openmps-kernels-%s.so", directory, level) < capacity && file_exists(path);
}

mps_status mps_host_find_kernels(char *path, size_t capacity, const char **out_level) {
  char directory[MPS_HOST_PATH_BYTES];
  mps_status status = kernel_directory(directory, sizeof directory);
  if (status != MPS_STATUS_OK) return status;
  const char *wanted = mps_option_string(MPS_OPTION_KERNEL_LEVEL);
  *out_level = *wanted ? wanted : mps_os_cpu_level();
  size_t i = first_level(*out_level);
  /* LEVEL_COUNT: another architecture, or a name of the user's own; the levels of the list are no substitute. */
  if (i == LEVEL_COUNT && find_level(directory, *out_level, path, capacity)) return MPS_STATUS_OK;
  for (; i < LEVEL_COUNT; i++) {
    if (!find_level(directory, level_names[i], path, capacity)) continue;
    *out_level = level_names[i];
    return MPS_STATUS_OK;
  }
  return mps_error_set(MPS_STATUS_NOT_FOUND,
                       "no kernels for this processor (%s) in %s: openmps-kernels-<level>.so is missing; set OPENMPS_KERNEL_PATH",
                       *out_level, directory);
}

static mps_status load_builtin(mps_host_device *device, mps_driver_library **out_library) {
  char path[MPS_HOST_PATH_BYTES + 64];
  const char *level;
  mps_status status = mps_host_find_kernels(path, sizeof path, &level);
  if (status == MPS_STATUS_OK) status = mps_host_load_library(&device->base, NULL, 0, path, out_library);
  if (status != MPS_STATUS_OK) return status;
  MPS_LOG(DRIVER, INFO, "kernels: %s, %u functions", path, (unsigned)(*out_library)->function_count);
  return MPS_STATUS_OK;
}

mps_status mps_host_builtin_library(mps_driver_device *device, mps_driver_library **out_library) {
  mps_host_device *host = (mps_host_device *)device;
  mps_status status = MPS_STATUS_OK;
  mps_driver_library *library = atomic_load_explicit(&host->builtin, memory_order_acquire);
  if (!library) {
    mps_mutex_lock(&host->mutex);
    library = atomic_load(&host->builtin);
    if (!library) {
      status = load_builtin(host, &library);
      if (status == MPS_STATUS_OK) atomic_store_explicit(&host->builtin, library, memory_order_release);
    }
    mps_mutex_unlock(&host->mutex);
  }
  *out_library = status == MPS_STATUS_OK ? library : NULL;
  return status;
}
