/* SPDX-License-Identifier: BSD-3-Clause
 *
 * circumstances: names and stat, in the order of the alphabet.
 */
#include "shader/circumstances.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/os/os.h"

#define MAX_DEPTH 4 /* of folders of headers */

static void add_state(mps_blake2 *hash, const char *path, const struct stat *state) {
  mps_blake2_add_string(hash, path);
  const uint64_t facts[] = {(uint64_t)state->st_dev, state->st_ino, (uint64_t)state->st_size, (uint64_t)state->st_mtim.tv_sec,
                            (uint64_t)state->st_mtim.tv_nsec};
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) mps_blake2_add_u64(hash, facts[i]);
}

void mps_identity_add(mps_blake2 *hash, const char *path) {
  struct stat state = {0};
  if (stat(path, &state) == 0) add_state(hash, path, &state);
  else mps_blake2_add_string(hash, path);
}

static void add_header(mps_blake2 *hash, const char *path, const struct stat *state) {
  add_state(hash, path, state);
  mps_blake2_add_u64(hash, (uint64_t)state->st_ctim.tv_sec);
  mps_blake2_add_u64(hash, (uint64_t)state->st_ctim.tv_nsec);
}

static void add_folder(mps_blake2 *hash, const char *path, int depth) {
  struct dirent **entries;
  int count = scandir(path, &entries, NULL, alphasort);
  for (int i = 0; i < count; i++) {
    char inner[1400];
    struct stat state;
    snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
    if (entries[i]->d_name[0] != '.' && stat(inner, &state) == 0) {
      if (S_ISREG(state.st_mode)) add_header(hash, inner, &state);
      else if (S_ISDIR(state.st_mode) && depth < MAX_DEPTH) add_folder(hash, inner, depth + 1);
    }
    free(entries[i]);
  }
  if (count >= 0) free(entries);
}

void mps_circumstances_add(mps_blake2 *hash, const mps_compiler *compiler) {
  char library[1024];
  mps_blake2_add_string(hash, "openmps shader 2");
  if (mps_os_library_path(library, sizeof library) == MPS_STATUS_OK) mps_identity_add(hash, library);
  mps_identity_add(hash, compiler->clang);
  add_folder(hash, compiler->include, 0);
  if (compiler->include_core[0]) add_folder(hash, compiler->include_core, 0);
}
