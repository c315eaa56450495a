#include "graph/model/trained.h"

#include <algorithm>
#include <map>
#include <utility>

#include "graph/rule/op_rule.h"

namespace plancast {
namespace {

// Bodies with detached ports, made as they are asked for.
class PortVariants {
 public:
  explicit PortVariants(std::vector<Body>* bodies) : bodies_(*bodies) {}

  // The body where no gradient leaves by these in-ports.
  int Of(int body, const std::vector<bool>& detached) {
    const auto [it, inserted] = made_.try_emplace({body, detached}, body);
    if (!inserted) return it->second;
    Body variant = bodies_[body];
    const bool any = std::any_of(detached.begin(), detached.end(), [](bool d) { return d; });
    if (any) variant.in_detached = detached;
    if (!TrainsInPart(variant)) return body;
    const std::vector<bool> has = HasGradients(variant);
    variant.out_detached.resize(variant.out_ports.size(), false);
    for (size_t p = 0; p < variant.out_ports.size(); ++p) {
      if (!has[variant.out_ports[p]]) variant.out_detached[p] = true;
    }
    bodies_.push_back(std::move(variant));
    return it->second = static_cast<int>(bodies_.size()) - 1;
  }

 private:
  std::vector<Body>& bodies_;
  std::map<std::pair<int, std::vector<bool>>, int> made_;
};

// Nothing reads what the last module gives, and only gradients bring it back: without one it is
// no port. (Of several losses those that train nothing.)
void DropEnds(ModelGraph* graph) {
  const Segment& last = graph->segments.back();
  const Body& given = graph->bodies[last.body];
  Body body = given;
  body.out_ports.clear();
  for (size_t p = 0; p < given.out_ports.size(); ++p) {
    if (!given.OutDetached(p)) body.out_ports.push_back(given.out_ports[p]);
  }
  if (last.repeat > 1 || body.out_ports.empty() ||
      body.out_ports.size() == given.out_ports.size()) {
    return;
  }
  body.out_detached.clear();
  graph->segments.back().body = static_cast<int>(graph->bodies.size());
  graph->bodies.push_back(std::move(body));
}

bool DependsOnTrained(const OpNode& op, const std::vector<bool>& has) {
  for (const std::string& name : DifferentiableInputs(*op.rule)) {
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (has[op.inputs[i]] && op.rule->tensors()[op.rule->inputs()[i]].name == name) return true;
    }
  }
  return false;
}

}  // namespace

bool TrainsInPart(const Body& body) {
  return std::any_of(body.tensors.begin(), body.tensors.end(),
                     [](const TensorInfo& tensor) { return tensor.frozen; }) ||
         std::any_of(body.in_detached.begin(), body.in_detached.end(),
                     [](bool detached) { return detached; });
}

std::vector<bool> HasGradients(const Body& body) {
  std::vector<bool> has(body.tensors.size(), false);
  for (size_t p = 0; p < body.in_ports.size(); ++p) {
    has[body.in_ports[p]] = !body.InDetached(p);
  }
  for (size_t t = 0; t < body.tensors.size(); ++t) {
    const TensorInfo& tensor = body.tensors[t];
    if (tensor.kind == TensorInfo::Kind::kParameter) has[t] = !tensor.frozen;
  }
  for (const OpNode& op : body.ops) {
    const bool depends = DependsOnTrained(op, has);
    for (int t : op.outputs) has[t] = depends;
  }
  return has;
}

std::vector<int> DetachFrozen(ModelGraph* graph) {
  std::vector<int> first_pieces;  // per segment as it was
  const bool any_frozen =
      std::any_of(graph->bodies.begin(), graph->bodies.end(), [](const Body& body) {
        return std::any_of(body.tensors.begin(), body.tensors.end(),
                           [](const TensorInfo& tensor) { return tensor.frozen; });
      });
  if (!any_frozen) {
    for (size_t s = 0; s < graph->segments.size(); ++s) first_pieces.push_back(static_cast<int>(s));
    return first_pieces;
  }
  PortVariants variants(&graph->bodies);
  std::vector<Segment> segments;
  std::vector<bool> detached;  // what the module before hands on
  for (const Segment& segment : graph->segments) {
    const size_t first = segments.size();
    first_pieces.push_back(static_cast<int>(first));
    for (int64_t done = 0; done < segment.repeat;) {
      const std::vector<bool> before = detached;
      const Body& given = graph->bodies[segment.body];
      std::vector<bool> in(given.in_ports.size(), false);
      for (size_t p = 0; p < in.size(); ++p) {
        in[p] = given.InDetached(p) || (p < before.size() && before[p]);
      }
      const int number = variants.Of(segment.body, in);
      const Body& body = graph->bodies[number];
      detached.assign(body.out_ports.size(), false);
      for (size_t p = 0; p < detached.size(); ++p) detached[p] = body.OutDetached(p);
      const int64_t count = detached == before ? segment.repeat - done : 1;
      done += count;
      if (segments.size() > first && segments.back().body == number) {
        segments.back().repeat += count;
        continue;
      }
      segments.push_back(segment);
      segments.back().body = number;
      segments.back().repeat = count;
      segments.back().list = segment.in_list();
      segments.back().continues = segment.continues && segments.size() == first + 1;
    }
    if (segments.size() == first + 1) segments.back().list = segment.list;
  }
  graph->segments = std::move(segments);
  DropEnds(graph);
  MoveTied(first_pieces, graph);
  return first_pieces;
}

void MoveTied(const std::vector<int>& first_pieces, ModelGraph* graph) {
  const auto move = [&](int* segment, int64_t* repeat) {
    *segment = first_pieces[*segment];
    while (*repeat >= graph->segments[*segment].repeat) {
      *repeat -= graph->segments[(*segment)++].repeat;
    }
  };
  for (TiedParameter& tie : graph->tied) {
    move(&tie.first_segment, &tie.first_repeat);
    move(&tie.second_segment, &tie.second_repeat);
  }
}

}  // namespace plancast
