// Prints the execution graph of a random job: bazel run //tests/planner/language:show_job -- SEED

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "planner/forecast/plan_graph.h"
#include "tests/executor/graph_builder.h"
#include "tests/planner/language/random_job.h"

int main(int argc, char** argv) {
  const plancast::RandomJob random =
      plancast::DrawJob(argc > 1 ? static_cast<uint32_t>(std::strtoul(argv[1], nullptr, 10)) : 0);
  std::cout << random.DebugString() << "\n";
  const auto machine = plancast::Machine::Create(plancast::UnitMachine(1, random.devices));
  plancast::Session session;
  const auto plan = plancast::DrawAndCompile(random.job, *machine, session);
  if (!plan.ok()) {
    std::cout << plan.status() << "\n";
    return 1;
  }
  std::cout << plan->graph->DebugString() << plan->execution->DebugString();
  for (const plancast::Program& program : plan->execution->programs) {
    std::map<std::string, int64_t> left;
    for (const plancast::Instance& instance : program.instances) {
      const plancast::Block& block = plan->execution->blocks[instance.block];
      for (const plancast::MemoryEvent& event : block.memory) {
        left[block.tensors[event.tensor]] += event.delta * instance.layer_count;
      }
    }
    for (const auto& [tensor, bytes] : left) {
      if (bytes != 0) std::cout << program.name << " leaves " << bytes << " of " << tensor << "\n";
    }
  }
  for (const plancast::KernelSpec& kernel : plan->execution->kernels) {
    std::cout << kernel.DebugString() << ": " << kernel.flops << " FLOPs\n";
  }
}
