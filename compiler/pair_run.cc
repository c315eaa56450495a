#include "compiler/pair_run.h"

#include <algorithm>

#include "compiler/program/pair_blocks.h"

namespace plancast {

void PairRun::Run(Pass forward, Pass backward) {
  for (Pass* pass : {&forward, &backward}) {
    while (Has(*pass) && !InList(*pass)) Alone(pass);
  }
  while (Has(forward) && Has(backward)) {
    if (!InList(forward)) {
      Alone(&forward);
    } else if (!InList(backward)) {
      Alone(&backward);
    } else {
      Together(&forward, &backward);
    }
  }
  for (Pass* pass : {&backward, &forward}) {
    while (Has(*pass)) Alone(pass);
  }
}

// Takes the next `count` layers of a pass, and what they wait for; the lowest of them.
int64_t PairRun::Take(int64_t count, Pass* pass, std::vector<Join>* joins) const {
  PassLayers& layers = pass->layers[pass->next];
  joins->insert(joins->end(), layers.joins.begin(), layers.joins.end());
  layers.joins.clear();
  layers.count -= count;
  int64_t begin = layers.begin + layers.count;
  if (pass->step->phase == Phase::kForward) {
    begin = layers.begin;
    layers.begin += count;
  }
  if (layers.count == 0) ++pass->next;
  return contents_.LayerAt(*layers.run, begin);
}

void PairRun::WentBack(const StageRun& run, int64_t count, int32_t instance) {
  went_back_ = instance;
  if (gradients_ != nullptr) gradients_->NoteBackward(run, count);
}

void PairRun::Alone(Pass* pass) {
  const PassLayers& layers = pass->layers[pass->next];
  const StageRun& run = *layers.run;
  const int32_t block = writer_.BlockOf(layers.number);
  const int64_t count = layers.count;
  std::vector<Join> joins;
  const int64_t begin = Take(count, pass, &joins);
  const Phase way = pass->step->phase;
  *pass->feeder =
      writer_.AppendCompute(block, way, *pass->step, begin, count, *pass->feeder, joins);
  if (way == Phase::kBackward) WentBack(run, count, *pass->feeder);
}

void PairRun::Together(Pass* forward, Pass* backward) {
  const PassLayers &f = forward->layers[forward->next], &b = backward->layers[backward->next];
  const StageRun& run = *b.run;
  BlockCatalogue& catalogue = writer_.catalogue();
  if (catalogue[f.number].block.layers != catalogue[b.number].block.layers) {
    // Of unlike numbers of layers that run again together.
    Alone(forward);
    Alone(backward);
    return;
  }
  const int32_t number = catalogue.Number({BlockKey::kPair, f.number, b.number}, [&] {
    return PairBlocks(catalogue[f.number], catalogue[b.number]);
  });
  const int64_t count = std::min(f.count, b.count);
  std::vector<Join> joins;
  const ProgramWriter::PairHalf ahead{forward->step, Take(count, forward, &joins),
                                      *forward->feeder};
  const ProgramWriter::PairHalf back{backward->step, Take(count, backward, &joins),
                                     *backward->feeder};
  const int32_t pair = writer_.AppendPair(writer_.BlockOf(number), ahead, back, count, joins);
  *forward->feeder = *backward->feeder = pair;
  WentBack(run, count, pair);
}

}  // namespace plancast
