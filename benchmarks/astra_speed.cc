// The slow runs of ASTRA-sim in the compatible mode, as a table in Markdown: CPU
// seconds as it runs, and with every event made (docs/traces.md).

#include <cstdio>
#include <ctime>
#include <string>

#include "base/check.h"
#include "interop/astra/case_workloads.h"
#include "interop/astra/simulator/simulate_astra.h"

namespace plancast {
namespace {

struct Line {
  const char* what;
  const char* astra_sim;  // user seconds on 2 cores, November 2026
  const char* row;        // of a table of cases
};
constexpr Line kLines[] = {
    {"64 ranks × 1,000 nodes, chain, aware", "6.6–7.4",
     "congestion_aware,Switch,64,50,500,chain: 1000 nodes/rank (500 comp 100 us + 500 AR),"
     "all_reduce,1048576,ring,1,1,1,1e9,LIFO,localBWAware,1"},
    {"64 × 1,000, overlap", "30",
     "congestion_unaware,Switch,64,50,500,overlap: 1000 nodes/rank (500 comp 100 us + 500 AR),"
     "all_reduce,1048576,ring,1,1,1,1e9,LIFO,localBWAware,1"},
    {"64 × 1,000, chain, 4 splits, 4 active", "13",
     "congestion_unaware,Switch,64,50,500,chain: 1000 nodes/rank (500 comp 100 us + 500 AR),"
     "all_reduce,1048576,ring,4,4,1,1e9,LIFO,localBWAware,1"},
    {"256 × 200, chain", "14",
     "congestion_unaware,Switch,256,50,500,chain: 200 nodes/rank (100 comp 100 us + 100 AR),"
     "all_reduce,1048576,ring,1,1,1,1e9,LIFO,localBWAware,1"},
    {"1,024 × 1,000, chain, halving-doubling", "over 188",
     "congestion_unaware,Switch,1024,50,500,chain: 1000 nodes/rank (500 comp 100 us + 500 AR),"
     "all_reduce,1048576,halvingDoubling,1,1,1,1e9,LIFO,localBWAware,1"},
    {"1,024 × 100, chain, two dimensions", "40",
     "congestion_unaware,SwitchxSwitch,8x128,400x50,936.25x2000,"
     "chain: 100 nodes/rank (50 comp 100 us + 50 AR),all_reduce,1048576,ringxring,1,1,1,1e9,LIFO,"
     "localBWAware,2"},
    {"one all-reduce, 4,096 ranks, halving-doubling", "7.9",
     "congestion_unaware,Switch,4096,50,500,micro,all_reduce,1048576,halvingDoubling,1,1,1,1e9,"
     "LIFO,localBWAware,1"},
    {"one all-reduce, ring of 1,024", "3.6",
     "congestion_unaware,Switch,1024,50,500,micro,all_reduce,1048576,ring,1,1,1,1e9,LIFO,"
     "localBWAware,1"},
    {"the same, aware", "7.1",
     "congestion_aware,Switch,1024,50,500,micro,all_reduce,1048576,ring,1,1,1,1e9,LIFO,"
     "localBWAware,1"},
};

constexpr char kHeader[] =
    "case,backend,topology,npus_per_dim,bandwidth_GiBps,latency_ns,workload,collective,bytes,"
    "algorithm,preferred_dataset_splits,active_chunks_per_dim,endpoint_delay,local_mem_bw_GBps,"
    "scheduling,collective_optimization,num_queues_per_dim\n";

double Seconds(const AstraCase& c, const AstraCaseInputs& inputs, bool memo, int64_t& finish_ns) {
  AstraOptions options;
  options.memo = memo;
  const std::clock_t begin = std::clock();
  const absl::StatusOr<AstraResult> result =
      SimulateAstra(inputs.workload, c.network, inputs.system, options);
  PLANCAST_CHECK_OK(result.status());
  finish_ns = result->last_finish_ns();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

void Print(const Line& line) {
  const auto cases = ReadAstraCases(std::string(kHeader) + "case," + line.row + "\n", "table");
  PLANCAST_CHECK_OK(cases.status());
  const auto inputs = InputsOfCase(cases->front());
  PLANCAST_CHECK_OK(inputs.status());
  int64_t replayed = 0, plain = 0;
  const double fast = Seconds(cases->front(), *inputs, true, replayed);
  const double slow = Seconds(cases->front(), *inputs, false, plain);
  PLANCAST_CHECK(replayed == plain);
  std::printf("| %s | %s | %.2f | %.3f |\n", line.what, line.astra_sim, slow, fast);
}

}  // namespace
}  // namespace plancast

int main() {
  std::printf("| run | ASTRA-sim | ours, every event | ours |\n|---|---|---|---|\n");
  for (const plancast::Line& line : plancast::kLines) plancast::Print(line);
}
