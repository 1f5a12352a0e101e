/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ctc: connectionist temporal classification, which upstream does not list for MPS. Lengths that are tensors are brought to the CPU, as on
 * every device: the size of log_alpha depends on them.
 */
#include <ATen/TensorUtils.h>
#include <ATen/ops/_ctc_loss_backward_native.h>
#include <ATen/ops/_ctc_loss_native.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <algorithm>

#include "bridge/convert.h"
#include "openmps/ops/ctc.h"

namespace openmps::native {
namespace {

constexpr const char *kChecking = "ctc_loss_allocate_outputs";

void check_forward(const at::Tensor &log_probs, const at::Tensor &targets) {
  TORCH_CHECK(log_probs.numel() > 0, "log_probs tensor must not be empty");
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(log_probs.scalar_type()), "\"ctc_loss_cpu\" not implemented for '", log_probs.scalar_type(), "'");
  const at::TensorArg log_probs_(log_probs, "log_probs", 1), targets_(targets, "targets", 2);
  at::checkScalarType(kChecking, targets_, targets.scalar_type() == at::kLong ? at::kLong : at::kInt);
  at::checkDim(kChecking, log_probs_, 3);
  at::checkDimRange(kChecking, targets_, 1, 3);
}

std::tuple<at::Tensor, at::Tensor> ctc_loss(const at::Tensor &log_probs, const at::Tensor &targets, at::IntArrayRef input_lengths,
                                            at::IntArrayRef target_lengths, int64_t blank, bool /*zero_infinity*/) {
  check_forward(log_probs, targets);
  int64_t longest = 0;
  for (const int64_t length : target_lengths) longest = std::max(longest, length);
  longest = std::min(longest, targets.size(-1));  // a longer one is refused below
  const at::Tensor losses = empty({log_probs.size(1)}, log_probs.options());
  const at::Tensor log_alpha = empty({log_probs.size(1), log_probs.size(0), 2 * longest + 1}, log_probs.options().dtype(at::kFloat));
  const List<int64_t> input_lengths_(input_lengths), target_lengths_(target_lengths);
  const Operand log_probs_(log_probs, Operand::plain), targets_(targets, Operand::plain), losses_(losses, Operand::output),
      log_alpha_(log_alpha, Operand::output);
  check(mps_op_ctc_loss(stream(), log_probs_.pointer(), targets_.pointer(), input_lengths_.data(), input_lengths_.count(), target_lengths_.data(),
                        target_lengths_.count(), blank, losses_.pointer(), log_alpha_.pointer()));
  return {losses, log_alpha};
}

void check_backward(const at::Tensor &grad, const at::Tensor &log_probs, const at::Tensor &targets) {
  const at::ScalarType type = log_probs.scalar_type(), target_type = targets.scalar_type() == at::kLong ? at::kLong : at::kInt;
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(type), "\"ctc_loss_backward_cpu\" not implemented for '", type, "'");
  TORCH_CHECK(targets.scalar_type() == target_type, "expected scalar type ", target_type, " but found ", targets.scalar_type());
  TORCH_CHECK(grad.scalar_type() == type, "expected scalar type ", type, " but found ", grad.scalar_type());
  TORCH_CHECK(grad.dim() == 1, "TensorAccessor expected 1 dims but tensor has ", grad.dim());
}

at::Tensor ctc_loss_backward(const at::Tensor &grad, const at::Tensor &log_probs, const at::Tensor &targets, at::IntArrayRef input_lengths,
                             at::IntArrayRef target_lengths, const at::Tensor &neg_log_likelihood, const at::Tensor & /*log_alpha*/,
                             int64_t blank, bool zero_infinity) {
  check_backward(grad, log_probs, targets);
  const at::Tensor out = at::empty_like(log_probs, at::MemoryFormat::Contiguous);
  const List<int64_t> input_lengths_(input_lengths), target_lengths_(target_lengths);
  const Operand grad_(grad, Operand::plain), log_probs_(log_probs, Operand::plain), targets_(targets, Operand::plain),
      losses_(neg_log_likelihood, Operand::plain), out_(out, Operand::output);
  check(mps_op_ctc_loss_backward(stream(), grad_.pointer(), log_probs_.pointer(), targets_.pointer(), input_lengths_.data(), input_lengths_.count(),
                                 target_lengths_.data(), target_lengths_.count(), losses_.pointer(), blank, zero_infinity, out_.pointer()));
  return out;
}

TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("_ctc_loss", TORCH_FN(ctc_loss));
  m.impl("_ctc_loss.Tensor", TORCH_FN(at::native::ctc_loss_tensor));
  m.impl("_ctc_loss_backward", TORCH_FN(ctc_loss_backward));
  m.impl("_ctc_loss_backward.Tensor", TORCH_FN(at::native::ctc_loss_backward_tensor));
}

}  // namespace
}  // namespace openmps::native
