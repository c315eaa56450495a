#ifndef PLANCAST_PLANNER_FORECAST_PLAN_GRAPH_H_
#define PLANCAST_PLANNER_FORECAST_PLAN_GRAPH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cluster/machine.h"
#include "compiler/compiler.h"
#include "compiler/graph_workspace.h"
#include "compiler/session.h"
#include "graph/execution/execution_graph.h"
#include "graph/model/model_graph.h"
#include "planner/forecast/job.h"
#include "planner/forecast/pricing.h"
#include "strategy/choose_plan.h"
#include "strategy/short_form.h"

namespace plancast {

// A job on its way from description to execution graph.
struct PlanGraph {
  std::shared_ptr<const ModelGraph> graph;
  std::string graph_key;  // equal for equal graphs
  ChosenPlan chosen;
  // The job's tree with what was chosen for it; null: as the job says it.
  std::shared_ptr<const StrategyTree> tree;
  std::shared_ptr<const ExecutionGraph> execution;
};

// The facts about a model and machine that plans are checked against.
PlanContext ContextOf(const ModelGraph& graph, const Machine& machine,
                      std::optional<int64_t> global_batch);

// Draws the model as the plan wants it, once for all plans of `session` that want it so:
// PlanGraph::graph and its key.
absl::StatusOr<PlanGraph> DrawFor(const Job& job, const ShortForm& plan, Session& session);

// Draws the model and settles the plan: all but PlanGraph::execution.
absl::StatusOr<PlanGraph> SettlePlan(const Job& job, const Machine& machine, Session& session);

// Of a settled plan whose schedule follows from what passes take, the order of these, by `pricing`
// (found_order.h): its options list it, its notes say what it is. Others stay as they are. Errors:
// such a schedule without prices (nullptr); FindOrder's.
absl::Status OrderPasses(const Job& job, const Machine& machine, const Pricing* pricing,
                         Session& session, PlanGraph* plan);

// Draws the model, settles the plan, orders its passes and compiles it. Graphs are memoised in
// `session`: but for plans whose schedule follows from times only the machine's shape counts, so
// pricing a plan on another machine of the same size compiles nothing.
absl::StatusOr<PlanGraph> DrawAndCompile(const Job& job, const Machine& machine, Session& session,
                                         const Pricing* pricing = nullptr,
                                         const PassObserver& observer = nullptr);

// The same for one plan of many: `session` keeps what plans share, and the
// execution graph is that of `workspace`; the plan only points to it. `check` may
// stop the compilation (CompileRequest; the status is kResourceExhausted).
using ProgramCheck = std::function<bool(const ExecutionGraph& graph, int32_t program)>;
absl::StatusOr<PlanGraph> DrawAndCompileInto(const Job& job, const Machine& machine,
                                             const Pricing& pricing, Session& session,
                                             const ProgramCheck& check, GraphWorkspace* workspace);

}  // namespace plancast

#endif  // PLANCAST_PLANNER_FORECAST_PLAN_GRAPH_H_
