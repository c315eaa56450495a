// Times by hand on a toy machine: rates and latencies are round, and costs are
// written here rather than shipped.

#include "collectives/price.h"

#include <cmath>

#include "gtest/gtest.h"
#include "proto/text_proto.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

ProtocolCosts ToyCosts(const char* text) {
  auto proto = ParseTextProto<proto::CollectiveCosts>(text, "toy costs");
  EXPECT_TRUE(proto.ok()) << proto.status();
  auto costs = ProtocolCosts::Create(*proto);
  EXPECT_TRUE(costs.ok()) << costs.status();
  return *std::move(costs);
}

// 4 devices a host, 100 GB/s and 1 us inside; 2 interfaces of 10 GB/s and 5 us.
Machine ToyMachine(int64_t hosts) {
  Machine::Spec spec;
  spec.device = {};
  spec.device.memory_bytes = spec.device.memory_bytes_per_s = spec.device.bf16_flops = 1e12;
  spec.hosts = hosts;
  spec.gpus_per_host = 4;
  spec.intra_link = "nvlink3";
  spec.intra_bytes_per_s = 100e9;
  spec.intra_latency_s = 1e-6;
  spec.nics_per_host = 2;
  spec.nic_bytes_per_s = 10e9;
  spec.nic_latency_s = 5e-6;
  auto machine = Machine::Create(spec);
  EXPECT_TRUE(machine.ok()) << machine.status();
  return *std::move(machine);
}

constexpr char kIdeal[] = R"pb(
  cost { link: "nvlink3" algorithm: "ring" protocol: "Simple" efficiency: 1 }
  cost { link: "infiniband" algorithm: "ring" protocol: "Simple" efficiency: 1 }
  cost { link: "infiniband" algorithm: "tree" protocol: "Simple" efficiency: 1 })pb";

double TimeOf(const Machine& machine, const ProtocolCosts& costs, Algorithm algorithm,
              const GroupPattern& group, CollectiveKind kind, int64_t bytes, double scale = 1) {
  auto shape = ShapeOf(machine, group);
  EXPECT_TRUE(shape.ok()) << shape.status();
  const auto priced = Price(LinkCosts(machine, costs), *shape, *TrafficOf(algorithm, *shape, kind),
                            Protocol::kSimple, kind, bytes, scale);
  EXPECT_TRUE(priced.has_value());
  return priced ? priced->seconds(bytes) : 0;
}

// Four devices, each with a link of a third of its 100 GB/s to every other.
Machine XgmiMesh() {
  Machine::Spec spec = ToyMachine(1).spec();
  spec.topology = "cube-mesh";
  spec.intra_link = "xgmi";
  auto machine = Machine::Create(spec);
  EXPECT_TRUE(machine.ok()) << machine.status();
  return *std::move(machine);
}

TEST(PriceTest, AMessageInAMeshTakesTheLinkToItsReceiver) {
  const ProtocolCosts costs =
      ToyCosts(R"pb(cost { link: "xgmi" algorithm: "direct" protocol: "Simple" efficiency: 1 })pb");
  EXPECT_NEAR(TimeOf(XgmiMesh(), costs, Algorithm::kDirect, {0, {{4, 1}}}, CollectiveKind::kPermute,
                     1'000'000'000),
              1e-6 + 3e9 / 100e9, 1e-12);
}

TEST(PriceTest, AllPairsHaveToBeNamed) {
  const auto has = [](const char* text) {
    const ProtocolCosts costs = ToyCosts(text);
    return costs.Of("xgmi").Find(Algorithm::kDirect, Protocol::kLl, CollectiveKind::kAllReduce) !=
           nullptr;
  };
  EXPECT_FALSE(
      has(R"pb(cost { link: "xgmi" algorithm: "direct" protocol: "LL" efficiency: 1 })pb"));
  constexpr char kNamed[] = R"pb(
    cost { link: "xgmi" algorithm: "direct" protocol: "LL" collectives: "all_reduce" efficiency: 1 }
  )pb";
  ASSERT_TRUE(has(kNamed));
  // All members use all links of the mesh: 1.5 of the bytes, in two hops.
  const Machine mesh = XgmiMesh();
  auto shape = ShapeOf(mesh, {0, {{4, 1}}});
  ASSERT_TRUE(shape.ok());
  const CollectiveKind kind = CollectiveKind::kAllReduce;
  const ProtocolCosts costs = ToyCosts(kNamed);
  const auto priced = Price(LinkCosts(mesh, costs), *shape, *DirectTraffic(*shape, kind),
                            Protocol::kLl, kind, 1'000'000'000, 1);
  ASSERT_TRUE(priced.has_value());
  EXPECT_NEAR(priced->seconds(1'000'000'000), 2e-6 + 1.5e9 / 100e9, 1e-12);
}

TEST(PriceTest, ALinkMayBeLikeAnotherInSomeAlgorithms) {
  const ProtocolCosts costs = ToyCosts(R"pb(
    cost { link: "nvlink3" algorithm: "ring" protocol: "Simple" efficiency: 1 }
    cost { link: "nvlink3" algorithm: "pairwise" protocol: "Simple" efficiency: 1 }
    likeness { link: "xgmi" like: "nvlink3" algorithms: "pairwise" }
  )pb");
  const auto& link = costs.Of("xgmi");
  EXPECT_NE(link.Find(Algorithm::kPairwise, Protocol::kSimple, CollectiveKind::kAllToAll), nullptr);
  EXPECT_EQ(link.Find(Algorithm::kRing, Protocol::kSimple, CollectiveKind::kAllReduce), nullptr);
}

TEST(PriceTest, RingInOneHost) {
  // 2 (n-1) hops of 1 us, and 2 (n-1)/n of the bytes at 100 GB/s.
  EXPECT_NEAR(TimeOf(ToyMachine(1), ToyCosts(kIdeal), Algorithm::kRing, {0, {{4, 1}}},
                     CollectiveKind::kAllReduce, 1'000'000'000),
              6e-6 + 1.5e9 / 100e9, 1e-12);
}

TEST(PriceTest, RingOverHostsIsBoundByItsInterfaces) {
  // 8 members on 2 hosts of 2 interfaces: 14 hops, 2 of them between hosts.
  EXPECT_NEAR(TimeOf(ToyMachine(2), ToyCosts(kIdeal), Algorithm::kRing, {0, {{8, 1}}},
                     CollectiveKind::kAllReduce, 1'000'000'000),
              12e-6 + 2 * 5e-6 + 1.75e9 / 20e9, 1e-12);
  // One member per host: one interface.
  EXPECT_NEAR(TimeOf(ToyMachine(4), ToyCosts(kIdeal), Algorithm::kRing, {1, {{4, 4}}},
                     CollectiveKind::kAllReduce, 1'000'000'000),
              6 * 5e-6 + 1.5e9 / 10e9, 1e-12);
}

TEST(PriceTest, AllRingsOverOneInterface) {
  // Two groups of 2 members per host, each next to both interfaces: together
  // they get one.
  Machine::Spec spec = ToyMachine(2).spec();
  spec.ring_nics = 1;
  ASSERT_OK_AND_ASSIGN(const Machine machine, Machine::Create(spec));
  const GroupPattern group = {0, {{4, 2}}};
  ASSERT_OK_AND_ASSIGN(const GroupShape shape, ShapeOf(machine, group));
  EXPECT_EQ(shape.nics, 2);
  const ProtocolCosts costs = ToyCosts(kIdeal);
  const auto priced =
      Price(LinkCosts(machine, costs), shape, *RingTraffic(shape, CollectiveKind::kAllReduce),
            Protocol::kSimple, CollectiveKind::kAllReduce, 1'000'000'000, 1);
  ASSERT_TRUE(priced);
  EXPECT_DOUBLE_EQ(priced->nic, 1.5);            // on either interface, by both groups
  EXPECT_NEAR(priced->rate_cap, 10e9 / 1.5, 1);  // alone: one interface
  // One member per host has an interface of its own.
  EXPECT_NEAR(TimeOf(machine, costs, Algorithm::kRing, {0, {{2, 4}}}, CollectiveKind::kAllReduce,
                     1'000'000'000),
              2 * 5e-6 + 1e9 / 10e9, 1e-12);
}

TEST(PriceTest, TreeOverHosts) {
  // Chains of 4 up and down: 6 hops; 2 log2(4) between hosts; an inner host
  // sends the buffer twice.
  EXPECT_NEAR(TimeOf(ToyMachine(4), ToyCosts(kIdeal), Algorithm::kTree, {0, {{16, 1}}},
                     CollectiveKind::kAllReduce, 1'000'000'000),
              6e-6 + 4 * 5e-6 + 2e9 / 20e9, 1e-12);
}

TEST(PriceTest, EfficiencyAndLocalWorkLoadTheLink) {
  const ProtocolCosts costs = ToyCosts(R"pb(
    cost {
      link: "nvlink3"
      algorithm: "ring"
      protocol: "Simple"
      base_us: 10
      hop_us: 1
      efficiency: 0.8
      local_share: 0.1
    })pb");
  EXPECT_NEAR(TimeOf(ToyMachine(1), costs, Algorithm::kRing, {0, {{4, 1}}},
                     CollectiveKind::kAllReduce, 1'000'000'000),
              10e-6 + 6 * 2e-6 + 1.525e9 / 80e9, 1e-12);
}

TEST(PriceTest, FillGrowsWithTheSquareRoot) {
  const ProtocolCosts costs = ToyCosts(R"pb(
    cost { link: "nvlink3" algorithm: "ring" protocol: "Simple" efficiency: 1 fill: 2 })pb");
  const double transfer = 1.5e6 / 100e9, hops = 6e-6;
  EXPECT_NEAR(TimeOf(ToyMachine(1), costs, Algorithm::kRing, {0, {{4, 1}}},
                     CollectiveKind::kAllReduce, 1'000'000),
              std::pow(std::sqrt(hops) + std::sqrt(transfer), 2), 1e-12);
}

TEST(PriceTest, BandwidthScaleIsForRates) {
  EXPECT_NEAR(TimeOf(ToyMachine(1), ToyCosts(kIdeal), Algorithm::kRing, {0, {{4, 1}}},
                     CollectiveKind::kAllReduce, 1'000'000'000, 0.5),
              6e-6 + 1.5e9 / 50e9, 1e-12);
}

TEST(PriceTest, AnAlgorithmWithoutCostsDoesNotRun) {
  const Machine machine = ToyMachine(1);
  ASSERT_OK_AND_ASSIGN(const GroupShape shape, ShapeOf(machine, {0, {{4, 1}}}));
  const ProtocolCosts costs = ToyCosts(kIdeal);
  EXPECT_FALSE(Price(LinkCosts(machine, costs), shape,
                     *NvlsTraffic(shape, CollectiveKind::kAllReduce), Protocol::kSimple,
                     CollectiveKind::kAllReduce, 1, 1));
}

TEST(ProtocolCostsTest, RefusesWhatCannotBe) {
  const auto error = [](const char* text) {
    auto proto = ParseTextProto<proto::CollectiveCosts>(text, "toy costs");
    return std::string(ProtocolCosts::Create(*proto).status().message());
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(error(R"pb(cost { link: "x" algorithm: "rng" protocol: "LL" efficiency: 1 })pb"),
              HasSubstr("Did you mean `ring`?"));
  EXPECT_THAT(error(R"pb(cost { link: "x" algorithm: "ring" protocol: "LL" efficiency: 2 })pb"),
              HasSubstr("cost of ring/LL on x: efficiencies have to lie in (0, 1]"));
  EXPECT_THAT(error(R"pb(likeness { link: "x" like: "y" })pb"),
              HasSubstr("link `x` is like `y`, which has no costs."));
}

}  // namespace
}  // namespace plancast
