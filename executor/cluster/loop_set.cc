#include "executor/cluster/loop_set.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/picoseconds.h"

namespace plancast {
namespace {

constexpr int kPerMember = 3;  // of Positions()

int64_t Apart(int64_t a, int64_t b) { return a < b ? b - a : a - b; }

// A link that several loops use: each with its coefficient, in ascending order.
struct SharedLink {
  const std::vector<std::pair<int32_t, int64_t>>* users;
  int64_t capacity;
  uint64_t members;  // a bit for each, or for several

  // Whether it is full whenever the other is, whatever runs: all users of the other take as large a
  // part of it, or a larger one. `or_with`: also where both are always full at once.
  bool FullBefore(const SharedLink& other, bool or_with) const {
    if ((other.members & ~members) != 0 || other.users->size() > users->size()) return false;
    bool sooner = users->size() > other.users->size();
    auto own = users->begin();
    for (const auto& [m, q20] : *other.users) {
      while (own != users->end() && own->first < m) ++own;
      if (own == users->end() || own->first != m) return false;
      const int128 here = int128{own->second} * other.capacity, there = int128{q20} * capacity;
      if (here < there) return false;
      sooner = sooner || here > there;
    }
    return sooner || or_with;
  }
};

}  // namespace

LoopSet::LoopSet(std::vector<Member> members, absl::Span<const int64_t> capacities, int64_t now,
                 const Options& options)
    : members_(std::move(members)), options_(options), now_(now), fluid_(options.sharing) {
  running_.resize(members_.size());
  uses_.resize(members_.size());
  fluid_uses_.resize(members_.size());
  AddLinks(capacities);
  for (size_t m = 0; m < members_.size(); ++m) {
    const Loop& loop = *members_[m].loop;
    ActivityKinds::Kind kind;
    kind.weight = loop.weight;
    kind.priority = loop.priority;
    kind.cap_level = kind.alone_level = loop.alone_level;
    fluid_.AddKind(kind, fluid_uses_[m]);
  }
  fluid_.AdvanceTo(now);
  for (int m = 0; m < size(); ++m) {
    StartPhase(m);
    EndPhases(m);
  }
}

// Of links with the same users in the same shares only the narrowest counts.
void LoopSet::AddLinks(absl::Span<const int64_t> capacities) {
  absl::flat_hash_map<int32_t, std::vector<std::pair<int32_t, int64_t>>> users;
  for (size_t m = 0; m < members_.size(); ++m) {
    for (const Fluid::Use& use : members_[m].loop->uses) {
      users[use.resource].emplace_back(static_cast<int32_t>(m), use.coefficient_q20);
    }
  }
  std::map<std::vector<std::pair<int32_t, int64_t>>, int32_t> narrowest;
  for (auto& [link, of] : users) {
    if (of.size() < 2) continue;
    int128 demand = 0;
    for (const auto& [m, q20] : of) demand += int128{q20} * members_[m].loop->AloneQ16();
    if (demand <= int128{capacities[link]} << 36) continue;
    const auto [found, fresh] = narrowest.try_emplace(of, link);
    if (fresh) continue;
    // The lowest number of the narrowest, so that no order of hashes shows.
    const auto key = [&](int32_t l) { return std::make_pair(capacities[l], l); };
    if (key(link) < key(found->second)) found->second = link;
  }
  std::vector<SharedLink> shared;
  for (const auto& [of, link] : narrowest) {
    if (options_.waits) {
      const auto place = static_cast<int32_t>(link_of_.size());
      link_of_.push_back(link);
      capacity_of_.push_back(static_cast<double>(capacities[link]));
      for (const auto& [m, q20] : of) uses_[m].push_back({place, q20});
    }
    SharedLink one{&of, capacities[link], 0};
    for (const auto& [m, q20] : of) one.members |= uint64_t{1} << (m % 64);
    shared.push_back(one);
  }
  for (size_t i = 0; i < shared.size(); ++i) {
    bool binds = true;
    for (size_t o = 0; o < shared.size() && binds; ++o) {
      // Of links that are full together the first counts.
      if (o != i) binds = !shared[o].FullBefore(shared[i], /*or_with=*/o < i);
    }
    if (!binds) continue;
    const int32_t resource = fluid_.AddResource(shared[i].capacity);
    for (const auto& [m, q20] : *shared[i].users) fluid_uses_[m].push_back({resource, q20});
  }
}

void LoopSet::StartPhase(int m) {
  const LoopState& state = members_[m].state;
  Running& running = running_[m];
  running.compute_start = running.transfer_start = now_;
  running.compute_end = state.compute_left_ps > 0 ? now_ + state.compute_left_ps : kNever;
  running.transfer = -1;
  if (state.work_left > 0) {
    Fluid::Progress progress;
    progress.left = state.work_left;
    progress.since = now_;
    running.transfer = fluid_.Put(m, progress);
    member_of_activity_.resize(
        std::max<size_t>(member_of_activity_.size(), static_cast<size_t>(running.transfer) + 1));
    member_of_activity_[running.transfer] = m;
  }
}

// Goes on with what comes next where a phase is over.
void LoopSet::EndPhases(int m) {
  Member& member = members_[m];
  while (running_[m].compute_end == kNever && running_[m].transfer < 0) {
    LoopState& state = member.state;
    if (++state.phase == static_cast<int32_t>(member.loop->phases.size())) {
      state.phase = 0;
      ++state.iterations;
    }
    state.compute_left_ps = member.loop->phases[state.phase].compute_ps;
    state.work_left = member.loop->phases[state.phase].work;
    if (state.phase == 0 && state.iterations >= member.target) {
      stopped_.push_back(m);
      return;
    }
    StartPhase(m);
  }
}

int64_t LoopSet::NextEvent() {
  int64_t next = fluid_.NextCompletion();
  for (const Running& running : running_) next = std::min(next, running.compute_end);
  return next;
}

void LoopSet::AdvanceTo(int64_t time_ps) {
  if (options_.waits && time_ps > now_) CountWaits(time_ps);
  const absl::Span<const int32_t> ended = fluid_.AdvanceTo(time_ps);
  now_ = time_ps;
  std::vector<int32_t> members;
  for (int32_t id : ended) members.push_back(member_of_activity_[id]);
  for (int32_t m : members) {
    AddSlice(m, true, running_[m].transfer_start);
    running_[m].transfer = -1;
    members_[m].state.work_left = 0;
  }
  for (int m = 0; m < size(); ++m) {
    if (running_[m].compute_end > now_) continue;
    AddSlice(m, false, running_[m].compute_start);
    running_[m].compute_end = kNever;
    members_[m].state.compute_left_ps = 0;
    members.push_back(m);
  }
  std::sort(members.begin(), members.end());
  members.erase(std::unique(members.begin(), members.end()), members.end());
  for (int32_t m : members) EndPhases(m);
}

LoopState LoopSet::StateOf(int m) {
  LoopState state = members_[m].state;
  const Running& running = running_[m];
  if (running.compute_end != kNever) state.compute_left_ps = running.compute_end - now_;
  if (running.transfer >= 0) state.work_left = fluid_.ProgressOf(running.transfer).LeftAt(now_);
  return state;
}

std::vector<int64_t> LoopSet::Positions() {
  std::vector<int64_t> positions;
  positions.reserve(members_.size() * kPerMember);
  for (int m = 0; m < size(); ++m) {
    const LoopState state = StateOf(m);
    positions.push_back(state.phase);
    positions.push_back(state.compute_left_ps);
    positions.push_back(ActivityKinds::Duration(state.work_left, loop(m).AloneQ16()));
  }
  return positions;
}

int64_t LoopSet::Distance(const std::vector<int64_t>& a, const std::vector<int64_t>& b) const {
  int64_t most = 0;
  for (int m = 0; m < size(); ++m) {
    const int64_t* x = &a[m * kPerMember];
    const int64_t* y = &b[m * kPerMember];
    if (x[0] == y[0]) {
      most = std::max({most, Apart(x[1], y[1]), Apart(x[2], y[2])});
      continue;
    }
    // Both sides of the end of a phase: by what an iteration has left, round the end of it.
    const auto left = [&](const int64_t* of) {
      int64_t sum = std::max(of[1], of[2]);
      for (size_t p = of[0] + 1; p < loop(m).phases.size(); ++p) {
        sum += loop(m).PhasePs(static_cast<int>(p));
      }
      return sum;
    };
    const int64_t apart = Apart(left(x), left(y));
    most = std::max(most, std::min(apart, Apart(loop(m).IterationPs(), apart)));
  }
  return most;
}

void LoopSet::Skip(int64_t time_ps, const std::vector<int64_t>& iterations,
                   const std::vector<double>& waits) {
  fluid_.Shift(time_ps);
  now_ += time_ps;
  for (int m = 0; m < size(); ++m) {
    members_[m].state.iterations += iterations[m];
    Running& running = running_[m];
    if (running.compute_end != kNever) running.compute_end += time_ps;
    running.compute_start += time_ps;
    running.transfer_start += time_ps;
  }
  for (size_t w = 0; w < waits.size(); ++w) wait_seconds_[w] += waits[w];
}

// A transfer below its rate alone waits at the fullest of its links for the others there.
void LoopSet::CountWaits(int64_t until) {
  loads_.assign(capacity_of_.size(), 0);
  bool slowed = false;
  for (int m = 0; m < size(); ++m) {
    if (running_[m].transfer < 0 || uses_[m].empty()) continue;
    const int64_t rate = fluid_.RateQ16(running_[m].transfer);
    slowed = slowed || rate < loop(m).AloneQ16();
    for (const Fluid::Use& use : uses_[m]) {
      loads_[use.resource] += static_cast<double>(rate) * static_cast<double>(use.coefficient_q20);
    }
  }
  if (!slowed) return;
  const double seconds = ToSeconds(until - now_);
  for (int m = 0; m < size(); ++m) {
    if (running_[m].transfer < 0 || uses_[m].empty()) continue;
    const int64_t rate = fluid_.RateQ16(running_[m].transfer), alone = loop(m).AloneQ16();
    if (rate >= alone) continue;
    const Fluid::Use* fullest = &uses_[m][0];
    for (const Fluid::Use& use : uses_[m]) {
      if (loads_[use.resource] * capacity_of_[fullest->resource] >
          loads_[fullest->resource] * capacity_of_[use.resource]) {
        fullest = &use;
      }
    }
    const double own = static_cast<double>(rate) * static_cast<double>(fullest->coefficient_q20);
    const double others = loads_[fullest->resource] - own;
    if (others <= 0) continue;
    const double lost = seconds * (1 - static_cast<double>(rate) / static_cast<double>(alone));
    for (int o = 0; o < size(); ++o) {
      if (o == m || running_[o].transfer < 0) continue;
      for (const Fluid::Use& use : uses_[o]) {
        if (use.resource != fullest->resource) continue;
        const double share = static_cast<double>(fluid_.RateQ16(running_[o].transfer)) *
                             static_cast<double>(use.coefficient_q20) / others;
        if (share <= 0) continue;
        const int64_t key = (int64_t{m} << 44) | (int64_t{o} << 24) | use.resource;
        const auto [found, fresh] =
            wait_places_.try_emplace(key, static_cast<int32_t>(wait_seconds_.size()));
        if (fresh) wait_seconds_.push_back(0);
        wait_seconds_[found->second] += lost * share;
      }
    }
  }
}

std::vector<LoopWait> LoopSet::WaitsOf(const std::vector<double>& seconds) const {
  std::vector<LoopWait> waits;
  for (const auto& [key, place] : wait_places_) {
    if (static_cast<size_t>(place) >= seconds.size()) continue;
    LoopWait wait;
    wait.waiter = static_cast<int32_t>(key >> 44);
    wait.other = static_cast<int32_t>((key >> 24) & 0xfffff);
    wait.link = link_of_[key & 0xffffff];
    wait.seconds = seconds[place];
    waits.push_back(wait);
  }
  std::sort(waits.begin(), waits.end(), [](const LoopWait& a, const LoopWait& b) {
    return std::tie(a.waiter, a.other, a.link) < std::tie(b.waiter, b.other, b.link);
  });
  return waits;
}

void LoopSet::AddSlice(int member, bool transfer, int64_t start) {
  if (start >= options_.slices_until || start == now_) return;
  slices_.push_back({member, transfer, members_[member].state.iterations, start, now_});
}

}  // namespace plancast
