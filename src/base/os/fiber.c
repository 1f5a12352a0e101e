/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fiber: see fiber.h. A switch ends with a return: between fibers that stop at the same place the processor's stack of return addresses
 * is right by chance, and stays so for the callers. Sanitizers are told of each switch: both follow a thread's stack.
 */
#include "base/os/fiber.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/os/os.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

/* ---- stacks ---- */
void *mps_os_stack_at(void *memory, size_t index, size_t bytes) {
  size_t page = mps_os_page_size();
  return (char *)memory + index * (bytes + page) + page;
}

mps_status mps_os_stacks_map(size_t count, size_t bytes, void **out_memory) {
  size_t page = mps_os_page_size(), step = bytes + page;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#if defined(MAP_NORESERVE)
  flags |= MAP_NORESERVE;
#endif
  void *memory = mmap(NULL, count * step, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (memory == MAP_FAILED)
    return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for %zu stacks of %zu bytes: %s", count, bytes, strerror(errno));
#if defined(MADV_NOHUGEPAGE)
  (void)madvise(memory, count * step, MADV_NOHUGEPAGE); /* a stack uses a page or two */
#endif
  /* Each guard page is a mapping of its own; a process may have 65530 of them by default. Better a stack without than none. */
  for (size_t i = 0; i < count; i++)
    if (mprotect((char *)memory + i * step, page, PROT_NONE) != 0) break;
  *out_memory = memory;
  return MPS_STATUS_OK;
}

void mps_os_stacks_unmap(void *memory, size_t count, size_t bytes) {
  if (!memory) return;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(memory, count * (bytes + mps_os_page_size()));
#endif
  (void)munmap(memory, count * (bytes + mps_os_page_size()));
}

/* ---- the switch ---- */
#if defined(__x86_64__) || defined(__aarch64__)
/* In assembly: saves what a callee keeps on the stack and its place in *save, goes on at `load`; where a new stack begins. */
void mps_fiber_jump(void **save, void *load);
void mps_fiber_begin(void);

static void release(mps_fiber *fiber) { (void)fiber; }
static void jump(mps_fiber *from, mps_fiber *to) { mps_fiber_jump(&from->position, to->position); }
#endif

#if defined(__x86_64__)
/* Saves the registers that a callee keeps, and the control words of SSE and x87 (loaded only where they differ). */
__asm__(
  ".text\n"
  ".p2align 4\n"
  ".hidden mps_fiber_jump\n"
  ".globl mps_fiber_jump\n"
  ".type mps_fiber_jump, @function\n"
  "mps_fiber_jump:\n"
  "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
  "  subq $8, %rsp\n"
  "  stmxcsr (%rsp)\n"
  "  fnstcw 4(%rsp)\n"
  "  movl (%rsp), %eax\n"
  "  movzwl 4(%rsp), %edx\n"
  "  movq %rsp, (%rdi)\n"
  "  movq %rsi, %rsp\n"
  "  cmpl %eax, (%rsp)\n"
  "  jne 2f\n"
  "1: cmpw %dx, 4(%rsp)\n"
  "  jne 3f\n"
  "4: addq $8, %rsp\n"
  "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
  "  retq\n"
  "2: ldmxcsr (%rsp)\n"
  "  jmp 1b\n"
  "3: fldcw 4(%rsp)\n"
  "  jmp 4b\n"
  ".size mps_fiber_jump, .-mps_fiber_jump\n"
  /* The first thing on a new stack: r12 holds the function, r13 its argument. */
  ".hidden mps_fiber_begin\n"
  ".globl mps_fiber_begin\n"
  ".type mps_fiber_begin, @function\n"
  "mps_fiber_begin:\n"
  "  .cfi_startproc\n"
  "  .cfi_undefined rip\n"
  "  movq %r13, %rdi\n"
  "  callq *%r12\n"
  "  ud2\n"
  "  .cfi_endproc\n"
  ".size mps_fiber_begin, .-mps_fiber_begin\n"
);

static mps_status prepare(mps_fiber *fiber, void (*function)(void *), void *context) {
  uint64_t *top = (uint64_t *)(((uintptr_t)fiber->stack + fiber->stack_bytes) & ~(uintptr_t)15);
  top -= 8; /* control words, r15 r14 r13 r12 rbx rbp, return address: the stack is aligned when mps_fiber_begin starts */
  uint32_t mxcsr;
  uint16_t control;
  __asm__ volatile("stmxcsr %0" : "=m"(mxcsr));
  __asm__ volatile("fnstcw %0" : "=m"(control));
  top[0] = mxcsr | (uint64_t)control << 32;
  top[1] = top[2] = 0;
  top[3] = (uintptr_t)context;
  top[4] = (uintptr_t)function;
  top[5] = top[6] = 0;
  top[7] = (uintptr_t)mps_fiber_begin;
  fiber->position = top;
  return MPS_STATUS_OK;
}

#elif defined(__aarch64__)
/* x19-x30, d8-d15 and fpcr. */
__asm__(
  ".text\n"
  ".p2align 4\n"
  ".hidden mps_fiber_jump\n"
  ".globl mps_fiber_jump\n"
  ".type mps_fiber_jump, %function\n"
  "mps_fiber_jump:\n"
  "  sub sp, sp, #176\n"
  "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
  "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
  "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
  "  mrs x9, fpcr\n"
  "  str x9, [sp, #160]\n"
  "  mov x10, sp\n"
  "  str x10, [x0]\n"
  "  mov sp, x1\n"
  "  ldr x10, [sp, #160]\n"
  "  cmp x9, x10\n"
  "  b.eq 1f\n"
  "  msr fpcr, x10\n"
  "1: ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
  "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
  "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
  "  add sp, sp, #176\n"
  "  ret\n"
  ".size mps_fiber_jump, .-mps_fiber_jump\n"
  ".hidden mps_fiber_begin\n"
  ".globl mps_fiber_begin\n"
  ".type mps_fiber_begin, %function\n"
  "mps_fiber_begin:\n"
  "  .cfi_startproc\n"
  "  .cfi_undefined x30\n"
  "  mov x0, x20\n"
  "  blr x19\n"
  "  brk #1\n"
  "  .cfi_endproc\n"
  ".size mps_fiber_begin, .-mps_fiber_begin\n"
);

static mps_status prepare(mps_fiber *fiber, void (*function)(void *), void *context) {
  uint64_t *top = (uint64_t *)(((uintptr_t)fiber->stack + fiber->stack_bytes) & ~(uintptr_t)15);
  top -= 22;
  memset(top, 0, 176);
  uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  top[0] = (uintptr_t)function;
  top[1] = (uintptr_t)context;
  top[11] = (uintptr_t)mps_fiber_begin; /* x30 */
  top[20] = control;
  fiber->position = top;
  return MPS_STATUS_OK;
}

#else
/* Any other machine: the system's own switch, slower since it asks for the signal mask. */
#include <ucontext.h>

typedef struct record {
  ucontext_t context;
  void (*function)(void *);
  void *argument;
} record;

static void start(unsigned high, unsigned low) {
  record *r = (record *)(uintptr_t)((uint64_t)high << 32 | low);
  r->function(r->argument);
}

static mps_status prepare(mps_fiber *fiber, void (*function)(void *), void *context) {
  record *r = calloc(1, sizeof *r);
  if (!r || getcontext(&r->context) != 0) {
    free(r);
    return mps_error_set(MPS_STATUS_OUT_OF_MEMORY, "no memory for a fiber");
  }
  r->function = function;
  r->argument = context;
  r->context.uc_stack.ss_sp = fiber->stack;
  r->context.uc_stack.ss_size = fiber->stack_bytes;
  makecontext(&r->context, (void (*)(void))start, 2, (unsigned)((uint64_t)(uintptr_t)r >> 32), (unsigned)(uintptr_t)r);
  fiber->position = r;
  return MPS_STATUS_OK;
}

static void release(mps_fiber *fiber) { free(fiber->position); }

static void jump(mps_fiber *from, mps_fiber *to) {
  record here;
  bool own = !from->stack; /* the thread's own stack */
  if (own) from->position = &here;
  swapcontext(&((record *)from->position)->context, &((record *)to->position)->context);
}
#endif

/* ---- fibers ---- */
void mps_fiber_of_thread(mps_fiber *fiber) {
  *fiber = (mps_fiber){0};
#if defined(__SANITIZE_ADDRESS__)
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &fiber->stack, &fiber->stack_bytes);
    pthread_attr_destroy(&attributes);
  }
#elif defined(__SANITIZE_THREAD__)
  fiber->thread_record = __tsan_get_current_fiber();
#endif
}

mps_status mps_fiber_create(mps_fiber *fiber, void *stack, size_t bytes, void (*function)(void *), void *context) {
  *fiber = (mps_fiber){.stack = stack, .stack_bytes = bytes};
#if defined(__SANITIZE_THREAD__)
  fiber->thread_record = __tsan_create_fiber(0);
#endif
  return prepare(fiber, function, context);
}

void mps_fiber_destroy(mps_fiber *fiber) {
#if defined(__SANITIZE_THREAD__)
  if (fiber->thread_record) __tsan_destroy_fiber(fiber->thread_record);
#endif
  release(fiber);
  *fiber = (mps_fiber){0};
}

void mps_fiber_switch(mps_fiber *from, mps_fiber *to) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from->fake_stack, to->stack, to->stack_bytes);
#elif defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(to->thread_record, 0);
#endif
  jump(from, to);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from->fake_stack, NULL, NULL);
#endif
}

void mps_fiber_leave(mps_fiber *from, mps_fiber *to) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(NULL, to->stack, to->stack_bytes); /* gives the fake stack back */
#elif defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(to->thread_record, 0);
#endif
  jump(from, to);
}

void mps_fiber_entered(mps_fiber *self) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(NULL, NULL, NULL);
#endif
  (void)self;
}
