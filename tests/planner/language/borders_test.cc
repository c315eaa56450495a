// What crosses between stages with unlike meshes, in compiled plans: elements of a prime field are
// where the next stage reads them, gradients where the stage before does, and the messages of the
// execution graph are those that moved them.

#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/program/stage_reshard.h"
#include "gtest/gtest.h"
#include "planner/forecast/plan_graph.h"
#include "tests/executor/graph_builder.h"
#include "tests/graph/reshard_simulator.h"
#include "tests/planner/language/random_job.h"
#include "tests/testing/seed.h"

namespace plancast {
namespace {

constexpr int kPlans = 150;

// A reshard with what it moves, kept beyond the compilation.
struct Crossing {
  int reshard = 0;
  bool backward = false;
  std::vector<BorderTensor> tensors;
  ReshardSide from, to;  // without layouts
};

// The stage's devices by themselves.
ReshardSide SideOf(const StagePlace& place) {
  std::vector<MeshAxis> axes = place.mesh->axes();
  for (MeshAxis& axis : axes) axis.size = axis.name == "pp" ? 1 : axis.size;
  ReshardSide side;
  side.mesh = *DeviceMesh::Create(axes);
  side.first_device = place.first_device;
  return side;
}

std::string WayOf(const ReshardProgram& program) {
  std::string way(kReshardStrategyNames[program.strategy]);
  for (const RelayoutStep& step : program.after) {
    for (const int axis : step.axes) absl::StrAppend(&way, ".", axis);
  }
  return way;
}

using Messages = std::map<std::pair<int64_t, int64_t>, double>;  // bytes by sender and receiver

// Moves the tensors in the way of this name; what the messages hold together.
Messages Move(const Crossing& crossing, const std::string& name, double* after) {
  Messages messages;
  for (const BorderTensor& tensor : crossing.tensors) {
    ReshardProblem problem{tensor.shape, crossing.from, crossing.to};
    problem.source.layout = crossing.backward ? tensor.after : tensor.before;
    problem.target.layout = crossing.backward ? tensor.before : tensor.after;
    const auto programs = PlanReshards(problem);
    EXPECT_TRUE(programs.ok()) << programs.status();
    if (!programs.ok()) continue;
    for (const ReshardProgram& program : *programs) {
      if (WayOf(program) != name) continue;
      EXPECT_EQ(ReshardSimulator(problem).Run(program), "") << ReshardText(problem, &program);
      program.transfers.ForEach([&](const Transfer& transfer) {
        messages[{crossing.from.first_device + transfer.source,
                  crossing.to.first_device + transfer.target}] +=
            static_cast<double>(transfer.elements) * tensor.element_bytes;
      });
      for (const RelayoutStep& step : program.after) {
        *after += static_cast<double>(step.elements) * tensor.element_bytes;
      }
    }
  }
  return messages;
}

TEST(BordersTest, EveryElementIsWhereTheNextStageReadsIt) {
  auto seed = static_cast<uint32_t>(TestSeed(1));
  int64_t plans = 0, ways = 0, tensors = 0, backward = 0;
  for (; plans < kPlans && !HasFailure(); ++seed) {
    const RandomJob random = DrawJob(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << random.DebugString());
    const absl::StatusOr<Machine> shape = Machine::Create(UnitMachine(1, random.devices));
    ASSERT_TRUE(shape.ok()) << shape.status();
    Session session;
    const absl::StatusOr<PlanGraph> plan = SettlePlan(random.job, *shape, session);
    if (!plan.ok() || plan->chosen.options.stages.empty()) continue;
    const SoftwareProfile profile =
        random.job.profile.For(random.job.dtype, plan->chosen.options.schedule);
    std::vector<Crossing> crossings;
    CompileRequest request;
    request.graph = plan->graph.get();
    request.tree = &random.job.strategy;
    request.options = &plan->chosen.options;
    request.profile = &profile;
    request.on_border = [&](const CrossedBorder& border) {
      crossings.push_back({border.reshard,
                           border.backward,
                           {border.tensors.begin(), border.tensors.end()},
                           SideOf(border.from),
                           SideOf(border.to)});
    };
    const absl::StatusOr<ExecutionGraph> graph = Compile(request, session);
    if (!graph.ok()) continue;
    ++plans;
    for (const Crossing& crossing : crossings) {
      tensors += static_cast<int64_t>(crossing.tensors.size());
      backward += crossing.backward;
      for (const Reshard::Way& way : graph->reshards[crossing.reshard].ways) {
        SCOPED_TRACE(way.name);
        ++ways;
        double after = 0;
        Messages messages = Move(crossing, way.name, &after);
        EXPECT_EQ(way.after.bytes, static_cast<int64_t>(std::ceil(after)));
        EXPECT_EQ(way.flows.size(), messages.size());
        for (const Reshard::Flow& flow : way.flows) {
          EXPECT_EQ(flow.bytes, static_cast<int64_t>(std::ceil(messages[{flow.from, flow.to}])));
        }
      }
    }
  }
  std::cout << plans << " plans, " << tensors << " tensors at borders, " << backward
            << " reshards backward, " << ways << " ways\n";
  EXPECT_GT(backward, plans / 2);
}

}  // namespace
}  // namespace plancast
