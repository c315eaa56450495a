#include "executor/simulate/index/periods.h"

#include <algorithm>

namespace plancast {
namespace {

// Of one micro-batch: instances of the longest period, and periods that make a while.
constexpr int32_t kLongest = 32;
constexpr int32_t kWhile = 16;

// Whether two do the same, for whichever micro-batch.
bool DoTheSame(const Instance& a, const Instance& b) {
  return a.block == b.block && a.layer_count == b.layer_count && a.layer_begin == b.layer_begin &&
         a.chunk == b.chunk && a.phase == b.phase && (a.rendezvous < 0) == (b.rendezvous < 0) &&
         a.join_end - a.join_begin == b.join_end - b.join_begin;
}

}  // namespace

Periods::Periods(const ExecutionGraph& graph) : graph_(graph) {
  const auto stages = static_cast<int32_t>(graph.programs.size());
  // Interleaved schedules go round by as many micro-batches as there are stages.
  if (Try(1) || (stages > 1 && Try(stages))) return;
  lengths_.clear();
}

bool Periods::Try(int32_t micro_batches) {
  lengths_.clear();
  for (const Program& program : graph_.programs) {
    const auto size = static_cast<int32_t>(program.instances.size());
    if (size == 0) return false;
    // What happens once has the number 0.
    const int32_t one = program.instances[size / 2].micro_batch;
    const auto count = static_cast<int32_t>(
        std::count_if(program.instances.begin(), program.instances.end(),
                      [one](const Instance& instance) { return instance.micro_batch == one; }));
    if (one == 0 || int64_t{count} * micro_batches * 4 > size) return false;
    lengths_.push_back(count * micro_batches);
  }
  for (int32_t p = 0; p < static_cast<int32_t>(graph_.programs.size()); ++p) {
    const auto size = static_cast<int32_t>(graph_.programs[p].instances.size());
    const int32_t first = (size - lengths_[p]) / 2;
    for (int32_t i = first; i < first + lengths_[p] / 2; ++i) {
      if (!Alike(p, i)) return false;
    }
  }
  return true;
}

bool Periods::Widen(int32_t periods) {
  for (size_t p = 0; p < lengths_.size(); ++p) {
    const auto size = static_cast<int64_t>(graph_.programs[p].instances.size());
    if (int64_t{4} * lengths_[p] * periods > size) return false;
  }
  for (int32_t& length : lengths_) length *= periods;
  return true;
}

void Periods::Narrow(int32_t periods) {
  for (int32_t& length : lengths_) length /= periods;
}

bool Periods::FindFrom(const std::vector<int32_t>& instances) {
  lengths_.clear();
  const auto programs = static_cast<int32_t>(instances.size());
  for (int32_t p = 0; p < programs; ++p) {
    lengths_.push_back(NextAlike(p, instances[p]));
    if (lengths_.back() == 0) break;
  }
  bool found = programs > 0 && lengths_.back() > 0;
  // The ends of a while first: there it is likelier to be over.
  for (int32_t p = 0; found && p < programs; ++p) {
    found = Alike(p, instances[p] + kWhile * lengths_[p]);
  }
  for (int32_t p = 0; found && p < programs; ++p) {
    for (int32_t i = 0; found && i < kWhile * lengths_[p]; ++i) found = Alike(p, instances[p] + i);
  }
  if (!found) lengths_.clear();
  return found;
}

int32_t Periods::NextAlike(int32_t program, int32_t instance) const {
  const std::vector<Instance>& all = graph_.programs[program].instances;
  const int64_t end =
      std::min<int64_t>(static_cast<int64_t>(all.size()), int64_t{instance} + kLongest + 1);
  for (int32_t next = instance + 1; next < end; ++next) {
    if (all[next].micro_batch == all[instance].micro_batch + 1 &&
        DoTheSame(all[instance], all[next])) {
      return next - instance;
    }
  }
  return 0;
}

bool Periods::Alike(int32_t program_index, int32_t index) const {
  const Program& program = graph_.programs[program_index];
  const int32_t length = lengths_[program_index];
  if (index < 0 || index + length >= static_cast<int32_t>(program.instances.size())) return false;
  const Instance& a = program.instances[index];
  const Instance& b = program.instances[index + length];
  if (!DoTheSame(a, b)) return false;
  for (int32_t j = 0; j < a.join_end - a.join_begin; ++j) {
    const Join& x = program.joins[a.join_begin + j];
    const Join& y = program.joins[b.join_begin + j];
    if (x.from_port != y.from_port || x.to_port != y.to_port) return false;
    // What happened once, or in the first micro-batch, is over.
    const bool once = y.from == x.from && program.instances[x.from].micro_batch == 0;
    if (y.from != x.from + length && !once) return false;
  }
  if (a.rendezvous < 0) return true;
  const auto& parties = graph_.rendezvous[a.rendezvous].parties;
  const auto& later = graph_.rendezvous[b.rendezvous].parties;
  if (parties.size() != later.size()) return false;
  for (size_t i = 0; i < parties.size(); ++i) {
    if (parties[i].program != later[i].program ||
        later[i].instance != parties[i].instance + lengths_[parties[i].program]) {
      return false;
    }
  }
  return true;
}

}  // namespace plancast
