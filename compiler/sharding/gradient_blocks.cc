#include "compiler/sharding/gradient_blocks.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/sharding/synchronise.h"

namespace plancast {
namespace {

bool Adds(const BlockTemplate& in, int task) {
  return in.block.kind[task] == TaskKind::kKernel &&
         in.kernels[in.block.spec[task]].label == "grad_accumulate";
}

// The task that adds what `task` makes, or -1.
int AddedBy(const BlockTemplate& in, int task) {
  for (int t = task + 1; t < in.block.size(); ++t) {
    if (!Adds(in, t)) continue;
    const auto begin = in.block.deps.begin();
    const auto end = begin + in.block.dep_begin[t + 1];
    if (std::find(begin + in.block.dep_begin[t], end, task) != end) return t;
  }
  return -1;
}

void AddEvent(int task, bool after, uint16_t tensor, int64_t delta, Block* block) {
  MemoryEvent event;
  event.task = task;
  event.after = after;
  event.kind = MemoryKind::kGradients;
  event.tensor = tensor;
  event.delta = delta;
  block->memory.push_back(event);
}

uint16_t AddTensor(const char* name, Block* block) {
  block->tensors.emplace_back(name);
  return static_cast<uint16_t>(block->tensors.size() - 1);
}

bool LeftOut(const BlockTemplate::Gradient& gradient, const std::vector<bool>* whole) {
  return whole != nullptr && !(*whole)[gradient.tensor];
}

// Calls `use(gradient, elements)` for each gradient with the elements that it makes anew.
template <typename Use>
void ForEachFresh(const BlockTemplate& backward, int64_t parameters, const std::vector<bool>* whole,
                  Use use) {
  for (const BlockTemplate::Gradient& gradient : backward.gradients) {
    if (LeftOut(gradient, whole) || gradient.further) continue;
    const int64_t elements = std::min(gradient.elements, parameters);
    if (elements == 0) continue;
    parameters -= elements;
    use(gradient, elements);
  }
}

}  // namespace

int64_t FreshGradientBytes(const BlockTemplate& backward, int64_t parameters, double element_bytes,
                           const std::vector<bool>* whole) {
  int64_t total = 0;
  ForEachFresh(backward, parameters, whole, [&](const BlockTemplate::Gradient&, int64_t elements) {
    total += WholeBytes(elements, element_bytes);
  });
  return total;
}

BlockTemplate WithFreshGradients(const BlockTemplate& backward, int64_t parameters,
                                 double element_bytes, const std::vector<bool>* whole) {
  BlockTemplate fresh = backward;
  const uint16_t tensor = AddTensor(kFreshGradients, &fresh.block);
  ForEachFresh(backward, parameters, whole,
               [&](const BlockTemplate::Gradient& g, int64_t elements) {
                 AddEvent(g.task, /*after=*/false, tensor, WholeBytes(elements, element_bytes),
                          &fresh.block);
               });
  SortMemory(&fresh.block);
  return fresh;
}

bool AddsGradients(const BlockTemplate& backward) {
  for (int t = 0; t < backward.block.size(); ++t) {
    if (Adds(backward, t)) return true;
  }
  return false;
}

int32_t WithGradients(int32_t plain, const GradientPass& pass, BlockCatalogue* catalogue) {
  const auto number = [&](BlockKey::Kind kind, int64_t parameters, const auto& make) {
    if (pass.whole == nullptr) return catalogue->Number({kind, plain, parameters}, make);
    std::string key = absl::StrCat("gradients|", static_cast<int>(kind), "|", plain, "|");
    for (const bool whole : *pass.whole) key += whole ? '1' : '0';
    return catalogue->NumberOfText(key, make);
  };
  if (pass.first) {
    return number(BlockKey::kFreshGradients, pass.parameters, [&] {
      return WithFreshGradients((*catalogue)[plain], pass.parameters, ElementBytes(pass.sum),
                                pass.whole);
    });
  }
  if (!AddsGradients((*catalogue)[plain])) return plain;
  return number(BlockKey::kAddedGradients, 0, [&] {
    return WithAddedGradients((*catalogue)[plain], ElementBytes(pass.made), pass.whole);
  });
}

BlockTemplate WithAddedGradients(const BlockTemplate& backward, double made_bytes,
                                 const std::vector<bool>* whole) {
  BlockTemplate added = backward;
  const uint16_t tensor = AddTensor("gradients of a micro-batch", &added.block);
  for (const BlockTemplate::Gradient& g : backward.gradients) {
    const int by = LeftOut(g, whole) ? -1 : AddedBy(backward, g.task);
    if (by < 0) continue;
    const int64_t bytes = WholeBytes(g.elements, made_bytes);
    AddEvent(g.task, /*after=*/false, tensor, bytes, &added.block);
    AddEvent(by, /*after=*/true, tensor, -bytes, &added.block);
  }
  SortMemory(&added.block);
  return added;
}

}  // namespace plancast
