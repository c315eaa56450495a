#ifndef PLANCAST_TESTS_COMPILER_BODY_PLAN_ORACLE_H_
#define PLANCAST_TESTS_COMPILER_BODY_PLAN_ORACLE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cluster/device_mesh.h"
#include "compiler/body/body_plan.h"
#include "graph/model/model_graph.h"
#include "tests/graph/array.h"
#include "tests/graph/field.h"

namespace plancast {

// A body as one device runs it: the op steps of a plan in order, on whole tensors of symbols from
// the prime field, drawn by `seed`. What relayouts and sums of a plan do is no part of it.
class UndividedBody {
 public:
  UndividedBody(const ModelGraph& graph, const BoundBody& bound, const BodyPlan& plan,
                uint64_t seed);

  // Of a gradient the sum of what has been added to it; drawn if nobody makes it (model inputs,
  // parameters, what comes in by ports, gradients of the loss).
  const Array<Field>& Of(const TensorRef& ref);
  // As the op step reads it: small numbers where a rule takes exponentials, of which exp(a + b) =
  // exp(a) exp(b) then holds.
  static Field AsRead(const OpStep& step, size_t input, Field value);

 private:
  void Run(const OpStep& step);
  Array<Field> Draw(const TensorRef& ref) const;

  const ModelGraph& graph_;
  const Body& body_;
  const uint64_t seed_;
  absl::flat_hash_map<TensorRef, Array<Field>> tensors_;
};

// A plan as all devices of the mesh run it, step by step, relayouts included, against the
// undivided body. Ops whose data name places (experts' slots) are beyond it, for it draws data
// without promises.
class PlanOracle {
 public:
  PlanOracle(const ModelGraph& graph, const DeviceMesh& mesh, const BoundBody& bound,
             const BodyPlan& plan, uint64_t seed);

  // "", or which value differs or is not there where a step reads it: every tensor made forward,
  // every gradient that leaves by a port, and the sum of each parameter's gradients.
  std::string Check();

 private:
  using Devices = std::vector<Array<Field>>;  // one tensor, by device

  std::string Run(const std::vector<PlanStep>& steps, bool backward);
  std::string RunOp(const PlanStep& step);
  // An op that is a loop over parts: what each device does in each step as if it were a device of
  // its own, which holds that step's part of what came, and their results put together.
  std::string RunLoop(const PlanStep& step);
  std::string RunRelayout(const PlanStep& step);
  std::string RunAdd(const PlanStep& step);
  // What of the step's split is true of a sum that is taken before its reduction.
  std::pair<FactorSplit, OpPartition> SplitOf(const OpStep& step) const;
  // The value, laid out over the devices; of what comes from outside as its layout says.
  absl::StatusOr<const Devices*> Held(int value);
  Devices Laid(const Array<Field>& whole, const Layout& layout) const;
  // The tensor again, partial sums added up. "" if all copies are alike and where they must be.
  std::string Assemble(int value, Array<Field>* whole);
  std::string Compare(int value);
  std::string CompareParameterGradients();
  std::string NameOf(int value) const;

  const ModelGraph& graph_;
  const DeviceMesh& mesh_;
  const BoundBody& bound_;
  const BodyPlan& plan_;
  UndividedBody undivided_;
  std::vector<Devices> values_;     // empty: not made
  std::vector<bool> from_outside_;  // ports
};

}  // namespace plancast

#endif  // PLANCAST_TESTS_COMPILER_BODY_PLAN_ORACLE_H_
