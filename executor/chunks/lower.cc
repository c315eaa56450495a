#include "executor/chunks/lower.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/int128.h"
#include "base/status_macros.h"
#include "collectives/programs/check/buffers.h"

namespace plancast {
namespace {

constexpr int64_t kNoLimit = 100'000'000'000'000;  // bytes/s
constexpr double kOneQ20 = 1 << 20;

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

class Lowering {
 public:
  Lowering(const ChunkNetwork& network, bool symmetric, bool turns)
      : network_(network), symmetric_(symmetric), turns_(turns) {}

  absl::Status Add(const PlacedProgram& placed) {
    const ProgramMaker& maker = placed.program;
    if (static_cast<int32_t>(placed.places.size()) != maker.num_ranks) {
      return absl::InvalidArgumentError(absl::StrCat("a chunk program of ", maker.num_ranks,
                                                     " ranks at ", placed.places.size(),
                                                     " places; every rank needs one."));
    }
    if (placed.bytes < 0 || maker.head.chunks < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("a chunk program of ", placed.bytes, " bytes in ", maker.head.chunks,
                       " chunks; bytes must not be negative and chunks have to be positive."));
    }
    parameters_ = &placed.parameters;
    AddProgram(placed);
    const int32_t all = maker.head.channels;
    int32_t channels = all;
    load_ = 1;
    if (symmetric_ && maker.alike_channels > 0 && all % maker.alike_channels == 0) {
      channels = turns_ ? maker.rotation : maker.alike_channels;
      load_ = all / maker.alike_channels;
    }
    result_.channels.push_back(channels);
    result_.turned_ranks.push_back(turns_ ? maker.inner : 1);
    const auto first = static_cast<int32_t>(result_.graph.blocks.size());
    result_.first_block.push_back(first);
    Scripts scripts;  // of rank 0, where all ranks are alike
    for (int32_t rank = 0; rank < maker.num_ranks; ++rank) {
      const bool known = maker.outline && rank > 0;
      const RankProgram program =
          known ? maker.outline(rank, channels) : maker.make(rank, channels);
      if (!known) scripts = ScriptsOf(program);
      RETURN_IF_ERROR(AddRank(program, rank, maker.num_ranks, scripts));
    }
    return Connect(placed, first);
  }

  LoweredPrograms Take() {
    result_.first_block.push_back(static_cast<int32_t>(result_.graph.blocks.size()));
    if (symmetric_) DropSpare();
    return std::move(result_);
  }

 private:
  void AddProgram(const PlacedProgram& placed) {
    const ChunkParameters& parameters = placed.parameters;
    const int64_t chunks = placed.program.head.chunks;
    ChunkGraph::Program program;
    const int64_t all = CeilDivide(placed.bytes, chunks);  // bytes of a chunk, over all turns
    program.chunk_bytes = parameters.chunk_bytes > 0 ? std::min(all, parameters.chunk_bytes) : all;
    program.turns = all == 0 ? 0 : CeilDivide(all, program.chunk_bytes);
    program.last_chunk_bytes = all - (program.turns - 1) * program.chunk_bytes;
    program.slice_bytes = parameters.slice_bytes;
    program.fifo_bytes = parameters.fifo_bytes;
    program.start_ps = placed.start_ps + (all == 0 ? 0 : parameters.start_ps);
    program.local_bytes_per_s = parameters.local_bytes_per_s;
    result_.graph.programs.push_back(program);
  }

  // Per block of a rank: its script, and the blocks that it waits for.
  struct Scripts {
    std::vector<int32_t> of;
    std::vector<std::vector<int32_t>> waits_for;
  };

  Scripts ScriptsOf(const RankProgram& program) {
    // Steps that others wait for end a run.
    absl::flat_hash_set<std::pair<int32_t, int32_t>> awaited;
    for (const ThreadBlock& block : program.blocks) {
      for (const ChunkStep& step : block.steps) {
        if (step.after.block >= 0) awaited.insert({step.after.block, step.after.step});
      }
    }
    Scripts scripts;
    for (size_t b = 0; b < program.blocks.size(); ++b) {
      Script script;
      std::vector<int32_t>& waits_for = scripts.waits_for.emplace_back();
      bool closed = true;
      for (size_t s = 0; s < program.blocks[b].steps.size(); ++s) {
        const ChunkStep& step = program.blocks[b].steps[s];
        StepRun run;
        run.receives = Receives(step.op);
        run.sends = Sends(step.op);
        run.local = step.op != ChunkOp::kNop && !run.sends;
        if (step.op != ChunkOp::kNop) run.chunks = MessageChunks(step);
        if (step.after.block >= 0) {
          run.after_step = step.after.step;
          run.dependency = static_cast<int32_t>(waits_for.size());
          waits_for.push_back(step.after.block);
        }
        const bool grows =
            !closed && run.dependency < 0 && script.runs.back().receives == run.receives &&
            script.runs.back().sends == run.sends && script.runs.back().local == run.local &&
            script.runs.back().chunks == run.chunks;
        if (grows) {
          ++script.runs.back().repeat;
        } else {
          script.first_step.push_back(static_cast<int64_t>(s));
          script.runs.push_back(run);
        }
        closed = run.dependency >= 0 ||
                 awaited.contains({static_cast<int32_t>(b), static_cast<int32_t>(s)});
      }
      script.steps = static_cast<int64_t>(program.blocks[b].steps.size());
      scripts.of.push_back(Intern(std::move(script)));
    }
    return scripts;
  }

  int32_t Intern(Script script) {
    std::vector<int64_t> key;
    for (const StepRun& run : script.runs) {
      key.push_back(run.receives | run.sends << 1 | run.local << 2 | int64_t{run.chunks} << 3);
      key.push_back(run.repeat);
      key.push_back(run.dependency);
      key.push_back(run.after_step);
    }
    const auto [found, added] = known_scripts_.try_emplace(
        std::move(key), static_cast<int32_t>(result_.graph.scripts.size()));
    if (added) result_.graph.scripts.push_back(std::move(script));
    return found->second;
  }

  absl::Status AddRank(const RankProgram& program, int32_t rank, int32_t ranks,
                       const Scripts& scripts) {
    ChunkGraph& graph = result_.graph;
    const auto first = static_cast<int32_t>(graph.blocks.size());
    for (size_t b = 0; b < program.blocks.size(); ++b) {
      const ThreadBlock& from = program.blocks[b];
      ChunkGraph::Block block;
      block.script = scripts.of[b];
      block.program = static_cast<int32_t>(graph.programs.size()) - 1;
      block.rank = rank;
      block.channel = from.channel;
      block.first_dependency = static_cast<int32_t>(graph.dependencies.size());
      for (const int32_t other : scripts.waits_for[b]) {
        if (other >= static_cast<int32_t>(program.blocks.size())) {
          return absl::InvalidArgumentError(absl::StrCat("gpu ", rank, ", thread block ", b,
                                                         " waits for thread block ", other,
                                                         ", which is not there."));
        }
        graph.dependencies.push_back(first + other);
      }
      graph.blocks.push_back(block);
      if (from.send_peer >= ranks || from.recv_peer >= ranks) {
        return absl::InvalidArgumentError(absl::StrCat("gpu ", rank, ", thread block ", b,
                                                       " has a peer beyond gpu ", ranks - 1, "."));
      }
      ends_.push_back({from.send_peer, from.recv_peer, from.channel});
    }
    return absl::OkStatus();
  }

  int64_t ChunksSent(int32_t script) const {  // in a turn
    int64_t chunks = 0;
    for (const StepRun& run : result_.graph.scripts[script].runs) {
      if (run.sends) chunks += run.chunks * run.repeat;
    }
    return chunks;
  }

  bool Uses(int32_t script, bool StepRun::*what) const {
    const std::vector<StepRun>& runs = result_.graph.scripts[script].runs;
    return std::any_of(runs.begin(), runs.end(), [&](const StepRun& run) { return run.*what; });
  }

  absl::Status Connect(const PlacedProgram& placed, int32_t first) {
    ChunkGraph& graph = result_.graph;
    const auto key = [](int32_t from, int32_t to, int32_t channel) {
      return uint64_t{static_cast<uint32_t>(from)} << 40 |
             uint64_t{static_cast<uint32_t>(to)} << 16 | static_cast<uint16_t>(channel);
    };
    absl::flat_hash_map<uint64_t, int32_t> receivers;
    receivers.reserve(ends_.size());
    for (size_t i = 0; i < ends_.size(); ++i) {
      const int32_t b = first + static_cast<int32_t>(i);
      if (ends_[i].recv < 0 || !Uses(graph.blocks[b].script, &StepRun::receives)) continue;
      receivers.emplace(key(ends_[i].recv, graph.blocks[b].rank, ends_[i].channel), b);
    }
    for (size_t i = 0; i < ends_.size(); ++i) {
      const int32_t b = first + static_cast<int32_t>(i);
      if (ends_[i].send < 0 || !Uses(graph.blocks[b].script, &StepRun::sends)) continue;
      const auto found = receivers.find(key(graph.blocks[b].rank, ends_[i].send, ends_[i].channel));
      if (found == receivers.end()) {
        return absl::InvalidArgumentError(absl::StrCat("gpu ", graph.blocks[b].rank,
                                                       " sends to gpu ", ends_[i].send,
                                                       " what no thread block receives."));
      }
      RETURN_IF_ERROR(AddConnection(placed, b, found->second, ends_[i].send));
    }
    for (const auto& [unused, b] : receivers) {
      if (graph.blocks[b].in >= 0) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("gpu ", graph.blocks[b].rank, " receives what no thread block sends."));
    }
    ends_.clear();
    return absl::OkStatus();
  }

  absl::Status AddConnection(const PlacedProgram& placed, int32_t sender, int32_t receiver,
                             int32_t receiver_rank) {
    ChunkGraph& graph = result_.graph;
    ASSIGN_OR_RETURN(const Route route, network_.RouteOf(placed.places[graph.blocks[sender].rank],
                                                         placed.places[receiver_rank]));
    const ChunkParameters& p = *parameters_;
    ChunkGraph::Connection connection;
    connection.sender = sender;
    connection.receiver = receiver;
    const int64_t hop = route.network ? p.network_hop_ps : p.node_hop_ps;
    connection.latency_ps =
        std::llround(static_cast<double>(route.latency_ps + (route.to_switch ? hop / 2 : hop)) *
                     p.latency_stretch);
    connection.bytes_per_s = p.block_bytes_per_s > 0 ? p.block_bytes_per_s : kNoLimit;
    if (route.network && p.network_block_bytes_per_s > 0) {
      connection.bytes_per_s = p.network_block_bytes_per_s;
    } else if (p.buffer_bytes_per_s > 0) {
      const double share = static_cast<double>(ChunksSent(graph.blocks[sender].script)) /
                           static_cast<double>(placed.program.head.chunks);
      connection.bytes_per_s = std::clamp<int64_t>(
          static_cast<int64_t>(p.buffer_bytes_per_s * share), 1, connection.bytes_per_s);
    }
    connection.use_begin = static_cast<int32_t>(graph.uses.size());
    for (const Route::Hop& hop_over : route.hops) {
      const double efficiency = hop_over.part == LinkPart::kNode     ? p.node_efficiency
                                : hop_over.part == LinkPart::kBridge ? p.bridge_efficiency
                                                                     : p.network_efficiency;
      const auto coefficient = static_cast<int64_t>(std::ceil(kOneQ20 / efficiency));
      const int64_t link = turns_ ? network_.TurnedToFirst(hop_over.link) : hop_over.link;
      graph.uses.push_back({ResourceOf(link), coefficient * load_});
    }
    connection.use_end = static_cast<int32_t>(graph.uses.size());
    const auto index = static_cast<int32_t>(graph.connections.size());
    graph.blocks[sender].out = index;
    graph.blocks[receiver].in = index;
    graph.connections.push_back(connection);
    return absl::OkStatus();
  }

  int32_t ResourceOf(int64_t link) {
    ChunkGraph& graph = result_.graph;
    const auto [found, added] =
        resources_.try_emplace(link, static_cast<int32_t>(graph.resources.size()));
    if (added) graph.resources.push_back(network_.LinkBytesPerSecond(link));
    return found->second;
  }

  // Links that all their transfers together cannot fill hold nobody back.
  void DropSpare() {
    ChunkGraph& graph = result_.graph;
    std::vector<int128> asked(graph.resources.size());
    for (const ChunkGraph::Connection& connection : graph.connections) {
      for (int32_t u = connection.use_begin; u < connection.use_end; ++u) {
        asked[graph.uses[u].resource] +=
            int128{connection.bytes_per_s} * graph.uses[u].coefficient_q20;
      }
    }
    int32_t kept = 0;
    for (ChunkGraph::Connection& connection : graph.connections) {
      const int32_t begin = kept;
      for (int32_t u = connection.use_begin; u < connection.use_end; ++u) {
        const int32_t resource = graph.uses[u].resource;
        if (asked[resource] <= int128{graph.resources[resource]} << 20) continue;
        graph.uses[kept++] = graph.uses[u];
      }
      connection.use_begin = begin;
      connection.use_end = kept;
    }
    graph.uses.resize(kept);
  }

  struct Ends {
    int32_t send = -1, recv = -1, channel = 0;
  };

  const ChunkNetwork& network_;
  const bool symmetric_, turns_;
  int64_t load_ = 1;  // channels that each stands for
  const ChunkParameters* parameters_ = nullptr;
  LoweredPrograms result_;
  std::vector<Ends> ends_;  // of the blocks of this program
  absl::flat_hash_map<std::vector<int64_t>, int32_t> known_scripts_;
  absl::flat_hash_map<int64_t, int32_t> resources_;
};

// Whether a program's channels turn with the devices of the domains that it covers.
bool Turns(const ChunkNetwork& network, const PlacedProgram& placed) {
  const ProgramMaker& maker = placed.program;
  if (maker.rotation == 0 || maker.inner != network.domain_size() || placed.places.empty() ||
      maker.head.channels % maker.alike_channels != 0 || placed.places[0] % maker.inner != 0) {
    return false;
  }
  for (size_t r = 0; r < placed.places.size(); ++r) {
    const int64_t local = static_cast<int64_t>(r) % maker.inner;
    if (placed.places[r] != placed.places[r - local] + local ||
        placed.places[r - local] % maker.inner != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

ProgramMaker MakerOfProgram(const ChunkProgram& program) {
  ProgramMaker maker;
  auto copy = std::make_shared<ChunkProgram>(program);
  maker.num_ranks = program.num_ranks();
  maker.head = program;
  maker.head.ranks.clear();
  maker.make = [copy](int32_t rank, int32_t) { return copy->ranks[rank]; };
  return maker;
}

absl::StatusOr<LoweredPrograms> LowerPrograms(const ChunkNetwork& network,
                                              absl::Span<const PlacedProgram> programs,
                                              bool symmetric) {
  const bool turns = symmetric && network.DomainsTurn() &&
                     std::all_of(programs.begin(), programs.end(),
                                 [&](const PlacedProgram& p) { return Turns(network, p); });
  Lowering lowering(network, symmetric, turns);
  for (const PlacedProgram& program : programs) RETURN_IF_ERROR(lowering.Add(program));
  return lowering.Take();
}

}  // namespace plancast
