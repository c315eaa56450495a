#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fuzz/native/corpus.h"
#include "tests/fuzz/native/mutate.h"
#include "tests/fuzz/native/session.h"
#include "tests/fuzz/native/target.h"

namespace plancast {
namespace {

class Fuzz : public testing::TestWithParam<FuzzTarget> {};

TEST_P(Fuzz, ChangedFilesAreReadOrRefused) {
  const auto seeds = FuzzSeeds(GetParam().name);
  ASSERT_TRUE(seeds.ok()) << seeds.status();
  FuzzOptions options;
  options.runs = 20'000;
#if defined(__SANITIZE_ADDRESS__)
  options.seconds = 20;
#else
  options.seconds = 2;  // tests are not optimised as much
#endif
  if (const char* folder = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR")) options.save = folder;
  const auto counts = RunFuzz(GetParam(), *seeds, options);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->runs, options.runs);
  EXPECT_GT(counts->accepted, 0u);
  EXPECT_GT(counts->refused, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, Fuzz, testing::ValuesIn(FuzzTargets()),
                         [](const auto& info) { return info.param.name; });

TEST(FuzzInputTest, IsTheSameForTheSameNumber) {
  const FuzzTarget& target = FuzzTargets().front();
  const std::vector<std::string> seeds = {"{\"a\": [1, 2]}", "<x y=\"1\"/>"};
  EXPECT_EQ(FuzzInput(target, seeds, 0), seeds[0]);
  int unlike = 0;
  for (uint64_t number = 2; number < 200; ++number) {
    const std::string input = FuzzInput(target, seeds, number);
    EXPECT_EQ(input, FuzzInput(target, seeds, number));
    EXPECT_LE(input.size(), kLongestInput);
    unlike += input != seeds[0] && input != seeds[1];
  }
  EXPECT_GT(unlike, 150);
}

absl::Status Hungry(absl::string_view) {
  std::string much(size_t{1} << 20, 'x');
  return absl::OkStatus();
}
absl::Status Silent(absl::string_view) { return absl::InvalidArgumentError(""); }
absl::Status NotFound(absl::string_view) { return absl::NotFoundError("no"); }
absl::Status Endless(absl::string_view bytes) {
  for (volatile size_t i = 0;; i = i + 1) {
    if (bytes.size() > kLongestInput) return absl::OkStatus();
  }
}
absl::Status Crash(absl::string_view) { std::abort(); }

FuzzOptions Once() {
  FuzzOptions options;
  options.runs = 1;
  options.seconds = 1;
  options.save = testing::TempDir();
  return options;
}

TEST(RunFuzzTest, OtherAnswersAreErrors) {
  EXPECT_THAT(RunFuzz({"silent", Silent}, {"a"}, Once()).status().message(),
              testing::HasSubstr("without words"));
  EXPECT_THAT(RunFuzz({"not_found", NotFound}, {"a"}, Once()).status().message(),
              testing::HasSubstr("NOT_FOUND"));
}

TEST(RunFuzzDeathTest, AHangAndACrashEndTheProcess) {
  EXPECT_DEATH(RunFuzz({"endless", Endless}, {"a"}, Once()).status().IgnoreError(), "HANG");
#if !defined(__SANITIZE_ADDRESS__)
  EXPECT_DEATH(RunFuzz({"crash", Crash}, {"a"}, Once()).status().IgnoreError(), "CRASH");
#endif
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(RunFuzzTest, MemoryIsLimited) {
  FuzzTarget hungry = {"hungry", Hungry};
  EXPECT_TRUE(RunFuzz(hungry, {"a"}, Once()).ok());
  hungry.most_bytes = 1 << 16;
  EXPECT_THAT(RunFuzz(hungry, {"a"}, Once()).status().message(),
              testing::HasSubstr("too much memory"));
}
#endif

}  // namespace
}  // namespace plancast
