#include "compiler/synchronise.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plancast {
namespace {

bool IsDataAxis(const DeviceMesh& mesh, int axis) {
  const absl::string_view root = mesh.root(axis);
  return root == "dp" || root == "cp";
}

std::vector<int> DataAxes(const DeviceMesh& mesh) {
  std::vector<int> axes;
  for (int a = 0; a < mesh.num_axes(); ++a) {
    if (IsDataAxis(mesh, a) && mesh.size(a) > 1) axes.push_back(a);
  }
  return axes;
}

BlockTemplate Messages(const std::string& name, const CommSpec& comm, Purpose purpose,
                       int messages) {
  BlockBuilder builder(name);
  for (int i = 0; i < messages; ++i) {
    builder.AddComm(comm, StreamKind::kGradComm, purpose, name, {});
  }
  return std::move(builder).Build();
}

int64_t MessageBytes(int64_t elements, double element_bytes, int messages) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(elements) * element_bytes / messages));
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

}  // namespace

BodyState SummariseState(const ModelGraph& graph, const DeviceMesh& mesh, const Body& body,
                         const BodyPlan& plan) {
  BodyState state;
  auto local = [&](int tensor, const Layout& layout) {
    const TensorFacts facts = FactsOf(graph, body, {tensor, -1, false, false});
    return static_cast<int64_t>(layout.LocalElements(mesh, facts.shape));
  };
  for (size_t t = 0; t < body.tensors.size(); ++t) {
    if (body.tensors[t].kind == TensorInfo::Kind::kParameter) {
      state.parameters += local(static_cast<int>(t), plan.parameter_layouts[t]);
    }
  }
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
    if (!data.empty() && data == DataAxes(mesh)) {
      state.reduced_over_data += elements;
    } else if (!data.empty()) {
      state.reduced_over_others[data] += elements;
    }
    if (!others.empty()) state.reduced_over_others[others] += elements;
  }
  return state;
}

std::string BodyState::DebugString(const DeviceMesh& mesh) const {
  std::string out =
      absl::StrCat("parameters ", parameters, ", gradients reduced over data ", reduced_over_data);
  for (const auto& [axes, elements] : reduced_over_others) {
    absl::StrAppend(
        &out, ", over ",
        absl::StrJoin(axes, "*",
                      [&](std::string* s, int a) { absl::StrAppend(s, mesh.axis(a).name); }),
        " ", elements);
  }
  return out;
}

BlockTemplate GradientReduction(const DeviceMesh& mesh, const PlanOptions& options,
                                const SoftwareProfile& profile, int64_t elements, int messages) {
  CommSpec comm;
  comm.kind = options.zero >= 1 ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  comm.axes = DataAxes(mesh);
  comm.bytes = MessageBytes(elements, ElementBytes(profile.reduce_dtype), messages);
  return Messages(absl::StrCat("grad ", CollectiveKindName(comm.kind)), comm, Purpose::kDp,
                  messages);
}

BlockTemplate ParameterGather(const DeviceMesh& mesh, int64_t elements, double element_bytes,
                              int messages) {
  CommSpec comm;
  comm.kind = CollectiveKind::kAllGather;
  comm.axes = DataAxes(mesh);
  comm.bytes = MessageBytes(elements, element_bytes, messages);
  return Messages("param all_gather", comm, Purpose::kDp, messages);
}

BlockTemplate PartialGradientSum(const DeviceMesh& mesh, const SoftwareProfile& profile,
                                 const std::vector<int>& axes, int64_t elements) {
  CommSpec comm;
  comm.kind = CollectiveKind::kAllReduce;
  comm.axes = axes;
  comm.bytes = MessageBytes(elements, ElementBytes(profile.reduce_dtype), 1);
  BlockBuilder builder("partial grad all_reduce");
  builder.AddComm(comm, StreamKind::kModelComm, PurposeOfAxes(mesh, axes),
                  "partial grad all_reduce", {});
  return std::move(builder).Build();
}

StateBytes StateOf(const PlanOptions& options, const SoftwareProfile& profile, DType dtype,
                   int64_t parameters) {
  const double n = static_cast<double>(parameters);
  const double shards = options.zero >= 1 ? static_cast<double>(options.dp * options.cp) : 1.0;
  StateBytes bytes;
  bytes.parameters = n * ElementBytes(StorageType(dtype));
  bytes.gradients = n * ElementBytes(profile.grad_dtype);
  const bool master = profile.master_weights && StorageType(dtype) != DType::kFp32;
  bytes.optimizer =
      std::ceil(n / shards) * ((master ? 4.0 : 0.0) + 2 * ElementBytes(profile.state_dtype));
  return bytes;
}

BlockTemplate OptimizerStep(const SoftwareProfile& profile, DType dtype, int64_t elements,
                            const std::vector<int>& norm_axes, bool joins_programs) {
  BlockBuilder builder("optimizer");
  const double n = static_cast<double>(elements);
  const double grad_bytes = n * ElementBytes(profile.grad_dtype);
  const Purpose purpose = Purpose::kOptimizer;
  int ready = BlockBuilder::kNone;
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
  if (profile.grad_clip) {
    ready =
        builder.AddKernel(StateKernel(KernelFamily::kMemory, "grad_clip", grad_bytes, grad_bytes),
                          purpose, "grad_clip", {ready});
  }
  // Adam reads gradient, two moments and the weight, writes the moments and the
  // weight, and the low-precision copy where there is a master.
  const double state = 2 * ElementBytes(profile.state_dtype);
  const double low = ElementBytes(StorageType(dtype));
  const bool master = profile.master_weights && StorageType(dtype) != DType::kFp32;
  const double weight = master ? 4.0 : low;
  builder.AddKernel(StateKernel(KernelFamily::kOptimizer, "adam", grad_bytes + n * (state + weight),
                                n * (state + weight + (master ? low : 0))),
                    purpose, "adam", {ready});
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
