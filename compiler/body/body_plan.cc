#include "compiler/body/body_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plancast {

const OnRanksOf& BoundBody::OnOf(int op) const {
  static const OnRanksOf& all = *new OnRanksOf();
  return on.empty() ? all : on[op];
}

std::string PieceRun::DebugString() const {
  return absl::StrCat(source, " [", begin, ",", end, ") in ", pieces,
                      turns() ? absl::StrCat(", ", max_ongoing, " at once") : "");
}

std::string OpReplay::DebugString() const {
  std::string text = group < 0 ? "-" : absl::StrCat(group);
  if (discards) text += '!';
  for (const bool kept : keeps) text += kept ? '1' : '0';
  return text;
}
namespace {

absl::string_view PartName(Part part) {
  switch (part) {
    case Part::kForward:
      return "F";
    case Part::kRecompute:
      return "R";
    case Part::kBackward:
      return "B";
    case Part::kWeightGrad:
      return "W";
  }
  return "?";
}

std::string RefNames(const ModelGraph& graph, const Body& body,
                     const std::vector<TensorRef>& refs) {
  return absl::StrJoin(refs, ", ", [&](std::string* out, const TensorRef& ref) {
    absl::StrAppend(out, FactsOf(graph, body, ref).name);
  });
}

std::string StepLine(const ModelGraph& graph, const Body& body, const OpStep& step) {
  std::vector<TensorRef> outputs = step.outputs;
  outputs.insert(outputs.end(), step.side_outputs.begin(), step.side_outputs.end());
  return absl::StrCat("  ", PartName(step.part), " ", body.ops[step.op].name, ": ",
                      step.rule->name(), "(", RefNames(graph, body, step.inputs), ") -> ",
                      RefNames(graph, body, outputs), "\n");
}

}  // namespace

TensorFacts FactsOf(const ModelGraph& graph, const Body& body, const TensorRef& ref) {
  TensorFacts facts;
  if (ref.op >= 0) {
    const OpNode& op = body.ops[ref.op];
    const RuleTensor& tensor = op.rule->tensors()[ref.tensor];
    facts.name = absl::StrCat(op.name, "/", tensor.name);
    facts.dtype = tensor.dtype;
    for (int factor : tensor.factors) {
      const int dim = op.factor_dims[factor];
      facts.shape.push_back(dim < 0 ? 1 : graph.dims[dim].size);
    }
  } else {
    const TensorInfo& tensor = body.tensors[ref.tensor];
    facts.name = absl::StrCat(ref.grad ? "d " : "", tensor.name);
    facts.dtype = tensor.dtype;
    facts.kind = tensor.kind;
    for (int dim : tensor.dims) facts.shape.push_back(graph.dims[dim].size);
  }
  if (ref.recomputed) absl::StrAppend(&facts.name, "'");
  return facts;
}

std::string DifferentiatedBody::DebugString(const ModelGraph& graph, const Body& body) const {
  std::string out = absl::StrCat("body ", body.name, "\n");
  for (const OpStep& step : forward) absl::StrAppend(&out, StepLine(graph, body, step));
  absl::StrAppend(&out, "  saved: ", RefNames(graph, body, saved), "\n");
  for (const OpStep& step : backward) absl::StrAppend(&out, StepLine(graph, body, step));
  return out;
}

bool BodyPlan::ends_backward() const {
  const auto none = [](int value) { return value < 0; };
  return backward.empty() && !grad_in_ports.empty() &&
         std::all_of(grad_in_ports.begin(), grad_in_ports.end(), none) &&
         std::all_of(grad_out_ports.begin(), grad_out_ports.end(), none);
}

std::string BodyPlan::DebugString(const ModelGraph& graph, const Body& body,
                                  const DeviceMesh& mesh) const {
  auto show = [&](int value) {
    if (value < 0) return std::string("-");
    return absl::StrCat(FactsOf(graph, body, values[value].ref).name,
                        values[value].layout.DebugString(mesh));
  };
  auto show_all = [&](const std::vector<int>& list) {
    return absl::StrJoin(list, ", ",
                         [&](std::string* out, int v) { absl::StrAppend(out, show(v)); });
  };
  std::string out = absl::StrCat("body ", body.name, "\n");
  for (const std::vector<PlanStep>* steps : {&forward, &backward}) {
    absl::StrAppend(&out, steps == &forward ? " forward\n" : " backward\n");
    for (const PlanStep& step : *steps) {
      absl::StrAppend(&out, "  ", PartName(step.part), " ");
      if (step.kind == PlanStep::Kind::kOp) {
        absl::StrAppend(&out, body.ops[step.op.op].name, ": ", step.op.rule->name(), "(",
                        show_all(step.inputs), ") -> ", show_all(step.outputs), "\n");
        if (step.loop >= 0) {
          const CommLoop& loop = loops[step.loop];
          absl::StrAppend(&out, "      in ", loop.pieces, " parts of ",
                          step.op.rule->factors()[loop.factor],
                          loop.skewed  ? ", turning, skewed"
                          : loop.turns ? ", turning"
                                       : "",
                          "\n");
        }
        for (const InnerReduction& r : step.op.partition.reductions) {
          absl::StrAppend(
              &out, "      inside: ", CombinerName(r), " of ",
              absl::StrJoin(r.tensors, "+",
                            [&](std::string* s, int t) {
                              absl::StrAppend(s, step.op.rule->tensors()[t].name);
                            }),
              " over ",
              absl::StrJoin(r.axes, "*",
                            [&](std::string* s, int a) { absl::StrAppend(s, mesh.axis(a).name); }),
              "\n");
        }
      } else if (step.kind == PlanStep::Kind::kAdd) {
        absl::StrAppend(&out, "sum(", show_all(step.inputs), ") -> ", show_all(step.outputs), "\n");
      } else {
        std::string text = step.relayout.DebugString(mesh);
        std::replace(text.begin(), text.end(), '\n', ' ');
        if (step.inputs.size() > 1) text = "all_to_all with the others";
        if (step.loop >= 0) absl::StrAppend(&text, "in parts ");
        for (size_t i = 0; i < step.inputs.size(); ++i) {
          absl::StrAppend(&out, i == 0 ? "" : absl::StrCat("  ", PartName(step.part), " "),
                          "relayout ", show(step.inputs[i]), " -> ", show(step.outputs[i]), " by ",
                          text, "\n");
        }
      }
    }
  }
  absl::StrAppend(&out, "  saved: ", show_all(saved), "\n");
  for (const ParameterGrad& grad : parameter_grads) {
    absl::StrAppend(&out, "  gradient of ", body.tensors[grad.tensor].name, " ",
                    grad.layout.DebugString(mesh), "\n");
  }
  return out;
}

}  // namespace plancast
