/* SPDX-License-Identifier: BSD-3-Clause
 *
 * registry: the drivers that were built in. The build writes the list.
 */
#include <string.h>

#include "driver/driver.h"

static const mps_driver *const drivers[] = {
#define DRIVER(name) &mps_driver_##name,
#include "driver/drivers.inc"
#undef DRIVER
};

const mps_driver *mps_driver_find(const char *name) {
  for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
    if (!strcmp(drivers[i]->name, name)) return drivers[i];
  }
  return NULL;
}
