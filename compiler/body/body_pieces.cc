#include "compiler/body/body_pieces.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/body/partition.h"
#include "compiler/body/piece_loop.h"
#include "graph/layout/relayout.h"
#include "graph/split/op_split.h"

namespace plancast {
namespace {

bool Contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// The factors of a rule that run over one of `dims` in the op.
std::vector<int> FactorsOver(const OpRule& rule, const OpNode& op, const std::vector<int>& dims) {
  std::vector<int> over;
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    for (size_t g = 0; g < op.rule->factors().size(); ++g) {
      const bool same = rule.factors()[f] == op.rule->factors()[g];
      if (same && Contains(dims, op.factor_dims[g])) over.push_back(static_cast<int>(f));
    }
  }
  return over;
}

// Cuts the runs of one body. Members are the body and its plan as far as they are cut.
class PieceCutter {
 public:
  PieceCutter(const ModelGraph& graph, const DeviceMesh& mesh, const BoundBody& bound,
              const BodyPlan& plan, bool ends_model)
      : out_{graph, bound, plan},
        mesh_(mesh),
        body_(out_.graph.bodies[bound.body]),
        plan_(out_.plan),
        ends_model_(ends_model) {
    for (size_t o = 0; o < body_.ops.size(); ++o) origin_.push_back(static_cast<int>(o));
    for (const PlanStep& step : plan_.forward) kernels_ = std::max(kernels_, step.fused + 1);
    for (const char* name : {"batch", "seq"}) {
      const auto dim = graph.FindDim(name);
      if (dim.ok()) sizes_of_.push_back({name, {*dim}});
    }
  }

  absl::StatusOr<BodyInPieces> Run() && {
    for (const PieceRun& run : out_.bound.pieces) {
      std::set<int> around;  // pieces that the run is in
      for (const std::vector<PlanStep>* steps : {&plan_.forward, &plan_.backward}) {
        for (const PlanStep& step : *steps) {
          if (IsOf(run, step)) around.insert(step.piece);
        }
      }
      for (const int piece : around) {
        RETURN_IF_ERROR(Cut(run, piece))
            << "`" << run.source << "`: `micro_batches: " << absl::StrCat(run.pieces) << "`";
      }
    }
    return std::move(out_);
  }

 private:
  // A dim of the model: itself, and what is left of it in pieces.
  struct Dim {
    std::string name;
    std::vector<int> sizes;
  };

  bool IsOf(const PieceRun& run, const PlanStep& step) const {
    return step.kind == PlanStep::Kind::kOp && origin_[step.op.op] >= run.begin &&
           origin_[step.op.op] < run.end;
  }

  std::vector<int> DimsOf(const TensorRef& ref) const {
    if (ref.op < 0) return body_.tensors[ref.tensor].dims;
    std::vector<int> dims;
    const OpNode& op = body_.ops[ref.op];
    for (const int factor : op.rule->tensors()[ref.tensor].factors) {
      dims.push_back(op.factor_dims[factor]);
    }
    return dims;
  }
  bool IsCut(int value) const {
    const std::vector<int> dims = DimsOf(plan_.values[value].ref);
    return std::any_of(dims.begin(), dims.end(), [&](int d) { return Contains(dim_->sizes, d); });
  }
  TensorInfo::Kind KindOf(int value) const {
    const TensorRef& ref = plan_.values[value].ref;
    return ref.op < 0 ? body_.tensors[ref.tensor].kind : TensorInfo::Kind::kActivation;
  }

  // The first dim of which every op of the run has a multiple of the pieces on each device.
  absl::Status ChooseDim(const PieceRun& run, int around) {
    std::set<int> ops;
    for (const std::vector<PlanStep>* steps : {&plan_.forward, &plan_.backward}) {
      for (const PlanStep& step : *steps) {
        if (IsOf(run, step) && step.piece == around) ops.insert(step.op.op);
      }
    }
    std::string known;
    for (Dim& dim : sizes_of_) {
      bool any = false, divides = true;
      int64_t size = 0;
      for (const int o : ops) {
        const OpNode& op = body_.ops[o];
        for (size_t f = 0; f < op.factor_dims.size(); ++f) {
          if (!Contains(dim.sizes, op.factor_dims[f])) continue;
          const int64_t whole = out_.graph.dims[op.factor_dims[f]].size;
          const int64_t parts = mesh_.SizeOf(out_.bound.splits[o].axes[f]);
          any = true;
          size = std::max(size, whole / parts);
          divides = divides && whole % (parts * run.pieces) == 0;
        }
      }
      dim_ = &dim;
      if (any && divides) return absl::OkStatus();
      if (any) {
        absl::StrAppend(&known, known.empty() ? "" : " and ", size,
                        dim.name == "batch" ? " samples" : " positions of the sequence");
      }
    }
    return absl::InvalidArgumentError(
        known.empty()
            ? std::string("cuts neither samples nor positions: no op there runs over any. Leave "
                          "it out.")
            : absl::StrCat("does not divide what a device has of a micro-batch there, ", known,
                           ". Give a number that divides one of them."));
  }

  // Whether the step is cut; else it has nothing of the dim. Errors: it joins what would be apart.
  absl::StatusOr<bool> CheckStep(const PieceRun& run, const PlanStep& step) const {
    const OpRule& rule = *step.op.rule;
    const OpNode& op = body_.ops[step.op.op];
    const std::vector<int> factors = FactorsOver(rule, op, dim_->sizes);
    const auto refuse = [&](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cuts `", dim_->name, "`, and `", op.name, "` ", what, ". Name nodes without `", op.name,
          "`", dim_->name == "batch" ? "" : ", or take mb a multiple of the pieces", "."));
    };
    if (factors.empty()) return false;
    if (factors.size() > 1) return refuse("reads all of it for each part");
    const int factor = factors[0];
    for (const Statement& statement : rule.statements()) {
      for (const Condition& condition : statement.where) {
        if (condition.Mentions(factor)) return refuse("reads beyond its part");
      }
    }
    if (!rule.may_cut(factor)) return refuse("takes it as a whole");
    ASSIGN_OR_RETURN(const DeviceMesh pieces, DeviceMesh::Create({{"pieces", run.pieces}}));
    FactorSplit split = FactorSplit::None(rule);
    split.axes[factor] = {0};
    const auto cut =
        PartitionOp(rule, split, pieces,
                    LocalExtents(out_.graph, mesh_, op, out_.bound.splits[step.op.op], rule));
    if (!cut.ok()) return refuse("cannot be cut along it");
    if (!cut->reductions.empty()) return refuse("sums up over it");
    for (const Layout& layout : cut->tensors) {
      if (layout != layout.WithoutHalos()) return refuse("reads beyond its part");
    }
    for (const int value : step.outputs) {
      const bool of_weight =
          plan_.values[value].ref.grad && KindOf(value) == TensorInfo::Kind::kParameter;
      if (!of_weight && !IsCut(value)) return refuse("sums up over it");
    }
    return true;
  }

  // Marks steps of the run that are cut: ops, and relayouts and sums between them.
  absl::Status Mark(const PieceRun& run, int around) {
    for (std::vector<PlanStep>* steps : {&plan_.forward, &plan_.backward}) {
      for (PlanStep& step : *steps) {
        if (!IsOf(run, step) || step.piece != around) continue;
        ASSIGN_OR_RETURN(const bool cut, CheckStep(run, step));
        if (cut) step.piece = MarkOf(step.part);
      }
    }
    for (bool more = true; more;) {
      more = false;
      const ValueUses uses = UsesOf(plan_);
      for (std::vector<PlanStep>* steps : {&plan_.forward, &plan_.backward}) {
        for (PlanStep& step : *steps) {
          if (step.kind == PlanStep::Kind::kOp || step.piece != around) continue;
          const auto made = [&](int value) { return uses.made[value]; };
          const int out = step.outputs[0];
          const bool from_run = std::all_of(step.inputs.begin(), step.inputs.end(), made);
          const bool for_run =
              step.kind == PlanStep::Kind::kRelayout && uses.read[out] && !uses.beside[out];
          if (!IsCut(out) || !(from_run || for_run)) continue;
          step.piece = MarkOf(step.part);
          more = true;
        }
      }
    }
    return absl::OkStatus();
  }

  int CutDim(int dim, int64_t pieces) {
    const auto [known, inserted] = dims_.try_emplace({dim, pieces}, 0);
    if (inserted) {
      ModelDim part = out_.graph.dims[dim];
      part.size /= pieces;
      absl::StrAppend(&part.name, "/", pieces);
      known->second = static_cast<int>(out_.graph.dims.size());
      out_.graph.dims.push_back(std::move(part));
      dim_->sizes.push_back(known->second);
    }
    return known->second;
  }
  void CutDims(int64_t pieces, std::vector<int>* dims) {
    for (int& d : *dims) {
      if (Contains(dim_->sizes, d)) d = CutDim(d, pieces);
    }
  }

  int CutTensor(int tensor, int64_t pieces) {
    const auto [known, inserted] = tensors_.try_emplace({tensor, dim_->name, pieces}, 0);
    if (inserted) {
      TensorInfo part = body_.tensors[tensor];
      CutDims(pieces, &part.dims);
      known->second = static_cast<int>(body_.tensors.size());
      body_.tensors.push_back(std::move(part));
    }
    return known->second;
  }

  int CutOp(int op, int64_t pieces) {
    const auto [known, inserted] = ops_.try_emplace({op, dim_->name, pieces}, 0);
    if (inserted) {
      OpNode part = body_.ops[op];
      CutDims(pieces, &part.factor_dims);
      known->second = static_cast<int>(body_.ops.size());
      body_.ops.push_back(std::move(part));
      origin_.push_back(origin_[op]);
      BoundBody& bound = out_.bound;
      bound.splits.push_back(FactorSplit(bound.splits[op]));
      bound.replays.push_back(OpReplay(bound.replays[op]));
      if (!bound.homes.empty()) bound.homes.push_back(OpHomes(bound.homes[op]));
      if (!bound.on.empty()) bound.on.push_back(OnRanksOf(bound.on[op]));
    }
    return known->second;
  }

  // The pieces of all values that the run makes or reads.
  void CutValues(int64_t pieces, const ValueUses& uses) {
    parts_.assign(plan_.values.size(), {});
    const size_t values = plan_.values.size();
    for (size_t v = 0; v < values; ++v) {
      const int value = static_cast<int>(v);
      if (!(uses.made[v] || uses.read[v]) || !IsCut(value)) continue;
      Value part = plan_.values[v];
      const bool own = uses.made[v] && !uses.beside[v];
      part.part_of = own ? -1 : value;
      if (own && plan_.values[v].part_of >= 0) part.part_of = plan_.values[v].part_of;
      if (part.ref.op < 0) {
        part.ref.tensor = CutTensor(part.ref.tensor, pieces);
      } else {
        part.ref.op = CutOp(part.ref.op, pieces);
      }
      for (int64_t i = 0; i < pieces; ++i) {
        parts_[v].push_back(static_cast<int>(plan_.values.size()));
        plan_.values.push_back(part);
      }
    }
    std::vector<int> saved;
    for (const int value : plan_.saved) {
      if (parts_[value].empty() || uses.beside[value] || !uses.made[value]) {
        saved.push_back(value);
      } else {
        saved.insert(saved.end(), parts_[value].begin(), parts_[value].end());
      }
    }
    plan_.saved = std::move(saved);
  }

  absl::StatusOr<PlanStep> PieceOf(const PieceRun& run, PlanStep step, int64_t piece, int number) {
    const auto part = [&](int& value) {
      if (value >= 0 && !parts_[value].empty()) value = parts_[value][piece];
    };
    for (int& value : step.inputs) part(value);
    for (int& value : step.extra_reads) part(value);
    for (int& value : step.outputs) part(value);
    step.piece = number;
    step.further = step.further || piece > 0;
    step.turns = step.turns || run.turns();
    if (step.fused >= 0) step.fused += kernels_ * (number + 1);  // a kernel for each piece
    if (step.kind == PlanStep::Kind::kOp) step.op.op = CutOp(step.op.op, run.pieces);
    if (step.kind == PlanStep::Kind::kRelayout) {
      const std::vector<int64_t> shape =
          FactsOf(out_.graph, body_, plan_.values[step.inputs[0]].ref).shape;
      ASSIGN_OR_RETURN(step.relayout,
                       PlanRelayout(mesh_, shape, step.relayout.source, step.relayout.target));
    }
    return step;
  }

  // Puts the loop over pieces in the place of the marked steps of a list.
  absl::Status Loop(const PieceRun& run, const PieceLoop& loop, int first_number,
                    std::vector<PlanStep>* steps) {
    std::vector<int> place(steps->size(), -1);
    std::vector<PlanStep> out;
    const auto add = [&](int s, PlanStep step, const std::vector<int>& places) {
      if (step.after >= 0) step.after = places[step.after];
      place[s] = static_cast<int>(out.size());
      out.push_back(std::move(step));
    };
    for (const int s : loop.before) add(s, (*steps)[s], place);
    std::vector<std::vector<int>> in_piece(run.pieces, place);
    for (const PieceTurn& turn : TurnsOf(run)) {
      for (const int s : loop.steps) {
        if (!turn.Has((*steps)[s].piece)) continue;
        ASSIGN_OR_RETURN(PlanStep step, PieceOf(run, (*steps)[s], turn.piece,
                                                first_number + static_cast<int>(turn.piece)));
        add(s, std::move(step), in_piece[turn.piece]);
        in_piece[turn.piece][s] = place[s];
      }
    }
    for (const int s : loop.after) add(s, (*steps)[s], place);
    *steps = std::move(out);
    return absl::OkStatus();
  }

  // Moves the run's steps of the forward pass before its steps of the backward pass.
  absl::Status PutOff() {
    const auto marked = [](const PlanStep& step) { return IsMarked(step.piece); };
    std::vector<PlanStep>&forward = plan_.forward, &backward = plan_.backward;
    const auto back = std::find_if(backward.begin(), backward.end(), marked);
    if (back == backward.end()) {
      return absl::InvalidArgumentError(
          "`max_ongoing`: no gradient is made there, so no piece goes back. Leave "
          "`max_ongoing` out.");
    }
    std::vector<PlanStep> moved;
    std::set<int> made;
    for (const PlanStep& step : forward) {
      if (!marked(step)) continue;
      made.insert(step.outputs.begin(), step.outputs.end());
      moved.push_back(step);
    }
    if (moved.empty()) return absl::OkStatus();  // around it they are in the backward pass already
    bool read_on = false;
    for (const PlanStep& step : forward) {
      if (marked(step)) continue;
      ForEachRead(step, [&](int value) { read_on = read_on || made.count(value) > 0; });
    }
    for (size_t p = 0; p < plan_.out_ports.size(); ++p) {
      if (made.count(plan_.out_ports[p]) == 0) continue;
      read_on = read_on || !ends_model_;
      // The loss has no place to wait in for its gradient, which is made here too.
      plan_.out_ports[p] = plan_.grad_in_ports[p] = -1;
    }
    if (read_on) {
      return absl::InvalidArgumentError(absl::StrCat(
          "`max_ongoing`: pieces go back before others go forward only at the end of the "
          "model, and what is behind reads this node's result. Leave `max_ongoing` out (all "
          "pieces go forward, then all back), or name the head with the loss."));
    }
    forward.erase(std::remove_if(forward.begin(), forward.end(), marked), forward.end());
    plan_.saved.erase(std::remove_if(plan_.saved.begin(), plan_.saved.end(),
                                     [&](int value) { return made.count(value) > 0; }),
                      plan_.saved.end());
    for (const PlanStep& step : moved) {
      ForEachRead(step, [&](int value) {
        const bool here = made.count(value) > 0 || Contains(plan_.saved, value);
        if (!here && KindOf(value) == TensorInfo::Kind::kActivation) plan_.saved.push_back(value);
      });
    }
    const auto first = static_cast<int>(back - backward.begin());
    const auto count = static_cast<int>(moved.size());
    for (PlanStep& step : backward) {
      if (step.after >= first) step.after += count;
    }
    backward.insert(back, moved.begin(), moved.end());
    plan_.puts_off = true;
    return absl::OkStatus();
  }

  absl::Status StandsBetween(const PlanStep& step) const {
    const std::string name =
        step.kind == PlanStep::Kind::kOp
            ? body_.ops[step.op.op].name
            : FactsOf(out_.graph, body_, plan_.values[step.outputs[0]].ref).name;
    return absl::InvalidArgumentError(
        absl::StrCat("`", name,
                     "` is no part of it, needs all pieces of what is made there, and is needed "
                     "there again. Name a node that holds it too."));
  }

  absl::Status Cut(const PieceRun& run, int around) {
    RETURN_IF_ERROR(ChooseDim(run, around));
    RETURN_IF_ERROR(Mark(run, around));
    const ValueUses uses = UsesOf(plan_);
    if (run.turns()) {
      RETURN_IF_ERROR(PutOff());
    }
    const int first = next_piece_;
    next_piece_ += static_cast<int>(run.pieces);
    // What loops there are is found before values are cut.
    std::vector<std::pair<std::vector<PlanStep>*, std::vector<int>>> parts;  // marks of each
    for (std::vector<PlanStep>* steps : {&plan_.forward, &plan_.backward}) {
      for (const std::vector<int>& marks : LoopsOf(*steps, run.turns(), plan_.values.size())) {
        parts.emplace_back(steps, marks);
      }
    }
    CutValues(run.pieces, uses);
    for (const auto& [steps, marks] : parts) {
      int between = -1;  // a step
      const std::optional<PieceLoop> loop = LoopOf(*steps, marks, plan_.values.size(), &between);
      if (!loop.has_value()) return StandsBetween((*steps)[between]);
      RETURN_IF_ERROR(Loop(run, *loop, first, steps));
    }
    return absl::OkStatus();
  }

  BodyInPieces out_;
  const DeviceMesh& mesh_;
  Body& body_;
  BodyPlan& plan_;
  const bool ends_model_;
  std::vector<int> origin_;  // per op: that it is a piece of, or itself
  std::vector<Dim> sizes_of_;
  Dim* dim_ = nullptr;  // that is being cut
  std::map<std::pair<int, int64_t>, int> dims_;
  std::map<std::tuple<int, std::string, int64_t>, int> tensors_, ops_;
  std::vector<std::vector<int>> parts_;  // per value: its pieces
  int next_piece_ = 0;
  int kernels_ = 0;  // that are fused with collectives
};

}  // namespace

absl::StatusOr<BodyInPieces> RunInPieces(const ModelGraph& graph, const DeviceMesh& mesh,
                                         const BoundBody& bound, const BodyPlan& plan,
                                         bool ends_model) {
  for (const PieceRun& run : bound.pieces) {
    if (bound.on.empty() || !run.turns()) continue;
    return absl::UnimplementedError(absl::StrCat(
        "not supported yet: `", run.source,
        "` with `max_ongoing` in a module with nodes on some ranks (`on`). Leave one out."));
  }
  return PieceCutter(graph, mesh, bound, plan, ends_model).Run();
}

}  // namespace plancast
