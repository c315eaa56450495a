#ifndef PLANCAST_COMPILER_SHARED_LAYOUTS_H_
#define PLANCAST_COMPILER_SHARED_LAYOUTS_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "compiler/bind/bind.h"
#include "compiler/program/compiled_body.h"
#include "compiler/program/shared_parameters.h"

namespace plancast {

// OK if all users of a parameter keep it in one layout; else an error that names two that do not,
// and the axis. `bodies`: one a segment.
absl::Status CheckKeptAlike(const BoundModel& bound,
                            const std::vector<std::shared_ptr<const CompiledBody>>& bodies,
                            const SharedParameter& parameter);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SHARED_LAYOUTS_H_
