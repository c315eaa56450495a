#include "executor/chunks/realise_chunks.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

constexpr int64_t kMiB = 1 << 20;

GroupPattern Group(int64_t base, std::vector<GroupPattern::Dim> dims) {
  GroupPattern group;
  group.base = base;
  group.dims = std::move(dims);
  return group;
}

// Where nothing else runs both fidelities say the same, within five per cent, over
// machines, groups, algorithms and sizes.
TEST(RealiseChunksTest, BothFidelitiesAgreeWithoutContention) {
  const CollectiveKind kinds[] = {CollectiveKind::kAllReduce,     CollectiveKind::kAllGather,
                                  CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                                  CollectiveKind::kBroadcast,     CollectiveKind::kSendRecv,
                                  CollectiveKind::kPermute};
  std::map<std::string, int> compared;
  double worst = 0;
  for (const char* preset :
       {"dgx-h100:1", "dgx-h100:2", "dgx-h100:16", "dgx-a100-80g:4", "dgx-b200:2", "p4d-a100-40g:2",
        "dgx1-v100-32g:2", "l40s-host-bridge:2", "gb200-nvl72:18"}) {
    const absl::StatusOr<Machine> machine = MachineFromPreset(preset);
    if (!machine.ok()) {
      ADD_FAILURE() << machine.status();
      continue;
    }
    const int64_t g = machine->spec().gpus_per_host, hosts = machine->spec().hosts;
    std::vector<GroupPattern> groups = {Group(0, {{g, 1}, {hosts, g}}), Group(0, {{g / 2, 1}})};
    if (hosts > 1) groups.push_back(Group(1, {{hosts, g}}));
    for (const GroupPattern& group : groups) {
      for (const CollectiveKind kind : kinds) {
        GroupPattern members = group;
        if (kind == CollectiveKind::kSendRecv) {
          members = Group(0, {{2, hosts > 1 ? g : 1}});
        }
        for (const char* algorithm :
             {"", "ring", "tree", "nvls", "nvls-tree", "pairwise", "direct"}) {
          for (const int64_t bytes : {int64_t{1} << 10, kMiB, 64 * kMiB, 4096 * kMiB}) {
            for (const bool nominal : {false, true}) {
              CollectivePolicy policy;
              policy.algorithm = algorithm;
              policy.nominal = nominal;
              const auto closed = Realise(*machine, members, kind, bytes, policy);
              if (!closed.ok()) continue;
              const auto chunks = RealiseByChunks(*machine, members, kind, bytes, policy);
              ASSERT_OK(chunks.status());
              const auto a = static_cast<double>(AloneTime(*machine, *closed));
              const auto b = static_cast<double>(AloneTime(*machine, *chunks));
              ++compared[closed->algorithm];
              worst = std::max(worst, std::abs(b / a - 1));
              EXPECT_NEAR(b / a, 1, 0.05)
                  << preset << " " << kCollectiveKindNames[kind] << " over " << members.size()
                  << " by " << closed->algorithm << " " << closed->protocol << ", " << bytes
                  << " bytes" << (nominal ? ", nominal: " : ": ") << a * 1e-6 << " and " << b * 1e-6
                  << " us";
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(compared.size(), 6u);
  for (const auto& [algorithm, count] : compared) EXPECT_GT(count, 20) << algorithm;
  std::cout << "worst difference " << worst << "\n";
}

TEST(RealiseChunksTest, WhatHasNoProgramIsAnsweredByTheClosedForm) {
  const Machine machine = *MachineFromPreset("dgx-h100:2");
  CollectivePolicy policy;
  policy.copies = {8};
  const GroupPattern all = Group(0, {{16, 1}});
  EXPECT_EQ(RealiseByChunks(machine, all, CollectiveKind::kAllToAll, kMiB, policy)->delay_ps,
            Realise(machine, all, CollectiveKind::kAllToAll, kMiB, policy)->delay_ps);
  EXPECT_EQ(PlaceCollective(machine, all, CollectiveKind::kAllToAll, kMiB, policy).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(RealiseByChunks(machine, Group(3, {}), CollectiveKind::kAllReduce, kMiB)->delay_ps, 0);
}

}  // namespace
}  // namespace plancast
