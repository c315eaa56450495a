#include "planner/search/condition.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

bool Holds(const std::string& text,
           const std::string& plan = "dp=4,tp=2,sp,pp=8,mb=2,recompute=full") {
  PlanContext context;
  context.devices = 64;
  context.seq = 4096;
  context.layers = 32;
  context.global_batch = 128;
  const absl::StatusOr<PlanCondition> condition = PlanCondition::Parse(text);
  EXPECT_OK(condition.status()) << text;
  return condition.ok() && condition->Holds(*ParseShortForm(plan), context);
}

TEST(ConditionTest, ComparesNumbersOfAPlan) {
  for (const char* const text : {"tp<=8 and mb*seq<=16384",
                                 "tp == 2",
                                 "tp=2",
                                 "dp*tp*pp == gpus",
                                 "accum == 16",
                                 "sp==1",
                                 "zero==0",
                                 "vpp == 1 and cp==1",
                                 "etp == tp",
                                 "batch/dp/mb == accum",
                                 "layers % pp == 0",
                                 "not tp > 2",
                                 "not not tp==2",
                                 "1 < tp <= 8",
                                 "1 < tp <= 8 < gpus",
                                 "tp>2 or pp>4",
                                 "(tp>2 or pp>4) and mb<4",
                                 "-tp < 0",
                                 "2*(tp+1)-1 == 5",
                                 "1/0 > 5",
                                 "2.5 < 3"}) {
    EXPECT_TRUE(Holds(text)) << text;
  }
  for (const char* const text :
       {"tp>2", "tp<=8 and mb*seq<=4096", "1 < tp < 2", "1 < 2 < tp", "not (tp==2)", "tp!=2",
        "0/0 == 0", "tp > 2 or pp > 8 and mb == 2", "hsdp > 1", "5 % 0 == 0"}) {
    EXPECT_FALSE(Holds(text)) << text;
  }
}

TEST(ConditionTest, ComparesWords) {
  EXPECT_TRUE(Holds("recompute=='full'"));
  EXPECT_TRUE(Holds("recompute == full and schedule == \"1f1b\""));
  EXPECT_TRUE(Holds("schedule=='interleaved'", "dp=4,tp=2,pp=8,vpp=2,mb=2"));
  EXPECT_TRUE(Holds("recompute!='selective' or tp>100"));
  EXPECT_FALSE(Holds("recompute==none"));
  EXPECT_TRUE(Holds("attn==flash and cp_type==none"));
}

TEST(ConditionTest, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> kBad[] = {
      {"", "something is missing at the end"},
      {"tp<=", "something is missing at the end"},
      {"tp", "a number is no condition"},
      {"recompute", "words are compared by == and != only"},
      {"recompute<'full'", "words are compared by == and != only"},
      {"recompute==", "a word is missing"},
      {"recompute=='full", "a quote is open"},
      {"tpp<8", "there is no `tpp`"},
      {"(tp<8", "a parenthesis is open"},
      {"tp<8)", "`)` is left over"},
      {"tp<8 mb<2", "`mb<2` is left over"},
      {"tp<8 and mb", "a number is no condition"},
      {"(tp<8)+1 < 3", "a number is wanted"},
      {"tp<16k", "is no number"},
      {"tp < recompute", "a number is wanted"},
      {"tp & 8", "is left over"},
      {"__import__('os')", "there is no `__import__`"}};
  for (const auto& [text, message] : kBad) {
    const absl::Status status = PlanCondition::Parse(text).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr(message)) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("where `")) << text;
  }
  const std::string deep(100'000, '('), signs(100'000, '-');
  EXPECT_THAT(std::string(PlanCondition::Parse(deep).status().message()), HasSubstr("too deeply"));
  EXPECT_THAT(std::string(PlanCondition::Parse(signs + "1<2").status().message()),
              HasSubstr("too deeply"));
}

}  // namespace
}  // namespace plancast
