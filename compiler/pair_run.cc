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

// Takes the next `count` layers of a pass, as an instance runs them.
PassLayers PairRun::Take(int64_t count, Pass* pass) const {
  PassLayers& left = pass->layers[pass->next];
  PassLayers taken = left;
  taken.count = count;
  left.joins.clear();
  left.ports = ProgramWriter::kAllPorts;
  left.count -= count;
  if (pass->step->phase == Phase::kForward) {
    left.begin += count;
  } else {
    taken.begin += left.count;
  }
  taken.begin = contents_.LayerAt(*taken.run, taken.begin);
  if (left.count == 0) ++pass->next;
  return taken;
}

void PairRun::Note(const PassLayers& layers, Phase way, int32_t instance) {
  if (layers.reduces) reduced_ = instance;
  if (way == Phase::kForward) return;
  went_back_ = instance;
  if (gradients_ != nullptr) gradients_->NoteBackward(*layers.run, layers.count);
}

void PairRun::Alone(Pass* pass) {
  const PassLayers layers = Take(pass->layers[pass->next].count, pass);
  const Phase way = pass->step->phase;
  *pass->feeder =
      writer_.AppendCompute(writer_.BlockOf(layers.number), way, *pass->step, layers.begin,
                            layers.count, *pass->feeder, layers.joins, layers.ports);
  Note(layers, way, *pass->feeder);
}

void PairRun::Together(Pass* forward, Pass* backward) {
  const PassLayers &f = forward->layers[forward->next], &b = backward->layers[backward->next];
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
  const PassLayers ahead = Take(count, forward), back = Take(count, backward);
  const int32_t pair = writer_.AppendPair(
      writer_.BlockOf(number),
      {forward->step, ahead.begin, *forward->feeder, ahead.joins, ahead.ports},
      {backward->step, back.begin, *backward->feeder, back.joins, back.ports}, count);
  *forward->feeder = *backward->feeder = pair;
  Note(ahead, Phase::kForward, pair);
  Note(back, Phase::kBackward, pair);
}

}  // namespace plancast
