/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gather: elements of strided memory into a dense block, and back. Address arithmetic is unsigned and wraps; element addresses
 * themselves are always inside of the operand.
 */
#include <string.h>
#include <wchar.h>

#include "driver/host/pointwise.h"

/* A column lies in lines of its own, too far from the last one for the processor to foresee. Addresses behind the operand do no harm. */
#define PREFETCH_COLUMNS 12
#define LINE_BYTES 64
static inline void prefetch(uint64_t address, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes && i < 4 * LINE_BYTES; i += LINE_BYTES) __builtin_prefetch((const void *)(uintptr_t)(address + i));
}

/* Elements that a loop over neighbours takes at once, so that the compiler sees how many there are. */
#define TOGETHER 16

/* Two loops over a tile, the one with the smaller stride inside: the block is in the cache, so only the order in memory matters. */
#define DEFINE_TILE(type, suffix)                                                                                                \
  static void gather_##suffix(uint64_t address, uint64_t rows, uint64_t columns, uint64_t row_stride, uint64_t column_stride,    \
                              bool rows_inside, type *restrict block) {                                                          \
    if (rows_inside) {                                                                                                           \
      for (uint64_t c = 0; c < columns; c++) {                                                                                   \
        uint64_t from = address + c * column_stride;                                                                             \
        prefetch(from + PREFETCH_COLUMNS * column_stride, rows * row_stride);                                                    \
        for (uint64_t r = 0; r < rows; r++, from += row_stride) {                                                                \
          memcpy(&block[r * columns + c], (const void *)(uintptr_t)from, sizeof(type));                                          \
        }                                                                                                                        \
      }                                                                                                                          \
    } else if (column_stride == 0) {                                                                                             \
      for (uint64_t r = 0; r < rows; r++) {                                                                                      \
        type value;                                                                                                              \
        memcpy(&value, (const void *)(uintptr_t)(address + r * row_stride), sizeof(type));                                       \
        for (uint64_t c = 0; c < columns; c++) *block++ = value;                                                                 \
      }                                                                                                                          \
    } else if (column_stride == 0 - sizeof(type)) { /* backwards */                                                              \
      for (uint64_t r = 0; r < rows; r++, block += columns) {                                                                    \
        uint64_t from = address + r * row_stride, c = 0;                                                                         \
        for (; c + TOGETHER <= columns; c += TOGETHER, from -= TOGETHER * sizeof(type)) {                                        \
          type values[TOGETHER];                                                                                                 \
          memcpy(values, (const void *)(uintptr_t)(from - (TOGETHER - 1) * sizeof(type)), sizeof values);                        \
          for (unsigned i = 0; i < TOGETHER; i++) block[c + i] = values[TOGETHER - 1 - i];                                       \
        }                                                                                                                        \
        for (; c < columns; c++, from -= sizeof(type)) memcpy(&block[c], (const void *)(uintptr_t)from, sizeof(type));           \
      }                                                                                                                          \
    } else {                                                                                                                     \
      for (uint64_t r = 0; r < rows; r++) {                                                                                      \
        uint64_t from = address + r * row_stride;                                                                                \
        for (uint64_t c = 0; c < columns; c++, from += column_stride) {                                                          \
          memcpy(block++, (const void *)(uintptr_t)from, sizeof(type));                                                          \
        }                                                                                                                        \
      }                                                                                                                          \
    }                                                                                                                            \
  }                                                                                                                              \
  static void scatter_##suffix(uint64_t address, uint64_t rows, uint64_t columns, uint64_t row_stride, uint64_t column_stride,   \
                               bool rows_inside, const type *restrict block) {                                                   \
    if (rows_inside) {                                                                                                           \
      for (uint64_t c = 0; c < columns; c++) {                                                                                   \
        uint64_t to = address + c * column_stride;                                                                               \
        prefetch(to + PREFETCH_COLUMNS * column_stride, rows * row_stride);                                                      \
        for (uint64_t r = 0; r < rows; r++, to += row_stride) {                                                                  \
          memcpy((void *)(uintptr_t)to, &block[r * columns + c], sizeof(type));                                                  \
        }                                                                                                                        \
      }                                                                                                                          \
    } else {                                                                                                                     \
      for (uint64_t r = 0; r < rows; r++) {                                                                                      \
        uint64_t to = address + r * row_stride;                                                                                  \
        for (uint64_t c = 0; c < columns; c++, to += column_stride) {                                                            \
          memcpy((void *)(uintptr_t)to, block++, sizeof(type));                                                                  \
        }                                                                                                                        \
      }                                                                                                                          \
    }                                                                                                                            \
  }
DEFINE_TILE(uint8_t, 1)
DEFINE_TILE(uint16_t, 2)
DEFINE_TILE(uint32_t, 4)
DEFINE_TILE(uint64_t, 8)

static uint64_t magnitude(int64_t stride) { return stride < 0 ? -(uint64_t)stride : (uint64_t)stride; }

static bool rows_inside(uint64_t rows, int64_t row_stride, int64_t column_stride) {
  return rows > 1 && magnitude(row_stride) < magnitude(column_stride) && row_stride != 0;
}

/* Rows of at least this many bytes are worth a memcpy each. */
#define ROW_COPY_BYTES 64
#define REPEATED_LEAST 16 /* columns that hold one value */

void mps_host_gather_tile(uint64_t address, uint64_t rows, uint64_t columns, int64_t row_stride, int64_t column_stride, unsigned bytes,
                          void *block) {
  if (column_stride == (int64_t)bytes && columns * bytes >= ROW_COPY_BYTES) {
    for (uint64_t r = 0; r < rows; r++) {
      memcpy((unsigned char *)block + r * columns * bytes, (const void *)(uintptr_t)(address + r * (uint64_t)row_stride),
             (size_t)(columns * bytes));
    }
    return;
  }
  if (column_stride == 0 && columns >= REPEATED_LEAST) {
    for (uint64_t r = 0; r < rows; r++) {
      unsigned char *row = (unsigned char *)block + r * columns * bytes;
      memcpy(row, (const void *)(uintptr_t)(address + r * (uint64_t)row_stride), bytes);
      mps_host_repeat(row, bytes, (size_t)(columns * bytes));
    }
    return;
  }
  bool inside = rows_inside(rows, row_stride, column_stride);
  uint64_t rs = (uint64_t)row_stride, cs = (uint64_t)column_stride;
  switch (bytes) {
    case 1: gather_1(address, rows, columns, rs, cs, inside, block); break;
    case 2: gather_2(address, rows, columns, rs, cs, inside, block); break;
    case 4: gather_4(address, rows, columns, rs, cs, inside, block); break;
    default: gather_8(address, rows, columns, rs, cs, inside, block); break;
  }
}

void mps_host_scatter_tile(uint64_t address, uint64_t rows, uint64_t columns, int64_t row_stride, int64_t column_stride, unsigned bytes,
                           const void *block) {
  if (column_stride == (int64_t)bytes && columns * bytes >= ROW_COPY_BYTES) {
    for (uint64_t r = 0; r < rows; r++) {
      memcpy((void *)(uintptr_t)(address + r * (uint64_t)row_stride), (const unsigned char *)block + r * columns * bytes,
             (size_t)(columns * bytes));
    }
    return;
  }
  bool inside = rows_inside(rows, row_stride, column_stride);
  uint64_t rs = (uint64_t)row_stride, cs = (uint64_t)column_stride;
  switch (bytes) {
    case 1: scatter_1(address, rows, columns, rs, cs, inside, block); break;
    case 2: scatter_2(address, rows, columns, rs, cs, inside, block); break;
    case 4: scatter_4(address, rows, columns, rs, cs, inside, block); break;
    default: scatter_8(address, rows, columns, rs, cs, inside, block); break;
  }
}

/* ---- linear ranges of a coalesced space ---- */
typedef struct cursor {
  const mps_host_access *access;
  uint64_t index[MPS_MAX_RANK];
  uint64_t address;
} cursor;

static void cursor_set(cursor *c, const mps_host_access *access, uint64_t element) {
  c->access = access;
  c->address = access->operand->address;
  for (unsigned d = access->rank; d-- > 0;) {
    uint64_t size = (uint64_t)access->sizes[d];
    c->index[d] = d ? element % size : element;
    element /= size;
    c->address += c->index[d] * (uint64_t)access->strides[d];
  }
}

/* Moves on by `steps` in dimension d (its last position included), carrying into the outer ones. */
static void cursor_advance(cursor *c, unsigned d, uint64_t steps) {
  const mps_host_access *a = c->access;
  c->index[d] += steps;
  c->address += steps * (uint64_t)a->strides[d];
  while (d > 0 && c->index[d] == (uint64_t)a->sizes[d]) {
    c->address -= c->index[d] * (uint64_t)a->strides[d];
    c->index[d] = 0;
    d--;
    c->index[d]++;
    c->address += (uint64_t)a->strides[d];
  }
}

typedef struct tile {
  uint64_t rows, columns;
  int64_t row_stride;
  unsigned dimension; /* that advances by `steps` */
  uint64_t steps;
} tile;

/* The largest tile at the cursor that holds at most `count` elements. */
static tile next_tile(const cursor *c, uint64_t count) {
  const mps_host_access *a = c->access;
  if (a->rank == 0) return (tile){.rows = 1, .columns = 1, .steps = 1};
  unsigned last = a->rank - 1u;
  uint64_t size = (uint64_t)a->sizes[last], left = size - c->index[last];
  if (last > 0 && left == size && count >= 2 * size) {
    uint64_t rows = count / size, rows_left = (uint64_t)a->sizes[last - 1] - c->index[last - 1];
    if (rows > rows_left) rows = rows_left;
    return (tile){.rows = rows, .columns = size, .row_stride = a->strides[last - 1], .dimension = last - 1, .steps = rows};
  }
  if (left > count) left = count;
  return (tile){.rows = 1, .columns = left, .dimension = last, .steps = left};
}

void mps_host_gather(const mps_host_access *access, uint64_t start, uint64_t count, void *block) {
  cursor c;
  cursor_set(&c, access, start);
  unsigned char *to = block;
  int64_t column_stride = access->rank ? access->strides[access->rank - 1] : 0;
  while (count > 0) {
    tile t = next_tile(&c, count);
    mps_host_gather_tile(c.address, t.rows, t.columns, t.row_stride, column_stride, access->bytes, to);
    to += t.rows * t.columns * access->bytes;
    count -= t.rows * t.columns;
    if (count > 0) cursor_advance(&c, t.dimension, t.steps);
  }
}

void mps_host_scatter(const mps_host_access *access, uint64_t start, uint64_t count, const void *block) {
  cursor c;
  cursor_set(&c, access, start);
  const unsigned char *from = block;
  int64_t column_stride = access->rank ? access->strides[access->rank - 1] : 0;
  while (count > 0) {
    tile t = next_tile(&c, count);
    mps_host_scatter_tile(c.address, t.rows, t.columns, t.row_stride, column_stride, access->bytes, from);
    from += t.rows * t.columns * access->bytes;
    count -= t.rows * t.columns;
    if (count > 0) cursor_advance(&c, t.dimension, t.steps);
  }
}

void mps_host_repeat(void *block, size_t pattern_bytes, size_t total) {
  unsigned char *bytes = block;
  if (pattern_bytes == 1) {
    memset(bytes, bytes[0], total);
    return;
  }
  if (pattern_bytes == sizeof(wchar_t) && sizeof(wchar_t) == 4) {
    wchar_t value;
    memcpy(&value, bytes, sizeof value);
    wmemset(block, value, total / sizeof value);
    return;
  }
  for (size_t filled = pattern_bytes; filled < total;) {
    size_t more = filled < total - filled ? filled : total - filled;
    memcpy(bytes + filled, bytes, more);
    filled += more;
  }
}

uint64_t mps_host_element_address(const mps_host_access *access, uint64_t index, uint64_t *out_run) {
  cursor c;
  cursor_set(&c, access, index);
  unsigned last = access->rank - 1u;
  bool dense = access->rank > 0 && access->strides[last] == (int64_t)access->bytes;
  *out_run = dense ? (uint64_t)access->sizes[last] - c.index[last] : 1;
  return c.address;
}
