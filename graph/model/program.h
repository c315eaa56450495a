#ifndef PLANCAST_GRAPH_MODEL_PROGRAM_H_
#define PLANCAST_GRAPH_MODEL_PROGRAM_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/dtype.h"
#include "graph/model/model_graph.h"

namespace plancast {

// A computation that is no model: tensors that are given, and steps that make others of them, in
// order. Nothing is trained. A plan splits, moves and times it as it does a model.
struct IndexProgram {
  // A tensor that is there when the program begins. Its node, which is called as it is, says where
  // its parts are; no kernel runs for it.
  struct Given {
    std::string name;
    std::vector<std::string> dims;
    DType dtype = DType::kCompute;
  };
  std::string name;  // also of its one module: nodes are `NAME.STEP`
  std::vector<std::pair<std::string, int64_t>> dims;
  std::vector<Given> given;
  // A statement in index notation over the dims, `A[i,j] += B[i,k] * C[k,j]`; or a rule that is
  // called, `w, m, v, p = adam(w0, m0, v0, grad)`. A step is called as the first tensor that it
  // makes, or as it says before a colon: `product: A[i,j] += ...`. `A:f32[i,j]` has a type of its
  // own.
  std::vector<std::string> steps;
};

// The program as a graph of one module. Errors name the step: text that is no statement, tensors
// that nobody makes, indices that are no dims.
absl::StatusOr<ModelGraph> BuildProgram(const IndexProgram& program);

}  // namespace plancast

#endif  // PLANCAST_GRAPH_MODEL_PROGRAM_H_
