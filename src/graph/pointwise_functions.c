/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pointwise_functions: the block kernels of formulas, looked up by name once a device and kept in its attachment.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/program_builder.h"
#include "runtime/device.h"

#define CAST_COUNT (MPS_COMPUTE_COUNT * 8)

typedef struct function_table {
  _Atomic(const mps_driver_function *) formulas[MPS_FORMULA_COUNT][MPS_COMPUTE_COUNT];
  _Atomic(const mps_driver_function *) casts[CAST_COUNT];
} function_table;

static function_table *table_of(mps_device *device) {
  function_table *table = mps_device_attachment(device, MPS_ATTACHMENT_POINTWISE);
  if (table)
    return table;
  table = calloc(1, sizeof(*table));
  return table ? mps_device_attach(device, MPS_ATTACHMENT_POINTWISE, table, free) : NULL;
}

static mps_status look_up(mps_device *device, uint32_t formula, mps_compute compute, const mps_driver_function **out) {
  char name[96];
  if (formula >= MPS_FORMULA_CAST)
    snprintf(name, sizeof(name), "cast_%s_%s", mps_compute_name((mps_compute)((formula - MPS_FORMULA_CAST) / 8)), mps_compute_name(compute));
  else if (formula == MPS_FORMULA_COPY) /* drivers know it as a move */
    snprintf(name, sizeof(name), "cast_%s_%s", mps_compute_name(compute), mps_compute_name(compute));
  else
    snprintf(name, sizeof(name), "%s_%s", mps_formula_infos[formula].name, mps_compute_name(compute));
  mps_driver_device *driver = mps_device_driver(device);
  mps_driver_library *library;
  const mps_status status = driver->vtable->builtin_library(driver, &library);
  if (status != MPS_STATUS_OK)
    return status;
  *out = driver->vtable->find_function(library, name);
  return *out ? MPS_STATUS_OK : mps_error_set(MPS_STATUS_NOT_FOUND, "the kernel library has no block kernel \"%s\"", name);
}

mps_status mps_formula_function(mps_device *device, uint32_t formula, mps_compute compute, const mps_driver_function **out) {
  function_table *table = table_of(device);
  if (!table)
    return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for the table of block kernels");
  _Atomic(const mps_driver_function *) *slot =
    formula >= MPS_FORMULA_CAST ? &table->casts[formula - MPS_FORMULA_CAST] : &table->formulas[formula][compute];
  *out = atomic_load_explicit(slot, memory_order_acquire);
  if (*out)
    return MPS_STATUS_OK;
  const mps_status status = look_up(device, formula, compute, out);
  if (status == MPS_STATUS_OK)
    atomic_store_explicit(slot, *out, memory_order_release);
  return status;
}
