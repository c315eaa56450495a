#ifndef PLANCAST_COMPILER_BODY_RELAYOUT_RULES_H_
#define PLANCAST_COMPILER_BODY_RELAYOUT_RULES_H_

#include <cstddef>
#include <vector>

#include "compiler/body/body_plan.h"
#include "graph/model/model_graph.h"

namespace plancast {

// In which layout a step reads its input i.
const Layout& InputLayout(const OpStep& step, size_t i);

// An op that adds its inputs, element by element, and does nothing else.
bool IsPlainSum(const OpRule& rule);

// Whether a step makes gradients of a parameter of which ranks along some of `axes` have parts of
// their own (experts).
bool MakesCutGradients(const PlanStep& step, const Body& body, const std::vector<int>& axes);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BODY_RELAYOUT_RULES_H_
