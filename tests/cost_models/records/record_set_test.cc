#include "cost_models/records/record_set.h"

#include <cmath>
#include <memory>

#include "tests/cost_models/records/store_testing.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;
constexpr const char* kGpu = "H100-SXM-80GB";

KernelSpec Gemm(int64_t m) { return *SpecOf(SomeKey(m)); }

class RecordSetTest : public ::testing::Test {
 protected:
  void Add(const KernelKey& key, const Sample& sample) { ASSERT_OK(store_->Add(key, sample)); }
  std::shared_ptr<const RecordSet> Load(const RecordFilter& filter = {}) {
    auto set = RecordSet::Load(*store_, filter);
    EXPECT_OK(set.status());
    return *set;
  }

  std::unique_ptr<RecordStore> store_ =
      *RecordStore::Open(FreshPath(), RecordStore::Access::kCreate);
};

TEST_F(RecordSetTest, FindsExactlyWhatWasMeasured) {
  Add(SomeKey(64), SampleOf(1e-6));
  const auto set = Load();
  ASSERT_NE(set->Find(Gemm(64), kGpu), nullptr);
  EXPECT_EQ(set->Find(Gemm(64), kGpu)->seconds, 1e-6);
  EXPECT_EQ(set->Find(Gemm(65), kGpu), nullptr);
  EXPECT_EQ(set->Find(Gemm(64), "T4"), nullptr);
  KernelSpec other = Gemm(64);
  other.pass = GemmPass::kDgrad;
  EXPECT_EQ(set->Find(other, kGpu), nullptr);
  other = Gemm(64);
  other.label = "another_rule";
  EXPECT_NE(set->Find(other, kGpu), nullptr);
  other.read_bytes *= 2;  // an epilogue that reads as much again
  EXPECT_EQ(set->Find(other, kGpu), nullptr);
}

TEST_F(RecordSetTest, AnotherVersionIsAMissUnderAFilter) {
  Add(SomeKey(64), SampleOf(1e-6));
  EXPECT_NE(Load({kGpu, "cublas", "12.4"})->Find(Gemm(64), kGpu), nullptr);
  EXPECT_EQ(Load({kGpu, "cublas", "13.0"})->Find(Gemm(64), kGpu), nullptr);
  EXPECT_EQ(Load({kGpu, "cutlass", ""})->Find(Gemm(64), kGpu), nullptr);
}

TEST_F(RecordSetTest, OfSeveralLibrariesTheMiddleIsTaken) {
  KernelKey key = SomeKey(64);
  for (const auto& [version, seconds] :
       {std::pair<const char*, double>{"11", 3e-6}, {"12", 1e-6}, {"13", 2e-6}}) {
    key.version = version;
    Add(key, SampleOf(seconds));
  }
  const auto set = Load();
  const MeasuredKernel* found = set->Find(Gemm(64), kGpu);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->seconds, 2e-6);
  EXPECT_GT(found->sigma, 0.4);  // they differ by a factor of three
  EXPECT_THAT(found->source,
              HasSubstr("cublas 13, measured once (test 2026-11-22), the middle of 3"));
}

TEST_F(RecordSetTest, TheErrorIsTheSpreadOfRepetitions) {
  for (double seconds : {1.0e-6, 1.1e-6}) Add(SomeKey(1), SampleOf(seconds));
  Sample ranged = SampleOf(1e-6);
  ranged.count = 20, ranged.seconds_min = 0.97e-6, ranged.seconds_max = 1.03e-6;
  Add(SomeKey(2), ranged);
  Add(SomeKey(3), SampleOf(1e-6));
  const auto set = Load();
  EXPECT_NEAR(set->Find(Gemm(1), kGpu)->sigma, std::log(1.1) / std::sqrt(2), 1e-9);
  EXPECT_NEAR(set->Find(Gemm(2), kGpu)->sigma, 0.06 / (0.55 + std::log(20)), 1e-3);
  // One sample tells nothing: the middle of what the others tell.
  EXPECT_NEAR(set->Find(Gemm(3), kGpu)->sigma, set->Find(Gemm(2), kGpu)->sigma, 1e-9);
}

TEST_F(RecordSetTest, EagerTimingsOfTheLaunchAreLeftOut) {
  Sample eager = SampleOf(30e-6);
  eager.timing = "event_eager";
  Add(SomeKey(1), eager);
  eager.seconds = 60e-6;
  Add(SomeKey(2), eager);
  eager.seconds = 120e-6;
  Add(SomeKey(3), eager);
  Sample graph = SampleOf(1e-6);  // replayed: as short as it says
  Add(SomeKey(4), graph);
  const auto set = Load();
  EXPECT_EQ(set->Find(Gemm(1), kGpu), nullptr);
  EXPECT_EQ(set->Find(Gemm(2), kGpu), nullptr);
  EXPECT_NE(set->Find(Gemm(3), kGpu), nullptr);
  EXPECT_NE(set->Find(Gemm(4), kGpu), nullptr);
  EXPECT_EQ(set->FindGroup(Gemm(1), kGpu)->kernels.size(), 2u);
}

TEST_F(RecordSetTest, GroupsKernelsThatDifferInShapeAlone) {
  for (int64_t m : {1, 2, 4}) Add(SomeKey(m), SampleOf(1e-6));
  KernelKey key = SomeKey(8);
  key.dtype = "fp16";
  Add(key, SampleOf(1e-6));
  const auto set = Load();
  const MeasuredGroup* group = set->FindGroup(Gemm(1000), kGpu);
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(group->name, "gemm bf16 forward");
  EXPECT_EQ(group->kernels.size(), 3u);
  EXPECT_EQ(group->dims, 4);
  EXPECT_EQ(group->points[4 * 2 + 1], 2);  // log2 of m = 4
  EXPECT_EQ(set->FindGroup(Gemm(1000), "T4"), nullptr);
}

TEST_F(RecordSetTest, SourcesThatDisagreeAreASharedError) {
  for (int64_t m = 1; m <= 20; ++m) {
    Sample sample = SampleOf(1e-6);
    Add(SomeKey(m), sample);
    sample.source = "another node";
    sample.seconds = 1.1e-6;
    Add(SomeKey(m), sample);
  }
  EXPECT_NEAR(Load()->SharedSigma(kGpu), std::log(1.1), 1e-6);
  EXPECT_NEAR(Load()->SharedSigma("T4"), 0.03, 1e-9);
}

}  // namespace
}  // namespace plancast
