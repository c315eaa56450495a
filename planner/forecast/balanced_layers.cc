#include "planner/forecast/balanced_layers.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "planner/forecast/flops.h"

namespace plancast {
namespace {

// Sums of products in another order differ by less.
constexpr double kSame = 1 + 1e-12;

// Of consecutive modules.
struct Load {
  double flops = 0;
  int64_t parameters = 0;
  bool any = false;  // modules

  void Add(const Load& other) {
    flops += other.flops;
    parameters += other.parameters;
    any = any || other.any;
  }
};

Load LoadOf(const ModelGraph& graph, const Body& body) {
  Load load{ForwardFlops(graph, body), 0, true};
  for (const TensorInfo& tensor : body.tensors) {
    if (tensor.kind == TensorInfo::Kind::kParameter) load.parameters += graph.Elements(tensor);
  }
  return load;
}

// The layers in a row, each with what comes between it and the next.
class Line {
 public:
  explicit Line(const ModelGraph& graph) : sums_(1) {
    std::vector<Load> bodies;
    for (const Body& body : graph.bodies) bodies.push_back(LoadOf(graph, body));
    const bool lists = graph.HasLists();
    Load* others = &before_;
    std::vector<Load> layers;
    for (const Segment& segment : graph.segments) {
      if (segment.in_list() || !lists) {
        if (others == &after_ && !layers.empty()) layers.back().Add(std::exchange(after_, {}));
        layers.insert(layers.end(), segment.repeat, bodies[segment.body]);
        others = &after_;
      } else {
        others->Add(bodies[segment.body]);
      }
    }
    for (const Load& layer : layers) {
      sums_.push_back(sums_.back());
      sums_.back().Add(layer);
    }
  }

  int64_t layers() const { return static_cast<int64_t>(sums_.size()) - 1; }
  // Of a stage with layers [begin, end), the first or the last of all, or both.
  Load Of(int64_t begin, int64_t end, bool first, bool last) const {
    Load load{sums_[end].flops - sums_[begin].flops,
              sums_[end].parameters - sums_[begin].parameters, end > begin};
    if (first) load.Add(before_);
    if (last) load.Add(after_);
    return load;
  }

 private:
  std::vector<Load> sums_;  // of the layers before
  Load before_, after_;     // the first, the last
};

// What a deal costs as far as it has come; less is better.
struct Cost {
  double flops = 0;        // of the largest stage
  int64_t unevenness = 0;  // squares of layers
  int64_t parameters = 0;  // of the largest stage

  Cost With(const Load& load, int64_t layers) const {
    return {std::max(flops, load.flops), unevenness + layers * layers,
            std::max(parameters, load.parameters)};
  }
};

constexpr double kImpossible = std::numeric_limits<double>::infinity();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// Deals the layers of `line` to `stages`, none with more than `most` operations, so that
// `better(a, b)` holds for no other deal `a` than the one found, `b`. Returns what it costs, and
// how many layers each stage has; `flops` kImpossible: there is none.
template <typename Better>
std::pair<Cost, std::vector<int64_t>> Deal(const Line& line, int64_t stages, double most,
                                           const Better& better) {
  const int64_t layers = line.layers();
  const Cost impossible{kImpossible, kMost, kMost};
  std::vector<Cost> costs(layers + 1, impossible);  // of the stages so far with so many layers
  costs[0] = {};
  std::vector<std::vector<int64_t>> from;
  for (int64_t stage = 0; stage < stages; ++stage) {
    std::vector<Cost> next(layers + 1, impossible);
    std::vector<int64_t> begins(layers + 1, 0);
    const bool first = stage == 0, last = stage + 1 == stages;
    for (int64_t end = last ? layers : 0; end <= layers; ++end) {
      for (int64_t begin = first ? 0 : end; begin >= 0; --begin) {
        const Load load = line.Of(begin, end, first, last);
        // A longer stage costs no less.
        if (load.flops > most || better(next[end], Cost().With(load, end - begin))) break;
        if (costs[begin].flops == kImpossible || !load.any) continue;
        const Cost cost = costs[begin].With(load, end - begin);
        if (better(next[end], cost)) continue;
        next[end] = cost;  // the last of equal ones: the longest stage
        begins[end] = begin;
      }
    }
    costs = std::move(next);
    from.push_back(std::move(begins));
  }
  std::vector<int64_t> deal(stages);
  int64_t end = layers;
  for (int64_t stage = stages - 1; stage >= 0; --stage) {
    deal[stage] = end - from[stage][end];
    end = from[stage][end];
  }
  return {costs.back(), std::move(deal)};
}

}  // namespace

std::vector<int64_t> BalancedLayers(const ModelGraph& graph, int64_t stages) {
  const Line line(graph.WithBatch(1));
  if (stages < 1 || stages > line.layers() + 2) return {};
  const double least = Deal(line, stages, kImpossible, [](const Cost& a, const Cost& b) {
                         return a.flops < b.flops;
                       }).first.flops;
  if (least == kImpossible) return {};
  return Deal(line, stages, least * kSame,
              [](const Cost& a, const Cost& b) {
                return std::make_pair(a.unevenness, a.parameters) <
                       std::make_pair(b.unevenness, b.parameters);
              })
      .second;
}

}  // namespace plancast
