#include "compiler/lower/quantized.h"

#include <algorithm>
#include <cmath>

#include "compiler/body/partition.h"

namespace plancast {
namespace {

bool IsQuantizedProduct(const LowerContext& context, const PlanStep& step) {
  return step.kind == PlanStep::Kind::kOp && HasContraction(*step.op.rule) &&
         step.op.rule->fused().empty() &&
         context.profile->Quantizes(context.body().ops[step.op.op].name);
}

}  // namespace

double QuantizedShare(const LowerContext& context) {
  if (!context.profile->types.quantized_activations) return 1;
  return std::min(1.0, ElementBytes(context.dtype) / ElementBytes(StorageType(context.dtype)));
}

double GatheredShare(const LowerContext& context) {
  const bool gathers = context.profile->types.quantized_gathers && context.dtype == DType::kFp8;
  return gathers ? ElementBytes(context.dtype) / ElementBytes(StorageType(context.dtype))
                 : QuantizedShare(context);
}

bool GathersInParts(const LowerContext& context) {
  const bool quantizes = ElementBytes(context.dtype) < ElementBytes(StorageType(context.dtype));
  return !quantizes || GatheredShare(context) < 1;
}

Readers ReadersOf(const LowerContext& context, const BodyPlan& plan,
                  const std::vector<PlanStep>& steps, bool ports) {
  Readers readers;
  readers.products.assign(plan.values.size(), false);
  readers.others.assign(plan.values.size(), false);
  for (const std::vector<int>* handed_on : {&plan.out_ports, &plan.grad_out_ports}) {
    for (int value : *handed_on) {
      if (ports && value >= 0) readers.others[value] = true;
    }
  }
  // Who reads a piece reads the whole.
  const auto note = [&plan](std::vector<bool>* how, int value) {
    for (; value >= 0; value = plan.values[value].part_of) (*how)[value] = true;
  };
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (step->kind == PlanStep::Kind::kRelayout) {
      for (size_t i = 0; i < step->inputs.size(); ++i) {
        const int from = step->inputs[i], to = step->outputs[i];
        if (readers.products[to]) note(&readers.products, from);
        if (readers.others[to]) note(&readers.others, from);
      }
      continue;
    }
    std::vector<bool>& how = IsQuantizedProduct(context, *step) ? readers.products : readers.others;
    for (int value : step->inputs) note(&how, value);
    for (int value : step->extra_reads) note(&readers.others, value);
  }
  return readers;
}

std::vector<int64_t> KeptBytes(const LowerContext& context, const BodyPlan& plan,
                               const Buffers& buffers, const std::vector<int>& kept,
                               const std::vector<PlanStep>& steps, bool ports) {
  std::vector<int64_t> bytes = buffers.bytes;
  const double share = QuantizedShare(context);
  if (share == 1) return bytes;
  const Readers readers = ReadersOf(context, plan, steps, ports);
  std::vector<bool> holds(bytes.size(), false);
  for (int value : kept) {
    if (value >= 0 && buffers.of_value[value] >= 0) holds[buffers.of_value[value]] = true;
  }
  std::vector<bool> products(bytes.size(), false), others(bytes.size(), false);
  for (size_t v = 0; v < plan.values.size(); ++v) {
    const int buffer = buffers.of_value[v];
    if (buffer < 0) continue;
    const TensorFacts facts = FactsOf(*context.graph, context.body(), plan.values[v].ref);
    if (facts.dtype != DType::kCompute) {
      others[buffer] = true;
      continue;
    }
    if (readers.products[v]) products[buffer] = true;
    if (readers.others[v]) others[buffer] = true;
  }
  for (size_t b = 0; b < bytes.size(); ++b) {
    if (!holds[b] || !products[b]) continue;
    const auto quantized =
        static_cast<int64_t>(std::ceil(share * static_cast<double>(buffers.bytes[b])));
    bytes[b] = quantized + (others[b] ? buffers.bytes[b] : 0);
  }
  return bytes;
}

void AddQuantized(const QuantizedLife& life, int first, int last, uint16_t tensor,
                  BlockBuilder* builder) {
  int64_t now = life.entered_bytes;
  if (!life.enters) {
    now = life.bytes;
    builder->AddMemory(first, false, MemoryKind::kActivations, tensor, now);
  }
  int64_t stays = life.owners * life.bytes;
  if (life.owners > 0) stays += life.kept_bytes - life.bytes;
  if (stays != now) builder->AddMemory(last, true, MemoryKind::kActivations, tensor, stays - now);
}

}  // namespace plancast
