// The messages of distributed products on a 2-D torus, message by message: Cannon's go to
// neighbours, flat broadcasts of SUMMA share links.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "collectives/programs/chunk_program.h"
#include "executor/chunks/execute_chunks.h"
#include "graph/model/program.h"
#include "gtest/gtest.h"
#include "tests/compiler/plan_under_test.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

constexpr int32_t kSide = 4;
constexpr int64_t kLink = 1'000'000'000;  // bytes/s of a link of the torus, each way

int32_t At(int32_t row, int32_t column) {
  return (row + kSide) % kSide * kSide + (column + kSide) % kSide;
}

// A place and a router at each point; places are not the limit.
ChunkNetwork Torus() {
  constexpr int32_t kPlaces = kSide * kSide;
  std::vector<ChunkNetwork::Wire> wires;
  for (int32_t r = 0; r < kSide; ++r) {
    for (int32_t c = 0; c < kSide; ++c) {
      const int32_t place = At(r, c), router = kPlaces + place;
      wires.push_back({place, router, 100 * kLink, 0});
      wires.push_back({router, place, 100 * kLink, 0});
      for (const auto& [dr, dc] :
           {std::pair(0, 1), std::pair(0, -1), std::pair(1, 0), std::pair(-1, 0)}) {
        wires.push_back({router, kPlaces + At(r + dr, c + dc), kLink, 1000});
      }
    }
  }
  return *ChunkNetwork::OfWires(kPlaces, 2 * kPlaces, std::move(wires));
}

struct Send {
  int32_t from = 0, to = 0;
};

// All at once, each of so many bytes, in picoseconds.
int64_t TimeOf(const std::vector<Send>& sends, int64_t bytes) {
  ChunkProgram program;
  program.kind = ProgramKind::kCustom;
  program.ranks.resize(kSide * kSide);
  for (RankProgram& rank : program.ranks) rank.input_chunks = rank.output_chunks = 1;
  std::vector<int32_t> pairs(kSide * kSide * kSide * kSide, 0);  // messages of a pair so far
  for (const Send& send : sends) {
    const int32_t channel = pairs[send.from * kSide * kSide + send.to]++;
    program.channels = std::max(program.channels, channel + 1);
    ThreadBlock out, in;
    out.send_peer = send.to;
    in.recv_peer = send.from;
    out.channel = in.channel = channel;
    out.steps = {{ChunkOp::kSend, {ChunkBuffer::kInput, 0, 1}, {ChunkBuffer::kOutput, 0, 1}, {}}};
    in.steps = {{ChunkOp::kRecv, {ChunkBuffer::kInput, 0, 1}, {ChunkBuffer::kOutput, 0, 1}, {}}};
    program.ranks[send.from].blocks.push_back(out);
    program.ranks[send.to].blocks.push_back(in);
  }
  PlacedProgram placed;
  placed.program = MakerOfProgram(program);
  placed.places.resize(program.ranks.size());
  std::iota(placed.places.begin(), placed.places.end(), 0);
  placed.bytes = bytes;
  const auto outcome = ExecuteChunks(Torus(), {&placed, 1});
  EXPECT_OK(outcome.status());
  return outcome.ok() ? outcome->finish_ps : 0;
}

// The messages of each step of a plan of a product: `dp` are rows of the torus, `tp` columns.
int64_t TimeOfSteps(std::vector<std::string> turning, int64_t n) {
  const auto graph = BuildProgram({"product",
                                   {{"i", n}, {"j", n}, {"k", n}},
                                   {{"B", {"i", "k"}}, {"C", {"k", "j"}}},
                                   {"A[i,j] += B[i,k] * C[k,j]"}});
  EXPECT_OK(graph.status());
  PlanUnderTest plan = PlanUnderTest::Of(*graph);
  plan.ByHand().Dp(kSide).Tp(kSide).MicroBatches(1, 1);
  plan.Split("product.B", "dp", {"i"}).Split("product.B", "tp", {"k"});
  plan.Split("product.C", "dp", {"k"}).Split("product.C", "tp", {"j"});
  plan.Split("product.A", "dp", {"i"}).Split("product.A", "tp", {"j"});
  LoopDirective& loop = (*plan.tree().Node("product.A"))->loop;
  loop.communicate = {{"B", "k"}, {"C", "k"}};
  if (!turning.empty()) loop.rotate["k"] = std::move(turning);
  const auto compiled = plan.Compile();
  EXPECT_OK(compiled.status());
  const Block& block = BlockNamed(*compiled, "product.F");
  int64_t time = 0, step = 0, bytes = 0;
  std::vector<Send> sends;
  bool first_axis = true;
  for (int t = 0; t < block.size(); ++t) {
    if (block.kind[t] != TaskKind::kComm) continue;
    const CommSpec& comm = compiled->comms[block.spec[t]];
    const bool along_row = compiled->mesh.axis(comm.axes[0]).name == "tp";
    bytes = comm.bytes;
    for (int32_t r = 0; r < kSide; ++r) {
      for (int32_t c = 0; c < kSide; ++c) {
        if (comm.kind == CollectiveKind::kPermute) {
          // First each part goes to where the skew wants it, then on to the neighbour.
          const int32_t shift = step > 0 ? 1 : along_row ? r : c;
          if (shift % kSide == 0) continue;
          sends.push_back({At(r, c), along_row ? At(r, c - shift) : At(r - shift, c)});
        } else {
          EXPECT_EQ(comm.kind, CollectiveKind::kBroadcast);
          const auto root = static_cast<int32_t>(step);
          if ((along_row ? c : r) == root) continue;
          sends.push_back({along_row ? At(r, root) : At(root, c), At(r, c)});
        }
      }
    }
    first_axis = !first_axis;
    if (!first_axis) continue;
    time += TimeOf(sends, bytes);
    sends.clear();
    ++step;
  }
  return time;
}

TEST(TorusTest, CannonTakesLessThanFlatBroadcasts) {
  const int64_t n = 4096;
  const int64_t cannon = TimeOfSteps({"dp", "tp"}, n), summa = TimeOfSteps({}, n);
  // A part over one link in each step but the first, in which parts go further.
  const double part = 2.0 * n / kSide * n / kSide / kLink * 1e12;
  EXPECT_GT(cannon, (kSide - 1) * part);
  EXPECT_LT(static_cast<double>(cannon), (kSide - 1 + 2) * part);
  EXPECT_LT(cannon, summa);
}

TEST(TorusTest, NeighboursShareNoLink) {
  std::vector<Send> right, down, both;
  for (int32_t r = 0; r < kSide; ++r) {
    for (int32_t c = 0; c < kSide; ++c) {
      right.push_back({At(r, c), At(r, c - 1)});
      both.push_back({At(r, c), At(r, c - 1)});
      both.push_back({At(r, c), At(r - 1, c)});
    }
  }
  EXPECT_EQ(TimeOf(right, 1 << 20), TimeOf(both, 1 << 20));
}

}  // namespace
}  // namespace plancast
