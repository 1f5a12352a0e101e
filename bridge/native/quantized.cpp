/* SPDX-License-Identifier: BSD-3-Clause
 *
 * quantized: weights of 8 and 4 bits, with upstream's checks and texts. 8 bits take any shape, as on the CPU.
 */
#include "bridge/convert.h"
#include "bridge/kernels/quantized.h"
#include "openmps/ops/quantized.h"

namespace openmps::native {
namespace {

void check_input(const at::Tensor &input, const char *name) {
  TORCH_CHECK(input.scalar_type() == at::kBFloat16 || input.scalar_type() == at::kHalf || input.scalar_type() == at::kFloat, name,
              " : expect A to be either 32-bit or 16-bit float tensor.");
  TORCH_CHECK(input.is_contiguous(), name, " : expect A to be contiguous.");
  TORCH_CHECK(input.dim() == 2, name, " : expect A to be 2D tensor.");
}

}  // namespace

at::Tensor _weight_int8pack_mm_mps(const at::Tensor &self, const at::Tensor &mat2, const at::Tensor &scales) {
  constexpr const char *kName = "_weight_int8pack_mm_mps";
  check_input(self, kName);
  TORCH_CHECK(mat2.scalar_type() == at::kChar, kName, " : expect B to be int8 tensor.");
  TORCH_CHECK(mat2.is_contiguous(), kName, " : expect B to be contiguous.");
  TORCH_CHECK(mat2.dim() == 2 && mat2.size(1) == self.size(1), kName, " : expect B.size(1) == ", self.size(1));
  TORCH_CHECK(scales.dim() == 1 && scales.size(0) == mat2.size(0), kName, " : expect scales to be 1d tensor with size ", mat2.size(0));
  TORCH_CHECK(scales.scalar_type() == self.scalar_type(), "expected scalar type ", self.scalar_type(), " but found ", scales.scalar_type());
  const at::Tensor out = empty({self.size(0), mat2.size(0)}, self.options());
  const Operand self_(self, Operand::plain), mat2_(mat2, Operand::plain), scales_(scales, Operand::plain), out_(out, Operand::output);
  check(mps_op_weight_int8pack_mm(stream(), self_.pointer(), mat2_.pointer(), scales_.pointer(), out_.pointer()));
  return out;
}

at::Tensor _weight_int4pack_mm_mps(const at::Tensor &self, const at::Tensor &mat2, int64_t group_size, const at::Tensor &scales_and_zeros) {
  constexpr const char *kName = "_weight_int4pack_mm_mps";
  check_input(self, kName);
  TORCH_CHECK(mat2.scalar_type() == at::kInt, kName, " : expect B to be int32 tensor.");
  TORCH_CHECK(mat2.is_contiguous(), kName, " : expect B to be contiguous.");
  TORCH_CHECK(mat2.dim() == 4, kName, " : expect B to 4d tensor.");
  TORCH_CHECK(group_size == 32 || group_size == 64 || group_size == 128 || group_size == 256, kName,
              ": expect qGroupSize to be 32, 64, 128 or 256, got ", group_size);
  const int64_t columns = mat2.size(0) * 8;
  TORCH_CHECK(scales_and_zeros.dim() == 3 && scales_and_zeros.size(1) == columns && scales_and_zeros.size(2) == 2, kName,
              ": expect qScaleAndZeros to be 3d tensor with sizes [:, ", columns, ", 2]");
  TORCH_CHECK(scales_and_zeros.scalar_type() == self.scalar_type(), "expected scalar type ", self.scalar_type(), " but found ",
              scales_and_zeros.scalar_type());
  const at::Tensor out = empty({self.size(0), columns}, self.options());
  const Operand self_(self, Operand::plain), mat2_(mat2, Operand::plain), scales_(scales_and_zeros, Operand::plain), out_(out, Operand::output);
  check(mps_op_weight_int4pack_mm(stream(), self_.pointer(), mat2_.pointer(), group_size, scales_.pointer(), out_.pointer()));
  return out;
}

at::Tensor _convert_weight_to_int4pack_mps(const at::Tensor &self, int64_t tiles) {
  constexpr const char *kName = "_convert_weight_to_int4pack_mps";
  TORCH_CHECK(self.dim() == 2, kName, " : expect weight to be 2D tensor.");
  TORCH_CHECK(self.scalar_type() == at::kByte, kName, " : expect weight to be kByte.");
  TORCH_CHECK(tiles == 2 || tiles == 4 || tiles == 8, kName, " : innerKTiles need to be 2, 4, or 8, got ", tiles);
  const int64_t rows = self.size(0), depth = self.size(1) * 2;
  // The shape is the one that all devices agree on; the values lie row by row.
  TORCH_CHECK(rows % 8 == 0 && depth % (16 * tiles) == 0, kName, " : expect the weight's rows to be a multiple of 8 and its columns one of ", 16 * tiles,
              ", got ", rows, " and ", depth);
  const at::Tensor out = empty({rows / 8, depth / (16 * tiles), 32, tiles / 2}, self.options().dtype(at::kInt));
  const Operand self_(self, Operand::plain), out_(out, Operand::output);
  check(mps_op_convert_weight_to_int4pack(stream(), self_.pointer(), out_.pointer()));
  return out;
}

}  // namespace openmps::native
