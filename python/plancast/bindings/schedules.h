#ifndef PLANCAST_PYTHON_PLANCAST_BINDINGS_SCHEDULES_H_
#define PLANCAST_PYTHON_PLANCAST_BINDINGS_SCHEDULES_H_

#include <pybind11/pybind11.h>

namespace plancast {

void BindSchedules(pybind11::module_& m);

}  // namespace plancast

#endif  // PLANCAST_PYTHON_PLANCAST_BINDINGS_SCHEDULES_H_
