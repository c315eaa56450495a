#include "strategy/profile/derived_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/embedded_file.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(DerivedProfileTest, AddsToListsAndOverridesTheRest) {
  ASSERT_OK_AND_ASSIGN(const proto::SoftwareProfile profile,
                       ReadDerivedProfile(R"pb(name: "mine"
                                               like: "fsdp"
                                               eager: "swiglu"
                                               gather_skew: 0.5
                                               root_unit: false)pb",
                                          "mine"));
  EXPECT_EQ(profile.name(), "mine");
  EXPECT_THAT(profile.eager(), Contains("rms_norm"));  // of eager, which fsdp is like
  EXPECT_THAT(profile.eager(), Contains("swiglu"));
  EXPECT_EQ(profile.gather_skew(), 0.5);
  EXPECT_FALSE(profile.root_unit());
  EXPECT_EQ(profile.host_sync_s(), 30e-6);  // of compiled
}

TEST(DerivedProfileTest, FieldsThatItIsWithoutComeFromNoneOfThem) {
  ASSERT_OK_AND_ASSIGN(const proto::SoftwareProfile profile,
                       ReadDerivedProfile(R"pb(
                                            name: "mine"
                                            like: "fsdp"
                                            without: "eager"
                                            without: "limits.zero"
                                            eager: "swiglu"
                                            limits { zero: 2 }
                                          )pb",
                                          "mine"));
  EXPECT_THAT(profile.eager(), ElementsAre("swiglu"));
  EXPECT_THAT(profile.limits().zero(), ElementsAre(2));
  EXPECT_THAT(profile.limits().recompute(), ElementsAre("none", "full"));
  EXPECT_EQ(profile.without_size(), 0);
}

TEST(DerivedProfileTest, WhatIsNoFieldIsAnErrorThatNamesIt) {
  for (const char* path : {"eagre", "limits.zeros", "eager.first", "extra_kernels.rule"}) {
    proto::SoftwareProfile profile;
    profile.set_name("mine");
    profile.set_like("fsdp");
    profile.add_without(path);
    EXPECT_THAT(ReadDerivedProfile(profile.DebugString(), "mine.textproto"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("mine.textproto: `without` names `" + std::string(path) +
                                   "`, which is no field of a profile.")));
  }
}

TEST(DerivedProfileTest, EntriesOfListsGoByTheirTextOrTheirRule) {
  ASSERT_OK_AND_ASSIGN(const proto::SoftwareProfile profile,
                       ReadDerivedProfile(R"pb(name: "mine"
                                               like: "fsdp"
                                               without: "eager[rms_norm]"
                                               without: "extra_kernels[swiglu]"
                                               without: "eager[no such rule]")pb",
                                          "mine"));
  EXPECT_THAT(profile.eager(), Not(Contains("rms_norm")));
  EXPECT_THAT(profile.eager(), Contains("rotary"));
  std::vector<std::string> rules;
  for (const auto& kernels : profile.extra_kernels()) rules.push_back(kernels.rule());
  EXPECT_THAT(rules, Not(Contains("swiglu")));
  EXPECT_THAT(rules, Contains("rms_norm"));
  for (const char* path : {"launch_s[x]", "eagre[x]", "limits.zero[1]", "graph_scopes[attn]"}) {
    EXPECT_THAT(ReadDerivedProfile(
                    absl::StrCat("name: \"mine\" like: \"fsdp\" without: \"", path, "\""), "mine"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is no field")))
        << path;
  }
}

TEST(DerivedProfileTest, AdditionsComeAfterTheWholeProfileInTurn) {
  ASSERT_OK_AND_ASSIGN(
      proto::SoftwareProfile base,
      ReadDerivedProfile(R"pb(name: "mine" description: "D" like: "fsdp")pb", "mine"));
  const EmbeddedFile first = {"one.textproto", R"(
    name: "one" description: "first" without: "eager[rms_norm]" attention_kernel: "a")"};
  const EmbeddedFile second = {"two.textproto",
                               R"(name: "two" description: "second" attention_kernel: "b")"};
  ASSERT_OK_AND_ASSIGN(const auto added, WithAdditions(base, {&first, &second}));
  EXPECT_EQ(added.name(), "mine+one+two");
  EXPECT_EQ(added.description(), "D; first; second");
  EXPECT_EQ(added.attention_kernel(), "b");
  EXPECT_THAT(added.eager(), Not(Contains("rms_norm")));
  EXPECT_EQ(added.gather_skew(), base.gather_skew());
}

TEST(DerivedProfileTest, NothingToBeWithoutIsAnError) {
  EXPECT_THAT(ReadDerivedProfile(R"pb(name: "mine" without: "eager")pb", "mine"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("`like` names none")));
}

}  // namespace
}  // namespace plancast
