#include <vector>

#include "collectives/programs/makers.h"
#include "collectives/programs/rank_builder.h"

namespace plancast {
namespace {

int32_t PowerBelow(int32_t n) {
  int32_t power = 1;
  while (power * 2 <= n) power *= 2;
  return power;
}

// One channel of one rank among `power` ranks; `peer_of` names them. Halves the
// range of pieces over ever nearer ranks, then doubles it over ever farther ones.
// The chunk may be used after `ready`; returns the step after which all is there.
template <typename PeerOf>
ChunkDependency AddExchange(RankBuilder& builder, const ChunkProgram& head, int32_t power,
                            int32_t index, int32_t c, PeerOf peer_of, ChunkDependency ready) {
  const ChunkBuffer buffer =
      head.kind == ProgramKind::kAllGather ? ChunkBuffer::kOutput : ChunkBuffer::kInput;
  // To and from one peer: two blocks, so that neither waits for the other.
  struct Round {
    int32_t send = 0, recv = 0;
  };
  // One channel moves its range at once, one of several its share of each piece.
  const auto exchange = [&](const Round& round, int32_t out, ChunkOp op, int32_t in,
                            int32_t count) {
    const int32_t channels = head.channels;
    const int32_t messages = channels == 1 ? 1 : count;
    const int32_t chunks = channels == 1 ? count : 1;
    ChunkDependency got;
    for (int32_t i = 0; i < messages; ++i) {
      const ChunkSpan source{buffer, (out + i) * channels + c, chunks};
      const ChunkSpan target{buffer, (in + i) * channels + c, chunks};
      // The peer may be a round ahead, but what comes in adds to this round's sums.
      const ChunkDependency after = i == 0 ? ready : ChunkDependency{};
      builder.Step(round.send, ChunkOp::kSend, source, after);
      got = builder.Step(round.recv, op, target, after);
    }
    ready = got;
  };
  std::vector<Round> rounds;
  for (int32_t distance = power / 2; distance >= 1; distance /= 2) {
    const int32_t peer = peer_of(index ^ distance);
    rounds.push_back({builder.Block(peer, -1, c), builder.Block(-1, peer, c)});
  }
  const bool halves = head.kind != ProgramKind::kAllGather;
  const bool doubles = head.kind != ProgramKind::kReduceScatter;
  size_t round = 0;
  if (halves) {
    for (int32_t distance = power / 2; distance >= 1; distance /= 2, ++round) {
      const int32_t mine = index / distance * distance;
      exchange(rounds[round], mine ^ distance, ChunkOp::kRecvReduceCopy, mine, distance);
    }
  }
  if (doubles) {
    round = rounds.size();
    for (int32_t distance = 1; distance < power; distance *= 2) {
      --round;
      const int32_t mine = index / distance * distance;
      exchange(rounds[round], mine, ChunkOp::kRecv, mine ^ distance, distance);
    }
  }
  return ready;
}

}  // namespace

absl::StatusOr<ProgramMaker> MakeHalvingDoubling(const ProgramRequest& request) {
  const int32_t n = request.ranks(), power = PowerBelow(n), extra = n - power;
  switch (request.kind) {
    case ProgramKind::kAllReduce:
      break;
    case ProgramKind::kAllGather:
    case ProgramKind::kReduceScatter:
      if (extra == 0) break;
      return absl::InvalidArgumentError(
          "`halving_doubling` does all_gather and reduce_scatter over powers of two ranks only. "
          "Choose `pat`, which does them over any number in as many steps.");
    default:
      return DoesNot(request);
  }
  ProgramMaker maker;
  maker.head = HeadOf(request, power);
  maker.num_ranks = n;
  // The first 2 * extra ranks work in pairs: the odd one gives all to the even one
  // before, and gets the result after.
  maker.alike_channels = 1;
  maker.make = [extra, power, head = maker.head](int32_t rank, int32_t channels) {
    RankBuilder builder(head.chunks, head.chunks);
    const auto rank_of = [extra](int32_t i) { return i < extra ? 2 * i : i + extra; };
    const bool paired = rank < 2 * extra;
    for (int32_t c = 0; c < channels && power > 1; ++c) {
      const auto all = [&](int32_t block, ChunkOp op, ChunkDependency after) {
        ChunkDependency last;
        for (int32_t piece = 0; piece < power; ++piece) {
          const ChunkSpan share{ChunkBuffer::kInput, piece * head.channels + c, 1};
          if (head.channels == 1) return builder.Step(block, op, {share.buffer, 0, power}, after);
          last = builder.Step(block, op, share, after);
          after = {};
        }
        return last;
      };
      ChunkDependency ready;
      int32_t pair = -1;
      if (paired) {
        const int32_t other = rank ^ 1;
        pair = builder.Block(other, other, c);
        if (rank % 2 == 1) {
          all(pair, ChunkOp::kSend, {});
          all(pair, ChunkOp::kRecv, {});
          continue;
        }
        ready = all(pair, ChunkOp::kRecvReduceCopy, {});
      }
      ready =
          AddExchange(builder, head, power, paired ? rank / 2 : rank - extra, c, rank_of, ready);
      if (paired) all(pair, ChunkOp::kSend, ready);
    }
    return builder.Take();
  };
  return maker;
}

}  // namespace plancast
