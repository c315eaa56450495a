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

// Before which of several steps a relayout comes apart where ops may be loops: the last gathers,
// or the first scatters, as a loop takes over. 0: nowhere.
size_t BorderOfLoop(const Relayout& relayout);

// Whether a tensor that is kept as `kept` is gathered over some of the axes to be read as `wanted`.
bool GathersOver(const std::vector<int>& axes, const Layout& kept, const Layout& wanted);
// The same over any axis.
bool Gathers(const Layout& kept, const Layout& wanted);
// Whether it is cut along another dim over some axis.
bool Crosses(const Layout& kept, const Layout& wanted);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_BODY_RELAYOUT_RULES_H_
