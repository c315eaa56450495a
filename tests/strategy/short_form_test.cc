#include "strategy/short_form.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ShortFormTest, SaysWhatWasSaidAndNothingElse) {
  ASSERT_OK_AND_ASSIGN(const ShortForm form, ParseShortForm("tp=8,pp=4,sp,recompute=full:3"));
  EXPECT_EQ(form.tp, 8);
  EXPECT_EQ(form.pp, 4);
  EXPECT_TRUE(form.sp);
  EXPECT_EQ(form.recompute, "full");
  EXPECT_EQ(form.recompute_layers, 3);
  EXPECT_EQ(form.dp, std::nullopt);
  EXPECT_EQ(form.schedule, std::nullopt);
}

TEST(ShortFormTest, NothingIsAPlan) {
  EXPECT_THAT(ParseShortForm(""), IsOkAndHolds(ShortForm()));
  EXPECT_THAT(ParseShortForm("  "), IsOkAndHolds(ShortForm()));
  EXPECT_EQ(PrintShortForm(ShortForm()), "");
}

TEST(ShortFormTest, OrderOfKeysAndSpacesDoNotMatter) {
  EXPECT_EQ(*ParseShortForm("tp=8,dp=2"), *ParseShortForm(" dp = 2 , tp=8 "));
}

TEST(ShortFormTest, PrintsKeysInTheOrderOfTheReference) {
  ASSERT_OK_AND_ASSIGN(
      const ShortForm form,
      ParseShortForm(
          "order=tp-cp-ep-dp-pp,layout=13+14x7+12,offload=param+optimizer,"
          "vocab_parallel=vocab2,first_bucket=1MiB,bucket=25MB,overlap=tp+grad,attn=flash,"
          "schedule=interleaved,recompute=selective,accum=4,mb=2,hsdp=8,zero=3,etp=1,"
          "ep=8,cp_type=hybrid:2,cp=2,vpp=3,pp=4,sp,tp=8,dp=16"));
  EXPECT_EQ(PrintShortForm(form),
            "dp=16,tp=8,sp,pp=4,vpp=3,cp=2,cp_type=hybrid:2,ep=8,etp=1,zero=3,hsdp=8,mb=2,accum=4,"
            "recompute=selective,schedule=interleaved,attn=flash,overlap=grad+tp,bucket=25MB,"
            "first_bucket=1MiB,vocab_parallel=vocab2,offload=optimizer+param,layout=13+14x7+12,"
            "order=tp-cp-ep-dp-pp");
}

TEST(ShortFormTest, LayoutCountsStagesAfterTheX) {
  ASSERT_OK_AND_ASSIGN(const ShortForm form, ParseShortForm("layout=1+2x3+1"));
  EXPECT_THAT(form.layout, ElementsAre(1, 2, 2, 2, 1));
  EXPECT_EQ(PrintLayout(form.layout), "1+2x3+1");
}

TEST(ShortFormTest, OverlapNoneDiffersFromSilence) {
  ASSERT_OK_AND_ASSIGN(const ShortForm form, ParseShortForm("overlap=none"));
  EXPECT_THAT(form.overlap, ElementsAre("none"));
  EXPECT_EQ(PrintShortForm(form), "overlap=none");
}

class RoundTripTest : public ::testing::TestWithParam<const char*> {};

TEST_P(RoundTripTest, ReadsWhatItPrints) {
  ASSERT_OK_AND_ASSIGN(const ShortForm form, ParseShortForm(GetParam()));
  const std::string canonical = PrintShortForm(form);
  EXPECT_THAT(ParseShortForm(canonical), IsOkAndHolds(form));
  EXPECT_EQ(PrintShortForm(*ParseShortForm(canonical)), canonical);
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, RoundTripTest,
    ::testing::Values(
        "dp=1", "dp=8,tp=8", "dp=1,tp=4,pp=4,mb=1,recompute=full,schedule=1f1b,attn=unfused",
        "dp=32,zero=1,mb=8,recompute=none,attn=flash,accum=8", "dp=1,mb=512,overlap=grad",
        "dp=1,tp=8,mb=4,recompute=full,attn=unfused",
        "dp=64,zero=3,mb=8,recompute=full,attn=flash,overlap=grad+param,accum=4",
        "dp=32,recompute=full,attn=unfused", "dp=8,tp=8,pp=35,zero=1,mb=1,schedule=1f1b",
        "dp=1,pp=8,mb=6,recompute=none,schedule=zb2p", "pp=8,schedule=varuna",
        "pp=8,vpp=2,schedule=search:1.5", "dp=4,pp=2,vpp=5,schedule=interleaved",
        "dp=8,tp=2,cp=4,ep=8,etp=1,sp", "dp=2,hsdp=2,zero=3", "dp=2,zero=2", "zero=0",
        "recompute=full:1", "recompute=every:2", "recompute=uniform:4",
        "recompute=selective:core_attn+moe_act", "zero=3,hsdp=4,reshard=off,prefetch=0,sync=last",
        "zero=3,reshard=8", "zero=3,prefetch=2,unit=4", "reshard=on,sync=each",
        "offload=optimizer+activations:4", "recompute=none", "schedule=gpipe",
        "schedule=breadth-first", "schedule=zbh1", "schedule=zb1p", "schedule=zbv",
        "schedule=zbvhalf", "schedule=zbvmin", "schedule=dualpipe", "schedule=dualpipev",
        "pp=4,vpp=4,schedule=hanayo", "schedule=chimera", "schedule=0 1 + 1 0: F0.0 B0.0;F0.0 B0.0",
        "schedule=plans/mine.csv", "schedule=./table", "schedule=eager-1f1b",
        "schedule=F0.0 F1.0 B0.0 B1.0;F0.0 B0.0 F1.0 B1.0,attn=flash", "attn=flash",
        "overlap=grad+param+tp+cp+ep", "overlap=tp", "bucket=1B", "bucket=25MiB", "bucket=1.5GB",
        "first_bucket=1MiB", "vocab_parallel=redis", "vocab_parallel=interlaced",
        "offload=optimizer+param+activations", "layout=80", "layout=7+8x9+7", "layout=1x8",
        "order=dp-tp-pp", "order=tp-cp-ep-dp-pp", "dp=1000000000"));

struct Mistake {
  const char* text;
  const char* message;
};
class MistakeTest : public ::testing::TestWithParam<Mistake> {};

TEST_P(MistakeTest, IsNamedWithWhatWouldBeRight) {
  EXPECT_THAT(ParseShortForm(GetParam().text),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, MistakeTest,
    ::testing::Values(
        Mistake{"tpp=8", "no strategy key `tpp`. Did you mean `tp`? Like it are `pp`, `vpp`."},
        Mistake{"tp=8 pp=2", "`tp=8 pp=2`: items are joined by commas. Write `tp=8,pp=2`."},
        Mistake{"mb=1,tp=8;sp;pp=2", "Write `tp=8,sp,pp=2`."},
        Mistake{"tp:8", "`tp:8` has no value. Write `tp=8`."},
        Mistake{"recomput=full", "Did you mean `recompute`?"},
        Mistake{"tp=0", "`tp`: `0` is not a whole number from 1 to 1000000000."},
        Mistake{"tp=-8", "`tp`: `-8` is not a whole number"},
        Mistake{"tp=8.5", "`8.5` is not a whole number"},
        Mistake{"tp=99999999999999999999999", "is not a whole number from 1 to 1000000000."},
        Mistake{"tp=eight", "`eight` is not a whole number"}, Mistake{"tp=", "`` is not a whole"},
        Mistake{"tp", "`tp` has no value. Write `tp=...`."},
        Mistake{"sp=1", "`sp` takes no value. Write `sp` or leave it out."},
        Mistake{"tp=2,dp=4,tp=8", "`tp` is given twice: `tp=2` and `tp=8`. Say it once."},
        Mistake{"sp,sp", "`sp` is given twice."},
        Mistake{"tp=8,,dp=2", "nothing between two commas"},
        Mistake{"tp=8,", "nothing between two commas"},
        Mistake{"zero=4", "`4` is not a whole number from 0 to 3."},
        Mistake{"recompute=selectiv",
                "`recompute`: `selectiv` is not one of `none`, `selective`, "
                "`selective:OPS`, `full`, `full:N`, `every:N`, "
                "`uniform:N`. Did you mean `selective`?"},
        Mistake{"recompute=selective:2", "`2` is not the name of a set of ops"},
        Mistake{"recompute=none:2", "which `full`, `every` and `uniform` take"},
        Mistake{"recompute=every", "`every` needs a number"},
        Mistake{"recompute=uniform", "`uniform` needs a number"},
        Mistake{"reshard=yes", "`yes` is not one of `on`, `off`, `N`"},
        Mistake{"reshard=1", "is not a whole number from 2"},
        Mistake{"offload=optimizer:2", "which only `activations` takes"},
        Mistake{"sync=first", "`first` is not one of `each`, `last`"},
        Mistake{"recompute=full:", "`recompute`: `` is not a whole number"},
        Mistake{"schedule=F0 B0;F0 G0", "stage 1, position 1: `G0` is no step"},
        Mistake{"schedule=table", "is not one of"}, Mistake{"schedule=none", "is not one of"},
        Mistake{"schedule=1fb1", "Did you mean `1f1b`?"},
        Mistake{"schedule=search:0", "says how much a search may keep"},
        Mistake{"schedule=search:all", "as in `search:1` or `search:1.5`"},
        Mistake{"attn=flsh",
                "`attn`: `flsh` is not one of `flash`, `unfused`. Did you mean "
                "`flash`?"},
        Mistake{"overlap=grad+parm", "Did you mean `param`?"},
        Mistake{"overlap=none+grad", "`none` stands alone or not at all."},
        Mistake{"unit=0", "`0` is not a whole number from 1 to "},
        Mistake{"bucket=lots", "Write a positive number and a unit"},
        Mistake{"bucket=2000TB", "the largest bucket"}, Mistake{"first_bucket=0", "first_bucket"},
        Mistake{"layout=14x", "`` is not a whole number"},
        Mistake{"layout=1x0", "`0` is not a whole number"},
        Mistake{"layout=1x1000000", "is not a whole number from 1 to 100000"},
        Mistake{"layout=1x99999+1x99999", "more than 100000 virtual stages"},
        Mistake{"order=tp-dp", "leaves out `pp`"}, Mistake{"order=tp-tp-dp-pp", "`tp` twice"},
        Mistake{"order=tp-xx", "`xx` is not one of"}, Mistake{"dp=4 tp=x y", "`4 tp=x y` is not"}),
    [](const ::testing::TestParamInfo<Mistake>& info) { return std::to_string(info.index); });

}  // namespace
}  // namespace plancast
