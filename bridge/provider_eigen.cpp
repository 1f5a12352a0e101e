/* SPDX-License-Identifier: BSD-3-Clause
 *
 * provider_eigen: singular values, eigenvalues and their vectors. One library call a matrix; the items of a batch are spread over workers.
 */
#include "bridge/provider_lapack.h"

namespace openmps::dense {
namespace {

template <class T>
double cost(int64_t a, int64_t b, int64_t c) {
  return 2000.0 + static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c) * (is_complex<T> ? 4.0 : 1.0);
}

template <class T>
int decompose(const Call &c, int64_t i) {
  const char job = c.left.data == nullptr ? 'N' : c.full ? 'A' : 'S';
  const int m = static_cast<int>(c.m), n = static_cast<int>(c.n);
  const size_t least = static_cast<size_t>(std::min(m, n)), most = static_cast<size_t>(std::max(m, n));
  Columns<T> a = item<T>(c.a, i), u = item<T>(c.left, i), v = item<T>(c.right, i);
  float *values = item<float>(c.values, i).data;
  std::vector<int> integer_work(8 * least + 1);
  int info = 0;
  if constexpr (is_complex<T>) {
    // What gesdd's documentation asks for, and the 7 of older versions.
    const size_t reals = job == 'N' ? 7 * least : std::max(5 * least * least + 7 * least, 2 * most * least + 2 * least * least + least);
    std::vector<float> real_work(reals + 1);
    with_work<T>([&](T *work, int length) {
      cgesdd_(&job, &m, &n, a.data, &a.leading, values, u.data, &u.leading, v.data, &v.leading, work, &length, real_work.data(), integer_work.data(), &info);
    });
  } else {
    with_work<T>([&](T *work, int length) {
      sgesdd_(&job, &m, &n, a.data, &a.leading, values, u.data, &u.leading, v.data, &v.leading, work, &length, integer_work.data(), &info);
    });
  }
  return info;
}

template <class T>
int decompose_hermitian(const Call &c, int64_t i) {
  const char job = c.vectors ? 'V' : 'N', uplo = c.upper ? 'U' : 'L';
  const int n = static_cast<int>(c.n);
  Columns<T> a = item<T>(c.a, i);
  float *values = item<float>(c.values, i).data, real_size = 1;
  int info = 0, integer_size = 1;
  T wanted{};
  auto run = [&](T *work, int length, float *real_work, int reals, int *integer_work, int integers) {
    if constexpr (is_complex<T>)
      cheevd_(&job, &uplo, &n, a.data, &a.leading, values, work, &length, real_work, &reals, integer_work, &integers, &info);
    else
      ssyevd_(&job, &uplo, &n, a.data, &a.leading, values, work, &length, integer_work, &integers, &info);
  };
  run(&wanted, -1, &real_size, -1, &integer_size, -1);
  std::vector<T> work(std::max<size_t>(1, static_cast<size_t>(std::real(wanted))));
  std::vector<float> real_work(std::max<size_t>(1, static_cast<size_t>(real_size)));
  std::vector<int> integer_work(std::max<size_t>(1, static_cast<size_t>(integer_size)));
  run(work.data(), static_cast<int>(work.size()), real_work.data(), static_cast<int>(real_work.size()), integer_work.data(),
      static_cast<int>(integer_work.size()));
  return info;
}

// LAPACK writes a conjugate pair of real matrices as two real columns: real and imaginary parts.
void expand_pairs(int64_t n, const complex64 *values, const float *packed, Columns<complex64> vectors) {
  for (int64_t j = 0; j < n; j++) {
    const float *real = packed + j * n;
    if (values[j].imag() == 0.0f || j + 1 == n) {
      for (int64_t r = 0; r < n; r++) *vectors.at(r, j) = real[r];
      continue;
    }
    for (int64_t r = 0; r < n; r++) {
      *vectors.at(r, j) = {real[r], real[n + r]};
      *vectors.at(r, j + 1) = {real[r], -real[n + r]};
    }
    j++;
  }
}

int decompose_general(const Call &c, int64_t i, Columns<float> a, Columns<complex64> vectors) {
  const char no = 'N', job = vectors ? 'V' : 'N';
  const int n = static_cast<int>(c.n);
  const size_t count = static_cast<size_t>(c.n);
  std::vector<float> real(count + 1), imaginary(count + 1), packed(vectors ? count * count + 1 : 1);
  float none = 0;
  const int one = 1;
  int info = 0;
  with_work<float>([&](float *work, int length) {
    sgeev_(&no, &job, &n, a.data, &a.leading, real.data(), imaginary.data(), &none, &one, packed.data(), &n, work, &length, &info);
  });
  complex64 *values = item<complex64>(c.values, i).data;
  for (size_t j = 0; j < count; j++) values[j] = {real[j], imaginary[j]};
  if (vectors) expand_pairs(c.n, values, packed.data(), vectors);
  return info;
}

int decompose_general(const Call &c, int64_t i, Columns<complex64> a, Columns<complex64> vectors) {
  const char no = 'N', job = vectors ? 'V' : 'N';
  const int n = static_cast<int>(c.n), one = 1;
  std::vector<float> real_work(2 * static_cast<size_t>(c.n) + 1);
  complex64 none{}, *values = item<complex64>(c.values, i).data;
  int info = 0;
  with_work<complex64>([&](complex64 *work, int length) {
    cgeev_(&no, &job, &n, a.data, &a.leading, values, &none, &one, vectors ? vectors.data : &none, vectors ? &vectors.leading : &one, work, &length,
           real_work.data(), &info);
  });
  return info;
}

}  // namespace

template <class T>
mps_status singular_values(const Call &c) {
  return each_item(c, cost<T>(c.m, c.n, std::min(c.m, c.n)), [&](int64_t i) { set_info(c, i, decompose<T>(c, i)); });
}

template <class T>
mps_status eigen_hermitian(const Call &c) {
  return each_item(c, cost<T>(c.n, c.n, c.n), [&](int64_t i) { set_info(c, i, decompose_hermitian<T>(c, i)); });
}

template <class T>
mps_status eigen(const Call &c) {
  return each_item(c, 5.0 * cost<T>(c.n, c.n, c.n), [&](int64_t i) { set_info(c, i, decompose_general(c, i, item<T>(c.a, i), item<complex64>(c.left, i))); });
}

#define OPENMPS_INSTANTIATE(function)                \
  template mps_status function<float>(const Call &); \
  template mps_status function<complex64>(const Call &);
OPENMPS_INSTANTIATE(singular_values)
OPENMPS_INSTANTIATE(eigen_hermitian)
OPENMPS_INSTANTIATE(eigen)

}  // namespace openmps::dense
