/* SPDX-License-Identifier: BSD-3-Clause
 *
 * provider_lapack: the LAPACK and level 3 BLAS of torch's wheel as overloads for float and complex64, and what the provider's factorisations
 * share: items of a batch, work memory, the spread over items.
 */
#pragma once

#include <algorithm>
#include <climits>
#include <complex>
#include <type_traits>
#include <vector>

#include "bridge/provider.h"

using complex64 = std::complex<float>;

// name(s for float, c for complex64) with one list of arguments in which T is the type.
#define OPENMPS_LAPACK(name, ...)                                                                                                     \
  template <class T>                                                                                                                  \
  struct name##_signature {                                                                                                           \
    using type = void(__VA_ARGS__);                                                                                                   \
  };
namespace openmps::lapack {
using Int = const int *;
using Char = const char *;
OPENMPS_LAPACK(gemm, Char, Char, Int, Int, Int, const T *, const T *, Int, const T *, Int, const T *, T *, Int)
OPENMPS_LAPACK(trsm, Char, Char, Char, Char, Int, Int, const T *, const T *, Int, T *, Int)
OPENMPS_LAPACK(potrf, Char, Int, T *, Int, int *)
OPENMPS_LAPACK(potrs, Char, Int, Int, const T *, Int, T *, Int, int *)
OPENMPS_LAPACK(getrf, Int, Int, T *, Int, int *, int *)
OPENMPS_LAPACK(sytrf, Char, Int, T *, Int, int *, T *, Int, int *)
OPENMPS_LAPACK(sytrs, Char, Int, Int, const T *, Int, Int, T *, Int, int *)
OPENMPS_LAPACK(geqrf, Int, Int, T *, Int, T *, T *, Int, int *)
OPENMPS_LAPACK(orgqr, Int, Int, Int, T *, Int, const T *, T *, Int, int *)
OPENMPS_LAPACK(ormqr, Char, Char, Int, Int, Int, const T *, Int, const T *, T *, Int, T *, Int, int *)
OPENMPS_LAPACK(gels, Char, Int, Int, Int, T *, Int, T *, Int, T *, Int, int *)
}  // namespace openmps::lapack
#undef OPENMPS_LAPACK

extern "C" {
openmps::lapack::gemm_signature<float>::type sgemm_;
openmps::lapack::gemm_signature<complex64>::type cgemm_;
openmps::lapack::trsm_signature<float>::type strsm_;
openmps::lapack::trsm_signature<complex64>::type ctrsm_;
openmps::lapack::potrf_signature<float>::type spotrf_, spotri_;
openmps::lapack::potrf_signature<complex64>::type cpotrf_, cpotri_;
openmps::lapack::potrs_signature<float>::type spotrs_;
openmps::lapack::potrs_signature<complex64>::type cpotrs_;
openmps::lapack::getrf_signature<float>::type sgetrf_;
openmps::lapack::getrf_signature<complex64>::type cgetrf_;
openmps::lapack::sytrf_signature<float>::type ssytrf_;
openmps::lapack::sytrf_signature<complex64>::type csytrf_, chetrf_;
openmps::lapack::sytrs_signature<float>::type ssytrs_;
openmps::lapack::sytrs_signature<complex64>::type csytrs_, chetrs_;
openmps::lapack::geqrf_signature<float>::type sgeqrf_;
openmps::lapack::geqrf_signature<complex64>::type cgeqrf_;
openmps::lapack::orgqr_signature<float>::type sorgqr_;
openmps::lapack::orgqr_signature<complex64>::type cungqr_;
openmps::lapack::ormqr_signature<float>::type sormqr_;
openmps::lapack::ormqr_signature<complex64>::type cunmqr_;
openmps::lapack::gels_signature<float>::type sgels_;
openmps::lapack::gels_signature<complex64>::type cgels_;
void sgesdd_(const char *, const int *, const int *, float *, const int *, float *, float *, const int *, float *, const int *, float *, const int *,
             int *, int *);
void cgesdd_(const char *, const int *, const int *, complex64 *, const int *, float *, complex64 *, const int *, complex64 *, const int *,
             complex64 *, const int *, float *, int *, int *);
void ssyevd_(const char *, const char *, const int *, float *, const int *, float *, float *, const int *, int *, const int *, int *);
void cheevd_(const char *, const char *, const int *, complex64 *, const int *, float *, complex64 *, const int *, float *, const int *, int *,
             const int *, int *);
void sgeev_(const char *, const char *, const int *, float *, const int *, float *, float *, float *, const int *, float *, const int *, float *,
            const int *, int *);
void cgeev_(const char *, const char *, const int *, complex64 *, const int *, complex64 *, complex64 *, const int *, complex64 *, const int *,
            complex64 *, const int *, float *, int *);
void sgelsy_(const int *, const int *, const int *, float *, const int *, float *, const int *, int *, const float *, int *, float *, const int *,
             int *);
void cgelsy_(const int *, const int *, const int *, complex64 *, const int *, complex64 *, const int *, int *, const float *, int *, complex64 *,
             const int *, float *, int *);
void sgelsd_(const int *, const int *, const int *, float *, const int *, float *, const int *, float *, const float *, int *, float *, const int *,
             int *, int *);
void cgelsd_(const int *, const int *, const int *, complex64 *, const int *, complex64 *, const int *, float *, const float *, int *, complex64 *,
             const int *, float *, int *, int *);
void sgelss_(const int *, const int *, const int *, float *, const int *, float *, const int *, float *, const float *, int *, float *, const int *,
             int *);
void cgelss_(const int *, const int *, const int *, complex64 *, const int *, complex64 *, const int *, float *, const float *, int *, complex64 *,
             const int *, float *, int *);
}

namespace openmps::dense {

using Call = mps_dense_factorization;

// f if T is float, else g.
template <class T, class F, class G>
constexpr auto choose(F f, G g) {
  if constexpr (std::is_same_v<T, float>)
    return f;
  else
    return g;
}

template <class T>
constexpr bool is_complex = std::is_same_v<T, complex64>;
template <class T>
constexpr char adjoint_letter = is_complex<T> ? 'C' : 'T';

// A column-major matrix of one item.
template <class T>
struct Columns {
  T *data;
  int leading;
  T *at(int64_t row, int64_t column) const { return data + column * leading + row; }
  Columns part(int64_t row, int64_t column) const { return {at(row, column), leading}; }
  explicit operator bool() const { return data != nullptr; }
};

template <class T>
Columns<T> item(const mps_dense_columns &c, int64_t index) {
  T *data = c.data == nullptr ? nullptr : static_cast<T *>(c.data) + index * c.batch_stride;
  return {data, static_cast<int>(std::max<int64_t>(c.leading, 1))};
}

inline void set_info(const Call &c, int64_t index, int value) {
  if (c.info.data != nullptr) *item<int>(c.info, index).data = value;
}

// LAPACK asks how much work memory a call wants: run(work, length) first with length -1, then with what it wrote to work[0].
template <class T, class Run>
void with_work(const Run &run) {
  T wanted{};
  run(&wanted, -1);
  std::vector<T> work(std::max<size_t>(1, static_cast<size_t>(std::real(wanted))));
  run(work.data(), static_cast<int>(work.size()));
}

// out = alpha op(a) op(b) + beta out: m x k by k x n.
template <class T>
void multiply(char ta, char tb, int64_t m, int64_t n, int64_t k, T alpha, Columns<T> a, Columns<T> b, T beta, Columns<T> out) {
  const int m_ = static_cast<int>(m), n_ = static_cast<int>(n), k_ = static_cast<int>(k);
  if (m_ > 0 && n_ > 0)
    choose<T>(sgemm_, cgemm_)(&ta, &tb, &m_, &n_, &k_, &alpha, a.data, &a.leading, b.data, &b.leading, &beta, out.data, &out.leading);
}

template <class T>
void solve_triangle(char side, char uplo, char trans, char diagonal, int64_t m, int64_t n, Columns<T> a, Columns<T> b) {
  const int m_ = static_cast<int>(m), n_ = static_cast<int>(n);
  const T one(1);
  if (m_ > 0 && n_ > 0) choose<T>(strsm_, ctrsm_)(&side, &uplo, &trans, &diagonal, &m_, &n_, &one, a.data, &a.leading, b.data, &b.leading);
}

// Columns (or rows) of one piece of a large matrix; pieces depend on the shape alone.
constexpr int64_t kBlock = 128;
inline uint32_t blocks(int64_t size, int64_t block = kBlock) { return static_cast<uint32_t>((size + block - 1) / block); }

// True when each item is to be cut into pieces; else items are what is spread.
inline bool is_cut(const Call &c, double nanoseconds) { return c.batch < 16 && nanoseconds > 400e3; }

// On the calling thread, as a piece is run: libraries held to one thread, exceptions as a status.
inline mps_status alone(const std::function<void()> &work) {
  return spread(1, [&](uint32_t) { work(); });
}

// work(i) for each item, several to a piece where they are small. `nanoseconds` is one item's cost.
mps_status each_item(const Call &c, double nanoseconds, const std::function<void(int64_t)> &work);

// What factors and solves have in common.
inline double real_count(int64_t a, int64_t b, int64_t c) { return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c); }
template <class T>
double factor_cost(double macs) {
  constexpr double kMacsPerNs = 20.0;
  return 500.0 + macs * (is_complex<T> ? 4.0 : 1.0) / kMacsPerNs;
}
inline int64_t width(int64_t begin, int64_t size, int64_t block = kBlock) { return std::min(block, size - begin); }
inline char letter(mps_dense_transpose transpose) { return transpose == MPS_DENSE_PLAIN ? 'N' : transpose == MPS_DENSE_TRANSPOSED ? 'T' : 'C'; }

// work(item, first right-hand side, how many): along right-hand sides where there are many, else along items.
mps_status each_side(const Call &c, double nanoseconds, const std::function<void(int64_t, int64_t, int64_t)> &work);

// Copies between strides, in tiles that stay in the cache.
template <class T>
void copy_matrix(int64_t rows, int64_t columns, const T *from, int64_t from_row, int64_t from_column, bool conjugate, T *to, int64_t to_row,
                 int64_t to_column) {
  constexpr int64_t kTile = 16;
  for (int64_t c0 = 0; c0 < columns; c0 += kTile)
    for (int64_t r0 = 0; r0 < rows; r0 += kTile)
      for (int64_t c = c0; c < std::min(columns, c0 + kTile); c++)
        for (int64_t r = r0; r < std::min(rows, r0 + kTile); r++) {
          const T value = from[r * from_row + c * from_column];
          if constexpr (is_complex<T>)
            to[r * to_row + c * to_column] = conjugate ? std::conj(value) : value;
          else
            to[r * to_row + c * to_column] = value;
        }
}

// Item `index` of a in columns, in memory of the calling thread unless it is there already; and where it goes after the call.
template <class T>
Columns<T> bring(const Call &c, int64_t index, int64_t rows, int64_t columns) {
  Columns<T> a = item<T>(c.a, index);
  if (!a) a = {static_cast<T *>(scratch(0, static_cast<size_t>(rows * columns) * sizeof(T))), static_cast<int>(std::max<int64_t>(rows, 1))};
  if (c.from.data != nullptr)
    copy_matrix<T>(rows, columns, static_cast<const T *>(c.from.data) + index * c.from.batch_stride, c.from.row_stride, c.from.column_stride,
                   c.from.conjugate, a.data, 1, a.leading);
  return a;
}
template <class T>
void take(const Call &c, int64_t index, int64_t rows, int64_t columns, Columns<T> a) {
  if (c.to.data != nullptr)
    copy_matrix<T>(rows, columns, a.data, 1, a.leading, false, static_cast<T *>(c.to.data) + index * c.to.batch_stride, c.to.row_stride,
                   c.to.column_stride);
}

// The calls, a file a kind of factorisation.
template <class T>
mps_status cholesky(const Call &c);
template <class T>
mps_status cholesky_inverse(const Call &c);
template <class T>
mps_status cholesky_solve(const Call &c);
template <class T>
mps_status factor_lu(const Call &c);
template <class T>
mps_status solve_lu(const Call &c);
template <class T>
mps_status solve_triangular(const Call &c);
template <class T>
mps_status factor_ldl(const Call &c);
template <class T>
mps_status solve_ldl(const Call &c);
template <class T>
mps_status factor_qr(const Call &c);
template <class T>
mps_status form_q(const Call &c);
template <class T>
mps_status multiply_q(const Call &c);
template <class T>
mps_status singular_values(const Call &c);
template <class T>
mps_status eigen_hermitian(const Call &c);
template <class T>
mps_status eigen(const Call &c);
template <class T>
mps_status least_squares(const Call &c);

}  // namespace openmps::dense
