/* SPDX-License-Identifier: BSD-3-Clause
 *
 * provider_factor: Cholesky, LU and LDL factors and what is solved with them. A large matrix is factored panel by panel; the columns behind
 * a panel are pieces for the workers. Right-hand sides are independent, so that solving is cut along them.
 */
#include "bridge/provider_lapack.h"

namespace openmps::dense {
namespace {

constexpr double kMacsPerNs = 20.0;

template <class T>
double cost(double macs) {
  return 500.0 + macs * (is_complex<T> ? 4.0 : 1.0) / kMacsPerNs;
}

double real_count(int64_t a, int64_t b, int64_t c) { return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c); }

int64_t width(int64_t begin, int64_t size) { return std::min(kBlock, size - begin); }

// ---- Cholesky ----

template <class T>
int factor_block(char uplo, int64_t n, Columns<T> a) {
  const int n_ = static_cast<int>(n);
  int info = 0;
  choose<T>(spotrf_, cpotrf_)(&uplo, &n_, a.data, &a.leading, &info);
  return info;
}

// Right-looking: a panel's diagonal block, the panel, then what lies behind it, block column by block column (block row, of an upper factor).
template <class T>
mps_status cholesky_pieces(bool upper, int64_t n, Columns<T> a, int *info) {
  const char uplo = upper ? 'U' : 'L', adjoint = adjoint_letter<T>;
  for (int64_t j = 0; j < n; j += kBlock) {
    const int64_t w = width(j, n), next = j + w;
    int failed = 0;
    mps_status status = alone([&] { failed = factor_block(uplo, w, a.part(j, j)); });
    if (failed != 0) *info = static_cast<int>(j) + failed;
    if (status != MPS_STATUS_OK || failed != 0 || next == n) return status;
    status = spread(blocks(n - next), [&](uint32_t i) {
      const int64_t r = next + i * kBlock, size = width(r, n);
      if (upper)
        solve_triangle('L', uplo, adjoint, 'N', w, size, a.part(j, j), a.part(j, r));
      else
        solve_triangle('R', uplo, adjoint, 'N', size, w, a.part(j, j), a.part(r, j));
    });
    if (status != MPS_STATUS_OK) return status;
    status = spread(blocks(n - next), [&](uint32_t i) {
      const int64_t r = next + i * kBlock, size = width(r, n);
      if (upper)
        multiply(adjoint, 'N', size, n - r, w, T(-1), a.part(j, r), a.part(j, r), T(1), a.part(r, r));
      else
        multiply('N', adjoint, n - r, size, w, T(-1), a.part(r, j), a.part(r, j), T(1), a.part(r, r));
    });
    if (status != MPS_STATUS_OK) return status;
  }
  return MPS_STATUS_OK;
}

// Keeps the upper (lower) triangle and clears the other one.
template <class T>
void clear_other(bool upper, int64_t n, Columns<T> a) {
  for (int64_t c = 0; c < n; c++) upper ? std::fill(a.at(c + 1, c), a.at(n, c), T(0)) : std::fill(a.at(0, c), a.at(c, c), T(0));
}

template <class T>
void invert_from_factor(const Call &c, int64_t i) {
  const char uplo = c.upper ? 'U' : 'L';
  const int n = static_cast<int>(c.n);
  Columns<T> a = item<T>(c.a, i);
  int info = 0;
  choose<T>(spotri_, cpotri_)(&uplo, &n, a.data, &a.leading, &info);
  set_info(c, i, info);
  for (int64_t column = 0; column < c.n; column++)
    for (int64_t row = 0; row < column; row++) {
      T &above = *a.at(row, column), &below = *a.at(column, row);
      T &from = c.upper ? above : below, &to = c.upper ? below : above;
      if constexpr (is_complex<T>)
        to = std::conj(from);
      else
        to = from;
    }
}

// ---- LU ----

template <class T>
int factor_panel(int64_t m, int64_t n, Columns<T> a, int *pivots) {
  const int m_ = static_cast<int>(m), n_ = static_cast<int>(n);
  int info = 0;
  choose<T>(sgetrf_, cgetrf_)(&m_, &n_, a.data, &a.leading, pivots, &info);
  return info;
}

// Exchanges rows 0.. of n columns with rows pivots[0].. (from 1), in order or in reverse.
template <class T>
void exchange_rows(int64_t n, Columns<T> a, const int *pivots, int64_t count, bool forward) {
  for (int64_t c = 0; c < n; c++) {
    T *column = a.at(0, c);
    for (int64_t i = 0; i < count; i++) {
      const int64_t row = forward ? i : count - 1 - i;
      std::swap(column[row], column[pivots[row] - 1]);
    }
  }
}

template <class T>
void exchange_columns(int64_t m, Columns<T> a, const int *pivots, int64_t count, bool forward) {
  for (int64_t i = 0; i < count; i++) {
    const int64_t c = forward ? i : count - 1 - i, other = pivots[c] - 1;
    if (c != other) std::swap_ranges(a.at(0, c), a.at(m, c), a.at(0, other));
  }
}

template <class T>
mps_status lu_pieces(int64_t m, int64_t n, Columns<T> a, int *pivots, int *info) {
  const int64_t k = std::min(m, n);
  for (int64_t j = 0; j < k; j += kBlock) {
    const int64_t w = width(j, k), next = j + w;
    int failed = 0;
    mps_status status = alone([&] { failed = factor_panel(m - j, w, a.part(j, j), pivots + j); });
    if (status != MPS_STATUS_OK) return status;
    if (failed > 0 && *info == 0) *info = static_cast<int>(j) + failed;
    // Columns before and behind the panel.
    const uint32_t before = blocks(j);
    status = spread(before + blocks(n - next), [&](uint32_t i) {
      const int64_t column = i < before ? i * kBlock : next + (i - before) * kBlock, size = i < before ? width(column, j) : width(column, n);
      exchange_rows(size, a.part(j, column), pivots + j, w, true);
      if (i < before) return;
      solve_triangle('L', 'L', 'N', 'U', w, size, a.part(j, j), a.part(j, column));
      multiply('N', 'N', m - next, size, w, T(-1), a.part(next, j), a.part(j, column), T(1), a.part(next, column));
    });
    if (status != MPS_STATUS_OK) return status;
    for (int64_t i = j; i < next; i++) pivots[i] += static_cast<int>(j);
  }
  return MPS_STATUS_OK;
}

// Pivots may come from the user; the texts are PyTorch's.
void check_lu_pivots(const int *pivots, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    TORCH_CHECK(pivots[i] >= 1, "Pivots given to lu_solve must all be greater or equal to 1. Did you properly pass the result of lu_factor?");
    TORCH_CHECK(pivots[i] <= n, "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly pass the result of lu_factor?");
  }
}
void check_ldl_pivots(const int *pivots, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const int64_t pivot = std::abs(static_cast<int64_t>(pivots[i]));
    TORCH_CHECK(pivot <= n, "Pivots given to ldl_solve must all satisfy |pivot| <= LD.size(-2). Did you properly pass the result of ldl_factor?");
    TORCH_CHECK(pivot >= 1, "Pivots given to ldl_solve must all satisfy |pivot| >= 1. Did you properly pass the result of ldl_factor?");
  }
}

char letter(mps_dense_transpose transpose) { return transpose == MPS_DENSE_PLAIN ? 'N' : transpose == MPS_DENSE_TRANSPOSED ? 'T' : 'C'; }

// Right-hand sides [begin, begin + size) of one item: columns of b, or rows where the matrix is on the right.
template <class T>
void solve_with_lu(const Call &c, int64_t index, int64_t begin, int64_t size) {
  Columns<T> a = item<T>(c.a, index), b = item<T>(c.b, index);
  const int *pivots = item<int>(c.pivots, index).data;
  const char trans = letter(c.transpose);
  check_lu_pivots(pivots, c.n);
  if (c.is_left) {
    Columns<T> x = b.part(0, begin);
    if (trans == 'N') exchange_rows(size, x, pivots, c.n, true);
    solve_triangle('L', trans == 'N' ? 'L' : 'U', trans, trans == 'N' ? 'U' : 'N', c.n, size, a, x);
    solve_triangle('L', trans == 'N' ? 'U' : 'L', trans, trans == 'N' ? 'N' : 'U', c.n, size, a, x);
    if (trans != 'N') exchange_rows(size, x, pivots, c.n, false);
    return;
  }
  Columns<T> x = b.part(begin, 0);
  if (trans != 'N') exchange_columns(size, x, pivots, c.n, true);
  solve_triangle('R', trans == 'N' ? 'U' : 'L', trans, trans == 'N' ? 'N' : 'U', size, c.n, a, x);
  solve_triangle('R', trans == 'N' ? 'L' : 'U', trans, trans == 'N' ? 'U' : 'N', size, c.n, a, x);
  if (trans == 'N') exchange_columns(size, x, pivots, c.n, false);
}

// work(item, first right-hand side, how many): along right-hand sides where there are many, else along items.
mps_status each_side(const Call &c, double nanoseconds, const std::function<void(int64_t, int64_t, int64_t)> &work) {
  if (!is_cut(c, nanoseconds)) return each_item(c, nanoseconds, [&](int64_t i) { work(i, 0, c.k); });
  const int64_t pieces = blocks(c.k);
  return spread(static_cast<uint32_t>(c.batch * pieces), [&](uint32_t i) {
    const int64_t begin = i % pieces * kBlock;
    work(i / pieces, begin, width(begin, c.k));
  });
}

}  // namespace

template <class T>
mps_status cholesky(const Call &c) {
  const double item_cost = cost<T>(real_count(c.n, c.n, c.n) / 6.0);
  if (!is_cut(c, item_cost))
    return each_item(c, item_cost, [&](int64_t i) {
      Columns<T> a = item<T>(c.a, i);
      set_info(c, i, factor_block(c.upper ? 'U' : 'L', c.n, a));
      clear_other(c.upper, c.n, a);
    });
  for (int64_t i = 0; i < c.batch; i++) {
    int info = 0;
    Columns<T> a = item<T>(c.a, i);
    if (mps_status status = cholesky_pieces(c.upper, c.n, a, &info); status != MPS_STATUS_OK) return status;
    set_info(c, i, info);
    clear_other(c.upper, c.n, a);
  }
  return MPS_STATUS_OK;
}

template <class T>
mps_status cholesky_inverse(const Call &c) {
  return each_item(c, cost<T>(real_count(c.n, c.n, c.n) / 3.0), [&](int64_t i) { invert_from_factor<T>(c, i); });
}

template <class T>
mps_status cholesky_solve(const Call &c) {
  return each_side(c, cost<T>(real_count(c.n, c.n, c.k)), [&](int64_t i, int64_t begin, int64_t size) {
    const char uplo = c.upper ? 'U' : 'L';
    const int n = static_cast<int>(c.n), k = static_cast<int>(size);
    Columns<T> a = item<T>(c.a, i), b = item<T>(c.b, i).part(0, begin);
    int info = 0;
    choose<T>(spotrs_, cpotrs_)(&uplo, &n, &k, a.data, &a.leading, b.data, &b.leading, &info);
  });
}

template <class T>
mps_status factor_lu(const Call &c) {
  const double item_cost = cost<T>(real_count(c.m, c.n, std::min(c.m, c.n)) / 3.0);
  if (!is_cut(c, item_cost))
    return each_item(c, item_cost, [&](int64_t i) { set_info(c, i, factor_panel(c.m, c.n, item<T>(c.a, i), item<int>(c.pivots, i).data)); });
  for (int64_t i = 0; i < c.batch; i++) {
    int info = 0;
    mps_status status = lu_pieces(c.m, c.n, item<T>(c.a, i), item<int>(c.pivots, i).data, &info);
    if (status != MPS_STATUS_OK) return status;
    set_info(c, i, info);
  }
  return MPS_STATUS_OK;
}

template <class T>
mps_status solve_lu(const Call &c) {
  return each_side(c, cost<T>(real_count(c.n, c.n, c.k)), [&](int64_t i, int64_t begin, int64_t size) { solve_with_lu<T>(c, i, begin, size); });
}

template <class T>
mps_status solve_triangular(const Call &c) {
  return each_side(c, cost<T>(real_count(c.n, c.n, c.k) / 2.0), [&](int64_t i, int64_t begin, int64_t size) {
    const char uplo = c.upper ? 'U' : 'L', diagonal = c.unit ? 'U' : 'N', trans = letter(c.transpose);
    Columns<T> a = item<T>(c.a, i), b = item<T>(c.b, i);
    if (c.is_left)
      solve_triangle('L', uplo, trans, diagonal, c.n, size, a, b.part(0, begin));
    else
      solve_triangle('R', uplo, trans, diagonal, size, c.n, a, b.part(begin, 0));
  });
}

template <class T>
mps_status factor_ldl(const Call &c) {
  return each_item(c, cost<T>(real_count(c.n, c.n, c.n) / 3.0), [&](int64_t i) {
    const char uplo = 'L';
    const int n = static_cast<int>(c.n);
    Columns<T> a = item<T>(c.a, i);
    int info = 0, *pivots = item<int>(c.pivots, i).data;
    auto factor = c.hermitian ? choose<T>(ssytrf_, chetrf_) : choose<T>(ssytrf_, csytrf_);
    with_work<T>([&](T *work, int length) { factor(&uplo, &n, a.data, &a.leading, pivots, work, &length, &info); });
    set_info(c, i, info);
  });
}

template <class T>
mps_status solve_ldl(const Call &c) {
  return each_side(c, cost<T>(real_count(c.n, c.n, c.k)), [&](int64_t i, int64_t begin, int64_t size) {
    const char uplo = 'L';
    const int n = static_cast<int>(c.n), k = static_cast<int>(size);
    Columns<T> a = item<T>(c.a, i), b = item<T>(c.b, i).part(0, begin);
    int info = 0;
    check_ldl_pivots(item<int>(c.pivots, i).data, c.n);
    auto solve = c.hermitian ? choose<T>(ssytrs_, chetrs_) : choose<T>(ssytrs_, csytrs_);
    solve(&uplo, &n, &k, a.data, &a.leading, item<int>(c.pivots, i).data, b.data, &b.leading, &info);
  });
}

#define OPENMPS_INSTANTIATE(function)                \
  template mps_status function<float>(const Call &); \
  template mps_status function<complex64>(const Call &);
OPENMPS_INSTANTIATE(cholesky)
OPENMPS_INSTANTIATE(cholesky_inverse)
OPENMPS_INSTANTIATE(cholesky_solve)
OPENMPS_INSTANTIATE(factor_lu)
OPENMPS_INSTANTIATE(solve_lu)
OPENMPS_INSTANTIATE(solve_triangular)
OPENMPS_INSTANTIATE(factor_ldl)
OPENMPS_INSTANTIATE(solve_ldl)

}  // namespace openmps::dense
