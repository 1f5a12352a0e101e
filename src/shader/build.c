/* SPDX-License-Identifier: BSD-3-Clause
 *
 * build: a source's key is a hash over itself and all that compiling it depends on. Files from the folders of OPENMPS_SHADER_INCLUDE are
 * known only when it was compiled once: an entry lists them, and their contents make the key of the library. So a hit starts no process.
 */
#include "shader/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/log.h"
#include "base/options.h"
#include "base/os/os.h"
#include "base/status.h"
#include "shader/cache.h"
#include "shader/circumstances.h"
#include "shader/compiler.h"
#include "shader/prelude.h"
#include "shader/process.h"
#include "shader/source_check.h"
#include "shader/stage.h"

#define COMPILE_TIMEOUT_MS 120000u
#define MAX_INCLUDES 8

typedef MPS_ARRAY(char) char_array;

/* One compilation. */
typedef struct build {
  const char *source, *name;
  mps_driver_device *driver;
  mps_compiler compiler;
  mps_compile_options options;
  const char *includes[MAX_INCLUDES + 1]; /* in `folders` */
  char folders[MAX_INCLUDES][1024];
  const char *readable[MAX_INCLUDES + 2]; /* those and our own */
  bool cached; /* there is a cache */
  mps_cache cache;
  mps_prelude prelude; /* with the circumstances before compiling */
  mps_cache_key key; /* without what the source includes from `includes` */
} build;

/* ---- keys ---- */
static void add_contents(mps_blake2 *hash, const char *path, bool *out_probes) {
  char *text = NULL;
  size_t length = 0;
  struct stat state;
  mps_blake2_add_string(hash, path);
  bool there = stat(path, &state) == 0 && S_ISREG(state.st_mode) && mps_file_read(path, &text, &length) == MPS_STATUS_OK;
  mps_blake2_add_u64(hash, there ? length : UINT64_MAX);
  if (there) mps_blake2_add(hash, text, length);
  if (there && out_probes && strstr(text, "__has_include")) *out_probes = true;
  free(text);
}

static mps_cache_key find_circumstances(const mps_compiler *compiler) {
  mps_blake2 hash;
  mps_blake2_begin(&hash);
  mps_circumstances_add(&hash, compiler);
  return mps_cache_key_end(&hash);
}

static mps_status make_key(build *b) {
  const mps_compile_options *o = &b->options;
  mps_blake2 hash;
  mps_blake2_begin(&hash);
  mps_blake2_add_string(&hash, b->prelude.circumstances.text);
  mps_blake2_add_string(&hash, mps_os_target());
  mps_blake2_add_string(&hash, o->level);
  mps_blake2_add_string(&hash, o->standard);
  mps_blake2_add_string(&hash, o->optimization);
  mps_blake2_add_u64(&hash, (uint64_t)o->mode << 4 | (uint64_t)o->lane_loops << 2 | (uint64_t)o->ordered << 1 | (uint64_t)o->fast_math);
  if (o->checked) mps_blake2_add_string(&hash, "checked");
  if (o->special) {
    char *values = mps_specialization_key(o->special);
    if (!values) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory to compile a shader");
    mps_blake2_add_string(&hash, "special");
    mps_blake2_add_string(&hash, values);
    free(values);
  }
  mps_blake2_add_string(&hash, b->name);
  mps_blake2_add_string(&hash, b->source);
  for (const char *const *folder = b->includes; *folder; folder++) mps_blake2_add_string(&hash, *folder);
  b->key = mps_cache_key_end(&hash);
  return MPS_STATUS_OK;
}

/* The part of `file` below one of the user's folders, and that folder's number; NULL for files elsewhere. */
static const char *below(const build *b, const char *file, uint32_t *out_folder) {
  for (uint32_t i = 0; b->includes[i]; i++) {
    if (!mps_path_is_below(file, b->includes[i])) continue;
    *out_folder = i;
    return file + strlen(b->includes[i]) + 1;
  }
  return NULL;
}

/* The key with the files of `list` (a line each). False if the answer may change without one of them changing: a file that asks whether
 * another one exists. Files of the same name in folders that are searched before, and what is new in their own folder, count. */
static bool make_list_key(const build *b, const char *list, mps_cache_key *out_key) {
  mps_blake2 hash;
  bool probes = strstr(b->source, "__has_include") != NULL;
  mps_blake2_begin(&hash);
  mps_blake2_add_string(&hash, b->key.text);
  for (const char *line = list; *line;) {
    char file[1024], other[2100];
    size_t length = strcspn(line, "\n");
    snprintf(file, sizeof file, "%.*s", (int)length, line);
    line += length + (line[length] != 0);
    add_contents(&hash, file, &probes);
    uint32_t folder = 0;
    const char *rest = below(b, file, &folder);
    for (uint32_t i = 0; rest && i < folder; i++) {
      snprintf(other, sizeof other, "%s/%s", b->includes[i], rest);
      mps_blake2_add_u64(&hash, access(other, F_OK) == 0);
    }
    char *slash = strrchr(file, '/');
    if (slash) *slash = 0;
    mps_identity_add(&hash, file);
  }
  *out_key = mps_cache_key_end(&hash);
  return !probes;
}

/* ---- compiling ---- */
/* The source behind a line that gives it the name it is known by. */
static mps_status write_source(const char *path, const char *name, const char *source) {
  size_t length = strlen(name) + strlen(source) + 16;
  char *text = malloc(length);
  if (!text) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a shader of %zu bytes", length);
  int used = snprintf(text, length, "#line 1 \"%s\"\n%s\n", name, source);
  mps_status status = mps_file_write(path, text, (size_t)used);
  free(text);
  return status;
}

/* Cuts the option at its colons. The compiler names the files in a folder by the folder's name as it was given, if that is absolute. */
static void split_folders(build *b) {
  uint32_t count = 0;
  for (const char *p = mps_option_string(MPS_OPTION_SHADER_INCLUDE); *p && count < MAX_INCLUDES;) {
    char folder[1024], *resolved = NULL;
    size_t length = strcspn(p, ":");
    snprintf(folder, sizeof folder, "%.*s", (int)length, p);
    p += length + (p[length] != 0);
    if (folder[0] && folder[0] != '/') resolved = realpath(folder, NULL);
    snprintf(b->folders[count], sizeof b->folders[count], "%s", resolved ? resolved : folder);
    free(resolved);
    for (length = strlen(b->folders[count]); length > 1 && b->folders[count][length - 1] == '/';) b->folders[count][--length] = 0;
    if (length > 0) {
      b->includes[count] = b->folders[count];
      count++;
    }
  }
  b->includes[count] = NULL;
}

/* The next file of a Makefile's rule; NULL at its end. */
static const char *next_dependency(const char *p, char *out, size_t capacity) {
  size_t length = 0;
  while (*p == ' ' || *p == '\n' || (*p == '\\' && p[1] == '\n')) p++;
  for (; *p && *p != ' ' && *p != '\n'; p++) {
    if (*p == '\\' && p[1] == '\n') break;
    if ((*p == '\\' && (p[1] == ' ' || p[1] == '#')) || (*p == '$' && p[1] == '$')) p++;
    if (length + 1 < capacity) out[length++] = *p;
  }
  out[length] = 0;
  return length > 0 ? p : NULL;
}

/* Which files were read, as the compiler tells: those of the user's folders become the lines of a list entry; there must be none beside
 * those, our headers and `folder`, where the source lies. */
static mps_status list_files(const build *b, const char *folder, const char *rule, char_array *out) {
  char file[1024];
  for (const char *p = strchr(rule, ':') ? strchr(rule, ':') + 1 : ""; (p = next_dependency(p, file, sizeof file)) != NULL;) {
    uint32_t number;
    if (mps_path_is_below(file, folder) || mps_path_is_below(file, b->compiler.include) || mps_path_is_below(file, b->compiler.include_core)) continue;
    if (!below(b, file, &number))
      return mps_error_set(MPS_STATUS_COMPILE_ERROR, "%s:1:1: error: the file %s lies outside of the folders that shaders include from", b->name, file);
    size_t length = strlen(file);
    MPS_TRY(MPS_ARRAY_RESERVE(out, length + 2));
    memcpy(out->items + out->count, file, length);
    out->count += length;
    out->items[out->count++] = '\n';
  }
  MPS_TRY(MPS_ARRAY_RESERVE(out, 1));
  out->items[out->count] = 0;
  return MPS_STATUS_OK;
}

static mps_status list_files_of(const build *b, const char *folder, const char *rule_path, char_array *out) {
  char *rule;
  size_t length;
  MPS_TRY(mps_file_read(rule_path, &rule, &length));
  mps_status status = list_files(b, folder, rule, out);
  free(rule);
  return status;
}

/* Leaves a shared object `library_path` in `folder`. */
static mps_status compile_in(const build *b, const char *folder, const char *library_path, char_array *out_list) {
  char source_path[300], object_path[300], rule_path[300];
  snprintf(source_path, sizeof source_path, "%s/source.metal", folder);
  snprintf(object_path, sizeof object_path, "%s/object.o", folder);
  MPS_TRY(write_source(source_path, b->name, b->source));
  snprintf(rule_path, sizeof rule_path, "%s/object.d", folder);
  mps_compile_options options = b->options;
  options.dependency_file = rule_path;
  options.dependency_target = "object";
  mps_reading reading;
  char *text;
  MPS_TRY(mps_compiler_compile(&b->compiler, source_path, object_path, &options, &reading, &text, NULL));
  uint32_t count = reading.kernel_count;
  mps_reading_free(&reading);
  free(text);
  MPS_TRY(list_files_of(b, folder, rule_path, out_list));
  const char *const objects[] = {object_path};
  return mps_compiler_link(&b->compiler, objects, 1, count, &b->options, library_path);
}

/* ---- with the cache ---- */
static bool load_entry(const build *b, const mps_cache_key *key, mps_driver_library **out_code) {
  char path[1024];
  if (!mps_cache_find(&b->cache, key, MPS_CACHE_LIBRARY, path, sizeof path)) return false;
  if (b->driver->vtable->load_library(b->driver, NULL, 0, path, out_code) == MPS_STATUS_OK) return true;
  MPS_LOG(SHADER, WARNING, "the cached library %s cannot be loaded, it is compiled again: %s", path, mps_error_message());
  mps_cache_remove(&b->cache, key, MPS_CACHE_LIBRARY);
  return false;
}

static bool find(const build *b, mps_driver_library **out_code) {
  if (!b->includes[0]) return load_entry(b, &b->key, out_code);
  size_t length;
  char *list = mps_cache_read(&b->cache, &b->key, MPS_CACHE_LIST, &length);
  mps_cache_key key;
  bool found = list && make_list_key(b, list, &key) && load_entry(b, &key, out_code);
  free(list);
  return found;
}

/* True if what was compiled was compiled with what its key says: headers may have been replaced meanwhile. */
static bool unchanged(const build *b) {
  return strcmp(find_circumstances(&b->compiler).text, b->prelude.circumstances.text) == 0;
}

/* Adds the library file, and loads it from there, so that the next compilation in this process shares its pages. */
static bool keep(const build *b, const char *library_path, const char_array *list, mps_driver_library **out_code) {
  mps_cache_key key = b->key;
  if (!unchanged(b)) return false;
  if (b->includes[0]) {
    if (!make_list_key(b, list->items, &key)) return false;
    if (!mps_cache_add(&b->cache, &b->key, MPS_CACHE_LIST, list->items, list->count)) return false;
  }
  char *contents;
  size_t length;
  if (mps_file_read(library_path, &contents, &length) != MPS_STATUS_OK) return false;
  bool added = mps_cache_add(&b->cache, &key, MPS_CACHE_LIBRARY, contents, length);
  free(contents);
  return added && load_entry(b, &key, out_code);
}

static mps_status compile(const build *b, mps_driver_library **out_code) {
  char folder[256], path[300];
  char_array list = {0};
  MPS_TRY(mps_temporary_create(folder, sizeof folder));
  snprintf(path, sizeof path, "%s/library.so", folder);
  mps_status status = compile_in(b, folder, path, &list);
  if (status == MPS_STATUS_OK && !(b->cached && keep(b, path, &list, out_code)))
    status = b->driver->vtable->load_library(b->driver, NULL, 0, path, out_code);
  mps_temporary_remove(folder); /* what is loaded stays mapped */
  MPS_ARRAY_FINI(&list);
  return status;
}

/* ---- the two ways in ---- */
/* What compiling `source` takes. The caller frees *out_build, NULL after an error. */
static mps_status begin(mps_driver_device *driver, const char *source, const char *name, const mps_specialization *special, build **out_build) {
  *out_build = NULL;
  MPS_TRY(mps_source_check(source, name));
  build *b = calloc(1, sizeof *b);
  if (!b) return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory to compile a shader");
  b->source = source;
  b->name = name;
  b->driver = driver;
  split_folders(b);
  b->options = (mps_compile_options){.level = driver->kernel_level, .includes = b->includes, .display_name = name, .display_source = source,
                                     .table = true, .quiet = true, .ordered = true, .special = special,
                                     .lane_loops = mps_option_bool(MPS_OPTION_SHADER_LANES),
                                     .fast_math = mps_option_bool(MPS_OPTION_FAST_MATH), .timeout_ms = COMPILE_TIMEOUT_MS,
                                     .checked = mps_option_bool(MPS_OPTION_SHADER_VALIDATION) || mps_option_bool(MPS_OPTION_MTL_SHADER_VALIDATION)};
  mps_status status = mps_compiler_find(&b->compiler);
  if (status != MPS_STATUS_OK) {
    free(b);
    return status;
  }
  b->readable[0] = b->compiler.include;
  memcpy(b->readable + 1, b->includes, sizeof b->includes);
  b->options.readable = b->readable;
  *out_build = b;
  return MPS_STATUS_OK;
}

mps_status mps_build(mps_driver_device *driver, const char *source, const char *name, const mps_specialization *special,
                     mps_driver_library **out_code, bool *out_cached) {
  build *b;
  *out_code = NULL;
  *out_cached = false;
  MPS_TRY(begin(driver, source, name, special, &b));
  mps_status status = MPS_STATUS_OK;
  b->cached = mps_cache_open(&b->cache);
  if (b->cached) {
    b->prelude = (mps_prelude){.cache = &b->cache, .circumstances = find_circumstances(&b->compiler)};
    b->options.run_generate = mps_prelude_run;
    b->options.run_context = &b->prelude;
    status = make_key(b);
  }
  *out_cached = status == MPS_STATUS_OK && b->cached && find(b, out_code);
  if (status == MPS_STATUS_OK && !*out_cached) status = compile(b, out_code);
  free(b);
  return status;
}

/* The stage's text, with everything that is written on the way in `folder`. */
static mps_status make_stage(build *b, const char *folder, mps_shader_stage stage, char **out_text) {
  char source_path[300], rule_path[300];
  char_array list = {0};
  snprintf(source_path, sizeof source_path, "%s/source.metal", folder);
  snprintf(rule_path, sizeof rule_path, "%s/object.d", folder);
  MPS_TRY(write_source(source_path, b->name, b->source));
  b->options.dependency_file = rule_path;
  b->options.dependency_target = "object";
  MPS_TRY(mps_stage_make(&b->compiler, source_path, folder, &b->options, stage, out_text));
  mps_status status = list_files_of(b, folder, rule_path, &list);
  MPS_ARRAY_FINI(&list);
  if (status == MPS_STATUS_OK) return status;
  free(*out_text);
  *out_text = NULL;
  return status;
}

mps_status mps_build_stage(mps_driver_device *driver, const char *source, const char *name, mps_shader_stage stage, char **out_text) {
  char folder[256];
  build *b;
  *out_text = NULL;
  MPS_TRY(begin(driver, source, name, NULL, &b));
  mps_status status = mps_temporary_create(folder, sizeof folder);
  if (status == MPS_STATUS_OK) {
    status = make_stage(b, folder, stage, out_text);
    mps_temporary_remove(folder);
  }
  free(b);
  return status;
}
