#include "cost_models/coefficients/coefficient_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cost_models/catalogue_device.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::string_view kGeneric =
    "roofline { compute_fraction: 0.7 memory_fraction: 0.8 floor_s: 2e-6 }"
    "extrapolated_memory_sigma: 0.3";

std::string Table(absl::string_view gpu, int sms, double grade, double fraction) {
  return absl::StrCat("gpu: \"", gpu, "\" sms: ", sms, " speed_grade: ", grade,
                      " memory { memory_fraction: ", fraction,
                      " floor_s: 1e-6 fit { data: \"x.csv\"",
                      " date: \"2026-01-02\" factor_sigma: 0.05 sigma: 0.01 } }");
}

DeviceType Device(absl::string_view name, int sms, double grade) {
  DeviceType device;
  device.name = std::string(name);
  device.sms = sms;
  device.boost_mhz = 1000;
  device.fp16_flops = grade * sms * 1e9;
  return device;
}

class ThreeGpus : public ::testing::Test {
 protected:
  ThreeGpus() {
    auto parsed = CoefficientTables::Parse(
        {{"generic.textproto", kGeneric}, {"a", a_}, {"b", b_}, {"c", c_}});
    EXPECT_OK(parsed);
    tables_ = *std::move(parsed);
  }
  const CoefficientEntry<MemoryCoefficients>& Find(absl::string_view name, int sms, double grade) {
    return *tables_.FindMemory(Device(name, sms, grade));
  }

  std::string a_ = Table("A", 100, 1000, 0.5), b_ = Table("B", 50, 1000, 0.7),
              c_ = Table("C", 100, 4000, 0.9);
  CoefficientTables tables_;
};

TEST_F(ThreeGpus, AGpuIsServedByItsOwnCoefficients) {
  const auto& own = Find("A", 100, 1000);
  EXPECT_EQ(own.coefficients.memory_fraction, 0.5);
  EXPECT_EQ(own.provenance.knowledge, Knowledge::kCalibrated);
  EXPECT_EQ(own.provenance.source, "memory bandwidth model, A, x.csv, 2026-01-02");
}

TEST_F(ThreeGpus, ElseByThoseOfTheSameSilicon) {
  const auto& same = Find("A with more memory", 100, 1020);
  EXPECT_EQ(same.coefficients.memory_fraction, 0.5);
  EXPECT_EQ(same.gpu, "A");
  EXPECT_EQ(same.provenance.knowledge, Knowledge::kExtrapolated);
}

TEST(CoefficientTables, AChipThatIsNamedGoesBeforeEqualNumbersOfSms) {
  const std::string a = Table("A", 100, 1000, 0.5);
  const std::string b = Table("B", 96, 1000, 0.7) + " same_chip: \"B on a module\"";
  ASSERT_OK_AND_ASSIGN(
      const CoefficientTables tables,
      CoefficientTables::Parse({{"generic.textproto", kGeneric}, {"a", a}, {"b", b}}));
  const auto& entry = *tables.FindMemory(Device("B on a module", 100, 1000));
  EXPECT_EQ(entry.gpu, "B");
  EXPECT_EQ(entry.provenance.knowledge, Knowledge::kExtrapolated);
  EXPECT_EQ(tables.FindMemory(Device("another", 100, 1000))->gpu, "A");
}

TEST(CoefficientTables, PublishedFiguresServeTheGpusTheyNameAndNoOther) {
  const std::string attention =
      " attention { dtype: \"bf16\" mma_fraction: 0.5 memory_fraction: 0.5 backward_factor: 1"
      " own_only: true }";
  std::string alone = Table("A", 100, 1000, 0.5) + " same_chip: \"A at less power\"" + attention;
  alone.insert(alone.find("memory_fraction"), "own_only: true ");
  ASSERT_OK_AND_ASSIGN(
      const CoefficientTables tables,
      CoefficientTables::Parse(
          {{"generic.textproto", kGeneric}, {"a", alone}, {"b", Table("B", 50, 2000, 0.7)}}));
  for (absl::string_view name : {"A", "A at less power"}) {
    EXPECT_EQ(tables.FindMemory(Device(name, 100, 1000))->gpu, "A");
  }
  const auto& another = *tables.FindMemory(Device("another", 100, 1000));
  EXPECT_EQ(another.coefficients.memory_fraction, 0.7);
  EXPECT_EQ(tables.FindAttention("bf16", Device("another", 100, 1000)), nullptr);
}

TEST_F(ThreeGpus, ElseByMediansOfTheSmDesign) {
  const auto& kin = Find("A's big brother", 200, 980);
  EXPECT_DOUBLE_EQ(kin.coefficients.memory_fraction, 0.6);
  EXPECT_EQ(kin.gpu, "");
  EXPECT_EQ(kin.factor_sigma, 0.3);
  EXPECT_THAT(kin.provenance.source, HasSubstr("medians of 2 GPUs of the same SM design"));
}

TEST_F(ThreeGpus, ElseByMediansOfAll) {
  for (double grade : {0.0, 50.0}) {
    const auto& any = Find("stranger", 10, grade);
    EXPECT_DOUBLE_EQ(any.coefficients.memory_fraction, 0.7);
    EXPECT_THAT(any.provenance.source, HasSubstr("medians of 3 GPUs"));
  }
}

TEST(CoefficientTables, ErrorsNameFileAndField) {
  std::string bad = Table("A", 100, 1000, 1.5);
  EXPECT_THAT(CoefficientTables::Parse({{"generic.textproto", kGeneric}, {"bad.textproto", bad}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("bad.textproto: memory"), HasSubstr("`memory_fraction`"),
                             HasSubstr("1.5"))));
  EXPECT_THAT(CoefficientTables::Parse(
                  {{"generic.textproto", kGeneric}, {"x", "gemm { dtype: \"bf16\" }"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("x: gemm bf16")));
  EXPECT_THAT(CoefficientTables::Parse({{"x", "sms: 3 spead_grade: 1"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("spead_grade")));
}

TEST(CoefficientTables, NeedsARoofline) {
  std::string only = Table("A", 100, 1000, 0.5);
  EXPECT_THAT(CoefficientTables::Parse({{"a", only}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("`roofline`")));
}

TEST(CoefficientTables, TheShippedOnesServeEveryGpu) {
  const CoefficientTables& tables = CoefficientTables::Shipped();
  for (absl::string_view gpu : {"A100-SXM-40GB", "H200-SXM", "GB300", "L40S", "MI300X", "M40"}) {
    DeviceType device = *CatalogueDevice(gpu);
    for (absl::string_view dtype : {"bf16", "fp8", "nvfp4", "fp32"}) {
      EXPECT_NE(tables.FindGemm(dtype, device), nullptr) << gpu << dtype;
    }
    EXPECT_NE(tables.FindAttention("bf16", device), nullptr) << gpu;
    EXPECT_NE(tables.FindMemory(device), nullptr) << gpu;
  }
}

}  // namespace
}  // namespace plancast
