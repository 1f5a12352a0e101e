/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_base: status, options, log, hash, array, threads, pages, limits.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/blake2.h"
#include "base/dylib.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/options.h"
#include "base/os/os.h"
#include "base/status.h"
#include "base/thread.h"
#include "base/time.h"
#include "test.h"

static void status_names(void) {
  CHECK_STRING(mps_status_name(MPS_STATUS_OK), "OK");
  CHECK_STRING(mps_status_name(MPS_STATUS_PROVIDER_ERROR), "PROVIDER_ERROR");
  CHECK_STRING(mps_status_name((mps_status)99), "UNKNOWN");
}

static void error_texts(void) {
  CHECK_INT(mps_error_set(MPS_STATUS_NOT_FOUND, "no %s in %d", "cat", 7), MPS_STATUS_NOT_FOUND);
  CHECK_STRING(mps_error_message(), "no cat in 7");
  CHECK_STRING(mps_error_operator(), "");
  CHECK_INT(mps_error_set_operator(MPS_STATUS_KERNEL_ERROR, "gather", "bad"), MPS_STATUS_KERNEL_ERROR);
  CHECK_STRING(mps_error_operator(), "gather");
  mps_error_set(MPS_STATUS_NOT_FOUND, "again: %s", mps_error_message()); /* an argument inside of the record */
  CHECK_STRING(mps_error_message(), "again: bad");
  CHECK_STRING(mps_error_operator(), "");
  char *text = malloc(5001);
  memset(text, 'x', 5000);
  text[5000] = 0;
  mps_error_set_text(MPS_STATUS_COMPILE_ERROR, text);
  CHECK_STRING(mps_error_message(), text);
  mps_error_set(MPS_STATUS_COMPILE_ERROR, "<%s>", mps_error_message());
  CHECK_INT(strlen(mps_error_message()), 5002);
  free(text);
  mps_error_set(MPS_STATUS_NOT_FOUND, "short");
  CHECK_STRING(mps_error_message(), "short");
}

static void other_thread(void *context) {
  CHECK_STRING(mps_error_message(), "");
  char text[3000];
  memset(text, 'y', sizeof text - 1);
  text[sizeof text - 1] = 0;
  mps_error_set_text(MPS_STATUS_NOT_FOUND, text); /* its memory goes with the thread */
  *(bool *)context = true;
}

static void error_record_is_per_thread(void) {
  mps_error_set(MPS_STATUS_NOT_FOUND, "mine");
  mps_thread thread;
  bool ran = false;
  CHECK_OK(mps_thread_create(&thread, "a name that is too long", other_thread, &ran));
  mps_thread_join(&thread);
  CHECK(ran);
  CHECK_STRING(mps_error_message(), "mine");
}

static void options_read_the_environment(void) {
  setenv("OPENMPS_THREADS", "0x10", 1);
  mps_option_set(MPS_OPTION_THREADS, NULL);
  CHECK_INT(mps_option_int(MPS_OPTION_THREADS), 16);
  CHECK(mps_option_is_set(MPS_OPTION_THREADS));
  setenv("OPENMPS_THREADS", "3", 1);
  CHECK_INT(mps_option_int(MPS_OPTION_THREADS), 16); /* stays as it was read */
  setenv("OPENMPS_THREADS", "many", 1);
  mps_option_set(MPS_OPTION_THREADS, NULL);
  CHECK_INT(mps_option_int(MPS_OPTION_THREADS), 0);
  CHECK(!mps_option_is_set(MPS_OPTION_THREADS));
  CHECK(mps_option_double(MPS_OPTION_HIGH_WATERMARK_RATIO) == 1.7);
  CHECK(mps_option_bool(MPS_OPTION_FUSION));
  mps_option_set(MPS_OPTION_FUSION, "off");
  CHECK(!mps_option_bool(MPS_OPTION_FUSION));
  mps_option_set(MPS_OPTION_FUSION, NULL);
  bool seen = false;
  for (uint32_t i = 0; i < mps_option_count(); i++) {
    mps_option_info info;
    mps_option_describe(i, &info);
    CHECK(info.name[0] && info.doc[0] && info.type[0]);
    if (!strcmp(info.name, "PYTORCH_MPS_HIGH_WATERMARK_RATIO")) {
      seen = true;
      CHECK_STRING(info.default_value, "1.7");
      CHECK_STRING(info.type, "double");
    }
  }
  CHECK(seen);
}

static void log_levels(void) {
  mps_option_set(MPS_OPTION_LOG, "heap:debug,shader:error");
  mps_log_reload();
  CHECK(mps_log_enabled(MPS_LOG_HEAP, MPS_LOG_DEBUG));
  CHECK(!mps_log_enabled(MPS_LOG_HEAP, MPS_LOG_TRACE));
  CHECK(!mps_log_enabled(MPS_LOG_SHADER, MPS_LOG_WARNING));
  CHECK(mps_log_enabled(MPS_LOG_STREAM, MPS_LOG_WARNING));
  CHECK(!mps_log_enabled(MPS_LOG_STREAM, MPS_LOG_INFO));
  mps_option_set(MPS_OPTION_LOG, "trace");
  mps_log_reload();
  CHECK(mps_log_enabled(MPS_LOG_DENSE, MPS_LOG_TRACE));
  mps_option_set(MPS_OPTION_LOG, NULL);
  mps_log_reload();
}

static int destroyed;
static void count_destroyed(void *value) {
  (void)value;
  destroyed++;
}

static void maps_keep_what_is_set(void) {
  enum { keys = 3000 };
  mps_map map = {0};
  CHECK(mps_map_get(&map, "x", 1) == NULL);
  static int values[keys];
  char key[32];
  for (int i = 0; i < keys; i++) {
    int length = snprintf(key, sizeof key, "key%d", i);
    CHECK_OK(mps_map_set(&map, key, (size_t)length, &values[i]));
    CHECK_OK(mps_map_set(&map, key, (size_t)length, &values[i])); /* replaces */
  }
  CHECK_INT(map.count, keys);
  int wrong = 0;
  for (int i = 0; i < keys; i++) {
    int length = snprintf(key, sizeof key, "key%d", i);
    wrong += mps_map_get(&map, key, (size_t)length) != &values[i];
  }
  CHECK_INT(wrong, 0);
  CHECK(mps_map_get(&map, "key30000", 8) == NULL);
  size_t position = 0;
  const char *name;
  void *value;
  int walked = 0;
  while (mps_map_next(&map, &position, &name, &value)) walked++;
  CHECK_INT(walked, keys);
  mps_map_fini(&map, count_destroyed);
  CHECK_INT(destroyed, keys);
}

static void check_blake2(const void *bytes, size_t length, size_t step, const char *expected) {
  mps_blake2 hash;
  unsigned char digest[MPS_BLAKE2_BYTES];
  char text[2 * MPS_BLAKE2_BYTES + 1];
  mps_blake2_begin(&hash);
  for (size_t i = 0; i < length; i += step) mps_blake2_add(&hash, (const char *)bytes + i, length - i < step ? length - i : step);
  mps_blake2_end(&hash, digest);
  for (int i = 0; i < MPS_BLAKE2_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
  CHECK_STRING(text, expected);
}

/* Digests that Python's hashlib.blake2b(digest_size=32) gives; of bytes that count up: one less than a block, one, one more, several. */
static void blake2_is_blake2(void) {
  unsigned char bytes[1000];
  for (int i = 0; i < 1000; i++) bytes[i] = (unsigned char)i;
  check_blake2("", 0, 1, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
  check_blake2("abc", 3, 3, "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
  for (size_t step = 1; step <= 1000; step = step * 3 + 1) {
    check_blake2(bytes, 127, step, "f2fe67ff342e21b8f45e8f2e0bcd1d9243245d50ee6c78042e9c491388791c72");
    check_blake2(bytes, 128, step, "c3582f71ebb2be66fa5dd750f80baae97554f3b015663c8be377cfcb2488c1d1");
    check_blake2(bytes, 129, step, "f7f3c46ba2564ff4c4c162da1f5b605f9f1c4aa6a20652a9f9a337c1a2f5b9c9");
    check_blake2(bytes, 256, step, "39a7eb9fedc19aabc83425c6755dd90e6f9d0c804964a1f4aaeea3b9fb599835");
    check_blake2(bytes, 1000, step, "c636324d47d89f2b2434dc2c994100663fbbaea880ff020fc5de89dd0f77a1ec");
  }
}

static void hashes_differ(void) {
  char bytes[64] = {0};
  uint64_t seen[65];
  for (size_t n = 0; n <= 64; n++) seen[n] = mps_hash_bytes(MPS_HASH_SEED, bytes, n);
  for (size_t n = 0; n <= 64; n++) {
    for (size_t m = 0; m < n; m++) CHECK(seen[n] != seen[m]);
  }
  CHECK(mps_hash_string(1, "abc") != mps_hash_string(2, "abc"));
  CHECK(mps_hash_string(1, "abc") == mps_hash_bytes(1, "abc", 3));
}

static void arrays_grow(void) {
  MPS_ARRAY(int) array = {0};
  for (int i = 0; i < 1000; i++) {
    CHECK_OK(MPS_ARRAY_RESERVE(&array, 1));
    MPS_ARRAY_PUSH(&array, i);
  }
  CHECK_INT(array.count, 1000);
  CHECK_INT(array.items[999], 999);
  CHECK_STATUS(MPS_ARRAY_RESERVE(&array, SIZE_MAX / 2), MPS_STATUS_OUT_OF_MEMORY);
  CHECK_INT(array.count, 1000);
  MPS_ARRAY_FINI(&array);
}

static void conditions_time_out(void) {
  mps_mutex mutex;
  mps_condition condition;
  mps_mutex_init(&mutex);
  mps_condition_init(&condition);
  mps_mutex_lock(&mutex);
  uint64_t start = mps_time_ns();
  while (mps_condition_wait_for(&condition, &mutex, 5000000)) continue;
  CHECK(mps_time_ns() - start >= 4900000);
  mps_mutex_unlock(&mutex);
  mps_condition_fini(&condition);
  mps_mutex_fini(&mutex);
}

static void pages(void) {
  size_t length = ((size_t)6 << 20) + 100;
  void *memory = NULL;
  CHECK_OK(mps_os_pages_map(length, &memory));
  CHECK_INT((uintptr_t)memory % ((uintptr_t)2 << 20), 0);
  memset(memory, 7, length);
  mps_os_pages_discard((char *)memory + 100, (size_t)4 << 20);
  CHECK_INT(((char *)memory)[99], 7); /* its page is only partly inside */
  CHECK_INT(((char *)memory)[(size_t)1 << 20], 0);
  CHECK_INT(((char *)memory)[length - 1], 7);
  mps_os_pages_unmap(memory, length);
  CHECK_STATUS(mps_os_pages_map(SIZE_MAX - 5, &memory), MPS_STATUS_OUT_OF_MEMORY);
  CHECK_STATUS(mps_os_pages_map(0, &memory), MPS_STATUS_OUT_OF_MEMORY);
}

typedef struct placed {
  _Atomic bool may_look;
  int cpu;
} placed;

static void look_when_allowed(void *context) {
  placed *p = context;
  while (!p->may_look) usleep(100);
  p->cpu = mps_os_cpu_current();
}

static void threads_are_kept_off_a_processor(void) {
  if (mps_os_cpu_count() < 2) return;
  for (int round = 0; round < 3; round++) {
    placed p = {.cpu = -1};
    mps_thread thread;
    CHECK_OK(mps_thread_create(&thread, "test", look_when_allowed, &p));
    int mine = mps_os_cpu_current();
    CHECK(mine >= 0);
    mps_thread_keep_off(&thread, mine);
    p.may_look = true;
    mps_thread_join(&thread);
    CHECK(p.cpu >= 0 && p.cpu != mine);
  }
  mps_thread self = {pthread_self()};
  uint32_t count = mps_os_cpu_count();
  mps_thread_keep_off(&self, 1000000); /* no such processor: nothing changes */
  mps_thread_keep_off(&self, -1);
  CHECK_INT(mps_os_cpu_count(), count);
}

static void limits(void) {
  CHECK(mps_os_cpu_count() >= 1 && mps_os_cpu_count() < 100000);
  CHECK(mps_os_total_memory() > (uint64_t)64 << 20);
  CHECK(mps_os_available_memory() <= mps_os_total_memory());
  CHECK(mps_os_resident_memory() > 0);
  CHECK(mps_os_cpu_name()[0] != 0);
  const char *level = mps_os_cpu_level();
#if defined(__x86_64__)
  CHECK(!strncmp(level, "x86-64", 6));
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) CHECK_STRING(level, "x86-64-v4");
  if (!__builtin_cpu_supports("avx2")) CHECK_STRING(level, "x86-64");
#else
  CHECK(level[0] != 0);
#endif
  char directory[4096];
  CHECK_OK(mps_os_library_directory(directory, sizeof directory));
  CHECK(directory[0] == '/');
  CHECK_STATUS(mps_os_library_directory(directory, 1), MPS_STATUS_NOT_FOUND);
}

static void dylibs(void) {
  mps_dylib *dylib;
  CHECK_STATUS(mps_dylib_open("/nonexistent/none.so", &dylib), MPS_STATUS_NOT_FOUND);
  CHECK(strstr(mps_error_message(), "/nonexistent/none.so") != NULL);
  CHECK_OK(mps_dylib_open(NULL, &dylib));
  CHECK(mps_dylib_symbol(dylib, "malloc") != NULL);
  CHECK(mps_dylib_symbol(dylib, "no_such_symbol_here") == NULL);
  mps_dylib_close(dylib);
}

int main(void) {
  RUN(status_names);
  RUN(error_texts);
  RUN(error_record_is_per_thread);
  RUN(options_read_the_environment);
  RUN(log_levels);
  RUN(maps_keep_what_is_set);
  RUN(blake2_is_blake2);
  RUN(hashes_differ);
  RUN(arrays_grow);
  RUN(conditions_time_out);
  RUN(pages);
  RUN(threads_are_kept_off_a_processor);
  RUN(limits);
  RUN(dylibs);
  return test_end();
}
