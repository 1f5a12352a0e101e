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

// x = op^-1 x for n x n triangles and k right-hand sides of any strides, where the call of BLAS would be most of the time.
template <class T>
void solve_small_triangle(bool lower, bool unit, bool conjugate, int64_t n, int64_t k, const T *a, int64_t row, int64_t column, T *x, int64_t x_row,
                          int64_t x_column) {
  for (int64_t step = 0; step < n; step++) {
    const int64_t i = lower ? step : n - 1 - step;
    for (int64_t side = 0; side < k; side++) {
      T *at = x + side * x_column;
      T value = at[i * x_row];
      for (int64_t done = 0; done < step; done++) {
        const int64_t j = lower ? done : n - 1 - done;
        T factor = a[i * row + j * column];
        if constexpr (is_complex<T>) factor = conjugate ? std::conj(factor) : factor;
        value -= factor * at[j * x_row];
      }
      T pivot = a[i * (row + column)];
      if constexpr (is_complex<T>) pivot = conjugate ? std::conj(pivot) : pivot;
      at[i * x_row] = unit ? value : value / pivot;
    }
  }
}

// b (m x n) = op(a)^-1 b, or b op(a)^-1 with side 'R'. BLAS is slow at triangles here, and quick at what remains when they are halved.
template <class T>
void solve_triangle(char side, char uplo, char trans, char diagonal, int64_t m, int64_t n, Columns<T> a, Columns<T> b) {
  constexpr int64_t kSmallTriangle = 8, kWholeTriangle = 16;
  const bool left = side == 'L';
  const int64_t order = left ? m : n;
  if (m == 0 || n == 0) return;
  if (!is_complex<T> && std::max(m, n) <= kSmallTriangle) {
    // From the right: the transposed system.
    const bool turned = (trans != 'N') == left;
    return solve_small_triangle<T>((uplo == 'L') != turned, diagonal == 'U', trans == 'C', order, left ? n : m, a.data, turned ? a.leading : 1,
                                   turned ? 1 : a.leading, b.data, left ? 1 : b.leading, left ? b.leading : 1);
  }
  if (order <= kWholeTriangle) {
    const int m_ = static_cast<int>(m), n_ = static_cast<int>(n);
    const T one(1);
    return choose<T>(strsm_, ctrsm_)(&side, &uplo, &trans, &diagonal, &m_, &n_, &one, a.data, &a.leading, b.data, &b.leading);
  }
  const int64_t half = order / 2 / 8 * 8, rest = order - half;
  const bool lower = (uplo == 'L') == (trans == 'N');
  const Columns<T> between = uplo == 'L' ? a.part(half, 0) : a.part(0, half), second = left ? b.part(half, 0) : b.part(0, half);
  const auto solve_first = [&] { solve_triangle(side, uplo, trans, diagonal, left ? half : m, left ? n : half, a, b); };
  const auto solve_second = [&] { solve_triangle(side, uplo, trans, diagonal, left ? rest : m, left ? n : rest, a.part(half, half), second); };
  const auto subtract = [&](int64_t from, Columns<T> x, int64_t to, Columns<T> y) {
    left ? multiply(trans, 'N', to, n, from, T(-1), between, x, T(1), y) : multiply('N', trans, m, to, from, T(-1), x, between, T(1), y);
  };
  if (left == lower) {
    solve_first();
    subtract(half, b, rest, second);
    solve_second();
  } else {
    solve_second();
    subtract(rest, second, half, b);
    solve_first();
  }
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
template <class T>
double solve_cost(double macs) {
  constexpr double kMacsPerNs = 5.0;  // few right-hand sides
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
      for (int64_t c = c0; c < std::min(columns, c0 + kTile); c++) {
        const T *source = from + r0 * from_row + c * from_column;
        T *target = to + r0 * to_row + c * to_column;
        for (int64_t r = r0; r < std::min(rows, r0 + kTile); r++, source += from_row, target += to_row) {
          *target = *source;
          if constexpr (is_complex<T>)
            if (conjugate) *target = std::conj(*target);
        }
      }
}

// Columns [begin, end) of item `index` of a from where they lie before the call, and to where they go after it.
template <class T>
void bring_columns(const Call &c, int64_t index, int64_t rows, int64_t begin, int64_t end, Columns<T> a) {
  if (c.from.data == nullptr) return;
  const T *from = static_cast<const T *>(c.from.data) + index * c.from.batch_stride + begin * c.from.column_stride;
  copy_matrix<T>(rows, end - begin, from, c.from.row_stride, c.from.column_stride, c.from.conjugate, a.at(0, begin), 1, a.leading);
}
template <class T>
void take_columns(const Call &c, int64_t index, int64_t rows, int64_t begin, int64_t end, Columns<T> a) {
  if (c.to.data == nullptr) return;
  T *to = static_cast<T *>(c.to.data) + index * c.to.batch_stride + begin * c.to.column_stride;
  copy_matrix<T>(rows, end - begin, a.at(0, begin), 1, a.leading, false, to, c.to.row_stride, c.to.column_stride);
}

// Where item `index` of a is worked on: in its own memory, or in the calling thread's.
template <class T>
Columns<T> workplace(const Call &c, int64_t index, int64_t rows, int64_t columns) {
  if (Columns<T> a = item<T>(c.a, index)) return a;
  return {static_cast<T *>(scratch(0, static_cast<size_t>(rows * columns) * sizeof(T))), static_cast<int>(std::max<int64_t>(rows, 1))};
}

// work(a) on item `index` of a, which is brought before and taken away after it: alone, or where `is_cut` in pieces.
template <class T, class Work>
mps_status on_matrix(const Call &c, int64_t index, int64_t rows, int64_t columns, bool is_cut, const Work &work) {
  const Columns<T> a = workplace<T>(c, index, rows, columns);
  if (!is_cut) {
    bring_columns(c, index, rows, 0, columns, a);
    const mps_status status = work(a);
    take_columns(c, index, rows, 0, columns, a);
    return status;
  }
  const auto each = [&](auto move) {
    return spread(blocks(columns), [&](uint32_t i) { move(c, index, rows, i * kBlock, std::min<int64_t>(columns, (i + 1) * kBlock), a); });
  };
  mps_status status = c.from.data == nullptr ? MPS_STATUS_OK : each(bring_columns<T>);
  if (status == MPS_STATUS_OK) status = work(a);
  return status != MPS_STATUS_OK || c.to.data == nullptr ? status : each(take_columns<T>);
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
