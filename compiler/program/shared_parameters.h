#ifndef PLANCAST_COMPILER_PROGRAM_SHARED_PARAMETERS_H_
#define PLANCAST_COMPILER_PROGRAM_SHARED_PARAMETERS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "compiler/bind/bind.h"
#include "graph/model/model_graph.h"
#include "strategy/schedule/stage_placement.h"

namespace plancast {

// A parameter with several users (tied embeddings). Each pipeline stage that has users holds it
// once; one of them there counts it, the others borrow it: the last outside of lists (where a unit
// of sharding holds all of these, which is gathered first and reduced last), or else the first,
// whose backward pass, the last, completes the gradient.
struct SharedParameter {
  struct Use {
    int segment = 0;
    int64_t repeat = 0;   // of the segment
    int tensor = 0;       // of its body
    int64_t layer = 0;    // as StageRun counts them
    int64_t part = -1;    // virtual stage of its copy of the model; -1: not placed yet
    int64_t stage = -1;   // of the pipeline, likewise
    bool listed = false;  // the segment is in a list
  };
  int64_t elements = 0;   // on one device
  bool frozen = false;    // not trained: it has no gradients
  std::vector<Use> uses;  // in model order

  // Whether another user on its stage counts it.
  bool IsBorrowed(size_t use) const;
  // Those that have users, each once, ascending.
  std::vector<int64_t> Stages() const;
};

// The parameters that `graph.tied` makes one; elements and stages are not filled in.
std::vector<SharedParameter> SharedParametersOf(const ModelGraph& graph);

// Finds the stages of all users, in each copy of the model, and splits runs so that all repeats of
// one borrow the same. Where all stages have a part of a parameter (vocab_parallel), each part
// becomes one by itself.
void PlaceSharedParameters(const StagePlacement& placement, std::vector<SharedParameter>* shared,
                           std::vector<std::vector<StageRun>>* stages);

// Gradients that stages sum among themselves, one after the other: two swap theirs; more that are
// equally far apart reduce them together, others in swaps of the first with each. All stages list
// them in one order.
struct SharedGradients {
  std::vector<int64_t> stages;  // ascending, two at least
  int64_t elements = 0;
};
using ElementsByStages = std::map<std::vector<int64_t>, int64_t>;  // stages ascending
// Those of `shared`, with `others` beside them.
std::vector<SharedGradients> SharedGradientsOf(const std::vector<SharedParameter>& shared,
                                               ElementsByStages others = {});

}  // namespace plancast

#endif  // PLANCAST_COMPILER_PROGRAM_SHARED_PARAMETERS_H_
