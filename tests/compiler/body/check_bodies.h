#ifndef PLANCAST_TESTS_COMPILER_BODY_CHECK_BODIES_H_
#define PLANCAST_TESTS_COMPILER_BODY_CHECK_BODIES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "compiler/plan_bodies.h"
#include "compiler/session.h"
#include "tests/compiler/body/plan_oracle.h"

namespace plancast {

// What the oracle says of the bodies of a plan.
struct CheckedBodies {
  std::string wrong;  // of the first body that differs from one device, PlanOracle::Check
  size_t loops = 0;   // over parts, in all of them
};

// Compiles every body of a plan by itself and runs it as all devices do, on symbols drawn by
// `seed`, against one device. Errors: the plan does not compile.
inline absl::StatusOr<CheckedBodies> CheckBodies(const CompileRequest& request, uint64_t seed) {
  Session session;
  ASSIGN_OR_RETURN(const auto compiled, CompileBodies(request, session, nullptr));
  const BoundModel& bound = compiled->bound;
  CheckedBodies checked;
  for (size_t b = 0; b < bound.bodies.size() && checked.wrong.empty(); ++b) {
    const BodyPlan& plan = compiled->bodies[b]->plan;
    checked.wrong = PlanOracle(bound.graph, bound.mesh, bound.bodies[b], plan, seed).Check();
    checked.loops += plan.loops.size();
  }
  return checked;
}

// The same in words: "", what differs, or why the plan does not compile.
inline std::string WrongBodies(const CompileRequest& request, uint64_t seed) {
  const absl::StatusOr<CheckedBodies> checked = CheckBodies(request, seed);
  return checked.ok() ? checked->wrong : std::string(checked.status().message());
}

}  // namespace plancast

#endif  // PLANCAST_TESTS_COMPILER_BODY_CHECK_BODIES_H_
