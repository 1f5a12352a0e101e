/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host_pointwise: what the host driver takes for pointwise programs, without streams, bridge or Python. Prints the least time of
 * several runs, the least processor time of all threads (which a busy machine spoils less), and the memory traffic of the former. Set OPENMPS_THREADS and OPENMPS_KERNEL_PATH as usual; names as arguments choose cases.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/time.h"
#include "driver/driver.h"

static mps_driver_device *device;
static mps_driver_queue *queue;
static mps_driver_library *library;
static int chosen_count;
static char **chosen;

typedef struct bench {
  mps_step_pointwise step;
  mps_operand operands[8];
  mps_instruction instructions[8];
} bench;

static bool wanted(const char *name) {
  for (int i = 0; i < chosen_count; i++) {
    if (strstr(name, chosen[i])) return true;
  }
  return chosen_count == 0;
}

static void *memory_of(uint64_t bytes) {
  mps_driver_memory memory;
  bytes = (bytes + 4095) / 4096 * 4096;
  if (device->vtable->allocate(device, bytes, &memory) != MPS_STATUS_OK) {
    fprintf(stderr, "%s\n", mps_error_message());
    exit(1);
  }
  return memory.contents;
}

static void start(bench *b, uint32_t rank, const int64_t *sizes) {
  memset(b, 0, sizeof *b);
  b->step.step = (mps_step){.kind = MPS_STEP_POINTWISE, .label = "bench"};
  mps_program *p = &b->step.program;
  p->rank = rank;
  p->element_count = 1;
  for (uint32_t d = 0; d < rank; d++) {
    p->sizes[d] = sizes[d];
    p->element_count *= (uint64_t)sizes[d];
  }
  p->operands = b->operands;
  p->instructions = b->instructions;
}

/* An operand with strides in elements; NULL: row-major. */
static uint8_t operand(bench *b, void *address, mps_dtype dtype, mps_compute compute, const int64_t *strides) {
  mps_program *p = &b->step.program;
  mps_operand *o = &b->operands[p->operand_count];
  *o = (mps_operand){.address = (uint64_t)(uintptr_t)address, .dtype = (uint8_t)dtype, .compute = (uint8_t)compute, .access = 1};
  int64_t stride = 1;
  for (uint32_t d = p->rank; d-- > 0;) {
    o->strides[d] = (strides ? strides[d] : stride) * (int64_t)mps_dtype_size(dtype);
    stride *= p->sizes[d];
  }
  return (uint8_t)p->operand_count++;
}

static uint8_t constant(bench *b, float value) {
  uint8_t index = operand(b, NULL, MPS_DTYPE_F32, MPS_COMPUTE_F32, NULL);
  b->operands[index].constant = 1;
  memcpy(&b->operands[index].value, &value, sizeof value);
  return index;
}

static void instruction(bench *b, const char *name, uint8_t destination, mps_dtype round, uint8_t count, uint8_t a, uint8_t second, uint8_t third) {
  mps_program *p = &b->step.program;
  mps_instruction *i = &b->instructions[p->instruction_count++];
  *i = (mps_instruction){.result = MPS_COMPUTE_F32, .round = (uint8_t)round, .source_count = count, .destination = destination,
                         .sources = {a, second, third}};
  i->function = name ? device->vtable->find_function(library, name) : NULL;
  if (name && !i->function) {
    fprintf(stderr, "the kernel library has no %s\n", name);
    exit(1);
  }
  if (destination >= MPS_PROGRAM_REGISTER && p->register_count <= (uint32_t)destination - MPS_PROGRAM_REGISTER) {
    p->register_count = (uint32_t)destination - MPS_PROGRAM_REGISTER + 1;
  }
  if (destination < MPS_PROGRAM_REGISTER) b->operands[destination].access = 2;
}

static uint64_t processor_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void print(const char *name, uint64_t wall, uint64_t processor, double bytes) {
  printf("%-36s %12.3f us %12.3f us %8.2f GB/s\n", name, (double)wall / 1e3, (double)processor / 1e3, bytes / (double)wall);
}

static void measure(const char *name, bench *b, double bytes) {
  if (!wanted(name)) return;
  uint64_t least = UINT64_MAX, least_processor = UINT64_MAX;
  uint64_t repeat = b->step.program.element_count < 4096 ? 10000 : 1;
  uint64_t until = mps_time_ns() + 400000000u;
  for (int run = 0; run < 1000 && (run < 5 || mps_time_ns() < until); run++) {
    uint64_t begin = mps_time_ns(), processor = processor_ns();
    for (uint64_t i = 0; i < repeat; i++) {
      if (device->vtable->execute(queue, &b->step.step) != MPS_STATUS_OK) {
        fprintf(stderr, "%s: %s\n", name, mps_error_message());
        exit(1);
      }
    }
    uint64_t ns = (mps_time_ns() - begin) / repeat;
    if (ns < least) least = ns;
    processor = (processor_ns() - processor) / repeat;
    if (processor < least_processor) least_processor = processor;
  }
  print(name, least, least_processor, bytes);
}

static void bench_add(const char *name, int64_t n, mps_dtype dtype, char *a, char *b_memory, char *out) {
  bench b;
  start(&b, 1, &n);
  uint8_t x = operand(&b, a, dtype, MPS_COMPUTE_F32, NULL), y = operand(&b, b_memory, dtype, MPS_COMPUTE_F32, NULL);
  uint8_t z = operand(&b, out, dtype, MPS_COMPUTE_F32, NULL);
  instruction(&b, "add_f32", z, dtype, 2, x, y, 0);
  measure(name, &b, 3.0 * (double)n * (double)mps_dtype_size(dtype));
}

static void bench_scale(const char *name, int64_t n, char *a, char *out) {
  bench b;
  start(&b, 1, &n);
  uint8_t x = operand(&b, a, MPS_DTYPE_F32, MPS_COMPUTE_F32, NULL), k = constant(&b, 2.0f);
  uint8_t z = operand(&b, out, MPS_DTYPE_F32, MPS_COMPUTE_F32, NULL);
  instruction(&b, "mul_f32", z, MPS_DTYPE_F32, 2, x, k, 0);
  measure(name, &b, 8.0 * (double)n);
}

/* relu(tanh(a * b + c) * 1.5) + a */
static void bench_chain(const char *name, int64_t n, mps_dtype dtype, char *a, char *b_memory, char *c, char *out) {
  bench b;
  start(&b, 1, &n);
  uint8_t x = operand(&b, a, dtype, MPS_COMPUTE_F32, NULL), y = operand(&b, b_memory, dtype, MPS_COMPUTE_F32, NULL);
  uint8_t w = operand(&b, c, dtype, MPS_COMPUTE_F32, NULL), k = constant(&b, 1.5f);
  uint8_t z = operand(&b, out, dtype, MPS_COMPUTE_F32, NULL);
  const uint8_t r = MPS_PROGRAM_REGISTER;
  instruction(&b, "mul_f32", r, dtype, 2, x, y, 0);
  instruction(&b, "add_f32", r, dtype, 2, r, w, 0);
  instruction(&b, "tanh_f32", r, dtype, 1, r, 0, 0);
  instruction(&b, "mul_f32", r, dtype, 2, r, k, 0);
  instruction(&b, "relu_f32", r, dtype, 1, r, 0, 0);
  instruction(&b, "add_f32", z, dtype, 2, r, x, 0);
  measure(name, &b, 4.0 * (double)n * (double)mps_dtype_size(dtype));
}

static void bench_strided(char *a, char *b_memory, char *out) {
  bench b;
  const mps_dtype f32 = MPS_DTYPE_F32;
  const mps_compute c = MPS_COMPUTE_F32;
  int64_t square[2] = {2048, 2048}, transposed[2] = {1, 2048};
  double bytes = 2048.0 * 2048 * 4;
  start(&b, 2, square);
  uint8_t x = operand(&b, a, f32, c, NULL), y = operand(&b, b_memory, f32, c, transposed), z = operand(&b, out, f32, c, NULL);
  instruction(&b, "add_f32", z, f32, 2, x, y, 0);
  measure("a + b.t(), 2048 x 2048", &b, 3 * bytes);

  start(&b, 2, square);
  y = operand(&b, b_memory, f32, c, transposed), z = operand(&b, out, f32, c, NULL);
  instruction(&b, NULL, z, f32, 1, y, 0, 0);
  measure("b.t().contiguous(), 2048 x 2048", &b, 2 * bytes);

  int64_t image[3] = {64, 256, 1024}, to_last[3] = {256 * 1024, 1, 256};
  start(&b, 3, image);
  y = operand(&b, b_memory, f32, c, to_last), z = operand(&b, out, f32, c, NULL);
  instruction(&b, NULL, z, f32, 1, y, 0, 0);
  measure("NHWC to NCHW, 64 x 256 x 1024", &b, 8.0 * 64 * 256 * 1024);

  int64_t rows[2] = {8192, 768}, bias[2] = {0, 1};
  start(&b, 2, rows);
  x = operand(&b, a, f32, c, NULL), y = operand(&b, b_memory, f32, c, bias), z = operand(&b, out, f32, c, NULL);
  instruction(&b, "add_f32", z, f32, 2, x, y, 0);
  measure("bias of rows, 8192 x 768", &b, 8.0 * 8192 * 768);

  int64_t narrow[2] = {393216, 16};
  start(&b, 2, narrow);
  x = operand(&b, a, f32, c, NULL), y = operand(&b, b_memory, f32, c, bias), z = operand(&b, out, f32, c, NULL);
  instruction(&b, "add_f32", z, f32, 2, x, y, 0);
  measure("bias of rows, 393216 x 16", &b, 8.0 * 393216 * 16);

  int64_t channels[3] = {32, 64, 3136}, per_channel[3] = {0, 1, 0};
  start(&b, 3, channels);
  x = operand(&b, a, f32, c, NULL), y = operand(&b, b_memory, f32, c, per_channel), z = operand(&b, out, f32, c, NULL);
  instruction(&b, "add_f32", z, f32, 2, x, y, 0);
  measure("bias of channels, 32 x 64 x 3136", &b, 8.0 * 32 * 64 * 3136);

  int64_t column[2] = {1, 0};
  start(&b, 2, narrow);
  x = operand(&b, a, f32, c, NULL), y = operand(&b, b_memory, f32, c, column), z = operand(&b, out, f32, c, NULL);
  instruction(&b, "add_f32", z, f32, 2, x, y, 0);
  measure("column added, 393216 x 16", &b, 8.0 * 393216 * 16);

  int64_t half_rows[2] = {4096, 512}, wide[2] = {1024, 1};
  start(&b, 2, half_rows);
  x = operand(&b, a, f32, c, wide), y = operand(&b, b_memory, f32, c, wide), z = operand(&b, out, f32, c, NULL);
  instruction(&b, "add_f32", z, f32, 2, x, y, 0);
  measure("half of the columns, 4096 x 512", &b, 12.0 * 4096 * 512);
}

/* Results in memory that nobody has touched yet. */
static void bench_fresh(int64_t n, char *a, char *b_memory) {
  if (!wanted("fresh")) return;
  uint64_t least = UINT64_MAX, least_processor = UINT64_MAX;
  for (int run = 0; run < 5; run++) {
    mps_driver_memory memory;
    bench b;
    if (device->vtable->allocate(device, (uint64_t)n * 4, &memory) != MPS_STATUS_OK) return;
    start(&b, 1, &n);
    uint8_t x = operand(&b, a, MPS_DTYPE_F32, MPS_COMPUTE_F32, NULL), y = operand(&b, b_memory, MPS_DTYPE_F32, MPS_COMPUTE_F32, NULL);
    uint8_t z = operand(&b, memory.contents, MPS_DTYPE_F32, MPS_COMPUTE_F32, NULL);
    instruction(&b, "add_f32", z, MPS_DTYPE_F32, 2, x, y, 0);
    uint64_t begin = mps_time_ns(), processor = processor_ns();
    if (device->vtable->execute(queue, &b.step.step) != MPS_STATUS_OK) return;
    uint64_t ns = mps_time_ns() - begin;
    if (ns < least) least = ns;
    processor = processor_ns() - processor;
    if (processor < least_processor) least_processor = processor;
    device->vtable->free(device, &memory);
  }
  print("add 16M f32 into fresh memory", least, least_processor, 12.0 * (double)n);
}

int main(int argc, char **argv) {
  chosen = argv + 1;
  chosen_count = argc - 1;
  if (mps_driver_host.open(&device) != MPS_STATUS_OK || device->vtable->create_queue(device, &queue) != MPS_STATUS_OK ||
      device->vtable->builtin_library(device, &library) != MPS_STATUS_OK) {
    fprintf(stderr, "%s\n", mps_error_message());
    return 1;
  }
  printf("%s, kernels %s, %u threads\n", device->name, device->kernel_level, (unsigned)device->limits.core_count);
  const int64_t most = 16 << 20;
  char *memory[4];
  for (int i = 0; i < 4; i++) {
    memory[i] = memory_of((uint64_t)most * 4);
    for (int64_t k = 0; k < most; k++) ((float *)(void *)memory[i])[k] = (float)((k * 37 + i * 11) % 1000) / 500.0f - 1.0f;
  }
  bench_add("add 8 f32", 8, MPS_DTYPE_F32, memory[0], memory[1], memory[3]);
  bench_add("add 1K f32", 1 << 10, MPS_DTYPE_F32, memory[0], memory[1], memory[3]);
  bench_add("add 64K f32", 1 << 16, MPS_DTYPE_F32, memory[0], memory[1], memory[3]);
  bench_add("add 1M f32", 1 << 20, MPS_DTYPE_F32, memory[0], memory[1], memory[3]);
  bench_add("add 4M f32", 4 << 20, MPS_DTYPE_F32, memory[0], memory[1], memory[3]);
  bench_add("add 16M f32", most, MPS_DTYPE_F32, memory[0], memory[1], memory[3]);
  bench_fresh(most, memory[0], memory[1]);
  bench_scale("scale 8 f32", 8, memory[0], memory[3]);
  bench_scale("scale 64K f32", 1 << 16, memory[0], memory[3]);
  bench_scale("scale 4M f32", 4 << 20, memory[0], memory[3]);
  bench_chain("chain of six, 8 f32", 8, MPS_DTYPE_F32, memory[0], memory[1], memory[2], memory[3]);
  bench_chain("chain of six, 64K f32", 1 << 16, MPS_DTYPE_F32, memory[0], memory[1], memory[2], memory[3]);
  bench_chain("chain of six, 1M f32", 1 << 20, MPS_DTYPE_F32, memory[0], memory[1], memory[2], memory[3]);
  bench_chain("chain of six, 4M f32", 4 << 20, MPS_DTYPE_F32, memory[0], memory[1], memory[2], memory[3]);
  bench_chain("chain of six, 16M f32", most, MPS_DTYPE_F32, memory[0], memory[1], memory[2], memory[3]);
  bench_strided(memory[0], memory[1], memory[3]);
  for (int i = 0; i < 4; i++) memset(memory[i], 0x3c, (size_t)most * 2); /* 1.06 in f16, 0.01 in bf16 */
  bench_add("add 4M f16", 4 << 20, MPS_DTYPE_F16, memory[0], memory[1], memory[3]);
  bench_add("add 4M bf16", 4 << 20, MPS_DTYPE_BF16, memory[0], memory[1], memory[3]);
  bench_chain("chain of six, 4M f16", 4 << 20, MPS_DTYPE_F16, memory[0], memory[1], memory[2], memory[3]);
  bench_chain("chain of six, 4M bf16", 4 << 20, MPS_DTYPE_BF16, memory[0], memory[1], memory[2], memory[3]);
  device->vtable->destroy_queue(queue);
  return 0;
}
