#ifndef PLANCAST_GRAPH_MODEL_MODEL_CUT_H_
#define PLANCAST_GRAPH_MODEL_MODEL_CUT_H_

#include <cstdint>
#include <tuple>

#include "base/memo_key.h"

namespace plancast {

// A place between two ops of a model: before op `op` of repeat `repeat` of a segment. Op 0: before
// the repeat as a whole.
struct ModelCut {
  int segment = 0;
  int64_t repeat = 0;
  int op = 0;

  friend bool operator==(const ModelCut& a, const ModelCut& b) {
    return a.segment == b.segment && a.repeat == b.repeat && a.op == b.op;
  }
  friend bool operator<(const ModelCut& a, const ModelCut& b) {
    return std::tie(a.segment, a.repeat, a.op) < std::tie(b.segment, b.repeat, b.op);
  }
  PLANCAST_KEY_FIELDS(ModelCut, segment, repeat, op)
};

}  // namespace plancast

#endif  // PLANCAST_GRAPH_MODEL_MODEL_CUT_H_
