#include "compiler/lower/rebuilt_weights.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/lower/op_memory.h"
#include "graph/model/nf4.h"

namespace plancast {

int RebuiltWeights::Before(const PlanStep* begin, const PlanStep* end,
                           const std::vector<int>& deps) {
  double elements = 0;
  for (const PlanStep* step = begin; step != end; ++step) {
    for (const int v : step->inputs) {
      if (v < 0) continue;
      const Value& value = plan_.values[v];
      if (value.ref.op >= 0 || value.ref.grad) continue;
      if (context_.body().tensors[value.ref.tensor].at_rest == AtRest::kAsUsed) continue;
      const TensorFacts facts = FactsOf(*context_.graph, context_.body(), value.ref);
      elements += value.layout.LocalElements(*context_.mesh, facts.shape);
    }
  }
  bytes_ = 0;
  if (elements == 0) return BlockBuilder::kNone;
  bytes_ = static_cast<int64_t>(std::ceil(elements * context_.Bytes(DType::kCompute)));
  const std::string& op = context_.body().ops[begin->op.op].name;
  const int task = builder_.AddKernel(
      MemoryKernel(context_, "rebuild", elements * kNf4ElementBytes, static_cast<double>(bytes_)),
      PurposeOf(begin->part), absl::StrCat(op, ".rebuild"), deps);
  tensor_ = builder_.AddTensor(NameIn(path_, absl::StrCat(op, "/weights")));
  builder_.AddMemory(task, /*after=*/false, MemoryKind::kWorkspace, tensor_, bytes_);
  return task;
}

void RebuiltWeights::GiveUp(int task) {
  if (bytes_ == 0) return;
  builder_.AddMemory(task, /*after=*/true, MemoryKind::kWorkspace, tensor_, -bytes_);
  bytes_ = 0;
}

}  // namespace plancast
