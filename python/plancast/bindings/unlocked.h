#ifndef PLANCAST_PYTHON_PLANCAST_BINDINGS_UNLOCKED_H_
#define PLANCAST_PYTHON_PLANCAST_BINDINGS_UNLOCKED_H_

#include <pybind11/pybind11.h>

#include <utility>

#include "python/plancast/bindings/status.h"

namespace plancast {

// Runs `call`, which gives a StatusOr, without the GIL and gives its value.
template <typename Call>
auto Unlocked(Call call) {
  auto result = [&] {
    pybind11::gil_scoped_release release;
    return call();
  }();
  return ValueOrThrow(std::move(result));
}

}  // namespace plancast

#endif  // PLANCAST_PYTHON_PLANCAST_BINDINGS_UNLOCKED_H_
