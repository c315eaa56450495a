#include "executor/simulate/index/periods.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace plancast {
namespace {

// Instances in which a period has to show, and how often; micro-batches of the longest; instances
// that make a while.
constexpr int32_t kWindow = 1024;
constexpr int32_t kRepeats = 4;
constexpr int32_t kMostMicroBatches = 64;
constexpr int32_t kWhile = 48;

// Whether two do the same, for whichever micro-batch.
inline bool DoTheSame(const Instance& a, const Instance& b) {
  // Of numbers that are negative where there is none.
  constexpr int32_t kNone = std::numeric_limits<int32_t>::min();
  const int32_t differ =
      (a.block ^ b.block) | (a.layer_count ^ b.layer_count) | (a.layer_begin ^ b.layer_begin) |
      (a.chunk ^ b.chunk) | (static_cast<int32_t>(a.phase) ^ static_cast<int32_t>(b.phase)) |
      (a.forward.chunk ^ b.forward.chunk) | (a.forward.layer_begin ^ b.forward.layer_begin) |
      ((a.join_end - a.join_begin) ^ (b.join_end - b.join_begin)) |
      ((a.rendezvous ^ b.rendezvous) & kNone) |
      ((a.forward.micro_batch ^ b.forward.micro_batch) & kNone);
  if (differ != 0) return false;
  return !a.pairs() ||
         a.forward.micro_batch - a.micro_batch == b.forward.micro_batch - b.micro_batch;
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
  alike_.clear();
  return true;
}

void Periods::Narrow(int32_t periods) {
  for (int32_t& length : lengths_) length /= periods;
  alike_.clear();
}

bool Periods::FindFrom(const std::vector<int32_t>& instances) {
  Forget();
  const auto programs = static_cast<int32_t>(instances.size());
  std::vector<Turn> turns;
  int64_t all = 1;  // micro-batches after which all turn
  for (int32_t p = 0; p < programs; ++p) {
    turns.push_back(TurnFrom(p, instances[p]));
    if (turns.back().length == 0) return false;
    all = std::lcm(all, int64_t{turns.back().micro_batches});
    if (all > kMostMicroBatches) return false;
  }
  for (const Turn& turn : turns) {
    lengths_.push_back(turn.length * static_cast<int32_t>(all / turn.micro_batches));
  }
  const auto end = [&](int32_t p) {
    return instances[p] + std::max(kWhile, (kRepeats - 1) * lengths_[p]);
  };
  // The ends of a while first: there it is likelier to be over.
  bool found = programs > 0;
  for (int32_t p = 0; found && p < programs; ++p) found = Alike(p, end(p));
  for (int32_t p = 0; found && p < programs; ++p) {
    for (int32_t i = instances[p]; found && i < end(p); ++i) found = Alike(p, i);
  }
  if (!found) lengths_.clear();
  return found;
}

Periods::Turn Periods::TurnFrom(int32_t program, int32_t instance) {
  const std::vector<Instance>& all = graph_.programs[program].instances;
  const auto* const begin = all.data() + instance;
  const auto count =
      static_cast<int32_t>(std::min<int64_t>(kWindow, static_cast<int64_t>(all.size()) - instance));
  // Whether two do the same, as long after those before them.
  const auto alike = [&](int32_t a, int32_t b) {
    return DoTheSame(begin[a], begin[b]) &&
           (a == 0 || begin[a].micro_batch - begin[a - 1].micro_batch ==
                          begin[b].micro_batch - begin[b - 1].micro_batch);
  };
  // Of each beginning of the window, the longest part that it both begins and ends with (Knuth,
  // Morris and Pratt): what is before it is the shortest period.
  Turn turn;
  borders_.assign(count, 0);
  for (int32_t i = 1; i < count; ++i) {
    int32_t border = borders_[i - 1];
    while (border > 0 && !alike(border, i)) border = borders_[border - 1];
    borders_[i] = border + (alike(border, i) ? 1 : 0);
    const int32_t length = i + 1 - borders_[i];
    const int32_t later = begin[length < count ? length : 0].micro_batch - begin[0].micro_batch;
    if (length * kRepeats <= i + 1 && later > 0) turn = {length, later};
    // No shorter one will come.
    if (length * kRepeats > kWindow) break;
  }
  return turn;
}

int32_t Periods::AlikeUntil(int32_t program, int32_t instance) {
  if (alike_.empty()) alike_.resize(lengths_.size());
  Stretch& known = alike_[program];
  if (instance < known.begin || instance > known.end) {
    known = {instance, instance};
    while (Alike(program, known.end)) ++known.end;
  }
  return known.end;
}

bool Periods::Alike(int32_t program_index, int32_t index) const {
  const Program& program = graph_.programs[program_index];
  const int32_t length = lengths_[program_index];
  if (index < 0 || index + length >= static_cast<int32_t>(program.instances.size())) return false;
  const Instance& a = program.instances[index];
  const Instance& b = program.instances[index + length];
  if (!DoTheSame(a, b)) return false;
  const Join* const joins_of_a = program.joins.data() + a.join_begin;
  const Join* const joins_of_b = program.joins.data() + b.join_begin;
  for (int32_t j = 0; j < a.join_end - a.join_begin; ++j) {
    const Join& x = joins_of_a[j];
    const Join& y = joins_of_b[j];
    if (x.from_port != y.from_port || x.to_port != y.to_port) return false;
    if (y.from == x.from + length) continue;
    // What happened once, or in the first micro-batch, is over.
    if (y.from != x.from || program.instances[x.from].micro_batch != 0) return false;
  }
  if (a.rendezvous < 0) return true;
  const auto& parties = graph_.rendezvous[a.rendezvous].parties;
  const auto& later = graph_.rendezvous[b.rendezvous].parties;
  return std::equal(parties.begin(), parties.end(), later.begin(), later.end(),
                    [this](const Rendezvous::Party& x, const Rendezvous::Party& y) {
                      return x.program == y.program &&
                             x.instance + lengths_[x.program] == y.instance;
                    });
}

}  // namespace plancast
