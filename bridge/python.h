/* SPDX-License-Identifier: BSD-3-Clause
 *
 * python: what waits owe the interpreter: the lock is released while they last, and Ctrl-C ends them.
 */
#pragma once

namespace openmps {

// Releases the interpreter's lock for a scope, if this thread holds it.
class ReleaseGil {
 public:
  ReleaseGil();
  ~ReleaseGil();
  ReleaseGil(const ReleaseGil &) = delete;
  ReleaseGil &operator=(const ReleaseGil &) = delete;

 private:
  void *state_;
};

// For mps_set_interrupt_check: runs Python's signal handlers; non-zero when one of them raised.
int interrupt_check();
// Throws the exception that interrupt_check() found.
[[noreturn]] void raise_interrupt();
// Forgets it, where nothing can be thrown. True if there was one.
bool drop_interrupt();

}  // namespace openmps
