// Compares with published measurements that nothing was fitted on,
// truth/collectives.csv. Needs ../shared: PLANCAST_SHARED_DATA names its data
// folder, otherwise the test skips.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cluster/machine.h"
#include "collectives/realise.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

struct Measured {
  std::string id, machine, collective;
  int64_t gpus = 0, hosts = 0, bytes = 0;
  double seconds = 0;
};

// The columns up to the time hold no quotes.
std::vector<Measured> ReadRows(const std::string& path) {
  std::vector<Measured> rows;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    const std::vector<std::string> f = absl::StrSplit(line, ',');
    Measured row;
    double time_us = 0;
    if (f.size() < 10 || !absl::SimpleAtoi(f[2], &row.gpus) ||
        !absl::SimpleAtoi(f[3], &row.hosts) || !absl::SimpleAtoi(f[5], &row.bytes) ||
        !absl::SimpleAtod(f[9], &time_us)) {
      ADD_FAILURE() << "unreadable: " << line;
      continue;
    }
    row.id = f[0];
    row.machine = f[1];
    row.collective = f[4];
    row.seconds = time_us * 1e-6;
    rows.push_back(row);
  }
  return rows;
}

double Predict(const Measured& row, std::string& how) {
  auto machine = MachineFromPreset(absl::StrCat(row.machine, ":", std::max<int64_t>(1, row.hosts)));
  EXPECT_TRUE(machine.ok()) << machine.status();
  const CollectiveKind kind = row.collective == "all_reduce"   ? CollectiveKind::kAllReduce
                              : row.collective == "all_gather" ? CollectiveKind::kAllGather
                                                               : CollectiveKind::kReduceScatter;
  GroupPattern group;
  group.dims = {{row.gpus, 1}};
  auto realised = Realise(*machine, group, kind, row.bytes);
  EXPECT_TRUE(realised.ok()) << realised.status();
  how = absl::StrCat(realised->algorithm, "/", realised->protocol);
  return AloneTime(*machine, *realised) * 1e-12;
}

TEST(MeasuredCollectivesTest, HeldOutErrorsStayInBounds) {
  const char* data = std::getenv("PLANCAST_SHARED_DATA");
  if (data == nullptr || *data == '\0') {
    GTEST_SKIP() << "needs ../shared: set PLANCAST_SHARED_DATA to its data folder";
  }
  // Largest mean error per machine and size class: latency (below 1 MB), tensor
  // parallel messages and buckets (1 to 256 MB), bandwidth (above).
  const std::map<std::string, std::vector<double>> bounds = {
      {"nebius-h100", {0.25, 0.15, 0.05}},  {"dgx-h200", {0.60, 0.20, 0.12}},
      {"dgx-a100-80g", {0.60, 0.25, 0.08}}, {"oci-a100-40g", {0, 0, 0.20}},
      {"p5-h100", {0.40, 0.35, 0.22}},      {"p4de-a100-80g", {0.75, 0.40, 0.15}},
      {"deepbench-p100", {0.45, 0.55, 0}},  {"deepbench-m40", {0.50, 0.45, 0}}};
  std::map<std::string, std::vector<std::vector<double>>> errors;
  const bool verbose = std::getenv("PLANCAST_PRINT_ROWS") != nullptr;
  for (const Measured& row : ReadRows(absl::StrCat(data, "/truth/collectives.csv"))) {
    std::string how;
    const double error = Predict(row, how) / row.seconds - 1;
    const int size = row.bytes < 1'000'000 ? 0 : row.bytes < 300'000'000 ? 1 : 2;
    auto& of = errors[row.machine];
    of.resize(3);
    of[size].push_back(error);
    if (verbose) {
      std::printf("%s %s %ldx%ld %s %ld: %+.1f %% %s\n", row.id.c_str(), row.machine.c_str(),
                  row.hosts, row.gpus, row.collective.c_str(), row.bytes, 100 * error, how.c_str());
    }
  }
  std::printf("%-16s %22s %22s %22s\n", "machine", "< 1 MB", "1 to 256 MB", "> 256 MB");
  std::printf("%-16s %22s %22s %22s\n", "", "rows mean|e| bias", "rows mean|e| bias",
              "rows mean|e| bias");
  for (const auto& [machine, by_size] : errors) {
    std::printf("%-16s", machine.c_str());
    for (size_t size = 0; size < by_size.size(); ++size) {
      double sum = 0, bias = 0;
      for (const double e : by_size[size]) {
        sum += std::fabs(e);
        bias += e;
      }
      const double count = std::max<double>(1, by_size[size].size());
      std::printf("   %4zu %5.1f %% %+6.1f %%", by_size[size].size(), 100 * sum / count,
                  100 * bias / count);
      const auto bound = bounds.find(machine);
      if (bound == bounds.end() || by_size[size].empty()) continue;
      EXPECT_LE(sum / count, bound->second[size]) << machine << ", size class " << size;
    }
    std::printf("\n");
  }
}

}  // namespace
}  // namespace plancast
