#include "planner/forecast/balanced_cuts.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/model/cut_segments.h"
#include "planner/forecast/flops.h"

namespace plancast {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

// The model as a line of ops. Place p is before op p; there is one more behind the last.
struct Line {
  std::vector<ModelCut> places;
  std::vector<double> flops;  // per place: of the ops before it
  std::vector<double> bytes;  // per place: of the tensors that cross it
  int64_t products = 0;       // ops that have any

  size_t ops() const { return places.size(); }
  double Between(size_t begin, size_t end) const { return flops[end] - flops[begin]; }
};

// Per op of a body: its work, and the bytes alive before it.
struct BodyLine {
  std::vector<double> flops, bytes;
};

double BytesOf(const ModelGraph& graph, const TensorInfo& tensor) {
  const DType type = tensor.dtype == DType::kCompute ? DType::kBf16 : tensor.dtype;
  return static_cast<double>(graph.Elements(tensor)) * ElementBytes(type);
}

BodyLine LineOfBody(const ModelGraph& graph, const Body& body) {
  BodyLine line;
  for (size_t o = 0; o < body.ops.size(); ++o) {
    line.flops.push_back(ForwardFlops(graph, body.ops[o]));
    line.bytes.push_back(0);
    for (int t : LiveTensors(body, static_cast<int>(o))) {
      line.bytes.back() += BytesOf(graph, body.tensors[t]);
    }
  }
  return line;
}

Line LineOf(const ModelGraph& graph) {
  Line line;
  line.flops = {0};
  std::map<int, BodyLine> bodies;
  for (size_t s = 0; s < graph.segments.size(); ++s) {
    const Segment& segment = graph.segments[s];
    const auto [known, fresh] = bodies.try_emplace(segment.body);
    if (fresh) known->second = LineOfBody(graph, graph.bodies[segment.body]);
    const BodyLine& body = known->second;
    for (int64_t repeat = 0; repeat < segment.repeat; ++repeat) {
      for (size_t o = 0; o < body.flops.size(); ++o) {
        line.places.push_back({static_cast<int>(s), repeat, static_cast<int>(o)});
        line.flops.push_back(line.flops.back() + body.flops[o]);
        line.bytes.push_back(body.bytes[o]);
        if (body.flops[o] > 0) ++line.products;
      }
    }
  }
  line.bytes.push_back(0);
  return line;
}

// Whether parts of at most `most` do.
bool Suffices(const Line& line, int64_t stages, double most) {
  size_t begin = 0;
  int64_t parts = 1;
  for (size_t p = 1; p <= line.ops(); ++p) {
    if (line.Between(begin, p) <= most) continue;
    if (p - 1 == begin) return false;
    begin = p - 1;
    if (++parts > stages) return false;
    if (line.Between(begin, p) > most) return false;
  }
  return true;
}

// The least that the largest of so many parts can have, by halving the range.
double LeastLargest(const Line& line, int64_t stages) {
  double low = line.flops.back() / static_cast<double>(stages), high = line.flops.back();
  for (int i = 0; i < 100 && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    (Suffices(line, stages, middle) ? high : low) = middle;
  }
  return high;
}

// Cuts with parts of more than nothing and at most `most`, of the fewest bytes: by place, for one
// part more each round, the fewest bytes and the place before.
std::vector<size_t> FewestBytes(const Line& line, int64_t stages, double most) {
  const size_t places = line.ops() + 1;
  std::vector<double> bytes(places, kImpossible);
  bytes[0] = 0;
  std::vector<std::vector<size_t>> before;
  for (int64_t part = 0; part < stages; ++part) {
    std::vector<double> next(places, kImpossible);
    std::vector<size_t> from(places, 0);
    std::deque<size_t> window;  // of places to come from, the best first
    size_t entered = 0;
    for (size_t p = 1; p < places; ++p) {
      for (; entered < p && line.Between(entered, p) > 0; ++entered) {
        while (!window.empty() && bytes[window.back()] >= bytes[entered]) window.pop_back();
        window.push_back(entered);
      }
      while (!window.empty() && line.Between(window.front(), p) > most) window.pop_front();
      if (window.empty() || bytes[window.front()] == kImpossible) continue;
      next[p] = bytes[window.front()] + line.bytes[p];
      from[p] = window.front();
    }
    bytes = std::move(next);
    before.push_back(std::move(from));
  }
  std::vector<size_t> cuts;
  if (bytes.back() == kImpossible) return cuts;
  size_t place = line.ops();
  for (int64_t part = stages - 1; part > 0; --part) {
    place = before[part][place];
    cuts.insert(cuts.begin(), place);
  }
  return cuts;
}

}  // namespace

absl::StatusOr<std::vector<ModelCut>> BalancedCuts(const ModelGraph& graph, int64_t stages) {
  const Line line = LineOf(graph.WithBatch(1));
  std::vector<ModelCut> cuts;
  if (stages <= line.products) {
    for (size_t place : FewestBytes(line, stages, LeastLargest(line, stages))) {
      cuts.push_back(line.places[place]);
    }
  }
  if (static_cast<int64_t>(cuts.size()) == stages - 1) return cuts;
  return absl::InvalidArgumentError(absl::StrCat(
      stages, " virtual stages are more than the ", line.products,
      " products of the model, convolutions and linear layers, between which it can be cut. "
      "pp*vpp can be ",
      line.products, " at most."));
}

}  // namespace plancast
