/* SPDX-License-Identifier: BSD-3-Clause
 *
 * provider: the table, and what its calls share: single-threaded library calls spread over workers, errors, scratch memory.
 */
#include "bridge/provider.h"

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/InferenceMode.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>

namespace openmps::dense {
namespace {

// A piece is worth a helper from this many nanoseconds on; small jobs are cut into at most four pieces of at least kSmallPieceNs.
constexpr double kWorthwhileNs = 40e3, kSmallPieceNs = 20e3;
constexpr int64_t kMaxPieces = 256;

// Holds OpenMP and MKL to one thread, for calls from the calling thread only, as long as it lives: the thread may be the user's, who
// waits for the stream.
class OneThread {
 public:
  OneThread() {
    static thread_local const int ready = at::get_num_threads();  // lets ATen set its own number first, once a thread
    (void)ready;
    if (omp_get != nullptr && omp_set != nullptr) {
      openmp_ = omp_get();
      if (openmp_ != 1) omp_set(1);
    }
    if (mkl_set != nullptr) mkl_ = mkl_set(1);
  }
  ~OneThread() {
    if (openmp_ != 1) omp_set(openmp_);
    if (mkl_set != nullptr && mkl_ != 1) mkl_set(mkl_);
  }
  OneThread(const OneThread &) = delete;
  OneThread &operator=(const OneThread &) = delete;

 private:
  template <class F>
  static F find(const char *name) {
    return reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
  }
  inline static const auto omp_get = find<int (*)()>("omp_get_max_threads");
  inline static const auto omp_set = find<void (*)(int)>("omp_set_num_threads");
  inline static const auto mkl_set = find<int (*)(int)>("MKL_Set_Num_Threads_Local");  // 0: no local number
  int openmp_ = 1, mkl_ = 1;
};

struct Job {
  const std::function<void(uint32_t)> &work;
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::string message;

  void fail(const char *text) {
    std::lock_guard<std::mutex> guard(mutex);
    if (!failed.exchange(true)) message = text;
  }
};

void run_piece(void *context, uint32_t index) {
  Job &job = *static_cast<Job *>(context);
  if (job.failed.load(std::memory_order_relaxed)) return;
  try {
    const OneThread held;
    c10::InferenceMode below_autograd;
    job.work(index);
  } catch (const c10::Error &e) {
    job.fail(e.what_without_backtrace());
  } catch (const std::exception &e) {
    job.fail(e.what());
  } catch (...) {
    job.fail("unknown exception");
  }
}

bool takes(mps_dense_kind kind, mps_dtype dtype) {
  if (kind >= MPS_DENSE_CHOLESKY) return dtype == MPS_DTYPE_F32 || dtype == MPS_DTYPE_C64;
  switch (dtype) {
    case MPS_DTYPE_F32:
    case MPS_DTYPE_F16:
    case MPS_DTYPE_BF16:
      return true;
    case MPS_DTYPE_C64:
      return kind == MPS_DENSE_GEMM;
    default:
      return false;
  }
}

// The calls below that reach BLAS and LAPACK alone: ATen's may meet what the user's thread has set up (modes, autocast).
bool anywhere(mps_dense_kind kind, mps_dtype dtype) {
  return kind >= MPS_DENSE_CHOLESKY || (kind == MPS_DENSE_GEMM && (dtype == MPS_DTYPE_F32 || dtype == MPS_DTYPE_C64));
}

bool ask(const char *operator_name) {
  auto schema = c10::Dispatcher::singleton().findSchema({operator_name, ""});
  return schema.has_value() && schema->typed<bool()>().call();
}

}  // namespace

mps_status spread(uint32_t count, const std::function<void(uint32_t)> &work) {
  Job job{work, {}, {}, {}};
  mps_dense_parallel(count, run_piece, &job);
  return job.failed.load() ? mps_error_set(MPS_STATUS_PROVIDER_ERROR, "%s", job.message.c_str()) : MPS_STATUS_OK;
}

int64_t pieces_for(double nanoseconds, double piece_nanoseconds) {
  if (nanoseconds < kWorthwhileNs) return 1;
  double pieces = std::max(std::min(nanoseconds / kSmallPieceNs, 4.0), nanoseconds / piece_nanoseconds);
  return std::min(static_cast<int64_t>(pieces), kMaxPieces);
}

at::ScalarType scalar_type(mps_dtype dtype) {
  switch (dtype) {
    case MPS_DTYPE_F16: return at::kHalf;
    case MPS_DTYPE_BF16: return at::kBFloat16;
    case MPS_DTYPE_C64: return at::kComplexFloat;
    default: return at::kFloat;
  }
}

at::Tensor alias(void *data, at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type) {
  return at::from_blob(data, sizes, strides, at::TensorOptions().dtype(type));
}

void *scratch(unsigned slot, size_t bytes) {
  struct Block {
    std::unique_ptr<char[]> memory;
    size_t bytes = 0;
  };
  thread_local Block blocks[4];
  Block &block = blocks[slot];
  if (block.bytes < bytes) {
    block.memory.reset();
    block.bytes = 0;
    block.memory = std::make_unique_for_overwrite<char[]>(bytes + 64);
    block.bytes = bytes;
  }
  auto address = reinterpret_cast<uintptr_t>(block.memory.get());
  return reinterpret_cast<void *>((address + 63) & ~uintptr_t{63});
}

bool has_native(at::ScalarType type) {
  static const bool half = ask("mkldnn::_is_mkldnn_fp16_supported");
  static const bool bfloat16 = ask("mkldnn::_is_mkldnn_bf16_supported");
  return type == at::kHalf ? half : bfloat16;
}

}  // namespace openmps::dense

namespace openmps {

const mps_dense_provider *dense_provider() {
  static const mps_dense_provider provider = {"torch", dense::takes, dense::gemm, dense::convolution, dense::convolution_backward,
                                              dense::factorize, dense::anywhere};
  return &provider;
}

}  // namespace openmps
