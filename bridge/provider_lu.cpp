/* SPDX-License-Identifier: BSD-3-Clause
 *
 * provider_lu: LU factors and what is solved with them. A matrix is halved until LAPACK is quick, so that nearly all is matrix products. Of a
 * large one the columns behind a panel are pieces for the workers, and the first of them goes on to factor the next panel.
 */
#include "bridge/provider_lapack.h"

namespace openmps::dense {
namespace {

constexpr int64_t kSmall = 32;  // columns that LAPACK factors at once
// From these costs on each matrix is cut, a single one and few ones: else items are spread.
constexpr double kCutAloneNs = 300e3, kCutManyNs = 5e6;

// Searching pivots and exchanging rows take their time in small matrices.
template <class T>
double lu_cost(const Call &c) {
  return factor_cost<T>(real_count(c.m, c.n, std::min(c.m, c.n)) / 3.0) + 6.0 * real_count(c.m, c.n, 1);
}

template <class T>
int factor_small(int64_t m, int64_t n, Columns<T> a, int *pivots) {
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

// The same exchanges in rows of `column`s, and the block of U and what is left below it: what a factored panel of w columns means for n others.
template <class T>
void update_columns(int64_t m, int64_t n, int64_t w, Columns<T> panel, const int *pivots, Columns<T> columns) {
  exchange_rows(n, columns, pivots, w, true);
  solve_triangle('L', 'L', 'N', 'U', w, n, panel, columns);
  multiply('N', 'N', m - w, n, w, T(-1), panel.part(w, 0), columns, T(1), columns.part(w, 0));
}

// Returns LAPACK's info.
template <class T>
int factor_columns(int64_t m, int64_t n, Columns<T> a, int *pivots) {
  if (std::min(m, n) <= kSmall) return factor_small(m, n, a, pivots);
  const int64_t w = std::min(m, n) / 2 / 16 * 16;
  int info = factor_columns(m, w, a, pivots);
  update_columns(m, n - w, w, a, pivots, a.part(0, w));
  const int right = factor_columns(m - w, n - w, a.part(w, w), pivots + w);
  if (info == 0 && right > 0) info = static_cast<int>(w) + right;
  const int64_t k = std::min(m, n);
  exchange_rows(w, a.part(w, 0), pivots + w, k - w, true);
  for (int64_t i = w; i < k; i++) pivots[i] += static_cast<int>(w);
  return info;
}

template <class T>
mps_status lu_pieces(int64_t m, int64_t n, Columns<T> a, int *pivots, int *info) {
  const int64_t k = std::min(m, n), panel = k <= 384 ? 32 : 64, block = n <= 512 ? 64 : kBlock;
  int found = 0;
  mps_status status = alone([&] { found = factor_columns(m, std::min(panel, k), a, pivots); });
  for (int64_t j = 0; j < k && status == MPS_STATUS_OK; j += panel) {
    const int64_t w = width(j, k, panel), next = j + w, ahead = std::max<int64_t>(width(next, k, panel), 0), rest = next + ahead;
    if (found > 0 && *info == 0) *info = static_cast<int>(j) + found;
    // The next panel, the columns behind it, those before.
    const uint32_t first = ahead > 0 ? 1 : 0, behind = blocks(n - rest, block), before = blocks(j);
    status = spread(first + behind + before, [&](uint32_t i) {
      if (i < first) {
        update_columns(m - j, ahead, w, a.part(j, j), pivots + j, a.part(j, next));
        found = factor_columns(m - next, ahead, a.part(next, next), pivots + next);
      } else if (i < first + behind) {
        const int64_t column = rest + (i - first) * block;
        update_columns(m - j, width(column, n, block), w, a.part(j, j), pivots + j, a.part(j, column));
      } else {
        const int64_t column = (i - first - behind) * kBlock;
        exchange_rows(width(column, j), a.part(j, column), pivots + j, w, true);
      }
    });
    for (int64_t i = j; i < next; i++) pivots[i] += static_cast<int>(j);
  }
  return status;
}

// Pivots may come from the user; the texts are PyTorch's.
void check_lu_pivots(const int *pivots, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    TORCH_CHECK(pivots[i] >= 1, "Pivots given to lu_solve must all be greater or equal to 1. Did you properly pass the result of lu_factor?");
    TORCH_CHECK(pivots[i] <= n, "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly pass the result of lu_factor?");
  }
}

// Triangles of op(A) = op(L U): `upper` of the factors or lower. What lies transposed has its triangles and transposes exchanged.
template <class T>
void solve_factor(const Call &c, bool upper, int64_t m, int64_t n, Columns<T> a, Columns<T> x) {
  const char side = c.is_left ? 'L' : 'R', diagonal = upper ? 'N' : 'U';
  const char trans = c.turned ? (c.transpose == MPS_DENSE_PLAIN ? 'T' : 'N') : letter(c.transpose);
  solve_triangle(side, upper != c.turned ? 'U' : 'L', trans, diagonal, m, n, a, x);
}

// Right-hand sides [begin, begin + size) of one item: columns of b, or rows where the matrix is on the right.
template <class T>
void solve_with_lu(const Call &c, int64_t index, int64_t begin, int64_t size) {
  Columns<T> a = item<T>(c.a, index), b = item<T>(c.b, index);
  const int *pivots = item<int>(c.pivots, index).data;
  const bool plain = c.transpose == MPS_DENSE_PLAIN;
  check_lu_pivots(pivots, c.n);
  if (c.is_left) {
    Columns<T> x = b.part(0, begin);
    if (plain) exchange_rows(size, x, pivots, c.n, true);
    solve_factor(c, !plain, c.n, size, a, x);
    solve_factor(c, plain, c.n, size, a, x);
    if (!plain) exchange_rows(size, x, pivots, c.n, false);
    return;
  }
  Columns<T> x = b.part(begin, 0);
  if (!plain) exchange_columns(size, x, pivots, c.n, true);
  solve_factor(c, plain, size, c.n, a, x);
  solve_factor(c, !plain, size, c.n, a, x);
  if (plain) exchange_columns(size, x, pivots, c.n, false);
}

}  // namespace

template <class T>
mps_status factor_lu(const Call &c) {
  const double item_cost = lu_cost<T>(c);
  if (item_cost <= kCutAloneNs || (c.batch > 1 && (c.batch >= 16 || item_cost <= kCutManyNs)))
    return each_item(c, item_cost, [&](int64_t i) {
      (void)on_matrix<T>(c, i, c.m, c.n, false, [&](Columns<T> a) {
        set_info(c, i, factor_columns(c.m, c.n, a, item<int>(c.pivots, i).data));
        return MPS_STATUS_OK;
      });
    });
  for (int64_t i = 0; i < c.batch; i++) {
    const mps_status status = on_matrix<T>(c, i, c.m, c.n, true, [&](Columns<T> a) {
      int info = 0;
      const mps_status found = lu_pieces(c.m, c.n, a, item<int>(c.pivots, i).data, &info);
      set_info(c, i, info);
      return found;
    });
    if (status != MPS_STATUS_OK) return status;
  }
  return MPS_STATUS_OK;
}

template <class T>
mps_status solve_lu(const Call &c) {
  const double nanoseconds = solve_cost<T>(real_count(c.n, c.n, c.k));
  return each_side(c, nanoseconds, [&](int64_t i, int64_t begin, int64_t size) { solve_with_lu<T>(c, i, begin, size); });
}

#define OPENMPS_INSTANTIATE(function)                \
  template mps_status function<float>(const Call &); \
  template mps_status function<complex64>(const Call &);
OPENMPS_INSTANTIATE(factor_lu)
OPENMPS_INSTANTIATE(solve_lu)

}  // namespace openmps::dense
