#include "collectives/host_links.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kGiB = int64_t{1} << 30;

Machine Made(const std::string& preset) {
  auto machine = MachineFromPreset(preset);
  EXPECT_TRUE(machine.ok()) << machine.status();
  return *std::move(machine);
}

RealisedCollective Realised(const Machine& machine, CollectiveKind kind, int64_t bytes,
                            bool nominal = false) {
  auto realised = RealiseOnHost(machine, kind, bytes, nominal);
  EXPECT_TRUE(realised.ok()) << realised.status();
  return *std::move(realised);
}

double Load(const Machine& machine, const RealisedCollective& collective, LinkKind kind) {
  const int link_class = machine.FindLinkClass(kind);
  for (const LinkLoad& load : collective.loads) {
    if (load.link_class == link_class) return load.coefficient_q20 / 1048576.0;
  }
  return 0;
}

double SecondsOf(const Machine& machine, const RealisedCollective& realised) {
  return static_cast<double>(AloneTime(machine, realised)) * 1e-12;
}

// Bytes over what copies were measured to reach: cluster/data/links.textproto.
TEST(HostLinksTest, ACopyAloneTakesItsBytesOverTheMeasuredRate) {
  const std::pair<const char*, double> cases[] = {{"dgx1-v100-32g:1", 12.4},
                                                  {"dgx-a100-80g:2", 25.1},
                                                  {"dgx-h100:1", 52.8},
                                                  {"a100-pcie-80g:1", 25.1},
                                                  {"gb200-nvl72:1", 324}};
  for (const auto& [preset, gb_per_s] : cases) {
    const Machine machine = Made(preset);
    for (const auto kind : {CollectiveKind::kCopyToHost, CollectiveKind::kCopyToDevice}) {
      const double alone = SecondsOf(machine, Realised(machine, kind, kGiB));
      EXPECT_NEAR(alone, 1e-6 + kGiB / (gb_per_s * 1e9), 1e-5 * alone) << preset;
    }
  }
}

TEST(HostLinksTest, NominalLinksCarryAllOfTheirRate) {
  const Machine machine = Made("dgx-h100:1");
  const double alone =
      SecondsOf(machine, Realised(machine, CollectiveKind::kCopyToHost, kGiB, /*nominal=*/true));
  EXPECT_NEAR(alone, 1e-6 + kGiB / 64e9, 1e-9);
}

// Two GPUs of a DGX A100 share an uplink, those of a DGX H100 have their own; GPUs that
// talk over PCIe use the same port and switch uplink as for that.
TEST(HostLinksTest, CopiesLoadWhatLiesOnTheirWay) {
  const Machine a100 = Made("dgx-a100-80g:1");
  const RealisedCollective copy = Realised(a100, CollectiveKind::kCopyToHost, kGiB);
  EXPECT_NEAR(Load(a100, copy, LinkKind::kPcie), 32 / 25.1, 1e-5);
  EXPECT_NEAR(Load(a100, copy, LinkKind::kHostUplink), 32 / 25.1, 1e-5);
  EXPECT_EQ(Load(a100, copy, LinkKind::kHostMemory), 1);
  EXPECT_EQ(a100.NumLinkInstances(a100.FindLinkClass(LinkKind::kHostUplink)), 4);
  EXPECT_TRUE(copy.uses_no_sms);

  const Machine h100 = Made("dgx-h100:1");
  EXPECT_EQ(h100.FindLinkClass(LinkKind::kHostUplink), -1);

  const Machine pcie = Made("l40s-host-bridge:1");
  const RealisedCollective shared = Realised(pcie, CollectiveKind::kCopyToDevice, kGiB);
  EXPECT_EQ(pcie.FindLinkClass(LinkKind::kHostUplink), -1);
  EXPECT_GT(Load(pcie, shared, LinkKind::kPcie), 1);
  EXPECT_GT(Load(pcie, shared, LinkKind::kPcieSwitch), 1);
  EXPECT_EQ(Load(pcie, shared, LinkKind::kHostBridge), 0);

  const Machine grace = Made("gb200-nvl72:1");
  const RealisedCollective c2c = Realised(grace, CollectiveKind::kCopyToDevice, kGiB);
  EXPECT_NEAR(Load(grace, c2c, LinkKind::kC2c), 450.0 / 324, 1e-5);
}

// DeepSpeed's CPU-Adam on one DGX-2: the published latencies, 28 bytes a parameter.
TEST(HostLinksTest, AnUpdateOnTheHostTakesWhatCpuAdamTakes) {
  const Machine machine = Made("dgx2-v100-32g:1");
  double log_error = 0;
  const std::pair<double, double> published[] = {
      {1, 0.22}, {2, 0.51}, {4, 1.03}, {8, 2.41}, {10, 2.57}};
  for (const auto& [billions, seconds] : published) {
    const auto bytes = static_cast<int64_t>(billions * 28e9);
    const double alone = SecondsOf(machine, Realised(machine, CollectiveKind::kHostUpdate, bytes));
    EXPECT_NEAR(alone / (billions * 28e9 / (0.43 * 256e9)), 1, 1e-6);
    EXPECT_NEAR(alone / seconds, 1, 0.19);
    log_error += std::log(alone / seconds);
  }
  EXPECT_NEAR(std::exp(log_error / 5), 1, 0.02);
}

TEST(HostLinksTest, AMachineWithoutTheLinkSaysWhatIsMissing) {
  Machine::Spec spec = Made("dgx-h100:1").spec();
  spec.pcie_bytes_per_s = 0;
  const Machine unlinked = *Machine::Create(spec);
  EXPECT_THAT(RealiseOnHost(unlinked, CollectiveKind::kCopyToHost, 1, false).status().message(),
              HasSubstr("no link between its GPUs and their host's memory. Give `pcie_gb_per_s`"));
  spec.host_memory_bytes_per_s = 0;
  const Machine unknown = *Machine::Create(spec);
  EXPECT_THAT(RealiseOnHost(unknown, CollectiveKind::kHostUpdate, 1, false).status().message(),
              HasSubstr("Give `host_memory_gb_per_s`"));
}

}  // namespace
}  // namespace plancast
