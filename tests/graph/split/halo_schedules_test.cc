// Two schedules of a two-stage 3x3 stencil on a grid of devices, against closed
// forms (Distributed Halide, PPoPP'16):
//  - each stage an op of its own: one exchange before either stage;
//  - both stages one op: one exchange, and the first stage computed again where
//    the second reads across borders.

#include <string>
#include <vector>

#include "graph/layout/redistribution.h"
#include "graph/layout/relayout.h"
#include "graph/split/halo_inference.h"
#include "graph/split/op_split.h"
#include "gtest/gtest.h"

namespace plancast {
namespace {

constexpr char kStage[] =
    "blur(x, t) -> (y) {\n"
    "  y[i,j] += x[p,q] * t[k,l] where p == i + k - 1 and q == j + l - 1\n}";
constexpr char kBoth[] =
    "blur2(x, t) -> (y) {\n"
    "  u[m,n] += x[p,q] * t[k,l] where p == m + k - 1 and q == n + l - 1\n"
    "  y[i,j] += u[m,n] * t[k,l] where m == i + k - 1 and n == j + l - 1\n}";

// One op of a schedule on a grid of rows x columns devices.
class Stencil {
 public:
  Stencil(const char* text, int64_t rows, int64_t columns, int64_t height, int64_t width)
      : rule_(*OpRule::Parse(text)),
        mesh_(*DeviceMesh::Create({{"rows", rows}, {"columns", columns}})),
        split_(FactorSplit::None(rule_)) {
    for (const std::string& factor : rule_.factors()) {
      const bool window = factor == "k" || factor == "l";
      const bool vertical = factor == "i" || factor == "p" || factor == "m";
      extents_.push_back(window ? 3 : vertical ? height : width);
    }
    split_.axes[*rule_.FindFactor("i")] = {0};
    split_.axes[*rule_.FindFactor("j")] = {1};
    partition_ = *PartitionOp(rule_, split_, mesh_, extents_);
    AlignTiedCuts(rule_, &split_);
  }

  int64_t Device(int64_t row, int64_t column) const {
    return row * mesh_.stride(0) + column * mesh_.stride(1);
  }
  // Elements of x that the device gets from others.
  int64_t Received(int64_t device) const {
    const Layout& wanted = partition_.tensors[rule_.inputs()[0]];
    const std::vector<int64_t> shape = {extents_[*rule_.FindFactor("p")],
                                        extents_[*rule_.FindFactor("q")]};
    auto count = [&](const Layout& layout) {
      int64_t elements = 1;
      for (const IndexSet& set : LocalIndices(mesh_, shape, layout, device))
        elements *= CountOf(set);
      return elements;
    };
    return count(wanted) - count(wanted.WithoutHalos());
  }
  Relayout Exchange() const {
    const Layout& wanted = partition_.tensors[rule_.inputs()[0]];
    return *PlanRelayout(mesh_,
                         {extents_[*rule_.FindFactor("p")], extents_[*rule_.FindFactor("q")]},
                         wanted.WithoutHalos(), wanted);
  }
  // Elements that the device computes of a statement's target.
  int64_t Points(int statement, int64_t device) const {
    int64_t points = 1;
    const std::vector<IndexSet> sets =
        StatementIndices(partition_, split_, mesh_, extents_, statement, device);
    for (int f : rule_.tensors()[rule_.statements()[statement].target].factors) {
      points *= CountOf(sets[f]);
    }
    return points;
  }
  // Of a device with neighbours on all sides.
  OpWork LargestWork() const {
    return WorkOf(rule_, {partition_, split_, mesh_, extents_}, 0,
                  static_cast<int>(rule_.statements().size()));
  }

 private:
  OpRule rule_;
  DeviceMesh mesh_;
  FactorSplit split_;
  std::vector<int64_t> extents_;
  OpPartition partition_;
};

double Flops(const OpWork& work) {
  double flops = work.pointwise_ops;
  for (const Contraction& c : work.contractions) flops += c.flops;
  return flops;
}

TEST(HaloSchedulesTest, RowSlabs) {
  const int64_t width = 10, slab = 6;
  for (int64_t ranks = 2; ranks <= 64; ++ranks) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks");
    const Stencil stage(kStage, ranks, 1, ranks * slab, width);
    const Stencil both(kBoth, ranks, 1, ranks * slab, width);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const int64_t neighbours = (rank > 0) + (rank + 1 < ranks);
      // The stage runs twice: rows of the input, then of the intermediate result.
      EXPECT_EQ(stage.Received(rank), neighbours * 1 * width);
      EXPECT_EQ(stage.Points(0, rank), slab * width);
      EXPECT_EQ(both.Received(rank), neighbours * 2 * width);
      EXPECT_EQ(both.Points(0, rank) - slab * width, neighbours * width);
      EXPECT_EQ(both.Points(1, rank), slab * width);
    }
    const int64_t inside = ranks == 2 ? 1 : 2;
    ASSERT_EQ(stage.Exchange().steps.size(), 1u);
    EXPECT_EQ(stage.Exchange().received(), inside * width);
    ASSERT_EQ(both.Exchange().steps.size(), 1u);
    EXPECT_EQ(both.Exchange().received(), inside * 2 * width);
    EXPECT_EQ(Flops(stage.LargestWork()), 2.0 * 9 * slab * width);
    if (ranks > 2) {
      EXPECT_EQ(Flops(both.LargestWork()), 2.0 * 9 * (2 * slab * width + 2 * width));
    }
  }
}

TEST(HaloSchedulesTest, Grids) {
  const int64_t h = 6, w = 5;  // of one device
  for (int64_t rows = 2; rows <= 8; ++rows) {
    for (int64_t columns = 2; columns <= 8; ++columns) {
      SCOPED_TRACE(testing::Message() << rows << " x " << columns);
      const Stencil stage(kStage, rows, columns, rows * h, columns * w);
      const Stencil both(kBoth, rows, columns, rows * h, columns * w);
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t column = 0; column < columns; ++column) {
          const int64_t device = stage.Device(row, column);
          const int64_t v = (row > 0) + (row + 1 < rows);  // neighbours above and below
          const int64_t s = (column > 0) + (column + 1 < columns);
          EXPECT_EQ(stage.Received(device), (h + v) * (w + s) - h * w);
          EXPECT_EQ(both.Received(device), (h + 2 * v) * (w + 2 * s) - h * w);
          EXPECT_EQ(both.Points(0, device) - h * w, (h + v) * (w + s) - h * w);
        }
      }
      if (rows > 2 && columns > 2) {
        EXPECT_EQ(stage.Exchange().received(), (h + 2) * (w + 2) - h * w);
        EXPECT_EQ(both.Exchange().received(), (h + 4) * (w + 4) - h * w);
        EXPECT_EQ(Flops(both.LargestWork()), 2.0 * 9 * ((h + 2) * (w + 2) + h * w));
      }
    }
  }
}

}  // namespace
}  // namespace plancast
