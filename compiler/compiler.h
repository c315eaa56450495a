#ifndef PLANCAST_COMPILER_COMPILER_H_
#define PLANCAST_COMPILER_COMPILER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/session.h"
#include "graph/dtype.h"
#include "graph/execution_graph.h"
#include "graph/model_graph.h"
#include "strategy/plan_options.h"
#include "strategy/software_profile.h"
#include "strategy/strategy_tree.h"

namespace plancast {

// What is compiled: a model graph (any micro-batch size; bound here), a
// strategy whose plan-wide choices are settled, and how the framework runs.
struct CompileRequest {
  const ModelGraph* graph = nullptr;
  const StrategyTree* tree = nullptr;
  const PlanOptions* options = nullptr;
  const SoftwareProfile* profile = nullptr;
  DType dtype = DType::kBf16;
};

// Called after each pass with its name (`bind`, `differentiate`, `partition`,
// `relayout`, `synchronise`, `schedule`, `lower`) and a stable text dump of its result.
using PassObserver = std::function<void(absl::string_view pass, const std::string& dump)>;

// bind -> differentiate -> partition -> relayout -> synchronise -> schedule ->
// lower. Emits structure, never time. Per-body work is memoised in `session`.
absl::StatusOr<ExecutionGraph> Compile(const CompileRequest& request, Session& session,
                                       const PassObserver& observer = nullptr);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_COMPILER_H_
