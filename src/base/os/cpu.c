/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cpu: which kernel level the processor, and the system's saving of its registers, support; on which processor a thread is.
 */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/os/os.h"
#include "base/thread.h"

static char cpu_name[64];
static mps_once name_once = MPS_ONCE_INITIALIZER;

#if defined(__x86_64__)
#include <cpuid.h>

static uint64_t extended_control(void) {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

const char *mps_os_cpu_level(void) {
  unsigned a, b, c, d, b7, c7, d7, c_extended;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return "x86-64";
  unsigned leaf1 = c;
  if (!__get_cpuid_count(7, 0, &a, &b7, &c7, &d7) || !__get_cpuid(0x80000001u, &a, &b, &c_extended, &d)) return "x86-64";
  const unsigned v3_leaf1 = bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT | bit_AVX | bit_FMA | bit_F16C | bit_MOVBE | bit_OSXSAVE;
  const unsigned v3_leaf7 = bit_AVX2 | bit_BMI | bit_BMI2;
  const unsigned v4_leaf7 = bit_AVX512F | bit_AVX512DQ | bit_AVX512CD | bit_AVX512BW | bit_AVX512VL;
  if ((leaf1 & v3_leaf1) != v3_leaf1 || (b7 & v3_leaf7) != v3_leaf7 || !(c_extended & bit_LZCNT)) return "x86-64";
  uint64_t saved = extended_control();
  if ((saved & 0x6) != 0x6) return "x86-64";
  if ((b7 & v4_leaf7) != v4_leaf7 || (saved & 0xe6) != 0xe6) return "x86-64-v3";
  return "x86-64-v4";
}

static void read_name(void) {
  unsigned words[12];
  unsigned highest = __get_cpuid_max(0x80000000u, NULL);
  if (highest >= 0x80000004u) {
    for (unsigned i = 0; i < 3; i++) __get_cpuid(0x80000002u + i, &words[i * 4], &words[i * 4 + 1], &words[i * 4 + 2], &words[i * 4 + 3]);
    memcpy(cpu_name, words, sizeof words);
  }
  char *first = cpu_name + strspn(cpu_name, " ");
  memmove(cpu_name, first, strlen(first) + 1);
  for (size_t n = strlen(cpu_name); n && cpu_name[n - 1] == ' '; n--) cpu_name[n - 1] = 0;
  if (!cpu_name[0]) snprintf(cpu_name, sizeof cpu_name, "x86-64 processor");
}

const char *mps_os_target(void) { return "x86_64-linux-gnu"; }

#else

const char *mps_os_target(void) { return "aarch64-linux-gnu"; }

const char *mps_os_cpu_level(void) {
#if defined(__aarch64__)
  return "aarch64";
#else
  return "generic";
#endif
}

static void read_name(void) { snprintf(cpu_name, sizeof cpu_name, "%s processor", mps_os_cpu_level()); }

#endif

int mps_os_cpu_current(void) { return sched_getcpu(); }

const char *mps_os_cpu_name(void) {
  mps_once_run(&name_once, read_name);
  return cpu_name;
}
