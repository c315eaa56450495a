#include "python/plancast/bindings/status.h"

#include <pybind11/pybind11.h>

#include <string>

namespace py = ::pybind11;

namespace plancast {

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
      PyErr_SetString(type.ptr(), message.c_str());
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
