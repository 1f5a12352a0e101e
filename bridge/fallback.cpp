// SPDX-License-Identifier: BSD-3-Clause
//
// fallback: what happens to an operator that has no kernel on MPS. It is an error with upstream's text; with
// PYTORCH_ENABLE_MPS_FALLBACK=1 (read at load) the operator runs on the CPU instead, after one warning a process.
#include <ATen/native/CPUFallback.h>

#include <cstdlib>

#include "bridge/fallback.h"
#include "bridge/bridge.h"

namespace openmps {

namespace {

std::string &commit() {
  static std::string *const hash = new std::string;
  return *hash;
}

bool read_switch() {
  const char *text = std::getenv("PYTORCH_ENABLE_MPS_FALLBACK");
  return text != nullptr && std::strtol(text, nullptr, 0) != 0;
}

const bool enabled = read_switch();

// Runs on the CPU: copies arguments there (which waits for the work before), and results back.
void run_on_cpu(const c10::OperatorHandle &op, torch::jit::Stack *stack) { at::native::cpu_fallback(op, stack); }

void refuse_distributed(const c10::OperatorHandle &op) {
  TORCH_CHECK_NOT_IMPLEMENTED(op.schema().name().compare(0, 6, "c10d::") != 0, "The distributed operator '", op.schema().operator_name(),
                              "' is not currently implemented for the MPS device. If you want this op to be considered for addition please "
                              "comment on https://github.com/pytorch/pytorch/issues/141287 and mention use-case, that resulted in missing op "
                              "as well as commit hash ", commit(), ". Please note, that distributed operators can not fall back to CPU");
}

void fallback(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  refuse_distributed(op);
  TORCH_CHECK_NOT_IMPLEMENTED(
      enabled, "The operator '", op.schema().operator_name(),
      "' is not currently implemented for the MPS device. If you want this op to be considered for addition please comment on "
      "https://github.com/pytorch/pytorch/issues/141287 and mention use-case, that resulted in missing op as well as commit hash ",
      commit(), ". As a temporary fix, you can set the environment variable `PYTORCH_ENABLE_MPS_FALLBACK=1` to use the CPU as a fallback "
      "for this op. WARNING: this will be slower than running natively on MPS.");
  TORCH_WARN_ONCE("The operator '", op.schema().operator_name(),
                  "' is not currently supported on the MPS backend and will fall back to run on the CPU. "
                  "This may have performance implications.");
  run_on_cpu(op, stack);
}

TORCH_LIBRARY_IMPL(_, MPS, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }

// Upstream runs this on the CPU without asking (and linalg_svd, which is native here).
TORCH_LIBRARY_IMPL(aten, MPS, m) {
  m.impl("embedding_renorm_", torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>());
}

}  // namespace

void set_commit(const std::string &hash) { commit() = hash; }
bool fallback_enabled() { return enabled; }

}  // namespace openmps
