// Launches of NCCL chunk by chunk against published measurements; nothing is fitted.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cluster/topology/machine_topology.h"
#include "executor/chunks/place_nccl.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

std::vector<std::string> Fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

TEST(NeedsSharedNcclMeasuredTest, ChunksAreNearerThanTheTuner) {
  const char* shared = std::getenv("PLANCAST_SHARED_DATA");
  if (shared == nullptr) GTEST_SKIP() << "PLANCAST_SHARED_DATA is not set";
  std::ifstream file(absl::StrCat(shared, "/oracles/comm_validation.csv"));
  std::string line;
  std::getline(file, line);
  std::map<std::string, NcclSearchResult> searches;
  std::vector<double> tuner_errors, chunk_errors, tuner_middle, chunk_middle;
  while (std::getline(file, line)) {
    const std::vector<std::string> row = Fields(line);
    const std::string& oracle = row[2];
    if (oracle.rfind("dgx_h100_n", 0) != 0 || oracle.find("_v227") == std::string::npos) continue;
    if (row[5] != "AllReduce" || row[3] == "1") continue;
    const std::string preset = absl::StrCat("dgx-h100:", row[3]);
    const Machine machine = *MachineFromPreset(preset);
    auto [found, added] = searches.try_emplace(preset);
    if (added) {
      const MachineTopology topology = TopologyOf(machine);
      found->second = *SearchGraphs(topology.system, topology.hosts, *ParseNcclVersion("2.27"));
    }
    int64_t bytes = 0;
    double measured = 0;
    ASSERT_TRUE(absl::SimpleAtoi(row[6], &bytes) && absl::SimpleAtod(row[7], &measured));
    const NcclTuner tuner = *NcclTuner::Create(found->second.communicator);
    const auto choice = tuner.Choose(ProgramKind::kAllReduce, bytes);
    ASSERT_TRUE(choice.has_value());
    const auto placed = PlaceNccl(machine, found->second, ProgramKind::kAllReduce, *choice, bytes);
    ASSERT_OK(placed.status());
    const auto outcome = ExecuteChunks(ChunkNetwork::OfMachine(machine), {*placed});
    ASSERT_OK(outcome.status());
    const double us = static_cast<double>(outcome->finish_ps) * 1e-6;
    tuner_errors.push_back(std::abs(choice->us / measured - 1));
    chunk_errors.push_back(std::abs(us / measured - 1));
    if (bytes >= 1 << 20 && bytes <= 64 << 20) {
      tuner_middle.push_back(tuner_errors.back());
      chunk_middle.push_back(chunk_errors.back());
    }
    std::cout << row[3] << " hosts, " << bytes << " bytes, "
              << kNcclAlgorithmNames[choice->algorithm] << "/" << kProtocolNames[choice->protocol]
              << ": measured " << measured << " us, NCCL's tuner " << choice->us / measured
              << ", chunks " << us / measured << "\n";
  }
  ASSERT_GT(chunk_errors.size(), 20u);
  std::cout << "median error: tuner " << Median(tuner_errors) << ", chunks " << Median(chunk_errors)
            << "; 1 to 64 MiB: tuner " << Median(tuner_middle) << ", chunks "
            << Median(chunk_middle) << "\n";
  EXPECT_LT(Median(chunk_errors), Median(tuner_errors));
  EXPECT_LT(Median(chunk_middle), Median(tuner_middle));
}

}  // namespace
}  // namespace plancast
