#include <gtest/gtest.h>

#include "strategy/short_form.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

absl::Status Check(const char* text) {
  absl::StatusOr<ShortForm> form = ParseShortForm(text);
  if (!form.ok()) return form.status();
  return CheckSupported(*form);
}

TEST(SupportedTest, WhatIsSimulatedPasses) {
  for (const char* text :
       {"",
        "dp=8,tp=8,sp,pp=4,vpp=2,cp=1,ep=1,zero=1,mb=2,accum=8,recompute=full:2,"
        "schedule=interleaved,attn=flash,overlap=grad+param+tp,bucket=25MB,layout=1x8,"
        "order=tp-cp-ep-dp-pp",
        "schedule=gpipe",
        "schedule=1f1b",
        "schedule=eager-1f1b",
        "schedule=breadth-first",
        "schedule=F0 B0;F0 B0",
        "schedule=zbh1",
        "schedule=zb1p",
        "schedule=zb2p",
        "schedule=zbv",
        "schedule=dualpipe",
        "schedule=v: F0.0 F0.1 B0.1 B0.0;F0.0 F0.1 B0.1 B0.0",
        "schedule=varuna",
        "schedule=search",
        "schedule=search:1.5",
        "recompute=selective",
        "recompute=every:2",
        "recompute=selective:core_attn",
        "overlap=none",
        "ep=8,overlap=grad+param+ep",
        "tp=4,etp=4",
        "ep=8",
        "cp=2,cp_type=ulysses,overlap=cp",
        "tp=4,etp=2",
        "zero=3,hsdp=8,reshard=off,prefetch=2,unit=2,sync=each",
        "zero=2",
        "vocab_parallel=redis",
        "vocab_parallel=vocab1",
        "vocab_parallel=interlaced"}) {
    EXPECT_OK(Check(text)) << text;
  }
}

TEST(SupportedTest, AFileOfAScheduleIsReadByOthers) {
  EXPECT_THAT(Check("schedule=mine.csv"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("schedule=mine.csv names a file, and nobody has read it")));
}

}  // namespace
}  // namespace plancast
