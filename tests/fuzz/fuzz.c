/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fuzz: options, the child that runs cases, and the parent that looks after it.
 */
#include "fuzz.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"

/* A sanitizer tells where a case hangs, too. */
const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void) { return "handle_abort=1:hard_rss_limit_mb=4096"; }

#define SECOND UINT64_C(1000000000)
#define HANG (20 * SECOND) /* a case takes some microseconds; 64 KiB of nonsense under a sanitizer may take a second */

/* What parent and child share: the input of the case that runs. */
typedef struct fuzz_board {
  _Atomic uint64_t cases;
  _Atomic bool finished; /* the last case is over; a sanitizer looks for leaks */
  uint64_t kept;
  uint32_t reached;
  size_t length;
  uint8_t data[FUZZ_MAX_LENGTH];
} fuzz_board;

typedef struct fuzz_options {
  uint64_t seed, cases, seconds;
  const char *input;
  char **corpus;
  int corpus_count;
} fuzz_options;

static bool read_options(int argc, char **argv, fuzz_options *out) {
  *out = (fuzz_options){.seed = 1};
  int i = 1;
  for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
    const uint64_t value = strtoull(argv[i + 1], NULL, 10);
    if (strcmp(argv[i], "--seed") == 0) out->seed = value;
    else if (strcmp(argv[i], "--cases") == 0) out->cases = value;
    else if (strcmp(argv[i], "--seconds") == 0) out->seconds = value;
    else if (strcmp(argv[i], "--input") == 0) out->input = argv[i + 1];
    else return false;
  }
  out->corpus = argv + i;
  out->corpus_count = argc - i;
  return out->input || out->cases || out->seconds;
}

static bool read_file(const char *path, uint8_t *data, size_t *out_length) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    perror(path);
    return false;
  }
  *out_length = fread(data, 1, FUZZ_MAX_LENGTH, file);
  fclose(file);
  return true;
}

/* In a block of its own, so that a sanitizer sees a step beyond the end. */
static bool run_case(const fuzz_target *target, const uint8_t *data, size_t length) {
  uint8_t *copy = malloc(length ? length : 1);
  if (!copy) abort();
  if (length) memcpy(copy, data, length);
  const bool holds = target->run(copy, length);
  free(copy);
  return holds;
}

static int run_cases(const fuzz_target *target, const fuzz_options *options, fuzz_board *board) {
  const uint64_t end = options->seconds ? mps_time_ns() + options->seconds * SECOND : UINT64_MAX;
  fuzz_pool pool = {.random = options->seed};
  fuzz_pool_add(&pool, NULL, 0);
  for (int i = 0; i < options->corpus_count; i++) {
    if (!read_file(options->corpus[i], board->data, &board->length)) return 2;
    fuzz_pool_add(&pool, board->data, board->length);
  }
  int code = 0;
  for (uint64_t n = 0; code == 0 && (!options->cases || n < options->cases) && mps_time_ns() < end; n++) {
    if (n < pool.count && n <= (uint64_t)options->corpus_count) { /* first the corpus as it is */
      board->length = pool.inputs[n].length < target->most ? pool.inputs[n].length : target->most;
      memcpy(board->data, pool.inputs[n].data, board->length);
    } else {
      board->length = fuzz_mutate(&pool, target->words, board->data, target->most);
    }
    atomic_store(&board->cases, n + 1);
    fuzz_reached_begin();
    const bool holds = run_case(target, board->data, board->length);
    const bool news = fuzz_reached_end();
    if (!holds) code = 3;
    if (news && n > (uint64_t)options->corpus_count) {
      fuzz_pool_add(&pool, board->data, board->length);
      board->kept++;
    }
  }
  board->reached = fuzz_reached_count();
  fuzz_pool_fini(&pool);
  atomic_store(&board->finished, code == 0);
  return code;
}

/* Waits for the child; false when it hangs, and it is gone then, not without a sanitizer's word about where. */
static bool look_after(pid_t child, fuzz_board *board, int *out_status) {
  uint64_t seen = 0, since = mps_time_ns();
  while (waitpid(child, out_status, WNOHANG) == 0) {
    usleep(10000);
    const uint64_t now = mps_time_ns(), cases = atomic_load(&board->cases);
    if (cases != seen) {
      seen = cases;
      since = now;
    } else if (now - since > HANG) {
      kill(child, SIGABRT);
      for (int i = 0; i < 500 && waitpid(child, out_status, WNOHANG) == 0; i++) usleep(10000);
      kill(child, SIGKILL);
      (void)waitpid(child, out_status, 0);
      return false;
    }
  }
  return true;
}

static void save(const fuzz_target *target, const fuzz_options *options, const fuzz_board *board, const char *program, const char *what) {
  char path[256];
  snprintf(path, sizeof path, "fuzz-%s-%llu.input", target->name, (unsigned long long)options->seed);
  FILE *file = fopen(path, "wb");
  const bool written = file && fwrite(board->data, 1, board->length, file) == board->length;
  if (file) fclose(file);
  fprintf(stderr, "fuzz %s: case %llu of seed %llu %s: %zu bytes %s %s; again: %s --input %s\n", target->name,
          (unsigned long long)atomic_load(&board->cases), (unsigned long long)options->seed, what, board->length,
          written ? "are in" : "could not be written to", path, program, path);
}

int fuzz_main(int argc, char **argv, const fuzz_target *target) {
  fuzz_options options;
  if (!read_options(argc, argv, &options)) {
    fprintf(stderr, "usage: %s [--seed N] [--cases N] [--seconds N] [--input FILE] [CORPUS FILE...]\n", argv[0]);
    return 2;
  }
  fuzz_board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (board == MAP_FAILED) return 2;
  if (options.input) return read_file(options.input, board->data, &board->length) && run_case(target, board->data, board->length) ? 0 : 1;
  printf("fuzz %s: seed %llu\n", target->name, (unsigned long long)options.seed);
  fflush(stdout);
  const uint64_t begin = mps_time_ns();
  const pid_t child = fork();
  if (child < 0) return 2;
  if (child == 0) exit(run_cases(target, &options, board));
  int status = 0;
  const bool ended = look_after(child, board, &status);
  const bool fine = ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (!fine && atomic_load(&board->finished)) {
    fprintf(stderr, "fuzz %s: all cases of seed %llu are fine, but the process %s behind them\n", target->name, (unsigned long long)options.seed,
            ended ? "fails (a leak?)" : "hangs");
    return 1;
  }
  if (!fine) {
    save(target, &options, board, argv[0], !ended ? "hangs" : WIFEXITED(status) && WEXITSTATUS(status) == 3 ? "breaks a property" : "crashes");
    return 1;
  }
  const double seconds = (double)(mps_time_ns() - begin) / (double)SECOND;
  printf("fuzz %s: %llu cases in %.1f s, %u places reached, %llu inputs kept\n", target->name, (unsigned long long)atomic_load(&board->cases), seconds,
         board->reached, (unsigned long long)board->kept);
  return 0;
}
