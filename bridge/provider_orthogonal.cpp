/* SPDX-License-Identifier: BSD-3-Clause
 *
 * provider_orthogonal: QR factors, products with Q, and least squares. A large matrix is factored panel by panel, and the columns behind a
 * panel are pieces for the workers, as are the columns (or rows) of what Q is multiplied with. Q itself is Q times columns of the identity.
 */
#include "bridge/provider_lapack.h"

namespace openmps::dense {
namespace {

constexpr double kMacsPerNs = 15.0;
constexpr int64_t kPanel = 64;

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
mps_status factor_pieces(int64_t m, int64_t n, Columns<T> a, T *tau) {
  const int64_t k = std::min(m, n);
  for (int64_t j = 0; j < k; j += kPanel) {
    const int64_t w = std::min(kPanel, k - j), next = j + w;
    mps_status status = alone([&] { factor(m - j, w, a.part(j, j), tau + j); });
    if (status != MPS_STATUS_OK) return status;
    status = spread(blocks(n - next), [&](uint32_t i) {
      const int64_t column = next + i * kBlock;
      apply('L', true, m - j, std::min(kBlock, n - column), w, a.part(j, j), tau + j, a.part(j, column));
    });
    if (status != MPS_STATUS_OK) return status;
  }
  return MPS_STATUS_OK;
}

template <class T>
void form(const Call &c, int64_t i) {
  const int m = static_cast<int>(c.m), n = static_cast<int>(c.n), k = static_cast<int>(c.k);
  Columns<T> a = item<T>(c.a, i);
  const T *tau = item<T>(c.values, i).data;
  int info = 0;
  with_work<T>([&](T *work, int length) { choose<T>(sorgqr_, cungqr_)(&m, &n, &k, a.data, &a.leading, tau, work, &length, &info); });
}

template <class T>
mps_status form_pieces(const Call &c, Columns<T> a, const T *tau) {
  std::vector<T> reflectors;
  mps_status status = alone([&] {
    for (int64_t column = 0; column < c.k; column++) reflectors.insert(reflectors.end(), a.at(0, column), a.at(c.m, column));
  });
  if (status != MPS_STATUS_OK) return status;
  const Columns<T> from{reflectors.data(), static_cast<int>(c.m)};
  return spread(blocks(c.n), [&](uint32_t i) {
    const int64_t begin = i * kBlock, end = std::min(c.n, begin + kBlock);
    for (int64_t column = begin; column < end; column++) {
      std::fill(a.at(0, column), a.at(c.m, column), T(0));
      *a.at(column, column) = T(1);
    }
    // Reflectors behind a column of the identity do not change it.
    apply('L', false, c.m, end - begin, std::min(c.k, end), from, tau, a.part(0, begin));
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
  if (!is_cut(c, item_cost) || c.n <= 2 * kPanel)
    return each_item(c, item_cost, [&](int64_t i) { factor(c.m, c.n, item<T>(c.a, i), item<T>(c.values, i).data); });
  for (int64_t i = 0; i < c.batch; i++)
    if (mps_status status = factor_pieces(c.m, c.n, item<T>(c.a, i), item<T>(c.values, i).data); status != MPS_STATUS_OK) return status;
  return MPS_STATUS_OK;
}

template <class T>
mps_status form_q(const Call &c) {
  const double item_cost = cost<T>(c.m, c.n, c.k);
  if (!is_cut(c, item_cost) || c.n <= kBlock) return each_item(c, item_cost, [&](int64_t i) { form<T>(c, i); });
  for (int64_t i = 0; i < c.batch; i++)
    if (mps_status status = form_pieces(c, item<T>(c.a, i), item<T>(c.values, i).data); status != MPS_STATUS_OK) return status;
  return MPS_STATUS_OK;
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
