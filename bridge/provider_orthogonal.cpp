/* SPDX-License-Identifier: BSD-3-Clause
 *
 * provider_orthogonal: QR factors, products with Q, and least squares. A large matrix is factored panel by panel, and the columns behind a
 * panel are pieces for the workers, as are the columns (or rows) of what Q is multiplied with. Q itself is Q times columns of the identity.
 */
#include "bridge/provider_lapack.h"

namespace openmps::dense {
namespace {

constexpr double kMacsPerNs = 15.0;
constexpr int64_t kPanel = 32, kColumns = 64;  // of a panel, and of a piece behind it
// From these costs on each matrix is cut, a single one and few ones: else items are spread.
constexpr double kCutAloneNs = 200e3, kCutManyNs = 10e6;

template <class T>
double cost(int64_t a, int64_t b, int64_t c) {
  return 1000.0 + static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c) * (is_complex<T> ? 4.0 : 1.0) / kMacsPerNs;
}

template <class T>
void factor(int64_t m, int64_t n, Columns<T> a, T *tau) {
  const int m_ = static_cast<int>(m), n_ = static_cast<int>(n);
  int info = 0;
  with_work<T>([&](T *work, int length) { choose<T>(sgeqrf_, cgeqrf_)(&m_, &n_, a.data, &a.leading, tau, work, &length, &info); });
}

// b (m x n) = op(Q) b or b op(Q), of k reflectors.
template <class T>
void apply(char side, bool transpose, int64_t m, int64_t n, int64_t k, Columns<T> a, const T *tau, Columns<T> b) {
  const char trans = transpose ? adjoint_letter<T> : 'N';
  const int m_ = static_cast<int>(m), n_ = static_cast<int>(n), k_ = static_cast<int>(k);
  int info = 0;
  if (m == 0 || n == 0 || k == 0) return;
  with_work<T>([&](T *work, int length) {
    choose<T>(sormqr_, cunmqr_)(&side, &trans, &m_, &n_, &k_, a.data, &a.leading, tau, b.data, &b.leading, work, &length, &info);
  });
}

template <class T>
void form(const Call &c, int64_t i) {
  const int m = static_cast<int>(c.m), n = static_cast<int>(c.n), k = static_cast<int>(c.k);
  Columns<T> a = item<T>(c.a, i);
  const T *tau = item<T>(c.values, i).data;
  int info = 0;
  with_work<T>([&](T *work, int length) { choose<T>(sorgqr_, cungqr_)(&m, &n, &k, a.data, &a.leading, tau, work, &length, &info); });
}

// w reflectors at once: their product is I - v t v^H, v with the ones and zeros that LAPACK does not store.
template <class T>
struct Block {
  std::vector<T> v, t;
  int64_t m = 0, w = 0;
  Columns<T> vectors() { return {v.data(), static_cast<int>(m)}; }
  Columns<T> factors() { return {t.data(), static_cast<int>(w)}; }

  void make(int64_t rows, int64_t columns, Columns<T> a, const T *tau) {
    m = rows;
    w = columns;
    v.assign(static_cast<size_t>(m * w), T(0));
    t.assign(static_cast<size_t>(w * w), T(0));
    for (int64_t c = 0; c < w; c++) {
      *vectors().at(c, c) = T(1);
      std::copy(a.at(c + 1, c), a.at(m, c), vectors().at(c + 1, c));
    }
    std::vector<T> products(static_cast<size_t>(w * w));
    const Columns<T> p{products.data(), static_cast<int>(w)};
    multiply(adjoint_letter<T>, 'N', w, w, m, T(1), vectors(), vectors(), T(0), p);
    for (int64_t c = 0; c < w; c++) {
      for (int64_t r = 0; r < c; r++) {
        T sum(0);
        for (int64_t i = r; i < c; i++) sum += *factors().at(r, i) * *p.at(i, c);
        *factors().at(r, c) = -tau[c] * sum;
      }
      *factors().at(c, c) = tau[c];
    }
  }

  // b (m x n) = the product (or its adjoint) times b.
  void apply(bool adjoint, int64_t n, Columns<T> b) {
    const size_t bytes = static_cast<size_t>(w * n) * sizeof(T);
    const Columns<T> x{static_cast<T *>(scratch(1, bytes)), static_cast<int>(w)}, y{static_cast<T *>(scratch(2, bytes)), static_cast<int>(w)};
    multiply(adjoint_letter<T>, 'N', w, n, m, T(1), vectors(), b, T(0), x);
    multiply(adjoint ? adjoint_letter<T> : 'N', 'N', w, n, w, T(1), factors(), x, T(0), y);
    multiply('N', 'N', m, n, w, T(-1), vectors(), y, T(1), b);
  }
};

// How the pieces of one matrix are run: one after another, or by the workers.
mps_status in_turn(uint32_t count, const std::function<void(uint32_t)> &work) {
  for (uint32_t i = 0; i < count; i++) work(i);
  return MPS_STATUS_OK;
}
using Each = mps_status (*)(uint32_t count, const std::function<void(uint32_t)> &work);

mps_status each_matrix(const Call &c, double nanoseconds, const std::function<mps_status(int64_t, Each)> &work) {
  if (nanoseconds <= kCutAloneNs || (c.batch > 1 && (c.batch >= 16 || nanoseconds <= kCutManyNs)))
    return each_item(c, nanoseconds, [&](int64_t i) { (void)work(i, in_turn); });
  for (int64_t i = 0; i < c.batch; i++)
    if (mps_status status = work(i, spread); status != MPS_STATUS_OK) return status;
  return MPS_STATUS_OK;
}

// The columns behind a panel are pieces, and the first of them goes on to factor the next panel.
template <class T>
mps_status factor_panels(int64_t m, int64_t n, Columns<T> a, T *tau, Each each) {
  const int64_t k = std::min(m, n);
  Block<T> blocks_of[2];
  mps_status status = each(1, [&](uint32_t) {
    factor(m, std::min(kPanel, k), a, tau);
    blocks_of[0].make(m, std::min(kPanel, k), a, tau);
  });
  for (int64_t j = 0; j < k && status == MPS_STATUS_OK; j += kPanel) {
    const int64_t next = j + width(j, k, kPanel), ahead = std::max<int64_t>(width(next, k, kPanel), 0), rest = next + ahead;
    const uint32_t first = ahead > 0 ? 1 : 0;
    Block<T> &block = blocks_of[j / kPanel % 2], &following = blocks_of[(j / kPanel + 1) % 2];
    status = each(first + blocks(n - rest, kColumns), [&](uint32_t i) {
      const int64_t column = i < first ? next : rest + (i - first) * kColumns;
      block.apply(true, i < first ? ahead : width(column, n, kColumns), a.part(j, column));
      if (i >= first) return;
      factor(m - next, ahead, a.part(next, next), tau + next);
      following.make(m - next, ahead, a.part(next, next), tau + next);
    });
  }
  return status;
}

// All blocks, then the columns of the identity times them: a block does not change the columns before it.
template <class T>
mps_status form_panels(const Call &c, Columns<T> a, const T *tau, Each each) {
  std::vector<Block<T>> all(blocks(c.k, kPanel));
  mps_status status = each(static_cast<uint32_t>(all.size()), [&](uint32_t i) {
    const int64_t j = i * kPanel;
    all[i].make(c.m - j, width(j, c.k, kPanel), a.part(j, j), tau + j);
  });
  if (status != MPS_STATUS_OK) return status;
  return each(blocks(c.n, kColumns), [&](uint32_t i) {
    const int64_t begin = i * kColumns, end = begin + width(begin, c.n, kColumns);
    for (int64_t column = begin; column < end; column++) {
      std::fill(a.at(0, column), a.at(c.m, column), T(0));
      *a.at(column, column) = T(1);
    }
    for (size_t block = all.size(); block-- > 0;) {
      const int64_t j = static_cast<int64_t>(block) * kPanel, from = std::max(begin, j);
      if (from < end) all[block].apply(false, end - from, a.part(j, from));
    }
  });
}

// ---- least squares ----

// Work memory of gelsd besides `work`: LAPACK gives its sizes in a query.
template <class T>
int solve_gelsd(const Call &c, int64_t i, float *singular, int *rank) {
  const int m = static_cast<int>(c.m), n = static_cast<int>(c.n), k = static_cast<int>(c.k), ask = -1;
  const float tolerance = static_cast<float>(c.tolerance);
  Columns<T> a = item<T>(c.a, i), b = item<T>(c.b, i);
  int info = 0, integers = 0;
  T wanted{};
  float reals = 0;
  auto run = [&](T *work, int length, float *real_work, int *integer_work) {
    if constexpr (is_complex<T>)
      cgelsd_(&m, &n, &k, a.data, &a.leading, b.data, &b.leading, singular, &tolerance, rank, work, &length, real_work, integer_work, &info);
    else
      sgelsd_(&m, &n, &k, a.data, &a.leading, b.data, &b.leading, singular, &tolerance, rank, work, &length, integer_work, &info);
  };
  run(&wanted, ask, &reals, &integers);
  std::vector<T> work(std::max<size_t>(1, static_cast<size_t>(std::real(wanted))));
  std::vector<float> real_work(std::max<size_t>(1, static_cast<size_t>(reals)));
  std::vector<int> integer_work(std::max<size_t>(1, static_cast<size_t>(integers)));
  run(work.data(), static_cast<int>(work.size()), real_work.data(), integer_work.data());
  return info;
}

template <class T>
int solve_gelss(const Call &c, int64_t i, float *singular, int *rank) {
  const int m = static_cast<int>(c.m), n = static_cast<int>(c.n), k = static_cast<int>(c.k);
  const float tolerance = static_cast<float>(c.tolerance);
  Columns<T> a = item<T>(c.a, i), b = item<T>(c.b, i);
  int info = 0;
  std::vector<float> real_work(static_cast<size_t>(5 * std::min(c.m, c.n) + 1));
  with_work<T>([&](T *work, int length) {
    if constexpr (is_complex<T>)
      cgelss_(&m, &n, &k, a.data, &a.leading, b.data, &b.leading, singular, &tolerance, rank, work, &length, real_work.data(), &info);
    else
      sgelss_(&m, &n, &k, a.data, &a.leading, b.data, &b.leading, singular, &tolerance, rank, work, &length, &info);
  });
  return info;
}

template <class T>
int solve_gelsy(const Call &c, int64_t i, int *rank) {
  const int m = static_cast<int>(c.m), n = static_cast<int>(c.n), k = static_cast<int>(c.k);
  const float tolerance = static_cast<float>(c.tolerance);
  Columns<T> a = item<T>(c.a, i), b = item<T>(c.b, i);
  int info = 0;
  std::vector<int> order(static_cast<size_t>(c.n + 1));  // zeros: every column may be moved
  std::vector<float> real_work(static_cast<size_t>(2 * c.n + 1));
  with_work<T>([&](T *work, int length) {
    if constexpr (is_complex<T>)
      cgelsy_(&m, &n, &k, a.data, &a.leading, b.data, &b.leading, order.data(), &tolerance, rank, work, &length, real_work.data(), &info);
    else
      sgelsy_(&m, &n, &k, a.data, &a.leading, b.data, &b.leading, order.data(), &tolerance, rank, work, &length, &info);
  });
  return info;
}

template <class T>
int solve_gels(const Call &c, int64_t i) {
  const char trans = 'N';
  const int m = static_cast<int>(c.m), n = static_cast<int>(c.n), k = static_cast<int>(c.k);
  Columns<T> a = item<T>(c.a, i), b = item<T>(c.b, i);
  int info = 0;
  with_work<T>([&](T *work, int length) {
    choose<T>(sgels_, cgels_)(&trans, &m, &n, &k, a.data, &a.leading, b.data, &b.leading, work, &length, &info);
  });
  return info;
}

}  // namespace

template <class T>
mps_status factor_qr(const Call &c) {
  const double item_cost = cost<T>(c.m, c.n, std::min(c.m, c.n));
  const bool small = std::min(c.m, c.n) <= 2 * kPanel;
  return each_matrix(c, item_cost, [&](int64_t i, Each each) {
    const Columns<T> a = item<T>(c.a, i);
    T *tau = item<T>(c.values, i).data;
    return small ? each(1, [&](uint32_t) { factor(c.m, c.n, a, tau); }) : factor_panels(c.m, c.n, a, tau, each);
  });
}

template <class T>
mps_status form_q(const Call &c) {
  return each_matrix(c, cost<T>(c.m, c.n, c.k), [&](int64_t i, Each each) {
    const T *tau = item<T>(c.values, i).data;
    return c.k <= 2 * kPanel ? each(1, [&](uint32_t) { form<T>(c, i); }) : form_panels<T>(c, item<T>(c.a, i), tau, each);
  });
}

template <class T>
mps_status multiply_q(const Call &c) {
  const char side = c.is_left ? 'L' : 'R';
  const bool transpose = c.transpose != MPS_DENSE_PLAIN;
  const int64_t sides = c.is_left ? c.n : c.m, cut = is_cut(c, cost<T>(c.m, c.n, c.k)) ? kBlock : std::max<int64_t>(sides, 1);
  if (cut != kBlock)
    return each_item(c, cost<T>(c.m, c.n, c.k), [&](int64_t i) {
      apply(side, transpose, c.m, c.n, c.k, item<T>(c.a, i), static_cast<const T *>(item<T>(c.values, i).data), item<T>(c.b, i));
    });
  const int64_t pieces = blocks(sides);
  return spread(static_cast<uint32_t>(c.batch * pieces), [&](uint32_t piece) {
    const int64_t i = piece / pieces, begin = piece % pieces * kBlock, size = std::min(kBlock, sides - begin);
    Columns<T> b = item<T>(c.b, i).part(c.is_left ? 0 : begin, c.is_left ? begin : 0);
    apply(side, transpose, c.is_left ? c.m : size, c.is_left ? size : c.n, c.k, item<T>(c.a, i), static_cast<const T *>(item<T>(c.values, i).data), b);
  });
}

template <class T>
mps_status least_squares(const Call &c) {
  return each_item(c, 4.0 * cost<T>(c.m, c.n, std::min(c.m, c.n) + c.k), [&](int64_t i) {
    int rank = 0;
    std::vector<float> unwanted(c.values.data == nullptr ? static_cast<size_t>(std::min(c.m, c.n) + 1) : 0);
    float *singular = c.values.data == nullptr ? unwanted.data() : item<float>(c.values, i).data;
    switch (c.driver) {
      case MPS_DENSE_GELS: set_info(c, i, solve_gels<T>(c, i)); break;
      case MPS_DENSE_GELSY: set_info(c, i, solve_gelsy<T>(c, i, &rank)); break;
      case MPS_DENSE_GELSD: set_info(c, i, solve_gelsd<T>(c, i, singular, &rank)); break;
      case MPS_DENSE_GELSS: set_info(c, i, solve_gelss<T>(c, i, singular, &rank)); break;
    }
    if (c.ranks.data != nullptr) *item<int64_t>(c.ranks, i).data = rank;
  });
}

#define OPENMPS_INSTANTIATE(function)                \
  template mps_status function<float>(const Call &); \
  template mps_status function<complex64>(const Call &);
OPENMPS_INSTANTIATE(factor_qr)
OPENMPS_INSTANTIATE(form_q)
OPENMPS_INSTANTIATE(multiply_q)
OPENMPS_INSTANTIATE(least_squares)

}  // namespace openmps::dense
