#include "collectives/synthesis/schedule_program.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "collectives/programs/rank_builder.h"

namespace plancast {
namespace {

class ProgramWriter {
 public:
  ProgramWriter(const LinkGraph& graph, ProgramKind kind, int32_t root,
                const SynthesisProblem& problem)
      : graph_(graph), kind_(kind), problem_(problem) {
    program_.kind = kind;
    program_.root = root;
    program_.in_place = kind != ProgramKind::kAllToAll;
    program_.chunks = problem.copies * Parts();
    for (const GraphLink& link : graph.links()) {
      program_.channels = std::max(program_.channels, link.width);
    }
    ranks_.assign(graph.nodes(), RankBuilder(0, 0));
    scratch_.assign(graph.nodes(), 0);
    last_.assign(graph.nodes(), std::vector<ChunkDependency>(problem.chunks()));
  }

  void Add(const SynchronousSchedule& schedule, bool collect) {
    for (const SynchronousSchedule::Step& step : schedule.steps) {
      std::map<std::pair<int32_t, int32_t>, int32_t> sent;  // over each link
      for (const ScheduledSend& send : step.sends) {
        const int32_t width = graph_.links()[graph_.Find(send.from, send.to)].width;
        const int32_t channel = sent[{send.from, send.to}]++ % width;
        const ChunkSpan from = Place(send.from, send.chunk), to = Place(send.to, send.chunk);
        // What arrived last at the sender includes all that arrived before.
        ranks_[send.from].Step(Block(send.from, send.to, channel, true), ChunkOp::kSend, from, to,
                               last_[send.from][send.chunk]);
        ChunkDependency& last = last_[send.to][send.chunk];
        const int32_t block = Block(send.to, send.from, channel, false);
        // Sums of one chunk are added up one after the other.
        last = collect ? ranks_[send.to].Step(block, ChunkOp::kRecvReduceCopy, to, to, last)
                       : ranks_[send.to].Step(block, ChunkOp::kRecv, from, to, {});
      }
    }
  }

  ChunkProgram Take() {
    for (int32_t v = 0; v < graph_.nodes(); ++v) {
      if (kind_ == ProgramKind::kAllToAll) {
        const int32_t own = v * problem_.copies, block = ranks_[v].Block(-1, -1, 0);
        for (int32_t i = own; i < own + problem_.copies; ++i) {
          ranks_[v].Step(block, ChunkOp::kCopy, {ChunkBuffer::kInput, i, 1},
                         {ChunkBuffer::kOutput, i, 1}, {});
        }
      }
      program_.ranks.push_back(ranks_[v].Take());
      Declare(v, program_.ranks.back());
    }
    return std::move(program_);
  }

 private:
  bool Rooted() const { return kind_ == ProgramKind::kBroadcast || kind_ == ProgramKind::kReduce; }
  int32_t Parts() const { return Rooted() ? 1 : graph_.nodes(); }

  // The buffer that holds all parts.
  ChunkBuffer Buffer() const {
    switch (kind_) {
      case ProgramKind::kAllReduce:
      case ProgramKind::kReduceScatter:
      case ProgramKind::kReduce:
      case ProgramKind::kScatter:
      case ProgramKind::kBroadcast:
        return ChunkBuffer::kInput;
      default:
        return ChunkBuffer::kOutput;
    }
  }

  void Declare(int32_t node, RankProgram& rank) const {
    rank.scratch_chunks = scratch_[node];
    const bool whole = node == program_.root;
    if (kind_ == ProgramKind::kGather && !whole) {
      rank.input_chunks = problem_.copies;
    } else if (kind_ == ProgramKind::kScatter && !whole) {
      rank.output_chunks = problem_.copies;
    } else {
      (Buffer() == ChunkBuffer::kInput ? rank.input_chunks : rank.output_chunks) = program_.chunks;
      if (kind_ == ProgramKind::kAllToAll) rank.input_chunks = program_.chunks;
    }
  }

  // Where a node keeps a chunk.
  ChunkSpan Place(int32_t node, int32_t chunk) {
    const ChunkNeed& need = problem_.need(chunk);
    const int32_t copies = problem_.copies, copy = chunk % copies;
    const bool wanted = node == need.origin || need.NeededAt(node);
    const auto destination = [&] {
      int32_t v = 0;
      while (!need.NeededAt(v)) ++v;
      return v;
    };
    if (!wanted) {
      const auto [slot, fresh] = relays_.emplace(std::make_pair(node, chunk), scratch_[node]);
      if (fresh) ++scratch_[node];
      return {ChunkBuffer::kScratch, slot->second, 1};
    }
    if (Rooted()) return {Buffer(), copy, 1};
    if (kind_ == ProgramKind::kAllToAll && node == need.origin) {
      return {ChunkBuffer::kInput, destination() * copies + copy, 1};
    }
    const bool root = node == program_.root;
    if (kind_ == ProgramKind::kGather && !root) return {ChunkBuffer::kInput, copy, 1};
    if (kind_ == ProgramKind::kScatter && !root) return {ChunkBuffer::kOutput, copy, 1};
    const int32_t part = kind_ == ProgramKind::kScatter ? destination() : need.origin;
    return {Buffer(), part * copies + copy, 1};
  }

  int32_t Block(int32_t node, int32_t peer, int32_t channel, bool sends) {
    const auto [found, fresh] = blocks_.emplace(std::make_tuple(node, peer, channel, sends), 0);
    if (fresh) found->second = ranks_[node].Block(sends ? peer : -1, sends ? -1 : peer, channel);
    return found->second;
  }

  const LinkGraph& graph_;
  const ProgramKind kind_;
  const SynthesisProblem& problem_;
  ChunkProgram program_;
  std::vector<RankBuilder> ranks_;
  std::map<std::tuple<int32_t, int32_t, int32_t, bool>, int32_t> blocks_;
  std::map<std::pair<int32_t, int32_t>, int32_t> relays_;
  std::vector<int32_t> scratch_;
  std::vector<std::vector<ChunkDependency>> last_;  // step that wrote [node][chunk]
};

}  // namespace

SynchronousSchedule Inverted(const SynchronousSchedule& schedule) {
  SynchronousSchedule out = schedule;
  std::reverse(out.steps.begin(), out.steps.end());
  for (SynchronousSchedule::Step& step : out.steps) {
    for (ScheduledSend& send : step.sends) std::swap(send.from, send.to);
  }
  return out;
}

ChunkProgram ProgramOf(const LinkGraph& graph, ProgramKind kind, int32_t root,
                       const SynthesisProblem& problem, const SynchronousSchedule* collect,
                       const SynchronousSchedule* spread) {
  ProgramWriter writer(graph, kind, root, problem);
  if (collect != nullptr) writer.Add(*collect, true);
  if (spread != nullptr) writer.Add(*spread, false);
  return writer.Take();
}

}  // namespace plancast
