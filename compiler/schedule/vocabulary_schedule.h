#ifndef PLANCAST_COMPILER_SCHEDULE_VOCABULARY_SCHEDULE_H_
#define PLANCAST_COMPILER_SCHEDULE_VOCABULARY_SCHEDULE_H_

#include <cstdint>

#include "strategy/plan_options.h"
#include "strategy/schedule/schedule_table.h"

namespace plancast {

// What the chunks of a stage are where all stages hold a part of the vocabulary: its layers, then
// its parts of the output and of the input layer.
struct VocabularyChunks {
  int32_t layers = 1;

  explicit VocabularyChunks(int64_t chunks) : layers(static_cast<int32_t>(chunks)) {}
  explicit VocabularyChunks(const PlanOptions& options) : VocabularyChunks(options.vpp) {}

  bool AreLayers(int32_t chunk) const { return chunk < layers; }
  int32_t output() const { return layers; }
  int32_t input() const { return layers + 1; }
};

// Whether a chunk makes gradients of weights in a pass of their own.
inline bool SplitsBackward(const PlanOptions& options, int32_t chunk) {
  if (!options.spreads_vocabulary()) return options.splits_backward();
  const VocabularyChunks chunks(options);
  if (chunks.AreLayers(chunk)) return options.splits_backward();
  return options.splits_output() && chunk == chunks.output();
}

// The order in which `stages` stages work where the vocabulary is spread over them: one chunk of
// layers each in the manner of 1f1b (of zbvhalf and zbvmin two), and the output and the input
// layer, for which stages meet once a micro-batch, all in one order (`micro_batches` visits and one
// more).
//  - vocab1, vocab2 (Yeung et al. 2024): at visit v a stage does what is left of micro-batch v - 1
//    (T: the backward pass of the output layer; vocab2: its gradients of weights), then the forward
//    pass of v (S; vocab2: with gradients of inputs). What they sum is on its way beside the
//    layers. So the last stage goes back one turn later than in 1f1b, with vocab1 two, and each
//    stage has that many micro-batches more in flight. The order is that of a pipeline in step
//    where a forward pass takes one, a backward pass two units of time, a sum half a unit, and
//    visits none. With zbvhalf and zbvmin, whose passes take one unit each, there are so many
//    periods more between a micro-batch's way there and back (TableOfVBlock), and a visit is one
//    unit behind the forward pass that it waits for, which its broadcast has.
//  - interlaced (nnScaler: Lin et al. 2024): in each turn a stage goes forward and back once, odd
//    ones from the end forward first, so that all come to the output layer at once; 3/2 as many
//    micro-batches in flight.
// The input layer's results are summed a visit before the first stage wants them, and its
// gradients handed out before the second visit that follows the first stage's backward pass.
// `schedule`: that of layers. `interlaced` has one of its own.
ScheduleTable VocabularySchedule(VocabParallel how, Schedule schedule, int64_t stages,
                                 int64_t micro_batches);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_SCHEDULE_VOCABULARY_SCHEDULE_H_
