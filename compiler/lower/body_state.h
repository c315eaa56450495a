#ifndef PLANCAST_COMPILER_LOWER_BODY_STATE_H_
#define PLANCAST_COMPILER_LOWER_BODY_STATE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cluster/device_mesh.h"
#include "compiler/body/body_plan.h"
#include "compiler/body/place.h"
#include "graph/model/model_graph.h"
#include "strategy/software_profile.h"

namespace plancast {

// Elements by mesh axes.
using ElementsByAxes = std::map<std::vector<int>, int64_t>;
void AddTimes(const ElementsByAxes& elements, int64_t times, ElementsByAxes* sum);
int64_t Total(const ElementsByAxes& elements);

// The mesh axes of a stage that a tensor is whole on, those of one rank left out.
std::vector<int> CopiesOf(const DeviceMesh& mesh, const Layout& layout);

// The axes that a home is over: each rank keeps a part, or one rank all.
struct HomeAxes {
  std::vector<int> axes;
  OnRanksOf root;    // which, along `axes`; none: parts
  bool here = true;  // whether the devices of the program keep anything

  bool rooted() const { return !root.empty(); }
  friend bool operator==(const HomeAxes& a, const HomeAxes& b) {
    return a.axes == b.axes && a.root == b.root && a.here == b.here;
  }
  friend bool operator<(const HomeAxes& a, const HomeAxes& b) {
    return std::tie(a.axes, a.root) < std::tie(b.axes, b.root);
  }
};

// Where a parameter has copies, as a home over axes of its own shares them out.
struct CopyAxes {
  std::vector<int> summed;  // its gradient is partial over these
  std::vector<int> alike;   // the same on all ranks, of the home's axes

  friend bool operator<(const CopyAxes& a, const CopyAxes& b) {
    return std::tie(a.summed, a.alike) < std::tie(b.summed, b.alike);
  }
};
using ElementsByCopies = std::map<CopyAxes, int64_t>;

// Parameters that are not trained: all, those of them in matrices of products that may be
// kept in 8 or 4 bits as trained ones are, and those that rest in NF4.
struct FrozenParameters {
  int64_t elements = 0, products = 0, nf4 = 0;
};

// What one repeat of a body owns and owes on one device, in elements.
struct BodyState {
  int64_t parameters = 0;  // that are trained
  // Of these, what the matrices of products have that may run in 8 or 4 bits.
  int64_t product_parameters = 0;
  // Gradients to be reduced over the data-parallel axes, and those that are
  // partial over other axes as well (norm weights under sequence parallelism).
  int64_t reduced_over_data = 0;
  ElementsByAxes reduced_over_others;
  // Gradients that are partial because other axes cut the batch as well (a split by hand):
  // data parallelism under another name, by all the axes to be reduced over.
  ElementsByAxes reduced_over_batch;
  // Of weights that a data-parallel axis cuts (experts): the parameters, which are
  // among `parameters`, and gradients, by the axes that the weight has copies on.
  ElementsByAxes cut_parameters, cut_gradients;
  // Of both, what some data-parallel ranks alone have (nodes on them). Others know nothing of it:
  // it does not count where ranks agree on messages.
  int64_t placed_parameters = 0, placed_gradients = 0;
  // Instead of all of these, of parameters whose home shards over axes of its own: those that
  // are trained, which are `parameters`.
  ElementsByCopies own;
  FrozenParameters frozen;
  // Of tables with sparse gradients, which none of the above has: whole on each device.
  int64_t sparse_parameters = 0;
  // Each parameter: its rows (as the matrix or vector that frameworks have) and elements,
  // and the axes that it has copies on if they are not the data-parallel ones.
  struct Parameter {
    int64_t rows = 1, elements = 0;
    bool cut = false;
    std::vector<int> copies;
    bool frozen = false;
    std::optional<CopyAxes> own = std::nullopt;
    // As matrices that products multiply with: how many of them (experts), and the sizes of each;
    // 0 of what is none, and of what has the vocabulary.
    int64_t matrices = 0, matrix_rows = 0, matrix_columns = 0;
  };
  std::vector<Parameter> each;

  std::string DebugString(const DeviceMesh& mesh) const;
};
// `only`: of these tensors of the body. `over`: their home shards them over these axes.
BodyState SummariseState(const ModelGraph& graph, const DeviceMesh& mesh, const Body& body,
                         const BodyPlan& plan, const SoftwareProfile& profile,
                         const std::vector<bool>* only = nullptr,
                         const std::vector<int>* over = nullptr);

}  // namespace plancast

#endif  // PLANCAST_COMPILER_LOWER_BODY_STATE_H_
