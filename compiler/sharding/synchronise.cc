#include "compiler/sharding/synchronise.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/int128.h"
#include "compiler/bind/plan_mesh.h"
#include "compiler/sharding/list_collectives.h"
#include "compiler/sharding/shard_axes.h"

namespace plancast {
namespace {

// `elements` in `times` messages over `axes`, behind task `after`; returns the last.
int AddMessages(CollectiveKind kind, StreamKind stream, const std::vector<int>& axes,
                int64_t elements, double element_bytes, int times, int after,
                BlockBuilder* builder) {
  if (axes.empty()) return after;
  CommSpec comm;
  comm.kind = kind;
  comm.axes = axes;
  comm.bytes = WholeBytes(elements, element_bytes, times);
  const std::string label =
      kind == CollectiveKind::kBroadcast ? "param broadcast" : builder->name();
  for (int i = 0; i < times; ++i) {
    const int last = builder->AddComm(comm, stream, Purpose::kDp, label, {after});
    if (i + 1 == times) after = last;
  }
  return after;
}

}  // namespace

int64_t WholeBytes(int64_t elements, double element_bytes, int messages) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(elements) * element_bytes / messages));
}

std::string MessagesKey(absl::string_view what, int64_t elements, int messages,
                        const ElementsByAxes& cut, const std::vector<OwnReduction>& batch) {
  std::string key = absl::StrCat(what, "|", elements, "|", messages);
  for (const auto& [axes, count] : cut) {
    absl::StrAppend(&key, "|", absl::StrJoin(axes, ","), ":", count);
  }
  for (const OwnReduction& own : batch) {
    absl::StrAppend(&key, "|batch ", absl::StrJoin(own.axes, ","), ":", own.elements, "/",
                    own.messages);
    if (own.parts.has_value()) absl::StrAppend(&key, " over ", own.parts->KeyText());
  }
  return key;
}

BlockTemplate GradientReduction(const DeviceMesh& mesh, const PlanOptions& options,
                                const SoftwareProfile& profile, bool sharded, int64_t elements,
                                int messages, const ElementsByAxes& cut,
                                const std::vector<OwnReduction>& batch) {
  CollectiveKind kind = sharded ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
  for (const OwnReduction& own : batch) {
    if (own.parts.has_value()) kind = own.parts->sums();
  }
  const double bytes = WireBytes(profile.types.reduce_dtype);
  BlockBuilder builder(absl::StrCat("grad ", kCollectiveKindNames[kind]));
  // `beside`: of the axes those that nothing is sharded over.
  const auto share_out = [&](const ShardAxes& parts, int64_t count, int times) {
    const int after =
        AddMessages(kind, StreamKind::kGradComm, parts.summed, CeilDiv(count, parts.sliced(mesh)),
                    bytes, times, BlockBuilder::kNone, &builder);
    if (!parts.here) return;
    AddMessages(CollectiveKind::kAllReduce, StreamKind::kReplicaComm, parts.replica,
                CeilDiv(count, parts.shards), bytes, times, after, &builder);
  };
  const auto add = [&](const std::vector<int>& axes, int64_t count, int times,
                       const std::vector<int>& beside = {}) {
    if (!sharded) {
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
    share_out(parts, count, times);
  };
  const std::vector<int> all = DataAxes(mesh);
  if (elements > 0 || (cut.empty() && batch.empty())) add(all, elements, messages);
  for (const auto& [axes, count] : cut) add(axes, count, 1);
  for (const OwnReduction& own : batch) {
    if (own.parts.has_value()) {
      share_out(*own.parts, own.elements, own.messages);
      continue;
    }
    std::vector<int> beside;
    std::set_difference(own.axes.begin(), own.axes.end(), all.begin(), all.end(),
                        std::back_inserter(beside));
    add(own.axes, own.elements, own.messages, beside);
  }
  return std::move(builder).Build();
}

BlockTemplate ParameterGather(const DeviceMesh& mesh, const PlanOptions& options, int64_t elements,
                              double element_bytes, int messages, const ElementsByAxes& cut,
                              const ElementsByHome& own, const ReturnStyle& style) {
  BlockBuilder builder("param all_gather");
  const int64_t shards = ShardAxesOf(mesh, options, DataAxes(mesh)).shards;
  // `times` over all elements; for each rank `each` parts.
  const auto copy = [&](const char* label, int times, double each, int after) {
    if (style.listed == 0) return after;
    const double bytes = static_cast<double>(elements) * element_bytes * times;
    return builder.AddKernel(CopiesOfParts(label, bytes, each * static_cast<double>(shards)),
                             Purpose::kOptimizer, label, {after});
  };
  const int listed = copy("param to_lists", 1, 1, BlockBuilder::kNone);
  int last = listed;
  const auto add = [&](const std::vector<int>& axes, int64_t count, int times) {
    const std::vector<int> shard = ShardAxesOf(mesh, options, axes).shard;
    const int owners = static_cast<int>(std::min(style.owners, mesh.SizeOf(shard)));
    last = AddMessages(owners > 0 ? CollectiveKind::kBroadcast : CollectiveKind::kAllGather,
                       StreamKind::kGradComm, shard, count, element_bytes,
                       owners > 0 ? owners : times, listed, &builder);
  };
  if (elements > 0 || (cut.empty() && own.empty())) add(DataAxes(mesh), elements, messages);
  for (const auto& [axes, count] : cut) add(axes, count, 1);
  copy("param from_lists", 2, static_cast<double>(style.listed) * style.launches, last);
  for (const auto& [home, count] : own) {
    AddMessages(home.rooted() ? CollectiveKind::kBroadcast : CollectiveKind::kAllGather,
                StreamKind::kGradComm, home.axes, count, element_bytes, 1, BlockBuilder::kNone,
                &builder);
  }
  return std::move(builder).Build();
}

BlockTemplate PartialGradientSum(const DeviceMesh& mesh, const SoftwareProfile& profile,
                                 const std::vector<int>& axes, int64_t elements) {
  CommSpec comm;
  comm.kind = CollectiveKind::kAllReduce;
  comm.axes = axes;
  comm.bytes = WholeBytes(elements, WireBytes(profile.types.reduce_dtype));
  BlockBuilder builder("partial grad all_reduce");
  builder.AddComm(comm, StreamKind::kModelComm, PurposeOfAxes(mesh, axes),
                  "partial grad all_reduce", {});
  return std::move(builder).Build();
}

BlockTemplate SharedGradientCrossing(const SharedCrossing& crossing, bool sends) {
  CommSpec comm;
  comm.kind = CollectiveKind::kReshard;
  comm.bytes = crossing.bytes;
  comm.reshard = crossing.reshard;
  const bool onward = crossing.from < crossing.to;
  const StreamKind stream = sends ? (onward ? StreamKind::kSendNext : StreamKind::kSendPrev)
                                  : (onward ? StreamKind::kRecvPrev : StreamKind::kRecvNext);
  BlockBuilder builder("tied gradient");
  builder.MarkRendezvous(builder.AddComm(comm, stream, Purpose::kDp, "tied gradient", {}));
  return std::move(builder).Build();
}

}  // namespace plancast
