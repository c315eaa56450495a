#include "tests/compiler/schedule/compiled_makespan.h"

#include "gtest/gtest.h"
#include "tests/executor/graph_builder.h"
#include "tests/executor/simulation.h"

namespace plancast {
namespace {

absl::StatusOr<RealisedCollective> Free(const GroupPattern&, const CommSpec&) {
  RealisedCollective free;
  free.rate_cap_bytes_per_s = 1;
  return free;
}

}  // namespace

double CompiledMakespan(PlanUnderTest& plan, int64_t devices,
                        const std::function<double(const KernelSpec&)>& seconds) {
  absl::StatusOr<ExecutionGraph> graph = plan.Compile();
  EXPECT_TRUE(graph.ok()) << graph.status();
  for (KernelSpec& kernel : graph->kernels) kernel.flops = seconds(kernel);
  const absl::StatusOr<Machine> machine = Machine::Create(UnitMachine(1, devices));
  EXPECT_TRUE(machine.ok()) << machine.status();
  const auto simulation = Simulation::Run(*graph, *machine, Free);
  EXPECT_TRUE(simulation.ok()) << simulation.status();
  return simulation.ok() ? (*simulation)->makespan() : -1;
}

PlanUnderTest LinearLayers(int64_t layers) {
  PlanUnderTest plan({{"hidden", 8}});
  BodyWriter& body = plan.Segment("layers", layers);
  const int x = body.InPort("x", {"batch", "seq", "hidden"});
  body.OutPort(body.Op1("fc", "linear", {x}, {{"n", "hidden"}}));
  return plan;
}

double ProductSeconds(const KernelSpec& kernel) { return kernel.family == KernelFamily::kGemm; }

}  // namespace plancast
