#include "interop/astra/case_workloads.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interop/astra/simulator/simulate_astra.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

constexpr char kHeader[] =
    "case,backend,topology,npus_per_dim,bandwidth_GiBps,latency_ns,workload,collective,bytes,"
    "algorithm,preferred_dataset_splits,active_chunks_per_dim,endpoint_delay,local_mem_bw_GBps,"
    "scheduling,collective_optimization,num_queues_per_dim,note\n";

absl::StatusOr<AstraCase> CaseOf(absl::string_view workload, absl::string_view collective,
                                 absl::string_view note = "") {
  ASSIGN_OR_RETURN(
      const auto cases,
      ReadAstraCases(
          absl::StrCat(kHeader, "x,congestion_unaware,Switch,8,50,500,\"", workload, "\",",
                       collective, ",1048576,ring,1,1,1,1e9,LIFO,localBWAware,1,", note, "\n"),
          "cases.csv"));
  return cases.at(0);
}

absl::StatusOr<AstraResult> RunCase(const AstraCase& c) {
  ASSIGN_OR_RETURN(const AstraCaseInputs inputs, InputsOfCase(c));
  return SimulateAstra(inputs.workload, c.network, inputs.system);
}

// A chain of K is K (t_comp + t_AR), an overlap
// max(t_comp + K t_AR, K t_comp + t_AR); an all-reduce takes 48,189 ns here.
TEST(CaseWorkloadsTest, ChainsAndOverlaps) {
  const struct {
    const char* workload;
    int64_t want;
  } cases[] = {
      {"micro", 48189},
      {"chain: 10 x (comp 10 us -> AR)", 581890},
      {"chain: 20 nodes/rank (10 comp 10 us + 10 AR)", 581890},
      {"overlap: 10 comp 10 us + 10 AR, AR_i after comp_i", 491890},
      {"overlap: 20 nodes/rank (10 comp 100 us + 10 AR)", 1048189},
      {"3 independent AR nodes, same rank", 3 * 48189},
  };
  for (const auto& c : cases) {
    const auto read = CaseOf(c.workload, "all_reduce");
    ASSERT_OK(read);
    const auto result = RunCase(*read);
    ASSERT_OK(result) << c.workload;
    EXPECT_EQ(result->last_finish_ns(), c.want) << c.workload;
  }
}

TEST(CaseWorkloadsTest, GroupsMessagesAndTheExampleOfThePaper) {
  auto groups = CaseOf("2 groups of 4 (contiguous), pg_name", "all_reduce");
  ASSERT_OK(groups);
  const auto inputs = InputsOfCase(*groups);
  ASSERT_OK(inputs);
  EXPECT_THAT(inputs->workload.groups[1].ranks, ::testing::ElementsAre(4, 5, 6, 7));
  // Rings of groups have a delay of 10 between memory and NPU.
  EXPECT_EQ(RunCase(*groups)->last_finish_ns(), 10 + 6 * (1000 + 4882 + 10));

  auto dp = CaseOf("4 groups of 2 (dp)", "all_reduce");
  EXPECT_THAT(InputsOfCase(*dp)->workload.groups[1].ranks, ::testing::ElementsAre(1, 5));

  auto message = CaseOf("single 1 MiB message 2->5", "send_recv");
  const auto sent = RunCase(*message);
  ASSERT_OK(sent);
  EXPECT_EQ(sent->first_finish_ns(), 1000);
  EXPECT_EQ(sent->finish_ns[2], 20531);
  EXPECT_EQ(sent->finish_ns[5], 20531);

  auto mlp = CaseOf("tutorials MLP_ModelParallel 8 ranks", "mixed");
  EXPECT_GE(RunCase(*mlp)->last_finish_ns(), 195'206'000);  // its kernels
}

TEST(CaseWorkloadsTest, WordsThatSayTooLittleAreSaidToBe) {
  const auto stg = InputsOfCase(*CaseOf("STG llama-like dp2 tp2", "mixed"));
  EXPECT_THAT(stg, StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(stg.status().message(), HasSubstr("not in the table"));
  EXPECT_THAT(InputsOfCase(*CaseOf("micro", "broadcast")).status().message(),
              HasSubstr("`broadcast` is not one of"));
  EXPECT_THAT(InputsOfCase(*CaseOf("3 groups of 3 (tp)", "all_reduce")).status().message(),
              HasSubstr("are not the 8 NPUs"));
  EXPECT_THAT(InputsOfCase(*CaseOf("chain: as long as it likes", "all_reduce")).status().message(),
              HasSubstr("does not say how many"));
}

// All runs of ASTRA-sim that ended, to the nanosecond.
TEST(CaseWorkloadsTest, EqualToAstraSim) {
  const char* data = std::getenv("PLANCAST_SHARED_DATA");
  if (data == nullptr) GTEST_SKIP() << "no ../shared/data";
  const std::string path = absl::StrCat(data, "/oracles/astra/cases.csv");
  std::ifstream file(path);
  if (!file) GTEST_SKIP() << "no " << path;
  std::stringstream text;
  text << file.rdbuf();
  const auto cases = ReadAstraCases(text.str(), "cases.csv");
  ASSERT_OK(cases);
  int equal = 0, without_traces = 0;
  for (const AstraCase& c : *cases) {
    if (c.status != "ok") continue;
    const auto result = RunCase(c);
    if (result.status().code() == absl::StatusCode::kUnimplemented) {
      ++without_traces;
      continue;
    }
    ASSERT_OK(result) << c.name;
    EXPECT_EQ(result->first_finish_ns(), c.finish_min_ns) << c.name;
    EXPECT_EQ(result->last_finish_ns(), c.finish_max_ns) << c.name;
    ++equal;
  }
  EXPECT_EQ(equal, 122);
  EXPECT_EQ(without_traces, 1);  // STG's llama
}

}  // namespace
}  // namespace plancast
