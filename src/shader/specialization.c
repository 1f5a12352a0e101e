/* SPDX-License-Identifier: BSD-3-Clause
 *
 * specialization: types and values of function constants.
 */
#include "shader/specialization.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/status.h"

/* By mps_constant_type. */
static const struct {
  const char *name, *width; /* `width`: Metal's other name, with the number of bits */
  uint8_t bytes;
  bool real; /* its bits are no integer */
} types[] = {
  {"bool", NULL, 1, false},          {"char", "int8_t", 1, false},  {"uchar", "uint8_t", 1, false},   {"short", "int16_t", 2, false},
  {"ushort", "uint16_t", 2, false},  {"int", "int32_t", 4, false},  {"uint", "uint32_t", 4, false},   {"long", "int64_t", 8, false},
  {"ulong", "uint64_t", 8, false},   {"half", NULL, 2, true},       {"bfloat", NULL, 2, true},        {"float", NULL, 4, true},
};
#define TYPE_COUNT (sizeof types / sizeof *types)

static uint32_t components_of(const mps_function_constant *c) { return c->components ? c->components : 1; }

void mps_constant_describe(const mps_function_constant *c, char out[MPS_CONSTANT_TEXT]) {
  if (c->name) snprintf(out, MPS_CONSTANT_TEXT, "'%.200s'", c->name);
  else snprintf(out, MPS_CONSTANT_TEXT, "with index %u", c->index);
}

mps_status mps_specialization_check(const mps_specialization *s) {
  if (s->count > 0 && !s->constants) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "%u function constants are given as NULL", s->count);
  for (uint32_t i = 0; i < s->count; i++) {
    const mps_function_constant *c = &s->constants[i];
    char which[MPS_CONSTANT_TEXT];
    mps_constant_describe(c, which);
    if ((size_t)c->type >= TYPE_COUNT)
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "the function constant %s has type %d; types are those of mps_constant_type, 0 to %zu",
                           which, (int)c->type, TYPE_COUNT - 1);
    if (c->components > 4)
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "the function constant %s has %u components; vectors have 2 to 4, a scalar 1", which,
                           c->components);
    if (!c->value) return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "the value of the function constant %s is NULL", which);
    if (c->name && !c->name[0])
      return mps_error_set(MPS_STATUS_INVALID_ARGUMENT, "the name of value number %u of the function constants is empty; NULL means that its index counts", i);
  }
  return MPS_STATUS_OK;
}

char *mps_specialization_key(const mps_specialization *s) {
  size_t size = strlen(s->function) + 32;
  for (uint32_t i = 0; i < s->count; i++) size += (s->constants[i].name ? strlen(s->constants[i].name) : 0) + 160;
  char *text = malloc(size), *p = text;
  if (!text) return NULL;
  p += sprintf(p, "%zu:%s", strlen(s->function), s->function);
  for (uint32_t i = 0; i < s->count; i++) {
    const mps_function_constant *c = &s->constants[i];
    if (c->name) p += sprintf(p, " %zu:%s", strlen(c->name), c->name);
    else p += sprintf(p, " #%u", c->index);
    p += sprintf(p, " %d %u ", (int)c->type, components_of(c));
    const unsigned char *bytes = c->value;
    for (uint32_t k = 0; k < components_of(c) * types[c->type].bytes; k++) p += sprintf(p, "%02x", bytes[k]);
  }
  return text;
}

void mps_constant_type_name(mps_constant_type type, uint32_t components, char out[16]) {
  if (components > 1) snprintf(out, 16, "%s%u", types[type].name, components);
  else snprintf(out, 16, "%s", types[type].name);
}

bool mps_constant_type_read(const char *word, size_t length, mps_constant_type *out_type, uint32_t *out_components) {
  for (size_t i = 0; i < TYPE_COUNT; i++) {
    size_t base = strlen(types[i].name);
    bool plain = length == base, vector = length == base + 1 && word[base] >= '2' && word[base] <= '4';
    bool named = (plain || vector) && memcmp(word, types[i].name, base) == 0;
    bool width = types[i].width && length == strlen(types[i].width) && memcmp(word, types[i].width, length) == 0;
    if (!named && !width) continue;
    *out_type = (mps_constant_type)i;
    *out_components = named && vector ? (uint32_t)(word[base] - '0') : 1;
    return true;
  }
  return false;
}

/* By bits, so that no digit is lost and NaN stays itself. */
static int print_component(const mps_function_constant *c, uint32_t index, char *out, size_t capacity) {
  const char *name = types[c->type].name;
  uint64_t bits = 0;
  const unsigned char *from = (const unsigned char *)c->value + (size_t)index * types[c->type].bytes;
  for (uint32_t k = 0; k < types[c->type].bytes; k++) bits |= (uint64_t)from[k] << 8 * k;
  if (c->type == MPS_CONSTANT_BOOL) return snprintf(out, capacity, "%s", bits ? "true" : "false");
  if (types[c->type].real)
    return snprintf(out, capacity, "::as_type<%s>(static_cast<%s>(0x%llxu))", name, types[c->type].bytes == 2 ? "ushort" : "uint",
                    (unsigned long long)bits);
  return snprintf(out, capacity, "static_cast<%s>(0x%llxul)", name, (unsigned long long)bits);
}

void mps_constant_print(const mps_function_constant *c, char out[MPS_CONSTANT_TEXT]) {
  size_t used = 0;
  if (components_of(c) == 1) {
    print_component(c, 0, out, MPS_CONSTANT_TEXT);
    return;
  }
  char type[16];
  mps_constant_type_name(c->type, components_of(c), type);
  for (uint32_t i = 0; i < components_of(c); i++) {
    used += (size_t)snprintf(out + used, MPS_CONSTANT_TEXT - used, i ? ", " : "::metal::%s(", type);
    used += (size_t)print_component(c, i, out + used, MPS_CONSTANT_TEXT - used);
  }
  snprintf(out + used, MPS_CONSTANT_TEXT - used, ")");
}
