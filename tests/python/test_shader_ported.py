# SPDX-License-Identifier: BSD-3-Clause
"""Kernels of the kinds that packages bring along (language models above all), against the CPU: quantised products, rotary positions, norms, sorts,
scans, tiled products and attention over pages. Sizes are odd where a kernel allows it, so that edges of tiles and idle lanes count."""

import pytest
import torch

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"
PLACE = """uint group [[threadgroup_position_in_grid]], uint local [[thread_position_in_threadgroup]],
    uint width [[threads_per_threadgroup]], uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]]"""
TYPES = {"float": torch.float32, "half": torch.float16, "bfloat": torch.bfloat16}
DIGITS = {"float": 2e-5, "half": 2e-3, "bfloat": 1.6e-2}


def compiled(source):
    return torch.mps.compile_shader(HEADER + source.replace("PLACE", PLACE))


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


FOUR_BITS = """
struct nibble_block { half scale; uchar pairs[16]; };  // 32 weights: the low halves of the bytes, then the high ones

kernel void product(device const nibble_block *weights [[buffer(0)]], device const float *x [[buffer(1)]], device float *y [[buffer(2)]],
                    constant uint2 &size [[buffer(3)]], uint group [[threadgroup_position_in_grid]], ushort lane [[thread_index_in_simdgroup]],
                    ushort simdgroup [[simdgroup_index_in_threadgroup]], ushort simdgroups [[simdgroups_per_threadgroup]]) {
  const uint row = group * simdgroups + simdgroup, blocks = size.y / 32;
  if (row >= size.x) return;
  float sum = 0;
  for (uint b = lane; b < blocks; b += 32) {
    device const nibble_block &block = weights[row * blocks + b];
    device const float4 *in = (device const float4 *)(x + 32 * b);
    float4 part = 0;
    for (ushort k = 0; k < 4; k++) {
      const uchar4 pairs = *(device const packed_uchar4 *)(block.pairs + 4 * k);
      part += in[k] * (float4(pairs & 15) - 8) + in[k + 4] * (float4(pairs >> 4) - 8);
    }
    sum += float(block.scale) * (part.x + part.y + part.z + part.w);
  }
  sum = simd_sum(sum);
  if (lane == 0) y[row] = sum;
}
"""


@pytest.mark.parametrize("rows, columns", [(1, 32), (37, 4096), (130, 1056)])
def test_product_of_four_bit_blocks(rows, columns):
    draw = torch.Generator().manual_seed(rows)
    numbers = torch.randint(0, 16, (rows, columns // 32, 32), generator=draw, dtype=torch.uint8)
    scales = torch.rand(rows, columns // 32, 1, generator=draw).half()
    packed = torch.cat([scales.view(torch.uint8), numbers[..., :16] | numbers[..., 16:] << 4], 2).contiguous()
    x = drawn(columns)
    y = torch.empty(rows, device="mps")
    compiled(FOUR_BITS).product(packed.to("mps"), x.to("mps"), y, [rows, columns], threads=-(-rows // 4) * 128, group_size=128, arg_casts={3: "int32"})
    wanted = ((numbers.double() - 8) * scales.double()).reshape(rows, columns) @ x.double()
    torch.testing.assert_close(y.cpu().double(), wanted, rtol=1e-5, atol=1e-5 * columns**0.5)


ROTARY = """
template <typename T, bool neighbours>
[[kernel]] void rotary(device T *x [[buffer(0)]], device const int *positions [[buffer(1)]], constant float &base [[buffer(2)]],
                       uint3 at [[thread_position_in_grid]], uint3 size [[threads_per_grid]]) {
  device T *row = x + (ulong(at.z) * size.y + at.y) * size.x * 2;
  const float angle = positions[at.z] * metal::precise::exp2(-float(at.x) / size.x * metal::precise::log2(base));
  float cosine;
  const float sine = metal::precise::sincos(angle, cosine);
  const uint first = neighbours ? 2 * at.x : at.x, second = neighbours ? first + 1 : first + size.x;
  const float a = row[first], b = row[second];
  row[first] = T(a * cosine - b * sine);
  row[second] = T(a * sine + b * cosine);
}
#define INSTANTIATE(name, T, neighbours) \\
  template [[host_name(name)]] [[kernel]] decltype(rotary<T, neighbours>) rotary<T, neighbours>;
INSTANTIATE("halves_float", float, false)
INSTANTIATE("halves_half", half, false)
INSTANTIATE("neighbours_float", float, true)
INSTANTIATE("neighbours_bfloat", bfloat, true)
"""


@pytest.mark.parametrize("name", ["halves_float", "halves_half", "neighbours_float", "neighbours_bfloat"])
def test_rotary_positions(name):
    layout, of = name.split("_")
    tokens, heads, size = 7, 3, 96
    x = drawn(tokens, heads, size).to(TYPES[of])
    positions = torch.tensor([0, 1, 2, 30, 31, 500, 1023], dtype=torch.int32)
    there = x.to("mps")
    getattr(compiled(ROTARY), name)(there, positions.to("mps"), 10000.0, threads=(size // 2, heads, tokens), group_size=(16, 3, 1))
    angles = positions.double()[:, None] * 10000.0 ** (-torch.arange(size // 2).double() / (size // 2))
    turn = torch.polar(torch.ones_like(angles), angles)[:, None]
    pairs = x.double().unflatten(2, (-1, 2)) if layout == "neighbours" else x.double().unflatten(2, (2, -1)).transpose(2, 3)
    turned = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * turn)
    wanted = turned.flatten(2) if layout == "neighbours" else turned.transpose(2, 3).flatten(2)
    torch.testing.assert_close(there.cpu().double(), wanted, rtol=DIGITS[of], atol=max(DIGITS[of], 3e-4))


NORM = """
template <typename T>
[[kernel]] void norm(device const T *x [[buffer(0)]], device const T *weight [[buffer(1)]], device T *y [[buffer(2)]],
                     constant uint &columns [[buffer(3)]], constant float &epsilon [[buffer(4)]], PLACE) {
  threadgroup float parts[32];
  x += ulong(group) * columns;
  y += ulong(group) * columns;
  float sum = 0;
  for (uint i = local; i < columns; i += width) sum = fma(float(x[i]), float(x[i]), sum);
  sum = simd_sum(sum);
  if (simdgroup == 0) parts[lane] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) parts[simdgroup] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float scale = metal::precise::rsqrt(simd_sum(parts[lane]) / columns + epsilon);
  for (uint i = local; i < columns; i += width) y[i] = T(float(x[i]) * scale * float(weight[i]));
}
template [[host_name("norm_float")]] [[kernel]] decltype(norm<float>) norm<float>;
template [[host_name("norm_half")]] [[kernel]] decltype(norm<half>) norm<half>;
template [[host_name("norm_bfloat")]] [[kernel]] decltype(norm<bfloat>) norm<bfloat>;
"""


@pytest.mark.parametrize("of", list(TYPES))
@pytest.mark.parametrize("columns, width", [(1000, 256), (33, 64), (4097, 1024)])
def test_rms_norm(of, columns, width):
    x, weight = drawn(5, columns).to(TYPES[of]), drawn(columns, seed=1).to(TYPES[of])
    y = torch.empty_like(x, device="mps")
    kernel = getattr(compiled(NORM), f"norm_{of}")
    kernel(x.to("mps"), weight.to("mps"), y, columns, 1e-5, threads=5 * width, group_size=width)
    wanted = torch.nn.functional.rms_norm(x.double(), (columns,), weight.double(), 1e-5)
    torch.testing.assert_close(y.cpu().double(), wanted, rtol=DIGITS[of], atol=DIGITS[of])


SORT = """
kernel void sort_rows(device const float *x [[buffer(0)]], device float *sorted [[buffer(1)]], device int *order [[buffer(2)]],
                      constant uint &columns [[buffer(3)]], PLACE) {
  threadgroup float keys[1024];
  threadgroup int places[1024];
  const uint size = 2 * width;
  for (uint i = local; i < size; i += width) {
    keys[i] = i < columns ? x[group * columns + i] : INFINITY;
    places[i] = int(i);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint run = 2; run <= size; run *= 2)
    for (uint step = run / 2; step > 0; step /= 2) {
      const uint a = local / step * 2 * step + local % step, b = a + step;
      const bool greater = keys[a] > keys[b] || (keys[a] == keys[b] && places[a] > places[b]), down = (a & run) != 0;
      if (greater != down) {
        const float key = keys[a];
        const int place = places[a];
        keys[a] = keys[b];
        places[a] = places[b];
        keys[b] = key;
        places[b] = place;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }
  for (uint i = local; i < columns; i += width) {
    sorted[group * columns + i] = keys[i];
    order[group * columns + i] = places[i];
  }
}
"""


@pytest.mark.parametrize("columns, width", [(1000, 512), (2, 1), (65, 64), (32, 16)])
def test_sort_by_bitonic_exchange(columns, width):
    x = (drawn(6, columns) * 40).round() / 8  # with equal ones
    x[1, ::3], x[2] = float("inf"), -0.5
    values, order = torch.empty(6, columns, device="mps"), torch.empty(6, columns, dtype=torch.int32, device="mps")
    compiled(SORT).sort_rows(x.to("mps"), values, order, columns, threads=6 * width, group_size=width)
    wanted = torch.sort(x, dim=1, stable=True)
    assert torch.equal(values.cpu(), wanted.values)
    assert torch.equal(order.cpu().long(), wanted.indices)


SCAN = """
template <typename T>
[[kernel]] void scan(device const T *x [[buffer(0)]], device T *y [[buffer(1)]], constant uint &columns [[buffer(2)]], PLACE,
                     uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup T totals[32];
  threadgroup T whole;
  T carry = 0;
  for (uint start = 0; start < columns; start += width) {
    const uint i = start + local;
    const T inclusive = simd_prefix_inclusive_sum(i < columns ? x[group * columns + i] : T(0));
    if (lane == 31) totals[simdgroup] = inclusive;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup == 0) totals[lane] = simd_prefix_exclusive_sum(lane < simdgroups ? totals[lane] : T(0));
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const T sum = carry + totals[simdgroup] + inclusive;
    if (i < columns) y[group * columns + i] = sum;
    if (local == width - 1) whole = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    carry = whole;
  }
}
template [[host_name("scan_int")]] [[kernel]] decltype(scan<int>) scan<int>;
template [[host_name("scan_float")]] [[kernel]] decltype(scan<float>) scan<float>;
"""


@pytest.mark.parametrize("columns, width", [(1, 32), (3001, 256), (1024, 1024), (70, 96)])
def test_prefix_scan(columns, width):
    numbers = torch.randint(-1000, 1000, (4, columns), generator=torch.Generator().manual_seed(columns), dtype=torch.int32)
    lib = compiled(SCAN)
    for kernel, x in ((lib.scan_int, numbers), (lib.scan_float, numbers / 64)):  # sums of 64ths are exact
        y = torch.empty_like(x, device="mps")
        kernel(x.to("mps"), y, columns, threads=4 * width, group_size=width)
        assert torch.equal(y.cpu(), x.cumsum(1).to(x.dtype))


TILES = """
template <typename T>
[[kernel]] void product(device const T *a [[buffer(0)]], device const T *b [[buffer(1)]], device float *c [[buffer(2)]],
                        constant uint4 &size [[buffer(3)]], uint2 tile [[threadgroup_position_in_grid]], uint local [[thread_index_in_threadgroup]],
                        ushort simdgroup [[simdgroup_index_in_threadgroup]]) {
  constexpr const uint side = 32, depth = 16, threads = 128;
  threadgroup T left[side * depth], right[depth * side];
  threadgroup float result[side * side];
  const uint rows = size.x, columns = size.y, inner = size.z, top = tile.y * side, start = tile.x * side;
  const uint down = simdgroup / 2 * 16, across = simdgroup % 2 * 16;
  simdgroup_matrix<float, 8, 8> sums[2][2];
  for (ushort i = 0; i < 4; i++) sums[i / 2][i % 2] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  for (uint k = 0; k < inner; k += depth) {
    for (uint i = local; i < side * depth; i += threads) {
      const uint row = top + i / depth, at = k + i % depth, below = k + i / side, column = start + i % side;
      left[i] = row < rows && at < inner ? a[row * inner + at] : T(0);
      right[i] = below < inner && column < columns ? b[below * columns + column] : T(0);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint step = 0; step < depth; step += 8) {
      simdgroup_matrix<T, 8, 8> l[2], r[2];
      for (ushort i = 0; i < 2; i++) {
        simdgroup_load(l[i], left + (down + 8 * i) * depth + step, depth);
        simdgroup_load(r[i], right + step * side + across + 8 * i, side);
      }
      simdgroup_barrier(mem_flags::mem_none);
      for (ushort i = 0; i < 4; i++) simdgroup_multiply_accumulate(sums[i / 2][i % 2], l[i / 2], r[i % 2], sums[i / 2][i % 2]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  for (ushort i = 0; i < 4; i++) simdgroup_store(sums[i / 2][i % 2], result + (down + i / 2 * 8) * side + across + i % 2 * 8, side);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint i = local; i < side * side; i += threads)
    if (top + i / side < rows && start + i % side < columns) c[(top + i / side) * columns + start + i % side] = result[i];
}
template [[host_name("product_float")]] [[kernel]] decltype(product<float>) product<float>;
template [[host_name("product_half")]] [[kernel]] decltype(product<half>) product<half>;
"""


@pytest.mark.parametrize("of", ["float", "half"])
@pytest.mark.parametrize("rows, columns, inner", [(32, 64, 48), (5, 7, 3), (70, 33, 100)])
def test_tiled_product_of_simdgroup_matrices(of, rows, columns, inner):
    a, b = drawn(rows, inner).to(TYPES[of]), drawn(inner, columns, seed=1).to(TYPES[of])
    c = torch.full((rows, columns), float("nan"), device="mps")
    kernel = getattr(compiled(TILES), f"product_{of}")
    kernel(a.to("mps"), b.to("mps"), c, [rows, columns, inner, 0], threads=(-(-columns // 32) * 32, -(-rows // 32) * 4), group_size=(32, 4), arg_casts={3: "int32"})
    torch.testing.assert_close(c.cpu().double(), a.double() @ b.double(), rtol=1e-5, atol=1e-5 * inner**0.5)


PAGES = """
#define PAGE 16
#define HEAD 64
struct sizes { uint heads, shared_by, table_length; float scale; };  // `shared_by`: how many heads of queries use one of keys

kernel void attend(device const half *queries [[buffer(0)]], device const half *keys [[buffer(1)]], device const half *values [[buffer(2)]],
                   device const int *pages [[buffer(3)]], device const int *lengths [[buffer(4)]], device float *out [[buffer(5)]],
                   constant sizes &size [[buffer(6)]], uint2 group [[threadgroup_position_in_grid]],
                   uint lane [[thread_index_in_simdgroup]], uint simdgroup [[simdgroup_index_in_threadgroup]],
                   uint simdgroups [[simdgroups_per_threadgroup]]) {
  threadgroup float greatest_of[4], total_of[4], sum_of[4][HEAD];
  const uint head = group.x, sequence = group.y, length = lengths[sequence], kept = size.heads / size.shared_by;
  const float2 query = float2(((device const half2 *)queries)[((sequence * size.heads + head) * HEAD) / 2 + lane]) * size.scale;
  float greatest = -INFINITY, total = 0;
  float2 sum = 0;
  for (uint page = simdgroup; page * PAGE < length; page += simdgroups) {
    const ulong start = ulong(pages[sequence * size.table_length + page] * kept + head / size.shared_by) * PAGE * HEAD;
    device const half2 *key = (device const half2 *)(keys + start) + lane, *value = (device const half2 *)(values + start) + lane;
    const uint tokens = min(uint(PAGE), length - page * PAGE);
    for (uint token = 0; token < tokens; token++) {
      const float score = simd_sum(dot(query, float2(key[token * HEAD / 2])));
      const float now = max(greatest, score), keep = exp(greatest - now), share = exp(score - now);
      total = total * keep + share;
      sum = sum * keep + share * float2(value[token * HEAD / 2]);
      greatest = now;
    }
  }
  if (lane == 0) {
    greatest_of[simdgroup] = greatest;
    total_of[simdgroup] = total;
  }
  sum_of[simdgroup][2 * lane] = sum.x;
  sum_of[simdgroup][2 * lane + 1] = sum.y;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simdgroup != 0) return;
  for (uint other = 1; other < simdgroups; other++) {
    const float now = max(greatest, greatest_of[other]), keep = exp(greatest - now), share = exp(greatest_of[other] - now);
    total = total * keep + total_of[other] * share;
    sum = sum * keep + float2(sum_of[other][2 * lane], sum_of[other][2 * lane + 1]) * share;
    greatest = now;
  }
  ((device float2 *)out)[((sequence * size.heads + head) * HEAD) / 2 + lane] = sum / total;
}
"""


def test_attention_over_pages():
    sequences, heads, kept, size, page, table_length = 3, 6, 2, 64, 16, 8
    lengths = torch.tensor([1, 37, 128], dtype=torch.int32)
    table = torch.randperm(sequences * table_length, generator=torch.Generator().manual_seed(0)).int().reshape(sequences, table_length)
    queries = drawn(sequences, heads, size).half()
    keys, values = (drawn(sequences * table_length, kept, page, size, seed=s).half() for s in (1, 2))
    scale = size**-0.5
    numbers = torch.cat([torch.tensor([heads, heads // kept, table_length], dtype=torch.int32), torch.tensor([scale]).view(torch.int32)])
    out = torch.empty(sequences, heads, size, device="mps")
    there = [x.to("mps") for x in (queries, keys, values, table, lengths)]
    compiled(PAGES).attend(*there, out, numbers.to("mps"), threads=(heads * 128, sequences), group_size=(128, 1))
    for i in range(sequences):
        k, v = (x[table[i].long()].transpose(0, 1).flatten(1, 2)[:, : lengths[i]].repeat_interleave(heads // kept, 0).double() for x in (keys, values))
        weights = torch.softmax((k @ queries[i].double()[..., None]).squeeze(2) * scale, 1)
        torch.testing.assert_close(out[i].cpu().double(), (weights[:, None] @ v).squeeze(1), rtol=1e-5, atol=1e-5)
