/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_pool_plan: windows, strides and grids of pooling, with lists of one or more numbers, any number of dimensions and any layout.
 */
#include "ops/pool_plan.h"
#include "tensors.h"
#include "test.h"

static const int64_t two[] = {2}, pair[] = {3, 2}, triple[] = {1, 2, 3};

static void windows_of_two(void) {
  mps_tensor large = TENSOR(F32, 2, 3, 8, 10), small = TENSOR(F32, 2, 3, 4, 5);
  mps_pool_call call = {.label = "max_pool2d", .stem = "pool_max", .large = &large, .small = &small, .dimensions = 2, .kernel = two, .kernel_count = 1};
  CHECK_OK(mps_pool_check(&call));
  mps_pool_plan p;
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_SMALL);
  const mps_pool_arguments *a = &p.arguments;
  CHECK_STRING(p.stem, "pool_max");
  CHECK_STRING(p.suffix, "f32");
  CHECK_INTS(a->in_size, 1, 8, 10);
  CHECK_INTS(a->out_size, 1, 4, 5);
  CHECK_INTS(a->window, 1, 2, 2);
  CHECK_INTS(a->stride, 1, 2, 2); /* missing: the window's */
  CHECK_INTS(a->padding, 0, 0, 0);
  CHECK_INTS(a->dilation, 1, 1, 1);
  CHECK_INT(a->channels, 3);
  CHECK_INT(a->in_batch, 240);
  CHECK_INT(a->in_channel, 80);
  CHECK_INTS(a->in_stride, 0, 10, 1);
  CHECK_INT(a->out_batch, 60);
  CHECK_INT(a->out_channel, 20);
  CHECK_INTS(a->out_stride, 0, 5, 1);
  CHECK_INT(a->place, 1);         /* numbers of a plane are its elements */
  CHECK_INT(a->indexed, 0);
  CHECK_INT(a->rows, 4);
  CHECK_INTS(p.threads, 1, 6, 1); /* all rows of windows, planes */
  CHECK_INT(p.cost, 360);         /* 480 elements, 120 windows of four */
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_LARGE);
  CHECK_INT(a->rows, 8);
  CHECK_INTS(p.threads, 1, 6, 1);
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_PLANES);
  CHECK_INTS(p.threads, 1, 6, 1); /* windows that may meet stay in one thread */
}

static void lists_have_one_number_or_one_a_dimension(void) {
  mps_tensor large = TENSOR(F32, 3, 20, 20), small = TENSOR(F32, 3, 9, 10); /* no batch */
  mps_pool_call call = {.large = &large, .small = &small, .dimensions = 2, .kernel = pair, .kernel_count = 2, .stride = two, .stride_count = 1,
                        .padding = pair, .padding_count = 2, .dilation = pair, .dilation_count = 2};
  CHECK_OK(mps_pool_check(&call));
  mps_pool_plan p;
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_SMALL);
  CHECK_INTS(p.arguments.window, 1, 3, 2);
  CHECK_INTS(p.arguments.stride, 1, 2, 2);
  CHECK_INTS(p.arguments.padding, 0, 3, 2);
  CHECK_INTS(p.arguments.dilation, 1, 3, 2);
  CHECK_INT(p.arguments.in_batch, 0);
  CHECK_INT(p.arguments.in_channel, 400);
  CHECK_INTS(p.threads, 1, 3, 1);
}

static void three_dimensions(void) {
  mps_tensor large = TENSOR(F32, 2, 4, 6, 8, 10), small = TENSOR(F32, 2, 4, 6, 4, 3);
  mps_pool_call call = {.large = &large, .small = &small, .dimensions = 3, .kernel = triple, .kernel_count = 3};
  CHECK_OK(mps_pool_check(&call));
  mps_pool_plan p;
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_SMALL);
  CHECK_INTS(p.arguments.in_size, 6, 8, 10);
  CHECK_INTS(p.arguments.window, 1, 2, 3);
  CHECK_INTS(p.arguments.stride, 1, 2, 3);
  CHECK_INTS(p.arguments.in_stride, 80, 10, 1);
  CHECK_INT(p.arguments.in_batch, 1920);
  CHECK_INTS(p.threads, 1, 8, 1);
}

static void each_tensor_has_strides_of_its_own(void) {
  mps_tensor large = channels_last(TENSOR(F16, 2, 3, 8, 10)), small = transposed(TENSOR(F16, 2, 3, 5, 4), 2, 3), indices = TENSOR(I64, 2, 3, 4, 5);
  mps_pool_call call = {.large = &large, .small = &small, .indices = &indices, .dimensions = 2, .kernel = two, .kernel_count = 1};
  CHECK_OK(mps_pool_check(&call));
  mps_pool_plan p;
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_SMALL);
  CHECK_STRING(p.suffix, "f16");
  CHECK_INT(p.arguments.in_batch, 240);
  CHECK_INT(p.arguments.in_channel, 1);
  CHECK_INTS(p.arguments.in_stride, 0, 30, 3);
  CHECK_INTS(p.arguments.out_stride, 0, 1, 4);
  CHECK_INTS(p.arguments.index_stride, 0, 5, 1);
  CHECK_INT(p.arguments.index_batch, 60);
  CHECK_INT(p.arguments.indexed, 1);
  CHECK_INT(p.arguments.place, 3);         /* pixel by pixel */
  CHECK_INT(p.arguments.channel_block, 0); /* three channels are too few to go side by side */
}

static void gradients_go_by_the_dtype_of_windows(void) {
  mps_tensor sums = TENSOR(F32, 1, 1, 4, 4), grad = TENSOR(BF16, 1, 1, 2, 2); /* sums of a bfloat gradient are kept in float */
  mps_pool_call call = {.stem = "pool_average_backward", .large = &sums, .small = &grad, .dimensions = 2, .kernel = two, .kernel_count = 1};
  mps_pool_plan p;
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_LARGE);
  CHECK_STRING(p.suffix, "bf16");
}

static void adaptive_windows_need_no_lists(void) {
  mps_tensor large = TENSOR(F32, 1, 2, 7, 5), small = TENSOR(F32, 1, 2, 3, 2);
  mps_pool_call call = {.large = &large, .small = &small, .dimensions = 2, .adaptive = true};
  CHECK_OK(mps_pool_check(&call));
  mps_pool_plan p;
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_SMALL);
  CHECK_INTS(p.arguments.kind, MPS_POOL_REGULAR, MPS_POOL_ADAPTIVE, MPS_POOL_ADAPTIVE);
  CHECK_INTS(p.arguments.window, 1, 1, 1);
  CHECK_INTS(p.threads, 1, 2, 1);
}

static void adaptive_windows_that_are_alike_are_regular(void) {
  mps_tensor large = TENSOR(F32, 1, 2, 6, 5), small = TENSOR(F32, 1, 2, 3, 2);
  mps_pool_call call = {.large = &large, .small = &small, .dimensions = 2, .adaptive = true};
  mps_pool_plan p;
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_SMALL);
  CHECK_INTS(p.arguments.kind, MPS_POOL_REGULAR, MPS_POOL_REGULAR, MPS_POOL_ADAPTIVE); /* 6 / 3, but 5 / 2 */
  CHECK_INTS(p.arguments.window, 1, 2, 1);
  CHECK_INTS(p.arguments.stride, 1, 2, 1);
}

static void one_window_over_all_is_one_line(void) {
  mps_tensor large = TENSOR(F32, 2, 3, 4, 7, 5), small = TENSOR(F32, 2, 3, 1, 1, 1), flat = TENSOR(F32, 2, 3, 2, 1, 1);
  mps_pool_call call = {.large = &large, .small = &small, .dimensions = 3, .adaptive = true};
  mps_pool_plan p;
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_SMALL);
  CHECK_INTS(p.arguments.in_size, 1, 1, 140);
  CHECK_INTS(p.arguments.window, 1, 1, 140);
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_PLANES); /* numbers need the sizes */
  CHECK_INTS(p.arguments.in_size, 4, 7, 5);
  call.small = &flat;
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_SMALL);
  CHECK_INTS(p.arguments.in_size, 4, 1, 35);
  CHECK_INTS(p.arguments.window, 2, 1, 35);
  large = transposed(TENSOR(F32, 2, 3, 5, 7, 4), 2, 4); /* lines that are no neighbours stay apart */
  call.small = &small;
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_SMALL);
  CHECK_INTS(p.arguments.in_size, 4, 7, 5);
}

static void channels_side_by_side(void) {
  mps_tensor large = channels_last(TENSOR(F32, 2, 300, 8, 10)), small = channels_last(TENSOR(F32, 2, 300, 4, 5)), rows = TENSOR(F32, 2, 300, 4, 5);
  mps_pool_call call = {.large = &large, .small = &small, .dimensions = 2, .kernel = two, .kernel_count = 1};
  mps_pool_plan p;
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_SMALL);
  CHECK_INT(p.arguments.channel_block, 256);
  CHECK_INT(p.arguments.rows, 4);
  CHECK_INTS(p.threads, 1, 2, 2);
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_LARGE);
  CHECK_INTS(p.threads, 2, 2, 2);
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_PLANES);
  CHECK_INT(p.arguments.channel_block, 64);
  CHECK_INT(p.arguments.place, 300);
  CHECK_INTS(p.threads, 5, 2, 1);
  call.small = &rows; /* what counts is the side that is read */
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_LARGE);
  CHECK_INT(p.arguments.channel_block, 0);
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_SMALL);
  CHECK_INT(p.arguments.channel_block, 256);
}

static void fractional_windows_have_samples(void) {
  mps_tensor large = TENSOR(F32, 2, 3, 9, 10), small = TENSOR(F32, 2, 3, 4, 5), samples = TENSOR(F32, 2, 3, 2), others = TENSOR(F16, 2, 3, 2);
  mps_pool_call call = {.label = "fractional_max_pool2d", .large = &large, .small = &small, .samples = &samples, .dimensions = 2, .kernel = two,
                        .kernel_count = 1, .only_floats = true};
  CHECK_OK(mps_pool_check(&call));
  mps_pool_plan p;
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_SMALL);
  CHECK_INTS(p.arguments.kind, MPS_POOL_REGULAR, MPS_POOL_FRACTIONAL, MPS_POOL_FRACTIONAL);
  CHECK_INT(p.arguments.samples, 2);
  CHECK_INTS(p.arguments.window, 1, 2, 2);
  call.samples = &others;
  CHECK_STATUS(mps_pool_check(&call), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "Expect _random_samples to have the same dtype as input");
  call.samples = &samples;
  call.kernel = (int64_t[]){7};
  CHECK_STATUS(mps_pool_check(&call), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "fractional_max_pool2d(): windows too large for the input in dimension 0");
  mps_tensor whole = TENSOR(I64, 2, 3, 9, 10);
  call.small = call.large = &whole;
  CHECK_STATUS(mps_pool_check(&call), MPS_STATUS_NOT_IMPLEMENTED);
  CHECK_STRING(mps_error_message(), "\"fractional_max_pool2d\" not implemented for 'Long'");
}

static void divisors(void) {
  const int64_t seven = 7;
  mps_tensor large = TENSOR(F32, 1, 4, 4), small = TENSOR(F32, 1, 2, 2);
  mps_pool_call call = {.large = &large, .small = &small, .dimensions = 2, .kernel = two, .kernel_count = 1, .count_include_pad = true};
  mps_pool_plan p;
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_SMALL);
  CHECK_INT(p.arguments.divisor, 0);
  CHECK_INT(p.arguments.count_include_pad, 1);
  call.divisor = &seven;
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_SMALL);
  CHECK_INT(p.arguments.divisor, 7);
}

static void empty_batches_and_large_planes(void) {
  mps_tensor none = TENSOR(F32, 0, 3, 8, 10), no_windows = TENSOR(F32, 0, 3, 4, 5);
  mps_pool_call call = {.large = &none, .small = &no_windows, .dimensions = 2, .kernel = two, .kernel_count = 1};
  mps_pool_plan p;
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_SMALL);
  CHECK_INTS(p.threads, 1, 0, 1);
  mps_tensor large = TENSOR(U8, 1, 2, 70000, 70000), small = TENSOR(U8, 1, 2, 35000, 35000);
  call.large = &large;
  call.small = &small;
  mps_pool_plan_make(&p, &call, MPS_POOL_GRID_SMALL);
  CHECK_INT(p.arguments.in_channel, 4900000000);
  CHECK_INT(p.arguments.in_batch, 9800000000);
  CHECK_INTS(p.threads, 35000, 2, 1); /* a row each */
}

static void refusals(void) {
  mps_tensor large = TENSOR(F32, 2, 3, 8, 10), small = TENSOR(F32, 2, 3, 4, 5), flat = TENSOR(F32, 8, 10), other = TENSOR(F32, 2, 4, 4, 5);
  mps_tensor narrow = TENSOR(I32, 2, 3, 4, 5);
  mps_pool_call call = {.label = "max_pool2d", .large = &large, .small = &small, .dimensions = 2, .kernel = two, .kernel_count = 1};
  mps_pool_call bad = call;
  bad.large = bad.small = &flat;
  CHECK_STATUS(mps_pool_check(&bad), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "max_pool2d(): Expected 3D or 4D tensors, got 2D and 2D");
  bad = call;
  bad.small = &other;
  CHECK_STATUS(mps_pool_check(&bad), MPS_STATUS_INVALID_ARGUMENT);
  bad = call;
  bad.indices = &narrow;
  CHECK_STATUS(mps_pool_check(&bad), MPS_STATUS_INVALID_ARGUMENT);
  bad = call;
  bad.kernel = triple, bad.kernel_count = 3;
  CHECK_STATUS(mps_pool_check(&bad), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "max_pool2d(): a list must have one or 2 numbers, got 3");
  bad = call;
  bad.stride = (int64_t[]){0}, bad.stride_count = 1;
  CHECK_STATUS(mps_pool_check(&bad), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "max_pool2d(): kernel size, stride and dilation must be greater than zero");
}

int main(void) {
  RUN(windows_of_two);
  RUN(lists_have_one_number_or_one_a_dimension);
  RUN(three_dimensions);
  RUN(each_tensor_has_strides_of_its_own);
  RUN(gradients_go_by_the_dtype_of_windows);
  RUN(adaptive_windows_need_no_lists);
  RUN(adaptive_windows_that_are_alike_are_regular);
  RUN(one_window_over_all_is_one_line);
  RUN(channels_side_by_side);
  RUN(fractional_windows_have_samples);
  RUN(divisors);
  RUN(empty_batches_and_large_planes);
  RUN(refusals);
  return test_end();
}
