#ifndef PLANCAST_COMPILER_BODY_DIFFERENTIATE_H_
#define PLANCAST_COMPILER_BODY_DIFFERENTIATE_H_

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/body/body_plan.h"
#include "compiler/session.h"
#include "graph/model/model_graph.h"

namespace plancast {

// How software runs ops again.
struct ReplayPolicy {
  bool only_needed = false;   // none that only lead to results that nobody reads
  bool keeps_unread = false;  // what a set of ops keeps stays though no gradient reads it
};

// The forward steps of a body and the backward steps derived from its rules,
// last op first. An op whose weight gradient is a matrix product of its own
// gets two steps, input gradient first, so that communication can hide behind
// the second. Ops that run again do so group by group, before the first step that is
// theirs or reads them. `fusions`: labels of ops that run as one kernel.
absl::StatusOr<DifferentiatedBody> DifferentiateBody(const ModelGraph& graph,
                                                     const BoundBody& bound,
                                                     const std::set<std::string>& fusions,
                                                     Session& session, ReplayPolicy policy = {});

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BODY_DIFFERENTIATE_H_
