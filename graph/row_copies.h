#ifndef PLANCAST_GRAPH_ROW_COPIES_H_
#define PLANCAST_GRAPH_ROW_COPIES_H_

#include <utility>

namespace plancast {

// How rows of an all-to-all are copied: `each` of every row, for receivers that are drawn evenly,
// where the software sends one copy to a node and to a device; 1: all go. Receivers may be
// drawn from `chosen` of their `groups` alone, which are drawn evenly and lie one behind another,
// as the experts of DeepSeek-V3 do (arXiv:2412.19437, section 2.1.2: four of eight groups). Or
// they are not drawn: of `dealt` receivers one row gets the first `each`, the next row those
// behind.
struct RowCopies {
  int each = 1;
  int groups = 1, chosen = 1;
  int dealt = 0;  // 0: drawn

  // Of `places` (nodes, devices) that share the receivers out evenly, in order: how many get a row.
  double Reached(double places) const;

  friend bool operator==(const RowCopies& a, const RowCopies& b) {
    return a.each == b.each && a.groups == b.groups && a.chosen == b.chosen && a.dealt == b.dealt;
  }
  template <typename H>
  friend H AbslHashValue(H h, const RowCopies& c) {
    return H::combine(std::move(h), c.each, c.groups, c.chosen, c.dealt);
  }
};

}  // namespace plancast

#endif  // PLANCAST_GRAPH_ROW_COPIES_H_
