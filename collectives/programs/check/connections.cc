#include "collectives/programs/check/connections.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "collectives/programs/check/buffers.h"

namespace plancast {
namespace {

absl::Status Wrong(const ChunkProgram& program, const std::string& fact,
                   const std::string& remedy) {
  return absl::InvalidArgumentError(
      absl::StrCat(program.name.empty() ? "" : absl::StrCat("`", program.name, "`: "), fact,
                   remedy.empty() ? "" : " ", remedy));
}

bool HasParts(ProgramKind kind) {
  switch (kind) {
    case ProgramKind::kAllGather:
    case ProgramKind::kReduceScatter:
    case ProgramKind::kAllToAll:
    case ProgramKind::kGather:
    case ProgramKind::kScatter:
      return true;
    default:
      return false;
  }
}

absl::Status CheckHead(const ChunkProgram& p) {
  if (p.ranks.empty()) return Wrong(p, "the program has no gpus.", "Give it one at least.");
  if (p.ranks.size() > static_cast<size_t>(kMaxChunkRanks)) {
    return Wrong(p, absl::StrCat("the program has ", p.ranks.size(), " gpus."),
                 absl::StrCat("At most ", kMaxChunkRanks, " can be checked."));
  }
  if (p.helpers < 0 || p.helpers >= p.num_ranks()) {
    return Wrong(p, absl::StrCat(p.helpers, " of ", p.num_ranks(), " gpus are helpers."),
                 "One gpu at least has to take part.");
  }
  if (p.chunks < 1) {
    return Wrong(p, absl::StrCat("a turn of the loop moves ", p.chunks, " chunks."),
                 "It has to move one at least.");
  }
  if (p.channels < 1) {
    return Wrong(p, absl::StrCat("the program has ", p.channels, " channels."),
                 "It needs one at least.");
  }
  for (const auto& [what, rank] : {std::make_pair("root", p.root), {"receiver", p.receiver}}) {
    if (rank >= 0 && rank < p.members()) continue;
    return Wrong(p, absl::StrCat("the ", what, " is gpu ", rank, "."),
                 absl::StrCat("The program has gpus 0 to ", p.members() - 1, " that take part."));
  }
  if (HasParts(p.kind) && p.chunks % p.members() != 0) {
    return Wrong(p,
                 absl::StrCat(kProgramKindNames[p.kind], " of ", p.chunks, " chunks cannot give ",
                              p.members(), " gpus equal parts."),
                 absl::StrCat("Use a multiple of ", p.members(), " chunks."));
  }
  return absl::OkStatus();
}

absl::Status CheckCells(const ChunkProgram& p) {
  int64_t cells = 0, steps = 0;
  for (int32_t rank = 0; rank < p.num_ranks(); ++rank) {
    const RankProgram& declared = p.ranks[rank];
    if (declared.input_chunks < 0 || declared.output_chunks < 0 || declared.scratch_chunks < 0) {
      return Wrong(p, absl::StrCat("gpu ", rank, " has a buffer of fewer than 0 chunks."),
                   "Give its number of chunks, or 0.");
    }
    cells += LayoutOf(p, rank).cells;
    for (const ThreadBlock& block : declared.blocks) {
      steps += static_cast<int64_t>(block.steps.size());
    }
    if (cells > kMaxChunkCells || steps > kMaxChunkSteps) {
      return Wrong(p, "the program is too large to be checked.",
                   absl::StrCat("It may have ", kMaxChunkSteps, " steps and ", kMaxChunkCells,
                                " chunks in all buffers together."));
    }
    const ChunkShare share = ShareOf(p, rank);
    if (p.in_place) continue;
    for (const auto& [what, has, needs] :
         {std::make_tuple("input", declared.input_chunks, share.input),
          {"output", declared.output_chunks, share.output}}) {
      if (has >= needs) continue;
      return Wrong(p,
                   absl::StrCat("gpu ", rank, " has ", has, " ", what, " chunks; ",
                                kProgramKindNames[p.kind], " of ", p.chunks, " chunks over ",
                                p.members(), " gpus needs ", needs, "."),
                   "");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSpan(const ChunkProgram& p, const BufferLayout& layout, const ChunkSpan& span,
                       const ChunkPlace& place, absl::string_view what) {
  const int64_t chunks = layout.of(span.buffer).chunks;
  if (span.count >= 1 && span.first >= 0 && int64_t{span.first} + span.count <= chunks) {
    return absl::OkStatus();
  }
  const char* name = span.buffer == ChunkBuffer::kInput    ? "input"
                     : span.buffer == ChunkBuffer::kOutput ? "output"
                                                           : "scratch";
  return Wrong(p,
               absl::StrCat(ToString(place), " ", what, " ", span.count, " chunks from ",
                            span.first, " on of a buffer, ", name, ", that has ", chunks, "."),
               "Name chunks inside the buffer.");
}

absl::Status CheckBlock(const ChunkProgram& p, const BufferLayout& layout, ChunkPlace at) {
  const RankProgram& rank = p.ranks[at.rank];
  const ThreadBlock& block = rank.blocks[at.block];
  const std::string where = absl::StrCat("gpu ", at.rank, ", thread block ", at.block);
  for (const int32_t peer : {block.send_peer, block.recv_peer}) {
    if (peer >= -1 && peer < p.num_ranks() && peer != at.rank) continue;
    return Wrong(p, absl::StrCat(where, " has peer ", peer, "."),
                 absl::StrCat("Peers are other gpus, 0 to ", p.num_ranks() - 1, ", or -1."));
  }
  if (block.channel < 0 || block.channel >= p.channels) {
    return Wrong(p, absl::StrCat(where, " uses channel ", block.channel, "."),
                 absl::StrCat("The program has channels 0 to ", p.channels - 1, "."));
  }
  for (at.step = 0; at.step < static_cast<int32_t>(block.steps.size()); ++at.step) {
    const ChunkStep& step = block.steps[at.step];
    const bool lacks_sender = Sends(step.op) && block.send_peer < 0;
    if (lacks_sender || (Receives(step.op) && block.recv_peer < 0)) {
      return Wrong(p,
                   absl::StrCat(ToString(at), lacks_sender ? " sends" : " receives",
                                ", but its thread block names no peer to ",
                                lacks_sender ? "send to." : "receive from."),
                   "");
    }
    if (ReadsSource(step.op)) {
      RETURN_IF_ERROR(CheckSpan(p, layout, step.source, at, "reads"));
    }
    if (WritesTarget(step.op)) {
      RETURN_IF_ERROR(CheckSpan(p, layout, step.target, at, "writes"));
    }
    if (ReadsSource(step.op) && WritesTarget(step.op) && step.source.count != step.target.count) {
      return Wrong(p,
                   absl::StrCat(ToString(at), " reads ", step.source.count, " chunks and writes ",
                                step.target.count, "."),
                   "Both have to be as many.");
    }
    const ChunkDependency& after = step.after;
    if (after.block < 0) continue;
    const auto blocks = static_cast<int32_t>(rank.blocks.size());
    if (after.block >= blocks || after.step < 0 ||
        after.step >= static_cast<int32_t>(rank.blocks[after.block].steps.size())) {
      return Wrong(p,
                   absl::StrCat(ToString(at), " waits for thread block ", after.block, ", step ",
                                after.step, ", which is not there."),
                   "");
    }
  }
  return absl::OkStatus();
}

// Steps of a block that send, or that receive, with the chunks of each message.
template <typename Does>
std::vector<std::pair<int32_t, int32_t>> Messages(const ThreadBlock& block, Does does) {
  std::vector<std::pair<int32_t, int32_t>> messages;
  for (size_t s = 0; s < block.steps.size(); ++s) {
    if (!does(block.steps[s].op)) continue;
    messages.emplace_back(static_cast<int32_t>(s), MessageChunks(block.steps[s]));
  }
  return messages;
}

absl::Status CheckMessages(const ChunkProgram& p, ChunkConnection& link) {
  const auto sent = Messages(p.ranks[link.sender_rank].blocks[link.sender_block], Sends);
  const auto received = Messages(p.ranks[link.receiver_rank].blocks[link.receiver_block], Receives);
  link.messages = static_cast<int64_t>(sent.size());
  const size_t both = std::min(sent.size(), received.size());
  for (size_t k = 0; k < both; ++k) {
    if (sent[k].second == received[k].second) continue;
    return Wrong(
        p,
        absl::StrCat(ToString({link.sender_rank, link.sender_block, sent[k].first}), " sends ",
                     sent[k].second, " chunks to ",
                     ToString({link.receiver_rank, link.receiver_block, received[k].first}),
                     ", which takes ", received[k].second, "."),
        "Messages of a connection meet in order; is a step missing?");
  }
  const std::string counts = absl::StrCat(
      "gpu ", link.sender_rank, ", thread block ", link.sender_block, " sends ", sent.size(),
      " messages to gpu ", link.receiver_rank, ", thread block ", link.receiver_block,
      " on channel ", link.channel, ", which receives ", received.size(), ".");
  if (sent.size() > both) {
    return Wrong(p,
                 absl::StrCat(ToString({link.sender_rank, link.sender_block, sent[both].first}),
                              " sends what nobody receives: ", counts),
                 "Is a step missing?");
  }
  if (received.size() > both) {
    return Wrong(
        p,
        absl::StrCat(ToString({link.receiver_rank, link.receiver_block, received[both].first}),
                     " receives what nobody sends: ", counts),
        "Is a step missing?");
  }
  return absl::OkStatus();
}

}  // namespace

std::string ToString(const ChunkPlace& place) {
  return absl::StrCat("gpu ", place.rank, ", thread block ", place.block, ", step ", place.step);
}

absl::StatusOr<ChunkConnections> ConnectChunks(const ChunkProgram& p) {
  RETURN_IF_ERROR(CheckHead(p));
  RETURN_IF_ERROR(CheckCells(p));
  ChunkConnections result;
  // (sender, receiver, channel) -> the block at either end.
  std::map<std::tuple<int32_t, int32_t, int32_t>, std::pair<int32_t, int32_t>> ends;
  for (int32_t rank = 0; rank < p.num_ranks(); ++rank) {
    result.first_block.push_back(static_cast<int32_t>(result.out.size()));
    const BufferLayout layout = LayoutOf(p, rank);
    const auto blocks = static_cast<int32_t>(p.ranks[rank].blocks.size());
    for (int32_t b = 0; b < blocks; ++b) {
      RETURN_IF_ERROR(CheckBlock(p, layout, {rank, b, 0}));
      const ThreadBlock& block = p.ranks[rank].blocks[b];
      result.out.push_back(-1);
      result.in.push_back(-1);
      const auto take = [&](int32_t from, int32_t to, bool sends) -> absl::Status {
        auto& [sender, receiver] =
            ends.try_emplace({from, to, block.channel}, -1, -1).first->second;
        int32_t& mine = sends ? sender : receiver;
        if (mine >= 0) {
          return Wrong(p,
                       absl::StrCat("gpu ", rank, ", thread blocks ", mine, " and ", b, " both ",
                                    sends ? "send to gpu " : "receive from gpu ", sends ? to : from,
                                    " on channel ", block.channel, "."),
                       "Give one of them another channel.");
        }
        mine = b;
        return absl::OkStatus();
      };
      if (block.send_peer >= 0) {
        RETURN_IF_ERROR(take(rank, block.send_peer, true));
      }
      if (block.recv_peer >= 0) {
        RETURN_IF_ERROR(take(block.recv_peer, rank, false));
      }
    }
  }
  result.first_block.push_back(static_cast<int32_t>(result.out.size()));

  for (const auto& [key, blocks] : ends) {
    const auto [from, to, channel] = key;
    const auto [sender, receiver] = blocks;
    if (sender < 0 || receiver < 0) {
      const int32_t rank = sender < 0 ? to : from;
      const int32_t block = sender < 0 ? receiver : sender;
      // A peer that no step uses needs no partner.
      const auto used = Messages(p.ranks[rank].blocks[block], sender < 0 ? Receives : Sends);
      if (used.empty()) continue;
      return Wrong(
          p,
          absl::StrCat(ToString({rank, block, used[0].first}),
                       sender < 0 ? " receives from gpu " : " sends to gpu ",
                       sender < 0 ? from : to, " on channel ", channel, ", where no thread block ",
                       sender < 0 ? "sends to it." : "receives from it."),
          "Both ends have to name each other.");
    }
    ChunkConnection link{from, sender, to, receiver, channel, 0};
    RETURN_IF_ERROR(CheckMessages(p, link));
    const auto index = static_cast<int32_t>(result.all.size());
    result.out[result.first_block[from] + sender] = index;
    result.in[result.first_block[to] + receiver] = index;
    result.all.push_back(link);
  }
  return result;
}

}  // namespace plancast
