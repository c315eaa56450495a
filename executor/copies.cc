// Copies of a block where nothing can come between: at once, with the times of a
// copy that ran before, or in one go.

#include <algorithm>

#include "executor/simulator.h"

namespace plancast {
namespace {

constexpr int32_t kFewestTasks = 3;  // of a block that is worth it
constexpr size_t kMostProfiles = 8;
constexpr int32_t kMostTries = 64;  // to record one
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

}  // namespace

void Simulator::AskWhole(int32_t entity, int32_t block_index, Whole& whole) {
  whole.variant = Whole::kNever;
  const int32_t program = in_.ProgramOf(entity);
  const plancast::Block& block = in_.graph.blocks[block_index];
  const BlockIndex& index = in_.index.block(block_index);
  constexpr uint8_t kKernels = 1u << kCompute;
  if (index.size < kFewestTasks || block.rendezvous_task >= 0 || index.syncs ||
      block.num_in_ports + Entry::kPorts > Entry::kMost || index.kernel_streams != kKernels ||
      (interferes_ && in_.index.program(program).kernel_streams != kKernels)) {
    return;
  }
  const int32_t row = sim_.entities[entity].price_row;
  CopyCosts costs;
  costs.launch_ps = in_.hosts[program].launch_ps;
  costs.hosted = hosted_[program];
  costs.interferes = interferes_;
  std::vector<int64_t> key = {row, costs.launch_ps, costs.hosted};
  std::vector<int32_t> watched;
  for (int32_t t = 0; t < index.size; ++t) {
    const bool is_comm = block.kind[t] == TaskKind::kComm;
    costs.slowdown_q20.push_back(is_comm ? 0 : in_.SlowdownOf(block.spec[t]));
    costs.contended.push_back(false);
    if (!is_comm) {
      costs.alone.push_back(in_.prices.Duration(row, block.spec[t]));
      continue;
    }
    const int32_t g = sim_.GroupOf(in_.uses.OfComm(program, block.spec[t]), entity);
    const SimGraph::Group& group = sim_.groups[g];
    if (group.member_end - group.member_begin != 1) return;
    costs.alone.push_back(alone_[g]);
    costs.contended.back() = contention_.of_group[g];
    key.insert(key.end(), {group.realised, alone_[g], costs.contended.back()});
    if (!contention_.of_group[g]) continue;
    for (const Fluid::Use& load : sim_.LoadsOf(group)) {
      for (const int32_t lane : contention_.LanesOn(load.resource)) {
        const bool own = lane / kNumStreams == entity;
        if (own && (index.streams >> (lane % kNumStreams) & 1) != 0) {
          costs.rivals |= uint8_t(1u << (lane % kNumStreams));
          continue;
        }
        watched.push_back(lane);
      }
    }
  }
  key.push_back(costs.rivals);
  int contended = -1;
  for (int32_t t = 0; t < index.size; ++t) {
    if (!costs.contended[t]) continue;
    const int stream = static_cast<int>(block.stream[t]);
    costs.several_contended = costs.several_contended || (contended >= 0 && contended != stream);
    contended = stream;
  }
  std::sort(watched.begin(), watched.end());
  watched.erase(std::unique(watched.begin(), watched.end()), watched.end());
  whole.watch_begin = static_cast<int32_t>(watched_.size());
  watched_.insert(watched_.end(), watched.begin(), watched.end());
  whole.watch_end = static_cast<int32_t>(watched_.size());
  for (const int32_t known : variants_of_[block_index]) {
    if (variants_[known].key == key) whole.variant = known;
  }
  if (whole.variant >= 0) return;
  whole.variant = static_cast<int32_t>(variants_.size());
  variants_of_[block_index].push_back(whole.variant);
  Variant& variant = variants_.emplace_back();
  variant.key = std::move(key);
  variant.costs = std::move(costs);
}

bool Simulator::FindEntry(int32_t entity, int32_t instance, int32_t copy, Entry& entry) {
  const int32_t program = in_.ProgramOf(entity);
  const BlockIndex& index = in_.index.BlockAt(program, instance);
  const auto end_of = [&](const TaskRef& ref) {
    return trace_.EndOf(entity, ref, in_.BlockAt(entity, ref.instance).size());
  };
  for (uint32_t rest = index.streams; rest != 0; rest &= rest - 1) {
    const int s = __builtin_ctz(rest);
    const Lane& lane = lanes_[entity * kNumStreams + s];
    int64_t end = lane.last_end;
    if (lane.instance != instance || lane.copy != copy || lane.rank != 0) {
      const TaskRef before =
          in_.index.Predecessor(program, {instance, copy, index.order[index.order_begin[s]]});
      end = before.instance < 0 ? 0 : end_of(before);
    }
    entry.Set(s, std::max(end, in_.hosts[program].start_ps));
  }
  const int32_t ports = in_.BlockAt(entity, instance).num_in_ports;
  entry.count = Entry::kPorts + ports;
  Lane at;
  at.instance = instance;
  at.copy = copy;
  for (int32_t port = 0; port <= ports; ++port) {
    TaskRef blocker;
    const int64_t end = EndOfPort(entity, at, port, &blocker);
    if (end == kUnknown) return false;
    entry.Set(port == ports ? Entry::kGate : Entry::kPorts + port, end);
  }
  entry.values[Entry::kHost] = Entry::kNone;
  if (!hosted_[program]) return true;
  const Launch launch =
      LaunchOf(in_.hosts[program], in_.index, program, {instance, copy, 0}, end_of);
  if (!launch.known) return false;
  entry.values[Entry::kHost] =
      launch.last_ps - in_.hosts[program].launch_ps * (index.launches[1] - index.launches[0]);
  // A host that goes on later would show.
  if (launch.sync.instance >= 0) entry.origin = std::max(entry.origin, end_of(launch.sync));
  return true;
}

int64_t Simulator::UnknownFrom(const Whole& whole, Plan& plan, int64_t need) {
  int64_t until = kNever;
  const auto heed = [&](int32_t lane_index) {
    const Lane& lane = lanes_[lane_index];
    until = std::min(until, lane.state == Lane::kFlies
                                ? lane.flows
                                : horizon_->BesidePlan(lane_index, plan, now_, need));
  };
  const int64_t first = plan.origin + plan.undisturbed;
  if (interferes_) {
    uint32_t rest = in_.index.program(in_.ProgramOf(plan.entity)).streams & ~plan.streams;
    for (; rest != 0 && until >= first; rest &= rest - 1) {
      const int32_t lane = plan.entity * kNumStreams + __builtin_ctz(rest);
      // One under way is among the known.
      if (lanes_[lane].state != Lane::kFlies) heed(lane);
    }
  }
  for (int32_t w = whole.watch_begin; w < whole.watch_end && until >= first; ++w) {
    heed(watched_[w]);
  }
  return until;
}

bool Simulator::FollowersWait(const Plan& plan, const std::vector<Follower>& followers) {
  const int64_t last_origin = plan.origin + (plan.copies - 1) * plan.period;
  for (const Follower& follower : followers) {
    const TaskRef next = NextAfter(plan, follower.stream);
    if (next.instance < 0) continue;
    Plan fixed = plan;
    const int64_t begin = horizon_->BeginAfterPlan(next, fixed, now_);
    if (begin < last_origin + follower.earliest || fixed.copies < plan.copies) return false;
  }
  return true;
}

TaskRef Simulator::NextAfter(const Plan& plan, int stream) const {
  const int32_t program = in_.ProgramOf(plan.entity);
  const BlockIndex& block = in_.index.BlockAt(program, plan.instance);
  const int32_t copy = plan.first_copy + plan.copies;
  if (copy < in_.index.InstanceOf(program, plan.instance).layer_count) {
    return {plan.instance, copy, block.order[block.order_begin[stream]]};
  }
  const ProgramIndex& index = in_.index.program(program);
  const int32_t at =
      index.lane_begin[stream] + lanes_[plan.entity * kNumStreams + stream].cursor + 1;
  if (at == index.lane_begin[stream + 1]) return {};
  const BlockIndex& next = in_.index.BlockAt(program, index.lane[at]);
  return {index.lane[at], 0, next.order[next.order_begin[stream]]};
}

bool Simulator::RunCopies(int32_t entity, const Lane& at) {
  const int32_t program = in_.ProgramOf(entity);
  const Instance& instance = in_.index.InstanceOf(program, at.instance);
  Whole& whole = WholeOf(entity, instance.block);
  if (whole.variant == Whole::kUnasked) AskWhole(entity, instance.block, whole);
  if (whole.variant < 0) return false;
  const BlockIndex& index = in_.index.block(instance.block);
  for (uint32_t rest = index.streams; rest != 0; rest &= rest - 1) {
    const Lane& lane = lanes_[entity * kNumStreams + __builtin_ctz(rest)];
    if (lane.instance != at.instance || lane.copy != at.copy || lane.rank != 0 ||
        lane.state > Lane::kBlocked) {
      return false;
    }
  }
  Entry entry;
  if (trace_.PieceOf(entity, at.instance, at.copy) >= 0 ||
      !FindEntry(entity, at.instance, at.copy, entry)) {
    return false;
  }
  Plan plan;
  plan.entity = entity;
  plan.streams = index.streams;
  plan.instance = at.instance;
  plan.first_copy = at.copy;
  plan.copies = 1;
  return UseProfile(whole, entry, plan) || StepThrough(whole, entry, plan);
}

bool Simulator::UseProfile(const Whole& whole, const Entry& entry, Plan plan) {
  const Variant& variant = variants_[whole.variant];
  const auto found = std::find_if(variant.profiles.begin(), variant.profiles.end(),
                                  [&](int32_t p) { return profiles_[p].Fits(entry); });
  if (found == variant.profiles.end()) return false;
  const Profile& profile = profiles_[*found];
  const int32_t program = in_.ProgramOf(plan.entity);
  const Instance& instance = in_.index.InstanceOf(program, plan.instance);
  const BlockIndex& index = in_.index.block(instance.block);
  if (profile.period > 0) {
    plan.copies = static_cast<int32_t>(
        std::min<int64_t>(instance.layer_count - plan.first_copy, profile.CopiesForHost(entry)));
  }
  plan.end = &trace_.times[profile.times + index.size];
  plan.undisturbed = profile.undisturbed;
  plan.origin = entry.origin;
  plan.period = profile.period;
  const int64_t first = std::max<int64_t>(plan.origin + plan.undisturbed, 0);
  int64_t known = kNever;  // when the next known communication begins
  for (const CommTimes::Interval& interval : comm_times_[plan.entity].known()) {
    if (interval.end <= plan.origin + profile.first_kernel) continue;
    known = std::min(known, interval.begin);
  }
  const int64_t over = plan.origin + profile.last_kernel;
  if (known < over) return false;
  const int64_t until = UnknownFrom(whole, plan, first + (plan.copies - 1) * plan.period);
  if (until < first) return false;
  if (profile.period > 0) {
    const int64_t some = 1 + std::min(until - first, known - over) / profile.period;
    plan.copies = static_cast<int32_t>(std::min<int64_t>(plan.copies, some));
  }
  if (plan.copies <= 0 || !FollowersWait(plan, profile.followers)) return false;
  trace_.Add(plan.entity, plan.instance,
             {plan.first_copy, plan.copies, *found, plan.origin, plan.period, profile.times});
  LeavePlan(plan, &trace_.times[profile.times], profile.last_kernel, profile.last_comm);
  return true;
}

bool Simulator::StepThrough(const Whole& whole, const Entry& entry, Plan plan) {
  Variant& variant = variants_[whole.variant];
  const CopyCosts& costs = variant.costs;
  const int32_t block_index = in_.index.InstanceOf(in_.ProgramOf(plan.entity), plan.instance).block;
  const plancast::Block& block = in_.graph.blocks[block_index];
  const BlockIndex& index = in_.index.block(block_index);
  const size_t columns = trace_.times.size();
  trace_.times.resize(columns + 2 * index.size);
  int64_t* const start = &trace_.times[columns];
  int64_t* const end = start + index.size;
  const bool beside = interferes_;
  if (beside) beside_ = comm_times_[plan.entity];
  int64_t lane_end[kNumStreams];
  for (int s = 0; s < kNumStreams; ++s) {
    lane_end[s] = std::max(entry.values[s], entry.values[Entry::kGate]);
  }
  for (const int32_t t : index.comms_first) {
    int64_t& last = lane_end[static_cast<int>(block.stream[t])];
    int64_t ready = last;
    for (int32_t d = index.dep_begin[t]; d < index.dep_begin[t + 1]; ++d) {
      ready = std::max(ready, end[index.deps[d]]);
    }
    for (int32_t p = index.port_begin[t]; p < index.port_begin[t + 1]; ++p) {
      ready = std::max(ready, entry.values[Entry::kPorts + index.ports[p]]);
    }
    int64_t launched = 0;
    if (costs.hosted) {
      const int64_t clock = entry.values[Entry::kHost];
      const int32_t before = index.launches[t], with = index.launches[t + 1];
      ready = std::max(ready, clock + costs.launch_ps * std::min(before + 1, with));
      launched = clock + costs.launch_ps * with;
    }
    start[t] = ready;
    last = ready + costs.alone[t];
    if (block.kind[t] == TaskKind::kKernel) {
      if (beside) {
        beside_.Forget(ready);
        last = beside_.EndOf(ready, costs.alone[t], costs.slowdown_q20[t]);
      }
      last = std::max(last, launched);
    } else if (beside && last > ready) {
      beside_.Add(ready, last, 0);
    }
    end[t] = last;
  }
  FindSpan(block, index, costs, start, end, span_);
  plan.end = end;
  plan.undisturbed = span_.undisturbed;
  bool foreign = false;  // known communications beside it
  bool runs = !costs.several_contended || !Overlap(index, costs, start, end);
  for (const CommTimes::Interval& interval : comm_times_[plan.entity].known()) {
    if (interval.begin >= span_.last_kernel || interval.end <= span_.first_kernel) continue;
    foreign = true;
    runs = runs && interval.end != CommTimes::kOpen;
  }
  runs = runs && UnknownFrom(whole, plan, span_.undisturbed) >= span_.undisturbed &&
         plan.copies > 0 && FollowersWait(plan, span_.followers);
  if (!runs) {
    trace_.times.resize(columns);
    return false;
  }
  trace_.Add(plan.entity, plan.instance,
             {plan.first_copy, 1, -1, 0, 0, static_cast<int64_t>(columns)});
  if (!foreign && variant.profiles.size() < kMostProfiles && variant.tries < kMostTries) {
    ++variant.tries;
    KeepProfile(variant, block, index, entry, static_cast<int64_t>(columns));
  }
  LeavePlan(plan, &trace_.times[columns], span_.last_kernel, span_.last_comm);
  return true;
}

bool Simulator::Overlap(const BlockIndex& index, const CopyCosts& costs, const int64_t* start,
                        const int64_t* end) {
  for (int32_t t = 0; t < index.size; ++t) {
    for (int32_t u = 0; u < t && costs.contended[t]; ++u) {
      if (costs.contended[u] && start[u] < end[t] && start[t] < end[u]) return true;
    }
  }
  return false;
}

void Simulator::KeepProfile(Variant& variant, const plancast::Block& block, const BlockIndex& index,
                            const Entry& entry, int64_t columns) {
  const int64_t* const start = &trace_.times[columns];
  std::optional<Profile> profile =
      MakeProfile(block, index, variant.costs, entry, start, start + index.size, span_);
  if (!profile.has_value()) return;
  profile->times = static_cast<int64_t>(trace_.times.size());
  for (int32_t i = 0; i < 2 * index.size; ++i) {
    trace_.times.push_back(trace_.times[columns + i] - entry.origin);
  }
  variant.profiles.push_back(static_cast<int32_t>(profiles_.size()));
  profiles_.push_back(*std::move(profile));
}

void Simulator::LeavePlan(const Plan& plan, const int64_t* times, int64_t last_kernel,
                          int64_t last_comm) {
  const Instance& instance = in_.index.InstanceOf(in_.ProgramOf(plan.entity), plan.instance);
  const plancast::Block& block = in_.graph.blocks[instance.block];
  const BlockIndex& index = in_.index.block(instance.block);
  const int64_t origin = plan.origin + (plan.copies - 1) * plan.period;
  const int64_t* const end = times + index.size;
  const int32_t first_lane = plan.entity * kNumStreams;
  for (uint32_t rest = index.streams; rest != 0; rest &= rest - 1) {
    const int s = __builtin_ctz(rest);
    Lane& lane = lanes_[first_lane + s];
    lane.state = Lane::kIdle;
    lane.last_end = origin + end[index.Last(s)];
    lane.copy = plan.first_copy + plan.copies;
    if (lane.copy == instance.layer_count) EnterInstance(first_lane + s, lane.cursor + 1);
  }
  if (interferes_) {
    CommTimes& known = comm_times_[plan.entity];
    known.Forget(lanes_[first_lane + kCompute].last_end);
    for (int32_t t = 0; t < index.size && last_comm > last_kernel; ++t) {
      if (block.kind[t] == TaskKind::kKernel || end[t] <= last_kernel || end[t] == times[t]) {
        continue;
      }
      known.Add(origin + times[t], origin + end[t], first_lane + static_cast<int>(block.stream[t]));
    }
  }
  Wake(plan.entity, index.streams);
  for (uint32_t rest = index.streams; rest != 0; rest &= rest - 1) {
    WakeWaiting(plan.entity, __builtin_ctz(rest));
  }
}

}  // namespace plancast
