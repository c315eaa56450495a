#include "interop/msccl/msccl_messages.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/wrong.h"
#include "collectives/programs/check/buffers.h"
#include "interop/msccl/msccl_validate.h"
#include "interop/msccl/msccl_words.h"

namespace plancast {
namespace {

// What passes through one end of a connection, in order.
struct End {
  int32_t block = -1;
  std::vector<MscclStepPlace> steps;
};

using Connection = std::tuple<int32_t, int32_t, int32_t>;  // source, destination, channel
using Connections = std::map<Connection, std::pair<End, End>>;

std::string Name(const MscclAlgorithm& algorithm, const MscclStepPlace& at) {
  return MscclPlace(algorithm, at.rank, at.block, at.step);
}

absl::Status AddBlock(const ChunkProgram& program, int32_t r, int32_t b, Connections& out) {
  const ThreadBlock& block = program.ranks[r].blocks[b];
  for (const bool sends : {true, false}) {
    const int32_t peer = sends ? block.send_peer : block.recv_peer;
    if (peer < 0) continue;
    auto& ends =
        out[sends ? Connection{r, peer, block.channel} : Connection{peer, r, block.channel}];
    End& end = sends ? ends.first : ends.second;
    if (end.block >= 0) {
      return Wrong("gpu ", r, ": thread blocks ", end.block, " and ", b, " both ",
                   sends ? "send to" : "receive from", " gpu ", peer, " on channel ", block.channel,
                   "; a connection belongs to one of them.");
    }
    end.block = b;
    for (int32_t s = 0; s < static_cast<int32_t>(block.steps.size()); ++s) {
      const ChunkOp op = block.steps[s].op;
      if (sends ? Sends(op) : Receives(op)) end.steps.push_back({r, b, s});
    }
  }
  return absl::OkStatus();
}

std::string Told(const ChunkSpan& span) {
  return absl::StrCat("`", kMscclBuffers[static_cast<size_t>(span.buffer)].first, "` ", span.first);
}

bool Contradict(const ChunkSpan& told, const ChunkSpan& is) {
  return told.first >= 0 && (told.buffer != is.buffer || told.first != is.first);
}

// Which span of a step only tells what the peer does.
bool TellsTarget(ChunkOp op) { return Sends(op) && !WritesTarget(op); }
bool TellsSource(ChunkOp op) { return Receives(op) && !ReadsSource(op); }

const ChunkStep& StepAt(const ChunkProgram& program, const MscclStepPlace& at) {
  return program.ranks[at.rank].blocks[at.block].steps[at.step];
}

}  // namespace

absl::StatusOr<std::vector<MscclMessage>> PairMessages(const MscclAlgorithm& algorithm) {
  const ChunkProgram& program = algorithm.program;
  Connections connections;
  for (int32_t r = 0; r < program.num_ranks(); ++r) {
    for (int32_t b = 0; b < static_cast<int32_t>(program.ranks[r].blocks.size()); ++b) {
      RETURN_IF_ERROR(AddBlock(program, r, b, connections));
    }
  }
  std::vector<MscclMessage> out;
  for (const auto& [name, ends] : connections) {
    const auto& [source, destination, channel] = name;
    const auto& [from, to] = ends;
    const size_t met = std::min(from.steps.size(), to.steps.size());
    const std::string counts =
        absl::StrCat(from.steps.size(), " sends against ", to.steps.size(), " receives.");
    if (from.steps.size() > met) {
      return Wrong(Name(algorithm, from.steps[met]), " sends to gpu ", destination, " on channel ",
                   channel, ", where ",
                   to.steps.empty() ? "nothing receives it" : "no receive is left", ": ", counts);
    }
    if (to.steps.size() > met) {
      return Wrong(Name(algorithm, to.steps[met]), " receives from gpu ", source, " on channel ",
                   channel, ", where ", from.steps.empty() ? "nothing sends" : "no send is left",
                   ": ", counts);
    }
    for (size_t k = 0; k < met; ++k) out.push_back({from.steps[k], to.steps[k]});
  }
  return out;
}

absl::Status ValidateMessages(const MscclAlgorithm& algorithm) {
  ASSIGN_OR_RETURN(const std::vector<MscclMessage> messages, PairMessages(algorithm));
  for (const MscclMessage& message : messages) {
    const ChunkStep& from = StepAt(algorithm.program, message.from);
    const ChunkStep& to = StepAt(algorithm.program, message.to);
    if (from.source.count != to.source.count) {
      return Wrong(Name(algorithm, message.from), " sends ", from.source.count, " chunks and ",
                   Name(algorithm, message.to), " receives ", to.source.count,
                   " of them; both must name the same `cnt`.");
    }
    if (TellsTarget(from.op) && WritesTarget(to.op) && Contradict(from.target, to.target)) {
      return Wrong(Name(algorithm, message.from), " sends to ", Told(from.target), ", and ",
                   Name(algorithm, message.to), " puts it into ", Told(to.target),
                   "; both must name the same place.");
    }
    if (TellsSource(to.op) && ReadsSource(from.op) && Contradict(to.source, from.source)) {
      return Wrong(Name(algorithm, message.to), " receives from ", Told(to.source), ", and ",
                   Name(algorithm, message.from), " sends ", Told(from.source),
                   "; both must name the same place.");
    }
  }
  return absl::OkStatus();
}

absl::Status TellPeers(MscclAlgorithm& algorithm) {
  ASSIGN_OR_RETURN(const std::vector<MscclMessage> messages, PairMessages(algorithm));
  const auto at = [&](const MscclStepPlace& place) -> ChunkStep& {
    return algorithm.program.ranks[place.rank].blocks[place.block].steps[place.step];
  };
  for (const MscclMessage& message : messages) {
    ChunkStep &from = at(message.from), &to = at(message.to);
    if (TellsTarget(from.op)) from.target = WritesTarget(to.op) ? to.target : to.source;
    if (TellsSource(to.op)) to.source = ReadsSource(from.op) ? from.source : from.target;
  }
  return absl::OkStatus();
}

}  // namespace plancast
