#include <gtest/gtest.h>

#include "cost_models/kernel_cost.h"

namespace plancast {
namespace {

// Answers for one family with a fixed time.
class FixedModel : public KernelCostModel {
 public:
  FixedModel(KernelFamily family, double seconds) : family_(family), seconds_(seconds) {}
  std::optional<KernelCost> Estimate(const KernelSpec& kernel, const DeviceType&) const override {
    if (kernel.family != family_) return std::nullopt;
    KernelCost cost;
    cost.seconds_alone = seconds_;
    return cost;
  }

 private:
  KernelFamily family_;
  double seconds_;
};

TEST(FirstMatchModel, TheFirstAnswerCounts) {
  FirstMatchModel model({std::make_shared<FixedModel>(KernelFamily::kGemm, 1.0),
                         std::make_shared<FixedModel>(KernelFamily::kMemory, 2.0),
                         std::make_shared<FixedModel>(KernelFamily::kGemm, 3.0)});
  KernelSpec spec;
  spec.family = KernelFamily::kGemm;
  EXPECT_EQ(model.Estimate(spec, {})->seconds_alone, 1.0);
  spec.family = KernelFamily::kMemory;
  EXPECT_EQ(model.Estimate(spec, {})->seconds_alone, 2.0);
}

TEST(FirstMatchModel, HasNoAnswerWhereNoneHas) {
  FirstMatchModel model({std::make_shared<FixedModel>(KernelFamily::kGemm, 1.0)});
  KernelSpec spec;
  spec.family = KernelFamily::kAttention;
  EXPECT_FALSE(model.Estimate(spec, {}).has_value());
  EXPECT_FALSE(FirstMatchModel({}).Estimate(spec, {}).has_value());
}

}  // namespace
}  // namespace plancast
