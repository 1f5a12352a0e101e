/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fft_plan: from transforms along one dimension to the steps that make them. Pure.
 */
#include "ops/fft_plan.h"

#include <string.h>

#include "base/status.h"

enum {
  LONGEST_TILE = 2048,   /* values: both halves of the scratch stay in the second cache */
  FEW_SIGNALS = 8,       /* of 16 that a tile holds: dividing a transform fills it better */
  SHORTEST_DIVIDED = 256,
  SLOW_RADIX = 31,       /* a convolution in a tile is faster than a pass of a larger one */
  LANES_A_CORE = 4,
  SCRATCH_LIMIT = 64 << 20, /* bytes: fewer lanes rather than more scratch, down to one */
  PAGE = 1024,           /* floats. The distances in a pass are often whole pages, and slow when both sides are at one place of them */
  ROW_BLOCK = 4096,      /* values a thread */
  CHUNK_NANOSECONDS = 20000
};

/* A complex transform that is still to be planned. */
typedef struct task {
  int64_t length;
  bool inverse;
  uint32_t source, destination;
  mps_fft_values values; /* steps of both sides, scale, REAL_INPUT, REAL_OUTPUT; counts are the length */
  mps_fft_batch batch;
} task;

static int64_t signals_of(const mps_fft_batch *batch) {
  int64_t count = 1;
  for (uint32_t d = 0; d < batch->rank; d++) count *= batch->sizes[d];
  return count;
}

/* ---- batches ---- */

static int64_t magnitude(int64_t stride) { return stride < 0 ? -stride : stride; }

/* Every dimension but one; the widest strides of self first, neighbours merged. Strides come in elements, `in` and `out` floats each. */
static void lay_out_batch(mps_fft_batch *batch, const mps_tensor *self, const mps_tensor *out, uint32_t dimension, int64_t in, int64_t to) {
  memset(batch, 0, sizeof *batch);
  for (uint32_t d = 0; d < self->rank; d++) {
    if (d == dimension || self->sizes[d] == 1) continue;
    uint32_t at = batch->rank++;
    for (; at > 0 && magnitude(batch->in_strides[at - 1]) < magnitude(self->strides[d] * in); at--) {
      batch->sizes[at] = batch->sizes[at - 1];
      batch->in_strides[at] = batch->in_strides[at - 1];
      batch->out_strides[at] = batch->out_strides[at - 1];
    }
    batch->sizes[at] = self->sizes[d];
    batch->in_strides[at] = self->strides[d] * in;
    batch->out_strides[at] = out->strides[d] * to;
  }
  uint32_t kept = 0;
  for (uint32_t d = 1; d < batch->rank; d++) {
    if (batch->in_strides[kept] == batch->sizes[d] * batch->in_strides[d] && batch->out_strides[kept] == batch->sizes[d] * batch->out_strides[d]) {
      batch->sizes[kept] *= batch->sizes[d];
    } else {
      kept++;
      batch->sizes[kept] = batch->sizes[d];
    }
    batch->in_strides[kept] = batch->in_strides[d];
    batch->out_strides[kept] = batch->out_strides[d];
  }
  if (batch->rank) batch->rank = kept + 1;
}

/* Strides of a batch of contiguous signals of `floats` floats. */
static void contiguous_strides(const mps_fft_batch *batch, int64_t floats, int64_t *strides) {
  for (uint32_t d = batch->rank; d-- > 0;) {
    strides[d] = floats;
    floats *= batch->sizes[d];
  }
}

/* The task reads or writes `length` neighbouring complex values a signal in a temporary instead. */
static void read_from(task *t, uint32_t temporary) {
  t->source = temporary;
  t->values.in_step = 2;
  t->values.in_imaginary = 1;
  t->values.flags &= ~(uint32_t)MPS_FFT_REAL_INPUT;
  contiguous_strides(&t->batch, 2 * t->length, t->batch.in_strides);
}
static void write_to(task *t, uint32_t temporary) {
  t->destination = temporary;
  t->values.out_step = 2;
  t->values.out_imaginary = 1;
  t->values.flags &= ~(uint32_t)MPS_FFT_REAL_OUTPUT;
  contiguous_strides(&t->batch, 2 * t->length, t->batch.out_strides);
}

/* ---- steps ---- */

static mps_status add_step(mps_fft_plan *plan, mps_fft_kernel kernel, const task *t, mps_fft_step **out_step) {
  if (plan->step_count == MPS_FFT_MAX_STEPS)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "fft: a transform of %lld values would take too many steps", (long long)t->length);
  mps_fft_step *step = &plan->steps[plan->step_count++];
  memset(step, 0, sizeof *step);
  step->kernel = kernel;
  step->source = t->source;
  step->destination = t->destination;
  step->threads[0] = step->threads[1] = step->threads[2] = 1;
  *out_step = step;
  return MPS_STATUS_OK;
}

static mps_status add_temporary(mps_fft_plan *plan, const task *t, int64_t length, uint32_t *out_temporary) {
  if (plan->temporary_count == MPS_FFT_MAX_TEMPORARIES)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "fft: a transform of %lld values would take too much memory", (long long)t->length);
  plan->temporary_bytes[plan->temporary_count] = (uint64_t)(signals_of(&t->batch) * length * 2) * sizeof(float);
  *out_temporary = MPS_FFT_TEMPORARY + plan->temporary_count++;
  return MPS_STATUS_OK;
}

static void choose_lanes(const mps_fft_plan *plan, mps_fft_step *step) {
  mps_fft_arguments *a = &step->tiles;
  const int64_t lane_bytes = 2 * a->scratch * (int64_t)sizeof(float), most = LANES_A_CORE * (int64_t)plan->cores;
  int64_t lanes = (int64_t)(step->cost / CHUNK_NANOSECONDS) + 1;
  if (lanes > most) lanes = most;
  if (lanes > a->tiles) lanes = a->tiles;
  while (lanes > 1 && lanes * lane_bytes > SCRATCH_LIMIT) lanes = (lanes + 1) / 2;
  a->lanes = lanes;
  step->threads[0] = (uint64_t)lanes;
  step->scratch_bytes = (uint64_t)(lanes * lane_bytes);
}

/* Values that neither the passes nor the layouts of `t` say: what is in `flags`, counts, columns. `passes`: values that go through them. */
static mps_status add_tiles(mps_fft_plan *plan, const task *t, uint32_t flags, int64_t passes, int64_t whole, int64_t columns) {
  mps_fft_step *step;
  MPS_TRY(add_step(plan, MPS_FFT_TILES, t, &step));
  mps_fft_arguments *a = &step->tiles;
  a->values = t->values;
  a->values.flags |= flags | (t->inverse ? MPS_FFT_SWAP : 0u);
  a->batch = t->batch;
  a->length = passes;
  a->signal = t->length;
  a->whole = whole;
  a->columns = columns;
  a->tiles_each = (columns + MPS_FFT_WIDTH - 1) / MPS_FFT_WIDTH;
  a->tiles = signals_of(&t->batch) / columns * a->tiles_each;
  a->pass_count = passes > 1 ? mps_fft_factor(passes, a->radices) : 0;
  const int64_t most = passes > whole / 2 ? passes : whole / 2;
  a->scratch = ((most + 1) * MPS_FFT_ELEMENT + PAGE - 1) / PAGE * PAGE + PAGE / 2;
  step->table = (mps_fft_table_key){.passes = passes};
  if (flags & (MPS_FFT_PACK | MPS_FFT_UNPACK)) step->table.real = whole;
  if (flags & MPS_FFT_TWIST) step->table.twist = columns;
  if (flags & MPS_FFT_CHIRP) {
    step->table.chirp = t->length;
    step->table.spectrum = passes;
  }
  mps_fft_table_layout at;
  mps_fft_table_lay_out(&step->table, &at);
  a->pass_table = at.passes;
  a->real_table = at.real;
  a->twist_rows = at.twist_rows;
  a->twist_lanes = at.twist_lanes;
  a->chirp_table = at.chirp;
  a->spectrum_table = at.spectrum;
  const double passes_made = (flags & MPS_FFT_CHIRP ? 2.0 : 1.0) * (double)a->pass_count + 3.0;
  step->cost = (double)a->tiles * MPS_FFT_WIDTH * (double)passes * passes_made * 0.25;
  choose_lanes(plan, step);
  return MPS_STATUS_OK;
}

/* A step that goes value by value. `table` says which part of the table the factors are. */
static mps_status add_rows(mps_fft_plan *plan, mps_fft_kernel kernel, const task *t, uint32_t flags, int64_t length, int64_t whole,
                           const mps_fft_table_key *table) {
  mps_fft_step *step;
  MPS_TRY(add_step(plan, kernel, t, &step));
  mps_fft_row_arguments *a = &step->rows;
  a->values = t->values;
  a->values.flags |= flags;
  a->batch = t->batch;
  a->length = length;
  a->whole = whole;
  a->block = ROW_BLOCK;
  step->table = *table;
  mps_fft_table_layout at;
  mps_fft_table_lay_out(table, &at);
  a->table = table->real ? at.real : table->spectrum && t->values.in_count == table->spectrum ? at.spectrum : at.chirp;
  step->threads[0] = (uint64_t)((length + ROW_BLOCK - 1) / ROW_BLOCK);
  step->threads[1] = (uint64_t)signals_of(&t->batch);
  step->cost = (double)step->threads[1] * (double)length * 1.5;
  return MPS_STATUS_OK;
}

/* ---- complex transforms ---- */

/* The first factor of n = n1 * n2, 0 if there is none: tiles full in both steps, the second one short, the two alike. */
static int64_t best_divisor(int64_t length, int64_t signals) {
  int64_t best = 0;
  double least = 0;
  for (int64_t n1 = 2; n1 <= LONGEST_TILE && n1 < length; n1++) {
    if (length % n1 != 0) continue;
    const int64_t n2 = length / n1, lanes = signals * n1;
    const double filled = (double)((n2 + 15) / 16 * 16) / (double)n2 + (double)((lanes + 15) / 16 * 16) / (double)lanes;
    const double ratio = n1 > n2 ? (double)n1 / (double)n2 : (double)n2 / (double)n1;
    const double cost = filled + 0.02 * ratio + (n2 > LONGEST_TILE ? 2.0 : 0.0);
    if (best == 0 || cost < least) {
      best = n1;
      least = cost;
    }
  }
  return best;
}

static bool fits_a_tile(int64_t length, int64_t signals) {
  if (length > LONGEST_TILE) return false;
  return signals > FEW_SIGNALS || length < SHORTEST_DIVIDED;
}

/* The length of the passes that complex transforms of `length` values take in one tile: their own, or a convolution's. 0 if they take more
 * steps than that. */
static int64_t passes_in_a_tile(int64_t length, int64_t signals) {
  uint32_t radices[MPS_FFT_MAX_PASSES];
  const uint32_t count = length > 1 ? mps_fft_factor(length, radices) : 0;
  const bool smooth = length == 1 || count > 0, slow = count > 0 && radices[count - 1] > SLOW_RADIX;
  if (smooth && !slow) return fits_a_tile(length, signals) ? length : 0;
  const int64_t convolution = mps_fft_convolution_length(length);
  if (fits_a_tile(convolution, signals)) return convolution;
  return smooth && fits_a_tile(length, signals) ? length : 0;
}

/* The whole transform as one step of tiles, where it fits into them; else *out_added is false and the status OK. */
static mps_status add_one_step(mps_fft_plan *plan, const task *t, uint32_t flags, int64_t whole, bool *out_added) {
  const int64_t signals = signals_of(&t->batch), passes = passes_in_a_tile(t->length, signals);
  *out_added = passes != 0;
  if (!passes) return MPS_STATUS_OK;
  return add_tiles(plan, t, passes == t->length ? flags : flags | MPS_FFT_CHIRP, passes, whole, signals);
}

static mps_status add_complex(mps_fft_plan *plan, const task *t);

static void append_dimension(mps_fft_batch *batch, int64_t size, int64_t in_stride, int64_t out_stride) {
  batch->sizes[batch->rank] = size;
  batch->in_strides[batch->rank] = in_stride;
  batch->out_strides[batch->rank++] = out_stride;
}

/* Columns of n1 values at distance n2, then rows of n2 values: value k1 + n1 k2 of the spectrum. Between them lie n1 rows of n2 values. */
static mps_status add_divided(mps_fft_plan *plan, const task *t, int64_t n1) {
  const int64_t n2 = t->length / n1;
  if (t->batch.rank == MPS_FFT_MAX_RANK)
    return mps_error_set(MPS_STATUS_NOT_IMPLEMENTED, "fft: too many dimensions around a transform of %lld values", (long long)t->length);
  task columns = *t, rows = *t;
  uint32_t between;
  MPS_TRY(add_temporary(plan, t, t->length, &between));
  write_to(&columns, between);
  columns.length = columns.values.in_count = columns.values.out_count = n1;
  append_dimension(&columns.batch, n2, t->values.in_step, 2);
  columns.values.in_step = t->values.in_step * n2;
  columns.values.out_step = 2 * n2;
  columns.values.scale = 1.0f;
  read_from(&rows, between);
  rows.length = rows.values.in_count = rows.values.out_count = n2;
  append_dimension(&rows.batch, n1, 2 * n2, t->values.out_step);
  rows.values.out_step = t->values.out_step * n1;
  MPS_TRY(add_tiles(plan, &columns, MPS_FFT_TWIST, n1, 0, n2));
  return add_complex(plan, &rows);
}

/* Bluestein's convolution, each of its parts a step. */
static mps_status add_convolution(mps_fft_plan *plan, const task *t, int64_t length) {
  const mps_fft_table_key key = {.chirp = t->length, .spectrum = length};
  uint32_t padded;
  MPS_TRY(add_temporary(plan, t, length, &padded));
  task before = *t, around = *t, after = *t;
  before.length = around.length = after.length = length;
  write_to(&before, padded);
  before.values.scale = 1.0f;
  read_from(&around, padded);
  write_to(&around, padded);
  around.values.in_count = around.values.out_count = length;
  around.values.scale = 1.0f;
  around.inverse = false;
  read_from(&after, padded);
  after.values.in_count = t->length;
  MPS_TRY(add_rows(plan, MPS_FFT_MULTIPLY, &before, t->inverse ? MPS_FFT_SWAP : 0, length, 0, &key));
  MPS_TRY(add_complex(plan, &around));
  /* The way back is a forward transform of exchanged parts; they are exchanged as the tiles load and store. */
  MPS_TRY(add_rows(plan, MPS_FFT_MULTIPLY, &around, 0, length, 0, &key));
  around.inverse = true;
  MPS_TRY(add_complex(plan, &around));
  return add_rows(plan, MPS_FFT_MULTIPLY, &after, t->inverse ? MPS_FFT_PACK : 0, t->length, 0, &key);
}

static mps_status add_complex(mps_fft_plan *plan, const task *t) {
  bool added;
  mps_status status = add_one_step(plan, t, 0, 0, &added);
  if (added) return status;
  if (mps_fft_is_smooth(t->length)) {
    const int64_t n1 = best_divisor(t->length, signals_of(&t->batch));
    if (n1) return add_divided(plan, t, n1);
  }
  return add_convolution(plan, t, mps_fft_convolution_length(t->length));
}

/* ---- real transforms ---- */

static mps_status add_from_real(mps_fft_plan *plan, task *t, bool onesided) {
  const int64_t n = t->length, half = n / 2;
  const uint32_t mirror = onesided ? 0 : MPS_FFT_MIRROR;
  const bool even = n % 2 == 0;
  if (even) { /* values 2 k and 2 k + 1 are one complex value */
    t->length = t->values.in_count = half;
    t->values.in_imaginary = t->values.in_step;
    t->values.in_step *= 2;
  } else {
    t->values.flags |= MPS_FFT_REAL_INPUT;
  }
  t->values.out_count = half + 1;
  bool added;
  mps_status status = add_one_step(plan, t, mirror | (even ? MPS_FFT_UNPACK : 0u), n, &added);
  if (added) return status;
  if (!even && !onesided) {
    t->values.out_count = n;
    return add_complex(plan, t);
  }
  task inner = *t, outer = *t;
  uint32_t packed;
  MPS_TRY(add_temporary(plan, t, t->length, &packed));
  write_to(&inner, packed);
  inner.values.out_count = inner.length;
  inner.values.scale = 1.0f;
  MPS_TRY(add_complex(plan, &inner));
  read_from(&outer, packed);
  if (even) return add_rows(plan, MPS_FFT_UNPACK_ROWS, &outer, mirror, half, n, &(mps_fft_table_key){.real = n});
  outer.values.in_count = half + 1;
  return add_rows(plan, MPS_FFT_PACK_ROWS, &outer, 0, half + 1, 0, &(mps_fft_table_key){0});
}

static mps_status add_to_real(mps_fft_plan *plan, task *t) {
  const int64_t n = t->length, half = n / 2;
  const bool even = n % 2 == 0;
  t->values.in_count = half + 1;
  if (even) {
    t->length = t->values.out_count = half;
    t->values.out_imaginary = t->values.out_step;
    t->values.out_step *= 2;
  } else {
    t->values.flags |= MPS_FFT_REAL_OUTPUT;
  }
  bool added;
  mps_status status = add_one_step(plan, t, even ? MPS_FFT_PACK : MPS_FFT_EXTEND, n, &added);
  if (added) return status;
  task inner = *t, outer = *t;
  uint32_t packed;
  MPS_TRY(add_temporary(plan, t, t->length, &packed));
  write_to(&outer, packed);
  outer.values.out_count = outer.length;
  outer.values.scale = 1.0f;
  const mps_fft_table_key roots = {.real = even ? n : 0};
  MPS_TRY(add_rows(plan, MPS_FFT_PACK_ROWS, &outer, even ? MPS_FFT_PACK : MPS_FFT_EXTEND, t->length, 0, &roots));
  read_from(&inner, packed);
  inner.values.in_count = inner.length;
  return add_complex(plan, &inner);
}

mps_status mps_fft_plan_make(mps_fft_plan *plan, const mps_fft_call *call, const mps_tensor *self, const mps_tensor *out, uint32_t dimension) {
  plan->cores = call->cores ? call->cores : 1;
  plan->step_count = plan->temporary_count = 0;
  const int64_t in = call->kind == MPS_FFT_FROM_REAL ? 1 : 2, to = call->kind == MPS_FFT_TO_REAL ? 1 : 2;
  task t = {.source = MPS_FFT_SELF, .destination = MPS_FFT_OUT, .inverse = call->inverse || call->kind == MPS_FFT_TO_REAL};
  lay_out_batch(&t.batch, self, out, dimension, in, to);
  t.length = call->kind == MPS_FFT_TO_REAL ? out->sizes[dimension] : self->sizes[dimension];
  t.values = (mps_fft_values){.in_count = t.length,
                              .in_step = self->strides[dimension] * in,
                              .in_imaginary = 1,
                              .out_count = t.length,
                              .out_step = out->strides[dimension] * to,
                              .out_imaginary = 1,
                              .scale = call->scale};
  if (signals_of(&t.batch) == 0 || t.length == 0) return MPS_STATUS_OK;
  switch (call->kind) {
    case MPS_FFT_FROM_REAL: return add_from_real(plan, &t, call->onesided);
    case MPS_FFT_TO_REAL: return add_to_real(plan, &t);
    default: return add_complex(plan, &t);
  }
}
