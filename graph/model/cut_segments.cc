#include "graph/model/cut_segments.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plancast {
namespace {

constexpr int kNever = -1;

// Where in its body a tensor is made and read, as numbers of ops; a port that leaves is read
// by the op behind the last.
struct Life {
  bool crosses = false;  // an activation: others are there wherever they are read
  int made_before = 0;   // the first op that may read it
  int last_read = kNever;
  int last_gradient = kNever;  // the last op that gives a gradient of it back

  bool IsLiveAt(int op) const { return crosses && made_before <= op && last_read >= op; }
  bool IsDetachedAt(int op) const { return last_gradient < op; }
};

std::vector<bool> DifferentiableArguments(const OpNode& op) {
  const std::vector<std::string> names = DifferentiableInputs(*op.rule);
  std::vector<bool> differentiable;
  for (int index : op.rule->inputs()) {
    const std::string& name = op.rule->tensors()[index].name;
    differentiable.push_back(std::find(names.begin(), names.end(), name) != names.end());
  }
  return differentiable;
}

std::vector<Life> LivesOf(const Body& body) {
  const int end = static_cast<int>(body.ops.size());
  std::vector<Life> lives(body.tensors.size());
  std::vector<bool> wants_gradient(body.tensors.size());
  for (size_t t = 0; t < body.tensors.size(); ++t) {
    lives[t].crosses = body.tensors[t].kind == TensorInfo::Kind::kActivation;
    wants_gradient[t] = body.tensors[t].kind == TensorInfo::Kind::kParameter;
  }
  for (size_t p = 0; p < body.in_ports.size(); ++p) {
    wants_gradient[body.in_ports[p]] = !body.InDetached(p);
  }
  for (int o = 0; o < end; ++o) {
    const OpNode& op = body.ops[o];
    const std::vector<bool> differentiable = DifferentiableArguments(op);
    bool any = false;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      Life& life = lives[op.inputs[i]];
      life.last_read = o;
      if (!differentiable[i] || !wants_gradient[op.inputs[i]]) continue;
      life.last_gradient = o;
      any = true;
    }
    for (int t : op.outputs) {
      lives[t].made_before = o + 1;
      wants_gradient[t] = any;
    }
  }
  for (size_t p = 0; p < body.out_ports.size(); ++p) {
    Life& life = lives[body.out_ports[p]];
    life.last_read = end;
    if (!body.OutDetached(p) && wants_gradient[body.out_ports[p]]) life.last_gradient = end;
  }
  return lives;
}

// `layer[attn.qkv..attn.out]`
std::string NameOf(const Body& body, int begin, int end) {
  const std::string& first = body.ops[begin].name;
  const std::string last = end - begin > 1 ? absl::StrCat("..", body.ops[end - 1].name) : "";
  return absl::StrCat(body.name, "[", first, last, "]");
}

// A part of a body, and the number that each of its tensors has there (kNever: none).
struct Piece {
  Body body;
  std::vector<int> number;
};

// Ops [begin, end).
Piece PieceOf(const Body& body, const std::vector<Life>& lives, int begin, int end) {
  const int ops = static_cast<int>(body.ops.size());
  const auto ports = [&](int at, std::vector<int>* list, std::vector<bool>* detached) {
    list->clear();
    detached->clear();
    for (size_t t = 0; t < lives.size(); ++t) {
      if (!lives[t].IsLiveAt(at)) continue;
      list->push_back(static_cast<int>(t));
      detached->push_back(lives[t].IsDetachedAt(at));
    }
    if (std::find(detached->begin(), detached->end(), true) == detached->end()) detached->clear();
  };
  Piece piece;
  Body& out = piece.body;
  out.name = NameOf(body, begin, end);
  out.in_ports = body.in_ports;
  out.in_detached = body.in_detached;
  out.out_ports = body.out_ports;
  out.out_detached = body.out_detached;
  if (begin > 0) ports(begin, &out.in_ports, &out.in_detached);
  if (end < ops) ports(end, &out.out_ports, &out.out_detached);
  out.ops.assign(body.ops.begin() + begin, body.ops.begin() + end);

  std::vector<bool> here(body.tensors.size(), false);
  const auto note = [&](const std::vector<int>& tensors) {
    for (int t : tensors) here[t] = true;
  };
  note(out.in_ports);
  note(out.out_ports);
  for (const OpNode& op : out.ops) {
    note(op.inputs);
    note(op.outputs);
  }
  piece.number.assign(body.tensors.size(), kNever);
  for (size_t t = 0; t < body.tensors.size(); ++t) {
    // What nobody reads is trained and kept all the same.
    const bool idle = body.tensors[t].kind == TensorInfo::Kind::kParameter &&
                      lives[t].last_read == kNever && begin == 0;
    if (!here[t] && !idle) continue;
    piece.number[t] = static_cast<int>(out.tensors.size());
    out.tensors.push_back(body.tensors[t]);
  }
  const auto renumber = [&](std::vector<int>& tensors) {
    for (int& t : tensors) t = piece.number[t];
  };
  renumber(out.in_ports);
  renumber(out.out_ports);
  for (OpNode& op : out.ops) {
    renumber(op.inputs);
    renumber(op.outputs);
  }
  return piece;
}

class Cutter {
 public:
  explicit Cutter(const ModelGraph& graph) : graph_(graph) { out_.graph = graph; }

  absl::StatusOr<CutModel> Run(absl::Span<const ModelCut> cuts) && {
    RETURN_IF_ERROR(Check(cuts));
    out_.graph.segments.clear();
    out_.begins = {0};
    size_t c = 0;
    for (int s = 0; s < static_cast<int>(graph_.segments.size()); ++s) {
      int64_t done = 0;
      while (c < cuts.size() && cuts[c].segment == s) {
        const int64_t repeat = cuts[c].repeat;
        AddRepeats(s, done, repeat);
        if (cuts[c].op == 0) {
          Begin();
          ++c;
        }
        std::vector<int> ops;
        for (; c < cuts.size() && cuts[c].segment == s && cuts[c].repeat == repeat; ++c) {
          ops.push_back(cuts[c].op);
        }
        done = repeat;
        if (ops.empty()) continue;
        AddPieces(s, repeat, ops);
        ++done;
      }
      AddRepeats(s, done, graph_.segments[s].repeat);
    }
    MapTies();
    return std::move(out_);
  }

 private:
  // Where repeats [repeat, repeat + count) of a segment went; of a piece, the numbers of its
  // tensors.
  struct Placed {
    int segment = 0;
    int64_t repeat = 0, count = 1;
    int to = 0;
    const std::vector<int>* number = nullptr;
  };

  absl::Status Check(absl::Span<const ModelCut> cuts) const {
    for (size_t c = 0; c < cuts.size(); ++c) {
      const ModelCut& cut = cuts[c];
      const bool inside =
          cut.segment >= 0 && cut.segment < static_cast<int>(graph_.segments.size()) &&
          cut.repeat >= 0 && cut.repeat < graph_.segments[cut.segment].repeat && cut.op >= 0 &&
          cut.op < std::max(1, OpsOf(cut.segment)) && ModelCut{} < cut;
      if (inside && (c == 0 || cuts[c - 1] < cut)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "a model cannot be cut before op ", cut.op, " of repeat ", cut.repeat, " of segment ",
          cut.segment, inside ? ": cuts must ascend." : ", which is not inside of it."));
    }
    return absl::OkStatus();
  }

  int OpsOf(int segment) const {
    return static_cast<int>(graph_.bodies[graph_.segments[segment].body].ops.size());
  }

  void Begin() { out_.begins.push_back(static_cast<int>(out_.graph.segments.size())); }

  int Append(Segment segment) {
    out_.graph.segments.push_back(std::move(segment));
    return static_cast<int>(out_.graph.segments.size()) - 1;
  }

  void AddRepeats(int s, int64_t begin, int64_t end) {
    if (begin >= end) return;
    Segment run = graph_.segments[s];
    if (end - begin < run.repeat) run.list = run.in_list();
    run.repeat = end - begin;
    placed_.push_back({s, begin, end - begin, Append(std::move(run)), nullptr});
  }

  void AddPieces(int s, int64_t repeat, std::vector<int> ops) {
    const Segment& whole = graph_.segments[s];
    ops.insert(ops.begin(), 0);
    ops.push_back(OpsOf(s));
    for (size_t i = 0; i + 1 < ops.size(); ++i) {
      if (i > 0) Begin();
      Segment segment = whole;
      segment.repeat = 1;
      segment.list = whole.in_list();
      segment.continues = whole.continues || i > 0;
      const Made& made = MadeOf(whole.body, ops[i], ops[i + 1]);
      segment.body = made.body;
      placed_.push_back({s, repeat, 1, Append(std::move(segment)), &made.number});
    }
  }

  struct Made {
    int body = 0;
    std::vector<int> number;
  };
  const Made& MadeOf(int body, int begin, int end) {
    const auto [known, fresh] = made_.try_emplace({body, begin, end});
    if (!fresh) return known->second;
    const auto [lives, unknown] = lives_.try_emplace(body);
    if (unknown) lives->second = LivesOf(graph_.bodies[body]);
    Piece piece = PieceOf(graph_.bodies[body], lives->second, begin, end);
    std::vector<Body>& bodies = out_.graph.bodies;
    const auto same = std::find_if(bodies.begin(), bodies.end(),
                                   [&](const Body& other) { return SameBody(other, piece.body); });
    known->second = {static_cast<int>(same - bodies.begin()), std::move(piece.number)};
    if (same == bodies.end()) bodies.push_back(std::move(piece.body));
    return known->second;
  }

  // Segment, tensor and repeat of the parameter's first user.
  std::tuple<int, int, int64_t> NewPlaceOf(int segment, int tensor, int64_t repeat) const {
    for (const Placed& p : placed_) {
      if (p.segment != segment || repeat < p.repeat || repeat >= p.repeat + p.count) continue;
      if (p.number == nullptr) return {p.to, tensor, repeat - p.repeat};
      if ((*p.number)[tensor] != kNever) return {p.to, (*p.number)[tensor], 0};
    }
    return {0, tensor, repeat};
  }

  void MapTies() {
    for (TiedParameter& tie : out_.graph.tied) {
      std::tie(tie.first_segment, tie.first_tensor, tie.first_repeat) =
          NewPlaceOf(tie.first_segment, tie.first_tensor, tie.first_repeat);
      std::tie(tie.second_segment, tie.second_tensor, tie.second_repeat) =
          NewPlaceOf(tie.second_segment, tie.second_tensor, tie.second_repeat);
    }
    for (const Placed& p : placed_) {
      if (p.number == nullptr) continue;
      const Body& body = graph_.bodies[graph_.segments[p.segment].body];
      for (size_t t = 0; t < body.tensors.size(); ++t) {
        const int here = (*p.number)[t];
        if (here == kNever || body.tensors[t].kind != TensorInfo::Kind::kParameter) continue;
        const auto [to, tensor, repeat] = NewPlaceOf(p.segment, static_cast<int>(t), p.repeat);
        if (to != p.to) out_.graph.tied.push_back({to, tensor, p.to, here, repeat, 0});
      }
    }
  }

  const ModelGraph& graph_;
  CutModel out_;
  std::vector<Placed> placed_;
  std::map<std::tuple<int, int, int>, Made> made_;  // body, first and last op
  std::map<int, std::vector<Life>> lives_;          // by body
};

}  // namespace

absl::StatusOr<CutModel> CutSegments(const ModelGraph& graph, absl::Span<const ModelCut> cuts) {
  return Cutter(graph).Run(cuts);
}

bool IsPiece(const ModelGraph& graph, int segment) {
  const size_t next = static_cast<size_t>(segment) + 1;
  return graph.segments[segment].continues ||
         (next < graph.segments.size() && graph.segments[next].continues);
}

std::vector<int> LiveTensors(const Body& body, int op) {
  if (op == 0) return body.in_ports;
  std::vector<int> live;
  const std::vector<Life> lives = LivesOf(body);
  for (size_t t = 0; t < lives.size(); ++t) {
    if (lives[t].IsLiveAt(op)) live.push_back(static_cast<int>(t));
  }
  return live;
}

}  // namespace plancast
