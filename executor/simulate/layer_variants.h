#ifndef PLANCAST_EXECUTOR_SIMULATE_LAYER_VARIANTS_H_
#define PLANCAST_EXECUTOR_SIMULATE_LAYER_VARIANTS_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "absl/types/span.h"
#include "executor/simulate/host_clock.h"
#include "executor/simulate/layer/layer_outcome.h"
#include "executor/simulate/overlap.h"
#include "executor/simulate/simulate.h"
#include "executor/simulate/transfers.h"

namespace plancast {

// Which blocks can run layers at once on which entity, and at what costs.
class LayerVariants {
 public:
  static constexpr int32_t kNone = -1;
  // A block at certain costs.
  struct Variant {
    std::vector<int64_t> key;
    LayerCosts costs;
    std::vector<int32_t> groups;     // per task: of a communication
    std::vector<int32_t> resources;  // that it loads and others may load too, ascending
    StreamMask contended = 0;        // streams that load these
    int32_t block = 0;
    LayerTails tails;  // empty: not asked for yet

    // Whether streams of the layer take links from each other.
    bool Shares() const { return (contended & (contended - 1)) != 0; }
  };

  LayerVariants(const SimInput& in, const HostClock& hosts, const Overlap& overlap,
                const Transfers& transfers);

  // The variant as which an entity runs a block; kNone: its tasks have to run one by one.
  int32_t Of(int32_t entity, int32_t block) {
    Answer& answer = answers_[static_cast<size_t>(entity) * in_.graph.blocks.size() + block];
    if (answer.variant == kUnasked) Ask(entity, block, answer);
    return answer.variant;
  }
  const Variant& operator[](int32_t variant) const { return variants_[variant]; }
  LayerTails& TailsOf(int32_t variant) { return variants_[variant].tails; }
  // The place in LayerCosts of a communication of a group that may last from a layer before into
  // one of a variant; kNone: what it shares with others is more than that of the variant.
  int32_t TaskBehind(int32_t variant, int stream, int32_t group);
  // Whether one loads a resource that others may load too.
  bool Loads(int32_t variant, int32_t resource) const {
    const std::vector<int32_t>& own = variants_[variant].resources;
    return std::binary_search(own.begin(), own.end(), resource);
  }
  // Whether two load the same resource that others may load too.
  bool Meet(int32_t variant, int32_t other) const;
  // Cursors that may load the links of a block, of which Of() was asked.
  absl::Span<const int32_t> RivalsOf(int32_t entity, int32_t block) const {
    const Answer& answer = answers_[static_cast<size_t>(entity) * in_.graph.blocks.size() + block];
    return absl::MakeConstSpan(rivals_).subspan(answer.rivals_begin,
                                                answer.rivals_end - answer.rivals_begin);
  }

 private:
  static constexpr int32_t kUnasked = -2;
  struct Answer {
    int32_t variant = kUnasked;
    int32_t rivals_begin = 0, rivals_end = 0;  // into rivals_
  };

  void Ask(int32_t entity, int32_t block, Answer& answer);
  LayerCosts::Task CostOf(int32_t group) const;
  // Fills in the rates of communications on links that several streams load.
  void FindShared(Variant& variant);

  const SimInput& in_;
  const HostClock& hosts_;
  const Overlap& overlap_;
  const Transfers& transfers_;
  std::vector<Answer> answers_;  // per entity and block
  std::vector<Variant> variants_;
  std::vector<std::vector<int32_t>> of_block_;
  // Rates of two groups at once, by these and by whether they run beside kernels.
  std::map<std::tuple<int32_t, int32_t, bool>, int64_t> of_two_;
  std::map<std::tuple<int32_t, int32_t, int32_t, bool>, int64_t> of_three_;
  std::vector<int32_t> rivals_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_SIMULATE_LAYER_VARIANTS_H_
