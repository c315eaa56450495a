#include "python/plancast/bindings/status.h"

#include <pybind11/pybind11.h>

#include <string>

namespace py = ::pybind11;

namespace plancast {
namespace {

// Bytes of a message that are shown; a reader that quotes a file may quote much of it.
constexpr size_t kLongestMessage = 4000;

// Quoted bytes need not be UTF-8.
py::object Text(const std::string& message) {
  const size_t shown = message.size() > kLongestMessage ? kLongestMessage - 20 : message.size();
  PyObject* text = PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(shown), "replace");
  if (text == nullptr) throw py::error_already_set();
  const auto whole = py::reinterpret_steal<py::object>(text);
  return shown == message.size()
             ? whole
             : whole + py::str("... (" + std::to_string(message.size()) + " bytes)");
}

}  // namespace

void ThrowStatus(const absl::Status& status) {
  const std::string message(status.message());
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kUnimplemented: {
      py::object type = py::module_::import("plancast.errors").attr("InputError");
      PyErr_SetObject(type.ptr(), Text(message).ptr());
      throw py::error_already_set();
    }
    case absl::StatusCode::kCancelled:
      // The progress callback has raised, or ctrl-C was pressed.
      if (PyErr_Occurred()) throw py::error_already_set();
      PyErr_SetNone(PyExc_KeyboardInterrupt);
      throw py::error_already_set();
    default:
      PyErr_SetString(PyExc_RuntimeError, status.ToString().c_str());
      throw py::error_already_set();
  }
}

}  // namespace plancast
