#ifndef PLANCAST_COMPILER_COMPILER_H_
#define PLANCAST_COMPILER_COMPILER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "compiler/body/place.h"
#include "compiler/session.h"
#include "graph/dtype.h"
#include "graph/execution/execution_graph.h"
#include "graph/model/model_graph.h"
#include "strategy/plan_options.h"
#include "strategy/software_profile.h"
#include "strategy/strategy_tree.h"

namespace plancast {

struct CrossedBorder;  // compiler/program/stage_reshard.h

// What is compiled: a model graph (any micro-batch size; bound here), a
// strategy whose plan-wide choices are settled, and how the framework runs.
struct CompileRequest {
  const ModelGraph* graph = nullptr;
  const StrategyTree* tree = nullptr;
  const PlanOptions* options = nullptr;
  const SoftwareProfile* profile = nullptr;
  DType dtype = DType::kBf16;
  // What is compiled is what runs there, where nodes are on some ranks (PlacesOf). Compile takes
  // all places by itself.
  Place place;
  // Two requests of equal keys give equal graphs; empty: not known (the session
  // then shares single bodies only).
  std::string graph_key;
  // Asked about program `program` of a graph in the making, first with nothing
  // but the static memory of the program, then with all of it. False stops the
  // compilation with kResourceExhausted: a plan that does not fit is not worth
  // the rest of it.
  std::function<bool(const ExecutionGraph& graph, int32_t program)> check;
  // Errors: kResourceExhausted if `check` refuses a program.
  absl::Status Check(const ExecutionGraph& graph, int32_t program) const;
  // Told of each reshard between stages with meshes of their own, if there is someone to tell.
  std::function<void(const CrossedBorder& border)> on_border;
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
