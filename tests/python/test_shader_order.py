# SPDX-License-Identifier: BSD-3-Clause
"""Within one thread, loads and stores happen in the order in which they are written, whatever the compiler makes of many threads.

Threads are run side by side in vectors; nothing may then be moved past a store that could go to the same place. Expected values come
from the same statements, done one after another by PyTorch on the CPU: a statement is done for all threads before the next one.
"""

import random

import pytest
import torch

THREADS = 1027  # full vectors and a rest

TYPES = {
    "bool": torch.bool,
    "char": torch.int8,
    "uchar": torch.uint8,
    "short": torch.int16,
    "ushort": torch.uint16,
    "int": torch.int32,
    "uint": torch.uint32,
    "long": torch.int64,
    "ulong": torch.uint64,
    "half": torch.float16,
    "bfloat": torch.bfloat16,
    "float": torch.float32,
}

# Of each: statements on `own`, the thread's own memory of the stated size; `k` and `j` are indices that differ by thread.
PATTERNS = {
    "a store between neighbouring stores": (2, "own[0] = v[0]; own[k] = v[1]; own[1] = v[2];"),
    "a store between four neighbouring stores": (4, "own[0] = v[0]; own[1] = v[1]; own[k] = v[2]; own[2] = v[3]; own[3] = v[4];"),
    "neighbouring stores backwards": (3, "own[2] = v[0]; own[k] = v[1]; own[1] = v[2]; own[j] = v[3]; own[0] = v[4];"),
    "a load between neighbouring stores": (3, "own[0] = v[0]; v[3] = own[k]; own[1] = v[1]; own[2] = v[3];"),
    "a store between neighbouring loads": (3, "v[2] = own[0]; own[k] = v[0]; v[3] = own[1]; own[2] = v[2]; own[1] = v[3];"),
    "stores between three neighbouring loads": (4, "v[2] = own[0]; own[k] = v[0]; v[3] = own[1]; own[j] = v[1]; v[4] = own[2]; own[3] = v[4]; own[0] = v[3];"),
    "exchanges": (4, "v[0] = own[k]; v[1] = own[j]; own[k] = v[1]; own[j] = v[0]; v[2] = own[0]; v[3] = own[1]; own[0] = v[3]; own[1] = v[2];"),
    "a store twice": (2, "own[0] = v[0]; own[k] = v[1]; own[0] = v[2]; own[1] = v[3];"),
}


def statements_of(text):
    return [tuple(part.strip() for part in statement.split("=")) for statement in text.split(";") if statement.strip()]


def kernel_of(name, type_name, size, statements, pointer, barrier=False):
    """`barrier`: there is one in front of the statements, so that they are in a loop over the lanes of a simdgroup."""
    body = " ".join(f"{left} = {right};" for left, right in statements)
    if barrier:
        body = "simdgroup_barrier(metal::mem_flags::mem_device); " + body
    own = {"array": f"device T *own = memory + i * {size};", "fields": "device T *own = memory[i].at;"}[pointer]
    parameter = {"array": "device T *memory", "fields": "device Own *memory"}[pointer]
    return (
        f"namespace {name}_types {{ typedef {type_name} T; struct Own {{ T at[{size}]; }}; }}\n"
        f"kernel void {name}({parameter.replace('T ', f'{name}_types::T ').replace('Own', f'{name}_types::Own')}, device const {type_name} *values, "
        f"device const int *places, uint i [[thread_position_in_grid]]) {{\n"
        f"  using namespace {name}_types;\n"
        f"  {own} int k = places[2 * i], j = places[2 * i + 1]; T v[5];\n"
        f"  for (int c = 0; c < 5; c++) v[c] = values[i * 5 + c];\n  {body}\n}}\n"
    )


def expected_of(memory, values, places, statements):
    """`memory` (threads, size), `values` (threads, 5) and `places` (threads, 2), done in the order of `statements`."""
    memory, values = memory.clone(), values.clone()
    rows = torch.arange(len(memory))
    columns = {"k": places[:, 0].long(), "j": places[:, 1].long()}

    def place_of(text):
        array, index = text.rstrip("]").split("[")
        return (memory if array == "own" else values), columns.get(index, index)

    for left, right in statements:
        (to, to_index), (of, of_index) = place_of(left), place_of(right)
        read = of[rows, of_index if isinstance(of_index, torch.Tensor) else int(of_index)]
        to[rows, to_index if isinstance(to_index, torch.Tensor) else int(to_index)] = read
    return memory


def bits(tensor):
    return tensor.view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()])


def draw(dtype, shape, seed):
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(0, 2 if dtype == torch.bool else 127, shape, generator=generator)
    return bits(drawn.to(dtype))


def check(library, name, dtype, size, statements):
    memory, values = draw(dtype, (THREADS, size), 1), draw(dtype, (THREADS, 5), 2)
    places = torch.randint(0, size, (THREADS, 2), generator=torch.Generator().manual_seed(3), dtype=torch.int32)
    on_mps = memory.view(dtype).to("mps")
    getattr(library, name)(on_mps, values.view(dtype).to("mps"), places.to("mps"), threads=THREADS)
    expected = expected_of(memory, values, places, statements)
    wrong = (bits(on_mps.cpu()) != expected).any(1).sum().item()
    assert wrong == 0, f"{wrong} of {THREADS} threads: {statements}"


@pytest.mark.parametrize("type_name", TYPES)
@pytest.mark.parametrize("pointer", ["array", "fields"])
def test_stores_and_loads_keep_their_order(type_name, pointer):
    cases = {f"kernel_{number}": (size, statements_of(text)) for number, (size, text) in enumerate(PATTERNS.values())}
    library = torch.mps.compile_shader("".join(kernel_of(name, type_name, *case, pointer) for name, case in cases.items()))
    for name, case in cases.items():
        check(library, name, TYPES[type_name], *case)


@pytest.mark.parametrize("type_name", ["char", "half", "float", "long"])
def test_stores_and_loads_keep_their_order_behind_a_barrier(type_name):
    cases = {f"kernel_{number}": (size, statements_of(text)) for number, (size, text) in enumerate(PATTERNS.values())}
    library = torch.mps.compile_shader("".join(kernel_of(name, type_name, *case, "array", barrier=True) for name, case in cases.items()))
    for name, case in cases.items():
        check(library, name, TYPES[type_name], *case)


@pytest.mark.parametrize("barrier", [False, True], ids=["without a barrier", "behind a barrier"])
@pytest.mark.parametrize("seed", range(4))
def test_random_statements_keep_their_order(seed, barrier):
    source = random.Random(seed)
    cases = {}
    for number in range(16):
        size = source.choice([2, 3, 4, 8])
        statements = []
        for _ in range(source.randint(4, 14)):
            own, value = f"own[{source.choice([*range(size), 'k', 'j'])}]", f"v[{source.randrange(5)}]"
            statements.append((own, value) if source.random() < 0.6 else (value, own))
        cases[f"kernel_{number}"] = (source.choice(["char", "half", "int", "float", "long"]), size, statements)
    library = torch.mps.compile_shader("".join(kernel_of(name, *case, source.choice(["array", "fields"]), barrier) for name, case in cases.items()))
    for name, (type_name, size, statements) in cases.items():
        check(library, name, TYPES[type_name], size, statements)


def test_two_names_of_one_memory_keep_their_order():
    library = torch.mps.compile_shader(
        """
        kernel void f(device float *a, device float *b, uint i [[thread_position_in_grid]]) {
          a[2 * i] = i; b[2 * i] = 1; b[2 * i + 1] = 2; a[2 * i + 1] = i;
        }
        struct Complex { float real, imaginary; };
        kernel void g(device Complex *a, device Complex *b, uint i [[thread_position_in_grid]]) {
          a[i].real = i; b[i].real = b[i].imaginary + 1; a[i].imaginary = b[i].real + 1;
        }
        """
    )
    x = torch.zeros(THREADS, 2, device="mps")
    library.f(x, x, threads=THREADS)
    assert torch.equal(x.cpu(), torch.stack([torch.ones(THREADS), torch.arange(float(THREADS))], 1))
    x = torch.arange(2.0 * THREADS, device="mps").view(THREADS, 2)
    library.g(x, x, threads=THREADS)
    odd = torch.arange(2.0 * THREADS).view(THREADS, 2)[:, 1]
    assert torch.equal(x.cpu(), torch.stack([odd + 1, odd + 2], 1))


def test_a_promised_loop_keeps_the_order_within_a_round():
    """A loop in a kernel that is promised to be parallel: its rounds are, the statements of one round are not."""
    library = torch.mps.compile_shader(
        """
        kernel void f(device int *memory, device const int *places, constant int &rounds, uint i [[thread_position_in_grid]]) {
          memory += i * rounds * 2; places += i * rounds;
          #pragma clang loop vectorize(assume_safety)
          for (int r = 0; r < rounds; r++) {
            memory[2 * r] = 1; memory[2 * r + places[r]] = 2; memory[2 * r + 1] = 3;
          }
        }
        """
    )
    places = torch.randint(0, 2, (8, 515), generator=torch.Generator().manual_seed(0), dtype=torch.int32)
    memory = torch.zeros(8, 515, 2, dtype=torch.int32, device="mps")
    library.f(memory, places.to("mps"), 515, threads=8)
    assert torch.equal(memory.cpu()[..., 0], torch.where(places == 0, 2, 1).int())
    assert torch.equal(memory.cpu()[..., 1], torch.full((8, 515), 3, dtype=torch.int32))
