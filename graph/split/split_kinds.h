#ifndef PLANCAST_GRAPH_SPLIT_SPLIT_KINDS_H_
#define PLANCAST_GRAPH_SPLIT_SPLIT_KINDS_H_

#include <string>
#include <vector>

#include "graph/rule/op_rule.h"

namespace plancast {

// How an op may be cut over one class of tied factors, read off its rule alone
// (no sizes, no mesh): the two kinds of partition of Tofu (EuroSys'19), what
// windows add to them, and what statistics owe inside.
struct SplitKind {
  std::vector<int> factors;  // the class
  std::vector<int> concat;   // outputs of which each worker has a part
  std::vector<int> reduce;   // outputs of which each worker has a share of the sum or maximum
  std::vector<int> inner;    // intermediate tensors that are reduced inside the op
  std::vector<int> states;   // of recurrences, which parts pass on to each other
  bool whole = false;        // may not be cut: an opaque statement takes all of it
  // Index maps along the class that reach past a block: `x` by `2 * (size(k) - 1)`
  // positions. Inputs only.
  struct Reach {
    int tensor = -1;
    std::string positions;
  };
  std::vector<Reach> halos;
};

// In the order of the factors. Outputs that a class does not appear in are
// copies on every worker and not listed.
std::vector<SplitKind> SplitKindsOf(const OpRule& rule);

// `i, p: concat y; halo of x: size(k) - 1`, one line a class.
std::string SplitKindsText(const OpRule& rule);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_SPLIT_SPLIT_KINDS_H_
