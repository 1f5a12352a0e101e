# SPDX-License-Identifier: BSD-3-Clause
"""Kernels whose threads meet run as loops over lanes, or with a stack for each thread: both give the same bits.

The second way (OPENMPS_SHADER_LANES=0) is simple and slow. Programs run in processes of their own, since the option is read once.
"""

import random
import re

import pytest

HEADER = "#include <metal_stdlib>\nusing namespace metal;\n"

# Where lanes meet again that part ways in a switch whose cases fall through is the compiler's choice, so no case does.
# What a kernel does with v (float), u (uint), w (uint), l (its place), n (threads of the group), shared (threadgroup floats), s (a place elsewhere).
STEPS = [
    "v = simd_sum(v) * 0.03125f + v;",
    "v += simd_max(v) - simd_min(v);",
    "u += simd_sum(u); w ^= simd_xor(u);",
    "v = simd_shuffle_down(v, 3) * 0.5f + v;",
    "v -= simd_shuffle_xor(v, ushort(u % 32));",
    "u = simd_shuffle(u, ushort(w % 40)) + l;",
    "v += simd_prefix_inclusive_sum(v) * 0.01f;",
    "u ^= simd_prefix_exclusive_sum(u);",
    "v += simd_broadcast_first(v);",
    "u += uint(ulong(simd_ballot(v > 1.0f)) >> 3);",
    "if (simd_any(u % 5 == 0)) v += 1; if (simd_all(u % 7 != 6)) v *= 0.5f;",
    "if (simd_is_first()) v += 0.25f;",
    "v = quad_sum(v) + quad_broadcast(v, 2); u += quad_max(u);",
    "{ half h = half(v); h = simd_sum(h) * 0.125h; v += float(h); }",
    "{ float4 f = float4(v, v + 1, v * 2, float(u % 3)); f = simd_shuffle_up(f, 1); f = simd_max(f); v = f.x + f.y - f.z * f.w; }",
    "{ short2 p = short2(short(u), short(w)); p = simd_sum(p); u += uint(p.x) * 3 + uint(p.y); }",
    "threadgroup_barrier(mem_flags::mem_threadgroup); shared[l] = v; threadgroup_barrier(mem_flags::mem_threadgroup); v += shared[s];",
    "simdgroup_barrier(mem_flags::mem_none);",
    "threadgroup_barrier(mem_flags::mem_threadgroup); if (l == 0) shared[0] = v; threadgroup_barrier(mem_flags::mem_threadgroup); v += shared[0] * 0.5f;",
    "if (u & 1) v = simd_sum(v) * 0.01f; else u = simd_max(u);",
    "for (uint k = 0; k < 3 + u % 3; k++) { v = simd_sum(v + float(k)) * 0.02f; if (v > 900) break; }",
    "for (uint k = 0; k < 4; k++) { v += simd_shuffle(v, ushort((l + k) % 32)) * 0.25f; if (k == 2) continue; u += w; }",
    "switch (u % 4) { case 0: v = simd_max(v); break; case 1: u = simd_min(u); break; default: w += simd_sum(w); }",
    "{ float own[6]; for (int k = 0; k < 6; k++) own[k] = v + k; own[u % 6] = 3; simdgroup_barrier(mem_flags::mem_none); v = own[w % 6] + own[1]; }",
    "while (u > 100) { u = simd_max(u) / 3 + l % 2; }",
    "if (l % 11 == 5 && u % 3 == 1) { out[3 * i] = v; return; }",
    "out[3 * i + u % 3] = v; out[3 * i] += 1; v += out[3 * i + 1];",
]


def kernel_of(seed):
    source = random.Random(seed)
    steps = []
    for _ in range(source.randint(2, 9)):
        step = source.choice(STEPS)
        roll = source.random()
        if "barrier(mem_flags::mem_threadgroup)" not in step and roll < 0.15:
            step = f"if (u % {source.randint(2, 5)} != 0) {{ {step} }}"
        elif "return" not in step and roll < 0.3:
            step = f"for (uint r{len(steps)} = 0; r{len(steps)} < {source.randint(1, 3)}; r{len(steps)}++) {{ {step} }}"
        steps.append(step)
    if any("return" in step for step in steps):  # all threads that are there have to come to a barrier
        steps = [step for step in steps if "shared" not in step]
    body = "\n  ".join(steps)
    return (
        f"kernel void kernel_{seed}(device float *out, device const float *in, device const uint *numbers, uint i [[thread_position_in_grid]],\n"
        "    uint l [[thread_index_in_threadgroup]], uint n [[threads_per_threadgroup]]) {\n"
        "  threadgroup float shared[1024];\n"
        "  float v = in[i]; uint u = numbers[i], w = u * 2654435761u >> 20, s = (l * 7 + 3) % n;\n"
        f"  shared[l] = v;\n  {body}\n  out[3 * i + 2] = v + float(u % 1024) + float(w % 512) * 0.5f;\n}}\n"
    )


PROGRAM = """
import torch
torch.manual_seed(1)
for source, name in {sources!r}:
    library = torch.mps.compile_shader(source)
    for group, threads in {groups!r}:
        generator = torch.Generator().manual_seed(group)
        values = torch.randint(0, 64, (threads,), generator=generator).float() / 4
        numbers = torch.randint(0, 1 << 16, (threads,), generator=generator, dtype=torch.int32)
        out = torch.zeros(3 * threads, device="mps")
        getattr(library, name)(out, values.to("mps"), numbers.to("mps"), threads=threads, group_size=group)
        print(name, group, out.cpu().view(torch.int32).numpy().tobytes().hex())
"""

GROUPS = [(1, 3), (7, 21), (32, 96), (40, 100), (256, 512), (1000, 1000)]


@pytest.fixture
def run(python):
    def both(sources, groups):
        program = PROGRAM.format(sources=sources, groups=groups)
        results = []
        for lanes in ("1", "0"):
            done = python(program, OPENMPS_SHADER_LANES=lanes, OPENMPS_LOG="shader:info", timeout=600)
            assert done.code == 0, done.err[-3000:]
            results.append(done)
        return results

    return both


@pytest.mark.parametrize("part", range(4))
def test_random_kernels_give_the_same_bits(run, part):
    seeds = range(8 * part, 8 * part + 8)
    sources = [(HEADER + kernel_of(seed), f"kernel_{seed}") for seed in seeds]
    loops, stacks = run(sources, GROUPS)
    assert loops.out.count("\n") == len(sources) * len(GROUPS)
    for of_loops, of_stacks in zip(loops.out.splitlines(), stacks.out.splitlines()):
        name = " ".join(of_loops.split()[:2])
        assert of_loops == of_stacks, f"{name}\n{dict((name, source) for source, name in sources)[name.split()[0]]}"
    refused = re.findall(r"each thread gets a stack: (.*)", loops.err)
    assert len(refused) <= 1, refused  # loops are the rule


def test_groups_of_all_shapes_give_the_same_bits(python):
    source = (
        HEADER
        + """
        kernel void places(device float *out, device const float *in, device const uint *numbers, uint3 p [[thread_position_in_grid]],
                           uint3 size [[threads_per_grid]], uint3 l [[thread_position_in_threadgroup]], uint3 n [[threads_per_threadgroup]],
                           uint k [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]], uint s [[simdgroup_index_in_threadgroup]]) {
          threadgroup float shared[1024];
          uint i = (p.z * size.y + p.y) * size.x + p.x;
          shared[k] = in[i];
          threadgroup_barrier(mem_flags::mem_threadgroup);
          uint threads = n.x * n.y * n.z;
          out[3 * i] = shared[threads - 1 - k] + float(l.x + 2 * l.y + 3 * l.z);
          out[3 * i + 1] = simd_sum(float(lane + s)) + float(numbers[i] % 7);
          out[3 * i + 2] = float(n.x * 10000 + n.y * 100 + n.z);
        }
        """
    )
    program = f"""
        import torch
        library = torch.mps.compile_shader({source!r})
        for grid, group in (((64, 1, 1), (32, 1, 1)), ((1, 70, 1), (1, 64, 1)), ((1, 1, 40), (1, 1, 40)), ((48, 20, 1), (16, 16, 1)), ((33, 5, 3), (32, 4, 2)),
                            ((1, 1000, 1), (1, 1000, 1)), ((8, 130, 1), (8, 128, 1)), ((13, 7, 5), (5, 3, 4)), ((100, 1, 9), (100, 1, 9))):
            count = grid[0] * grid[1] * grid[2]
            out = torch.zeros(3 * count, device="mps")
            library.places(out, torch.arange(count, device="mps").float(), torch.arange(count, device="mps", dtype=torch.int32), threads=grid, group_size=group)
            print(grid, out.cpu().tolist())
        """
    results = [python(program, OPENMPS_SHADER_LANES=lanes, timeout=300) for lanes in ("1", "0")]
    assert all(done.code == 0 for done in results), results[0].err + results[1].err
    assert results[0].out == results[1].out and len(results[0].out.splitlines()) == 9
