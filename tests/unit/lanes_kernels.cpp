/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lanes_kernels: what test_lanes runs both ways: as lane loops, and (MPS_REFERENCE) one thread after another, stopped at each meeting.
 * Each kernel leaves what it found in context::out and context::words, which have room for 8 elements a thread.
 */
#define MPS_COLLECTIVE_FUNCTION extern "C" __attribute__((used, always_inline, visibility("hidden"))) inline
#define MPS_COLLECTIVE_DECLARE(declaration) extern "C" __attribute__((convergent, nomerge)) declaration;
#include "shader/host_collectives.h"

typedef unsigned long long ulong;

MPS_COLLECTIVE_ARITHMETIC(f32, float)
MPS_COLLECTIVE_ARITHMETIC(i32, int)
MPS_COLLECTIVE_ARITHMETIC(f16, _Float16)
MPS_COLLECTIVE_ARITHMETIC(i64, long long)
MPS_COLLECTIVE_BITS(u32, unsigned)
MPS_COLLECTIVE_SHUFFLE(f32, float)
MPS_COLLECTIVE_SHUFFLE(b8, unsigned char)
MPS_COLLECTIVE_SHUFFLE(b64, ulong)
MPS_COLLECTIVE_BALLOT()

#ifdef MPS_REFERENCE
/* Set by the test: stops the thread until those that meet it are there. */
struct reference {
  void (*meet)(const void *site, const void *a, unsigned a_bytes, const void *b, unsigned b_bytes, void *result, unsigned result_bytes,
               void (*exchange)());
  void (*barrier)();
  unsigned *(*enter_loop)(const void *site);
  void (*leave_loop)();
};
extern "C" __attribute__((visibility("default"))) const reference *mps_reference = nullptr;
#define ONE(name, T, R)                                                                                                           \
  extern "C" __attribute__((noinline)) R mps_collective_##name(T value) {                                                         \
    R result;                                                                                                                     \
    mps_reference->meet(__builtin_return_address(0), &value, sizeof value, nullptr, 0, &result, sizeof result,                     \
                        reinterpret_cast<void (*)()>(mps_lanes_##name));                                                          \
    return result;                                                                                                                \
  }
#define TWO(name, T)                                                                                                              \
  extern "C" __attribute__((noinline)) T mps_collective_##name(T value, unsigned lane) {                                          \
    T result;                                                                                                                     \
    mps_reference->meet(__builtin_return_address(0), &value, sizeof value, &lane, sizeof lane, &result, sizeof result,             \
                        reinterpret_cast<void (*)()>(mps_lanes_##name));                                                          \
    return result;                                                                                                                \
  }
#define ARITHMETIC(type, T)                                                                                                       \
  ONE(sum_##type, T, T) ONE(product_##type, T, T) ONE(min_##type, T, T) ONE(max_##type, T, T) ONE(quad_sum_##type, T, T)           \
  ONE(prefix_inclusive_sum_##type, T, T) ONE(prefix_exclusive_sum_##type, T, T)
ARITHMETIC(f32, float)
ARITHMETIC(i32, int)
ARITHMETIC(f16, _Float16)
ARITHMETIC(i64, long long)
ONE(and_u32, unsigned, unsigned)
ONE(or_u32, unsigned, unsigned)
ONE(xor_u32, unsigned, unsigned)
ONE(ballot, bool, unsigned)
TWO(shuffle_f32, float)
TWO(shuffle_b8, unsigned char)
TWO(shuffle_b64, ulong)
extern "C" __attribute__((noinline)) void mps_collective_barrier(unsigned) { mps_reference->barrier(); }
extern "C" __attribute__((noinline)) void mps_collective_simdgroup_barrier(unsigned) {
  mps_reference->meet(__builtin_return_address(0), nullptr, 0, nullptr, 0, nullptr, 0, nullptr);
}
#endif

/* Around a loop in which lanes meet: both count its rounds. */
template <unsigned Name> struct loop {
  bool entered = false;
#ifdef MPS_REFERENCE
  static __attribute__((noinline)) unsigned *enter() { return mps_reference->enter_loop(__builtin_return_address(0)); }
  unsigned *rounds;
  __attribute__((always_inline)) loop() : rounds(enter()) {}
  ~loop() { mps_reference->leave_loop(); }
  bool next() { return ++*rounds; }
#else
  loop() { mps_collective_loop_enter(Name); }
  ~loop() { mps_collective_loop_leave(Name); }
  bool next() { return mps_collective_loop_next(Name), true; }
#endif
  bool once() { return entered ? false : (entered = true); }
};
#define LOOP for (loop<__COUNTER__> l; l.once();)

struct context {
  const float *in;
  float *out;
  unsigned *words, *counts;
  float *shared;
  unsigned threads, n;
};

#define barrier() mps_collective_barrier(1)
#define sum mps_collective_sum_f32
#define KERNEL(number) extern "C" void mps_threads_##number(const context *c, unsigned t)

KERNEL(0) { /* a tree in threadgroup memory */
  c->shared[t] = c->in[t];
  barrier();
  for (unsigned s = 512; s > 0; s >>= 1) {
    if (t < s && t + s < c->threads) c->shared[t] += c->shared[t + s];
    barrier();
  }
  c->out[t] = c->shared[0];
}

KERNEL(1) { /* sums of simdgroups, and their sum */
  float v = sum(c->in[t]);
  if (t % 32 == 0) c->shared[t / 32] = v;
  barrier();
  if (t / 32 == 0) {
    const float part = t < (c->threads + 31) / 32 ? c->shared[t] : 0;
    v = sum(part);
    if (t == 0) c->out[0] = v;
  }
}

KERNEL(2) { /* a barrier in a loop that all go round equally often */
  unsigned from = 0;
  c->shared[t] = c->in[t];
  for (unsigned i = 0; i < c->n; i++) {
    barrier();
    const float left = c->shared[from + (t + c->threads - 1) % c->threads], own = c->shared[from + t];
    from = 1024 - from;
    c->shared[from + t] = left * 0.5f + own;
  }
  barrier();
  c->out[t] = c->shared[from + (t + 1) % c->threads];
}

KERNEL(3) { /* some return before the barrier */
  if (t % 3 == 1 || t > c->threads * 3 / 4) return;
  c->shared[t] = c->in[t] * 2;
  barrier();
  c->out[t] = c->shared[t / 3 * 3] + sum(static_cast<float>(t));
}

KERNEL(4) { /* exchanges in both arms */
  float v = c->in[t];
  if (c->counts[t] & 1) v = sum(v * 2) + c->in[t];
  else v = mps_collective_prefix_exclusive_sum_f32(v) - sum(v);
  c->out[t] = sum(v);
}

KERNEL(5) { /* each lane goes round as often as it likes */
  float total = 0;
  const unsigned count = c->counts[t] % 7;
  LOOP for (unsigned i = 0; l.next() && i < count; i++) total += sum(c->in[t] + static_cast<float>(i)) * static_cast<float>(i + 1);
  c->out[t] = total;
}

typedef float float4 __attribute__((ext_vector_type(4)));
typedef bool bool4 __attribute__((ext_vector_type(4)));
typedef int int4 __attribute__((ext_vector_type(4)));

KERNEL(6) { /* values of many types that live over several barriers */
  const float x = c->in[t];
  const bool flag = x > 3;
  const unsigned char b = static_cast<unsigned char>(c->counts[t]);
  const short s = static_cast<short>(c->counts[t] * 77);
  const int i = static_cast<int>(c->counts[t] * 12345);
  const long long l = static_cast<long long>(c->counts[t]) * 1234567891011ll;
  const _Float16 h = static_cast<_Float16>(x) * static_cast<_Float16>(0.3f);
  const double d = x / 3.0;
  const float *p = c->in + c->counts[t] % c->threads;
  const float4 v = float4{x, x + 1, x * 2, x / 7};
  const int4 comparison = v > 2.0f;
  const __int128 wide = static_cast<__int128>(l) * l;
  barrier();
  c->shared[t] = x;
  barrier();
  float r = c->shared[(t + 1) % c->threads];
  if (flag) r += static_cast<float>(h);
  r += static_cast<float>(b) + static_cast<float>(s) + static_cast<float>(d);
  barrier();
  const float4 w = v * r;
  c->out[t] = w.x + w.y + w.z + w.w + *p;
  c->words[t * 2] = static_cast<unsigned>(i) ^ static_cast<unsigned>(l >> 20) ^ static_cast<unsigned>(wide >> 40);
  c->words[t * 2 + 1] = static_cast<unsigned>(comparison.x + comparison.y * 2 + comparison.z * 4) + flag;
}

KERNEL(7) { /* exchange of an atomic whose two results are used behind a barrier */
  unsigned expected = t % 5;
  const bool done = __atomic_compare_exchange_n(&c->words[4000 + t], &expected, t + 100, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  barrier();
  c->words[t] = c->words[4000 + (t + 1) % c->threads] + (done ? 1000000u : expected);
}

KERNEL(8) { /* private arrays */
  float own[9];
  for (unsigned i = 0; i < 9; i++) own[i] = c->in[(t + i) % c->threads];
  barrier();
  own[c->counts[t] % 9] += 5;
  const float s = sum(own[c->counts[(t + 1) % c->threads] % 9]);
  own[c->counts[t] % 4] = s;
  barrier();
  float r = 0;
  for (unsigned i = 0; i < 9; i++) r = r * 0.5f + own[(i * c->counts[t]) % 9];
  c->out[t] = r;
}

KERNEL(9) { /* switch */
  float v = c->in[t];
  switch (c->counts[t] % 5) {
    case 0: v = sum(v); break;
    case 1: v = mps_collective_max_f32(v); /* falls through */
    case 2: v += mps_collective_min_f32(v); break;
    case 3: c->out[t] = 3; return;
    default: v = mps_collective_shuffle_f32(v, (t + 1) % 32);
  }
  barrier();
  c->out[t] = v + sum(1);
}

KERNEL(10) { /* loops in loops, break and continue */
  float total = c->in[t];
  LOOP for (unsigned i = 0; l.next() && i < c->n; i++) {
    if ((c->counts[t] + i) % 4 == 3) continue;
    LOOP for (unsigned k = 0; l.next() && k <= i; k++) {
      total += mps_collective_quad_sum_f32(total) * 0.125f;
      if (total > 900) break;
    }
    total = total > 900 ? total / 16 : total + 1;
    mps_collective_simdgroup_barrier(0);
  }
  c->out[t] = total;
}

KERNEL(11) { /* atomics */
  const unsigned before = __atomic_fetch_add(&c->words[5000], c->counts[t], __ATOMIC_RELAXED);
  __atomic_fetch_max(&c->words[5001], c->counts[t], __ATOMIC_RELAXED);
  barrier();
  c->words[t] = c->words[5000] + c->words[5001] * 3 + (before > c->words[5000]);
}

KERNEL(12) { c->out[t] = c->in[t] * 2 + static_cast<float>(t); } /* no meeting */

KERNEL(13) { /* lanes give and take */
  float v = c->in[t];
  LOOP for (unsigned mask = 16; l.next() && mask > 0; mask >>= 1) v += mps_collective_shuffle_f32(v, (t % 32) ^ mask);
  const unsigned votes = mps_collective_ballot(v > 100), bits = mps_collective_or_u32(1u << c->counts[t] % 32);
  const ulong wide = mps_collective_shuffle_b64(static_cast<ulong>(c->counts[t]) << 33, 31 - t % 32);
  const unsigned char narrow = mps_collective_shuffle_b8(static_cast<unsigned char>(c->counts[t]), t + 3);
  const _Float16 half = mps_collective_sum_f16(static_cast<_Float16>(c->in[t]));
  c->out[t] = v + static_cast<float>(half) + static_cast<float>(mps_collective_prefix_inclusive_sum_i32(static_cast<int>(t)));
  c->words[t] = votes ^ bits ^ static_cast<unsigned>(wide >> 32) ^ narrow ^ mps_collective_xor_u32(t) ^ mps_collective_and_u32(~t);
}

static thread_local float group_memory[1024];
KERNEL(14) { /* a threadgroup object */
  group_memory[t] = c->in[t];
  barrier();
  const float other = group_memory[c->threads - 1 - t];
  barrier();
  group_memory[t] = other * 2;
  barrier();
  c->out[t] = group_memory[(t * 5) % c->threads];
}

KERNEL(15) { /* a loop that ends in its middle, and returns from within */
  unsigned i = 0;
  float v = c->in[t];
  LOOP for (; l.next();) {
    v += sum(v) * 0.01f;
    if (i++ > c->n) break;
    if (c->counts[t] == i * 3) {
      c->out[t] = -v;
      return;
    }
    barrier();
    if (v > 1000) v = 1;
  }
  c->out[t] = mps_collective_max_f32(v);
}

KERNEL(16) { /* softmax of a row */
  float most = -1e30f, total = 0;
  for (unsigned i = t; i < c->threads * 4; i += c->threads) most = c->in[i] > most ? c->in[i] : most;
  most = mps_collective_max_f32(most);
  if (t % 32 == 0) c->shared[t / 32] = most;
  barrier();
  const unsigned simdgroups = (c->threads + 31) / 32;
  if (t < 32) {
    most = mps_collective_max_f32(t < simdgroups ? c->shared[t] : -1e30f);
    if (t == 0) c->shared[40] = most;
  }
  barrier();
  most = c->shared[40];
  for (unsigned i = t; i < c->threads * 4; i += c->threads) total += 1 / (1 + (most - c->in[i]));
  total = sum(total);
  if (t % 32 == 0) c->shared[50 + t / 32] = total;
  barrier();
  total = 0;
  for (unsigned i = 0; i < simdgroups; i++) total += c->shared[50 + i];
  for (unsigned i = t; i < c->threads * 4; i += c->threads) c->out[i] = 1 / (1 + (most - c->in[i])) / total;
}

KERNEL(17) { /* an inner loop whose count differs between lanes, values of it needed behind the barrier */
  unsigned steps = 0, value = c->counts[t] + 1;
  while (value != 1 && steps < 60) {
    value = value % 2 ? value * 3 + 1 : value / 2;
    steps++;
  }
  barrier();
  LOOP for (unsigned i = 0; l.next() && i < 3; i++) {
    const int total = mps_collective_sum_i32(static_cast<int>(steps + i));
    if (steps > 10) value += static_cast<unsigned>(total);
    else steps += 2;
    if (i == 1) barrier();
  }
  c->words[t] = value;
  c->words[t + 2000] = steps;
}

KERNEL(18) { /* lanes swap what they hold from round to round */
  float a = c->in[t], b = 1;
  unsigned last = 0, before = 1;
  LOOP for (unsigned i = 0; l.next() && i < c->n + 2; i++) {
    const float s = mps_collective_shuffle_f32(a, (t + 1) % 32);
    a = b;
    b = s;
    const unsigned next = last + before;
    last = before;
    before = next;
    if (i % 3 == 2) barrier();
  }
  c->out[t] = a - b * 3;
  c->words[t] = last * 7 + before;
}

KERNEL(19) { /* one lane a round */
  float total = 0;
  LOOP for (unsigned k = 0; l.next() && k < 40; k++) {
    if (k % 32 == (t * 7) % 32) total += sum(c->in[t] + static_cast<float>(k));
    if (k > c->counts[t] + 5) break;
    if (c->counts[t] % 3 == k % 3) continue;
    total = total * 0.5f + mps_collective_prefix_inclusive_sum_f32(static_cast<float>(k));
  }
  c->out[t] = total;
}

KERNEL(20) { /* a barrier in one loop, exchanges in another around it, returns in both */
  float v = c->in[t];
  LOOP for (unsigned i = 0; l.next() && i < 4; i++) {
    if (c->counts[t] == 9 + i) return;
    LOOP for (unsigned k = i; l.next() && k < 3 + (c->counts[t] & 1); k++) {
      v = v * 0.25f + sum(v + static_cast<float>(k));
      if (v > 5000) {
        c->out[t] = -v;
        return;
      }
    }
    barrier();
    c->shared[t] = v;
    barrier();
    if (t > 0 && (i & 1)) v += c->shared[t - 1];
  }
  c->out[t] = v;
}

struct entry {
  void (*thread)(const context *, unsigned);
  void (*group)(const context *, unsigned, void *);
  const unsigned *bytes;
};
#define KERNELS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20)
#ifdef MPS_REFERENCE
#define ROW(n) {mps_threads_##n, nullptr, nullptr},
#else
#define DECLARE(n)                                                    \
  extern "C" void mps_group_##n(const context *, unsigned, void *);    \
  extern "C" const unsigned mps_group_##n##_bytes;
KERNELS(DECLARE)
#define ROW(n) {nullptr, mps_group_##n, &mps_group_##n##_bytes},
#endif
extern "C" __attribute__((visibility("default"))) const entry mps_entries[] = {KERNELS(ROW) {nullptr, nullptr, nullptr}};
