#include "executor/profile.h"

#include <algorithm>

namespace plancast {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

class Maker {
 public:
  Maker(const Block& block, const BlockIndex& index, const CopyCosts& costs, const Entry& entry,
        const int64_t* start, const int64_t* end, const CopySpan& span)
      : block_(block),
        index_(index),
        costs_(costs),
        entry_(entry),
        start_(start),
        end_(end),
        span_(span) {}

  std::optional<Profile> Make() {
    profile_.limits.assign(entry_.count, kNoLimit);
    for (int32_t t = 0; t < index_.size; ++t) {
      if (!ExplainStart(t)) return std::nullopt;
    }
    for (uint64_t choice : choices_) {
      if ((choice & profile_.exact) != 0) continue;
      // Ports go on from copy to copy, gates do not.
      const uint64_t ports = choice >> Entry::kPorts << Entry::kPorts;
      const uint64_t from = ports != 0 ? ports : choice;
      profile_.exact |= from & -from;
    }
    if (!ExplainEnds() || !OwnGaps()) return std::nullopt;
    for (int64_t& limit : profile_.limits) {
      if (limit != kNoLimit) limit -= entry_.origin;
    }
    KeepSpan();
    FindPeriod();
    return std::move(profile_);
  }

 private:
  bool IsComm(int32_t t) const { return block_.kind[t] == TaskKind::kComm; }

  // Which inputs a task starts on, if it starts on none of its copy.
  bool ExplainStart(int32_t t) {
    const int stream = static_cast<int>(block_.stream[t]);
    const int32_t rank = index_.rank[t];
    uint64_t inputs = 0;  // that it waits for
    int64_t before = Entry::kNone, deps = Entry::kNone;
    if (rank > 0) {
      before = end_[index_.order[index_.order_begin[stream] + rank - 1]];
    } else {
      inputs |= uint64_t{1} << stream | uint64_t{1} << Entry::kGate;
    }
    for (int32_t d = index_.dep_begin[t]; d < index_.dep_begin[t + 1]; ++d) {
      deps = std::max(deps, end_[index_.deps[d]]);
    }
    for (int32_t p = index_.port_begin[t]; p < index_.port_begin[t + 1]; ++p) {
      inputs |= uint64_t{1} << (Entry::kPorts + index_.ports[p]);
    }
    // On a task of another stream: an input as late might go before it.
    const bool alone = deps == start_[t] && before < start_[t];
    int64_t ready = std::max(before, deps);
    uint64_t latest = 0;
    for (uint64_t rest = inputs; rest != 0; rest &= rest - 1) {
      const int input = __builtin_ctzll(rest);
      const int64_t value = entry_.values[input];
      if (value > start_[t] || (alone && value == start_[t])) return false;
      ready = std::max(ready, value);
      if (value == start_[t]) latest |= uint64_t{1} << input;
      int64_t& limit = profile_.limits[input];
      limit = std::min(limit, start_[t] - (alone ? 1 : 0));
    }
    if (costs_.hosted) {
      const int64_t first =
          entry_.values[Entry::kHost] +
          costs_.launch_ps * std::min(index_.launches[t] + 1, index_.launches[t + 1]);
      if (first > ready) profile_.exact |= uint64_t{1} << Entry::kHost;
      LimitHost(first, start_[t]);
      if (first > ready) {
        if (start_[t] != first) return false;
        return true;
      }
    }
    if (start_[t] != ready) return false;
    if (std::max(before, deps) < start_[t]) choices_.push_back(latest);
    return true;
  }

  // The host's clock may rise until a launch that is at `launch` is at `most`.
  void LimitHost(int64_t launch, int64_t most) {
    int64_t& limit = profile_.limits[Entry::kHost];
    limit = std::min(limit, entry_.values[Entry::kHost] + most - launch);
  }

  // The host does not hold any end up, or always as much.
  bool ExplainEnds() {
    for (int32_t t = 0; t < index_.size && costs_.hosted; ++t) {
      if (IsComm(t)) continue;
      const int64_t launched =
          entry_.values[Entry::kHost] + costs_.launch_ps * index_.launches[t + 1];
      // A kernel of several launches may end with the last, or at that time by chance.
      const bool several = index_.launches[t + 1] - index_.launches[t] > 1;
      if (launched == end_[t] && (several || launched > start_[t] + costs_.alone[t])) {
        profile_.exact |= uint64_t{1} << Entry::kHost;
      }
      LimitHost(launched, end_[t] - (several && launched < end_[t] ? 1 : 0));
    }
    if ((profile_.exact >> Entry::kHost & 1) != 0) {
      profile_.limits[Entry::kHost] = entry_.values[Entry::kHost];
    }
    return true;
  }

  // After its first kernel a copy waits for nothing that came before it.
  bool OwnGaps() const {
    const int compute = static_cast<int>(StreamKind::kCompute);
    return end_[index_.order[index_.order_begin[compute]]] >= entry_.origin;
  }

  void KeepSpan() {
    const int64_t origin = entry_.origin;
    profile_.first_kernel = span_.first_kernel - origin;
    profile_.last_kernel = span_.last_kernel - origin;
    profile_.last_comm = span_.last_comm - origin;
    profile_.undisturbed = span_.undisturbed - origin;
    profile_.followers = span_.followers;
    for (Follower& follower : profile_.followers) follower.earliest -= origin;
  }

  // Whether what follows in the next copy does.
  bool NextFollows(int64_t period) const {
    for (const Follower& follower : profile_.followers) {
      const int32_t first = index_.order[index_.order_begin[follower.stream]];
      if (start_[first] - entry_.origin + period < follower.earliest) return false;
    }
    return true;
  }

  void FindPeriod() {
    Entry next;
    next.count = entry_.count;
    for (uint32_t rest = index_.streams; rest != 0; rest &= rest - 1) {
      const int s = __builtin_ctz(rest);
      next.Set(s, end_[index_.Last(s)]);
    }
    for (int port = 0; Entry::kPorts + port < entry_.count; ++port) {
      int64_t end = Entry::kNone;
      if (port < static_cast<int>(block_.out_ports.size())) {
        const int32_t out = block_.out_ports[port];
        end = out >= 0 ? end_[out] : entry_.values[Entry::kPorts + ~out];
      }
      next.Set(Entry::kPorts + port, end);
    }
    profile_.host_ps = costs_.launch_ps * index_.launches.back();
    const int64_t period = next.origin - entry_.origin;
    next.values[Entry::kHost] =
        costs_.hosted ? entry_.values[Entry::kHost] + profile_.host_ps : Entry::kNone;
    const bool later = costs_.interferes && profile_.last_comm > period + profile_.first_kernel;
    if (period > 0 && !later && NextFollows(period) && profile_.Fits(next)) {
      profile_.period = period;
    }
  }

  const Block& block_;
  const BlockIndex& index_;
  const CopyCosts& costs_;
  const Entry& entry_;
  const int64_t* start_;
  const int64_t* end_;
  const CopySpan& span_;
  std::vector<uint64_t> choices_;  // inputs, one of which has to be exact
  Profile profile_;
};

}  // namespace

void FindSpan(const Block& block, const BlockIndex& index, const CopyCosts& costs,
              const int64_t* start, const int64_t* end, CopySpan& span) {
  span.first_kernel = kNoLimit;
  span.last_kernel = span.last_comm = span.undisturbed = Entry::kNone;
  span.followers.clear();
  for (int32_t t = 0; t < index.size; ++t) {
    if (block.kind[t] == TaskKind::kComm) {
      span.last_comm = std::max(span.last_comm, end[t]);
      if (costs.contended[t]) span.undisturbed = std::max(span.undisturbed, end[t]);
    } else {
      span.first_kernel = std::min(span.first_kernel, start[t]);
      span.last_kernel = std::max(span.last_kernel, end[t]);
    }
  }
  const int64_t contended = span.undisturbed;
  if (costs.interferes) span.undisturbed = std::max(span.undisturbed, span.last_kernel);
  // Streams that are free again before what others must not disturb is over.
  for (uint32_t rest = index.streams; rest != 0; rest &= rest - 1) {
    const int stream = __builtin_ctz(rest);
    const bool slows = costs.interferes && stream != static_cast<int>(StreamKind::kCompute);
    int64_t earliest = slows ? span.last_kernel : Entry::kNone;
    if ((costs.rivals >> stream & 1) != 0) earliest = std::max(earliest, contended);
    if (end[index.Last(stream)] < earliest) span.followers.push_back({stream, earliest});
  }
}

int64_t Profile::CopiesForHost(const Entry& entry) const {
  const int64_t slack = limits[Entry::kHost] == kNoLimit
                            ? kNoLimit
                            : limits[Entry::kHost] - (entry.values[Entry::kHost] - entry.origin);
  if (slack == kNoLimit || host_ps <= period) return kNoLimit;
  return 1 + slack / (host_ps - period);
}

std::optional<Profile> MakeProfile(const Block& block, const BlockIndex& index,
                                   const CopyCosts& costs, const Entry& entry, const int64_t* start,
                                   const int64_t* end, const CopySpan& span) {
  return Maker(block, index, costs, entry, start, end, span).Make();
}

}  // namespace plancast
