// SPDX-License-Identifier: BSD-3-Clause
//
// python: see python.h. The exception of a signal handler travels from interrupt_check() to raise_interrupt() on the same thread.
#include "bridge/python.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/python_headers.h>

#include <memory>

namespace openmps {

namespace {
thread_local std::unique_ptr<python_error> pending;
}

ReleaseGil::ReleaseGil() : state_(Py_IsInitialized() != 0 && PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr) {}

ReleaseGil::~ReleaseGil() {
  if (state_ != nullptr) PyEval_RestoreThread(static_cast<PyThreadState *>(state_));
}

int interrupt_check() {
  if (Py_IsInitialized() == 0) return 0;
  const PyGILState_STATE gil = PyGILState_Ensure();
  const bool raised = PyErr_CheckSignals() != 0;
  if (raised) {
    pending = std::make_unique<python_error>();
    pending->persist();
  }
  PyGILState_Release(gil);
  return raised ? 1 : 0;
}

void raise_interrupt() {
  python_error error = pending != nullptr ? std::move(*pending) : python_error();
  pending.reset();
  throw std::move(error);
}

bool drop_interrupt() {
  if (pending == nullptr) return false;
  const PyGILState_STATE gil = PyGILState_Ensure();
  pending.reset();
  PyGILState_Release(gil);
  return true;
}

}  // namespace openmps
