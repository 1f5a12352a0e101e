// SPDX-License-Identifier: BSD-3-Clause
//
// shader: torch.mps.compile_shader. A library of kernels, a kernel, and how Python values become its arguments: rules and texts are
// upstream's (torch/csrc/mps). A kernel keeps its library; tensors are not kept, since freeing them is ordered with the stream's work.
#include "bridge/shader.h"

#include <torch/csrc/autograd/python_variable.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <mutex>
#include <set>

#include "bridge/bridge.h"
#include "bridge/python.h"
#include "openmps/library.h"

namespace py = pybind11;

namespace openmps {

namespace {

// Labels of steps live for ever: the step may outlive the library that the name is from.
const char *intern(const std::string &name) {
  static std::mutex mutex;
  static std::set<std::string> &names = *new std::set<std::string>;
  const std::lock_guard<std::mutex> guard(mutex);
  return names.insert(name).first->c_str();
}

// ---- libraries ----
class Library {
 public:
  explicit Library(mps_library *library) : library_(library) {}
  Library(const Library &) = delete;
  Library &operator=(const Library &) = delete;
  // Waits for work in flight that runs the library's code. A Ctrl-C that comes meanwhile is told again.
  ~Library() {
    {
      const ReleaseGil no_gil;
      mps_library_release(library_);
    }
    if (drop_interrupt()) PyErr_SetInterrupt();
  }
  mps_library *get() const { return library_; }

 private:
  mps_library *library_;
};

// What load_metallib returns upstream.
class PrecompiledLibrary : public Library {
  using Library::Library;
};

std::vector<std::string> function_names(const Library &library) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < mps_library_function_count(library.get()); i++) names.emplace_back(mps_library_function_name(library.get(), i));
  return names;
}

// ---- a compiler's message as a SyntaxError ----
struct Place {
  std::string file;
  int line, column;
};

// Where the first error is, of "file:line:column: error: text" lines.
std::optional<Place> find_place(const std::string &message) {
  for (size_t begin = 0; begin < message.size();) {
    const size_t end = std::min(message.find('\n', begin), message.size());
    const std::string line = message.substr(begin, end - begin);
    begin = end + 1;
    size_t mark = line.find(": error: ");
    if (mark == std::string::npos) mark = line.find(": fatal error: ");
    if (mark == std::string::npos || mark == 0) continue;
    const size_t column = line.rfind(':', mark - 1);
    if (column == std::string::npos || column == 0) continue;
    const size_t number = line.rfind(':', column - 1);
    if (number == std::string::npos) continue;
    return Place{line.substr(0, number), std::atoi(line.c_str() + number + 1), std::atoi(line.c_str() + column + 1)};
  }
  return std::nullopt;
}

std::string line_of(const std::string &source, int number) {
  size_t begin = 0;
  for (int i = 1; i < number; i++) {
    begin = source.find('\n', begin);
    if (begin == std::string::npos) return "";
    begin++;
  }
  return source.substr(begin, source.find('\n', begin) - begin);
}

py::object decode(const std::string &text) {
  return py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

constexpr const char *kSourceName = "program_source";  // Metal's name for source without one

// clang counts bytes of a line, Python counts characters.
[[noreturn]] void raise_syntax_error(const std::string &source, const std::string &message) {
  py::tuple arguments = py::make_tuple(decode(message));
  if (const std::optional<Place> place = find_place(message)) {
    py::object text = py::none();
    py::object column = py::int_(place->column);
    if (place->file == kSourceName) {
      const std::string line = line_of(source, place->line);
      text = decode(line);
      if (place->column > 0) column = py::int_(py::len(decode(line.substr(0, static_cast<size_t>(place->column) - 1))) + 1);
    }
    arguments = py::make_tuple(decode(message), py::make_tuple(decode(place->file), place->line, column, text));
  }
  PyErr_SetObject(PyExc_SyntaxError, arguments.ptr());
  throw py::error_already_set();
}

std::shared_ptr<Library> compile(const std::string &source) {
  TORCH_CHECK_VALUE(source.find('\0') == std::string::npos, "the Metal source contains a null byte");
  mps_library *library = nullptr;
  mps_status status = MPS_STATUS_OK;
  {
    const ReleaseGil no_gil;
    status = mps_library_compile(device(), source.c_str(), kSourceName, &library);
  }
  if (status == MPS_STATUS_COMPILE_ERROR) raise_syntax_error(source, mps_error_message());
  if (status == MPS_STATUS_INTERRUPTED) raise(status);
  TORCH_CHECK(status == MPS_STATUS_OK, "Failed to create metal library, error: ", mps_error_message());
  return std::make_shared<Library>(library);
}

constexpr const char *kNoAir =
    "it holds AIR, Apple's compiled form, which OpenMPS cannot run yet; compile the Metal source with torch.mps.compile_shader";
constexpr const char *kNoLibrary = "it is no Metal library: it does not begin with 'MTLB'";

std::shared_ptr<PrecompiledLibrary> load_bytes(const py::bytes &content) {
  TORCH_CHECK(false, "Failed to load metallib: ", std::string_view(content).substr(0, 4) == "MTLB" ? kNoAir : kNoLibrary);
}

std::shared_ptr<PrecompiledLibrary> load_path(const std::string &path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  const bool read = file.good() && file.read(magic, sizeof magic).good();
  const bool missing = !read && errno != 0;
  TORCH_CHECK(false, "Failed to load metallib from '", path, "': ",
              missing ? std::strerror(errno) : std::memcmp(magic, "MTLB", 4) == 0 ? kNoAir : kNoLibrary);
}

// ---- arguments ----
enum class Cast { none, fp16, bf16, int32, int16, int8, uint8 };

Cast cast_named(const py::handle &name) {
  constexpr std::pair<const char *, Cast> known[] = {{"fp16", Cast::fp16},   {"bf16", Cast::bf16}, {"int32", Cast::int32},
                                                     {"int16", Cast::int16}, {"int8", Cast::int8}, {"uint8", Cast::uint8}};
  if (py::isinstance<py::str>(name)) {
    const auto text = name.cast<std::string>();
    for (const auto &[word, cast] : known)
      if (text == word) return cast;
  }
  TORCH_CHECK(false, "Unsupported cast instruction ", py::repr(name).cast<std::string>(), ": known are fp16, bf16, int32, int16, int8 and uint8");
}

class Casts {
 public:
  explicit Casts(const py::object &casts) {
    if (casts.is_none()) return;
    if (py::isinstance<py::str>(casts)) {
      all_ = cast_named(casts);
      return;
    }
    TORCH_CHECK(py::isinstance<py::dict>(casts), "Unexpected caster arg type ", Py_TYPE(casts.ptr())->tp_name,
                ": arg_casts is a str or a dict of argument numbers and strs");
    for (const auto &[index, name] : casts.cast<py::dict>()) {
      TORCH_CHECK(PyLong_Check(index.ptr()), "Unexpected caster arg type ", Py_TYPE(index.ptr())->tp_name, " as a key: keys are argument numbers");
      some_.emplace_back(index.cast<int64_t>(), cast_named(name));
    }
  }
  Cast of(uint32_t index) const {
    for (const auto &[number, cast] : some_)
      if (number == index) return cast;
    return all_;
  }

 private:
  Cast all_ = Cast::none;
  std::vector<std::pair<int64_t, Cast>> some_;
};

// Integers wrap, as in Metal; a number that no integer type holds becomes the nearest that does, NaN zero.
template <class To, class From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (!std::is_integral_v<To>) {
    return To(static_cast<float>(value));
  } else if constexpr (std::is_integral_v<From>) {
    return static_cast<To>(value);
  } else {
    if (std::isnan(value)) return 0;
    constexpr From low = static_cast<From>(std::numeric_limits<To>::min()), high = static_cast<From>(std::numeric_limits<To>::max());
    return value <= low ? std::numeric_limits<To>::min() : value >= high ? std::numeric_limits<To>::max() : static_cast<To>(value);
  }
}

void set_bytes(mps_encoder *encoder, uint32_t index, const void *bytes, size_t length) {
  mps_encoder_set_bytes(encoder, index, bytes, static_cast<uint32_t>(std::min<size_t>(length, UINT32_MAX)));
}

template <class To, class From>
void set_converted(mps_encoder *encoder, uint32_t index, const c10::SmallVectorImpl<From> &values) {
  c10::SmallVector<To, 8> converted;
  for (const From value : values) converted.push_back(convert<To>(value));
  set_bytes(encoder, index, converted.data(), converted.size() * sizeof(To));
}

// `values` are int64 or float32.
template <class T>
void set_numbers(mps_encoder *encoder, uint32_t index, const c10::SmallVectorImpl<T> &values, Cast cast) {
  switch (cast) {
    case Cast::none:
      return set_converted<T>(encoder, index, values);
    case Cast::fp16:
      return set_converted<at::Half>(encoder, index, values);
    case Cast::bf16:
      return set_converted<at::BFloat16>(encoder, index, values);
    case Cast::int32:
      return set_converted<int32_t>(encoder, index, values);
    case Cast::int16:
      return set_converted<int16_t>(encoder, index, values);
    case Cast::int8:
      return set_converted<int8_t>(encoder, index, values);
    case Cast::uint8:
      return set_converted<uint8_t>(encoder, index, values);
  }
}

int64_t integer(const py::handle &value) {
  const long long number = PyLong_AsLongLong(value.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  return number;
}

// A CPU scalar is read now. Metal has no double.
void set_cpu_scalar(mps_encoder *encoder, uint32_t index, const at::Tensor &tensor) {
  TORCH_CHECK(tensor.dim() == 0, "Passed CPU tensor to MPS op");
  at::Tensor value = tensor.detach().resolve_conj().resolve_neg();
  if (value.scalar_type() == at::kDouble) value = value.to(at::kFloat);
  if (value.scalar_type() == at::kComplexDouble) value = value.to(at::kComplexFloat);
  set_bytes(encoder, index, value.const_data_ptr(), value.element_size());
}

// The memory behind an mps tensor; nullptr for an empty one.
mps_buffer *memory_of(const at::Tensor &tensor) {
  TORCH_CHECK(tensor.is_mps(), "Passed ", c10::DeviceTypeName(tensor.device().type()), " tensor to MPS op");
  TORCH_CHECK(tensor.layout() == at::kStrided, "Passed ", tensor.layout(), " tensor to a Metal kernel: pass its indices and values");
  if (tensor.numel() == 0) return nullptr;
  mps_buffer *memory = buffer(*tensor.storage().unsafeGetStorageImpl());
  TORCH_CHECK(memory != nullptr, "Passed a tensor without memory to a Metal kernel");
  return memory;
}

uint64_t offset_of(const at::Tensor &tensor) { return static_cast<uint64_t>(tensor.storage_offset()) * tensor.element_size(); }

void set_tensor(mps_encoder *encoder, uint32_t index, const at::Tensor &tensor) {
  if (tensor.is_cpu()) return set_cpu_scalar(encoder, index, tensor);
  mps_buffer *memory = memory_of(tensor);
  if (memory == nullptr) return mps_encoder_set_nothing(encoder, index);
  mps_encoder_set_buffer(encoder, index, memory, offset_of(tensor), MPS_ACCESS_READ_WRITE);
}

template <class Check>
bool all_of(const py::tuple &values, Check check) {
  for (const py::handle value : values)
    if (!check(value.ptr())) return false;
  return true;
}

void set_list(mps_encoder *encoder, uint32_t index, const py::tuple &values, Cast cast) {
  TORCH_CHECK(!values.empty(), "Empty list/tuple can not be an argument to metal kernel");
  if (all_of(values, [](PyObject *value) { return PyLong_Check(value) != 0; })) {
    c10::SmallVector<int64_t, 8> numbers;
    for (const py::handle value : values) numbers.push_back(integer(value));
    set_numbers(encoder, index, numbers, cast);
  } else if (all_of(values, [](PyObject *value) { return PyFloat_Check(value) != 0; })) {
    c10::SmallVector<float, 8> numbers;
    for (const py::handle value : values) numbers.push_back(static_cast<float>(PyFloat_AS_DOUBLE(value.ptr())));
    set_numbers(encoder, index, numbers, cast);
  } else if (all_of(values, [](PyObject *value) { return THPVariable_Check(value); })) {
    c10::SmallVector<uint64_t, 8> addresses;
    for (const py::handle value : values) {
      const at::Tensor &tensor = THPVariable_Unpack(value.ptr());
      mps_buffer *memory = memory_of(tensor);
      addresses.push_back(memory == nullptr ? 0 : mps_encoder_use_buffer(encoder, memory) + offset_of(tensor));
    }
    set_bytes(encoder, index, addresses.data(), addresses.size() * sizeof(uint64_t));
  } else {
    TORCH_CHECK(false, "Unexpected argument types in argument ", index, ": a list or tuple holds ints, floats or tensors, all of one kind");
  }
}

void set_argument(mps_encoder *encoder, uint32_t index, const py::handle &value, const Casts &casts) {
  if (THPVariable_Check(value.ptr())) {
    set_tensor(encoder, index, THPVariable_Unpack(value.ptr()));
  } else if (PyLong_Check(value.ptr())) {  // bools too
    set_numbers(encoder, index, c10::SmallVector<int64_t, 1>{integer(value)}, casts.of(index));
  } else if (PyFloat_Check(value.ptr())) {
    set_numbers(encoder, index, c10::SmallVector<float, 1>{static_cast<float>(PyFloat_AS_DOUBLE(value.ptr()))}, casts.of(index));
  } else if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) {
    set_list(encoder, index, py::tuple(py::reinterpret_borrow<py::object>(value)), casts.of(index));
  } else {
    TORCH_CHECK(false, "Unsupported argument type ", Py_TYPE(value.ptr())->tp_name, " of argument ", index);
  }
}

// ---- grids ----
typedef c10::SmallVector<uint64_t, 3> Dimensions;

uint64_t count_of(const py::handle &value, const char *what) {
  const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
  if (!number) {
    PyErr_Clear();
    TORCH_CHECK_TYPE(false, what, " must be an int or a sequence of 1 to 3 ints, but got ", py::repr(value).cast<std::string>());
  }
  const int64_t count = integer(number);
  TORCH_CHECK_VALUE(count >= 0, what, " must not be negative, but got ", count);
  return static_cast<uint64_t>(count);
}

std::optional<Dimensions> dimensions(const py::object &value, const char *what) {
  if (value.is_none()) return std::nullopt;
  if (PyIndex_Check(value.ptr()) || PySequence_Check(value.ptr()) == 0 || py::isinstance<py::str>(value)) return Dimensions{count_of(value, what)};
  Dimensions result;
  for (const py::handle item : py::tuple(value)) result.push_back(count_of(item, what));
  return result;
}

// ---- kernels ----
struct Kernel {
  Kernel(std::shared_ptr<Library> library, const std::string &name) : library(std::move(library)), label(intern(name)) {
    check(mps_library_pipeline(this->library->get(), name.c_str(), &pipeline));
  }
  const mps_pipeline_info &info() const { return *mps_pipeline_get_info(pipeline); }

  std::shared_ptr<Library> library;
  mps_pipeline *pipeline = nullptr;
  const char *label;
};

// What upstream takes where nothing is given: as many as fit.
void choose_group(const Dimensions &threads, const std::optional<Dimensions> &wanted, uint64_t most, uint32_t group[3]) {
  Dimensions sizes;
  if (wanted.has_value()) sizes = *wanted;
  else sizes.push_back(threads.size() == 1 ? std::min(threads[0], most) : most);
  uint64_t product = 1;
  for (size_t i = 0; i < 3; i++) {
    const uint64_t size = std::min(i < sizes.size() ? sizes[i] : 1, most + 1);
    group[i] = static_cast<uint32_t>(size);
    product *= size;
    TORCH_CHECK_VALUE(product <= most, "Threadgroup size exceeds ", most, " limit");
  }
}

void dispatch(mps_encoder *encoder, const Dimensions &given, const std::optional<Dimensions> &wanted, const Kernel &kernel) {
  uint64_t threads[3] = {1, 1, 1};
  uint32_t group[3];
  std::copy(given.begin(), given.end(), threads);
  choose_group(given, wanted, kernel.info().max_threads_per_threadgroup, group);
  // What a thread does is not known: a guess.
  mps_encoder_set_cost(encoder, 1000.0 + 2.0 * static_cast<double>(threads[0]) * static_cast<double>(threads[1]) * static_cast<double>(threads[2]));
  mps_status status = MPS_STATUS_OK;
  {
    const ReleaseGil no_gil;
    status = mps_encoder_dispatch(encoder, threads, group);
  }
  check(status);
}

void call(const Kernel &self, const py::args &arguments, const py::object &threads, const py::object &group_size, const py::object &arg_casts,
          std::optional<int64_t> error_buf_idx) {
  std::optional<Dimensions> grid = dimensions(threads, "threads");
  const std::optional<Dimensions> group = dimensions(group_size, "group_size");
  const Casts casts(arg_casts);
  mps_encoder encoder;
  mps_encoder_begin(&encoder, stream(), self.label);
  mps_encoder_set_pipeline(&encoder, self.pipeline);
  for (size_t i = 0; i < arguments.size(); i++) {
    const py::handle value = PyTuple_GET_ITEM(arguments.ptr(), static_cast<Py_ssize_t>(i));
    set_argument(&encoder, static_cast<uint32_t>(i), value, casts);
    check(encoder.failure);
    if (!grid.has_value() && THPVariable_Check(value.ptr())) grid = Dimensions{static_cast<uint64_t>(THPVariable_Unpack(value.ptr()).numel())};
  }
  if (error_buf_idx.has_value()) {
    TORCH_CHECK_VALUE(*error_buf_idx >= 0, "error_buf_idx must not be negative, but got ", *error_buf_idx);
    mps_encoder_set_error_messages(&encoder, static_cast<uint32_t>(std::min<int64_t>(*error_buf_idx, UINT32_MAX)));
    check(encoder.failure);
  }
  TORCH_CHECK(grid.has_value() && grid->size() < 4, "Number of threads is undefined or has wrong dimension");
  TORCH_CHECK(!grid->empty(), "Dispatch dimensions must be less than 3 and non-empty");
  TORCH_CHECK(!group.has_value() || group->size() == grid->size(), "size and group_size must have same number of dimensions");
  dispatch(&encoder, *grid, group, self);
}

std::shared_ptr<Kernel> kernel_named(const std::shared_ptr<Library> &library, const std::string &name) {
  // Protocols of Python ask for such names, and take no other exception.
  if (name.size() > 4 && name.compare(0, 2, "__") == 0 && name.compare(name.size() - 2, 2, "__") == 0)
    throw py::attribute_error("'_mps_ShaderLibrary' object has no attribute '" + name + "'");
  return std::make_shared<Kernel>(library, name);
}

template <class T>
void name_class(T &type) {
  type.attr("__module__") = "torch._C";
}

}  // namespace

void bind_shaders(py::module_ &module) {
  py::class_<Library, std::shared_ptr<Library>> library(module, "_mps_ShaderLibrary", py::module_local());
  library.def("__getattr__", &kernel_named).def("__dir__", &function_names);
  name_class(library);
  py::class_<PrecompiledLibrary, Library, std::shared_ptr<PrecompiledLibrary>> precompiled(module, "_mps_PrecompiledShaderLibrary",
                                                                                            py::module_local());
  name_class(precompiled);
  py::class_<Kernel, std::shared_ptr<Kernel>> kernel(module, "_mps_MetalKernel", py::module_local());
  kernel
      .def("__call__", &call, py::kw_only(), py::arg("threads") = py::none(), py::arg("group_size") = py::none(), py::arg("arg_casts") = py::none(),
           py::arg("error_buf_idx") = py::none())
      .def_property_readonly("max_threads_per_threadgroup", [](const Kernel &self) { return self.info().max_threads_per_threadgroup; })
      .def_property_readonly("thread_execution_width", [](const Kernel &self) { return self.info().thread_execution_width; })
      .def_property_readonly("static_thread_group_memory_length", [](const Kernel &self) { return self.info().static_threadgroup_bytes; });
  name_class(kernel);
  module.def("_mps_compileShader", &compile, py::arg("source"));
  module.def("_mps_loadMetalllib", &load_bytes);
  module.def("_mps_loadMetallibFromPath", &load_path);
  module.def("add_shader_include", [](const std::string &folder) { mps_library_add_include(folder.c_str()); });
  module.def("offer_shader_compiler", [](const std::string &path) { mps_library_offer_compiler(path.c_str()); });
}

}  // namespace openmps
