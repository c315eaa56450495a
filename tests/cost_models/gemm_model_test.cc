#include "cost_models/gemm_model.h"

#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cost_models/catalogue_device.h"

namespace plancast {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;

KernelSpec Gemm(int64_t m, int64_t n, int64_t k, DType dtype = DType::kBf16) {
  KernelSpec spec;
  spec.family = KernelFamily::kGemm;
  spec.dtype = dtype;
  spec.m = m;
  spec.n = n;
  spec.k = k;
  return spec;
}

KernelCost Price(const KernelSpec& spec, const DeviceType& device) {
  return GemmTileModel(CoefficientTables::Shipped()).Estimate(spec, device).value();
}

double Seconds(const KernelSpec& spec, absl::string_view gpu) {
  return Price(spec, *CatalogueDevice(gpu)).seconds_alone;
}

// Shapes from decode-like to training-like, log-uniform; rows begin at multiples of 16 bytes.
class Shapes {
 public:
  int64_t Size(int64_t low, int64_t high) {
    std::uniform_real_distribution<double> log_size(std::log(low), std::log(high));
    return static_cast<int64_t>(std::exp(log_size(random_)));
  }
  int64_t Aligned(int64_t high) { return 8 * Size(1, high / 8); }
  KernelSpec Next() {
    KernelSpec spec = Gemm(Aligned(65536), Aligned(50000), Aligned(50000));
    spec.batch = Size(1, 16);
    spec.pass = static_cast<GemmPass>(random_() % 3);
    spec.accumulate_fp32 = random_() % 4 == 0;
    return spec;
  }

 private:
  std::mt19937 random_{17};
};

constexpr absl::string_view kGpus[] = {"A100-SXM-80GB", "H100-SXM-80GB", "B200-SXM",
                                       "V100-SXM-16GB", "L40S"};

TEST(GemmTileModel, OperandsAreQuantisedUnlessTheyComeSo) {
  const DeviceType h100 = *CatalogueDevice("H100-SXM-80GB");
  KernelSpec spec = Gemm(16384, 4096, 8192, DType::kFp8);
  const double one = 16384.0 * 8192, other = 4096.0 * 8192;
  const double whole = Price(spec, h100).hbm_bytes;
  spec.quantized_operand = true;
  const double product = Price(spec, h100).hbm_bytes;
  EXPECT_GT(whole, product + 5 * one);  // two readings in 16 bits and a writing in 8
  // Along the other dim both are written once more in 8 bits, but not where units read either way,
  // nor with scales of blocks, which are quantised along both dims before.
  spec.pass = GemmPass::kWgrad;
  EXPECT_DOUBLE_EQ(Price(spec, h100).hbm_bytes, product + one + other);
  EXPECT_DOUBLE_EQ(Price(spec, *CatalogueDevice("B200-SXM")).hbm_bytes, product);
  spec.dtype = DType::kFp8Block;
  EXPECT_LT(Price(spec, h100).hbm_bytes, product + one);
  // With scales of rows neither operand serves another product.
  const KernelSpec rows = Gemm(16384, 4096, 8192, DType::kFp8Row);
  EXPECT_NEAR((Price(rows, h100).hbm_bytes - product) / (whole - product), 1 + other / one, 1e-9);
}

TEST(GemmTileModel, IsNeverFasterThanTheNominalPeaks) {
  Shapes shapes;
  for (int i = 0; i < 400; ++i) {
    KernelSpec spec = shapes.Next();
    for (absl::string_view gpu : kGpus) {
      SCOPED_TRACE(spec.DebugString());
      DeviceType device = *CatalogueDevice(gpu);
      KernelCost cost = Price(spec, device);
      double peak = device.bf16_flops > 0 ? device.bf16_flops : device.fp16_flops;
      double flops = 2.0 * spec.batch * spec.m * spec.n * spec.k;
      EXPECT_GE(cost.seconds_alone, flops / peak);
      EXPECT_GE(cost.seconds_alone, cost.hbm_bytes / device.memory_bytes_per_s);
      EXPECT_THAT(cost.sm_fraction, AllOf(Gt(0.0), ::testing::Le(1.0)));
    }
  }
}

TEST(GemmTileModel, GrowsWithK) {
  Shapes shapes;
  for (int i = 0; i < 200; ++i) {
    KernelSpec spec = shapes.Next();
    SCOPED_TRACE(spec.DebugString());
    KernelSpec longer = spec;
    longer.k += shapes.Aligned(4096);
    EXPECT_LE(Seconds(spec, "A100-SXM-80GB"), Seconds(longer, "A100-SXM-80GB"));
  }
}

TEST(GemmTileModel, GrowsWithRowsAndColumns) {
  Shapes shapes;
  for (int i = 0; i < 300; ++i) {
    KernelSpec spec = shapes.Next();
    SCOPED_TRACE(spec.DebugString());
    KernelSpec taller = spec, wider = spec, more = spec;
    taller.m += shapes.Aligned(4096);
    wider.n += shapes.Aligned(4096);
    more.batch += 1;
    for (absl::string_view gpu : kGpus) {
      const double seconds = Seconds(spec, gpu);
      for (const KernelSpec& larger : {taller, wider, more}) {
        EXPECT_LE(seconds, Seconds(larger, gpu) * (1 + 1e-9)) << gpu << larger.DebugString();
      }
    }
  }
}

// Steps are those of waves and tiles: no size is a cliff.
TEST(GemmTileModel, HasNoCliffs) {
  for (absl::string_view gpu : kGpus) {
    double last = Seconds(Gemm(1, 4096, 4096), gpu);
    for (int64_t m = 2; m < 20000; m += 1 + m / 50) {
      const double seconds = Seconds(Gemm(m, 4096, 4096), gpu);
      EXPECT_LE(seconds, 2 * last) << gpu << " at " << m;
      last = seconds;
    }
  }
}

// Products that are launched one by one fill the SMs one by one: never faster than together by more
// than the choice of tiles, and as long as so many of them.
TEST(GemmTileModel, ProductsLaunchedOneByOneTakeAsLongAsEachAlone) {
  for (absl::string_view gpu : kGpus) {
    for (const int64_t rows : {1, 100, 1000, 5000}) {
      KernelSpec spec = Gemm(rows, 1536, 2048);
      const double alone = Seconds(spec, gpu);
      spec.batch = 16;
      const double together = Seconds(spec, gpu);
      spec.launches = 16;
      EXPECT_NEAR(Seconds(spec, gpu), 16 * alone, 1e-9 * alone) << gpu << " " << rows;
      EXPECT_LE(together, 16 * alone * 1.1) << gpu << " " << rows;
    }
  }
}

// The same GPU with a clock and a memory half as fast takes twice as long, its launch aside.
// Blocks of the next product begin where the last ones of another are over.
TEST(GemmTileModel, ProductsOnSeveralStreamsFillEachOthersLastWaves) {
  for (const absl::string_view gpu : kGpus) {
    Shapes shapes;
    for (int i = 0; i < 200; ++i) {
      KernelSpec alone = shapes.Next(), one = alone;
      one.alike = 8;
      KernelSpec all = alone;
      all.batch *= 8;
      const double eighth = Seconds(all, gpu) / 8;
      EXPECT_LE(Seconds(one, gpu), Seconds(alone, gpu)) << alone.DebugString();
      EXPECT_GE(Seconds(one, gpu), 0.9 * eighth) << alone.DebugString();
    }
  }
  // On an A100 time is a stair: a wave of blocks and a few more take two.
  KernelSpec spec = Gemm(1024, 3840, 8192);
  const double alone = Seconds(spec, "A100-SXM-80GB");
  spec.alike = 8;
  EXPECT_LT(Seconds(spec, "A100-SXM-80GB"), 0.9 * alone);
}

TEST(GemmTileModel, ScalesWithTheRatesOfTheDevice) {
  DeviceType device = *CatalogueDevice("A100-SXM-80GB"), slow = device;
  slow.bf16_flops /= 2;
  slow.fp16_flops /= 2;
  slow.memory_bytes_per_s /= 2;
  const GemmCoefficients& c = CoefficientTables::Shipped().FindGemm("bf16", device)->coefficients;
  GemmCoefficients plain = c;
  plain.sustained_loss = 0;
  plain.split_floors = 0;
  Shapes shapes;
  for (int i = 0; i < 100; ++i) {
    const KernelSpec spec = shapes.Next();
    const auto seconds = [&](const DeviceType& on) {
      const MatmulUnit unit = MatmulUnitFor(on, spec.dtype);
      return TimeOfProduct(spec, plain, unit, on, ProductBytes(spec, unit.runs)).seconds -
             plain.floor_s;
    };
    EXPECT_NEAR(seconds(slow) / seconds(device), 2, 1e-9) << spec.DebugString();
  }
}

TEST(GemmTileModel, TrainingSlowsComputingAndNotMemory) {
  DeviceType device = *CatalogueDevice("B200-SXM");
  GemmCoefficients c = CoefficientTables::Shipped().FindGemm("bf16", device)->coefficients;
  GemmCoefficients isolated = c;
  isolated.forward_factor = 1;
  const auto ratio = [&](const KernelSpec& spec) {
    const MatmulUnit unit = MatmulUnitFor(device, spec.dtype);
    const double bytes = ProductBytes(spec, unit.runs);
    return TimeOfProduct(spec, c, unit, device, bytes).seconds /
           TimeOfProduct(spec, isolated, unit, device, bytes).seconds;
  };
  EXPECT_GT(c.forward_factor, 1.2);
  EXPECT_NEAR(ratio(Gemm(1, 16384, 16384)), 1, 0.02);
  EXPECT_THAT(ratio(Gemm(16384, 16384, 16384)), AllOf(Gt(1.2), Lt(c.forward_factor)));
}

// A published cap was measured in steady loops: it is not slowed again by what training does.
TEST(GemmTileModel, ACapCountsForWhatTrainingHoldsBack) {
  DeviceType device = *CatalogueDevice("H100-SXM-80GB");
  GemmCoefficients c = CoefficientTables::Shipped().FindGemm("bf16", device)->coefficients;
  ASSERT_GT(c.forward_factor, 1.1);
  GemmCoefficients isolated = c;
  isolated.forward_factor = 1;
  const KernelSpec spec = Gemm(4096, 4096, 4096);
  const auto seconds = [&](const GemmCoefficients& coefficients, double held_to) {
    MatmulUnit unit = MatmulUnitFor(device, spec.dtype);
    unit.held_to = held_to;
    return TimeOfProduct(spec, coefficients, unit, device, ProductBytes(spec, unit.runs)).seconds;
  };
  EXPECT_GT(seconds(c, 1), 1.02 * seconds(isolated, 1));
  EXPECT_EQ(seconds(c, 0.7), seconds(isolated, 0.7));
}

// Medians of other GPUs, at the power density of the one at hand.
TEST(GemmTileModel, ChipsWithMoreFlopsPerWattSustainLess) {
  DeviceType device = *CatalogueDevice("V100-SXM-16GB"), hungry = device;
  hungry.tdp_watts /= 2;
  EXPECT_GT(Price(Gemm(8192, 8192, 8192), hungry).seconds_alone,
            1.02 * Price(Gemm(8192, 8192, 8192), device).seconds_alone);
}

TEST(GemmTileModel, ClimbsAStairOnA100AndARampOnH100) {
  // 96 tiles of 256x128 are 0.89 waves of A100's 108 SMs, 128 tiles are 1.19.
  KernelSpec below = Gemm(1536, 2048, 4096), above = Gemm(2048, 2048, 4096);
  EXPECT_THAT(Seconds(above, "A100-SXM-80GB") / Seconds(below, "A100-SXM-80GB"),
              AllOf(Gt(1.45), Lt(1.75)));
  EXPECT_THAT(Seconds(above, "H100-SXM-80GB") / Seconds(below, "H100-SXM-80GB"),
              AllOf(Gt(1.2), Lt(1.4)));
  // Filling the wave costs nothing: 108 tiles as fast as 96.
  EXPECT_NEAR(Seconds(Gemm(2304, 1536, 6144), "A100-SXM-80GB"),
              Seconds(Gemm(2048, 1536, 6144), "A100-SXM-80GB"), 5e-6);
}

TEST(GemmTileModel, SustainsFourFifthsOfA100OnTheBestTrainingShapes) {
  KernelSpec spec = Gemm(16384, 12288, 12288);
  double flops = 2.0 * spec.m * spec.n * spec.k;
  EXPECT_THAT(flops / Seconds(spec, "A100-SXM-80GB") / 312e12, AllOf(Gt(0.77), Lt(0.84)));
}

// With an odd vocabulary, what is computed by columns of it (the head) and what adds them up.
TEST(GemmTileModel, RowsOffTheWidestLoadAreSlow) {
  const auto times = [](GemmPass pass, int64_t m, int64_t n, int64_t k, int64_t odd_m,
                        int64_t odd_n, int64_t odd_k, absl::string_view gpu) {
    KernelSpec even = Gemm(m, n, k), odd = Gemm(odd_m, odd_n, odd_k);
    even.pass = odd.pass = pass;
    return Seconds(odd, gpu) / Seconds(even, gpu);
  };
  const auto head = [&](int64_t vocabulary, absl::string_view gpu) {
    return std::vector<double>{
        times(GemmPass::kForward, 8192, 128256, 4096, 8192, vocabulary, 4096, gpu),
        times(GemmPass::kDgrad, 8192, 4096, 128256, 8192, 4096, vocabulary, gpu),
        times(GemmPass::kWgrad, 128256, 4096, 8192, vocabulary, 4096, 8192, gpu)};
  };
  const auto near = [](double times) { return ::testing::DoubleNear(times, 0.1 * times); };
  EXPECT_THAT(head(128255, "H100-SXM-80GB"), ElementsAre(near(1.5), near(3), near(3)));
  EXPECT_THAT(head(128254, "H100-SXM-80GB"), ElementsAre(near(1.5), near(1.5), near(1.5)));
  EXPECT_THAT(head(128255, "A100-SXM-80GB"), ElementsAre(near(1), near(2), near(2)));
  EXPECT_THAT(head(128254, "A100-SXM-80GB"), ElementsAre(near(1), near(1), near(1)));
  // Rows of tokens are never stored side by side; vectors and other types have kernels of their
  // own.
  EXPECT_THAT(Seconds(Gemm(8191, 4096, 4096), "H100-SXM-80GB"),
              ::testing::Le(1.01 * Seconds(Gemm(8192, 4096, 4096), "H100-SXM-80GB")));
  EXPECT_THAT(Seconds(Gemm(8192, 4096, 4095, DType::kFp32), "H100-SXM-80GB"),
              ::testing::Le(1.01 * Seconds(Gemm(8192, 4096, 4096, DType::kFp32), "H100-SXM-80GB")));
}

TEST(GemmTileModel, BatchesWithRowsOffTheWidestLoadRunWithoutTensorCores) {
  const DeviceType a100 = *CatalogueDevice("A100-SXM-80GB");
  KernelSpec even = Gemm(2048, 2048, 108);
  even.batch = 64;
  even.flops = 2.0 * 64 * 2048 * 2048 * 108;
  KernelSpec odd = even;
  odd.row_multiple = 4;
  // BLOOM's heads of 108 and 150 elements: 8.3 to 10.7 TFLOP/s.
  EXPECT_NEAR(odd.flops / Price(odd, a100).seconds_alone, 9.6e12, 0.05e12);
  EXPECT_GT(even.flops / Price(even, a100).seconds_alone, 50e12);
  // Other types have kernels of their own, and so have products that are no batch.
  for (KernelSpec spec : {Gemm(2048, 2048, 108, DType::kFp32), Gemm(2048, 2048, 108)}) {
    spec.flops = 2.0 * 2048 * 2048 * 108;
    const double plain = Price(spec, a100).seconds_alone;
    spec.row_multiple = 4;
    EXPECT_DOUBLE_EQ(Price(spec, a100).seconds_alone, plain);
  }
}

TEST(GemmTileModel, DoesNotCareWhichSideIsCalledM) {
  EXPECT_DOUBLE_EQ(Seconds(Gemm(8192, 1024, 4096), "H100-SXM-80GB"),
                   Seconds(Gemm(1024, 8192, 4096), "H100-SXM-80GB"));
}

TEST(GemmTileModel, SplitsKWhereTilesAreFew) {
  // 8 tiles cannot fill 108 SMs; without splitting k this would take 0.5 ms.
  EXPECT_LT(Seconds(Gemm(512, 512, 65536), "A100-SXM-80GB"), 3e-4);
}

TEST(GemmTileModel, ChargesTheFp32BufferOfAccumulation) {
  DeviceType device = *CatalogueDevice("A100-SXM-80GB");
  KernelSpec plain = Gemm(4096, 4096, 512);
  plain.pass = GemmPass::kWgrad;
  KernelSpec accumulating = plain;
  accumulating.accumulate_fp32 = true;
  EXPECT_DOUBLE_EQ(Price(accumulating, device).hbm_bytes - Price(plain, device).hbm_bytes,
                   6.0 * 4096 * 4096);
  EXPECT_GT(Price(accumulating, device).seconds_alone, Price(plain, device).seconds_alone);
}

// Hopper reads and writes the buffer when the product is done.
TEST(GemmTileModel, HopperAddsToFp32BehindTheProduct) {
  KernelSpec spec = Gemm(16384, 8192, 4096);
  spec.pass = GemmPass::kWgrad;
  KernelSpec into_fp32 = spec;
  into_fp32.accumulate_fp32 = true;
  const double buffer = 8.0 * 16384 * 8192;
  const double memory = CatalogueDevice("H100-SXM-80GB")->memory_bytes_per_s;
  const double more = Seconds(into_fp32, "H100-SXM-80GB") - Seconds(spec, "H100-SXM-80GB");
  EXPECT_NEAR(more, buffer / memory, 0.25 * buffer / memory);
  EXPECT_LT(Seconds(into_fp32, "B200-SXM") / Seconds(spec, "B200-SXM"), 1.05);
  spec.dtype = into_fp32.dtype = DType::kFp8;
  EXPECT_LT(Seconds(into_fp32, "H100-SXM-80GB") / Seconds(spec, "H100-SXM-80GB"), 1.05);
}

// Its accumulators of 8-bit products are carried over to fp32 for gradients.
TEST(GemmTileModel, HopperPromotesSumsOfGradientsIn8Bits) {
  const auto backward_over_forward = [](DType dtype, absl::string_view gpu) {
    KernelSpec spec = Gemm(16384, 8192, 8192, dtype);
    spec.quantized_operand = true;
    const double forward = Seconds(spec, gpu);
    spec.pass = GemmPass::kDgrad;
    return Seconds(spec, gpu) / forward;
  };
  EXPECT_NEAR(backward_over_forward(DType::kFp8, "H100-SXM-80GB"), 1.15, 0.03);
  EXPECT_NEAR(backward_over_forward(DType::kBf16, "H100-SXM-80GB"), 1, 0.01);
  EXPECT_NEAR(backward_over_forward(DType::kFp8, "B200-SXM"), 1, 0.01);
}

TEST(GemmTileModel, ScalesOfBlocksSlowComputing) {
  const auto seconds = [](DType type) {
    KernelSpec spec = Gemm(15872, 16384, 4096, type);
    spec.quantized_operand = true;
    return Seconds(spec, "B300-SXM");
  };
  EXPECT_THAT(seconds(DType::kMxfp8) / seconds(DType::kFp8), AllOf(Gt(1.02), Lt(1.035)));
  EXPECT_EQ(seconds(DType::kFp8Row), seconds(DType::kFp8));
}

TEST(GemmTileModel, TakesTheBytesOfAFusedEpilogue) {
  DeviceType device = *CatalogueDevice("A100-SXM-80GB");
  KernelSpec spec = Gemm(4096, 4096, 512);
  spec.read_bytes = 1e9;
  EXPECT_DOUBLE_EQ(Price(spec, device).hbm_bytes, 1e9);
}

TEST(GemmTileModel, RunsTypesWithoutAUnitInTheNextWiderOne) {
  EXPECT_DOUBLE_EQ(Seconds(Gemm(4096, 4096, 4096, DType::kFp8), "A100-SXM-80GB"),
                   Seconds(Gemm(4096, 4096, 4096, DType::kBf16), "A100-SXM-80GB"));
  EXPECT_LT(Seconds(Gemm(8192, 8192, 8192, DType::kFp8), "H100-SXM-80GB"),
            0.75 * Seconds(Gemm(8192, 8192, 8192, DType::kBf16), "H100-SXM-80GB"));
}

TEST(GemmTileModel, SaysHowItKnows) {
  KernelCost own = Price(Gemm(4096, 4096, 4096), *CatalogueDevice("A100-SXM-80GB"));
  EXPECT_EQ(own.provenance.knowledge, Knowledge::kCalibrated);
  EXPECT_THAT(own.provenance.source, HasSubstr("A100-SXM-80GB, gemm.csv"));
  EXPECT_EQ(own.factor, "A100-SXM-80GB/gemm/bf16");

  KernelCost same = Price(Gemm(4096, 4096, 4096), *CatalogueDevice("H200-SXM"));
  EXPECT_EQ(same.provenance.knowledge, Knowledge::kExtrapolated);
  EXPECT_THAT(same.provenance.source, HasSubstr("H100-SXM-80GB"));
  EXPECT_EQ(same.factor, "H100-SXM-80GB/gemm/bf16");

  KernelCost median = Price(Gemm(4096, 4096, 4096), *CatalogueDevice("V100-SXM-16GB"));
  EXPECT_EQ(median.provenance.knowledge, Knowledge::kExtrapolated);
  EXPECT_THAT(median.provenance.source, HasSubstr("medians"));
  EXPECT_EQ(median.factor, "V100-SXM-16GB/gemm/bf16");
  EXPECT_GT(median.factor_sigma, own.factor_sigma);
}

TEST(GemmTileModel, LeavesOtherKernelsAlone) {
  GemmTileModel model(CoefficientTables::Shipped());
  DeviceType device = *CatalogueDevice("A100-SXM-80GB");
  KernelSpec memory;
  memory.family = KernelFamily::kMemory;
  EXPECT_FALSE(model.Estimate(memory, device).has_value());
  EXPECT_FALSE(model.Estimate(Gemm(0, 16, 16), device).has_value());
  EXPECT_FALSE(model.Estimate(Gemm(16, 16, 16), DeviceType{}).has_value());
}

}  // namespace
}  // namespace plancast
