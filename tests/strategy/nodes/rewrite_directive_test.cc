// Rewrites as nodes say them.

#include "strategy/nodes/rewrite_directive.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RewriteDirectiveTest, WhatIsPrintedIsRead) {
  for (const char* text :
       {"split(all_reduce)", "split(all_reduce, along: hidden)",
        "reorder(all_gather, past: bias, dropout)", "fuse(adam with reduce_scatter, all_gather)",
        "fuse(bias, dropout with all_reduce)", "overlap(fc2, all_reduce, pieces: 8)",
        "overlap(fc2, reduce_scatter, pieces: tuned)"}) {
    const auto rewrite = ParseRewrite(text);
    ASSERT_OK(rewrite.status());
    EXPECT_EQ(rewrite->DebugString(), text);
  }
}

TEST(RewriteDirectiveTest, PartsAreTakenApart) {
  const auto fuse = ParseRewrite(" fuse( bias,dropout  with all_reduce ) ");
  ASSERT_OK(fuse.status());
  EXPECT_THAT(fuse->ops, ElementsAre("bias", "dropout"));
  EXPECT_THAT(fuse->comms, ElementsAre(CollectiveKind::kAllReduce));
  const auto with = ParseRewrite("fuse(bias, with with all_reduce)");
  ASSERT_OK(with);
  EXPECT_THAT(with->ops, ElementsAre("bias", "with"));
  EXPECT_TRUE(ParseRewrite("overlap(a, all_reduce, pieces: tuned)")->tuned());
  EXPECT_FALSE(ParseRewrite("overlap(a, all_reduce, pieces: 2)")->tuned());
}

TEST(RewriteDirectiveTest, MistakesSayWhatWouldBeRight) {
  const auto error = [](const char* text) {
    return std::string(ParseRewrite(text).status().message());
  };
  EXPECT_THAT(error("unroll(x)"), HasSubstr("is no rewrite. Write `split(all_reduce)`"));
  EXPECT_THAT(error("split(all_reduced)"), HasSubstr("Did you mean `all_reduce`?"));
  EXPECT_THAT(error("split(all_gather)"), HasSubstr("it is said of `all_reduce`"));
  EXPECT_THAT(error("reorder(all_gather)"), HasSubstr("past which ops"));
  EXPECT_THAT(error("fuse(adam)"), HasSubstr("with which collectives"));
  EXPECT_THAT(error("overlap(a, all_reduce)"), HasSubstr("how many pieces"));
  EXPECT_THAT(error("overlap(a, all_reduce, pieces: 0)"), HasSubstr("how many pieces"));
  EXPECT_THAT(error("overlap(all_reduce, pieces: 2)"), HasSubstr("one collective"));
}

}  // namespace
}  // namespace plancast
