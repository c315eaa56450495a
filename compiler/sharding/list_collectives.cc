#include "compiler/sharding/list_collectives.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/lower/kernels/lower_kernel.h"
#include "compiler/sharding/synchronise.h"

namespace plancast {

KernelSpec CopiesOfParts(const std::string& label, double bytes, double launches) {
  KernelSpec kernel = CopyKernel(label, bytes, bytes);
  kernel.launches = static_cast<int>(std::clamp(std::round(launches), 1.0, 1e6));
  return kernel;
}

KernelSpec CopyOfUnit(const ShardStyle& style, const ShardUnit& unit, double bytes, int passes) {
  KernelSpec kernel = CopyKernel("copy_out", bytes, bytes);
  const double calls = passes * style.hook_calls * static_cast<double>(unit.count());
  kernel.calls = static_cast<int>(std::clamp(std::round(calls), 0.0, 1e6));
  return kernel;
}

int ListCollectives::Copies(const std::string& what, int64_t elements, double bytes,
                            const std::vector<int>& deps) {
  const double moved = static_cast<double>(elements) * bytes;
  const double launches = style_.launches_per_part * static_cast<double>(part_.axes.shards);
  return out_.AddKernel(CopiesOfParts(what, moved, launches), purpose_,
                        absl::StrCat(unit_.name, ".", what), deps);
}

int ListCollectives::Gather(const std::vector<int>& axes, std::vector<int> deps, bool backward) {
  std::vector<int64_t> lists = *part_.lists;
  if (backward) lists.insert(lists.end(), part_.lists_again.begin(), part_.lists_again.end());
  int ready = BlockBuilder::kNone;
  for (const int64_t elements : lists) {
    if (ready != BlockBuilder::kNone) out_.MarkHostSync(ready);
    CommSpec comm;
    comm.kind = CollectiveKind::kAllGather;
    comm.axes = axes;
    comm.bytes = WholeBytes(elements, style_.types.wire);
    const int gathered =
        out_.AddComm(comm, StreamKind::kGradComm, Purpose::kDp,
                     absl::StrCat(kCollectiveKindNames[comm.kind], " ", unit_.name), deps);
    ready = Copies("from_list", elements, style_.types.wire, {gathered});
    deps = {ready};
  }
  return ready;
}

int ListCollectives::Reduce(int after) {
  int ready = after;
  for (const int64_t elements : *part_.lists) {
    CommSpec comm;
    comm.kind = CollectiveKind::kReduceScatter;
    comm.axes = part_.axes.summed;
    comm.bytes = WholeBytes(elements / (part_.padded / part_.to_reduce), style_.types.reduced_wire);
    const int copied = Copies("to_list", elements, style_.types.reduced, {after});
    ready =
        out_.AddComm(comm, StreamKind::kGradComm, Purpose::kDp,
                     absl::StrCat(kCollectiveKindNames[comm.kind], " d ", unit_.name), {copied});
  }
  return ready;
}

}  // namespace plancast
