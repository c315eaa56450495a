#include "executor/memory/outline_replay.h"

#include <algorithm>

#include "executor/memory/replay.h"

namespace plancast {
namespace {

// `layers` of a block behind what `sum` has already.
void Append(const Watermark& block, int64_t layers, Watermark* sum) {
  sum->high = std::max(sum->high, sum->net + block.Highest(layers));
  sum->net += block.net * layers;
}

PartProfile ProfileOf(const ProgramOutline& outline, const ProgramOutline::Part& part,
                      absl::Span<const BlockProfile* const> profiles) {
  PartProfile profile;
  for (int32_t i = part.begin; i < part.end; ++i) {
    const Instance& instance = outline.written.instances[i];
    const BlockProfile& block = *profiles[instance.block];
    Append(block.live, instance.layer_count, &profile.live);
    Append(block.small_pool, instance.layer_count, &profile.small_pool);
    Append(block.large_pool, instance.layer_count, &profile.large_pool);
    profile.lowest = std::min(profile.lowest, profile.live.net);
    profile.largest = std::max(profile.largest, block.largest);
  }
  return profile;
}

// Live memory and pools so far, and the most of each.
struct Sums {
  Watermark live, small, large;

  template <typename Profile>
  void Add(const Profile& profile, int64_t layers) {
    Append(profile.live, layers, &live);
    Append(profile.small_pool, layers, &small);
    Append(profile.large_pool, layers, &large);
    // Tensors of several blocks may go as one, which is rounded otherwise.
    if (live.net == 0) small.net = large.net = 0;
  }
};

}  // namespace

Peak FindPeak(const ProgramOutline& outline, absl::Span<const BlockProfile* const> profiles,
              std::vector<PartProfile>* parts) {
  parts->clear();
  Peak peak;
  for (const ProgramOutline::Part& part : outline.parts) {
    parts->push_back(ProfileOf(outline, part, profiles));
    peak.largest = std::max(peak.largest, parts->back().largest);
  }
  Sums sums;
  for (const ProgramOutline::Turn& turn : outline.turns) {
    const PartProfile& profile = (*parts)[turn.part];
    if (sums.live.net + profile.lowest > 0) {
      sums.Add(profile, 1);
      continue;
    }
    // Nothing may be alive in between.
    const ProgramOutline::Part& part = outline.parts[turn.part];
    for (int32_t i = part.begin; i < part.end; ++i) {
      const Instance& instance = outline.written.instances[i];
      sums.Add(*profiles[instance.block], instance.layer_count);
    }
  }
  peak.allocated = sums.live.high + StaticBytes(outline.written).total();
  peak.pools = {sums.small.high, sums.large.high};
  return peak;
}

bool LeavesAsMuch(const ProgramOutline& outline, absl::Span<const BlockProfile* const> profiles) {
  int64_t live = 0, small = 0, large = 0, host = 0;
  for (int32_t t = outline.like_begin; t < outline.like_end; ++t) {
    const ProgramOutline::Part& part = outline.parts[outline.turns[t].part];
    for (int32_t i = part.begin; i < part.end; ++i) {
      const Instance& instance = outline.written.instances[i];
      const BlockProfile& block = *profiles[instance.block];
      live += block.live.net * instance.layer_count;
      small += block.small_pool.net * instance.layer_count;
      large += block.large_pool.net * instance.layer_count;
      host += block.host * instance.layer_count;
    }
  }
  return live == 0 && small == 0 && large == 0 && host == 0;
}

}  // namespace plancast
