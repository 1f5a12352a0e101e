/* SPDX-License-Identifier: BSD-3-Clause
 *
 * encoder: gathers a dispatch's arguments on the caller's stack and writes it as one step into the stream's command buffer.
 */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "driver/driver.h"
#include "runtime/buffer.h"
#include "runtime/device.h"
#include "runtime/stream.h"
#include "runtime/texture.h"
#include "shader/library.h"

#define FIRST_TEXTURE 32u     /* places of arguments, as the drivers know them */
#define FIRST_SAMPLER 48u
#define BYTES_ALIGNMENT 16u /* of inline values: vectors are loaded aligned */

static uint32_t aligned(uint32_t bytes) { return (bytes + BYTES_ALIGNMENT - 1) & ~(BYTES_ALIGNMENT - 1); }

/* Remembers the first failure for dispatch. */
static void fail(mps_encoder *encoder, mps_status status) {
  if (encoder->failure == MPS_STATUS_OK) encoder->failure = status;
}

static bool check_index(mps_encoder *encoder, uint32_t index) {
  if (index < MPS_ENCODER_MAX_BUFFERS) return true;
  fail(encoder, mps_error_set_operator(MPS_STATUS_INVALID_ARGUMENT, encoder->label, "buffer index %u is out of range: at most %u", index,
                                       MPS_ENCODER_MAX_BUFFERS - 1));
  return false;
}

static void set(mps_encoder *encoder, uint32_t index, uint64_t address, uint64_t length, uint64_t allocation, uint32_t access) {
  encoder->arguments[index].address = address;
  encoder->arguments[index].length = length;
  encoder->arguments[index].allocation = allocation;
  encoder->arguments[index].access = access;
  encoder->argument_mask |= UINT64_C(1) << index;
}

void mps_encoder_begin(mps_encoder *encoder, mps_stream *stream, const char *label) {
  encoder->stream = stream;
  encoder->pipeline = NULL;
  encoder->label = label;
  encoder->failure = MPS_STATUS_OK;
  encoder->bytes_used = encoder->indirect = 0;
  encoder->argument_mask = encoder->bytes_mask = 0;
  memset(encoder->threadgroup_bytes, 0, sizeof encoder->threadgroup_bytes);
  encoder->cost = 0.0;
}

void mps_encoder_set_pipeline(mps_encoder *encoder, const mps_pipeline *pipeline) { encoder->pipeline = pipeline; }

void mps_encoder_set_buffer(mps_encoder *encoder, uint32_t index, mps_buffer *buffer, uint64_t offset, mps_access access) {
  if (!check_index(encoder, index)) return;
  if (!buffer || offset > buffer->length) {
    fail(encoder, mps_error_set_operator(MPS_STATUS_INVALID_ARGUMENT, encoder->label, "buffer %u: offset %llu is behind the buffer's %zu bytes",
                                         index, (unsigned long long)offset, buffer ? buffer->length : 0));
    return;
  }
  mps_buffer_use(buffer, encoder->stream);
  set(encoder, index, mps_buffer_address(buffer) + offset, buffer->length - offset, buffer->identifier, (uint32_t)access);
  encoder->bytes_mask &= ~(UINT64_C(1) << index);
}

/* `index`: of an argument of any kind. */
static void set_bytes(mps_encoder *encoder, uint32_t index, const void *bytes, uint32_t length) {
  uint64_t position = encoder->bytes_used;
  bool again = (encoder->bytes_mask >> index & 1) && length <= encoder->arguments[index].length; /* the same place serves once more */
  if (again) position = encoder->arguments[index].address;
  if (length == 0 || length > MPS_ENCODER_MAX_BYTES || (!again && length > MPS_ENCODER_MAX_BYTES - position)) {
    fail(encoder, mps_error_set_operator(MPS_STATUS_INVALID_ARGUMENT, encoder->label,
                                         "buffer %u: %u inline bytes do not fit: all of a dispatch take 1 to %u", index, length,
                                         MPS_ENCODER_MAX_BYTES));
    return;
  }
  memcpy((char *)encoder->bytes + position, bytes, length);
  if (!again) encoder->bytes_used = aligned((uint32_t)position + length);
  set(encoder, index, position, length, 0, MPS_ACCESS_READ);
  encoder->bytes_mask |= UINT64_C(1) << index;
}

void mps_encoder_set_bytes(mps_encoder *encoder, uint32_t index, const void *bytes, uint32_t length) {
  if (check_index(encoder, index)) set_bytes(encoder, index, bytes, length);
}

void mps_encoder_set_texture(mps_encoder *encoder, uint32_t index, mps_texture *texture) {
  if (index >= MPS_ENCODER_MAX_TEXTURES) {
    fail(encoder, mps_error_set_operator(MPS_STATUS_INVALID_ARGUMENT, encoder->label, "texture index %u is out of range: at most %u", index,
                                         MPS_ENCODER_MAX_TEXTURES - 1));
    return;
  }
  uint32_t place = FIRST_TEXTURE + index;
  encoder->bytes_mask &= ~(UINT64_C(1) << place);
  if (!texture) {
    encoder->argument_mask &= ~(UINT64_C(1) << place);
    return;
  }
  mps_encoder_use_buffer(encoder, texture->texels);
  mps_buffer_use(texture->layout, encoder->stream);
  set(encoder, place, mps_buffer_address(texture->layout), texture->layout->length, texture->layout->identifier, MPS_ACCESS_READ);
}

void mps_encoder_set_sampler(mps_encoder *encoder, uint32_t index, const mps_sampler_descriptor *sampler) {
  struct mps_sampler_layout layout;
  if (index >= MPS_ENCODER_MAX_SAMPLERS) {
    fail(encoder, mps_error_set_operator(MPS_STATUS_INVALID_ARGUMENT, encoder->label, "sampler index %u is out of range: at most %u", index,
                                         MPS_ENCODER_MAX_SAMPLERS - 1));
    return;
  }
  mps_status status = mps_sampler_layout_make(sampler, &layout);
  if (status != MPS_STATUS_OK) fail(encoder, status);
  else set_bytes(encoder, FIRST_SAMPLER + index, &layout, sizeof layout);
}

void mps_encoder_set_nothing(mps_encoder *encoder, uint32_t index) {
  if (!check_index(encoder, index)) return;
  set(encoder, index, 0, 0, 0, MPS_ACCESS_READ);
  encoder->bytes_mask &= ~(UINT64_C(1) << index);
}

uint64_t mps_encoder_use_buffer(mps_encoder *encoder, mps_buffer *buffer) {
  mps_buffer_use(buffer, encoder->stream);
  encoder->indirect = 1;
  return mps_buffer_address(buffer);
}

/* Binds a record of the stream's. */
static void set_record(mps_encoder *encoder, uint32_t index, mps_status (*find)(mps_stream *, uint64_t *, uint64_t *)) {
  if (!check_index(encoder, index)) return;
  uint64_t address = 0, length = 0;
  mps_status status = find(encoder->stream, &address, &length);
  if (status != MPS_STATUS_OK) {
    fail(encoder, status);
    return;
  }
  set(encoder, index, address, length, 0, MPS_ACCESS_READ_WRITE);
  encoder->bytes_mask &= ~(UINT64_C(1) << index);
}

void mps_encoder_set_error_buffer(mps_encoder *encoder, uint32_t index) { set_record(encoder, index, mps_stream_error_memory); }

void mps_encoder_set_error_messages(mps_encoder *encoder, uint32_t index) { set_record(encoder, index, mps_stream_message_memory); }

void mps_encoder_set_threadgroup_bytes(mps_encoder *encoder, uint32_t index, uint32_t length) {
  uint32_t limit = mps_device_driver(mps_stream_device(encoder->stream))->limits.threadgroup_memory_bytes;
  if (index >= 4 || length > limit)
    fail(encoder, mps_error_set_operator(MPS_STATUS_INVALID_ARGUMENT, encoder->label,
                                         "threadgroup memory %u of %u bytes: there are 4, of together at most %u bytes", index, length, limit));
  else encoder->threadgroup_bytes[index] = length;
}

void mps_encoder_set_cost(mps_encoder *encoder, double nanoseconds) { encoder->cost = nanoseconds; }

/* What the kernel takes must be there, and the grid must be one that the kernel can count. */
static mps_status check_dispatch(const mps_encoder *encoder, const uint64_t threads[3], const uint32_t group[3]) {
  if (!encoder->pipeline) return mps_error_set_operator(MPS_STATUS_INVALID_ARGUMENT, encoder->label, "no pipeline is set");
  const mps_pipeline_info *info = &encoder->pipeline->info;
  const mps_driver_function *function = encoder->pipeline->function;
  uint32_t missing = function->buffer_mask & ~(uint32_t)encoder->argument_mask;
  if (missing)
    return mps_error_set_operator(MPS_STATUS_INVALID_ARGUMENT, encoder->label,
                                  "kernel '%s' takes an argument at buffer index %d, and none is set", info->name, __builtin_ctz(missing));
  uint64_t product = 1;
  for (int i = 0; i < 3; i++) {
    if (group[i] == 0) return mps_error_set_operator(MPS_STATUS_INVALID_ARGUMENT, encoder->label, "the threadgroup size is zero");
    product *= group[i] <= info->max_threads_per_threadgroup ? group[i] : info->max_threads_per_threadgroup + 1;
    if (threads[i] > UINT32_MAX && !(function->flags & MPS_FUNCTION_64_BIT_GRID))
      return mps_error_set_operator(MPS_STATUS_INVALID_ARGUMENT, encoder->label,
                                    "a grid of %llu threads is too long for kernel '%s', whose position has 32 bits",
                                    (unsigned long long)threads[i], info->name);
  }
  if (product > info->max_threads_per_threadgroup)
    return mps_error_set_operator(MPS_STATUS_INVALID_ARGUMENT, encoder->label, "Threadgroup size exceeds %u limit",
                                  info->max_threads_per_threadgroup);
  return MPS_STATUS_OK;
}

static void write_step(const mps_encoder *encoder, mps_step_dispatch *step, uint32_t count, const uint64_t threads[3], const uint32_t group[3]) {
  step->function = encoder->pipeline->function;
  memcpy(step->threads, threads, sizeof step->threads);
  memcpy(step->group, group, sizeof step->group);
  memcpy(step->threadgroup_bytes, encoder->threadgroup_bytes, sizeof step->threadgroup_bytes);
  step->argument_count = count;
  step->unknown = !mps_library_is_builtin(encoder->pipeline->library);
  step->indirect = (uint16_t)encoder->indirect;
  char *inline_bytes = (char *)step + aligned((uint32_t)(sizeof *step + count * sizeof step->arguments[0]));
  for (uint32_t i = 0; i < count; i++) {
    mps_step_argument *to = &step->arguments[i];
    if (!(encoder->argument_mask >> i & 1)) {
      *to = (mps_step_argument){0};
      continue;
    }
    bool is_bytes = encoder->bytes_mask >> i & 1;
    uint64_t address = encoder->arguments[i].address;
    *to = (mps_step_argument){.address = is_bytes ? (uint64_t)(uintptr_t)inline_bytes + address : address, .length = encoder->arguments[i].length,
                              .allocation = encoder->arguments[i].allocation, .access = encoder->arguments[i].access};
  }
  memcpy(inline_bytes, encoder->bytes, encoder->bytes_used);
}

mps_status mps_encoder_dispatch(mps_encoder *encoder, const uint64_t threads[3], const uint32_t group[3]) {
  if (encoder->failure != MPS_STATUS_OK) return encoder->failure;
  if (threads[0] == 0 || threads[1] == 0 || threads[2] == 0) return MPS_STATUS_OK;
  uint32_t preferred[3] = {1, 1, 1};
  if (!group) {
    const mps_driver_limits *limits = &mps_device_driver(mps_stream_device(encoder->stream))->limits;
    uint32_t flags = encoder->pipeline ? encoder->pipeline->function->flags : 0;
    bool together = flags & (MPS_FUNCTION_USES_BARRIER | MPS_FUNCTION_USES_SIMDGROUP); /* then groups as large as Metal's are expected */
    preferred[0] = together ? limits->max_threads_per_threadgroup : limits->preferred_threads_per_threadgroup;
    if (encoder->pipeline && preferred[0] > encoder->pipeline->info.max_threads_per_threadgroup)
      preferred[0] = encoder->pipeline->info.max_threads_per_threadgroup;
    group = preferred;
  }
  MPS_TRY(check_dispatch(encoder, threads, group));
  uint32_t count = encoder->argument_mask ? 64u - (uint32_t)__builtin_clzll(encoder->argument_mask) : 0;
  mps_step_dispatch *step;
  uint32_t bytes = aligned((uint32_t)(sizeof *step + count * sizeof step->arguments[0])) + encoder->bytes_used;
  double cost = encoder->cost > 0.0 ? encoder->cost : 100.0 + (double)threads[0] * (double)threads[1] * (double)threads[2];
  const char *label = encoder->label ? encoder->label : encoder->pipeline->info.name;
  MPS_TRY(mps_stream_reserve(encoder->stream, MPS_STEP_DISPATCH, bytes, label, cost, (void **)&step));
  write_step(encoder, step, count, threads, group);
  uint64_t serial = mps_stream_publish(encoder->stream, &step->step);
  if (!mps_library_is_builtin(encoder->pipeline->library)) mps_library_note_use(encoder->pipeline->library, encoder->stream, serial);
  if (encoder->indirect && encoder->pipeline->function->flags & MPS_FUNCTION_CHECKED) return mps_stream_wait_serial(encoder->stream, serial);
  return MPS_STATUS_OK;
}
