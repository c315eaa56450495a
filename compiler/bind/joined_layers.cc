#include "compiler/bind/joined_layers.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/bind/piece_runs.h"
#include "graph/model/cut_segments.h"

namespace plancast {
namespace {

// Appends bodies to one, tensor by tensor.
class Joiner {
 public:
  // The tensors of the body by their numbers in the one.
  std::vector<int> Append(const Body& body) {
    std::vector<int> number(body.tensors.size(), -1);
    const bool first = out_.ops.empty();
    for (size_t p = 0; !first && p < body.in_ports.size(); ++p) {
      number[body.in_ports[p]] = out_.out_ports[p];
    }
    for (size_t t = 0; t < body.tensors.size(); ++t) {
      if (number[t] < 0) number[t] = Number(body.tensors[t]);
    }
    const auto renumber = [&](std::vector<int>& tensors) {
      for (int& t : tensors) t = number[t];
    };
    for (OpNode op : body.ops) {
      renumber(op.inputs);
      renumber(op.outputs);
      out_.ops.push_back(std::move(op));
    }
    if (first) {
      out_.in_ports = body.in_ports;
      out_.in_detached = body.in_detached;
      renumber(out_.in_ports);
    }
    out_.out_ports = body.out_ports;
    out_.out_detached = body.out_detached;
    renumber(out_.out_ports);
    return number;
  }

  Body Take(std::string name) && {
    out_.name = std::move(name);
    return std::move(out_);
  }

 private:
  int Number(const TensorInfo& tensor) {
    const auto same = [&](const TensorInfo& known) {
      return known.kind == TensorInfo::Kind::kInput && known.name == tensor.name;
    };
    if (tensor.kind == TensorInfo::Kind::kInput) {
      const auto known = std::find_if(out_.tensors.begin(), out_.tensors.end(), same);
      if (known != out_.tensors.end()) return static_cast<int>(known - out_.tensors.begin());
    }
    out_.tensors.push_back(tensor);
    return static_cast<int>(out_.tensors.size()) - 1;
  }

  Body out_;
};

// `layer*4`, or `dense+moe` where they are not alike.
std::string NameOf(const std::vector<const Body*>& bodies) {
  const auto other = [&](const Body* body) { return body != bodies[0]; };
  if (std::none_of(bodies.begin(), bodies.end(), other)) {
    return absl::StrCat(bodies[0]->name, "*", bodies.size());
  }
  return absl::StrJoin(
      bodies, "+", [](std::string* out, const Body* body) { absl::StrAppend(out, body->name); });
}

// What each body runs again, one after the other; `at_once`: what the layers as a whole run again
// is one group. Every other group stays what it was.
std::vector<OpReplay> JoinReplays(const std::vector<const BoundBody*>& bodies, bool at_once) {
  std::vector<OpReplay> joined;
  int groups = 1;  // 0: whole layers
  for (const BoundBody* body : bodies) {
    int most = 0;
    for (OpReplay replay : body->replays) {
      most = std::max(most, replay.group + 1);
      if (replay) replay.group = replay.whole && at_once ? 0 : groups + replay.group;
      joined.push_back(std::move(replay));
    }
    groups += most;
  }
  return joined;
}

// Adds what is said of the communication of a body whose ops and tensors got other numbers.
void AddCommunication(const BoundBody& part, int first_op, const std::vector<int>& tensors,
                      BoundBody* out) {
  if (!part.loops.empty()) {
    out->loops.resize(first_op);
    out->loops.insert(out->loops.end(), part.loops.begin(), part.loops.end());
  }
  for (BoundRewrite rewrite : part.rewrites) {
    rewrite.op += first_op;
    for (int& op : rewrite.ops) op += first_op;
    out->rewrites.push_back(std::move(rewrite));
  }
  for (const auto& [tensor, layout] : part.in_two) {
    out->in_two.emplace_back(tensors[tensor], layout);
  }
}

class LayerJoiner {
 public:
  // `layers`: that run again together; 0: units of sharding.
  LayerJoiner(int64_t layers, BoundModel* bound) : layers_(layers), bound_(*bound) {}

  void Run() {
    for (std::vector<StageRun>& stage : bound_.stages) {
      runs_.clear();
      for (const StageRun& run : stage) {
        // What is cut off inside of a layer is a module by itself.
        if (!bound_.graph.segments[run.segment].in_list() || IsPiece(bound_.graph, run.segment)) {
          Flush();
          runs_.push_back(run);
          continue;
        }
        if (!waiting_.empty() && !GoOn(waiting_.back(), run)) Flush();
        const int64_t most = layers_ > 0 ? layers_ : bound_.bodies[run.bound_body].unit;
        for (int64_t layer = 0; layer < run.count; ++layer) {
          waiting_.push_back({run.segment, run.bound_body, run.layer_begin + layer, 1});
          if (static_cast<int64_t>(waiting_.size()) == most) Flush();
        }
      }
      Flush();
      stage = runs_;
    }
  }

 private:
  // Whether layers of two runs may be joined: units are of one list, and of one size.
  bool GoOn(const StageRun& a, const StageRun& b) const {
    const int64_t unit = bound_.bodies[a.bound_body].unit;
    const bool one_list =
        bound_.graph.segments[a.segment].path == bound_.graph.segments[b.segment].path;
    if (layers_ > 0 && unit == 1) return true;
    return one_list && unit == bound_.bodies[b.bound_body].unit;
  }

  // What waits becomes one module more.
  void Flush() {
    if (waiting_.empty()) return;
    const StageRun first = waiting_.front();
    const int body = JoinedBody();
    waiting_.clear();
    const bool again =
        !runs_.empty() && runs_.back().bound_body == body && runs_.back().segment == first.segment;
    if (again) {
      ++runs_.back().count;
    } else {
      runs_.push_back(
          {first.segment, body, first.layer_begin, 1, bound_.bodies[body].layers > 1 ? body : -1});
    }
  }

  int JoinedBody() {
    std::vector<int> numbers;
    for (const StageRun& layer : waiting_) numbers.push_back(layer.bound_body);
    if (numbers.size() == 1) return numbers[0];
    const auto [known, inserted] = joined_.try_emplace(numbers, 0);
    if (!inserted) return known->second;
    std::vector<const Body*> bodies;
    std::vector<const BoundBody*> parts;
    BoundBody out;
    for (const int number : numbers) {
      parts.push_back(&bound_.bodies[number]);
      bodies.push_back(&bound_.graph.bodies[parts.back()->body]);
      out.splits.insert(out.splits.end(), parts.back()->splits.begin(), parts.back()->splits.end());
      out.homes.insert(out.homes.end(), parts.back()->homes.begin(), parts.back()->homes.end());
    }
    int ops = 0;
    std::vector<std::vector<int>> tensors;
    Body joined = JoinBodies(bodies, &tensors);
    for (size_t i = 0; i < parts.size(); ++i) {
      const BoundBody* const part = parts[i];
      AddCommunication(*part, ops, tensors[i], &out);
      for (PieceRun run : part->pieces) {
        run.begin += ops;
        run.end += ops;
        const auto before =
            std::find_if(out.pieces.begin(), out.pieces.end(), [&](const PieceRun& other) {
              return run.through_unit && other.source == run.source && other.end == run.begin;
            });
        if (before != out.pieces.end()) {
          before->end = run.end;
        } else {
          out.pieces.push_back(std::move(run));
        }
      }
      ops += static_cast<int>(part->splits.size());
    }
    SortPieces(&out.pieces);
    if (!out.loops.empty()) out.loops.resize(ops);
    if (std::any_of(parts.begin(), parts.end(),
                    [](const BoundBody* p) { return !p->on.empty(); })) {
      for (const BoundBody* part : parts) {
        for (size_t op = 0; op < part->splits.size(); ++op) {
          out.on.push_back(part->OnOf(static_cast<int>(op)));
        }
      }
    }
    out.layers = static_cast<int>(numbers.size());
    out.last_segment = waiting_.back().segment;
    out.replays = JoinReplays(parts, /*at_once=*/layers_ > 0);
    out.body = static_cast<int>(bound_.graph.bodies.size());
    bound_.graph.bodies.push_back(std::move(joined));
    bound_.bodies.push_back(std::move(out));
    return known->second = static_cast<int>(bound_.bodies.size()) - 1;
  }

  const int64_t layers_;
  BoundModel& bound_;
  std::vector<StageRun> waiting_, runs_;    // of the current stage
  std::map<std::vector<int>, int> joined_;  // bound bodies by those that they join
};

}  // namespace

Body JoinBodies(const std::vector<const Body*>& bodies, std::vector<std::vector<int>>* tensors) {
  Joiner joiner;
  for (const Body* body : bodies) {
    std::vector<int> numbers = joiner.Append(*body);
    if (tensors != nullptr) tensors->push_back(std::move(numbers));
  }
  return std::move(joiner).Take(NameOf(bodies));
}

void JoinLayers(int64_t layers, BoundModel* bound) { LayerJoiner(layers, bound).Run(); }

void JoinUnits(BoundModel* bound) { LayerJoiner(0, bound).Run(); }

}  // namespace plancast
