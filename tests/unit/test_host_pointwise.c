/* SPDX-License-Identifier: BSD-3-Clause
 *
 * test_host_pointwise: random programs through the host driver's block interpreter, against a naive evaluator that takes one element
 * after the other. Ranks 0 to 5; broadcast, transposed, flipped and gapped operands; all dtypes; chains; in place; several threads.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/time.h"
#include "host_formulas.h"
#include "test.h"

#define GUARD 64

/* ---- random numbers ---- */
static uint64_t random_state = 1;
static uint32_t random_bits(void) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(random_state >> 33);
}
static unsigned below(unsigned n) { return random_bits() % n; }
static bool chance(unsigned percent) { return below(100) < percent; }

/* ---- memory of one operand, three times: before, by the driver, by the evaluator ---- */
typedef struct memory {
  unsigned char *before, *actual, *expected;
  size_t bytes; /* with guards */
  size_t first; /* offset of the element at index 0 */
} memory;

typedef struct test_case {
  mps_program program;
  mps_operand operands[MPS_PROGRAM_MAX_OPERANDS];
  mps_instruction instructions[MPS_PROGRAM_MAX_INSTRUCTIONS];
  const formula *formulas[MPS_PROGRAM_MAX_INSTRUCTIONS]; /* NULL: move */
  memory memories[MPS_PROGRAM_MAX_OPERANDS];
  unsigned owner[MPS_PROGRAM_MAX_OPERANDS]; /* operand whose memory this one uses */
  bool written[MPS_PROGRAM_MAX_OPERANDS];
  bool register_set[MPS_PROGRAM_MAX_REGISTERS];
  mps_compute register_type[MPS_PROGRAM_MAX_REGISTERS];
} test_case;

static void choose_shape(test_case *t) {
  mps_program *p = &t->program;
  unsigned style = below(6);
  p->rank = style == 0 ? below(2) : style == 1 ? 2 : below(6);
  uint64_t left = chance(10) ? 60000 : 6000;
  p->element_count = 1;
  for (uint32_t d = 0; d < p->rank; d++) {
    unsigned most = style == 1 ? 200 : chance(25) ? 3000 : 9;
    uint64_t size = 2 + below(most);
    if (size > left) size = left < 2 ? 2 : left;
    left /= size;
    p->sizes[d] = (int64_t)size;
    p->element_count *= size;
  }
  if (p->rank == 0) return;
  if (chance(50)) { /* the long dimension at the end */
    int64_t last = p->sizes[p->rank - 1];
    p->sizes[p->rank - 1] = p->sizes[0];
    p->sizes[0] = last;
  }
}

static void fill_random(mps_dtype dtype, unsigned char *at) {
  uint64_t bits = (uint64_t)random_bits() << 32 ^ random_bits();
  if (mps_dtype_is_floating(dtype) || mps_dtype_is_complex(dtype)) {
    static const float special[] = {0.0f, -0.0f, 1.0f, INFINITY, -INFINITY, NAN, 1e-40f, 65504.0f, 1e-7f, 3e9f};
    for (int part = 0; part < 2; part++) {
      float value = chance(8) ? special[below(10)] : ((float)random_bits() / 1e9f - 1.0f) * 8;
      uint16_t narrow = dtype == MPS_DTYPE_BF16 ? float_to_bfloat(value) : float_to_half(value);
      bool is_wide = dtype == MPS_DTYPE_F32 || dtype == MPS_DTYPE_C64;
      memcpy((char *)&bits + part * (is_wide ? 4 : 2), is_wide ? (void *)&value : (void *)&narrow, is_wide ? 4 : 2);
    }
  } else if (dtype == MPS_DTYPE_BOOL) {
    bits = chance(80) ? bits & 1 : bits;
  } else if (chance(50)) {
    bits = (uint64_t)(int64_t)((int)below(200) - 100);
  }
  memcpy(at, &bits, mps_dtype_size(dtype));
}

static void make_memory(memory *m, mps_dtype dtype, size_t bytes) {
  m->bytes = bytes + 2 * GUARD;
  m->before = malloc(m->bytes);
  m->actual = malloc(m->bytes);
  m->expected = malloc(m->bytes);
  memset(m->before, 0xa5, m->bytes);
  for (size_t i = GUARD; i < GUARD + bytes; i += mps_dtype_size(dtype)) fill_random(dtype, m->before + i);
  memcpy(m->actual, m->before, m->bytes);
  memcpy(m->expected, m->before, m->bytes);
}

static unsigned add_operand(test_case *t, mps_dtype dtype, mps_compute compute, bool write) {
  unsigned index = t->program.operand_count++;
  mps_operand *o = &t->operands[index];
  memset(o, 0, sizeof *o);
  o->dtype = (uint8_t)dtype;
  o->compute = (uint8_t)compute;
  o->access = write ? 2 : 1;
  t->owner[index] = index;
  t->written[index] = write;
  if (!write && chance(15)) {
    o->constant = 1;
    fill_random(dtype_of(compute), (unsigned char *)&o->value);
    if (compute == MPS_COMPUTE_BOOL) o->value &= 1;
    o->dtype = (uint8_t)dtype_of(compute);
    return index;
  }
  if (chance(10) && (compute == MPS_COMPUTE_C64 || compute == MPS_COMPUTE_F32)) o->flags = MPS_TENSOR_NEGATIVE;
  if (chance(20) && compute == MPS_COMPUTE_C64 && mps_dtype_is_complex(dtype)) o->flags |= MPS_TENSOR_CONJUGATE;
  uint32_t rank = t->program.rank;
  uint8_t order[MPS_MAX_RANK];
  for (uint32_t d = 0; d < rank; d++) order[d] = (uint8_t)d;
  if (chance(50)) {
    for (uint32_t d = rank; d > 1; d--) {
      uint32_t e = below(d);
      uint8_t swap = order[d - 1];
      order[d - 1] = order[e], order[e] = swap;
    }
  }
  size_t element = mps_dtype_size(dtype);
  int64_t stride = (int64_t)element * (chance(15) ? 2 : 1), first = 0, last = 0;
  bool broadcast = !write && chance(35);
  for (uint32_t i = rank; i-- > 0;) {
    uint32_t d = order[i];
    int64_t size = t->program.sizes[d];
    if (broadcast && chance(50)) {
      o->strides[d] = 0;
      continue;
    }
    bool flip = chance(10);
    o->strides[d] = flip ? -stride : stride;
    if (flip) first += stride * (size - 1);
    last += stride * (size - 1);
    stride *= size + (chance(15) ? 1 : 0);
  }
  memory *m = &t->memories[index];
  make_memory(m, dtype, (size_t)last + element);
  m->first = GUARD + (size_t)first;
  o->address = (uint64_t)(uintptr_t)(m->actual + m->first);
  return index;
}

/* A dtype that converts to and from the computing type; now and then a strange one. */
static mps_dtype random_dtype(mps_compute compute) {
  static const mps_dtype usual[MPS_COMPUTE_COUNT][5] = {
      {MPS_DTYPE_F32, MPS_DTYPE_F16, MPS_DTYPE_BF16, MPS_DTYPE_F32, MPS_DTYPE_F32},
      {MPS_DTYPE_I32, MPS_DTYPE_U8, MPS_DTYPE_I8, MPS_DTYPE_I16, MPS_DTYPE_U16},
      {MPS_DTYPE_I64, MPS_DTYPE_I64, MPS_DTYPE_U32, MPS_DTYPE_I64, MPS_DTYPE_I32},
      {MPS_DTYPE_U64, MPS_DTYPE_U64, MPS_DTYPE_U64, MPS_DTYPE_U64, MPS_DTYPE_U64},
      {MPS_DTYPE_C64, MPS_DTYPE_C64, MPS_DTYPE_C32, MPS_DTYPE_C64, MPS_DTYPE_C64},
      {MPS_DTYPE_BOOL, MPS_DTYPE_BOOL, MPS_DTYPE_BOOL, MPS_DTYPE_BOOL, MPS_DTYPE_BOOL}};
  return chance(10) ? (mps_dtype)below(MPS_DTYPE_COUNT) : usual[compute][below(5)];
}

/* What a result may be rounded to: a dtype of its own kind. */
static bool rounds_to(mps_compute compute, mps_dtype dtype) {
  if (compute == MPS_COMPUTE_F32) return mps_dtype_is_floating(dtype);
  if (compute == MPS_COMPUTE_C64) return mps_dtype_is_complex(dtype);
  return compute == MPS_COMPUTE_BOOL ? dtype == MPS_DTYPE_BOOL : mps_dtype_is_integral(dtype);
}

/* A source of the wanted type: a register, an operand read before, one written before, or a new one. */
static unsigned choose_source(test_case *t, mps_compute type) {
  unsigned found[64], count = 0;
  for (unsigned r = 0; r < MPS_PROGRAM_MAX_REGISTERS; r++) {
    if (t->register_set[r] && t->register_type[r] == type) found[count++] = MPS_PROGRAM_REGISTER + r;
  }
  for (unsigned i = 0; i < t->program.operand_count; i++) {
    if (t->operands[i].compute == type) found[count++] = i;
  }
  if (count > 0 && (chance(55) || t->program.operand_count > MPS_PROGRAM_MAX_OPERANDS - 4)) return found[below(count)];
  if (t->program.operand_count >= MPS_PROGRAM_MAX_OPERANDS - 2) return 255;
  return add_operand(t, random_dtype(type), type, false);
}

/* An operand that names the memory of one that is read: in place. 255 when there is none. */
static unsigned alias(test_case *t, mps_compute type) {
  for (int attempt = 0; attempt < 6; attempt++) {
    unsigned i = below(t->program.operand_count);
    const mps_operand *o = &t->operands[i];
    if (o->constant || o->compute != type) continue;
    bool overlaps = false;
    for (uint32_t d = 0; d < t->program.rank; d++) overlaps |= o->strides[d] == 0;
    if (overlaps) continue;
    unsigned index = t->program.operand_count++;
    t->operands[index] = *o;
    t->operands[index].access = 2;
    t->owner[index] = t->owner[i];
    t->written[index] = true;
    memset(&t->memories[index], 0, sizeof t->memories[index]);
    return index;
  }
  return 255;
}

static unsigned choose_destination(test_case *t, mps_compute type, bool last) {
  if (!last && chance(60)) {
    unsigned r = below(MPS_PROGRAM_MAX_REGISTERS);
    t->register_set[r] = true;
    t->register_type[r] = type;
    if (r >= t->program.register_count) t->program.register_count = r + 1;
    return MPS_PROGRAM_REGISTER + r;
  }
  if (t->program.operand_count > 0 && t->program.operand_count < MPS_PROGRAM_MAX_OPERANDS && chance(40)) {
    unsigned index = alias(t, type);
    if (index != 255) return index;
  }
  if (t->program.operand_count >= MPS_PROGRAM_MAX_OPERANDS) return 255;
  return add_operand(t, random_dtype(type), type, true);
}

static bool add_instruction(test_case *t, bool last) {
  mps_instruction *i = &t->instructions[t->program.instruction_count];
  memset(i, 0, sizeof *i);
  const formula *f = chance(15) ? NULL : &formulas[below(FORMULA_COUNT)];
  mps_compute type = f ? f->result : (mps_compute)below(MPS_COMPUTE_COUNT);
  i->source_count = (uint8_t)(f ? f->source_count : 1);
  i->result = (uint8_t)type;
  i->function = f ? &f->function : NULL;
  for (unsigned k = 0; k < i->source_count; k++) {
    unsigned source = choose_source(t, f ? f->sources[k] : type);
    if (source == 255) return false;
    i->sources[k] = (uint8_t)source;
  }
  fill_random(dtype_of(type), (unsigned char *)&i->parameters[0]);
  unsigned destination = choose_destination(t, type, last);
  if (destination == 255) return false;
  i->destination = (uint8_t)destination;
  mps_dtype wanted = destination < MPS_PROGRAM_REGISTER && chance(80) ? (mps_dtype)t->operands[destination].dtype : random_dtype(type);
  i->round = (uint8_t)(rounds_to(type, wanted) ? wanted : dtype_of(type));
  t->formulas[t->program.instruction_count++] = f;
  return true;
}

static void make_case(test_case *t) {
  memset(t, 0, sizeof *t);
  choose_shape(t);
  unsigned wanted = chance(40) ? 1 : 1 + below(10);
  for (unsigned i = 0; i < wanted; i++) {
    if (!add_instruction(t, i + 1 == wanted)) break;
  }
  t->program.operands = t->operands;
  t->program.instructions = t->instructions;
}

static void free_case(test_case *t) {
  for (unsigned i = 0; i < MPS_PROGRAM_MAX_OPERANDS; i++) {
    free(t->memories[i].before);
    free(t->memories[i].actual);
    free(t->memories[i].expected);
  }
}

/* ---- the evaluator ---- */
static void apply_flags(const mps_operand *o, mps_compute compute, void *value) {
  const void *source[1] = {value};
  if ((o->flags & MPS_TENSOR_CONJUGATE) && compute == MPS_COMPUTE_C64) conjugate_c64(value, source, NULL);
  if (!(o->flags & MPS_TENSOR_NEGATIVE)) return;
  if (compute == MPS_COMPUTE_C64) negate_c64(value, source, NULL);
  if (compute == MPS_COMPUTE_F32) negate_f32(value, source, NULL);
}

static size_t offset_of(const test_case *t, unsigned operand, uint64_t element) {
  const mps_operand *o = &t->operands[operand];
  int64_t offset = (int64_t)((const unsigned char *)(uintptr_t)o->address - t->memories[t->owner[operand]].actual);
  for (uint32_t d = t->program.rank; d-- > 0;) {
    offset += (int64_t)(element % (uint64_t)t->program.sizes[d]) * o->strides[d];
    element /= (uint64_t)t->program.sizes[d];
  }
  return (size_t)offset;
}

static bool is_copy(const test_case *t) {
  if (t->program.instruction_count != 1 || t->formulas[0]) return false;
  const mps_instruction *i = &t->instructions[0];
  if (i->sources[0] >= MPS_PROGRAM_REGISTER) return false;
  const mps_operand *a = &t->operands[i->sources[0]], *b = &t->operands[i->destination];
  bool held = rounds_to((mps_compute)i->result, (mps_dtype)a->dtype) && a->dtype != MPS_DTYPE_U64;
  if (i->result == MPS_COMPUTE_U64) held = a->dtype == MPS_DTYPE_U64;
  if (i->result == MPS_COMPUTE_I32) held = held && a->dtype != MPS_DTYPE_U32 && a->dtype != MPS_DTYPE_I64;
  return held && !a->constant && a->dtype == b->dtype && a->flags == b->flags && (i->round == b->dtype || i->round == dtype_of((mps_compute)i->result));
}

static void evaluate(test_case *t, uint64_t element) {
  uint64_t values[MPS_PROGRAM_MAX_OPERANDS] = {0}, registers[MPS_PROGRAM_MAX_REGISTERS] = {0};
  bool set[MPS_PROGRAM_MAX_OPERANDS] = {0};
  if (is_copy(t)) {
    unsigned from = t->instructions[0].sources[0], to = t->instructions[0].destination;
    memcpy(t->memories[t->owner[to]].expected + offset_of(t, to, element),
           t->memories[t->owner[from]].before + offset_of(t, from, element), mps_dtype_size((mps_dtype)t->operands[to].dtype));
    return;
  }
  for (uint32_t n = 0; n < t->program.instruction_count; n++) {
    const mps_instruction *i = &t->instructions[n];
    const void *sources[MPS_PROGRAM_MAX_SOURCES] = {0};
    uint64_t loaded[MPS_PROGRAM_MAX_SOURCES];
    for (unsigned k = 0; k < i->source_count; k++) {
      unsigned s = i->sources[k];
      sources[k] = &loaded[k];
      if (s >= MPS_PROGRAM_REGISTER) {
        loaded[k] = registers[s - MPS_PROGRAM_REGISTER];
      } else if (set[s]) {
        loaded[k] = values[s];
      } else if (t->operands[s].constant) {
        loaded[k] = t->operands[s].value;
      } else {
        const mps_operand *o = &t->operands[s];
        convert_element(dtype_of((mps_compute)o->compute), (mps_dtype)o->dtype, &loaded[k],
                        t->memories[t->owner[s]].before + offset_of(t, s, element));
        apply_flags(o, (mps_compute)o->compute, &loaded[k]);
      }
    }
    uint64_t result = 0;
    mps_dtype natural = dtype_of((mps_compute)i->result);
    if (t->formulas[n]) {
      t->formulas[n]->element(&result, sources, i->parameters);
    } else {
      result = loaded[0];
    }
    if (i->round != natural) {
      uint64_t narrow;
      convert_element((mps_dtype)i->round, natural, &narrow, &result);
      convert_element(natural, (mps_dtype)i->round, &result, &narrow);
    }
    unsigned d = i->destination;
    if (d >= MPS_PROGRAM_REGISTER) {
      registers[d - MPS_PROGRAM_REGISTER] = result;
      continue;
    }
    values[d] = result;
    set[d] = true;
    apply_flags(&t->operands[d], (mps_compute)i->result, &result);
    convert_element((mps_dtype)t->operands[d].dtype, natural, t->memories[t->owner[d]].expected + offset_of(t, d, element), &result);
  }
}

/* Which NaN is no matter. */
static void make_nans_equal(mps_dtype dtype, unsigned char *at) {
  wide w = read_dtype(dtype, at);
  if (w.is_float && (isnan(w.real) || isnan(w.imaginary))) memset(at, 0xff, mps_dtype_size(dtype));
}

static bool same(test_case *t) {
  for (unsigned k = 0; k < t->program.operand_count; k++) {
    if (!t->written[k]) continue;
    memory *m = &t->memories[t->owner[k]];
    for (uint64_t e = 0; e < t->program.element_count; e++) {
      make_nans_equal((mps_dtype)t->operands[k].dtype, m->actual + offset_of(t, k, e));
      make_nans_equal((mps_dtype)t->operands[k].dtype, m->expected + offset_of(t, k, e));
    }
  }
  for (unsigned k = 0; k < t->program.operand_count; k++) {
    const memory *m = &t->memories[k];
    if (!m->bytes || !memcmp(m->actual, m->expected, m->bytes)) continue;
    size_t i = 0;
    while (m->actual[i] == m->expected[i]) i++;
    fprintf(stderr, "operand %u differs at byte %zu of %zu: %02x, expected %02x\n", k, i - GUARD, m->bytes - 2 * GUARD, m->actual[i],
            m->expected[i]);
    return false;
  }
  return true;
}

static void print_case(const test_case *t, unsigned seed) {
  fprintf(stderr, "seed %u: rank %u:", seed, t->program.rank);
  for (uint32_t d = 0; d < t->program.rank; d++) fprintf(stderr, " %lld", (long long)t->program.sizes[d]);
  fprintf(stderr, "\n");
  for (unsigned k = 0; k < t->program.operand_count; k++) {
    const mps_operand *o = &t->operands[k];
    fprintf(stderr, "  operand %u (memory of %u) %s%s compute %u flags %u%s, strides", k, t->owner[k], t->written[k] ? "out " : "",
            mps_dtype_name((mps_dtype)o->dtype), o->compute, o->flags, o->constant ? " constant" : "");
    for (uint32_t d = 0; d < t->program.rank; d++) fprintf(stderr, " %lld", (long long)o->strides[d]);
    fprintf(stderr, "\n");
  }
  for (unsigned n = 0; n < t->program.instruction_count; n++) {
    const mps_instruction *i = &t->instructions[n];
    fprintf(stderr, "  %u = %s(", i->destination, t->formulas[n] ? t->formulas[n]->name : "move");
    for (unsigned k = 0; k < i->source_count; k++) fprintf(stderr, " %u", i->sources[k]);
    fprintf(stderr, ") round %s\n", mps_dtype_name((mps_dtype)i->round));
  }
}

/* ---- cases ---- */
static mps_host_conversions conversions;
static mps_host_plan plan; /* reused dirty, as a queue does */

static void random_programs(void) {
  const char *count_text = getenv("OPENMPS_TEST_PROGRAMS");
  const char *first_text = getenv("OPENMPS_TEST_SEED");
  unsigned count = count_text ? (unsigned)atoi(count_text) : 500, first = first_text ? (unsigned)atoi(first_text) : 1;
  mps_host_workers *workers;
  mps_host_region *region;
  CHECK_OK(mps_host_workers_create(3, &workers));
  CHECK_OK(mps_host_region_open(workers, &region));
  unsigned tiled = 0, copies = 0;
  for (unsigned seed = first; seed < first + count && test_failures < 3; seed++) {
    random_state = seed * 7919u;
    test_case t;
    make_case(&t);
    double cost = chance(50) ? 1e6 : 0; /* much: cut into many chunks */
    CHECK_OK(mps_host_pointwise_run(&plan, &t.program, &conversions, region, cost));
    for (uint64_t e = 0; e < t.program.element_count; e++) evaluate(&t, e);
    if (!same(&t)) {
      CHECK(!"the driver and the evaluator disagree");
      print_case(&t, seed);
    }
    tiled += plan.tiled;
    copies += plan.copies;
    free_case(&t);
  }
  printf("     %u programs, %u with tiles, %u copies\n", count, tiled, copies);
  mps_host_region_close(region);
  mps_host_workers_destroy(workers);
}

/* A program of one binary formula over dense f32. */
typedef struct simple {
  mps_program program;
  mps_operand operands[3];
  mps_instruction instruction;
} simple;

static void make_simple(simple *s, const char *name, uint64_t count, void *a, void *b, void *out) {
  memset(s, 0, sizeof *s);
  void *addresses[3] = {a, b, out};
  for (int i = 0; i < 3; i++) {
    s->operands[i] = (mps_operand){.address = (uint64_t)(uintptr_t)addresses[i], .dtype = MPS_DTYPE_F32, .compute = MPS_COMPUTE_F32,
                                   .access = i == 2 ? 2 : 1, .strides = {4}};
  }
  s->instruction = (mps_instruction){.function = formula_function(name), .source_count = 2, .result = MPS_COMPUTE_F32,
                                     .round = MPS_DTYPE_F32, .destination = 2, .sources = {0, 1}};
  s->program = (mps_program){.operand_count = 3, .instruction_count = 1, .rank = 1, .element_count = count,
                             .sizes = {(int64_t)count}, .operands = s->operands, .instructions = &s->instruction};
}

static void no_elements(void) {
  simple s;
  make_simple(&s, "add_f32", 0, NULL, NULL, NULL);
  CHECK_OK(mps_host_pointwise_run(&plan, &s.program, &conversions, NULL, 0));
}

static void missing_kernels_are_told(void) {
  static mps_host_conversions none;
  simple s;
  float a = 1, b = 2, out = 0;
  make_simple(&s, "add_f32", 1, &a, &b, &out);
  s.operands[0].dtype = MPS_DTYPE_F16;
  CHECK_STATUS(mps_host_plan_make(&plan, &s.program, &none), MPS_STATUS_INTERNAL_ERROR);
  CHECK_STRING(mps_error_message(), "the kernel library has no load_f16_f32");
}

/* A piece far behind 2^32 elements; only the memory of that piece exists. The second operand has a gap behind each element. */
static void more_elements_than_32_bits_count(void) {
  enum { COUNT = 3000 };
  const uint64_t first = ((uint64_t)1 << 32) + 5;
  static float a[COUNT], b[2 * COUNT], out[COUNT + 1];
  static _Alignas(64) unsigned char scratch[MPS_HOST_SCRATCH_BYTES];
  for (int i = 0; i < COUNT; i++) a[i] = (float)i, b[2 * i] = (float)(3 * i), b[2 * i + 1] = 1e9f;
  simple s;
  make_simple(&s, "add_f32", (uint64_t)1 << 33, a, b, out);
  s.operands[1].strides[0] = 8;
  for (int i = 0; i < 3; i++) s.operands[i].address -= first * (uint64_t)s.operands[i].strides[0];
  CHECK_OK(mps_host_plan_make(&plan, &s.program, &conversions));
  mps_host_plan_run(&plan, first, first + COUNT, scratch);
  for (int i = 0; i < COUNT; i++) {
    if (out[i] != (float)(4 * i)) CHECK_INT(out[i], 4 * i);
  }
  CHECK(out[COUNT] == 0);
}

int main(void) {
  fill_conversions(&conversions);
  RUN(no_elements);
  RUN(missing_kernels_are_told);
  RUN(more_elements_than_32_bits_count);
  RUN(random_programs);
  return test_end();
}
