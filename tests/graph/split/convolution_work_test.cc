// Matrix products and multiplications of convolutions and recurrent cells.

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "graph/split/op_split.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

OpWork Work(const OpRule& rule, const std::map<std::string, int64_t>& sizes) {
  std::vector<int64_t> extents;
  for (const std::string& factor : rule.factors()) extents.push_back(sizes.at(factor));
  return WorkOf(rule, extents, 0, static_cast<int>(rule.statements().size()));
}

void ExpectProduct(const Contraction& c, int64_t batch, int64_t m, int64_t n, int64_t k) {
  EXPECT_EQ(c.batch, batch);
  EXPECT_EQ(c.m, m);
  EXPECT_EQ(c.n, n);
  EXPECT_EQ(c.k, k);
  EXPECT_EQ(c.flops, 2.0 * static_cast<double>(batch * m * n * k));
}

TEST(ConvolutionWorkTest, ProductsOfAConvolutionAndItsGradients) {
  const OpRule conv = **FindRule("conv2d(stride=2, pad=1)");
  // 2 images of 3 channels and 8 x 8 to 5 channels and 4 x 4 by 3 x 3 windows.
  const std::map<std::string, int64_t> sizes = {{"b", 2}, {"n", 5}, {"i", 4}, {"j", 4}, {"c", 3},
                                                {"p", 8}, {"q", 8}, {"k", 3}, {"u", 3}};
  const OpWork forward = Work(conv, sizes);
  ASSERT_EQ(forward.contractions.size(), 1u);
  ExpectProduct(forward.contractions[0], 1, 2 * 4 * 4, 5, 3 * 3 * 3);
  EXPECT_EQ(forward.read_elements, (std::vector<double>{2 * 3 * 8 * 8, 5 * 3 * 3 * 3}));
  EXPECT_EQ(forward.write_elements, (std::vector<double>{2 * 5 * 4 * 4}));
  ExpectProduct(Work(*Differentiate(conv, {"x"}), sizes).contractions.at(0), 1, 2 * 4 * 4, 3,
                5 * 3 * 3);
  ExpectProduct(Work(*Differentiate(conv, {"w"}), sizes).contractions.at(0), 1, 5, 3 * 3 * 3,
                2 * 4 * 4);
}

TEST(ConvolutionWorkTest, GroupsAreABatchOfProducts) {
  const OpRule& conv = **FindRule("conv2d_grouped");
  const std::map<std::string, int64_t> sizes = {{"b", 2},     {"g", 4}, {"m", 4 * 5}, {"n", 5},
                                                {"h", 4 * 3}, {"c", 3}, {"i", 6},     {"j", 6},
                                                {"p", 6},     {"q", 6}, {"k", 3},     {"u", 3}};
  ExpectProduct(Work(conv, sizes).contractions.at(0), 4, 2 * 6 * 6, 5, 3 * 3 * 3);
  ExpectProduct(Work(*Differentiate(conv, {"x"}), sizes).contractions.at(0), 4, 2 * 6 * 6, 3,
                5 * 3 * 3);
  ExpectProduct(Work(*Differentiate(conv, {"w"}), sizes).contractions.at(0), 4, 5, 3 * 3 * 3,
                2 * 6 * 6);
}

TEST(ConvolutionWorkTest, OneWideWindowsReadEveryOtherElement) {
  const OpWork work = Work(
      **FindRule("conv2d(stride=2)"),
      {{"b", 1}, {"n", 8}, {"i", 4}, {"j", 4}, {"c", 3}, {"p", 8}, {"q", 8}, {"k", 1}, {"u", 1}});
  EXPECT_EQ(work.read_elements[0], 3 * 4 * 4);
}

TEST(ConvolutionWorkTest, ViewsRunNoKernel) {
  for (const char* call : {"flatten", "merge_dims", "split_dim(rank=2)", "merge_last_dims"}) {
    for (const bool backward : {false, true}) {
      const OpRule forward = **FindRule(call);
      const OpRule rule = backward ? *Differentiate(forward, {"x"}) : forward;
      const std::vector<int64_t> extents(rule.factors().size(), 4);
      EXPECT_TRUE(WorkOf(rule, extents, 0, 1).writes.empty()) << rule.DebugString();
    }
  }
  const OpRule& transpose = **FindRule("transpose_middle");
  EXPECT_EQ(WorkOf(transpose, {2, 3, 4, 5}, 0, 1).write_elements[0], 120);
}

// Multiplications of one layer: `out` positions squared, `window` squared.
double Macs(const char* call, int64_t in_channels, int64_t channels, int64_t out, int64_t window,
            int64_t stride) {
  const OpRule rule = **FindRule(absl::StrCat(call, "(stride=", stride, ", pad=", window / 2, ")"));
  return Work(rule, {{"b", 1},
                     {"n", channels},
                     {"c", in_channels},
                     {"i", out},
                     {"j", out},
                     {"p", out * stride},
                     {"q", out * stride},
                     {"k", window},
                     {"u", window}})
             .contractions.at(0)
             .flops /
         2;
}

// He et al. 2015 with the stride in the 3x3 layer, as torchvision counts it:
// 4.089 GMACs at 224 x 224.
TEST(ConvolutionWorkTest, ResNet50) {
  double macs = Macs("conv2d", 3, 64, 112, 7, 2);
  int64_t in = 64, out = 56;
  const int64_t blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage) {
    const int64_t width = int64_t{64} << stage;
    for (int64_t block = 0; block < blocks[stage]; ++block) {
      const int64_t stride = block == 0 && stage > 0 ? 2 : 1;
      macs += Macs("conv2d", in, width, out, 1, 1);
      out /= stride;
      macs += Macs("conv2d", width, width, out, 3, stride);
      macs += Macs("conv2d", width, 4 * width, out, 1, 1);
      if (block == 0) macs += Macs("conv2d", in, 4 * width, out, 1, stride);
      in = 4 * width;
    }
  }
  const OpRule& linear = **FindRule("linear_nd");
  macs += Work(linear, {{"_1", 1}, {"n", 1000}, {"k", in}}).contractions.at(0).flops / 2;
  EXPECT_EQ(macs, 4089184256.0);
}

TEST(ConvolutionWorkTest, ACellOfAnLstmIsTwoProducts) {
  const OpWork work =
      Work(**FindRule("lstm_cell"), {{"b", 7}, {"g", 4}, {"n", 5}, {"m", 5}, {"k", 3}});
  ASSERT_EQ(work.contractions.size(), 2u);
  EXPECT_EQ(work.contractions[0].flops, 2 * 7 * 4 * 5 * 3);
  EXPECT_EQ(work.contractions[1].flops, 2 * 7 * 4 * 5 * 5);
}

TEST(ConvolutionWorkTest, LongSumsReadTheirElementsAgain) {
  const OpRule norm = **FindRule("batch_norm(rank=2)");
  // 2^19 elements of a channel are more than a thread block keeps; 2^17 are not.
  for (const int64_t images : {8, 32}) {
    const std::map<std::string, int64_t> sizes = {
        {"b", images}, {"c", 4}, {"_1", 128}, {"_2", 128}};
    const double image = static_cast<double>(images) * 4 * 128 * 128;
    const int passes = images == 32 ? 2 : 1;
    EXPECT_EQ(Work(norm, sizes).read_elements[0], passes * image);
    // The gradient reads both its result's gradient and x for the sums, and then again.
    const OpWork backward = Work(*Differentiate(norm, {"x"}), sizes);
    double moved = 0;
    for (double elements : backward.read_elements) moved += elements;
    EXPECT_NEAR(moved, 2 * passes * image, 100);
  }
}

}  // namespace
}  // namespace plancast
