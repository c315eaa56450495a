#include "collectives/programs/flows.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "collectives/programs/check/buffers.h"
#include "collectives/programs/check/connections.h"

namespace plancast {
namespace {

// Walks through a program once, remembering which chunk of the collective each cell
// of memory holds and which flows led to each step.
class Walk {
 public:
  Walk(const ChunkProgram& program, const ChunkConnections& connections, int64_t bytes)
      : p_(program), connections_(connections), bytes_(bytes) {
    int64_t cells = 0;
    for (int32_t rank = 0; rank < p_.num_ranks(); ++rank) {
      layouts_.push_back(LayoutOf(p_, rank));
      first_cell_.push_back(cells);
      cells += layouts_.back().cells;
      for (size_t b = 0; b < p_.ranks[rank].blocks.size(); ++b) rank_of_.push_back(rank);
    }
    chunk_of_.assign(cells, -1);
    for (int32_t rank = 0; rank < p_.members(); ++rank) {
      const bool part = p_.kind == ProgramKind::kAllGather || p_.kind == ProgramKind::kGather;
      const int64_t start = part ? PartStart(p_, rank) : 0;
      const int32_t input = ShareOf(p_, rank).input;
      for (int32_t i = 0; i < input; ++i) {
        chunk_of_[first_cell_[rank] + layouts_[rank].input.start + i] = start + i;
      }
    }
    at_.resize(rank_of_.size());
    before_.resize(rank_of_.size());
    queues_.resize(connections.all.size());
    for (size_t b = 0; b < rank_of_.size(); ++b) {
      reached_.emplace_back(BlockOf(static_cast<int32_t>(b)).steps.size());
    }
  }

  absl::StatusOr<std::vector<Flow>> Do() {
    const auto blocks = static_cast<int32_t>(rank_of_.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (int32_t b = 0; b < blocks; ++b) {
        while (at_[b] < static_cast<int32_t>(BlockOf(b).steps.size()) && Advance(b)) moved = true;
      }
    }
    for (int32_t b = 0; b < blocks; ++b) {
      if (at_[b] == static_cast<int32_t>(BlockOf(b).steps.size())) continue;
      const int32_t block = b - connections_.first_block[rank_of_[b]];
      return absl::InvalidArgumentError(
          absl::StrCat(ToString({rank_of_[b], block, at_[b]}),
                       " never starts: steps wait for each other. Check the program."));
    }
    Order();
    return std::move(flows_);
  }

 private:
  struct Message {
    std::vector<int64_t> chunks;
    int64_t flow = 0;
  };

  const ThreadBlock& BlockOf(int32_t b) const {
    return p_.ranks[rank_of_[b]].blocks[b - connections_.first_block[rank_of_[b]]];
  }
  int64_t& ChunkAt(int32_t rank, const ChunkSpan& span, int32_t i) {
    return chunk_of_[first_cell_[rank] + layouts_[rank].of(span.buffer).start + span.first + i];
  }
  int64_t BytesOf(int64_t chunk) const {
    if (chunk < 0) chunk = 0;
    const auto start = [&](int64_t i) {
      return static_cast<int64_t>(absl::uint128(i) * absl::uint128(bytes_) /
                                  absl::uint128(p_.chunks));
    };
    return start(chunk + 1) - start(chunk);
  }

  bool Advance(int32_t b) {
    const int32_t rank = rank_of_[b];
    const ChunkStep& step = BlockOf(b).steps[at_[b]];
    std::vector<int64_t> after = before_[b];
    if (step.after.block >= 0) {
      const int32_t other = connections_.first_block[rank] + step.after.block;
      if (at_[other] <= step.after.step) return false;
      const std::vector<int64_t>& flows = reached_[other][step.after.step];
      after.insert(after.end(), flows.begin(), flows.end());
    }
    Message carried;
    carried.chunks.resize(step.op == ChunkOp::kNop ? 0 : MessageChunks(step));
    if (Receives(step.op)) {
      std::deque<Message>& queue = queues_[connections_.in[b]];
      if (queue.empty()) return false;
      carried = std::move(queue.front());
      queue.pop_front();
      after.push_back(carried.flow);
    } else if (ReadsSource(step.op)) {
      for (size_t i = 0; i < carried.chunks.size(); ++i) {
        carried.chunks[i] = ChunkAt(rank, step.source, static_cast<int32_t>(i));
      }
    }
    if (WritesTarget(step.op)) {
      for (size_t i = 0; i < carried.chunks.size(); ++i) {
        ChunkAt(rank, step.target, static_cast<int32_t>(i)) = carried.chunks[i];
      }
    }
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    if (Sends(step.op)) {
      Flow flow;
      flow.id = static_cast<int64_t>(flows_.size());
      flow.src = rank;
      flow.dst = BlockOf(b).send_peer;
      flow.channel = BlockOf(b).channel;
      for (const int64_t chunk : carried.chunks) flow.bytes += BytesOf(chunk);
      for (const int64_t other : after) flow.step = std::max(flow.step, flows_[other].step + 1);
      flow.deps = std::move(after);
      after = {flow.id};
      carried.flow = flow.id;
      flows_.push_back(std::move(flow));
      queues_[connections_.out[b]].push_back(std::move(carried));
    }
    reached_[b][at_[b]] = after;
    before_[b] = std::move(after);
    ++at_[b];
    return true;
  }

  void Order() {
    std::vector<int64_t> order(flows_.size()), number(flows_.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      const Flow &x = flows_[a], &y = flows_[b];
      return std::tie(x.step, x.src, x.dst, x.channel, a) <
             std::tie(y.step, y.src, y.dst, y.channel, b);
    });
    for (size_t i = 0; i < order.size(); ++i) number[order[i]] = static_cast<int64_t>(i);
    std::vector<Flow> sorted;
    sorted.reserve(flows_.size());
    for (const int64_t old : order) {
      Flow& flow = sorted.emplace_back(std::move(flows_[old]));
      flow.id = number[old];
      for (int64_t& dep : flow.deps) dep = number[dep];
      std::sort(flow.deps.begin(), flow.deps.end());
    }
    flows_ = std::move(sorted);
  }

  const ChunkProgram& p_;
  const ChunkConnections& connections_;
  const int64_t bytes_;
  std::vector<BufferLayout> layouts_;
  std::vector<int64_t> first_cell_;
  std::vector<int64_t> chunk_of_;             // per cell; -1: none
  std::vector<int32_t> rank_of_;              // per block
  std::vector<int32_t> at_;                   // per block, its next step
  std::vector<std::vector<int64_t>> before_;  // per block, flows that its next step follows
  std::vector<std::vector<std::vector<int64_t>>> reached_;  // per block and step
  std::vector<std::deque<Message>> queues_;
  std::vector<Flow> flows_;
};

}  // namespace

absl::StatusOr<std::vector<Flow>> FlowsOf(const ChunkProgram& program, int64_t bytes) {
  if (bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("flows of ", bytes, " bytes; the size must not be negative."));
  }
  int64_t messages = 0;
  for (const RankProgram& rank : program.ranks) {
    for (const ThreadBlock& block : rank.blocks) {
      for (const ChunkStep& step : block.steps) messages += Sends(step.op) ? 1 : 0;
    }
  }
  if (messages > kMostFlows) {
    return absl::InvalidArgumentError(
        absl::StrCat("the program has ", messages, " messages; at most ", kMostFlows,
                     " are listed. Take fewer GPUs or fewer channels."));
  }
  ASSIGN_OR_RETURN(const ChunkConnections connections, ConnectChunks(program));
  return Walk(program, connections, bytes).Do();
}

std::string FlowsCsv(const std::vector<Flow>& flows) {
  std::string csv = "id,src,dst,bytes,channel,step,deps\n";
  for (const Flow& flow : flows) {
    absl::StrAppend(&csv, flow.id, ",", flow.src, ",", flow.dst, ",", flow.bytes, ",", flow.channel,
                    ",");
    absl::StrAppend(&csv, flow.step, ",", absl::StrJoin(flow.deps, " "), "\n");
  }
  return csv;
}

}  // namespace plancast
