// SPDX-License-Identifier: BSD-3-Clause
//
// module: openmps._bridge. Loading it registers everything above; these functions are what python/openmps needs besides.
#include <torch/csrc/Storage.h>
#include <torch/csrc/utils/pybind.h>

#include "bridge/allocator.h"
#include "bridge/coverage.h"
#include "bridge/fallback.h"
#include "bridge/bridge.h"
#include "bridge/python.h"
#include "bridge/shader.h"
#include "bridge/storage.h"
#include "bridge/version.h"
#include "openmps/graph.h"

namespace py = pybind11;

namespace openmps {

namespace {

py::dict device_info() {
  const mps_device_info *info = mps_device_get_info(device());
  py::dict result;
  result["driver"] = info->driver;
  result["name"] = info->name;
  result["kernel_level"] = info->kernel_level;
  result["core_count"] = info->core_count;
  result["thread_execution_width"] = info->thread_execution_width;
  result["max_threads_per_threadgroup"] = info->max_threads_per_threadgroup;
  result["threadgroup_memory_bytes"] = info->threadgroup_memory_bytes;
  result["max_buffer_length"] = info->max_buffer_length;
  result["recommended_memory"] = info->recommended_memory;
  result["unified_memory"] = info->unified_memory;
  return result;
}

py::dict heap_statistics() {
  mps_heap_statistics heap = {};
  if (allocator()->initialized()) mps_heap_get_statistics(device(), &heap);
  py::dict result;
  result["allocated"] = heap.allocated;
  result["allocated_peak"] = heap.allocated_peak;
  result["reserved"] = heap.reserved;
  result["reserved_peak"] = heap.reserved_peak;
  result["driver"] = heap.driver;
  result["live_buffers"] = heap.live_buffers;
  result["heaps"] = heap.heaps;
  result["reuses"] = heap.reuses;
  return result;
}

py::dict graph_statistics() {
  mps_graph_statistics graphs = {};
  if (allocator()->initialized()) mps_graph_get_statistics(device(), &graphs);
  py::dict result;
  result["hits"] = graphs.hits;
  result["misses"] = graphs.misses;
  result["shared"] = graphs.shared;
  result["compiled"] = graphs.compiled;
  result["evictions"] = graphs.evictions;
  result["runs"] = graphs.runs;
  result["graphs"] = graphs.graphs;
  return result;
}

py::tuple coverage() {
  py::list native, missing;
  for (const char *name : native_entries) native.append(name);
  for (const char *const *name = missing_entries; *name != nullptr; name++) missing.append(*name);
  return py::make_tuple(native, missing);
}

// The entries of upstream's sparse keys, and whether each has a kernel here: the dispatcher is asked.
py::dict sparse_coverage() {
  const auto has_kernels = [](const auto &names, c10::DispatchKey key) {
    py::dict result;
    for (const std::string name : names) {
      const size_t dot = name.find('.');
      const auto found = c10::Dispatcher::singleton().findSchema({"aten::" + name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1)});
      result[py::str(name)] = found.has_value() && found->hasKernelForDispatchKey(key);
    }
    return result;
  };
  py::dict result;
  result["SparseMPS"] = has_kernels(sparse_entries, c10::DispatchKey::SparseMPS);
  result["SparseCsrMPS"] = has_kernels(sparse_csr_entries, c10::DispatchKey::SparseCsrMPS);
  return result;
}

const c10::Storage &unpack(const py::handle &storage) {
  TORCH_CHECK_TYPE(THPStorage_Check(storage.ptr()), "expected a torch.UntypedStorage");
  const c10::Storage &unpacked = THPStorage_Unpack(storage.ptr());
  TORCH_CHECK(unpacked.device().is_mps(), "expected an MPS storage, got device=", unpacked.device());
  return unpacked;
}

py::object new_untyped_storage(const py::handle &type, size_t length) {
  PyObject *made = THPStorage_NewWithStorage(reinterpret_cast<PyTypeObject *>(type.ptr()), new_storage(length));
  if (made == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

void resize_untyped_storage(const py::handle &storage, size_t length) { resize_storage(unpack(storage).unsafeGetStorageImpl(), length); }

}  // namespace

PYBIND11_MODULE(_bridge, m) {
  mps_set_interrupt_check(interrupt_check);
  m.def("device_info", &device_info);
  m.def("device_is_open", [] { return allocator()->initialized(); });
  m.def("heap_statistics", &heap_statistics);
  m.def("graph_statistics", &graph_statistics);
  m.def("coverage", &coverage);
  m.def("sparse_coverage", &sparse_coverage);
  m.def("set_commit", &set_commit);
  m.def("fallback_enabled", &fallback_enabled);
  m.def("torch_built_for", &torch_built_for);
  m.def("new_untyped_storage", &new_untyped_storage);
  m.def("resize_untyped_storage", &resize_untyped_storage);
  bind_shaders(m);
}

}  // namespace openmps
