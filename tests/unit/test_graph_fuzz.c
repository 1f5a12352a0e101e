/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random graphs over random views: the fused graph, the graph without rows in common and the unfused one give the same bits, and outputs that lie
 * on inputs are what they are elsewhere. OPENMPS_FUZZ_SEED and OPENMPS_FUZZ_COUNT choose other graphs, and more; OPENMPS_FUZZ_SECONDS takes
 * as many as there is time for.
 */
#include "test.h"

#include <math.h>
#include <stdlib.h>

#include "base/time.h"
#include "graph/graph.h"
#include "runtime/buffer.h"

typedef mps_graph_node node;

#define INPUTS 4
#define OUTPUTS 3
#define PADDING 64 /* elements before and behind a tensor's own */

static mps_device *device;
static mps_stream *stream;
static uint64_t state;

static uint32_t below(uint32_t bound) {
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)((state >> 33) % bound);
}

/* ---- tensors of any layout ---- */
static mps_tensor random_view(mps_dtype dtype, uint32_t rank, const int64_t *sizes) {
  mps_tensor t;
  memset(&t, 0, sizeof t);
  t.dtype = dtype;
  t.rank = (uint8_t)rank;
  uint8_t order[MPS_MAX_RANK];
  for (uint32_t d = 0; d < rank; d++) {
    t.sizes[d] = sizes[d];
    order[d] = (uint8_t)d;
  }
  const bool mixed = below(3) == 0, gaps = below(4) == 0;
  for (uint32_t d = 0; mixed && d < rank; d++) {
    const uint32_t other = below(rank);
    const uint8_t moved = order[d];
    order[d] = order[other];
    order[other] = moved;
  }
  int64_t stride = 1, first = PADDING;
  for (uint32_t i = rank; i-- > 0;) {
    const uint32_t d = order[i];
    const bool flipped = gaps && below(3) == 0;
    t.strides[d] = flipped ? -stride : stride;
    if (flipped) first += stride * (sizes[d] - 1);
    stride *= sizes[d] + (gaps ? below(2) : 0);
  }
  const size_t item = mps_dtype_size(dtype);
  t.offset = (uint64_t)first * item;
  CHECK_OK(mps_buffer_create(device, stream, (size_t)(stride + 2 * PADDING) * item, &t.buffer));
  CHECK_OK(mps_stream_synchronize(stream));
  char *memory = mps_buffer_contents(t.buffer);
  for (int64_t i = 0; i < stride + 2 * PADDING; i++) {
    const double value = below(50) == 0 ? (double)NAN : ((double)below(4001) - 2000) / 250;
    mps_scalar_store(mps_dtype_is_floating(dtype) ? mps_scalar_float(value) : mps_scalar_int((int64_t)below(41) - 20), dtype, memory + (size_t)i * item);
  }
  return t;
}

static mps_tensor copy_of(const mps_tensor *t) {
  mps_tensor copy = *t;
  const size_t length = mps_buffer_length(t->buffer);
  CHECK_OK(mps_buffer_create(device, stream, length, &copy.buffer));
  CHECK_OK(mps_stream_synchronize(stream));
  memcpy(mps_buffer_contents(copy.buffer), mps_buffer_contents(t->buffer), length);
  return copy;
}

/* NaNs are equal here: which one comes out of two is nobody's business. */
static bool same_element(mps_dtype dtype, const char *a, const char *b) {
  if (memcmp(a, b, mps_dtype_size(dtype)) == 0) return true;
  if (dtype == MPS_DTYPE_F32) {
    float x, y;
    memcpy(&x, a, 4);
    memcpy(&y, b, 4);
    return isnan(x) && isnan(y);
  }
  uint16_t x, y;
  memcpy(&x, a, 2);
  memcpy(&y, b, 2);
  const uint16_t infinite = dtype == MPS_DTYPE_F16 ? 0x7c00 : 0x7f80;
  return mps_dtype_is_floating(dtype) && (x & 0x7fff) > infinite && (y & 0x7fff) > infinite;
}

/* All of the memory, what lies around the tensor too. */
static bool same_memory(const mps_tensor *a, const mps_tensor *b) {
  const size_t item = mps_dtype_size(a->dtype), count = mps_buffer_length(a->buffer) / item;
  const char *x = mps_buffer_contents(a->buffer), *y = mps_buffer_contents(b->buffer);
  for (size_t i = 0; i < count; i++)
    if (!same_element(a->dtype, x + i * item, y + i * item)) return false;
  return true;
}

/* ---- graphs ---- */
static const mps_dtype dtypes[] = {MPS_DTYPE_F32, MPS_DTYPE_F32, MPS_DTYPE_F16, MPS_DTYPE_BF16, MPS_DTYPE_I32, MPS_DTYPE_I64, MPS_DTYPE_U8};

typedef struct shape {
  uint32_t rank;
  int64_t sizes[4];
} shape;

static shape random_shape(void) {
  static const int64_t lengths[] = {1, 2, 3, 5, 8, 17, 33, 70, 200, 1030};
  shape s = {.rank = below(4)};
  int64_t count = 1;
  for (uint32_t d = 0; d < s.rank; d++) {
    s.sizes[d] = lengths[below(10)];
    while (count * s.sizes[d] > 20000) s.sizes[d] = lengths[below(5)];
    count *= s.sizes[d];
  }
  return s;
}

/* An input's shape: that of the graph, with some dimensions of size 1, or fewer of them. */
static shape part_of(const shape *s) {
  shape part = {.rank = s->rank};
  const uint32_t lost = below(3) == 0 && s->rank ? below(s->rank + 1) : 0;
  part.rank = s->rank - lost;
  for (uint32_t d = 0; d < part.rank; d++) part.sizes[d] = below(4) == 0 ? 1 : s->sizes[d + lost];
  return part;
}

#define MOST_ELEMENTS 40000

/* Do the shapes broadcast, to no more elements than are wanted? */
static bool compatible(mps_graph_builder *b, node x, node y) {
  uint32_t rx, ry;
  int64_t sx[MPS_MAX_RANK], sy[MPS_MAX_RANK], count = 1;
  if (!mps_graph_describe(b, x, NULL, &rx, sx) || !mps_graph_describe(b, y, NULL, &ry, sy)) return false;
  for (uint32_t d = 1; d <= rx || d <= ry; d++) {
    const int64_t p = d <= rx ? sx[rx - d] : 1, q = d <= ry ? sy[ry - d] : 1;
    if (p != q && p != 1 && q != 1) return false;
    count *= p == 1 ? q : p;
  }
  return count <= MOST_ELEMENTS;
}

/* Dimensions in another order, some of size 1 lost or new, one of them repeated. */
static node random_arrangement(mps_graph_builder *b, node x) {
  uint32_t rank, count = 0;
  int64_t sizes[MPS_MAX_RANK], elements = 1;
  int order[MPS_MAX_RANK];
  if (!mps_graph_describe(b, x, NULL, &rank, sizes)) return MPS_GRAPH_NONE;
  for (uint32_t d = 0; d < rank; d++)
    if (sizes[d] != 1 || below(2)) order[count++] = (int)d;
  for (uint32_t d = 0; d < count; d++) {
    const uint32_t other = below(count);
    const int moved = order[d];
    order[d] = order[other];
    order[other] = moved;
  }
  if (count < 4 && below(2)) order[count++] = -1;
  const node arranged = mps_graph_arrange(b, x, count, order);
  if (below(2) || !mps_graph_describe(b, arranged, NULL, &rank, sizes)) return arranged;
  for (uint32_t d = 0; d < rank; d++) elements *= sizes[d];
  const int64_t times = 1 + below(4);
  for (uint32_t d = 0; d < rank; d++) {
    if (sizes[d] != 1 || elements * times > MOST_ELEMENTS) continue;
    sizes[d] = times;
    break;
  }
  return mps_graph_expand(b, arranged, rank, sizes);
}

static node random_formula(mps_graph_builder *b, node x, node y) {
  static const char *const two[] = {"add", "sub", "mul", "maximum", "minimum"};
  static const char *const one[] = {"neg", "abs", "sigmoid", "exp", "square", "sqrt", "tanh"};
  if (below(3) && compatible(b, x, y)) return mps_graph_formula(b, two[below(5)], (node[]){x, y}, NULL);
  mps_dtype dtype;
  if (!mps_graph_describe(b, x, &dtype, NULL, NULL)) return MPS_GRAPH_NONE;
  return mps_graph_formula(b, one[mps_dtype_is_floating(dtype) ? below(7) : below(2)], &x, NULL);
}

static node random_reduction(mps_graph_builder *b, node x) {
  mps_dtype dtype;
  uint32_t rank;
  int64_t sizes[MPS_MAX_RANK], dimensions[MPS_MAX_RANK];
  if (!mps_graph_describe(b, x, &dtype, &rank, sizes)) return MPS_GRAPH_NONE;
  uint32_t count = 0;
  const uint32_t first = rank ? below(rank) : 0, style = below(3);
  for (uint32_t d = 0; d < rank; d++)
    if (style == 0 ? d >= first : style == 1 ? d < first : below(2)) dimensions[count++] = d;
  mps_graph_reduction reduction = (mps_graph_reduction)below(5);
  if (!mps_dtype_is_floating(dtype) && reduction == MPS_GRAPH_MEAN) reduction = MPS_GRAPH_SUM;
  if (reduction == MPS_GRAPH_PROD) reduction = MPS_GRAPH_MAX;
  return mps_graph_reduce(b, reduction, x, dimensions, count, true);
}

typedef struct random_graph {
  uint64_t state; /* of the random numbers when it is built: the same graph again */
  shape input_shapes[INPUTS], output_shapes[OUTPUTS];
  mps_dtype input_dtypes[INPUTS], output_dtypes[OUTPUTS];
} random_graph;

static void build(mps_graph_builder *b, random_graph *g) {
  state = g->state;
  const shape whole = random_shape();
  node nodes[32];
  uint32_t count = 0;
  for (uint32_t i = 0; i < INPUTS; i++) {
    g->input_shapes[i] = i ? part_of(&whole) : whole;
    g->input_dtypes[i] = dtypes[below(i < 2 ? 4 : 7)];
    nodes[count++] = mps_graph_input(b, g->input_dtypes[i], g->input_shapes[i].rank, g->input_shapes[i].sizes);
  }
  nodes[count++] = mps_graph_constant(b, mps_scalar_float(0.7));
  nodes[count++] = mps_graph_scalar(b, MPS_SCALAR_FLOAT);
  const uint32_t made = 4 + below(18);
  for (uint32_t i = 0; i < made; i++) {
    const node x = nodes[below(3) ? count - 1 : below(count)], y = nodes[below(count)];
    const uint32_t kind = below(11);
    nodes[count++] = kind < 7    ? random_formula(b, x, y)
                     : kind < 9  ? random_reduction(b, x)
                     : kind == 9 ? mps_graph_cast(b, x, dtypes[below(4)])
                                 : random_arrangement(b, x);
  }
  for (uint32_t o = 0; o < OUTPUTS; o++) {
    const node n = nodes[o ? INPUTS + 2 + below(made) : count - 1];
    CHECK(mps_graph_describe(b, n, &g->output_dtypes[o], &g->output_shapes[o].rank, NULL));
    int64_t sizes[MPS_MAX_RANK];
    mps_graph_describe(b, n, NULL, NULL, sizes);
    memcpy(g->output_shapes[o].sizes, sizes, sizeof g->output_shapes[o].sizes);
    if (!mps_dtype_is_floating(g->output_dtypes[o]) && below(2)) g->output_dtypes[o] = MPS_DTYPE_F32;
    mps_graph_output(b, n, g->output_dtypes[o]);
  }
}

static mps_graph *compile(random_graph *g, uint32_t options) {
  mps_graph_builder *b;
  mps_graph *graph = NULL;
  CHECK_OK(mps_graph_builder_create(device, "fuzz", &b));
  b->options = options | MPS_GRAPH_UNCACHED;
  build(b, g);
  CHECK_OK(mps_graph_compile(b, &graph));
  mps_graph_builder_destroy(b);
  return graph;
}

static void run(const mps_graph *graph, const mps_tensor *inputs, const mps_tensor *outputs) {
  const mps_scalar scalar = mps_scalar_float(-1.3);
  CHECK_OK(mps_graph_run(graph, stream, inputs, INPUTS, &scalar, 1, outputs, OUTPUTS));
  CHECK_OK(mps_stream_synchronize(stream));
}

static void release(mps_tensor *tensors, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) mps_buffer_release(tensors[i].buffer);
}

/* Output 0 on input 0, in place or shifted: as it is beside it. */
static void check_aliased(const random_graph *g, const mps_graph *graph, const mps_tensor *inputs) {
  if (g->output_dtypes[0] != g->input_dtypes[0] || g->output_shapes[0].rank != g->input_shapes[0].rank ||
      memcmp(g->output_shapes[0].sizes, g->input_shapes[0].sizes, g->output_shapes[0].rank * sizeof(int64_t)) != 0)
    return;
  for (int64_t shift = -1; shift <= 1; shift++) {
    mps_tensor own[INPUTS], beside[OUTPUTS], on[OUTPUTS];
    for (uint32_t i = 0; i < INPUTS; i++) own[i] = copy_of(&inputs[i]);
    for (uint32_t o = 0; o < OUTPUTS; o++) beside[o] = random_view(g->output_dtypes[o], g->output_shapes[o].rank, g->output_shapes[o].sizes);
    mps_buffer_release(beside[0].buffer);
    beside[0] = copy_of(&own[0]);
    beside[0].offset += (uint64_t)(shift * (int64_t)mps_dtype_size(own[0].dtype));
    on[0] = own[0];
    on[0].offset = beside[0].offset;
    for (uint32_t o = 1; o < OUTPUTS; o++) on[o] = copy_of(&beside[o]);
    run(graph, own, beside);
    run(graph, own, on);
    for (uint32_t o = 0; o < OUTPUTS; o++) CHECK(same_memory(&beside[o], &on[o]));
    release(own, INPUTS);
    release(beside, OUTPUTS);
    release(on + 1, OUTPUTS - 1);
  }
}

static void one_graph(uint64_t seed, uint32_t *steps) {
  random_graph g = {.state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
  const uint32_t options[] = {MPS_GRAPH_ALL_ROWS, MPS_GRAPH_NO_ROWS, MPS_GRAPH_UNFUSED};
  mps_graph *graphs[3];
  mps_tensor inputs[INPUTS], outputs[3][OUTPUTS];
  for (int k = 0; k < 3; k++) graphs[k] = compile(&g, options[k]);
  if (!graphs[0] || !graphs[1] || !graphs[2]) return;
  for (uint32_t i = 0; i < INPUTS; i++) inputs[i] = random_view(g.input_dtypes[i], g.input_shapes[i].rank, g.input_shapes[i].sizes);
  for (uint32_t o = 0; o < OUTPUTS; o++) {
    outputs[0][o] = random_view(g.output_dtypes[o], g.output_shapes[o].rank, g.output_shapes[o].sizes);
    outputs[1][o] = copy_of(&outputs[0][o]);
    outputs[2][o] = copy_of(&outputs[0][o]);
  }
  for (int k = 0; k < 3; k++) {
    steps[k] += mps_graph_step_count(graphs[k]);
    run(graphs[k], inputs, outputs[k]);
    for (uint32_t o = 0; k && o < OUTPUTS; o++) CHECK(same_memory(&outputs[0][o], &outputs[k][o]));
  }
  check_aliased(&g, graphs[0], inputs);
  release(inputs, INPUTS);
  for (int k = 0; k < 3; k++) {
    release(outputs[k], OUTPUTS);
    mps_graph_release(graphs[k]);
  }
}

static void random_graphs(void) {
  const char *seed = getenv("OPENMPS_FUZZ_SEED"), *count = getenv("OPENMPS_FUZZ_COUNT"), *seconds = getenv("OPENMPS_FUZZ_SECONDS");
  const uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
  const uint64_t most = count ? strtoull(count, NULL, 10) : seconds ? UINT64_MAX - first : 400;
  const uint64_t end = seconds ? mps_time_ns() + strtoull(seconds, NULL, 10) * UINT64_C(1000000000) : UINT64_MAX;
  uint64_t graphs = 0;
  uint32_t steps[3] = {0};
  for (uint64_t i = first; graphs < most && mps_time_ns() < end; i++, graphs++) {
    const int before = test_failures;
    one_graph(i, steps);
    if (test_failures != before) {
      fprintf(stderr, "graph %llu differs: OPENMPS_FUZZ_SEED=%llu OPENMPS_FUZZ_COUNT=1\n", (unsigned long long)i, (unsigned long long)i);
      if (test_failures > 10) return;
    }
  }
  printf("     %llu graphs, %u steps fused, %u without rows, %u unfused\n", (unsigned long long)graphs, steps[0], steps[1], steps[2]);
}

int main(void) {
  if (mps_device_open("host", &device) != MPS_STATUS_OK) {
    fprintf(stderr, "%s\n", mps_error_message());
    return 1;
  }
  stream = mps_stream_default(device);
  RUN(random_graphs);
  mps_device_release(device);
  return test_end();
}
