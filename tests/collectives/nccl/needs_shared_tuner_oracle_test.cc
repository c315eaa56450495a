#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collectives/nccl/tuner.h"
#include "gtest/gtest.h"
#include "tests/collectives/nccl/oracle.h"

// The tuning tables and predicted times of NCCL itself (oracles/nccl), from the
// graphs that it found.

namespace plancast {
namespace {

constexpr double kTolerance = 1e-4;

double RelativeError(double ours, double theirs) {
  return std::abs(ours - theirs) / std::max(std::abs(theirs), 1e-9);
}

class TunerOracleTest : public testing::Test {
 protected:
  void SetUp() override {
    oracles_ = ReadNcclOracles();
    if (oracles_.empty()) GTEST_SKIP() << "PLANCAST_SHARED_DATA is not set";
  }
  std::vector<NcclOracle> oracles_;
};

std::string PairName(NcclAlgorithm algorithm, Protocol protocol) {
  return absl::StrCat(kNcclAlgorithmNames[algorithm], "/", kProtocolNames[protocol]);
}

TEST_F(TunerOracleTest, TablesAreTheLibrarysOwn) {
  int cells = 0;
  double worst = 0;
  for (const NcclOracle& oracle : oracles_) {
    const auto tuner = NcclTuner::Create(oracle.communicator);
    ASSERT_TRUE(tuner.ok()) << oracle.name << ": " << tuner.status();
    for (const ProgramKind kind :
         {ProgramKind::kAllReduce, ProgramKind::kAllGather, ProgramKind::kReduceScatter,
          ProgramKind::kBroadcast, ProgramKind::kReduce}) {
      for (int a = 0; a < kNumNcclAlgorithms; ++a) {
        for (int p = 0; p < kNumProtocols; ++p) {
          const auto algorithm = static_cast<NcclAlgorithm>(a);
          const auto protocol = static_cast<Protocol>(p);
          const std::string pair = PairName(algorithm, protocol);
          const NcclCost ours = tuner->Cost(kind, algorithm, protocol);
          const auto theirs = std::find_if(
              oracle.cells.begin(), oracle.cells.end(),
              [&](const auto& cell) { return cell.kind == kind && cell.pair == pair; });
          const std::string place =
              absl::StrCat(oracle.name, " ", kProgramKindNames[kind], " ", pair);
          ASSERT_EQ(ours.bandwidth > 0, theirs != oracle.cells.end()) << place;
          if (theirs == oracle.cells.end()) continue;
          EXPECT_LE(RelativeError(ours.latency_us, theirs->latency_us), kTolerance)
              << place << ": " << ours.latency_us << " us, NCCL " << theirs->latency_us;
          EXPECT_LE(RelativeError(ours.bandwidth, theirs->bandwidth), kTolerance)
              << place << ": " << ours.bandwidth << " GB/s, NCCL " << theirs->bandwidth;
          worst = std::max({worst, RelativeError(ours.latency_us, theirs->latency_us),
                            RelativeError(ours.bandwidth, theirs->bandwidth)});
          ++cells;
        }
      }
    }
  }
  std::printf("%d cells, worst relative error %.1e\n", cells, worst);
  EXPECT_GT(cells, 1000);
}

TEST_F(TunerOracleTest, TimesAndChoicesAreTheLibrarysOwn) {
  int times = 0;
  double worst = 0;
  for (const NcclOracle& oracle : oracles_) {
    const auto tuner = NcclTuner::Create(oracle.communicator);
    ASSERT_TRUE(tuner.ok()) << oracle.name << ": " << tuner.status();
    for (const NcclOracle::Time& row : oracle.times) {
      const std::string place =
          absl::StrCat(oracle.name, " ", kProgramKindNames[row.kind], " of ", row.bytes);
      size_t available = 0;
      for (int a = 0; a < kNumNcclAlgorithms; ++a) {
        for (int p = 0; p < kNumProtocols; ++p) {
          const auto algorithm = static_cast<NcclAlgorithm>(a);
          const auto protocol = static_cast<Protocol>(p);
          const auto ours = tuner->Time(row.kind, algorithm, protocol, row.bytes);
          if (!ours) continue;
          ++available;
          const auto theirs = row.all.find(PairName(algorithm, protocol));
          ASSERT_NE(theirs, row.all.end()) << place << " " << PairName(algorithm, protocol);
          EXPECT_LE(RelativeError(*ours, theirs->second), kTolerance)
              << place << " " << theirs->first << ": " << *ours << " us, NCCL " << theirs->second;
          worst = std::max(worst, RelativeError(*ours, theirs->second));
          ++times;
        }
      }
      EXPECT_EQ(available, row.all.size()) << place;
      const auto choice = tuner->Choose(row.kind, row.bytes);
      ASSERT_TRUE(choice.has_value()) << place;
      EXPECT_EQ(PairName(choice->algorithm, choice->protocol), row.best) << place;
      EXPECT_LE(RelativeError(choice->us, row.us), kTolerance) << place;
    }
  }
  std::printf("%d times, worst relative error %.1e\n", times, worst);
  EXPECT_GT(times, 10000);
}

}  // namespace
}  // namespace plancast
