/* SPDX-License-Identifier: BSD-3-Clause
 *
 * graph: graphs against straight kernels for the same operators, turn by turn in one process. Prints the least processor time of all threads
 * (wall time on a quiet machine is that by the threads). Names as arguments choose cases; OPENMPS_THREADS as usual.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "openmps/graph.h"
#include "openmps/ops.h"

typedef mps_graph_node node;
static mps_device *device;
static mps_stream *stream;
static int chosen_count;
static char **chosen;

static void check(mps_status status) {
  if (status == MPS_STATUS_OK) return;
  fprintf(stderr, "%s\n", mps_error_message());
  exit(1);
}

static mps_tensor make(mps_dtype dtype, uint32_t rank, const int64_t *sizes) {
  mps_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.dtype = dtype;
  mps_tensor_set_contiguous(&tensor, rank, sizes);
  const size_t item = mps_dtype_size(dtype), count = (size_t)mps_tensor_element_count(&tensor);
  check(mps_buffer_create(device, stream, count * item, &tensor.buffer));
  check(mps_stream_synchronize(stream));
  for (size_t i = 0; i < count; i++)
    mps_scalar_store(mps_scalar_float((double)(i * 2654435761u % 1000) / 250 - 2), dtype, (char *)mps_buffer_contents(tensor.buffer) + i * item);
  return tensor;
}

static double processor_time(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* ---- a case: tensors, a graph, and the operator ---- */
typedef struct bench {
  const char *name;
  mps_tensor in[8], out[4], straight[4];
  uint32_t in_count, out_count;
  mps_graph *graph;
  int64_t shape[MPS_MAX_RANK];
  uint32_t rank;
  mps_dtype dtype;
} bench;

typedef void (*operator_function)(bench *b);

static double difference(const bench *b) {
  double most = 0;
  for (uint32_t o = 0; o < b->out_count; o++) {
    if (b->out[o].dtype != MPS_DTYPE_F32) continue;
    const float *x = mps_buffer_contents(b->out[o].buffer), *y = mps_buffer_contents(b->straight[o].buffer);
    for (int64_t i = 0; i < mps_tensor_element_count(&b->out[o]); i++) {
      const double d = fabs((double)x[i] - (double)y[i]) / (1 + fabs((double)y[i]));
      if (d > most) most = d;
    }
  }
  return most;
}

static void measure(bench *b, operator_function op) {
  double graph = 1e30, straight = 1e30;
  const double elements = (double)mps_tensor_element_count(&b->in[0]);
  int rounds = elements > 1e6 ? 9 : 25, repeats = elements > 1e5 ? 1 : 50;
  for (int i = 0; i < rounds; i++) {
    double t = processor_time();
    for (int k = 0; k < repeats; k++) check(mps_graph_run(b->graph, stream, b->in, b->in_count, NULL, 0, b->out, b->out_count));
    check(mps_stream_synchronize(stream));
    t = (processor_time() - t) / repeats;
    if (t < graph) graph = t;
    t = processor_time();
    for (int k = 0; k < repeats; k++) op(b);
    check(mps_stream_synchronize(stream));
    t = (processor_time() - t) / repeats;
    if (t < straight) straight = t;
  }
  printf("%-34s %3u steps  graph %9.1f us  straight %9.1f us  ratio %5.2f  difference %.1e\n", b->name, mps_graph_step_count(b->graph), graph, straight,
         straight / graph, difference(b));
  mps_graph_release(b->graph);
  for (uint32_t i = 0; i < b->in_count; i++) mps_buffer_release(b->in[i].buffer);
  for (uint32_t o = 0; o < b->out_count; o++) {
    mps_buffer_release(b->out[o].buffer);
    mps_buffer_release(b->straight[o].buffer);
  }
}

static void add_in(bench *b, mps_tensor tensor) { b->in[b->in_count++] = tensor; }
static void add_out(bench *b, mps_dtype dtype, uint32_t rank, const int64_t *sizes) {
  b->out[b->out_count] = make(dtype, rank, sizes);
  b->straight[b->out_count++] = make(dtype, rank, sizes);
}

static node unary(mps_graph_builder *g, const char *name, node x) { return mps_graph_formula(g, name, &x, NULL); }
static node binary(mps_graph_builder *g, const char *name, node x, node y) { return mps_graph_formula(g, name, (node[]){x, y}, NULL); }
static node number(mps_graph_builder *g, double x) { return mps_graph_constant(g, mps_scalar_float(x)); }
static node input(mps_graph_builder *g, const bench *b, uint32_t i) { return mps_graph_input(g, b->in[i].dtype, b->in[i].rank, b->in[i].sizes); }
static node wide(mps_graph_builder *g, node x) { return mps_graph_cast(g, x, MPS_DTYPE_F32); }
static node mean_of(mps_graph_builder *g, node x, const int64_t *d, uint32_t n) { return mps_graph_reduce(g, MPS_GRAPH_MEAN, x, d, n, true); }
static node sum_of(mps_graph_builder *g, node x, const int64_t *d, uint32_t n) { return mps_graph_reduce(g, MPS_GRAPH_SUM, x, d, n, true); }

static void compile(bench *b, mps_graph_builder *g) {
  check(mps_graph_compile(g, &b->graph));
  mps_graph_builder_destroy(g);
}

static mps_graph_builder *begin(void) {
  mps_graph_builder *g;
  check(mps_graph_builder_create(device, "bench", &g));
  return g;
}

/* ---- layer norm ---- */
static void layer_norm_op(bench *b) {
  check(mps_op_layer_norm(stream, &b->in[0], b->shape + 1, 1, &b->in[1], &b->in[2], 1e-5, &b->straight[0], &b->straight[1], &b->straight[2]));
}

static void layer_norm(bench *b) {
  const int64_t kept[] = {b->shape[0], 1}, dims[] = {1};
  add_in(b, make(b->dtype, 2, b->shape));
  add_in(b, make(MPS_DTYPE_F32, 1, b->shape + 1));
  add_in(b, make(MPS_DTYPE_F32, 1, b->shape + 1));
  add_out(b, b->dtype, 2, b->shape);
  add_out(b, MPS_DTYPE_F32, 2, kept);
  add_out(b, MPS_DTYPE_F32, 2, kept);
  mps_graph_builder *g = begin();
  node x = wide(g, input(g, b, 0)), weight = input(g, b, 1), bias = input(g, b, 2);
  node mean = mean_of(g, x, dims, 1), centred = binary(g, "sub", x, mean);
  node rstd = unary(g, "rsqrt", binary(g, "add", mean_of(g, binary(g, "mul", centred, centred), dims, 1), number(g, 1e-5)));
  mps_graph_output(g, binary(g, "add", binary(g, "mul", binary(g, "mul", centred, rstd), weight), bias), b->dtype);
  mps_graph_output(g, mean, MPS_DTYPE_F32);
  mps_graph_output(g, rstd, MPS_DTYPE_F32);
  compile(b, g);
  measure(b, layer_norm_op);
}

static void layer_norm_backward_op(bench *b) {
  check(mps_op_layer_norm_backward(stream, &b->in[0], &b->in[1], b->shape + 1, 1, &b->in[2], &b->in[3], &b->in[4], &b->straight[0], &b->straight[1],
                                   &b->straight[2]));
}

static void layer_norm_backward(bench *b) {
  const int64_t kept[] = {b->shape[0], 1}, row[] = {1}, column[] = {0};
  add_in(b, make(b->dtype, 2, b->shape));
  add_in(b, make(b->dtype, 2, b->shape));
  add_in(b, make(MPS_DTYPE_F32, 2, kept));
  add_in(b, make(MPS_DTYPE_F32, 2, kept));
  add_in(b, make(MPS_DTYPE_F32, 1, b->shape + 1));
  add_out(b, b->dtype, 2, b->shape);
  add_out(b, MPS_DTYPE_F32, 1, b->shape + 1);
  add_out(b, MPS_DTYPE_F32, 1, b->shape + 1);
  mps_graph_builder *g = begin();
  node grad = wide(g, input(g, b, 0)), x = wide(g, input(g, b, 1)), mean = input(g, b, 2), rstd = input(g, b, 3), weight = input(g, b, 4);
  node hat = binary(g, "mul", binary(g, "sub", x, mean), rstd), gw = binary(g, "mul", grad, weight);
  node a = mean_of(g, gw, row, 1), c = mean_of(g, binary(g, "mul", gw, hat), row, 1);
  node dx = binary(g, "mul", binary(g, "sub", binary(g, "sub", gw, a), binary(g, "mul", hat, c)), rstd);
  mps_graph_output(g, dx, b->dtype);
  mps_graph_output(g, mps_graph_reduce(g, MPS_GRAPH_SUM, binary(g, "mul", grad, hat), column, 1, false), MPS_DTYPE_F32);
  mps_graph_output(g, mps_graph_reduce(g, MPS_GRAPH_SUM, grad, column, 1, false), MPS_DTYPE_F32);
  compile(b, g);
  measure(b, layer_norm_backward_op);
}

/* ---- batch norm: [N, C, S], or with the channels last ---- */
static bool channels_last;
static mps_tensor image(const bench *b) {
  mps_tensor x = make(b->dtype, 3, b->shape);
  if (!channels_last) return x;
  x.strides[1] = 1;
  x.strides[2] = b->shape[1];
  return x;
}

static void batch_norm_op(bench *b) {
  check(mps_op_batch_norm(stream, &b->in[0], &b->in[1], &b->in[2], NULL, NULL, true, 0.1, 1e-5, &b->straight[0], &b->straight[1], &b->straight[2]));
}

static void batch_norm(bench *b) {
  const int64_t dims[] = {0, 2}, *channels = b->shape + 1;
  const int column[] = {0, -1}, flat[] = {1};
  add_in(b, image(b));
  add_in(b, make(MPS_DTYPE_F32, 1, channels));
  add_in(b, make(MPS_DTYPE_F32, 1, channels));
  b->out[b->out_count] = image(b);
  b->straight[b->out_count++] = image(b);
  add_out(b, MPS_DTYPE_F32, 1, channels);
  add_out(b, MPS_DTYPE_F32, 1, channels);
  mps_graph_builder *g = begin();
  node x = wide(g, input(g, b, 0)), weight = mps_graph_arrange(g, input(g, b, 1), 2, column), bias = mps_graph_arrange(g, input(g, b, 2), 2, column);
  node mean = mean_of(g, x, dims, 2), centred = binary(g, "sub", x, mean);
  node rstd = unary(g, "rsqrt", binary(g, "add", mean_of(g, binary(g, "mul", centred, centred), dims, 2), number(g, 1e-5)));
  node scale = binary(g, "mul", rstd, weight), shift = binary(g, "sub", bias, binary(g, "mul", mean, scale));
  mps_graph_output(g, binary(g, "add", binary(g, "mul", x, scale), shift), b->dtype);
  mps_graph_output(g, mps_graph_arrange(g, mean, 1, flat), MPS_DTYPE_F32);
  mps_graph_output(g, mps_graph_arrange(g, rstd, 1, flat), MPS_DTYPE_F32);
  compile(b, g);
  measure(b, batch_norm_op);
}

static void batch_norm_backward_op(bench *b) {
  check(mps_op_batch_norm_backward(stream, &b->in[0], &b->in[1], &b->in[2], NULL, NULL, &b->in[3], &b->in[4], true, 1e-5, &b->straight[0], &b->straight[1],
                                   &b->straight[2]));
}

static void batch_norm_backward(bench *b) {
  const int64_t dims[] = {0, 2}, *channels = b->shape + 1;
  const int column[] = {0, -1}, flat[] = {1};
  add_in(b, image(b));
  add_in(b, image(b));
  for (int i = 0; i < 3; i++) add_in(b, make(MPS_DTYPE_F32, 1, channels));
  b->out[b->out_count] = image(b);
  b->straight[b->out_count++] = image(b);
  add_out(b, MPS_DTYPE_F32, 1, channels);
  add_out(b, MPS_DTYPE_F32, 1, channels);
  mps_graph_builder *g = begin();
  node grad = wide(g, input(g, b, 0)), x = wide(g, input(g, b, 1)), weight = mps_graph_arrange(g, input(g, b, 2), 2, column);
  node mean = mps_graph_arrange(g, input(g, b, 3), 2, column), rstd = mps_graph_arrange(g, input(g, b, 4), 2, column);
  node sum = sum_of(g, grad, dims, 2), product = sum_of(g, binary(g, "mul", grad, binary(g, "sub", x, mean)), dims, 2);
  const double count = (double)(b->shape[0] * b->shape[2]);
  node scale = binary(g, "mul", weight, rstd), slope = binary(g, "mul", binary(g, "mul", product, binary(g, "mul", rstd, rstd)), number(g, 1 / count));
  node shift = binary(g, "sub", binary(g, "mul", slope, mean), binary(g, "mul", sum, number(g, 1 / count)));
  node dx = binary(g, "mul", binary(g, "add", binary(g, "sub", grad, binary(g, "mul", x, slope)), shift), scale);
  mps_graph_output(g, dx, b->dtype);
  mps_graph_output(g, mps_graph_arrange(g, binary(g, "mul", product, rstd), 1, flat), MPS_DTYPE_F32);
  mps_graph_output(g, mps_graph_arrange(g, sum, 1, flat), MPS_DTYPE_F32);
  compile(b, g);
  measure(b, batch_norm_backward_op);
}

/* ---- cross entropy of class targets, mean: log_softmax kept for the gradient ---- */
static mps_tensor total_weight;
static void cross_entropy_op(bench *b) {
  check(mps_op_log_softmax(stream, &b->in[0], 1, false, &b->straight[1]));
  check(mps_op_nll_loss_forward(stream, &b->straight[1], &b->in[1], NULL, 1, -100, &b->straight[0], &total_weight));
}

static void cross_entropy(bench *b) {
  const int64_t row[] = {1}, rows[] = {b->shape[0], 1};
  add_in(b, make(b->dtype, 2, b->shape));
  add_in(b, make(MPS_DTYPE_I64, 1, b->shape));
  add_in(b, make(MPS_DTYPE_I64, 1, b->shape + 1));
  for (int64_t i = 0; i < b->shape[0]; i++) ((int64_t *)mps_buffer_contents(b->in[1].buffer))[i] = i % b->shape[1];
  for (int64_t i = 0; i < b->shape[1]; i++) ((int64_t *)mps_buffer_contents(b->in[2].buffer))[i] = i;
  add_out(b, MPS_DTYPE_F32, 0, rows);
  add_out(b, b->dtype, 2, b->shape);
  total_weight = make(MPS_DTYPE_F32, 0, rows);
  mps_graph_builder *g = begin();
  node x = wide(g, input(g, b, 0)), target = mps_graph_cast(g, mps_graph_arrange(g, input(g, b, 1), 2, (int[]){0, -1}), MPS_DTYPE_I32);
  node place = mps_graph_cast(g, input(g, b, 2), MPS_DTYPE_I32);
  node most = mps_graph_reduce(g, MPS_GRAPH_MAX, x, row, 1, true), low = binary(g, "sub", x, most);
  node logarithm = unary(g, "log", sum_of(g, unary(g, "exp", low), row, 1)), y = binary(g, "sub", low, logarithm);
  node hit = mps_graph_formula(g, "where", (node[]){binary(g, "eq", place, target), y, number(g, 0)}, NULL);
  mps_graph_output(g, unary(g, "neg", binary(g, "div", mps_graph_reduce(g, MPS_GRAPH_SUM, hit, NULL, 0, false), number(g, (double)b->shape[0]))), MPS_DTYPE_F32);
  mps_graph_output(g, y, b->dtype);
  compile(b, g);
  measure(b, cross_entropy_op);
  mps_buffer_release(total_weight.buffer);
}

static void run(const char *name, void (*function)(bench *b), mps_dtype dtype, uint32_t rank, int64_t n, int64_t c, int64_t s) {
  char text[64];
  snprintf(text, sizeof text, "%s%s %s %lldx%lld%s%lld", name, channels_last ? "_last" : "", mps_dtype_name(dtype), (long long)n, (long long)c,
           rank == 3 ? "x" : "", (long long)s);
  if (rank == 2) snprintf(text, sizeof text, "%s %s %lldx%lld", name, mps_dtype_name(dtype), (long long)n, (long long)c);
  bool wanted = chosen_count == 0;
  for (int i = 0; i < chosen_count; i++) wanted = wanted || strstr(text, chosen[i]);
  if (!wanted) return;
  bench b = {.name = text, .shape = {n, c, s}, .rank = rank, .dtype = dtype};
  function(&b);
}

int main(int argc, char **argv) {
  chosen_count = argc - 1;
  chosen = argv + 1;
  check(mps_device_open("host", &device));
  stream = mps_stream_default(device);
  for (int t = 0; t < 2; t++) {
    const mps_dtype dtype = t ? MPS_DTYPE_F16 : MPS_DTYPE_F32;
    run("layer_norm", layer_norm, dtype, 2, 64, 256, 0);
    run("layer_norm", layer_norm, dtype, 2, 4096, 768, 0);
    run("layer_norm_backward", layer_norm_backward, dtype, 2, 64, 256, 0);
    run("layer_norm_backward", layer_norm_backward, dtype, 2, 4096, 768, 0);
    for (int last = 0; last < 2; last++) {
      channels_last = last;
      run("batch_norm", batch_norm, dtype, 3, 8, 16, 64);
      run("batch_norm", batch_norm, dtype, 3, 32, 64, 3136);
      run("batch_norm", batch_norm, dtype, 3, 32, 512, 49);
      run("batch_norm_backward", batch_norm_backward, dtype, 3, 8, 16, 64);
      run("batch_norm_backward", batch_norm_backward, dtype, 3, 32, 64, 3136);
      run("batch_norm_backward", batch_norm_backward, dtype, 3, 32, 512, 49);
    }
    channels_last = false;
    run("cross_entropy", cross_entropy, dtype, 2, 64, 10, 0);
    run("cross_entropy", cross_entropy, dtype, 2, 1024, 1000, 0);
    run("cross_entropy", cross_entropy, dtype, 2, 256, 32000, 0);
  }
  mps_device_release(device);
  return 0;
}
