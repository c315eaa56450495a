// Forecasts on machines of several sections.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cluster/machine_proto.h"
#include "cluster/mixed_machine.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "planner/forecast/model_source.h"
#include "planner/forecast/predict.h"
#include "planner/forecast/ranked_prediction.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class MixedMachineForecastTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TransformerConfig config;
    config.name = "small";
    config.layers = 8;
    config.hidden = 4096;
    config.heads = config.kv_heads = 32;
    config.head_dim = 128;
    config.ffn = 16384;
    config.vocab = 4096;
    config.seq = 2048;
    ASSERT_OK_AND_ASSIGN(job_.model, TransformerSource(config));
    ASSERT_OK_AND_ASSIGN(job_.profile, FindSoftwareProfile("megatron-core"));
    job_.global_batch = 96;
    // So that devices set the pace, small as the model is.
    job_.profile.host.launch_s = job_.profile.host.host_sync_s = 0;
    costs_ = DefaultKernelCostModel();
  }

  static Machine Made(const std::string& preset) {
    absl::StatusOr<Machine> machine = MachineFromPreset(preset);
    EXPECT_TRUE(machine.ok()) << machine.status();
    return *std::move(machine);
  }
  Forecast Of(const std::string& strategy, const Machine& machine, PredictOptions options = {}) {
    Job job = job_;
    job.strategy = StrategyTree::FromShortForm(*ParseShortForm(strategy));
    absl::StatusOr<Forecast> forecast = Predict(job, machine, *costs_, session_, options);
    EXPECT_TRUE(forecast.ok()) << strategy << ": " << forecast.status();
    return forecast.ok() ? *forecast : Forecast();
  }
  Forecast Of(const std::string& strategy, const std::string& preset) {
    return Of(strategy, Made(preset));
  }

  Job job_;
  Session session_;
  std::shared_ptr<const KernelCostModel> costs_;
};

std::string Digits(const Forecast& f) {
  std::string text =
      // The ends of the interval are sums over sections, in their order.
      absl::StrFormat("%.17g %.14g %.14g %d %.17g %.17g %.17g", f.iteration_time_s, f.interval_s[0],
                      f.interval_s[1], f.peak_memory_bytes, f.peak_flops_per_gpu,
                      f.usd_per_iteration, f.kwh_per_iteration);
  for (const auto& [name, share] : f.result.factors) {
    absl::StrAppend(&text, " ", name, absl::StrFormat("=%.12g", share.seconds));
  }
  return text;
}

const char* const kStrategies[] = {
    "tp=8",        "tp=8,pp=2,sp",       "tp=4,pp=2,vpp=2,zero=1,overlap=grad+param",
    "pp=4,mb=2",   "tp=1,zero=3,hsdp=8", "tp=2,pp=2,recompute=full",
    "tp=1,zero=2", "tp=8,pp=4"};

// Sections that differ in nothing that a plan uses are one.
TEST_F(MixedMachineForecastTest, EqualHalvesTakeWhatTheWholeTakes) {
  const Machine whole = Made("dgx-h100:4");
  Machine::Spec halves;
  halves.name = "dgx-h100";
  halves.sections = {whole.spec(), whole.spec()};
  halves.sections[0].hosts = halves.sections[1].hosts = 2;
  ASSERT_OK_AND_ASSIGN(const Machine cut, Machine::Create(halves));
  ASSERT_TRUE(cut.mixed());
  for (const char* strategy : kStrategies) {
    EXPECT_EQ(Digits(Of(strategy, cut)), Digits(Of(strategy, whole))) << strategy;
  }
  EXPECT_EQ(Digits(Of("tp=8", "dgx-h100:2+dgx-h100:2")), Digits(Of("tp=8", whole)));
}

// Stage 0 on A100, stage 1 on H100: the kernels of each take what they take on its own kind.
TEST_F(MixedMachineForecastTest, StagesComputeAtThePaceOfTheirOwnDevices) {
  job_.profile.contention.interference = job_.profile.contention.comm_interference = 0;
  for (const std::string strategy : {"tp=8,pp=2", "tp=8,pp=2,vpp=2,recompute=full"}) {
    const Forecast mixed = Of(strategy, "dgx-a100-80g:1+dgx-h100:1");
    const Forecast a100 = Of(strategy, "dgx-a100-80g:2"), h100 = Of(strategy, "dgx-h100:2");
    ASSERT_EQ(mixed.result.classes.size(), 2);
    const auto busy = [](const Forecast& f, int stage) {
      const Breakdown& b = f.result.classes[stage].breakdown;
      return b.compute + b.recompute + b.optimizer;
    };
    EXPECT_NEAR(busy(mixed, 0), busy(a100, 0), 1000) << strategy;  // picoseconds
    EXPECT_NEAR(busy(mixed, 1), busy(h100, 1), 1000) << strategy;
    EXPECT_LT(busy(mixed, 1), busy(mixed, 0)) << strategy;
    EXPECT_GT(mixed.iteration_time_s, h100.iteration_time_s) << strategy;
    EXPECT_LT(mixed.iteration_time_s, a100.iteration_time_s) << strategy;
    // What was found out about kernels of either counts.
    EXPECT_EQ(mixed.peak_flops_per_gpu, (a100.peak_flops_per_gpu + h100.peak_flops_per_gpu) / 2);
  }
}

// Where replicas lie on both kinds, all wait for the slower ones.
TEST_F(MixedMachineForecastTest, ReplicasGoAtThePaceOfTheSlowest) {
  const Forecast mixed = Of("tp=8", "dgx-a100-80g:2+dgx-h100:2");
  const Forecast a100 = Of("tp=8", "dgx-a100-80g:4"), h100 = Of("tp=8", "dgx-h100:4");
  EXPECT_GT(mixed.iteration_time_s, 0.97 * a100.iteration_time_s);
  EXPECT_LT(mixed.iteration_time_s, 1.03 * a100.iteration_time_s);
  EXPECT_GT(a100.iteration_time_s, 1.2 * h100.iteration_time_s);
  ASSERT_EQ(mixed.result.classes.size(), 2);
  EXPECT_EQ(mixed.result.classes[0].devices, 16);
  EXPECT_GT(mixed.result.classes[1].breakdown.straggler + mixed.result.classes[1].breakdown.bubble +
                mixed.result.classes[1].breakdown.exposed_dp,
            0);
  // The order of the sections is that of the devices, and changes nothing here.
  const Forecast turned = Of("tp=8", "dgx-h100:2+dgx-a100-80g:2");
  EXPECT_EQ(turned.iteration_time_s, mixed.iteration_time_s);
}

TEST_F(MixedMachineForecastTest, ASlowDeviceOrLinkIsFoundInItsSection) {
  const Machine machine = Made("dgx-a100-80g:2+dgx-h100:2");
  const double now = Of("tp=8", machine).iteration_time_s;
  PredictOptions options;
  ASSERT_OK_AND_ASSIGN(options.what_if, ParseWhatIf("device:3=50%"));
  EXPECT_GT(Of("tp=8", machine, options).iteration_time_s, 1.2 * now);
  // An H100 that is a little slower still waits for the A100s.
  ASSERT_OK_AND_ASSIGN(options.what_if, ParseWhatIf("device:20=90%"));
  EXPECT_LT(Of("tp=8", machine, options).iteration_time_s, 1.01 * now);
  // Interface 3 is an A100's; interface 20 an H100's, which has twice as much to spare.
  ASSERT_OK_AND_ASSIGN(options.what_if, ParseWhatIf("nic:3=10%"));
  const double narrow = Of("tp=8", machine, options).iteration_time_s;
  ASSERT_OK_AND_ASSIGN(options.what_if, ParseWhatIf("nic:20=10%"));
  const double less_narrow = Of("tp=8", machine, options).iteration_time_s;
  EXPECT_GT(narrow, less_narrow);
  EXPECT_GT(less_narrow, now);
  ASSERT_OK_AND_ASSIGN(options.what_if, ParseWhatIf("nic=0.1x"));
  EXPECT_GT(Of("tp=8", machine, options).iteration_time_s, 0.99 * narrow);
}

// Each stage has to fit on the smallest devices that run it.
TEST_F(MixedMachineForecastTest, FitsWhereEachStageFitsItsOwnDevices) {
  const double need = static_cast<double>(Of("tp=1,pp=2", "dgx-h100:2").peak_memory_bytes);
  const double little = need / 1073741824.0 * 0.8;  // GiB
  const auto machine = [&](double first, double second) {
    const auto section = [](const char* name, double gib) {
      return absl::StrCat(R"({"preset": "dgx-h100", "gpu": {"name": ")", name,
                          R"(", "like": "H100-SXM-80GB", "memory_gb": )", gib, R"(, "usable_gb": )",
                          gib, "}}");
    };
    absl::StatusOr<Machine> made = MachineFromJson(absl::StrCat(
        R"({"sections": [)", section("first", first), ", ", section("second", second), "]}"));
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  };
  // Stage 0 has more in flight and is the fuller one.
  const Forecast full = Of("tp=1,pp=2", machine(little, 80));
  EXPECT_FALSE(full.fits);
  EXPECT_NEAR(full.memory_capacity_bytes, little * 1073741824.0, 1e-5 * need);
  const Forecast fits = Of("tp=1,pp=2", machine(80, 80));
  EXPECT_TRUE(fits.fits);
  ASSERT_EQ(full.result.classes.size(), 2);
  EXPECT_LT(full.result.classes[0].memory.capacity, full.result.classes[1].memory.capacity);
  // Replicas of one stage on both: the smaller decide.
  EXPECT_FALSE(Of("tp=1", machine(80, 1)).fits);
  EXPECT_EQ(Of("tp=1", machine(80, 1)).memory_capacity_bytes, 1073741824.0);
  // Rankings see the same.
  for (const double first : {little, 80.0}) {
    const Machine here = machine(first, 80);
    Job job = job_;
    job.strategy = StrategyTree::FromShortForm(*ParseShortForm("tp=1,pp=2"));
    GraphWorkspace workspace;
    ASSERT_OK_AND_ASSIGN(const Forecast one, PredictOneOfMany(
                                                 job, here, *costs_, session_,
                                                 [](const Forecast&) { return true; }, &workspace));
    const Forecast alone = Of("tp=1,pp=2", here);
    EXPECT_EQ(one.fits, alone.fits);
    if (!one.fits) continue;
    EXPECT_EQ(one.iteration_time_s, alone.iteration_time_s);
    EXPECT_EQ(one.peak_memory_bytes, alone.peak_memory_bytes);
    EXPECT_EQ(one.memory_capacity_bytes, alone.memory_capacity_bytes);
  }
}

TEST_F(MixedMachineForecastTest, CostsAndEnergyAreSumsOverTheKinds) {
  const Machine machine = Made("dgx-a100-80g:1+dgx-h100:3");
  const Forecast forecast = Of("tp=8", machine);
  const double hours = forecast.iteration_time_s / 3600;
  double usd = 0, kwh = 0;
  for (int64_t device = 0; device < machine.num_devices(); ++device) {
    usd += machine.DeviceOf(device).usd_per_hour * hours;
    kwh += machine.DeviceOf(device).tdp_watts * hours / 1000;
  }
  EXPECT_NEAR(forecast.usd_per_iteration, usd, 1e-9 * usd);
  EXPECT_NEAR(forecast.kwh_per_iteration, kwh, 1e-9 * kwh);
  EXPECT_THAT(forecast.warnings, Contains(HasSubstr("several kinds of hosts at once")));
}

// Noise and stragglers run on every device by itself, and sigma 0 changes nothing.
TEST_F(MixedMachineForecastTest, SamplesAreThoseOfEveryDevice) {
  const Machine machine = Made("dgx-a100-80g:1+dgx-h100:1");
  PredictOptions options;
  options.randomness.samples = 3;
  options.randomness.jitter = 1e-12;
  const Forecast forecast = Of("tp=8,pp=2", machine, options);
  ASSERT_TRUE(forecast.distribution.has_value());
  EXPECT_NEAR(forecast.distribution->mean_s(), forecast.iteration_time_s,
              1e-6 * forecast.iteration_time_s);
  options.randomness.jitter = 0;
  options.randomness.straggler_probability = 1;
  options.randomness.straggler_speed = 0.5;
  const Forecast slow = Of("tp=8,pp=2", machine, options);
  EXPECT_GT(slow.distribution->mean_s(), 1.3 * slow.iteration_time_s);
}

TEST_F(MixedMachineForecastTest, ChunksAreRefusedInWords) {
  Job job = job_;
  job.strategy = StrategyTree::FromShortForm(*ParseShortForm("tp=8"));
  PredictOptions options;
  options.chunk_level = true;
  EXPECT_THAT(Predict(job, Made("dgx-a100-80g:1+dgx-h100:1"), *costs_, session_, options)
                  .status()
                  .message(),
              HasSubstr("chunk by chunk is for machines of equal hosts"));
}

}  // namespace
}  // namespace plancast
