#ifndef PLANCAST_GRAPH_LAYOUT_RELAYOUT_MOVES_H_
#define PLANCAST_GRAPH_LAYOUT_RELAYOUT_MOVES_H_

#include <vector>

#include "absl/types/span.h"
#include "cluster/device_mesh.h"
#include "graph/layout/relayout.h"

namespace plancast {

// One relayout problem: which steps lead on from a layout.
//
// A collective over some axes can only undo or add the innermost cuts of a dim
// (those of the last axes that shard it); whatever is out of order is left to
// a direct exchange.
class RelayoutMoves {
 public:
  RelayoutMoves(const DeviceMesh& mesh, absl::Span<const int64_t> shape, const Layout& target);

  // All single steps from `layout`; `axes` are those that may change.
  std::vector<RelayoutStep> From(const Layout& layout, const std::vector<int>& axes) const;

 private:
  void AddHaloDrops(const Layout& layout, const std::vector<int>& axes,
                    std::vector<RelayoutStep>* steps) const;
  void AddGathers(const Layout& layout, const std::vector<int>& axes,
                  std::vector<RelayoutStep>* steps) const;
  void AddReductions(const Layout& layout, const std::vector<int>& axes,
                     std::vector<RelayoutStep>* steps) const;
  void AddSlices(const Layout& layout, const std::vector<int>& axes,
                 std::vector<RelayoutStep>* steps) const;
  void AddAllToAlls(const Layout& layout, const std::vector<int>& axes,
                    std::vector<RelayoutStep>* steps) const;
  // From and to one coordinate.
  void AddRooted(const Layout& layout, const std::vector<int>& axes,
                 std::vector<RelayoutStep>* steps) const;
  void AddExchange(const Layout& layout, const std::vector<int>& axes,
                   std::vector<RelayoutStep>* steps) const;
  void AddExchangeTo(const Layout& layout, const Layout& after,
                     std::vector<RelayoutStep>* steps) const;

  // `axes` can shard `dim` inside all other axes that do in `layout`.
  bool CanCut(const Layout& layout, const std::vector<int>& axes, Placement shard) const;
  // `axes` are the last ones that shard `dim` in `layout`.
  bool AreInnermost(const Layout& layout, const std::vector<int>& axes, int dim) const;
  int64_t LocalElements(const Layout& layout) const;

  const DeviceMesh& mesh_;
  const std::vector<int64_t> shape_;
  const Layout target_;
};

}  // namespace plancast

#endif  // PLANCAST_GRAPH_LAYOUT_RELAYOUT_MOVES_H_
