/* SPDX-License-Identifier: BSD-3-Clause
 *
 * provider_factor: Cholesky and LDL factors, and what is solved with them or with triangles. A large matrix is factored panel by panel; the
 * columns behind a panel are pieces for the workers. Right-hand sides are independent, so that solving is cut along them.
 */
#include "bridge/provider_lapack.h"

namespace openmps::dense {
namespace {

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

// ---- LDL ----

void check_ldl_pivots(const int *pivots, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const int64_t pivot = std::abs(static_cast<int64_t>(pivots[i]));
    TORCH_CHECK(pivot <= n, "Pivots given to ldl_solve must all satisfy |pivot| <= LD.size(-2). Did you properly pass the result of ldl_factor?");
    TORCH_CHECK(pivot >= 1, "Pivots given to ldl_solve must all satisfy |pivot| >= 1. Did you properly pass the result of ldl_factor?");
  }
}

}  // namespace

template <class T>
mps_status cholesky(const Call &c) {
  const double item_cost = factor_cost<T>(real_count(c.n, c.n, c.n) / 6.0);
  if (!is_cut(c, item_cost))
    return each_item(c, item_cost, [&](int64_t i) {
      (void)on_matrix<T>(c, i, c.n, c.n, false, [&](Columns<T> a) {
        set_info(c, i, factor_block(c.upper ? 'U' : 'L', c.n, a));
        clear_other(c.upper, c.n, a);
        return MPS_STATUS_OK;
      });
    });
  for (int64_t i = 0; i < c.batch; i++) {
    const mps_status status = on_matrix<T>(c, i, c.n, c.n, true, [&](Columns<T> a) {
      int info = 0;
      const mps_status found = cholesky_pieces(c.upper, c.n, a, &info);
      set_info(c, i, info);
      clear_other(c.upper, c.n, a);
      return found;
    });
    if (status != MPS_STATUS_OK) return status;
  }
  return MPS_STATUS_OK;
}

template <class T>
mps_status cholesky_inverse(const Call &c) {
  return each_item(c, factor_cost<T>(real_count(c.n, c.n, c.n) / 3.0), [&](int64_t i) { invert_from_factor<T>(c, i); });
}

template <class T>
mps_status cholesky_solve(const Call &c) {
  return each_side(c, solve_cost<T>(real_count(c.n, c.n, c.k)), [&](int64_t i, int64_t begin, int64_t size) {
    const char uplo = c.upper ? 'U' : 'L';
    const int n = static_cast<int>(c.n), k = static_cast<int>(size);
    Columns<T> a = item<T>(c.a, i), b = item<T>(c.b, i).part(0, begin);
    int info = 0;
    choose<T>(spotrs_, cpotrs_)(&uplo, &n, &k, a.data, &a.leading, b.data, &b.leading, &info);
  });
}

template <class T>
mps_status solve_triangular(const Call &c) {
  return each_side(c, solve_cost<T>(real_count(c.n, c.n, c.k) / 2.0), [&](int64_t i, int64_t begin, int64_t size) {
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
  return each_item(c, factor_cost<T>(real_count(c.n, c.n, c.n) / 3.0), [&](int64_t i) {
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
  return each_side(c, solve_cost<T>(real_count(c.n, c.n, c.k)), [&](int64_t i, int64_t begin, int64_t size) {
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
OPENMPS_INSTANTIATE(solve_triangular)
OPENMPS_INSTANTIATE(factor_ldl)
OPENMPS_INSTANTIATE(solve_ldl)

}  // namespace openmps::dense
