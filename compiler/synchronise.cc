#include "compiler/synchronise.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/int128.h"
#include "compiler/shard_axes.h"
#include "graph/op_split.h"

namespace plancast {
namespace {

bool IsDataAxis(const DeviceMesh& mesh, int axis) {
  const absl::string_view root = mesh.root(axis);
  return root == "dp" || root == "cp";
}

// `elements` in `times` messages over `axes`, behind task `after`; returns the last.
int AddMessages(CollectiveKind kind, StreamKind stream, const std::vector<int>& axes,
                int64_t elements, double element_bytes, int times, int after,
                BlockBuilder* builder) {
  if (axes.empty()) return after;
  CommSpec comm;
  comm.kind = kind;
  comm.axes = axes;
  comm.bytes = WholeBytes(elements, element_bytes, times);
  for (int i = 0; i < times; ++i) {
    const int last = builder->AddComm(comm, stream, Purpose::kDp, builder->name(), {after});
    if (i + 1 == times) after = last;
  }
  return after;
}

KernelSpec StateKernel(KernelFamily family, const std::string& label, double reads, double writes) {
  KernelSpec kernel;
  kernel.family = family;
  kernel.label = label;
  kernel.dtype = DType::kFp32;
  kernel.read_bytes = reads;
  kernel.write_bytes = writes;
  return kernel;
}

// Per tensor of the body: a matrix that only products read whose operands may be
// quantised.
std::vector<bool> ProductMatrices(const Body& body, const SoftwareProfile& profile) {
  std::vector<bool> matrices(body.tensors.size()), others(body.tensors.size());
  for (const OpNode& op : body.ops) {
    const bool product = HasContraction(*op.rule) && profile.Quantizes(op.name);
    for (int t : op.inputs) {
      const TensorInfo& tensor = body.tensors[t];
      if (tensor.kind != TensorInfo::Kind::kParameter) continue;
      (product && tensor.dims.size() > 1 ? matrices : others)[t] = true;
    }
  }
  for (size_t t = 0; t < matrices.size(); ++t) matrices[t] = matrices[t] && !others[t];
  return matrices;
}

// Per tensor of the body: how many of its first dims frameworks have as one, the rows of
// a matrix. Those that the results of an op have as well (heads and their width), or
// one.
std::vector<int> RowDims(const Body& body) {
  std::vector<int> rows(body.tensors.size());
  for (size_t t = 0; t < rows.size(); ++t) rows[t] = body.tensors[t].dims.empty() ? 0 : 1;
  for (const OpNode& op : body.ops) {
    const OpRule& rule = *op.rule;
    const auto in_result = [&](int factor) {
      return std::any_of(rule.outputs().begin(), rule.outputs().end(), [&](int out) {
        const auto& factors = rule.tensors()[out].factors;
        return std::find(factors.begin(), factors.end(), factor) != factors.end();
      });
    };
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const int t = op.inputs[i];
      if (body.tensors[t].kind != TensorInfo::Kind::kParameter) continue;
      const auto& factors = rule.tensors()[rule.inputs()[i]].factors;
      int leading = 0;
      while (leading < static_cast<int>(factors.size()) && in_result(factors[leading])) ++leading;
      rows[t] = std::max(rows[t], leading);
    }
  }
  return rows;
}

// Per mesh axis: whether it cuts the samples of what the gradient of parameter `tensor` is
// made from.
std::vector<bool> CutsBatch(const ModelGraph& graph, const DeviceMesh& mesh, const Body& body,
                            const BodyPlan& plan, int tensor) {
  std::vector<bool> cuts(mesh.num_axes(), false);
  const absl::StatusOr<int> batch = graph.FindDim("batch");
  if (!batch.ok()) return cuts;
  const auto note = [&](const Value& value) {
    if (value.ref.op >= 0) return;
    const std::vector<int>& dims = body.tensors[value.ref.tensor].dims;
    for (int a = 0; a < mesh.num_axes(); ++a) {
      const Placement& placement = value.layout.placements[a];
      if (placement.is_shard() && dims[placement.dim] == *batch) cuts[a] = true;
    }
  };
  for (const PlanStep& step : plan.backward) {
    const bool makes = std::any_of(step.outputs.begin(), step.outputs.end(), [&](int v) {
      const TensorRef& ref = plan.values[v].ref;
      return ref.grad && ref.op < 0 && ref.tensor == tensor;
    });
    if (!makes || step.kind != PlanStep::Kind::kOp) continue;
    for (int v : step.inputs) {
      if (v >= 0) note(plan.values[v]);
    }
  }
  return cuts;
}

bool AllCut(const std::vector<int>& axes, const std::vector<bool>& cuts) {
  return std::all_of(axes.begin(), axes.end(), [&](int a) { return cuts[a]; });
}

double MixedBytes(double product_bytes, DType type, DType dtype, int64_t parameters,
                  int64_t products) {
  const int64_t others = IsQuantized(type) ? parameters - products : 0;
  return static_cast<double>(parameters - others) * product_bytes +
         static_cast<double>(others) * ElementBytes(StorageType(dtype));
}

}  // namespace

int64_t WholeBytes(int64_t elements, double element_bytes, int messages) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(elements) * element_bytes / messages));
}

void AddTimes(const ElementsByAxes& elements, int64_t times, ElementsByAxes* sum) {
  for (const auto& [axes, count] : elements) (*sum)[axes] += count * times;
}

BodyState SummariseState(const ModelGraph& graph, const DeviceMesh& mesh, const Body& body,
                         const BodyPlan& plan, const SoftwareProfile& profile) {
  BodyState state;
  auto local = [&](int tensor, const Layout& layout) {
    const TensorFacts facts = FactsOf(graph, body, {tensor, -1, false, false});
    return static_cast<int64_t>(layout.LocalElements(mesh, facts.shape));
  };
  const std::vector<bool> matrices = ProductMatrices(body, profile);
  const std::vector<int> row_dims = RowDims(body);
  std::vector<int> place(body.tensors.size(), -1);  // of a tensor in state.each
  for (size_t t = 0; t < body.tensors.size(); ++t) {
    if (body.tensors[t].kind == TensorInfo::Kind::kParameter) {
      const int tensor = static_cast<int>(t);
      const TensorFacts facts = FactsOf(graph, body, {tensor, -1, false, false});
      const std::vector<int64_t> shape = plan.parameter_layouts[t].LocalShape(mesh, facts.shape);
      BodyState::Parameter parameter;
      const int dims = row_dims[t];
      for (int d = 0; d < dims; ++d) parameter.rows *= shape[d];
      parameter.elements = local(tensor, plan.parameter_layouts[t]);
      state.parameters += parameter.elements;
      if (matrices[t]) state.product_parameters += parameter.elements;
      place[t] = static_cast<int>(state.each.size());
      state.each.push_back(std::move(parameter));
    }
  }
  const std::vector<int> all_data = DataAxes(mesh), experts_data = mesh.AxesOf("edp");
  std::set<int> counted;
  for (const BodyPlan::ParameterGrad& grad : plan.parameter_grads) {
    if (!counted.insert(grad.tensor).second) continue;
    std::vector<int> data, others;
    for (int a = 0; a < mesh.num_axes(); ++a) {
      if (!grad.layout.placements[a].is_partial() || mesh.size(a) == 1) continue;
      (IsDataAxis(mesh, a) ? data : others).push_back(a);
    }
    const int64_t elements = local(grad.tensor, grad.layout);
    // A weight that some data-parallel axis cuts is reduced over the rest by
    // itself: the common buckets run over all of them.
    const Layout& weight = plan.parameter_layouts[grad.tensor];
    const bool cut = std::any_of(all_data.begin(), all_data.end(),
                                 [&](int a) { return weight.placements[a].is_shard(); });
    if (cut) {
      std::vector<int> both = data;
      both.insert(both.end(), others.begin(), others.end());
      std::sort(both.begin(), both.end());
      if (!data.empty() && both == experts_data) {
        data = std::move(both);
        others.clear();
      }
      state.cut_parameters[data] += elements;
      state.each[place[grad.tensor]].cut = true;
      state.each[place[grad.tensor]].copies = data;
      if (!data.empty()) state.cut_gradients[data] += elements;
    } else if (!others.empty() && (data.empty() || data == all_data) &&
               AllCut(others, CutsBatch(graph, mesh, body, plan, grad.tensor))) {
      data.insert(data.end(), others.begin(), others.end());
      std::sort(data.begin(), data.end());
      state.reduced_over_batch[data] += elements;
      continue;
    } else if (!data.empty()) {
      (data == all_data ? state.reduced_over_data : state.reduced_over_others[data]) += elements;
    }
    if (!others.empty()) state.reduced_over_others[others] += elements;
  }
  return state;
}

std::string BodyState::DebugString(const DeviceMesh& mesh) const {
  std::string out =
      absl::StrCat("parameters ", parameters, ", gradients reduced over data ", reduced_over_data);
  const auto over = [&](const std::vector<int>& axes) {
    return absl::StrJoin(axes, "*",
                         [&](std::string* s, int a) { absl::StrAppend(s, mesh.axis(a).name); });
  };
  for (const ElementsByAxes* list : {&cut_gradients, &reduced_over_batch, &reduced_over_others}) {
    for (const auto& [axes, elements] : *list) {
      absl::StrAppend(&out, ", over ", over(axes), " ", elements);
    }
  }
  for (const auto& [axes, elements] : cut_parameters) {
    absl::StrAppend(&out, "; parameters ", axes.empty() ? "without copies" : "copied over ",
                    over(axes), " ", elements);
  }
  return out;
}

BlockTemplate GradientReduction(const DeviceMesh& mesh, const PlanOptions& options,
                                const SoftwareProfile& profile, int64_t elements, int messages,
                                const ElementsByAxes& cut, const std::vector<OwnReduction>& batch) {
  const bool scatters = options.zero >= 1;
  const CollectiveKind kind =
      scatters ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  const double bytes = WireBytes(profile.reduce_dtype);
  BlockBuilder builder(absl::StrCat("grad ", CollectiveKindName(kind)));
  // `beside`: of the axes those that nothing is sharded over.
  const auto add = [&](const std::vector<int>& axes, int64_t count, int times,
                       const std::vector<int>& beside = {}) {
    if (!scatters) {
      AddMessages(kind, StreamKind::kGradComm, axes, count, bytes, times, BlockBuilder::kNone,
                  &builder);
      return;
    }
    std::vector<int> copies;
    std::set_difference(axes.begin(), axes.end(), beside.begin(), beside.end(),
                        std::back_inserter(copies));
    ShardAxes parts = ShardAxesOf(mesh, options, copies);
    parts.replica.insert(parts.replica.end(), beside.begin(), beside.end());
    std::sort(parts.replica.begin(), parts.replica.end());
    const int after = AddMessages(kind, StreamKind::kGradComm, parts.shard, count, bytes, times,
                                  BlockBuilder::kNone, &builder);
    AddMessages(CollectiveKind::kAllReduce, StreamKind::kReplicaComm, parts.replica,
                CeilDiv(count, parts.shards), bytes, times, after, &builder);
  };
  const std::vector<int> all = DataAxes(mesh);
  if (elements > 0 || (cut.empty() && batch.empty())) add(all, elements, messages);
  for (const auto& [axes, count] : cut) add(axes, count, 1);
  for (const OwnReduction& own : batch) {
    std::vector<int> beside;
    std::set_difference(own.axes.begin(), own.axes.end(), all.begin(), all.end(),
                        std::back_inserter(beside));
    add(own.axes, own.elements, own.messages, beside);
  }
  return std::move(builder).Build();
}

BlockTemplate ParameterGather(const DeviceMesh& mesh, const PlanOptions& options, int64_t elements,
                              double element_bytes, int messages, const ElementsByAxes& cut) {
  BlockBuilder builder("param all_gather");
  const auto add = [&](const std::vector<int>& axes, int64_t count, int times) {
    AddMessages(CollectiveKind::kAllGather, StreamKind::kGradComm,
                ShardAxesOf(mesh, options, axes).shard, count, element_bytes, times,
                BlockBuilder::kNone, &builder);
  };
  if (elements > 0 || cut.empty()) add(DataAxes(mesh), elements, messages);
  for (const auto& [axes, count] : cut) add(axes, count, 1);
  return std::move(builder).Build();
}

BlockTemplate PartialGradientSum(const DeviceMesh& mesh, const SoftwareProfile& profile,
                                 const std::vector<int>& axes, int64_t elements) {
  CommSpec comm;
  comm.kind = CollectiveKind::kAllReduce;
  comm.axes = axes;
  comm.bytes = WholeBytes(elements, WireBytes(profile.reduce_dtype));
  BlockBuilder builder("partial grad all_reduce");
  builder.AddComm(comm, StreamKind::kModelComm, PurposeOfAxes(mesh, axes),
                  "partial grad all_reduce", {});
  return std::move(builder).Build();
}

int64_t KeptElements(const DeviceMesh& mesh, const PlanOptions& options, int64_t parameters,
                     const ElementsByAxes& cut) {
  if (options.zero < 1) return parameters;
  int64_t kept = 0;
  for (const auto& [axes, elements] : cut) {
    kept += CeilDiv(elements, ShardAxesOf(mesh, options, axes).shards);
    parameters -= elements;
  }
  return kept + CeilDiv(parameters, options.shard_ranks());
}

double ParameterBytes(DType type, DType dtype, int64_t parameters, int64_t products) {
  return MixedBytes(ElementBytes(type), type, dtype, parameters, products);
}

double ParameterWireBytes(DType type, DType dtype, int64_t parameters, int64_t products) {
  return MixedBytes(WireBytes(type), type, dtype, parameters, products);
}

double OptimizerBytes(const SoftwareProfile& profile, DType dtype, int64_t kept) {
  const std::optional<DType> master = profile.MasterType(dtype);
  const int64_t bytes = (master.has_value() ? StoredBytes(*master, kept) : 0) +
                        StoredBytes(profile.state_dtype, kept) +
                        StoredBytes(profile.SecondStateType(), kept);
  return static_cast<double>(bytes);
}

StateBytes StateOf(const SoftwareProfile& profile, DType dtype, int64_t parameters, int64_t kept,
                   int64_t products) {
  StateBytes bytes;
  bytes.parameters = ParameterBytes(profile.ParamType(dtype), dtype, parameters, products);
  bytes.gradients = static_cast<double>(StoredBytes(profile.grad_dtype, parameters));
  bytes.optimizer = OptimizerBytes(profile, dtype, kept);
  return bytes;
}

namespace {

// Clipping reads and writes gradients, which are fp32 there, the update reads them.
int UpdateOnHost(const SoftwareProfile& profile, double elements, double other_bytes,
                 int64_t copied_back, int ready, BlockBuilder* builder) {
  CommSpec update;
  update.kind = CollectiveKind::kHostUpdate;
  update.bytes =
      static_cast<int64_t>(std::ceil(other_bytes + elements * 4 * (profile.grad_clip ? 3 : 1)));
  ready = builder->AddComm(update, StreamKind::kCompute, Purpose::kOptimizer, "adam on the host",
                           {ready});
  if (copied_back == 0) return ready;
  CommSpec copy;
  copy.kind = CollectiveKind::kCopyToDevice;
  copy.bytes = copied_back;
  return builder->AddComm(copy, StreamKind::kCopyIn, Purpose::kOffload, "copy in parameters",
                          {ready});
}

}  // namespace

BlockTemplate GradientsToHost(int64_t bytes) {
  BlockBuilder builder("copy out gradients");
  CommSpec copy;
  copy.kind = CollectiveKind::kCopyToHost;
  copy.bytes = bytes;
  builder.AddComm(copy, StreamKind::kCopyOut, Purpose::kOffload, "copy out gradients", {});
  return std::move(builder).Build();
}

BlockTemplate OptimizerStep(const SoftwareProfile& profile, DType dtype, int64_t elements,
                            const std::vector<int>& norm_axes, bool joins_programs,
                            const ShardedUpdate& sharded) {
  BlockBuilder builder("optimizer");
  const double n = static_cast<double>(elements);
  double grad_bytes = n * ElementBytes(profile.grad_dtype);
  const Purpose purpose = Purpose::kOptimizer;
  int ready = BlockBuilder::kNone;
  const DType main_grad = profile.main_grad_dtype.value_or(profile.grad_dtype);
  const bool copies = main_grad != profile.grad_dtype;
  const uint16_t copy = copies ? builder.AddTensor("main gradients") : 0;
  if (copies) {
    const double main_bytes = n * ElementBytes(main_grad);
    ready =
        builder.AddKernel(StateKernel(KernelFamily::kMemory, "main_grads", grad_bytes, main_bytes),
                          purpose, "main_grads", {ready});
    builder.AddMemory(ready, false, MemoryKind::kWorkspace, copy, StoredBytes(main_grad, elements));
    grad_bytes = main_bytes;
  }
  if (profile.fp16_overflow_check && dtype == DType::kFp16) {
    ready = builder.AddKernel(StateKernel(KernelFamily::kMemory, "overflow_check", grad_bytes, 0),
                              purpose, "overflow_check", {ready});
  }
  if (profile.grad_clip) {
    ready = builder.AddKernel(StateKernel(KernelFamily::kMemory, "grad_norm", grad_bytes, 0),
                              purpose, "grad_norm", {ready});
  }
  if ((profile.grad_clip || joins_programs) && !norm_axes.empty()) {
    CommSpec comm;
    comm.kind = CollectiveKind::kAllReduce;
    comm.axes = norm_axes;
    comm.bytes = 4;
    ready = builder.AddComm(comm, StreamKind::kModelComm, purpose, "all_reduce grad_norm", {ready});
    if (joins_programs) builder.MarkRendezvous(ready);
    builder.MarkHostSync(ready);
  }
  if (profile.grad_clip && !sharded.on_host) {
    ready =
        builder.AddKernel(StateKernel(KernelFamily::kMemory, "grad_clip", grad_bytes, grad_bytes),
                          purpose, "grad_clip", {ready});
  }
  // Adam reads gradient, two moments and the weight, writes the moments and the
  // weight, and the low-precision copy where there is a master.
  const double state = ElementBytes(profile.state_dtype) + ElementBytes(profile.SecondStateType());
  const double low = ElementBytes(profile.ParamType(dtype));
  const std::optional<DType> master = profile.MasterType(dtype);
  const double weight = master.has_value() ? ElementBytes(*master) : low;
  const double halves = master == DType::kInt16 ? low : 0;  // with it, the master weight
  const double copied = master.has_value() && !sharded.rests_as_master ? low : 0;
  double reads = grad_bytes + n * (state + weight + halves);
  double writes = n * (state + weight + copied);
  if (profile.foreach_optimizer) {
    // Weight decay and update of the weight; the first moment's and the second's; the
    // root of the second and what it is divided by, in tensors of their own.
    const double second = ElementBytes(profile.SecondStateType()), first = state - second;
    reads = 2 * grad_bytes + n * (2 * weight + 2 * first + 6 * second + halves);
    writes = n * (2 * weight + first + 5 * second + copied);
  }
  if (sharded.on_host) {
    ready =
        UpdateOnHost(profile, n, reads - grad_bytes + writes, sharded.copied_back, ready, &builder);
  } else {
    ready = builder.AddKernel(StateKernel(KernelFamily::kOptimizer, "adam", reads, writes), purpose,
                              "adam", {ready});
  }
  if (sharded.freed_gradients > 0) {
    builder.AddMemory(ready, true, MemoryKind::kGradients, builder.AddTensor("gradients"),
                      -sharded.freed_gradients, /*early=*/false, sharded.pool);
  }
  if (copies) {
    builder.AddMemory(ready, true, MemoryKind::kWorkspace, copy, -StoredBytes(main_grad, elements));
  }
  return std::move(builder).Build();
}

BlockTemplate ZeroGradients(const SoftwareProfile& profile, int64_t elements) {
  BlockBuilder builder("zero_grad");
  builder.AddKernel(StateKernel(KernelFamily::kMemory, "zero_grad", 0,
                                static_cast<double>(elements) * ElementBytes(profile.grad_dtype)),
                    Purpose::kOptimizer, "zero_grad", {});
  return std::move(builder).Build();
}

}  // namespace plancast
