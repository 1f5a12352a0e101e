/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_index_plan: the spaces that indexing operators walk, which dimensions are merged, walked or spread over threads, and which kernel writes.
 */
#include "ops/index_plan.h"
#include "ops/index_space.h"
#include "ops/operand.h"
#include "tensors.h"
#include "test.h"

/* ---- reading ---- */

/* index_select (or index_add) along `dimension` by a contiguous vector; `values` has data's shape but for its length. */
static mps_index_space select_space(const mps_tensor *data, const mps_tensor *values, uint32_t dimension) {
  mps_tensor index = make(buffer_b(), MPS_DTYPE_I64, 1, &values->sizes[dimension]);
  mps_index_space space;
  mps_index_space_vector(&space, data, dimension, &index, values);
  return space;
}

static void select_keeps_the_indexed_dimension_apart(void) {
  mps_tensor data = TENSOR(F32, 4, 5, 6), out = TENSOR(F32, 4, 3, 6);
  mps_index_space space = select_space(&data, &out, 1);
  CHECK_INTS(space.data, 30, 0, 1);
  CHECK_INT(space.index_size, 5);
  CHECK_INT(space.index_step, 6);
  mps_index_plan p;
  mps_index_plan_read(&space, &p);
  CHECK_INT(p.arguments.outer_rank, 2);
  CHECK_INTS(p.arguments.sizes, 4, 3);
  CHECK_INTS(p.arguments.data_strides, 30, 0);
  CHECK_INTS(p.arguments.value_strides, 18, 6);
  CHECK_INTS(p.arguments.index_strides, 0, 1);
  CHECK_INT(p.arguments.run, 6);
  CHECK_INT(p.arguments.data_run, 1);
  CHECK_INT(p.arguments.value_run, 1);
  CHECK_INT(p.arguments.index_run, 0);
  CHECK_INTS(p.threads, 12, 1, 1);
  CHECK_INT(p.cost, 156); /* 72 elements at 1/2, 12 runs at 10 */
}

static void neighbours_merge(void) {
  mps_tensor data = TENSOR(F32, 5, 3, 4), out = TENSOR(F32, 2, 3, 4);
  mps_index_space space = select_space(&data, &out, 0);
  mps_index_plan p;
  mps_index_plan_read(&space, &p);
  CHECK_INT(p.arguments.outer_rank, 1);
  CHECK_INT(p.arguments.run, 12);
  CHECK_INTS(p.threads, 2, 1, 1);
}

static void channels_last_merges_height_and_width(void) {
  mps_tensor data = channels_last(TENSOR(F32, 2, 3, 4, 5)), out = TENSOR(F32, 2, 3, 4, 5);
  mps_index_space space = select_space(&data, &out, 0);
  mps_index_plan p;
  mps_index_plan_read(&space, &p);
  CHECK_INT(p.arguments.outer_rank, 2);
  CHECK_INTS(p.arguments.sizes, 2, 3);
  CHECK_INTS(p.arguments.data_strides, 0, 1);
  CHECK_INTS(p.arguments.value_strides, 60, 20);
  CHECK_INT(p.arguments.run, 20);
  CHECK_INT(p.arguments.data_run, 3);
  CHECK_INT(p.arguments.value_run, 1);
  CHECK_INTS(p.threads, 6, 1, 1);
}

static void long_runs_are_cut_into_blocks(void) {
  mps_tensor data = TENSOR(F32, 3, 5000), out = TENSOR(F32, 1, 5000);
  mps_index_space space = select_space(&data, &out, 0);
  mps_index_plan p;
  mps_index_plan_read(&space, &p);
  CHECK_INT(p.arguments.outer_rank, 0); /* the index vector has one element */
  CHECK_INT(p.arguments.block, 2048);
  CHECK_INTS(p.threads, 1, 3, 1);
}

static void counts_beyond_32_bits(void) {
  const int64_t wide = ((int64_t)1 << 31) + 5;
  mps_tensor data = TENSOR(U8, 3, wide), out = TENSOR(U8, 2, wide);
  mps_index_space space = select_space(&data, &out, 0);
  mps_index_plan p;
  mps_index_plan_read(&space, &p);
  CHECK_INT(p.arguments.run, 2147483653);
  CHECK_INT(p.arguments.index_step, 2147483653);
  CHECK_INTS(p.arguments.value_strides, 2147483653);
  CHECK_INTS(p.threads, 2, 1048577, 1);
}

static void gather_takes_an_index_a_point(void) {
  mps_tensor data = TENSOR(F32, 4, 10), index = TENSOR(I64, 4, 3), out = TENSOR(F32, 4, 3);
  mps_index_space space;
  mps_index_space_points(&space, &data, 1, &index, &out);
  mps_index_plan p;
  mps_index_plan_read(&space, &p);
  CHECK_INT(p.arguments.outer_rank, 1);
  CHECK_INTS(p.arguments.data_strides, 10);
  CHECK_INTS(p.arguments.index_strides, 3);
  CHECK_INT(p.arguments.run, 3);
  CHECK_INT(p.arguments.data_run, 0);
  CHECK_INT(p.arguments.index_run, 1);
  CHECK_INTS(p.threads, 4, 1, 1);
}

static void indices_without_a_dimension(void) {
  mps_tensor data = TENSOR(F32, 1), point = zero_dimensional(MPS_DTYPE_I64), row = TENSOR(F32, 4, 6), out = TENSOR(F32, 4, 1);
  const mps_tensor seven = mps_operand_constant(&data, MPS_DTYPE_F32, mps_scalar_int(7));
  mps_index_space space;
  mps_index_space_points(&space, &data, 0, &point, &seven); /* a scatter of 0-d tensors */
  CHECK_INT(space.rank, 1);
  CHECK_INTS(space.sizes, 1);
  CHECK_INTS(space.value, 0);
  mps_index_space_vector(&space, &row, 1, &point, &out);
  CHECK_INTS(space.sizes, 4, 1);
  CHECK_INTS(space.index, 0, 0);
  CHECK_INTS(space.data, 6, 0);
  CHECK_INT(space.index_size, 6);
}

static void strided_and_expanded_indices(void) {
  mps_tensor data = TENSOR(F32, 4, 10), index = TENSOR(I64, 3), out = TENSOR(F32, 4, 3), shared = TENSOR(I64, 4, 3);
  index.strides[0] = 2;
  mps_index_space space;
  mps_index_space_vector(&space, &data, 1, &index, &out);
  CHECK_INTS(space.index, 0, 2);
  shared.strides[0] = 0; /* the same row of indices for each row of data */
  mps_index_space_points(&space, &data, 1, &shared, &out);
  CHECK_INTS(space.index, 0, 1);
  data.strides[0] = 0; /* expanded data: its rows are the same */
  mps_index_space_points(&space, &data, 1, &shared, &out);
  mps_index_plan p;
  mps_index_plan_read(&space, &p);
  CHECK_INTS(p.arguments.data_strides, 0);
  CHECK_INTS(p.threads, 4, 1, 1);
}

static void empty_and_single_points(void) {
  mps_tensor data = TENSOR(F32, 4, 5), none = TENSOR(F32, 4, 0);
  mps_index_space space = select_space(&data, &none, 1);
  mps_index_plan p;
  mps_index_plan_read(&space, &p);
  CHECK_INTS(p.threads, 0, 0, 0);
  mps_index_plan_write(&space, 8, &p);
  CHECK_INTS(p.threads, 0, 0, 0);
  mps_tensor one = TENSOR(F32, 1); /* what a 0-d tensor is taken as */
  space = select_space(&one, &one, 0);
  mps_index_plan_read(&space, &p);
  CHECK_INT(p.arguments.outer_rank, 0);
  CHECK_INT(p.arguments.run, 1);
  CHECK_INT(p.arguments.block, 1);
  CHECK_INTS(p.threads, 1, 1, 1);
  mps_index_plan_write(&space, 8, &p);
  CHECK_INTS(p.threads, 1, 1, 1);
  CHECK_INT(p.arguments.walk_count, 1);
}

/* ---- several index tensors ---- */

static void offsets_span_what_varies(void) {
  /* x[i, :, j] of a 4 x 5 x 6 tensor, i and j vectors of 3: both are laid out over the result, 3 x 5. */
  mps_tensor index = TENSOR(I64, 3, 5);
  index.strides[0] = 1, index.strides[1] = 0;
  int64_t sizes[] = {1, 1};
  mps_index_offset_widen(&index, sizes);
  CHECK_INTS(sizes, 3, 1);
  mps_tensor offsets = make(buffer_b(), MPS_DTYPE_I64, 2, sizes);
  mps_index_space space;
  mps_index_space_offsets(&space, &offsets, &index, 1, 6, 1);
  CHECK(space.wraps);
  CHECK_INT(space.dimension, 1);
  mps_index_plan p;
  mps_index_plan_read(&space, &p);
  CHECK_INT(p.arguments.run, 3);
  CHECK_INT(p.arguments.index_run, 1);
  CHECK_INT(p.arguments.value_run, 1);
  CHECK_INT(p.arguments.index_size, 6);
  CHECK_INTS(p.threads, 1, 1, 1);
  mps_tensor across = TENSOR(I64, 3, 5); /* a second one that varies along the other dimension */
  across.strides[0] = 0, across.strides[1] = 1;
  mps_index_offset_widen(&across, sizes);
  CHECK_INTS(sizes, 3, 5);
}

static void put_walks_data_and_values_together(void) {
  mps_tensor data = TENSOR(F32, 3, 5), values = TENSOR(F32, 3, 5);
  data.strides[0] = 0; /* where the index decides */
  mps_index_space space;
  mps_index_space_over(&space, &data, &values);
  CHECK_INTS(space.data, 0, 1);
  CHECK_INTS(space.value, 5, 1);
  CHECK_INT(space.skipped, INT64_MIN);
  values.buffer = NULL; /* a number */
  mps_index_space_over(&space, &data, &values);
  CHECK_INTS(space.value, 0, 0);
}

/* ---- writing ---- */

static void equal_indices_stay_in_one_thread(void) {
  mps_tensor data = TENSOR(F32, 5, 3, 4), source = TENSOR(F32, 2, 3, 4); /* index_add along 0 */
  mps_index_space space = select_space(&data, &source, 0);
  mps_index_plan p;
  mps_index_plan_write(&space, 8, &p);
  CHECK_INT(p.arguments.outer_rank, 0);
  CHECK_INT(p.arguments.walk_rank, 1);
  CHECK_INT(p.arguments.walk_count, 2);
  CHECK_INT(p.arguments.run, 12);
  CHECK_INT(p.arguments.slices, 1); /* too little for more */
  CHECK_INTS(p.threads, 1, 1, 1);
}

static void few_threads_share_the_indexed_dimension(void) {
  mps_tensor data = TENSOR(F32, 5, 64), source = TENSOR(F32, 1000, 64);
  mps_index_space space = select_space(&data, &source, 0);
  mps_index_plan p;
  mps_index_plan_write(&space, 8, &p);
  CHECK_INT(p.arguments.slices, 5); /* no more than rows of data */
  CHECK_INT(p.arguments.block, 64);
  CHECK_INTS(p.threads, 1, 5, 1);
  mps_index_plan_write(&space, 3, &p);
  CHECK_INTS(p.threads, 1, 3, 1);
  mps_index_plan_write(&space, 0, &p);
  CHECK_INTS(p.threads, 1, 1, 1);
  mps_tensor row = TENSOR(F32, 1, 64); /* one row of data: nothing to share */
  space = select_space(&row, &source, 0);
  mps_index_plan_write(&space, 8, &p);
  CHECK_INT(p.arguments.slices, 1);
}

static void long_rows_are_shared_before_the_indexed_dimension(void) {
  mps_tensor data = TENSOR(F32, 5, 4096), source = TENSOR(F32, 100, 4096);
  mps_index_space space = select_space(&data, &source, 0);
  mps_index_plan p;
  mps_index_plan_write(&space, 8, &p);
  CHECK_INT(p.arguments.slices, 1);
  CHECK_INT(p.arguments.block, 256);
  CHECK_INTS(p.threads, 1, 1, 16);
  mps_tensor narrow = TENSOR(F32, 5, 500), from = TENSOR(F32, 100, 500);
  space = select_space(&narrow, &from, 0);
  mps_index_plan_write(&space, 4, &p); /* blocks do not become shorter than 64 */
  CHECK_INT(p.arguments.block, 64);
  CHECK_INTS(p.threads, 1, 4, 8);
  mps_tensor few = TENSOR(F32, 3, 4096); /* too little to share */
  space = select_space(&data, &few, 0);
  space.sizes[0] = 1;
  mps_index_plan_write(&space, 8, &p);
  CHECK_INT(p.arguments.block, 2048);
}

static void many_outer_points_need_no_slices(void) {
  mps_tensor data = TENSOR(F32, 64, 5, 200), source = TENSOR(F32, 64, 3, 200);
  mps_index_space space = select_space(&data, &source, 1);
  mps_index_plan p;
  mps_index_plan_write(&space, 8, &p);
  CHECK_INT(p.arguments.outer_rank, 1);
  CHECK_INT(p.arguments.walk_rank, 1);
  CHECK_INTS(p.arguments.sizes, 64, 3); /* outer ones, then walked ones */
  CHECK_INTS(p.arguments.data_strides, 1000, 0);
  CHECK_INTS(p.arguments.value_strides, 600, 200);
  CHECK_INTS(p.threads, 64, 1, 1);
}

static void walked_dimensions_follow_outer_ones(void) {
  mps_tensor data = TENSOR(F32, 5, 6, 7), source = TENSOR(F32, 2, 6, 7); /* dimension 0 is walked, 1 is outer: it cannot merge with 2 */
  source.strides[0] = 1, source.strides[1] = 20, source.strides[2] = 2;
  mps_index_space space = select_space(&data, &source, 0);
  mps_index_plan p;
  mps_index_plan_write(&space, 8, &p);
  CHECK_INTS(p.arguments.sizes, 6, 2);
  CHECK_INTS(p.arguments.value_strides, 20, 1);
  CHECK_INTS(p.arguments.index_strides, 0, 1);
  CHECK_INT(p.arguments.value_run, 2);
  CHECK_INTS(p.threads, 6, 1, 1);
}

static void runs_of_indices_are_not_cut(void) {
  mps_tensor data = TENSOR(F32, 50), index = TENSOR(I64, 100000), source = TENSOR(F32, 100000); /* a 1-d scatter */
  mps_index_space space;
  mps_index_space_points(&space, &data, 0, &index, &source);
  mps_index_plan p;
  mps_index_plan_write(&space, 8, &p);
  CHECK_INT(p.arguments.block, 100000);
  CHECK_INTS(p.threads, 1, 1, 1); /* a cache holds the data */
  CHECK_INT(p.cost, 300010);
  mps_tensor large = TENSOR(F32, 200000);
  mps_index_space_points(&space, &large, 0, &index, &source);
  mps_index_plan_write(&space, 8, &p);
  CHECK_INTS(p.threads, 1, 8, 1);
}

static void long_walks_are_cut_into_parts(void) {
  mps_tensor data = TENSOR(F32, 5000), index = TENSOR(I64, 90001), source = TENSOR(F32, 90001);
  index.strides[0] = 2, source.strides[0] = 3, data.strides[0] = 4;
  mps_index_space space, parts, rest;
  mps_index_space_points(&space, &data, 0, &index, &source);
  CHECK_INT(mps_index_plan_parts(&space), 8); /* copies of data are no more than half of the points */
  CHECK_INT(mps_index_space_parts(&space, 8, &parts), 90000);
  CHECK_INT(parts.rank, 2);
  CHECK_INTS(parts.sizes, 8, 11250);
  CHECK_INTS(parts.data, 5000, 0);
  CHECK_INTS(parts.value, 33750, 3);
  CHECK_INTS(parts.index, 22500, 2);
  CHECK_INT(parts.index_step, 1);
  CHECK_INT(parts.index_size, 5000);
  mps_index_space_rest(&space, 90000, &rest);
  CHECK_INTS(rest.sizes, 1);
  CHECK_INT(rest.index_step, 4);
}

static void what_is_not_cut_into_parts(void) {
  mps_tensor index = TENSOR(I64, 90000), source = TENSOR(F32, 90000), large = TENSOR(F32, 40000), small = TENSOR(F32, 50), rows = TENSOR(F32, 300, 300);
  mps_index_space space;
  mps_index_space_points(&space, &large, 0, &index, &source); /* as much data as points */
  CHECK_INT(mps_index_plan_parts(&space), 1);
  mps_index_space_points(&space, &small, 0, &index, &source);
  CHECK_INT(mps_index_plan_parts(&space), 8);
  space.skipped = -1; /* offsets */
  CHECK_INT(mps_index_plan_parts(&space), 1);
  index.sizes[0] = 16000; /* too short */
  mps_index_space_points(&space, &small, 0, &index, &source);
  CHECK_INT(mps_index_plan_parts(&space), 1);
  mps_tensor matrix = TENSOR(I64, 300, 300);
  mps_index_space_points(&space, &rows, 1, &matrix, &rows); /* rows do not meet */
  CHECK_INT(mps_index_plan_parts(&space), 1);
  mps_tensor nothing = TENSOR(F32, 0);
  index.sizes[0] = 90000;
  mps_index_space_points(&space, &nothing, 0, &index, &source);
  CHECK_INT(mps_index_plan_parts(&space), 1);
}

static void parts_start_from_what_changes_no_bit(void) {
  mps_scalar value;
  CHECK(mps_index_neutral(MPS_INDEX_ADD, MPS_DTYPE_F32, &value) && value.real == 0 && __builtin_signbit(value.real));
  CHECK(mps_index_neutral(MPS_INDEX_ADD, MPS_DTYPE_C64, &value) && __builtin_signbit(value.real));
  CHECK(mps_index_neutral(MPS_INDEX_ADD, MPS_DTYPE_I8, &value) && value.integer == 0);
  CHECK(mps_index_neutral(MPS_INDEX_MULTIPLY, MPS_DTYPE_F32, &value) && value.integer == 1);
  CHECK(!mps_index_neutral(MPS_INDEX_MULTIPLY, MPS_DTYPE_C64, &value));
  CHECK(!mps_index_neutral(MPS_INDEX_ADD, MPS_DTYPE_F16, &value)); /* sums are kept in float */
  CHECK(!mps_index_neutral(MPS_INDEX_ASSIGN, MPS_DTYPE_F32, &value));
  const char *stem, *suffix;
  mps_index_join_kernel(MPS_INDEX_SMALLEST, MPS_DTYPE_U8, &stem, &suffix);
  CHECK_STRING(stem, "index_join_smallest");
  CHECK_STRING(suffix, "u8");
}

/* ---- scatter and embedding ---- */

static void rows_go_to_rows(void) {
  mps_tensor data = TENSOR(F32, 10, 3);
  mps_index_space space;
  mps_index_space_rows(&space, 7, 3, &data, 3, 2);
  CHECK_INTS(space.sizes, 7, 3);
  CHECK_INTS(space.data, 0, 1);
  CHECK_INTS(space.value, 3, 1);
  CHECK_INTS(space.index, 1, 0);
  CHECK_INT(space.index_size, 10);
  CHECK_INT(space.index_step, 3);
  mps_index_plan p;
  mps_index_plan_write(&space, 8, &p);
  CHECK_INT(p.arguments.walk_count, 7);
  CHECK_INT(p.arguments.run, 3);
  CHECK_INT(p.arguments.skipped, 2); /* padding_idx */
  mps_tensor columns = transposed(TENSOR(F32, 3, 10), 0, 1);
  mps_index_space_rows(&space, 7, 3, &columns, 3, INT64_MIN);
  CHECK_INTS(space.data, 0, 10);
  CHECK_INT(space.index_step, 1);
}

static void rows_are_counted_by_a_constant(void) {
  mps_tensor counts = TENSOR(F32, 10);
  mps_index_space space;
  mps_index_space_rows(&space, 7, 1, &counts, 0, INT64_MIN);
  CHECK_INTS(space.value, 0, 0);
  mps_index_plan p;
  mps_index_plan_write(&space, 8, &p);
  CHECK_INT(p.arguments.run, 7);
  CHECK_INT(p.arguments.data_run, 0);
  CHECK_INT(p.arguments.index_run, 1);
}

static void counts_are_laid_out_anew(void) {
  mps_tensor data = transposed(TENSOR(F32, 10, 4), 0, 1), index = TENSOR(I64, 4, 3), counts = TENSOR(F32, 4, 10);
  mps_index_space space;
  mps_index_space_points(&space, &data, 1, &index, &index);
  CHECK_INTS(space.data, 1, 0);
  CHECK_INT(space.index_step, 4);
  mps_index_space over = mps_index_space_counts(&space, &counts);
  CHECK_INTS(over.data, 10, 0);
  CHECK_INTS(over.value, 0, 0);
  CHECK_INTS(over.index, 3, 1);
  CHECK_INT(over.index_step, 1);
  CHECK_INT(over.index_size, 10);
}

static void reductions_start_from_their_identity(void) {
  CHECK_INT(mps_index_identity(MPS_INDEX_ADD, MPS_DTYPE_F32).integer, 0);
  CHECK_INT(mps_index_identity(MPS_INDEX_MULTIPLY, MPS_DTYPE_U8).integer, 1);
  CHECK_INT(mps_index_identity(MPS_INDEX_LARGEST, MPS_DTYPE_I8).integer, -128);
  CHECK_INT(mps_index_identity(MPS_INDEX_LARGEST, MPS_DTYPE_I64).integer, INT64_MIN);
  CHECK_INT(mps_index_identity(MPS_INDEX_LARGEST, MPS_DTYPE_U32).integer, 0);
  CHECK_INT(mps_index_identity(MPS_INDEX_LARGEST, MPS_DTYPE_BOOL).integer, 0);
  CHECK_INT(mps_index_identity(MPS_INDEX_SMALLEST, MPS_DTYPE_I16).unsigned_integer, 32767);
  CHECK_INT(mps_index_identity(MPS_INDEX_SMALLEST, MPS_DTYPE_I64).unsigned_integer, INT64_MAX);
  CHECK_INT(mps_index_identity(MPS_INDEX_SMALLEST, MPS_DTYPE_U8).unsigned_integer, 255);
  CHECK(mps_index_identity(MPS_INDEX_SMALLEST, MPS_DTYPE_U64).unsigned_integer == UINT64_MAX);
  CHECK_INT(mps_index_identity(MPS_INDEX_SMALLEST, MPS_DTYPE_BOOL).unsigned_integer, 1);
  CHECK(mps_index_identity(MPS_INDEX_LARGEST, MPS_DTYPE_BF16).real == -__builtin_inf());
  CHECK(mps_index_identity(MPS_INDEX_SMALLEST, MPS_DTYPE_F16).real == __builtin_inf());
}

static void check_kernel(mps_index_reduction reduction, mps_dtype dtype, const char *expected_stem, const char *expected_suffix) {
  const char *stem, *suffix;
  mps_index_write_kernel(reduction, dtype, &stem, &suffix);
  CHECK_STRING(stem, expected_stem);
  CHECK_STRING(suffix, expected_suffix);
}

static void kernels_by_dtype(void) {
  check_kernel(MPS_INDEX_ASSIGN, MPS_DTYPE_BOOL, "index_assign", "u8");
  check_kernel(MPS_INDEX_ASSIGN, MPS_DTYPE_BF16, "index_assign", "u16");
  check_kernel(MPS_INDEX_ASSIGN, MPS_DTYPE_C32, "index_assign", "u32");
  check_kernel(MPS_INDEX_ASSIGN, MPS_DTYPE_C64, "index_assign", "u64");
  check_kernel(MPS_INDEX_ADD, MPS_DTYPE_F32, "index_add", "f32");
  check_kernel(MPS_INDEX_MULTIPLY, MPS_DTYPE_C64, "index_multiply", "c64");
  check_kernel(MPS_INDEX_LARGEST, MPS_DTYPE_I8, "index_largest", "i8");
  check_kernel(MPS_INDEX_SMALLEST, MPS_DTYPE_U64, "index_smallest", "u64");
}

/* ---- masks ---- */

static void masks_are_cut_into_blocks(void) {
  mps_tensor mask = TENSOR(BOOL, 3, 5000), none = TENSOR(BOOL, 0, 7), point = zero_dimensional(MPS_DTYPE_BOOL);
  mps_tensor large = TENSOR(BOOL, ((int64_t)1 << 31) + 1);
  mps_compact_arguments a;
  CHECK_INT(mps_compact_plan_make(&a, &mask), 4);
  CHECK_INT(a.count, 15000);
  CHECK_INT(a.limit, 15000);
  CHECK_INT(a.rank, 2);
  CHECK_INTS(a.sizes, 3, 5000, 0);
  CHECK_INT(mps_compact_plan_make(&a, &none), 0);
  CHECK_INT(mps_compact_plan_make(&a, &point), 1);
  CHECK_INT(a.rank, 0);
  CHECK_INT(mps_compact_plan_make(&a, &large), 524289);
}

int main(void) {
  RUN(select_keeps_the_indexed_dimension_apart);
  RUN(neighbours_merge);
  RUN(channels_last_merges_height_and_width);
  RUN(long_runs_are_cut_into_blocks);
  RUN(counts_beyond_32_bits);
  RUN(gather_takes_an_index_a_point);
  RUN(indices_without_a_dimension);
  RUN(strided_and_expanded_indices);
  RUN(empty_and_single_points);
  RUN(offsets_span_what_varies);
  RUN(put_walks_data_and_values_together);
  RUN(equal_indices_stay_in_one_thread);
  RUN(few_threads_share_the_indexed_dimension);
  RUN(long_rows_are_shared_before_the_indexed_dimension);
  RUN(many_outer_points_need_no_slices);
  RUN(walked_dimensions_follow_outer_ones);
  RUN(runs_of_indices_are_not_cut);
  RUN(long_walks_are_cut_into_parts);
  RUN(what_is_not_cut_into_parts);
  RUN(parts_start_from_what_changes_no_bit);
  RUN(rows_go_to_rows);
  RUN(rows_are_counted_by_a_constant);
  RUN(counts_are_laid_out_anew);
  RUN(reductions_start_from_their_identity);
  RUN(kernels_by_dtype);
  RUN(masks_are_cut_into_blocks);
  return test_end();
}
