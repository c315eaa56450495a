#include "collectives/programs/check/symbolic_run.h"

#include <deque>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collectives/programs/check/races.h"

namespace plancast {
namespace {

using Value = Provenance::Value;

constexpr int64_t kMaxSymbols = 1 << 25;
constexpr int64_t kMaxClockWork = 1 << 26;
constexpr int64_t kMaxMoved = 1 << 26;  // chunks, over all steps

class Run {
 public:
  Run(const ChunkProgram& program, const ChunkConnections& connections)
      : p_(program),
        connections_(connections),
        in_flight_(connections.all.size()),
        at_(connections.out.size(), 0),
        queued_(connections.out.size(), false) {}

  absl::StatusOr<SymbolicResult> Do() {
    FillMemory();
    IndexBlocks();
    const auto blocks = static_cast<int32_t>(at_.size());
    for (int32_t b = 0; b < blocks; ++b) Enqueue(b);
    while (!ready_.empty()) {
      const int32_t b = ready_.front();
      ready_.pop_front();
      queued_[b] = false;
      RETURN_IF_ERROR(Advance(b));
    }
    for (int32_t b = 0; b < blocks; ++b) {
      if (at_[b] < StepsOf(b)) return NameCycle(b);
    }
    return std::move(result_);
  }

 private:
  const ThreadBlock& BlockOf(int32_t b) const {
    return p_.ranks[rank_of_[b]].blocks[b - connections_.first_block[rank_of_[b]]];
  }
  int32_t StepsOf(int32_t b) const { return static_cast<int32_t>(BlockOf(b).steps.size()); }
  ChunkPlace PlaceOf(int32_t b, int32_t step) const {
    return {rank_of_[b], b - connections_.first_block[rank_of_[b]], step};
  }

  void FillMemory() {
    int64_t cells = 0;
    for (int32_t rank = 0; rank < p_.num_ranks(); ++rank) {
      result_.layouts.push_back(LayoutOf(p_, rank));
      result_.first_cell.push_back(cells);
      cells += result_.layouts.back().cells;
    }
    result_.cells.resize(cells);
    for (int32_t rank = 0; rank < p_.num_ranks(); ++rank) {
      const int64_t start = result_.first_cell[rank] + result_.layouts[rank].input.start;
      const int32_t input = ShareOf(p_, rank).input;
      for (int32_t i = 0; i < input; ++i) {
        result_.cells[start + i].value = result_.values.Atom(rank, i);
      }
    }
  }

  void IndexBlocks() {
    int64_t ordered = 0;
    for (int32_t rank = 0; rank < p_.num_ranks(); ++rank) {
      const int32_t first = connections_.first_block[rank];
      for (const ThreadBlock& block : p_.ranks[rank].blocks) {
        rank_of_.push_back(rank);
        for (const ChunkStep& step : block.steps) {
          if (Sends(step.op)) ++ordered;
          if (step.after.block < 0) continue;
          awaited_.insert(int64_t{first + step.after.block} << 32 | step.after.step);
          ++ordered;
        }
      }
    }
    const auto blocks = static_cast<int64_t>(at_.size());
    if ((ordered + blocks) * blocks <= kMaxClockWork) {
      races_.emplace(static_cast<int32_t>(blocks), static_cast<int32_t>(connections_.all.size()),
                     static_cast<int64_t>(result_.cells.size()));
    }
  }

  void Enqueue(int32_t b) {
    if (queued_[b]) return;
    queued_[b] = true;
    ready_.push_back(b);
  }

  // What the block's next step waits for: the block that has to go on first, or -1.
  int32_t WaitsFor(int32_t b) const {
    const ChunkStep& step = BlockOf(b).steps[at_[b]];
    if (step.after.block >= 0) {
      const int32_t other = connections_.first_block[rank_of_[b]] + step.after.block;
      if (at_[other] <= step.after.step) return other;
    }
    if (!Receives(step.op)) return -1;
    const ChunkConnection& link = connections_.all[connections_.in[b]];
    if (!in_flight_[connections_.in[b]].empty()) return -1;
    return connections_.first_block[link.sender_rank] + link.sender_block;
  }

  absl::Status Advance(int32_t b) {
    while (at_[b] < StepsOf(b)) {
      const int32_t other = WaitsFor(b);
      if (other >= 0) {
        waiting_on_[other].push_back(b);
        return absl::OkStatus();
      }
      RETURN_IF_ERROR(Execute(b, BlockOf(b).steps[at_[b]]));
      const int64_t key = int64_t{b} << 32 | at_[b];
      if (races_ && awaited_.contains(key)) races_->Publish(b, at_[b]);
      ++at_[b];
      const auto waiting = waiting_on_.find(b);
      if (waiting == waiting_on_.end()) continue;
      const std::vector<int32_t> wake = std::move(waiting->second);
      waiting_on_.erase(waiting);
      for (const int32_t w : wake) Enqueue(w);
    }
    return absl::OkStatus();
  }

  absl::Status Execute(int32_t b, const ChunkStep& step) {
    const int32_t s = at_[b];
    if (races_) {
      races_->Begin(b, s);
      if (step.after.block >= 0) {
        races_->WaitFor(b, connections_.first_block[rank_of_[b]] + step.after.block,
                        step.after.step);
      }
    }
    if (step.op == ChunkOp::kNop) return absl::OkStatus();
    const int32_t count = MessageChunks(step);
    moved_ += count;
    if (moved_ > kMaxMoved || result_.values.size() > kMaxSymbols) {
      return absl::InvalidArgumentError(
          absl::StrCat(ToString(PlaceOf(b, s)), " comes too late to be checked: before it, ",
                       moved_, " chunks moved and sums of ", result_.values.size(),
                       " chunks were formed. Check the program over fewer gpus."));
    }
    std::vector<Value> carried(count, Provenance::kNothing);
    if (Receives(step.op)) {
      const int32_t in = connections_.in[b];
      carried = std::move(in_flight_[in].front());
      in_flight_[in].pop_front();
      if (races_) races_->Receive(b, in);
    }
    if (ReadsSource(step.op)) {
      const bool sum = Receives(step.op);
      for (int32_t i = 0; i < count; ++i) {
        ASSIGN_OR_RETURN(const Value value, Read(b, s, step.source, i));
        if (!sum) {
          carried[i] = value;
          continue;
        }
        RETURN_IF_ERROR(AddTo(b, s, value, carried[i]));
      }
    }
    if (WritesTarget(step.op)) {
      for (int32_t i = 0; i < count; ++i) {
        if (step.op == ChunkOp::kReduce) {
          ASSIGN_OR_RETURN(const Value value, Read(b, s, step.target, i));
          RETURN_IF_ERROR(AddTo(b, s, value, carried[i]));
        }
        const int64_t cell = CellOf(b, step.target, i);
        if (races_) {
          RETURN_IF_ERROR(NoRace(b, s, step.target, i, races_->Write(b, s, cell)));
        }
        result_.cells[cell] = {carried[i], PlaceOf(b, s).block, s};
      }
    }
    if (Sends(step.op)) {
      const int32_t out = connections_.out[b];
      in_flight_[out].push_back(std::move(carried));
      if (races_) races_->Send(b, out);
    }
    return absl::OkStatus();
  }

  int64_t CellOf(int32_t b, const ChunkSpan& span, int32_t i) const {
    const int32_t rank = rank_of_[b];
    return result_.first_cell[rank] + result_.layouts[rank].of(span.buffer).start + span.first + i;
  }

  static std::string NameOf(const ChunkSpan& span, int32_t i) {
    const char* buffer = span.buffer == ChunkBuffer::kInput    ? "input"
                         : span.buffer == ChunkBuffer::kOutput ? "output"
                                                               : "scratch";
    return absl::StrCat("chunk ", span.first + i, " of the ", buffer);
  }

  absl::StatusOr<Value> Read(int32_t b, int32_t s, const ChunkSpan& span, int32_t i) {
    const int64_t cell = CellOf(b, span, i);
    if (races_) {
      RETURN_IF_ERROR(NoRace(b, s, span, i, races_->Read(b, s, cell)));
    }
    const Value value = result_.cells[cell].value;
    if (value != Provenance::kNothing) return value;
    return absl::InvalidArgumentError(absl::StrCat(ToString(PlaceOf(b, s)), " reads ",
                                                   NameOf(span, i),
                                                   ", which nobody wrote before. Is it another "
                                                   "buffer, or is a step missing?"));
  }

  absl::Status AddTo(int32_t b, int32_t s, Value value, Value& sum) {
    const Provenance::Sum added = result_.values.Add(sum, value);
    if (added.value == Provenance::kNothing) {
      return absl::InvalidArgumentError(absl::StrCat(
          ToString(PlaceOf(b, s)), " adds chunk ", added.twice_chunk, " of gpu ", added.twice_rank,
          " a second time: it is in ", DescribeValue(result_.values, sum), " and in ",
          DescribeValue(result_.values, value), "."));
    }
    sum = added.value;
    return absl::OkStatus();
  }

  absl::Status NoRace(int32_t b, int32_t s, const ChunkSpan& span, int32_t i,
                      const std::optional<Races::Step>& other) const {
    if (!other) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(ToString(PlaceOf(b, s)), " and ", ToString(PlaceOf(other->block, other->step)),
                     " both touch ", NameOf(span, i),
                     ", one of them writes, and nothing orders them. Let one wait for the "
                     "other."));
  }

  absl::Status NameCycle(int32_t b) const {
    // Everyone who is not done waits for someone who is not; so the path comes back.
    absl::flat_hash_set<int32_t> seen;
    while (seen.insert(b).second) b = WaitsFor(b);
    std::string circle = ToString(PlaceOf(b, at_[b]));
    int32_t other = b, named = 0;
    do {
      other = WaitsFor(other);
      if (++named <= 8) {
        absl::StrAppend(&circle, " waits for ", ToString(PlaceOf(other, at_[other])),
                        other == b ? "" : ", which");
      }
    } while (other != b);
    if (named > 8) absl::StrAppend(&circle, " waits for ", named - 8, " more");
    return absl::InvalidArgumentError(
        absl::StrCat("a deadlock: ", circle, ". Break the circle of waiting."));
  }

  const ChunkProgram& p_;
  const ChunkConnections& connections_;
  SymbolicResult result_;
  std::vector<int32_t> rank_of_;                           // per block
  std::vector<std::deque<std::vector<Value>>> in_flight_;  // per connection
  std::vector<int32_t> at_;                                // per block: its next step
  std::deque<int32_t> ready_;
  std::vector<bool> queued_;
  absl::flat_hash_map<int32_t, std::vector<int32_t>> waiting_on_;
  absl::flat_hash_set<int64_t> awaited_;  // block << 32 | step
  std::optional<Races> races_;
  int64_t moved_ = 0;
};

}  // namespace

absl::StatusOr<SymbolicResult> RunOnSymbols(const ChunkProgram& program,
                                            const ChunkConnections& connections) {
  return Run(program, connections).Do();
}

std::string DescribeValue(const Provenance& values, Provenance::Value value) {
  const absl::Span<const uint64_t> atoms = values.Atoms(value);
  if (atoms.empty()) return "nothing";
  const auto name = [](uint64_t atom) {
    return absl::StrCat("chunk ", atom & 0xffffffff, " of gpu ", atom >> 32);
  };
  if (atoms.size() == 1) return name(atoms[0]);
  std::string text = absl::StrCat("the sum of ", name(atoms[0]));
  for (size_t i = 1; i < atoms.size() && i < 4; ++i) absl::StrAppend(&text, ", ", name(atoms[i]));
  if (atoms.size() > 4) absl::StrAppend(&text, " and ", atoms.size() - 4, " more");
  return text;
}

}  // namespace plancast
