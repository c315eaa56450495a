#include "strategy/precision.h"

#include <gtest/gtest.h>

#include "strategy/software_profile.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

TEST(PrecisionTest, ReadsEveryOption) {
  ASSERT_OK_AND_ASSIGN(const Precision precision, ParsePrecision({{"grad_dtype", "bf16"},
                                                                  {"main_grad_dtype", "fp32"},
                                                                  {"reduce_dtype", "int4"},
                                                                  {"gather_dtype", "int8"},
                                                                  {"param_dtype", "fp8-block"},
                                                                  {"state_dtype", "fp8+fp16"},
                                                                  {"attention_dtype", "mxfp8"},
                                                                  {"master", "int16"}}));
  EXPECT_EQ(precision.attention, DType::kMxfp8);
  EXPECT_EQ(precision.grad, DType::kBf16);
  EXPECT_EQ(precision.main_grad, DType::kFp32);
  EXPECT_EQ(precision.reduce, DType::kInt4);
  EXPECT_EQ(precision.gather, DType::kInt8);
  EXPECT_EQ(precision.param, DType::kFp8Block);
  EXPECT_EQ(precision.state, DType::kFp8);
  EXPECT_EQ(precision.second_state, DType::kFp16);
  EXPECT_EQ(precision.keeps_master, true);
  EXPECT_EQ(precision.master, DType::kInt16);
}

TEST(PrecisionTest, OneTypeIsForBothMomentsAndMasterMayBeASwitch) {
  ASSERT_OK_AND_ASSIGN(const Precision precision,
                       ParsePrecision({{"state_dtype", "int8"}, {"master", "off"}}));
  EXPECT_EQ(precision.second_state, std::nullopt);
  EXPECT_EQ(precision.keeps_master, false);
  EXPECT_EQ(precision.master, std::nullopt);
  ASSERT_OK_AND_ASSIGN(const Precision on, ParsePrecision({{"master", "on"}}));
  EXPECT_EQ(on.keeps_master, true);
  EXPECT_TRUE(Precision().empty());
  EXPECT_FALSE(on.empty());
}

TEST(PrecisionTest, ErrorsListWhatItMayBe) {
  const auto code = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(ParsePrecision({{"grad_dtype", "bf15"}}),
              StatusIs(code, HasSubstr("`grad_dtype` cannot be `bf15`. Did you mean `bf16`?")));
  EXPECT_THAT(ParsePrecision({{"grad_dtype", "bf15"}}),
              StatusIs(code, HasSubstr("Did you mean `bf16`?")));
  EXPECT_THAT(ParsePrecision({{"attention_dtype", "nvfp4"}}),
              StatusIs(code, HasSubstr("`attention_dtype` cannot be `nvfp4`")));
  EXPECT_THAT(ParsePrecision({{"master", "maybe"}}), StatusIs(code, HasSubstr("`on`, `off`")));
  EXPECT_THAT(ParsePrecision({{"state_dtype", "fp8+fp16+fp32"}}),
              StatusIs(code, HasSubstr("two moments")));
  EXPECT_THAT(ParsePrecision({{"grad_type", "bf16"}}), StatusIs(code, HasSubstr("`grad_dtype`")));
}

TEST(PrecisionTest, TheOptimizerIsNamedWithItsState) {
  const auto code = absl::StatusCode::kInvalidArgument;
  ASSERT_OK_AND_ASSIGN(const Precision lamb, ParsePrecision({{"optimizer_type", "lamb"}}));
  EXPECT_EQ(lamb.optimizer, OptimizerType::kLamb);
  EXPECT_FALSE(lamb.empty());
  ASSERT_OK_AND_ASSIGN(const Precision adamw, ParsePrecision({{"optimizer_type", "adamw"}}));
  EXPECT_EQ(adamw.optimizer, OptimizerType::kAdam);
  EXPECT_THAT(ParsePrecision({{"optimizer_type", "sgd_momentum"}}),
              StatusIs(code, HasSubstr("Did you mean `sgd-momentum`?")));
  EXPECT_THAT(ParsePrecision({{"optimizer_type", "in-backward"}}),
              StatusIs(code, HasSubstr("in the strategy: `optimizer=in-backward`")));
  EXPECT_THAT(ParsePrecision({{"optimizer_type", "lion"}, {"state_dtype", "fp8+fp16"}}),
              StatusIs(code, HasSubstr("lion keeps one number of each weight")));
  EXPECT_THAT(ParsePrecision({{"optimizer_type", "sgd"}, {"state_dtype", "bf16"}}),
              StatusIs(code, HasSubstr("sgd keeps nothing of a weight")));
}

// The asked wins over what a profile says for bf16 models.
TEST(PrecisionTest, AForecastsTypesGoBeforeTheProfiles) {
  ASSERT_OK_AND_ASSIGN(SoftwareProfile profile, FindSoftwareProfile("megatron-core"));
  ASSERT_OK_AND_ASSIGN(profile.precision,
                       ParsePrecision({{"grad_dtype", "bf16"}, {"state_dtype", "bf16"}}));
  const SoftwareProfile asked = profile.For(DType::kBf16, Schedule::kNone);
  EXPECT_EQ(asked.types.grad_dtype, DType::kBf16);
  EXPECT_EQ(asked.types.reduce_dtype, DType::kFp32);
  EXPECT_EQ(asked.types.state_dtype, DType::kBf16);
  EXPECT_EQ(asked.SecondStateType(), DType::kBf16);
  EXPECT_NE(
      asked.StructureKey(),
      FindSoftwareProfile("megatron-core")->For(DType::kBf16, Schedule::kNone).StructureKey());
}

TEST(PrecisionTest, ParametersAreGatheredAsTheyAreStored) {
  SoftwareProfile profile;
  EXPECT_EQ(profile.ParamType(DType::kFp8), DType::kBf16);
  EXPECT_EQ(profile.GatherType(DType::kBf16), DType::kBf16);
  EXPECT_EQ(profile.MasterType(DType::kBf16), DType::kFp32);
  EXPECT_EQ(profile.MasterType(DType::kFp32), std::nullopt);
  profile.types.param_dtype = DType::kFp32;
  EXPECT_EQ(profile.GatherType(DType::kBf16), DType::kFp32);
  EXPECT_EQ(profile.MasterType(DType::kBf16), std::nullopt);
  profile.types.gather_dtype = DType::kCompute;
  EXPECT_EQ(profile.GatherType(DType::kBf16), DType::kBf16);
}

}  // namespace
}  // namespace plancast
