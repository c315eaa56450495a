#include "cluster/topology/link_rates.h"

#include "gtest/gtest.h"

namespace plancast {
namespace {

TEST(LinkRatesTest, NvlinksFollowTheGeneration) {
  EXPECT_FLOAT_EQ(NvlinkRate(NcclVersion::k2_30, 100), 40.1);
  EXPECT_FLOAT_EQ(NvlinkRate(NcclVersion::k2_30, 90), 20.6);
  EXPECT_FLOAT_EQ(NvlinkRate(NcclVersion::k2_30, 86), 12);
  EXPECT_FLOAT_EQ(NvlinkRate(NcclVersion::k2_30, 89), 20);
  EXPECT_FLOAT_EQ(NvlinkRate(NcclVersion::k2_30, 60), 18);
  EXPECT_FLOAT_EQ(NvlinkRate(NcclVersion::k2_17, 90), 22);
  EXPECT_FLOAT_EQ(NvlinkRate(NcclVersion::k2_17, 70), 22);
}

TEST(LinkRatesTest, AmdGpusGoByGeneration) {
  EXPECT_EQ(AmdGpuOf("gfx942").gpu(), "MI300X");
  EXPECT_EQ(AmdGpuOf("gfx950").gb_per_s(), 48);
  EXPECT_EQ(AmdGpuOf("910").gb_per_s(), 36);
  EXPECT_EQ(AmdGpuOf("gfx90a").gb_per_s(), 36);
  EXPECT_EQ(AmdGpuOf("908").gpu(), "MI100");
  EXPECT_EQ(AmdGpuOf("906").gb_per_s(), 24);
}

TEST(LinkRatesTest, PcieIsWidthTimesLane) {
  EXPECT_FLOAT_EQ(PcieRate("8.0 GT/s PCIe", 16), 12);
  EXPECT_FLOAT_EQ(PcieRate("16.0 GT/s PCIe", 16), 24);
  EXPECT_FLOAT_EQ(PcieRate("32.0 GT/s PCIe", 16), 48);
  EXPECT_FLOAT_EQ(PcieRate("64.0 GT/s PCIe", 8), 48);
  EXPECT_FLOAT_EQ(PcieRate("5 GT/s", 4), 1.5);
  EXPECT_FLOAT_EQ(PcieRate("", 0), 12);  // neither is known
}

TEST(LinkRatesTest, SocketsFollowTheProcessor) {
  const NcclVersion v = NcclVersion::k2_30;
  EXPECT_FLOAT_EQ(SocketRate(v, "x86_64", "GenuineIntel", 6, 0x4f), 6);
  EXPECT_FLOAT_EQ(SocketRate(v, "x86_64", "GenuineIntel", 6, 0x55), 10);
  EXPECT_FLOAT_EQ(SocketRate(v, "x86_64", "GenuineIntel", 6, 0x8f), 22);
  EXPECT_FLOAT_EQ(SocketRate(v, "x86_64", "GenuineIntel", 6, 0xcf), 40);
  EXPECT_FLOAT_EQ(SocketRate(v, "x86_64", "AuthenticAMD", 23, 49), 16);
  EXPECT_FLOAT_EQ(SocketRate(NcclVersion::k2_17, "x86_64", "AuthenticAMD", 23, 49), 5000);
  EXPECT_FLOAT_EQ(SocketRate(NcclVersion::k2_17, "x86_64", "GenuineIntel", 6, 0xcf), 9);
  EXPECT_FLOAT_EQ(SocketRate(v, "ppc64", "", 0, 0), 32);
  EXPECT_FLOAT_EQ(SocketRate(v, "arm64", "", 0, 0), 6);
  EXPECT_FLOAT_EQ(SocketRate(v, "x86_64", "  Shanghai  ", 7, 0x5b), 9);
}

}  // namespace
}  // namespace plancast
