/* SPDX-License-Identifier: BSD-3-Clause
 *
 * provider_gemm: matrix products by the BLAS in torch's wheel. f32 and complex64 go to sgemm_ and cgemm_ straight, halves to oneDNN where it
 * has them, else through f32: blocks of both operands are converted, products accumulate in f32 and are rounded once.
 */
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <climits>
#include <complex>
#include <cstring>
#include <type_traits>

#include "bridge/provider.h"

using complex64 = std::complex<float>;

extern "C" {
void sgemm_(const char *, const char *, const int *, const int *, const int *, const float *, const float *, const int *, const float *,
            const int *, const float *, float *, const int *);
void cgemm_(const char *, const char *, const int *, const int *, const int *, const complex64 *, const complex64 *, const int *,
            const complex64 *, const int *, const complex64 *, complex64 *, const int *);
void sgemv_(const char *, const int *, const int *, const float *, const float *, const int *, const float *, const int *, const float *,
            float *, const int *);
}

namespace openmps::dense {
namespace {

// What one core does: multiply-adds and bytes a nanosecond.
constexpr double kMacsPerNs = 40.0, kNativeMacsPerNs = 160.0, kBytesPerNs = 8.0;
constexpr int64_t kDepthBlock = 512;  // of products of halves through f32
constexpr double kPieceNs = 3e6;      // BLAS packs its operands anew for each piece: 64 pieces of a 1024-cube take 10 % more than one

template <typename T>
struct Matrix {
  T *data;
  int64_t rows, columns;  // sizes
  int64_t row, column;    // strides
  bool conjugate;
};

template <typename T>
Matrix<T> transposed(const Matrix<T> &m) {
  return {m.data, m.columns, m.rows, m.column, m.row, m.conjugate};
}

// Batch items [b0, b1), rows [m0, m1), columns [n0, n1) and terms [k0, k1) of a product.
struct Piece {
  int64_t b0, b1, m0, m1, n0, n1, k0, k1;
};

template <typename T>
Matrix<T> part(const mps_dense_matrix &m, int64_t b, int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
  T *data = m.data == nullptr ? nullptr : static_cast<T *>(m.data) + b * m.batch_stride + r0 * m.row_stride + c0 * m.column_stride;
  return {data, r1 - r0, c1 - c0, m.row_stride, m.column_stride, m.conjugate};
}

// ---- copies ----

template <typename T>
T conjugated(T value, bool conjugate) {
  if constexpr (std::is_same_v<T, complex64>) return conjugate ? std::conj(value) : value;
  return value;
}

template <typename T>
void copy(const Matrix<T> &from, const Matrix<T> &to) {
  constexpr int64_t block = 32;
  if (from.column == 1 && to.column == 1 && !from.conjugate) {
    for (int64_t r = 0; r < to.rows; r++)
      std::memcpy(static_cast<void *>(to.data + r * to.row), from.data + r * from.row, static_cast<size_t>(to.columns) * sizeof(T));
    return;
  }
  for (int64_t r0 = 0; r0 < to.rows; r0 += block)
    for (int64_t c0 = 0; c0 < to.columns; c0 += block)
      for (int64_t r = r0; r < std::min(r0 + block, to.rows); r++)
        for (int64_t c = c0; c < std::min(c0 + block, to.columns); c++)
          to.data[r * to.row + c * to.column] = conjugated(from.data[r * from.row + c * from.column], from.conjugate);
}

// A row-major copy in the thread's memory.
template <typename T>
Matrix<T> packed(const Matrix<T> &m, unsigned slot) {
  T *data = static_cast<T *>(scratch(slot, static_cast<size_t>(m.rows * m.columns) * sizeof(T)));
  Matrix<T> to{data, m.rows, m.columns, m.columns, 1, false};
  copy(m, to);
  return to;
}

// ---- one product by BLAS ----

// Rows without gaps that BLAS can step over.
template <typename T>
bool is_row_major(const Matrix<T> &m) {
  return (m.column == 1 || m.columns == 1) && (m.rows == 1 || (m.row >= std::max<int64_t>(1, m.columns) && m.row <= INT_MAX));
}

template <typename T>
int leading(const Matrix<T> &m) {
  return static_cast<int>(m.rows == 1 ? std::max<int64_t>(1, m.columns) : m.row);
}

// How BLAS, which counts columns first, sees a matrix that is wanted transposed: 'N' for row-major memory.
template <typename T>
char orientation(Matrix<T> &m, unsigned slot, int &ld) {
  if (is_row_major(m) && !m.conjugate) {
    ld = leading(m);
    return 'N';
  }
  Matrix<T> t = transposed(m);
  if (is_row_major(t)) {
    ld = leading(t);
    return m.conjugate ? 'C' : 'T';
  }
  m = packed(m, slot);
  ld = leading(m);
  return 'N';
}

void call_gemm(char ta, char tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc) {
  sgemm_(&ta, &tb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
}
void call_gemm(char ta, char tb, int m, int n, int k, complex64 alpha, const complex64 *a, int lda, const complex64 *b, int ldb,
               complex64 beta, complex64 *c, int ldc) {
  cgemm_(&ta, &tb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
}

bool fits(int64_t a, int64_t b = 0, int64_t c = 0) { return std::max({a, b, c}) <= INT_MAX; }

// y = alpha * a @ x + beta * y for vectors x and y; false where BLAS cannot step over them.
bool vector_product(float alpha, Matrix<float> a, const Matrix<float> &x, float beta, const Matrix<float> &y) {
  int64_t step_x = x.rows == 1 ? 1 : x.row, step_y = y.rows == 1 ? 1 : y.row;
  if (step_x <= 0 || step_y <= 0 || !fits(step_x, step_y)) return false;
  int ld, increment_x = static_cast<int>(step_x), increment_y = static_cast<int>(step_y);
  bool straight = orientation(a, 0, ld) == 'N';
  char transpose = straight ? 'T' : 'N';
  int rows = static_cast<int>(straight ? a.columns : a.rows), columns = static_cast<int>(straight ? a.rows : a.columns);
  sgemv_(&transpose, &rows, &columns, &alpha, a.data, &ld, x.data, &increment_x, &beta, y.data, &increment_y);
  return true;
}

template <typename T>
void scale(T beta, const Matrix<T> &c) {
  for (int64_t r = 0; r < c.rows; r++)
    for (int64_t i = 0; i < c.columns; i++) {
      T &value = c.data[r * c.row + i * c.column];
      value = beta == T(0) ? T(0) : beta * value;
    }
}

// c = alpha * a @ b + beta * c; c holds the bias already.
template <typename T>
void product(T alpha, Matrix<T> a, Matrix<T> b, T beta, Matrix<T> c) {
  if (!is_row_major(c)) {
    if (is_row_major(transposed(c))) return product(alpha, transposed(b), transposed(a), beta, transposed(c));
    Matrix<T> whole{static_cast<T *>(scratch(2, static_cast<size_t>(c.rows * c.columns) * sizeof(T))), c.rows, c.columns, c.columns, 1, false};
    if (beta != T(0)) copy(c, whole);
    product(alpha, a, b, beta, whole);
    return copy(whole, c);
  }
  if constexpr (std::is_same_v<T, float>) {
    if (a.columns > 0 && c.columns == 1 && vector_product(alpha, a, b, beta, c)) return;
    if (a.columns > 0 && c.rows == 1 && vector_product(alpha, transposed(b), transposed(a), beta, transposed(c))) return;
  }
  if (a.columns == 0) return scale(beta, c);
  int lda, ldb;
  char ta = orientation(a, 0, lda), tb = orientation(b, 1, ldb);
  call_gemm(tb, ta, static_cast<int>(c.columns), static_cast<int>(c.rows), static_cast<int>(a.columns), alpha, b.data, ldb, a.data, lda, beta,
            c.data, leading(c));
}

template <typename T>
T number(const mps_scalar &s) {
  if constexpr (std::is_same_v<T, complex64>)
    return {static_cast<float>(s.real), static_cast<float>(s.imaginary)};
  else
    return static_cast<T>(s.real);
}

bool is_out(const mps_dense_matrix &m, const mps_dense_matrix &out) {
  return m.data == out.data && m.batch_stride == out.batch_stride && m.row_stride == out.row_stride && m.column_stride == out.column_stride;
}

template <typename T>
void run_blas(const mps_dense_gemm &g, const Piece &p) {
  T alpha = number<T>(g.alpha), beta = g.bias.data == nullptr ? T(0) : number<T>(g.beta);
  for (int64_t b = p.b0; b < p.b1; b++) {
    Matrix<T> out = part<T>(g.out, b, p.m0, p.m1, p.n0, p.n1);
    if (g.bias.data != nullptr && (!is_out(g.bias, g.out) || g.bias.conjugate)) copy(part<T>(g.bias, b, p.m0, p.m1, p.n0, p.n1), out);
    product(alpha, part<T>(g.a, b, p.m0, p.m1, p.k0, p.k1), part<T>(g.b, b, p.k0, p.k1, p.n0, p.n1), beta, out);
  }
}

// ---- halves ----

at::Tensor view(const mps_dense_matrix &m, const Piece &p, int64_t r0, int64_t r1, int64_t c0, int64_t c1, at::ScalarType type) {
  char *data = static_cast<char *>(m.data) +
               (p.b0 * m.batch_stride + r0 * m.row_stride + c0 * m.column_stride) * static_cast<int64_t>(c10::elementSize(type));
  if (p.b1 - p.b0 == 1) return alias(data, {r1 - r0, c1 - c0}, {m.row_stride, m.column_stride}, type);
  return alias(data, {p.b1 - p.b0, r1 - r0, c1 - c0}, {m.batch_stride, m.row_stride, m.column_stride}, type);
}

// By ATen, whose own choice is oneDNN here.
void run_native(const mps_dense_gemm &g, const Piece &p, at::ScalarType type) {
  at::Tensor a = view(g.a, p, p.m0, p.m1, p.k0, p.k1, type), b = view(g.b, p, p.k0, p.k1, p.n0, p.n1, type);
  at::Tensor out = view(g.out, p, p.m0, p.m1, p.n0, p.n1, type);
  bool batched = p.b1 - p.b0 > 1;
  if (g.bias.data == nullptr && g.alpha.real == 1.0) {
    batched ? at::bmm_out(out, a, b) : at::mm_out(out, a, b);
    return;
  }
  at::Tensor bias = g.bias.data == nullptr || is_out(g.bias, g.out) ? out : view(g.bias, p, p.m0, p.m1, p.n0, p.n1, type);
  double beta = g.bias.data == nullptr ? 0.0 : g.beta.real;
  batched ? at::baddbmm_out(out, bias, a, b, beta, g.alpha.real) : at::addmm_out(out, bias, a, b, beta, g.alpha.real);
}

Matrix<float> widened(const at::Tensor &from, unsigned slot) {
  int64_t rows = from.size(0), columns = from.size(1);
  float *data = static_cast<float *>(scratch(slot, static_cast<size_t>(rows * columns) * sizeof(float)));
  // The copy keeps the orientation, so that both sides are read and written along memory.
  bool straight = from.stride(1) == 1 || from.stride(0) != 1;
  Matrix<float> to{data, rows, columns, straight ? columns : 1, straight ? 1 : rows, false};
  alias(data, {rows, columns}, {to.row, to.column}, at::kFloat).copy_(from);
  return to;
}

// The products of one batch item, accumulated in f32 at `sum` (row-major).
void accumulate(const mps_dense_gemm &g, const Piece &p, at::ScalarType type, float *sum) {
  Matrix<float> to{sum, p.m1 - p.m0, p.n1 - p.n0, p.n1 - p.n0, 1, false};
  for (int64_t k = p.k0; k < p.k1; k += kDepthBlock) {
    int64_t end = std::min(k + kDepthBlock, p.k1);
    Matrix<float> a = widened(view(g.a, p, p.m0, p.m1, k, end, type), 0), b = widened(view(g.b, p, k, end, p.n0, p.n1, type), 1);
    product(1.0f, a, b, k == p.k0 ? 0.0f : 1.0f, to);
  }
  if (p.k0 == p.k1) std::fill_n(sum, (p.m1 - p.m0) * (p.n1 - p.n0), 0.0f);
}

// out = round(alpha * sum + beta * bias) for one batch item.
void finish(const mps_dense_gemm &g, const Piece &p, at::ScalarType type, float *sum) {
  int64_t count = (p.m1 - p.m0) * (p.n1 - p.n0);
  float alpha = static_cast<float>(g.alpha.real), beta = static_cast<float>(g.beta.real);
  if (alpha != 1.0f)
    for (int64_t i = 0; i < count; i++) sum[i] *= alpha;
  if (g.bias.data != nullptr) {
    Matrix<float> bias = widened(view(g.bias, p, p.m0, p.m1, p.n0, p.n1, type), 0);
    for (int64_t r = 0, i = 0; r < bias.rows; r++)
      for (int64_t c = 0; c < bias.columns; c++, i++) sum[i] += beta * bias.data[r * bias.row + c * bias.column];
  }
  view(g.out, p, p.m0, p.m1, p.n0, p.n1, type).copy_(alias(sum, {p.m1 - p.m0, p.n1 - p.n0}, {p.n1 - p.n0, 1}, at::kFloat));
}

void run_widened(const mps_dense_gemm &g, Piece p, at::ScalarType type) {
  int64_t last = p.b1;
  for (; p.b0 < last; p.b0++) {
    p.b1 = p.b0 + 1;
    float *sum = static_cast<float *>(scratch(3, static_cast<size_t>((p.m1 - p.m0) * (p.n1 - p.n0)) * sizeof(float)));
    accumulate(g, p, type, sum);
    finish(g, p, type, sum);
  }
}

bool is_native(const mps_dense_gemm &g, at::ScalarType type) {
  return g.m >= 8 && g.n >= 8 && g.k >= 8 && g.m * g.n * g.k >= 32 * 32 * 32 && has_native(type);
}

void run_piece(const mps_dense_gemm &g, const Piece &p) {
  switch (g.dtype) {
    case MPS_DTYPE_F32: return run_blas<float>(g, p);
    case MPS_DTYPE_C64: return run_blas<complex64>(g, p);
    default: {
      at::ScalarType type = scalar_type(g.dtype);
      return is_native(g, type) ? run_native(g, p, type) : run_widened(g, p, type);
    }
  }
}

// ---- cutting into pieces: by the shape alone, so that results do not depend on how many threads there are ----

struct Cut {
  int64_t batch, rows, columns, depth;                          // sizes of a piece
  int64_t batch_count, row_count, column_count, depth_count;    // pieces along each
  int64_t count() const { return batch_count * row_count * column_count * depth_count; }
};

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

double cost(const mps_dense_gemm &g) {
  double b = static_cast<double>(g.batch), m = static_cast<double>(g.m), n = static_cast<double>(g.n), k = static_cast<double>(g.k);
  double macs = b * m * n * k * (g.dtype == MPS_DTYPE_C64 ? 4.0 : 1.0);
  double bytes = b * (m * k + k * n + m * n) * static_cast<double>(c10::elementSize(scalar_type(g.dtype)));
  bool native = g.dtype != MPS_DTYPE_F32 && g.dtype != MPS_DTYPE_C64 && is_native(g, scalar_type(g.dtype));
  return std::max(macs / (native ? kNativeMacsPerNs : kMacsPerNs), bytes / kBytesPerNs);
}

Cut cut(const mps_dense_gemm &g) {
  constexpr int64_t smallest = 64, step = 16;
  int64_t wanted = pieces_for(cost(g), kPieceNs);
  Cut c{g.batch, g.m, g.n, g.k, 1, 1, 1, 1};
  c.batch_count = std::min(wanted, g.batch);
  c.batch = divide_up(g.batch, c.batch_count);
  c.batch_count = divide_up(g.batch, c.batch);
  while (c.batch == 1 && 3 * c.count() < 2 * wanted) {  // to the nearest power of two
    int64_t rows = divide_up(g.m, c.row_count), columns = divide_up(g.n, c.column_count);
    if (std::max(rows, columns) < 2 * smallest) break;
    (rows >= columns ? c.row_count : c.column_count) *= 2;
  }
  if (c.row_count > 1) c.rows = divide_up(divide_up(g.m, c.row_count), step) * step;
  if (c.column_count > 1) c.columns = divide_up(divide_up(g.n, c.column_count), step) * step;
  c.row_count = divide_up(g.m, c.rows);
  c.column_count = divide_up(g.n, c.columns);
  // Few outputs made of many terms: partial sums.
  if (c.batch == 1 && g.k >= 4096 && g.batch * g.m * g.n <= 16384 && c.count() < wanted) {
    c.depth = std::clamp<int64_t>(divide_up(g.k, divide_up(wanted, c.count())), 1024, 8192);
    c.depth_count = divide_up(g.k, c.depth);
  }
  return c;
}

Piece piece_at(const mps_dense_gemm &g, const Cut &c, int64_t index) {
  int64_t d = index % c.depth_count, n = index / c.depth_count % c.column_count, m = index / c.depth_count / c.column_count % c.row_count;
  int64_t b = index / c.depth_count / c.column_count / c.row_count;
  return {b * c.batch,   std::min((b + 1) * c.batch, g.batch), m * c.rows,  std::min((m + 1) * c.rows, g.m),
          n * c.columns, std::min((n + 1) * c.columns, g.n),   d * c.depth, std::min((d + 1) * c.depth, g.k)};
}

// The pieces of one output made of partial sums are added as a tree.
template <typename T>
mps_status run_partial(const mps_dense_gemm &g, const Cut &c) {
  int64_t outputs = g.batch * g.m * g.n;
  std::vector<T> partial(static_cast<size_t>(outputs * c.depth_count));
  mps_status status = spread(static_cast<uint32_t>(c.count()), [&](uint32_t i) {
    Piece p = piece_at(g, c, i);
    int64_t rows = p.m1 - p.m0, columns = p.n1 - p.n0;
    T *to = partial.data() + (i % c.depth_count) * outputs + (p.b0 * g.m + p.m0) * g.n + p.n0;
    if constexpr (std::is_same_v<T, float>) {
      if (g.dtype != MPS_DTYPE_F32) {
        float *sum = static_cast<float *>(scratch(3, static_cast<size_t>(rows * columns) * sizeof(float)));
        accumulate(g, p, scalar_type(g.dtype), sum);
        return copy(Matrix<float>{sum, rows, columns, columns, 1, false}, Matrix<float>{to, rows, columns, g.n, 1, false});
      }
    }
    product<T>(T(1), part<T>(g.a, p.b0, p.m0, p.m1, p.k0, p.k1), part<T>(g.b, p.b0, p.k0, p.k1, p.n0, p.n1), T(0),
               Matrix<T>{to, rows, columns, g.n, 1, false});
  });
  if (status != MPS_STATUS_OK) return status;
  for (int64_t width = 1; width < c.depth_count; width *= 2)
    for (int64_t d = 0; d + width < c.depth_count; d += 2 * width)
      for (int64_t i = 0; i < outputs; i++) partial[d * outputs + i] += partial[(d + width) * outputs + i];
  return spread(1, [&](uint32_t) {
    for (int64_t b = 0; b < g.batch; b++) {
      Piece whole{b, b + 1, 0, g.m, 0, g.n, 0, 0};
      T *sum = partial.data() + b * g.m * g.n;
      if constexpr (std::is_same_v<T, float>) {
        if (g.dtype != MPS_DTYPE_F32) {
          finish(g, whole, scalar_type(g.dtype), sum);
          continue;
        }
      }
      Matrix<T> out = part<T>(g.out, b, 0, g.m, 0, g.n), bias = part<T>(g.bias, b, 0, g.m, 0, g.n);
      T alpha = number<T>(g.alpha), beta = number<T>(g.beta);
      for (int64_t r = 0; r < g.m; r++)
        for (int64_t n = 0; n < g.n; n++) {
          T value = alpha * sum[r * g.n + n];
          if (bias.data != nullptr) value += beta * conjugated(bias.data[r * bias.row + n * bias.column], bias.conjugate);
          out.data[r * out.row + n * out.column] = value;
        }
    }
  });
}

}  // namespace

mps_status gemm(const mps_dense_gemm *call) {
  const mps_dense_gemm &g = *call;
  if (!fits(g.m, g.n, g.k))
    return mps_error_set(MPS_STATUS_PROVIDER_ERROR, "a matrix product of %lld x %lld x %lld is larger than BLAS can take",
                         static_cast<long long>(g.m), static_cast<long long>(g.n), static_cast<long long>(g.k));
  Cut c = cut(g);
  if (c.depth_count > 1) return g.dtype == MPS_DTYPE_C64 ? run_partial<complex64>(g, c) : run_partial<float>(g, c);
  return spread(static_cast<uint32_t>(c.count()), [&](uint32_t i) { run_piece(g, piece_at(g, c, i)); });
}

}  // namespace openmps::dense
