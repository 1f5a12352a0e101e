/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Graphs: what is inferred and fused, values against formulas in double, equality with the same graph unfused, aliasing, the cache.
 */
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "base/options.h"
#include "base/thread.h"
#include "graph/graph.h"
#include "runtime/buffer.h"

typedef mps_graph_node node;

static mps_device *device;
static mps_stream *stream;

/* ---- tensors ---- */
static uint32_t random_state = 1;
static double random_number(void) {
  random_state = random_state * 1664525u + 1013904223u;
  return (double)(random_state >> 8) / (double)(1 << 24) * 4.0 - 2.0;
}

static mps_tensor make(mps_dtype dtype, uint32_t rank, const int64_t *sizes) {
  mps_tensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.dtype = dtype;
  mps_tensor_set_contiguous(&tensor, rank, sizes);
  size_t bytes = (size_t)mps_tensor_element_count(&tensor) * mps_dtype_size(dtype);
  CHECK_OK(mps_buffer_create(device, stream, bytes ? bytes : 1, &tensor.buffer));
  return tensor;
}

static mps_tensor make_random(mps_dtype dtype, uint32_t rank, const int64_t *sizes) {
  mps_tensor tensor = make(dtype, rank, sizes);
  unsigned char *bytes = mps_buffer_contents(tensor.buffer);
  CHECK_OK(mps_stream_synchronize(stream));
  for (int64_t i = 0; i < mps_tensor_element_count(&tensor); i++)
    mps_scalar_store(mps_scalar_float(random_number() * (mps_dtype_is_floating(dtype) ? 1 : 40)), dtype, bytes + (size_t)i * mps_dtype_size(dtype));
  return tensor;
}

static float *floats(const mps_tensor *tensor) { return (float *)mps_buffer_contents(tensor->buffer); }

static bool same_bytes(const mps_tensor *a, const mps_tensor *b) {
  return memcmp(mps_buffer_contents(a->buffer), mps_buffer_contents(b->buffer), (size_t)mps_tensor_element_count(a) * mps_dtype_size(a->dtype)) == 0;
}

static void release(mps_tensor *tensors, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) mps_buffer_release(tensors[i].buffer);
}

/* ---- graphs ---- */
typedef void (*build_function)(mps_graph_builder *b, const int64_t *sizes);

static mps_graph *compile(build_function build, const int64_t *sizes, uint32_t options) {
  mps_graph_builder *b;
  mps_graph *graph = NULL;
  CHECK_OK(mps_graph_builder_create(device, "test", &b));
  b->options = options | MPS_GRAPH_UNCACHED;
  build(b, sizes);
  CHECK_OK(mps_graph_compile(b, &graph));
  mps_graph_builder_destroy(b);
  return graph;
}

static void run(const mps_graph *graph, const mps_tensor *inputs, uint32_t input_count, const mps_tensor *outputs, uint32_t output_count) {
  CHECK_OK(mps_graph_run(graph, stream, inputs, input_count, NULL, 0, outputs, output_count));
  CHECK_OK(mps_stream_synchronize(stream));
}

static node unary(mps_graph_builder *b, const char *name, node x) { return mps_graph_formula(b, name, &x, NULL); }
static node binary(mps_graph_builder *b, const char *name, node x, node y) { return mps_graph_formula(b, name, (node[]){x, y}, NULL); }
static node number(mps_graph_builder *b, double x) { return mps_graph_constant(b, mps_scalar_float(x)); }

/* y = (x + bias) * sigmoid(x) in the dtype of x, also as f32. */
static mps_dtype chain_dtype;
static void build_chain(mps_graph_builder *b, const int64_t *sizes) {
  node x = mps_graph_input(b, chain_dtype, 2, sizes), bias = mps_graph_input(b, chain_dtype, 1, sizes + 1);
  node y = binary(b, "mul", binary(b, "add", x, bias), unary(b, "sigmoid", x));
  mps_graph_output(b, y, chain_dtype);
  mps_graph_output(b, binary(b, "mul", y, number(b, 0.1)), MPS_DTYPE_F32);
}

static void fuses_pointwise(void) {
  const int64_t sizes[] = {37, 130};
  const mps_dtype dtypes[] = {MPS_DTYPE_F32, MPS_DTYPE_F16, MPS_DTYPE_BF16};
  for (int t = 0; t < 3; t++) {
    chain_dtype = dtypes[t];
    mps_graph *fused = compile(build_chain, sizes, 0), *plain = compile(build_chain, sizes, MPS_GRAPH_UNFUSED);
    CHECK_INT(fused->stage_count, 1);
    CHECK_INT(mps_graph_scratch_bytes(fused), 0);
    CHECK(plain->stage_count >= 4);
    mps_tensor in[] = {make_random(chain_dtype, 2, sizes), make_random(chain_dtype, 1, sizes + 1)};
    mps_tensor out[] = {make(chain_dtype, 2, sizes), make(MPS_DTYPE_F32, 2, sizes), make(chain_dtype, 2, sizes), make(MPS_DTYPE_F32, 2, sizes)};
    run(fused, in, 2, out, 2);
    run(plain, in, 2, out + 2, 2);
    CHECK(same_bytes(&out[0], &out[2]));
    CHECK(same_bytes(&out[1], &out[3]));
    if (t == 0) {
      for (int64_t i = 0; i < 37 * 130; i++) {
        double x = (double)floats(&in[0])[i], y = (x + (double)floats(&in[1])[i % 130]) / (1 + exp(-x));
        CHECK(fabs(y - (double)floats(&out[0])[i]) < 2e-6 * (1 + fabs(y)));
      }
    }
    release(in, 2);
    release(out, 4);
    mps_graph_release(fused);
    mps_graph_release(plain);
  }
}

/* ---- reductions ---- */
static int64_t reduce_dimensions[MPS_MAX_RANK];
static uint32_t reduce_rank, reduce_count;
static mps_graph_reduction reduction;
static mps_dtype reduce_dtype;
static void build_reduce(mps_graph_builder *b, const int64_t *sizes) {
  node x = mps_graph_input(b, reduce_dtype, reduce_rank, sizes);
  node y = binary(b, "mul", x, x);
  node sum = mps_graph_reduce(b, reduction, y, reduce_dimensions, reduce_count, false);
  mps_graph_output(b, sum, MPS_DTYPE_F32);
}

/* Sums of squares in double. `strides` of the input. */
static void check_squares(const mps_tensor *x, const mps_tensor *out) {
  int64_t kept[MPS_MAX_RANK], index[MPS_MAX_RANK] = {0};
  uint32_t mask = 0;
  for (uint32_t i = 0; i < reduce_count; i++) mask |= 1u << reduce_dimensions[i];
  int64_t stride = 1;
  for (uint32_t d = x->rank; d-- > 0;) {
    kept[d] = mask >> d & 1u ? 0 : stride;
    if (!(mask >> d & 1u)) stride *= x->sizes[d];
  }
  double *sums = calloc((size_t)stride, sizeof *sums);
  int64_t count = mps_tensor_element_count(x);
  for (int64_t i = 0; i < count; i++) {
    int64_t from = 0, to = 0;
    for (uint32_t d = 0; d < x->rank; d++) {
      from += index[d] * x->strides[d];
      to += index[d] * kept[d];
    }
    double v = (double)floats(x)[from];
    sums[to] += v * v;
    for (uint32_t d = x->rank; d-- > 0 && ++index[d] == x->sizes[d];) index[d] = 0;
  }
  double divisor = reduction == MPS_GRAPH_MEAN ? (double)(count / stride) : 1.0;
  for (int64_t o = 0; o < stride; o++) CHECK(fabs(sums[o] / divisor - (double)floats(out)[o]) <= 2e-6 * (1e-3 + fabs(sums[o] / divisor)));
  free(sums);
}

static void reduce_case(uint32_t rank, const int64_t *sizes, uint32_t mask, int transposed) {
  int64_t kept[MPS_MAX_RANK];
  uint32_t kept_rank = 0;
  reduce_rank = rank;
  reduce_count = 0;
  for (uint32_t d = 0; d < rank; d++) {
    if (mask >> d & 1u)
      reduce_dimensions[reduce_count++] = d;
    else
      kept[kept_rank++] = sizes[d];
  }
  mps_tensor x = make_random(MPS_DTYPE_F32, rank, sizes);
  if (transposed) { /* strides of the dimensions in the opposite order */
    int64_t stride = 1;
    for (uint32_t d = 0; d < rank; d++) {
      x.strides[d] = stride;
      stride *= sizes[d];
    }
  }
  mps_tensor out[] = {make(MPS_DTYPE_F32, kept_rank, kept), make(MPS_DTYPE_F32, kept_rank, kept)};
  mps_graph *fused = compile(build_reduce, sizes, 0), *plain = compile(build_reduce, sizes, MPS_GRAPH_UNFUSED);
  run(fused, &x, 1, &out[0], 1);
  run(plain, &x, 1, &out[1], 1);
  check_squares(&x, &out[0]);
  CHECK(same_bytes(&out[0], &out[1]));
  release(&x, 1);
  release(out, 2);
  mps_graph_release(fused);
  mps_graph_release(plain);
}

static void reduces(void) {
  static const struct {
    uint32_t rank;
    int64_t sizes[4];
    uint32_t mask;
  } cases[] = {
      {1, {1}, 1},          {1, {100000}, 1},       {1, {7}, 1},           {2, {33, 100}, 2},      {2, {33, 100}, 1},  {2, {3, 30000}, 2}, {2, {30000, 3}, 1},
      {2, {9000, 300}, 1},  {2, {5, 1025}, 2},      {3, {4, 6, 50}, 5},    {3, {4, 600, 50}, 2},   {4, {2, 3, 4, 5}, 10}, {4, {8, 16, 7, 7}, 13},
      {4, {2, 64, 40, 40}, 13}, {2, {64, 1}, 1},    {2, {1, 64}, 2},       {2, {17, 2000}, 1},     {3, {2, 3, 700}, 1},   {2, {70000, 20}, 1},
  };
  reduce_dtype = MPS_DTYPE_F32;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    for (int transposed = 0; transposed < 2; transposed++) {
      reduction = i % 2 ? MPS_GRAPH_SUM : MPS_GRAPH_MEAN;
      reduce_case(cases[i].rank, cases[i].sizes, cases[i].mask, transposed);
    }
  }
}

static mps_dtype kind_dtype;
static void build_kinds(mps_graph_builder *b, const int64_t *sizes) {
  node x = mps_graph_input(b, kind_dtype, 2, sizes);
  for (int k = MPS_GRAPH_SUM; k <= MPS_GRAPH_MAX; k++) {
    if (k == MPS_GRAPH_MEAN && !mps_dtype_is_floating(kind_dtype)) continue;
    node y = mps_graph_reduce(b, (mps_graph_reduction)k, x, (int64_t[]){1}, 1, true);
    mps_dtype dtype;
    CHECK(mps_graph_describe(b, y, &dtype, NULL, NULL));
    bool widens = !mps_dtype_is_floating(kind_dtype) && (k == MPS_GRAPH_SUM || k == MPS_GRAPH_PROD);
    CHECK_INT(dtype, widens ? MPS_DTYPE_I64 : kind_dtype);
    mps_graph_output(b, y, MPS_DTYPE_F32);
  }
}

static void reduces_all_kinds(void) {
  const int64_t sizes[] = {3, 5}, kept[] = {3, 1};
  kind_dtype = MPS_DTYPE_I32;
  mps_graph *graph = compile(build_kinds, sizes, 0);
  mps_tensor x = make_random(MPS_DTYPE_I32, 2, sizes), out[4];
  for (int i = 0; i < 4; i++) out[i] = make(MPS_DTYPE_F32, 2, kept);
  run(graph, &x, 1, out, 4);
  const int32_t *values = mps_buffer_contents(x.buffer);
  for (int r = 0; r < 3; r++) {
    int64_t sum = 0, product = 1, least = INT64_MAX, most = INT64_MIN;
    for (int c = 0; c < 5; c++) {
      int64_t v = values[r * 5 + c];
      sum += v;
      product *= v;
      least = v < least ? v : least;
      most = v > most ? v : most;
    }
    CHECK_INT(floats(&out[0])[r], sum);
    CHECK(floats(&out[1])[r] == (float)product);
    CHECK_INT(floats(&out[2])[r], least);
    CHECK_INT(floats(&out[3])[r], most);
  }
  release(&x, 1);
  release(out, 4);
  mps_graph_release(graph);
  kind_dtype = MPS_DTYPE_F32;
  graph = compile(build_kinds, sizes, 0);
  mps_tensor y = make_random(MPS_DTYPE_F32, 2, sizes), o[5];
  for (int i = 0; i < 5; i++) o[i] = make(MPS_DTYPE_F32, 2, kept);
  floats(&y)[7] = NAN;
  run(graph, &y, 1, o, 5);
  for (int k = 0; k < 5; k++) {
    CHECK(!isnan(floats(&o[k])[0]) && isnan(floats(&o[k])[1]) && !isnan(floats(&o[k])[2]));
  }
  CHECK(floats(&o[3])[0] <= floats(&o[1])[0] && floats(&o[1])[0] <= floats(&o[4])[0]);
  release(&y, 1);
  release(o, 5);
  mps_graph_release(graph);
}

static void build_empty(mps_graph_builder *b, const int64_t *sizes) {
  node x = mps_graph_input(b, MPS_DTYPE_F32, 2, sizes);
  mps_graph_output(b, mps_graph_reduce(b, MPS_GRAPH_SUM, x, (int64_t[]){1}, 1, false), MPS_DTYPE_F32);
  mps_graph_output(b, mps_graph_reduce(b, MPS_GRAPH_PROD, x, (int64_t[]){1}, 1, false), MPS_DTYPE_F32);
}

static void reduces_nothing(void) {
  const int64_t sizes[] = {3, 0}, none[] = {0, 3};
  mps_graph *graph = compile(build_empty, sizes, 0);
  mps_tensor x = make(MPS_DTYPE_F32, 2, sizes), out[] = {make(MPS_DTYPE_F32, 1, sizes), make(MPS_DTYPE_F32, 1, sizes)};
  run(graph, &x, 1, out, 2);
  for (int i = 0; i < 3; i++) CHECK(floats(&out[0])[i] == 0.0f && floats(&out[1])[i] == 1.0f);
  mps_graph_release(graph);
  release(&x, 1);
  release(out, 2);
  graph = compile(build_empty, none, 0);
  mps_tensor y = make(MPS_DTYPE_F32, 2, none), o[] = {make(MPS_DTYPE_F32, 1, none), make(MPS_DTYPE_F32, 1, none)};
  run(graph, &y, 1, o, 2);
  mps_graph_release(graph);
  release(&y, 1);
  release(o, 2);
}

/* ---- stages by rows ---- */
static mps_dtype norm_dtype;
static void build_norm(mps_graph_builder *b, const int64_t *sizes) {
  node x = mps_graph_input(b, norm_dtype, 2, sizes), weight = mps_graph_input(b, norm_dtype, 1, sizes + 1), bias = mps_graph_input(b, norm_dtype, 1, sizes + 1);
  node wide = mps_graph_cast(b, x, MPS_DTYPE_F32);
  node mean = mps_graph_reduce(b, MPS_GRAPH_MEAN, wide, (int64_t[]){1}, 1, true);
  node centred = binary(b, "sub", wide, mean);
  node variance = mps_graph_reduce(b, MPS_GRAPH_MEAN, binary(b, "mul", centred, centred), (int64_t[]){1}, 1, true);
  node inverse = unary(b, "rsqrt", binary(b, "add", variance, number(b, 1e-5)));
  node y = binary(b, "add", binary(b, "mul", binary(b, "mul", centred, inverse), weight), bias);
  mps_graph_output(b, y, norm_dtype);
  mps_graph_output(b, mean, MPS_DTYPE_F32);
  mps_graph_output(b, inverse, MPS_DTYPE_F32);
}

static void norm_case(int64_t rows, int64_t columns, mps_dtype dtype) {
  const int64_t sizes[] = {rows, columns}, kept[] = {rows, 1};
  norm_dtype = dtype;
  mps_graph *graphs[] = {compile(build_norm, sizes, MPS_GRAPH_ALL_ROWS), compile(build_norm, sizes, MPS_GRAPH_NO_ROWS), compile(build_norm, sizes, MPS_GRAPH_UNFUSED)};
  CHECK_INT(mps_graph_step_count(graphs[0]), rows > 1 && columns > 1 ? 1 : mps_graph_step_count(graphs[0]));
  mps_tensor in[] = {make_random(dtype, 2, sizes), make_random(dtype, 1, sizes + 1), make_random(dtype, 1, sizes + 1)}, out[9];
  for (int g = 0; g < 3; g++) {
    out[3 * g] = make(dtype, 2, sizes);
    out[3 * g + 1] = make(MPS_DTYPE_F32, 2, kept);
    out[3 * g + 2] = make(MPS_DTYPE_F32, 2, kept);
    run(graphs[g], in, 3, out + 3 * g, 3);
    for (int i = 0; g && i < 3; i++) CHECK(same_bytes(&out[i], &out[3 * g + i]));
  }
  for (int64_t r = 0; dtype == MPS_DTYPE_F32 && r < rows; r++) {
    const float *x = floats(&in[0]) + r * columns;
    double mean = 0, variance = 0;
    for (int64_t c = 0; c < columns; c++) mean += (double)x[c] / (double)columns;
    for (int64_t c = 0; c < columns; c++) variance += ((double)x[c] - mean) * ((double)x[c] - mean) / (double)columns;
    CHECK(fabs(mean - (double)floats(&out[1])[r]) < 1e-6);
    for (int64_t c = 0; c < columns; c++) {
      double y = ((double)x[c] - mean) / sqrt(variance + 1e-5) * (double)floats(&in[1])[c] + (double)floats(&in[2])[c];
      CHECK(fabs(y - (double)floats(&out[0])[r * columns + c]) < 2e-5 * (1 + fabs(y)));
    }
  }
  for (int g = 0; g < 3; g++) mps_graph_release(graphs[g]);
  release(in, 3);
  release(out, 9);
}

static void goes_by_rows(void) {
  norm_case(40, 96, MPS_DTYPE_F32);
  norm_case(300, 768, MPS_DTYPE_F32);
  norm_case(3, 5000, MPS_DTYPE_F32);
  norm_case(2, 40000, MPS_DTYPE_F32);
  norm_case(1000, 8, MPS_DTYPE_F32);
  norm_case(1, 100, MPS_DTYPE_F32);
  norm_case(65, 130, MPS_DTYPE_F16);
  norm_case(65, 130, MPS_DTYPE_BF16);
}

/* ---- threads ---- */
static void build_both(mps_graph_builder *b, const int64_t *sizes) {
  node x = mps_graph_input(b, MPS_DTYPE_F32, 2, sizes), y = unary(b, "exp", x);
  for (int64_t d = 0; d < 2; d++) mps_graph_output(b, mps_graph_reduce(b, MPS_GRAPH_SUM, y, &d, 1, true), MPS_DTYPE_F32);
  mps_graph_output(b, mps_graph_reduce(b, MPS_GRAPH_SUM, y, NULL, 0, true), MPS_DTYPE_F32);
  mps_graph_output(b, binary(b, "div", y, mps_graph_reduce(b, MPS_GRAPH_SUM, y, (int64_t[]){1}, 1, true)), MPS_DTYPE_F32);
}

/* The four results behind each other. */
static float *results_with(const char *threads, int64_t rows, int64_t columns) {
  mps_device *before = device;
  mps_stream *stream_before = stream;
  mps_option_set(MPS_OPTION_THREADS, threads);
  CHECK_OK(mps_device_open("host", &device));
  mps_option_set(MPS_OPTION_THREADS, NULL);
  stream = mps_stream_default(device);
  random_state = 7;
  const int64_t sizes[4][2] = {{1, columns}, {rows, 1}, {1, 1}, {rows, columns}};
  mps_graph *graph = compile(build_both, sizes[3], MPS_GRAPH_ALL_ROWS);
  mps_tensor x = make_random(MPS_DTYPE_F32, 2, sizes[3]), out[4];
  for (int i = 0; i < 4; i++) out[i] = make(MPS_DTYPE_F32, 2, sizes[i]);
  run(graph, &x, 1, out, 4);
  float *all = malloc((size_t)(columns + rows + 1 + rows * columns) * sizeof *all), *at = all;
  for (int i = 0; i < 4; i++) {
    memcpy(at, floats(&out[i]), (size_t)mps_tensor_element_count(&out[i]) * sizeof *at);
    at += mps_tensor_element_count(&out[i]);
  }
  release(&x, 1);
  release(out, 4);
  mps_graph_release(graph);
  mps_device_release(device);
  device = before;
  stream = stream_before;
  return all;
}

static void is_the_same_on_all_threads(void) {
  static const int64_t shapes[][2] = {{3, 300000}, {100000, 7}, {1000, 1000}, {40000, 20}};
  for (int i = 0; i < 4; i++) {
    const int64_t rows = shapes[i][0], columns = shapes[i][1];
    float *one_thread = results_with("1", rows, columns), *many = results_with("7", rows, columns);
    CHECK(memcmp(one_thread, many, (size_t)(columns + rows + 1 + rows * columns) * sizeof *many) == 0);
    free(one_thread);
    free(many);
  }
}

/* ---- aliasing ---- */
static void build_shifted(mps_graph_builder *b, const int64_t *sizes) {
  node x = mps_graph_input(b, MPS_DTYPE_F32, 2, sizes);
  node sum = mps_graph_reduce(b, MPS_GRAPH_SUM, x, (int64_t[]){1}, 1, true);
  mps_graph_output(b, binary(b, "sub", x, sum), MPS_DTYPE_F32);
  mps_graph_output(b, binary(b, "add", mps_graph_arrange(b, x, 2, (int[]){1, 0}), x), MPS_DTYPE_F32);
}

static void keeps_what_is_read(void) {
  const int64_t sizes[] = {24, 24}, more[] = {25, 24};
  for (int shape = 0; shape < 3; shape++) {
    mps_graph *graph = compile(build_shifted, sizes, 0);
    mps_tensor whole = make_random(MPS_DTYPE_F32, 2, more), other = make(MPS_DTYPE_F32, 2, sizes);
    mps_tensor x = whole, out[2] = {whole, other};
    x.sizes[0] = out[0].sizes[0] = 24;
    if (shape == 1) out[0].offset = 24 * 4; /* one row further */
    if (shape == 2) {                       /* the second output over the input: it reads it transposed */
      out[0] = other;
      out[1] = x;
    }
    float old[25 * 24];
    memcpy(old, floats(&whole), sizeof old);
    run(graph, &x, 1, out, 2);
    for (int r = 0; r < 24; r++) {
      double sum = 0;
      for (int c = 0; c < 24; c++) sum += (double)old[r * 24 + c];
      for (int c = 0; c < 24; c++) {
        CHECK(fabs((double)floats(&out[0])[out[0].offset / 4 + (uint64_t)(r * 24 + c)] - ((double)old[r * 24 + c] - sum)) < 1e-4);
        CHECK(floats(&out[1])[r * 24 + c] == old[r * 24 + c] + old[c * 24 + r]);
      }
    }
    release(&whole, 1);
    release(&other, 1);
    mps_graph_release(graph);
  }
}

/* ---- numbers of a run ---- */
static void build_scaled(mps_graph_builder *b, const int64_t *sizes) {
  node x = mps_graph_input(b, MPS_DTYPE_I32, 1, sizes), factor = mps_graph_scalar(b, MPS_SCALAR_INT), more = mps_graph_scalar(b, MPS_SCALAR_FLOAT);
  node y = binary(b, "mul", x, factor);
  mps_dtype dtype;
  CHECK(mps_graph_describe(b, y, &dtype, NULL, NULL));
  CHECK_INT(dtype, MPS_DTYPE_I32);
  mps_graph_output(b, binary(b, "add", y, more), MPS_DTYPE_F32);
}

static mps_scalar one(void) { return mps_scalar_float(1.0); }

static void takes_numbers(void) {
  const int64_t sizes[] = {100};
  mps_graph *graph = compile(build_scaled, sizes, 0);
  mps_tensor x = make_random(MPS_DTYPE_I32, 1, sizes), out = make(MPS_DTYPE_F32, 1, sizes);
  for (int factor = -1; factor < 3; factor++) {
    const mps_scalar scalars[] = {mps_scalar_int(factor), mps_scalar_float(0.5 * factor)};
    CHECK_OK(mps_graph_run(graph, stream, &x, 1, scalars, 2, &out, 1));
    CHECK_OK(mps_stream_synchronize(stream));
    const int32_t *values = mps_buffer_contents(x.buffer);
    for (int i = 0; i < 100; i++) CHECK(floats(&out)[i] == (float)(values[i] * factor) + 0.5f * (float)factor);
  }
  const mps_scalar scalar = one();
  CHECK_STATUS(mps_graph_run(graph, stream, &x, 1, &scalar, 1, &out, 1), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_graph_run(graph, stream, &out, 1, (mps_scalar[]){scalar, scalar}, 2, &out, 1), MPS_STATUS_INVALID_ARGUMENT);
  release(&x, 1);
  release(&out, 1);
  mps_graph_release(graph);
}

/* ---- long graphs ---- */
static void build_long(mps_graph_builder *b, const int64_t *sizes) {
  node x = mps_graph_input(b, MPS_DTYPE_F32, 1, sizes), y = x;
  for (int i = 0; i < 100; i++) y = binary(b, i % 3 ? "sub" : "mul", i % 7 ? y : binary(b, "add", y, x), number(b, 0.5 + i / 64.0));
  mps_graph_output(b, y, MPS_DTYPE_F32);
}

static void splits_long_programs(void) {
  const int64_t sizes[] = {3000};
  mps_graph *graph = compile(build_long, sizes, 0), *plain = compile(build_long, sizes, MPS_GRAPH_UNFUSED & 0);
  CHECK(graph->stage_count >= 4 && graph->stage_count <= 10);
  mps_tensor x = make_random(MPS_DTYPE_F32, 1, sizes), out = make(MPS_DTYPE_F32, 1, sizes);
  run(graph, &x, 1, &out, 1);
  for (int i = 0; i < 3000; i++) {
    float v = floats(&x)[i], y = v;
    for (int k = 0; k < 100; k++) {
      if (k % 7 == 0) y += v;
      y = k % 3 ? y - (float)(0.5 + k / 64.0) : y * (float)(0.5 + k / 64.0);
    }
    CHECK(y == floats(&out)[i]);
  }
  release(&x, 1);
  release(&out, 1);
  mps_graph_release(graph);
  mps_graph_release(plain);
}

/* ---- mistakes ---- */
static void refuses(void) {
  const int64_t sizes[] = {4, 5}, odd[] = {3};
  for (int mistake = 0; mistake < 7; mistake++) {
    mps_graph_builder *b;
    mps_graph *graph = NULL;
    CHECK_OK(mps_graph_builder_create(device, "mistake", &b));
    node x = mps_graph_input(b, mistake == 5 ? MPS_DTYPE_C64 : MPS_DTYPE_I32, 2, sizes), y = x;
    if (mistake == 0) y = binary(b, "add", x, mps_graph_input(b, MPS_DTYPE_F32, 1, odd));
    if (mistake == 1) y = unary(b, "no_such_formula", x);
    if (mistake == 2) y = mps_graph_reduce(b, MPS_GRAPH_SUM, x, (int64_t[]){2}, 1, false);
    if (mistake == 3) y = mps_graph_reduce(b, MPS_GRAPH_MEAN, x, NULL, 0, false);
    if (mistake == 4) y = mps_graph_arrange(b, x, 1, (int[]){0});
    if (mistake == 5) y = mps_graph_reduce(b, MPS_GRAPH_MAX, x, NULL, 0, false);
    if (mistake != 6) {
      CHECK_INT(y, MPS_GRAPH_NONE);
      mps_graph_output(b, unary(b, "neg", y), MPS_DTYPE_F32);
    }
    CHECK(mps_graph_compile(b, &graph) != MPS_STATUS_OK);
    CHECK(graph == NULL && mps_error_message()[0] != 0);
    mps_graph_builder_destroy(b);
  }
}

/* ---- the cache ---- */
static mps_status build_cached(mps_graph_builder *b, void *context) {
  const int64_t *sizes = context;
  node x = mps_graph_input(b, MPS_DTYPE_F32, 1, sizes);
  mps_graph_output(b, binary(b, "mul", x, number(b, 3.0)), MPS_DTYPE_F32);
  return MPS_STATUS_OK;
}

static void caches(void) {
  mps_graph_statistics before, after;
  mps_graph_cache_clear(device);
  mps_graph_get_statistics(device, &before);
  CHECK_INT(before.graphs, 0);
  int64_t size = 10;
  int32_t key = 1, other_key = 2;
  mps_graph *a, *b, *c;
  CHECK_OK(mps_graph_cache_find(device, "cached", &key, sizeof key, build_cached, &size, &a));
  CHECK_OK(mps_graph_cache_find(device, "cached", &key, sizeof key, build_cached, &size, &b));
  CHECK_OK(mps_graph_cache_find(device, "cached", &other_key, sizeof other_key, build_cached, &size, &c));
  CHECK(a == b && b == c); /* the second key leads to the same structure */
  mps_graph_get_statistics(device, &after);
  CHECK_INT(after.hits - before.hits, 1);
  CHECK_INT(after.misses - before.misses, 2);
  CHECK_INT(after.compiled - before.compiled, 1);
  CHECK_INT(after.shared - before.shared, 1);
  CHECK_INT(after.graphs, 3);
  mps_graph_release(b);
  mps_graph_release(c);
  for (size = 1; size <= 1000; size++) { /* two entries each: more than the cache holds */
    CHECK_OK(mps_graph_cache_find(device, "cached", &size, sizeof size, build_cached, &size, &b));
    mps_graph_release(b);
  }
  mps_graph_get_statistics(device, &after);
  CHECK(after.graphs <= 1024 && after.evictions - before.evictions >= 900);
  const int64_t sizes[] = {10}; /* a dropped graph lives as long as somebody holds it */
  mps_tensor x = make_random(MPS_DTYPE_F32, 1, sizes), out = make(MPS_DTYPE_F32, 1, sizes);
  run(a, &x, 1, &out, 1);
  CHECK(floats(&out)[9] == floats(&x)[9] * 3.0f);
  release(&x, 1);
  release(&out, 1);
  mps_graph_release(a);
}

#define THREADS 4
static void use_cache(void *context) {
  mps_stream *own;
  (void)context;
  if (mps_stream_create(device, &own) != MPS_STATUS_OK) return;
  for (int i = 0; i < 200; i++) {
    int64_t size = 100 + i % 7;
    mps_graph *graph;
    CHECK_OK(mps_graph_cache_find(device, "shared", &size, sizeof size, build_cached, &size, &graph));
    mps_tensor x, out;
    memset(&x, 0, sizeof x);
    x.dtype = MPS_DTYPE_F32;
    mps_tensor_set_contiguous(&x, 1, &size);
    out = x;
    CHECK_OK(mps_buffer_create(device, own, (size_t)size * 4, &x.buffer));
    CHECK_OK(mps_buffer_create(device, own, (size_t)size * 4, &out.buffer));
    float values[128];
    for (int k = 0; k < size; k++) values[k] = (float)(k + i);
    CHECK_OK(mps_stream_write(own, x.buffer, 0, values, (uint64_t)size * 4));
    CHECK_OK(mps_graph_run(graph, own, &x, 1, NULL, 0, &out, 1));
    mps_graph_release(graph);
    CHECK_OK(mps_stream_read(own, out.buffer, 0, values, (uint64_t)size * 4));
    CHECK(values[size - 1] == (float)(size - 1 + i) * 3.0f);
    mps_buffer_release(x.buffer);
    mps_buffer_release(out.buffer);
  }
  mps_stream_destroy(own);
}

static void serves_threads(void) {
  mps_thread threads[THREADS];
  for (int i = 0; i < THREADS; i++) CHECK_OK(mps_thread_create(&threads[i], "graph test", use_cache, NULL));
  for (int i = 0; i < THREADS; i++) mps_thread_join(&threads[i]);
}

int main(void) {
  if (mps_device_open("host", &device) != MPS_STATUS_OK) {
    fprintf(stderr, "%s\n", mps_error_message());
    return 1;
  }
  stream = mps_stream_default(device);
  RUN(fuses_pointwise);
  RUN(reduces);
  RUN(reduces_all_kinds);
  RUN(reduces_nothing);
  RUN(goes_by_rows);
  RUN(is_the_same_on_all_threads);
  RUN(keeps_what_is_read);
  RUN(takes_numbers);
  RUN(splits_long_programs);
  RUN(refuses);
  RUN(caches);
  RUN(serves_threads);
  mps_device_release(device);
  return test_end();
}
