/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_shape_plan: the views between which elements are moved, and unfold's gradient.
 */
#include "ops/shape_plan.h"
#include "ops/unfold_plan.h"
#include "tensors.h"
#include "test.h"

#define DIMENSIONS(...) (int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

static void narrow_moves_the_start(void) {
  mps_tensor x = TENSOR(F16, 4, 6), turned = transposed(x, 0, 1);
  mps_tensor view = mps_shape_narrow(&x, 1, 2, 3);
  CHECK_INT(view.offset, 4);
  CHECK_INTS(view.sizes, 4, 3);
  CHECK_INTS(view.strides, 6, 1);
  view = mps_shape_narrow(&turned, 1, 2, 1);
  CHECK_INT(view.offset, 24);
  CHECK_INTS(view.sizes, 6, 1);
  mps_tensor large = TENSOR(F32, 3, (int64_t)1 << 31);
  CHECK_INT(mps_shape_narrow(&large, 0, 2, 1).offset, (int64_t)1 << 34);
}

static void parts_of_cat_fill_the_result(void) {
  mps_tensor parts[] = {TENSOR(F32, 2, 3), TENSOR(F32, 0), TENSOR(F32, 2, 4)}, out = TENSOR(F32, 2, 7), wide = TENSOR(F32, 2, 8), none = TENSOR(F32, 0, 7);
  CHECK(mps_shape_is_left_out(&parts[1]) && !mps_shape_is_left_out(&parts[0]) && !mps_shape_is_left_out(&none));
  CHECK_OK(mps_shape_check_cat(parts, 3, 1, &out));
  CHECK_STATUS(mps_shape_check_cat(parts, 3, 1, &wide), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "cat(): the shape of out does not fit the arguments");
  CHECK_STATUS(mps_shape_check_cat(parts, 3, 0, &out), MPS_STATUS_INVALID_ARGUMENT);
  mps_tensor empty[] = {TENSOR(F32, 0, 3), TENSOR(F32, 0, 4)};
  CHECK_OK(mps_shape_check_cat(empty, 2, 1, &none));
}

static void flip_walks_backwards(void) {
  mps_tensor x = TENSOR(F32, 2, 3), view;
  CHECK_OK(mps_shape_flip(&x, DIMENSIONS(-1), &view));
  CHECK_INT(view.offset, 8);
  CHECK_INTS(view.sizes, 2, 3);
  CHECK_INTS(view.strides, 3, -1);
  CHECK_OK(mps_shape_flip(&x, DIMENSIONS(0, 1), &view));
  CHECK_INT(view.offset, 20);
  CHECK_INTS(view.strides, -3, -1);
  CHECK_STATUS(mps_shape_flip(&x, DIMENSIONS(2), &view), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "Dimension out of range (expected to be in range of [-2, 1], but got 2)");
  mps_tensor point = zero_dimensional(MPS_DTYPE_F32), one = TENSOR(F32, 1, 3);
  CHECK_OK(mps_shape_flip(&point, DIMENSIONS(0), &view));
  CHECK_INT(view.offset, 0);
  CHECK_OK(mps_shape_flip(&one, DIMENSIONS(0), &view));
  CHECK_INT(view.offset, 0);
}

static void repeats_become_dimensions_of_their_own(void) {
  const int64_t repeats[] = {2, 4};
  mps_tensor x = TENSOR(F32, 3), out = TENSOR(F32, 2, 12), led;
  CHECK_OK(mps_shape_lead(&x, repeats, 2, &out, &led));
  CHECK_INT(led.rank, 2);
  CHECK_INTS(led.sizes, 1, 3);
  CHECK_INTS(led.strides, 0, 1);
  mps_shape_move move;
  CHECK(mps_shape_repeat(&led, repeats, &out, &move));
  CHECK_INT(move.from.rank, 3);
  CHECK_INT(move.to.rank, 3);
  CHECK_INTS(move.from.sizes, 2, 4, 3);
  CHECK_INTS(move.to.sizes, 2, 4, 3);
  CHECK_INTS(move.from.strides, 0, 0, 1);
  CHECK_INTS(move.to.strides, 12, 3, 1);
}

static void single_repeats_stay_as_they_are(void) {
  const int64_t ones[] = {1, 1}, none[] = {0, 1};
  mps_tensor x = transposed(TENSOR(F32, 5, 1), 0, 1), out = TENSOR(F32, 1, 5), empty = TENSOR(F32, 0, 5), led;
  CHECK_OK(mps_shape_lead(&x, ones, 2, &out, &led));
  mps_shape_move move;
  CHECK(mps_shape_repeat(&led, ones, &out, &move));
  CHECK_INT(move.from.rank, 2);
  CHECK_INTS(move.from.sizes, 1, 5);
  CHECK_INT(move.from.strides[1], x.strides[1]);
  CHECK_OK(mps_shape_lead(&x, none, 2, &empty, &led));
  mps_tensor point = zero_dimensional(MPS_DTYPE_F32);
  CHECK_OK(mps_shape_lead(&point, NULL, 0, &point, &led));
  CHECK(mps_shape_repeat(&led, NULL, &point, &move));
  CHECK_INT(move.from.rank, 0);
  CHECK_STATUS(mps_shape_lead(&x, ones, 1, &out, &led), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_shape_lead(&x, ones, 2, &empty, &led), MPS_STATUS_INVALID_ARGUMENT);
}

static void repeats_of_nine_dimensions_are_too_many(void) {
  const int64_t two[] = {2, 2, 2, 2, 2, 2, 2, 2, 2}, four[] = {4, 4, 4, 4, 4, 4, 4, 4, 4};
  mps_shape_move move;
  mps_tensor x = make(buffer_a(), MPS_DTYPE_U8, 8, two), out = make(buffer_b(), MPS_DTYPE_U8, 8, four);
  CHECK(mps_shape_repeat(&x, two, &out, &move));
  CHECK_INT(move.to.rank, 16);
  x = make(buffer_a(), MPS_DTYPE_U8, 9, two);
  out = make(buffer_b(), MPS_DTYPE_U8, 9, four);
  CHECK(!mps_shape_repeat(&x, two, &out, &move));
}

static void paddings_place_and_cut(void) {
  mps_tensor x = TENSOR(F32, 3, 4), wide = TENSOR(F32, 3, 7), mixed = TENSOR(F32, 2, 3), narrow = TENSOR(F32, 3, 2);
  mps_shape_move move;
  bool fills;
  CHECK_OK(mps_shape_pad(&x, DIMENSIONS(1, 2), &wide, &move, &fills));
  CHECK(!fills);
  CHECK_INT(move.from.offset, 0);
  CHECK_INT(move.to.offset, 4);
  CHECK_INTS(move.to.sizes, 3, 4);
  CHECK_INTS(move.to.strides, 7, 1);
  CHECK_OK(mps_shape_pad(&x, DIMENSIONS(-1, 0, 1, -2), &mixed, &move, &fills)); /* the last dimension first */
  CHECK(!fills);
  CHECK_INT(move.from.offset, 4);
  CHECK_INTS(move.from.sizes, 1, 3);
  CHECK_INT(move.to.offset, 12);
  CHECK_INTS(move.to.sizes, 1, 3);
  CHECK_OK(mps_shape_pad(&x, DIMENSIONS(-1, -1), &narrow, &move, &fills));
  CHECK(fills);
  CHECK_INT(move.from.offset, 4);
  CHECK_INTS(move.from.sizes, 3, 2);
  CHECK_STATUS(mps_shape_pad(&x, DIMENSIONS(1), &wide, &move, &fills), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_shape_pad(&x, DIMENSIONS(1, 1), &wide, &move, &fills), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_shape_pad(&x, DIMENSIONS(0, 3, 0, 0, 0, 0), &wide, &move, &fills), MPS_STATUS_INVALID_ARGUMENT);
}

static void paddings_that_leave_nothing(void) {
  mps_tensor x = TENSOR(F32, 4), out = TENSOR(F32, 2), none = TENSOR(F32, 0), three = TENSOR(F32, 3);
  mps_shape_move move;
  bool fills;
  CHECK_OK(mps_shape_pad(&x, DIMENSIONS(-5, 3), &out, &move, &fills));
  CHECK(!fills);
  CHECK_INTS(move.from.sizes, 0);
  CHECK_INT(move.from.offset, 0);
  CHECK_OK(mps_shape_pad(&none, DIMENSIONS(1, 2), &three, &move, &fills));
  CHECK(!fills);
  CHECK_INTS(move.to.sizes, 0);
}

static void shuffles_name_the_same_elements(void) {
  mps_tensor small = TENSOR(F32, 2, 12, 3, 5), large = TENSOR(F32, 2, 3, 6, 10), from, to;
  CHECK_OK(mps_shape_shuffle("pixel_shuffle", &small, &large, 2, &from, &to));
  CHECK_INT(from.rank, 6);
  CHECK_INTS(from.sizes, 2, 3, 3, 2, 5, 2);
  CHECK_INTS(from.strides, 180, 60, 5, 30, 1, 15);
  CHECK_INTS(to.sizes, 2, 3, 3, 2, 5, 2);
  CHECK_INTS(to.strides, 180, 60, 20, 10, 2, 1);
  small = channels_last(small);
  CHECK_OK(mps_shape_shuffle("pixel_shuffle", &small, &large, 2, &from, &to));
  CHECK_INTS(from.strides, 180, 4, 60, 2, 12, 1);
  CHECK_STATUS(mps_shape_shuffle("pixel_shuffle", &small, &large, 0, &from, &to), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_shape_shuffle("pixel_shuffle", &small, &large, 3, &from, &to), MPS_STATUS_INVALID_ARGUMENT);
  mps_tensor flat = TENSOR(F32, 2, 3);
  CHECK_STATUS(mps_shape_shuffle("pixel_shuffle", &flat, &flat, 1, &from, &to), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "pixel_shuffle(): the shape of out does not fit the arguments");
}

/* ---- unfold ---- */

static void windows_go_back_to_elements(void) {
  mps_tensor out = TENSOR(F32, 3, 10), grad = TENSOR(F32, 3, 4, 4);
  mps_unfold_plan p;
  CHECK_OK(mps_unfold_plan_make(&p, &grad, 1, 4, 2, &out));
  CHECK_INT(p.arguments.length, 10);
  CHECK_INT(p.arguments.windows, 4);
  CHECK_INT(p.arguments.out_step, 1);
  CHECK_INT(p.arguments.window_step, 4);
  CHECK_INT(p.arguments.element_step, 1);
  CHECK_INT(p.arguments.rank, 1);
  CHECK_INTS(p.arguments.sizes, 3);
  CHECK_INTS(p.arguments.out_strides, 10);
  CHECK_INTS(p.arguments.grad_strides, 16);
  CHECK_INTS(p.threads, 10, 3, 1);
  CHECK_INT(p.cost, 246); /* 48 elements of windows at 2, 30 of the result at 5 */
  grad = TENSOR(F32, 2, 10, 2);
  CHECK_OK(mps_unfold_plan_make(&p, &grad, 0, 2, 1, &out));
  CHECK_INT(p.arguments.window_step, 20);
  CHECK_INT(p.arguments.out_step, 10);
  CHECK_INTS(p.arguments.sizes, 10);
  CHECK_INTS(p.arguments.grad_strides, 2);
  CHECK_INTS(p.threads, 3, 10, 1);
}

static void windows_that_do_not_fit(void) {
  mps_tensor out = TENSOR(F32, 3, 10), grad = TENSOR(F32, 3, 4, 4), other = TENSOR(F32, 2, 4, 4), half = TENSOR(F16, 3, 4, 4);
  mps_unfold_plan p;
  CHECK_STATUS(mps_unfold_plan_make(&p, &grad, 1, 3, 2, &out), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STRING(mps_error_message(), "unfold_backward(): the gradient must have one dimension more than the result, of size 3");
  CHECK_STATUS(mps_unfold_plan_make(&p, &grad, 1, 4, 0, &out), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_unfold_plan_make(&p, &half, 1, 4, 2, &out), MPS_STATUS_INVALID_ARGUMENT);
  CHECK_STATUS(mps_unfold_plan_make(&p, &other, 1, 4, 2, &out), MPS_STATUS_INVALID_ARGUMENT);
  mps_tensor none = TENSOR(F32, 0, 10), of_none = TENSOR(F32, 0, 4, 4), empty = TENSOR(F32, 3, 0), nothing = TENSOR(F32, 3, 0, 4);
  CHECK_OK(mps_unfold_plan_make(&p, &of_none, 1, 4, 2, &none));
  CHECK_INTS(p.threads, 0, 0, 0);
  CHECK_OK(mps_unfold_plan_make(&p, &nothing, 1, 4, 2, &empty));
  CHECK_INTS(p.threads, 0, 0, 0);
}

int main(void) {
  RUN(narrow_moves_the_start);
  RUN(parts_of_cat_fill_the_result);
  RUN(flip_walks_backwards);
  RUN(repeats_become_dimensions_of_their_own);
  RUN(single_repeats_stay_as_they_are);
  RUN(repeats_of_nine_dimensions_are_too_many);
  RUN(paddings_place_and_cut);
  RUN(paddings_that_leave_nothing);
  RUN(shuffles_name_the_same_elements);
  RUN(windows_go_back_to_elements);
  RUN(windows_that_do_not_fit);
  return test_end();
}
