/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host_launch: how the host runs a kernel: one loop over a box of threads, with the kernel inlined in it. C++17, included in front of
 * what the shader reader writes, never by a .metal file. Parameter types are deduced from the kernel; the reader names their roles.
 *
 * Threads of a grid are unordered, so the innermost loop may be vectorised without asking whether iterations depend on each other.
 * This holds only for memory that threads do not have to themselves: a kernel whose private arrays stay in memory shares one copy of
 * them between iterations, and so do threadgroup objects. Such kernels run one thread at a time: `parallel` is false for them.
 *
 * Kernels with barriers or simdgroup functions run group by group (run_groups): as loops over lanes, which shader/lanes.h makes of
 * mps_threads_<n> (OPENMPS_LANE_LOOPS is 1), or the driver gives each thread a stack of its own.
 */
#ifndef OPENMPS_SHADER_HOST_LAUNCH_H
#define OPENMPS_SHADER_HOST_LAUNCH_H

#include "driver/host/abi.h"

/* Entry numbers, each followed by a comma, that compiling once has shown to keep private memory. */
#ifndef MPS_HOST_SERIAL
#define MPS_HOST_SERIAL
#endif

#if OPENMPS_LANE_LOOPS
#include "shader/host_collectives.h"

MPS_COLLECTIVE_ARITHMETIC(f32, float)
MPS_COLLECTIVE_ARITHMETIC(i32, int)
MPS_COLLECTIVE_ARITHMETIC(u32, unsigned)
MPS_COLLECTIVE_ARITHMETIC(i64, long)
MPS_COLLECTIVE_ARITHMETIC(u64, unsigned long)
MPS_COLLECTIVE_BITS(u32, unsigned)
MPS_COLLECTIVE_BITS(u64, unsigned long)
MPS_COLLECTIVE_SHUFFLE(b32, unsigned)
MPS_COLLECTIVE_SHUFFLE(b64, unsigned long)
MPS_COLLECTIVE_BALLOT()
MPS_COLLECTIVE_MATRIX()

/* Behind a kernel whose threads meet: its thread functions, by the shape of the group (mps_host::shape), and what is made of them. */
#define MPS_HOST_THREADS(entry, number, shape)                                                                                      \
  extern "C" void mps_threads_##number(const void *context, unsigned index) { mps_launch_##entry::lane_thread<shape>(context, index); } \
  extern "C" void mps_group_##number(const void *context, unsigned threads, void *storage);                                          \
  extern "C" const unsigned mps_group_##number##_bytes;
#define MPS_HOST_GROUPS(entry, row, column, block)                                                                       \
  MPS_HOST_THREADS(entry, row, ::mps_host::shape_row)                                                                     \
  MPS_HOST_THREADS(entry, column, ::mps_host::shape_column)                                                               \
  MPS_HOST_THREADS(entry, block, ::mps_host::shape_block)                                                                 \
  static inline ::mps_host::group_functions mps_groups_##entry() {                                                        \
    return {{mps_group_##row, mps_group_##column, mps_group_##block}, {mps_group_##row##_bytes, mps_group_##column##_bytes, mps_group_##block##_bytes}}; \
  }
#define MPS_HOST_RUN_GROUPS(entry, dispatch) mps_launch_##entry::run_groups(dispatch, mps_groups_##entry())
#else
#define MPS_HOST_GROUPS(entry, row, column, block)
#define MPS_HOST_RUN_GROUPS(entry, dispatch) mps_launch_##entry::run_groups(dispatch)
#endif

namespace mps_host {

typedef unsigned long long word;

constexpr bool parallel(int entry, bool possible) {
  constexpr int serial[] = {MPS_HOST_SERIAL -1};
  for (int other : serial)
    if (other == entry) return false;
  return possible;
}

template <class T> struct same { typedef T type; };
template <class T> struct plain { typedef T type; };
template <class T> struct plain<T &> { typedef T type; };
template <class T> struct plain<const T> { typedef T type; };
template <class T> struct plain<const T &> { typedef T type; };

/* Where the thread is. `Count` is as wide as the kernel's own position, so that addresses become affine in the loop's counter. */
template <class Count> struct place {
  Count grid[3];
  unsigned local[3];
  unsigned size[3]; /* of this group: the last one of a grid may be smaller */
  unsigned group[3];
};

/* ---- ids: any integer or vector of integers ---- */
template <class T, bool IsClass = __is_class(T)> struct id {
  static constexpr unsigned element = sizeof(T);
  static inline T make(word x, word, word) { return static_cast<T>(x); }
};
template <class T> struct id<T, true> {
  typedef typename plain<decltype(static_cast<T *>(nullptr)->x)>::type scalar;
  static constexpr unsigned element = sizeof(scalar);
  static inline T make(word x, word y, word z) {
    if constexpr (sizeof(T) / sizeof(scalar) == 2) return T(static_cast<scalar>(x), static_cast<scalar>(y));
    else return T(static_cast<scalar>(x), static_cast<scalar>(y), static_cast<scalar>(z));
  }
};

/* ---- roles: `held` is made once a box, `give` once a thread ---- */
struct no_value {};
struct id_role {
  static constexpr int index = -1;
  static constexpr bool is_buffer = false, local = true, wide = false;
  template <class P> using held = no_value;
  template <class P> static inline no_value hold(const mps_host_dispatch &) { return {}; }
};

#define MPS_HOST_ID(name, uses_group, x, y, z)                                                        \
  struct name : id_role {                                                                             \
    static constexpr bool local = uses_group;                                                         \
    template <class P, class C> static inline P give(no_value, const place<C> &at, const mps_host_dispatch &d) { \
      (void)at, (void)d;                                                                              \
      return id<P>::make(x, y, z);                                                                    \
    }                                                                                                 \
  }
struct grid_position : id_role {
  static constexpr bool local = false, wide = true;
  template <class P, class C> static inline P give(no_value, const place<C> &at, const mps_host_dispatch &) {
    return id<P>::make(at.grid[0], at.grid[1], at.grid[2]);
  }
};
MPS_HOST_ID(grid_size, false, d.grid[0], d.grid[1], d.grid[2]);
MPS_HOST_ID(grid_origin, false, 0, 0, 0);
MPS_HOST_ID(full_group_size, false, d.group[0], d.group[1], d.group[2]);
MPS_HOST_ID(group_count, false, (d.grid[0] + d.group[0] - 1) / d.group[0], (d.grid[1] + d.group[1] - 1) / d.group[1],
            (d.grid[2] + d.group[2] - 1) / d.group[2]);
MPS_HOST_ID(simdgroup_size, false, 32, 0, 0);
MPS_HOST_ID(full_simdgroup_count, false, (d.group[0] * d.group[1] * d.group[2] + 31) / 32, 0, 0);
MPS_HOST_ID(local_position, true, at.local[0], at.local[1], at.local[2]);
MPS_HOST_ID(group_position, true, at.group[0], at.group[1], at.group[2]);
MPS_HOST_ID(group_size, true, at.size[0], at.size[1], at.size[2]);
#define MPS_HOST_LINEAR ((at.local[2] * at.size[1] + at.local[1]) * at.size[0] + at.local[0])
MPS_HOST_ID(local_index, true, MPS_HOST_LINEAR, 0, 0);
MPS_HOST_ID(lane, true, MPS_HOST_LINEAR % 32, 0, 0);
MPS_HOST_ID(simdgroup, true, MPS_HOST_LINEAR / 32, 0, 0);
MPS_HOST_ID(simdgroup_count, true, (at.size[0] * at.size[1] * at.size[2] + 31) / 32, 0, 0);
MPS_HOST_ID(quad_lane, true, MPS_HOST_LINEAR % 4, 0, 0);
MPS_HOST_ID(quadgroup, true, MPS_HOST_LINEAR / 4, 0, 0);
#undef MPS_HOST_LINEAR
#undef MPS_HOST_ID

/* Memory: pointers as they are (operands may be one memory), references through a pointer. */
template <class P> struct memory;
template <class T> struct memory<T *> {
  typedef T *type;
  static inline T *hold(void *address) { return static_cast<T *>(address); }
  static inline T *give(T *held) { return held; }
};
template <class T> struct memory<T &> {
  typedef T *type;
  static inline T *hold(void *address) { return static_cast<T *>(address); }
  static inline T &give(T *held) { return *held; }
};
/* Constant memory does not change while a kernel runs: small values are copied, large ones promised to stay. */
template <class P> struct constant_memory : memory<P> {};
template <class T, bool Copied> struct constant_value {
  typedef T type;
  static inline T hold(void *address) { return *static_cast<const T *>(address); }
  static inline const T &give(const T &held) { return held; }
};
template <class T> struct constant_value<T, false> {
  typedef const T *__restrict type;
  static inline const T *hold(void *address) { return static_cast<const T *>(address); }
  static inline const T &give(const T *held) { return *held; }
};
template <class T> struct constant_memory<const T &> : constant_value<T, (sizeof(T) <= 16 && __is_trivially_copyable(T))> {};

template <int Index> struct buffer {
  static constexpr int index = Index;
  static constexpr bool is_buffer = true, local = false, wide = false;
  template <class P> using held = typename memory<P>::type;
  template <class P> static inline held<P> hold(const mps_host_dispatch &d) { return memory<P>::hold(d.buffers[Index]); }
  template <class P, class C> static inline P give(held<P> value, const place<C> &, const mps_host_dispatch &) {
    return memory<P>::give(value);
  }
};
template <int Index> struct constant_buffer {
  static constexpr int index = Index;
  static constexpr bool is_buffer = true, local = false, wide = false;
  template <class P> using held = typename constant_memory<P>::type;
  template <class P> static inline held<P> hold(const mps_host_dispatch &d) { return constant_memory<P>::hold(d.buffers[Index]); }
  template <class P, class C> static inline P give(const held<P> &value, const place<C> &, const mps_host_dispatch &) {
    return constant_memory<P>::give(value);
  }
};
/* Textures and samplers: `held` is the object itself, which knows where its layout is; arrays of them are held whole. */
struct bound_role {};
template <int Index, int First, int Count> struct bound : bound_role {
  static_assert(Index >= 0 && Index < Count, "the index of a texture or sampler is at most 15");
  static constexpr int index = Index;
  static constexpr bool is_buffer = false, local = false, wide = false;
  template <class P> using held = typename plain<P>::type;
  template <class P> static inline held<P> hold(const mps_host_dispatch &d) { return held<P>::openmps_bind(d.buffers + First + Index); }
  template <class P, class C> static inline held<P> give(const held<P> &value, const place<C> &, const mps_host_dispatch &) { return value; }
};
template <int Index> struct texture : bound<Index, MPS_HOST_TEXTURES, MPS_HOST_SAMPLERS - MPS_HOST_TEXTURES> {};
template <int Index> struct sampler : bound<Index, MPS_HOST_SAMPLERS, MPS_HOST_ARGUMENTS - MPS_HOST_SAMPLERS> {};
template <int Index> struct threadgroup_memory {
  static constexpr int index = Index;
  static constexpr bool is_buffer = false, local = true, wide = false;
  template <class P> using held = typename memory<P>::type;
  template <class P> static inline held<P> hold(const mps_host_dispatch &d) { return memory<P>::hold(d.threadgroup[Index]); }
  template <class P, class C> static inline P give(held<P> value, const place<C> &, const mps_host_dispatch &) {
    return memory<P>::give(value);
  }
};

/* An argument with [[function_constant(there)]]. One that is not there need not be bound; a kernel that looks at it all the same sees a null
 * pointer, or zeros. */
template <bool There, class Role> struct argument_where : Role {};
template <class P> struct missing_argument {
  static inline P give() { return P(); }
};
template <class T> struct missing_argument<T &> {
  static inline T &give() {
    alignas(T) static unsigned char zeros[sizeof(T)];
    return *reinterpret_cast<T *>(zeros);
  }
};
template <class Role> struct argument_where<false, Role> : id_role {
  static constexpr bool local = false;
  template <class P, class C> static inline P give(no_value, const place<C> &, const mps_host_dispatch &) { return missing_argument<P>::give(); }
};

template <bool Wide> struct counter { typedef unsigned type; };
template <> struct counter<true> { typedef word type; };

template <class Role, class P> constexpr bool needs_wide() {
  if constexpr (Role::wide) return id<P>::element > 4;
  else return false;
}

/* True of a place or size that the kernel wants in more than one dimension. */
template <class Role, class P> constexpr bool is_vector() {
  if constexpr (Role::index >= 0) return false;
  else return __is_class(P);
}

/* ---- groups as loops over lanes ---- */
/* How lanes lie in a group: along x, along y, or otherwise. In the first two a thread's place is its index, so that addresses stay affine. */
constexpr int shape_row = 0, shape_column = 1, shape_block = 2, shape_count = 3;

struct group_functions {
  void (*run[shape_count])(const void *context, unsigned threads, void *storage);
  unsigned bytes[shape_count]; /* of storage, for each thread */
};

template <class... T> struct values;
template <> struct values<> {
  static inline values make() { return {}; }
};
template <class First, class... Rest> struct values<First, Rest...> {
  First first;
  values<Rest...> rest;
  /* The types are given, for deduced ones would lose their __restrict. */
  static inline values make(const First &first, const Rest &...rest) { return {first, values<Rest...>::make(rest...)}; }
};

/* ---- the loops ---- */
template <class Kernel, bool Parallel, auto *Function, class... Roles> struct launch_of;

template <class... P, bool Parallel, auto *Function, class... Roles> struct launch_of<void(P...), Parallel, Function, Roles...> {
  static_assert(sizeof...(P) == sizeof...(Roles), "the reader and the compiler disagree about a kernel's parameters");
  static constexpr bool wide = (false || ... || needs_wide<Roles, P>());
  static constexpr bool local = (false || ... || Roles::local);
  static constexpr bool vector = (false || ... || is_vector<Roles, P>());
  static constexpr bool textures = (false || ... || __is_base_of(bound_role, Roles));
  typedef typename counter<wide>::type count;

  static constexpr unsigned buffer_count() {
    int most = -1;
    ((most = Roles::is_buffer && Roles::index > most ? Roles::index : most), ...);
    return static_cast<unsigned>(most + 1);
  }
  static constexpr unsigned buffer_mask() {
    unsigned mask = 0;
    ((mask |= Roles::is_buffer ? 1u << (Roles::index & 31) : 0u), ...);
    return mask;
  }

  __attribute__((always_inline)) static inline void thread(const place<count> &at, const mps_host_dispatch &d,
                                                           const typename Roles::template held<P> &...held) {
    [[clang::always_inline]] Function(Roles::template give<P>(held, at, d)...);
  }

  /* Threads [begin, end) of one row. */
  __attribute__((always_inline)) static inline void row(place<count> at, count begin, count end, count origin, const mps_host_dispatch &d,
                                                        const typename Roles::template held<P> &...held) {
    if constexpr (Parallel) {
#pragma clang loop vectorize(assume_safety) interleave(enable)
      for (count x = begin; x < end; x++) {
        place<count> here = at;
        here.grid[0] = x;
        here.local[0] = static_cast<unsigned>(x - origin);
        thread(here, d, held...);
      }
    } else {
      for (count x = begin; x < end; x++) {
        place<count> here = at;
        here.grid[0] = x;
        here.local[0] = static_cast<unsigned>(x - origin);
        thread(here, d, held...);
      }
    }
  }

  __attribute__((always_inline)) static inline void place_in_group(place<count> &at, const mps_host_dispatch &d, int axis, word position) {
    at.group[axis] = static_cast<unsigned>(position / d.group[axis]);
    word start = static_cast<word>(at.group[axis]) * d.group[axis], left = d.grid[axis] - start;
    at.local[axis] = static_cast<unsigned>(position - start);
    at.size[axis] = left < d.group[axis] ? static_cast<unsigned>(left) : d.group[axis];
  }

  __attribute__((always_inline)) static inline void box(const mps_host_dispatch &d, typename Roles::template held<P>... held) {
    place<count> at = {};
    const count end = static_cast<count>(d.end[0]);
    for (word z = d.begin[2]; z < d.end[2]; z++) {
      at.grid[2] = static_cast<count>(z);
      if constexpr (local) place_in_group(at, d, 2, z);
      for (word y = d.begin[1]; y < d.end[1]; y++) {
        at.grid[1] = static_cast<count>(y);
        if constexpr (local) {
          place_in_group(at, d, 1, y);
          for (word x = d.begin[0]; x < d.end[0];) {
            place_in_group(at, d, 0, x);
            const word origin = x - at.local[0], stop = origin + at.size[0] < d.end[0] ? origin + at.size[0] : d.end[0];
            row(at, static_cast<count>(x), static_cast<count>(stop), static_cast<count>(origin), d, held...);
            x = stop;
          }
        } else {
          row(at, static_cast<count>(d.begin[0]), end, 0, d, held...);
        }
      }
    }
  }

  __attribute__((always_inline)) static inline void run(const mps_host_dispatch &d) { box(d, Roles::template hold<P>(d)...); }

  /* ---- threads that work together ---- */
  /* Calls run(at, threads) for each group of the box, until it says false; `at` is the group's first thread. */
  template <class Run> __attribute__((always_inline)) static inline void each_group(const mps_host_dispatch &d, place<count> &at, Run run) {
    for (word z = d.begin[2]; z < d.end[2]; z += d.group[2])
      for (word y = d.begin[1]; y < d.end[1]; y += d.group[1])
        for (word x = d.begin[0]; x < d.end[0]; x += d.group[0]) {
          const word first[3] = {x, y, z};
          for (int axis = 0; axis < 3; axis++) {
            place_in_group(at, d, axis, first[axis]);
            at.grid[axis] = static_cast<count>(first[axis]);
          }
          if (!run(at.size[0] * at.size[1] * at.size[2])) return;
        }
  }

#if OPENMPS_LANE_LOOPS
  /* What threads of a group have in common, by value: loads of it are known not to change. */
  struct group_context {
    mps_host_dispatch d;
    place<count> at;
    values<typename Roles::template held<P>...> held;
  };

  template <class... Done>
  __attribute__((always_inline)) static inline void unpack(const place<count> &at, const mps_host_dispatch &d, const values<> &, const Done &...done) {
    thread(at, d, done...);
  }
  template <class First, class... Rest, class... Done>
  __attribute__((always_inline)) static inline void unpack(const place<count> &at, const mps_host_dispatch &d, const values<First, Rest...> &held,
                                                           const Done &...done) {
    unpack(at, d, held.rest, done..., held.first);
  }

  template <int Shape> __attribute__((always_inline)) static inline void lane_thread(const void *context, unsigned index) {
    if constexpr (Shape == shape_column && !vector) return; /* never asked for */
    const group_context &g = *static_cast<const group_context *>(context);
    place<count> at = g.at;
    if constexpr (Shape == shape_row) {
      at.local[0] = index;
      at.local[1] = at.local[2] = 0;
    } else if constexpr (Shape == shape_column) {
      at.local[1] = index;
      at.local[0] = at.local[2] = 0;
    } else { /* index / size by multiplication: both are at most 1024, so 20 bits behind the point are enough */
      const unsigned rows = index * (0x100000u / at.size[0] + 1u) >> 20;
      at.local[0] = index - rows * at.size[0];
      at.local[2] = rows * (0x100000u / at.size[1] + 1u) >> 20;
      at.local[1] = rows - at.local[2] * at.size[1];
    }
    for (int axis = 0; axis < 3; axis++) at.grid[axis] += at.local[axis];
    unpack(at, g.d, g.held);
  }

  static inline void run_groups(const mps_host_dispatch &d, const group_functions &functions) {
    group_context g = {d, {}, values<typename Roles::template held<P>...>::make(Roles::template hold<P>(d)...)};
    word bytes = 0;
    for (unsigned each : functions.bytes) bytes = each > bytes ? each : bytes;
    const word threads = static_cast<word>(d.group[0]) * d.group[1] * d.group[2];
    void *storage = d.services->storage(&d, bytes * ((threads + 31) / 32 * 32));
    if (!storage) return;
    each_group(d, g.at, [&](unsigned members) {
      const bool column = vector && g.at.size[0] * g.at.size[2] == 1;
      const int shape = g.at.size[1] * g.at.size[2] == 1 ? shape_row : column ? shape_column : shape_block;
      functions.run[shape](&g, members, storage);
      return true;
    });
  }
#else
  /* The kernel is inlined in `member`, which the driver runs once for each thread, side by side. */
  struct group_of_threads {
    const mps_host_dispatch *d;
    place<count> at;
  };

  static void member(void *context, unsigned index) {
    const group_of_threads &g = *static_cast<const group_of_threads *>(context);
    place<count> at = g.at;
    at.local[0] = index % at.size[0];
    at.local[1] = index / at.size[0] % at.size[1];
    at.local[2] = index / at.size[0] / at.size[1];
    for (int axis = 0; axis < 3; axis++) at.grid[axis] += at.local[axis];
    thread(at, *g.d, Roles::template hold<P>(*g.d)...);
  }

  static inline void run_groups(const mps_host_dispatch &d) {
    group_of_threads g = {&d, {}};
    each_group(d, g.at, [&](unsigned members) { return d.services->run_group(&d, members, member, &g) != 0; });
  }
#endif

  /* `shared`: bytes of threadgroup variables. */
  static constexpr mps_host_function row(const char *name, mps_host_entry entry, unsigned max_threads, unsigned flags, unsigned shared = 0) {
    const unsigned all = flags | (wide ? 4u : 0u) | (textures ? 16u : 0u);
    return {name, entry, buffer_count(), max_threads ? max_threads : 1024u, shared, all, buffer_mask(), 0u};
  }
};

template <auto *Function> struct kernel_of;
template <class... P, void (*Function)(P...)> struct kernel_of<Function> { typedef void type(P...); };

template <auto *Function, bool Parallel, class... Roles>
using launch = launch_of<typename kernel_of<Function>::type, Parallel, Function, Roles...>;

} // namespace mps_host

#endif
