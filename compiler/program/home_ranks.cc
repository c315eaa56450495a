#include "compiler/program/home_ranks.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/bind/op_places.h"
#include "compiler/lower/body_state.h"
#include "strategy/nodes/on.h"

namespace plancast {

absl::Status CheckHomeRank(const HomeRanks& in, const std::string& op, const OpHomes& said,
                           const TensorHomes& homes, const TensorInfo& tensor,
                           const Layout& weight) {
  const Home& state = homes[HomeKind::kState];
  if (!state.rank.has_value()) return absl::OkStatus();
  RETURN_IF_ERROR(
      RanksOf({state.axis, *state.rank}, in.mesh.SizeOf(in.mesh.AxesOf(state.axis))).status())
      << "`" << op << "`";
  std::vector<int> axes;
  for (const auto& [axis, rank] : RanksOfHome(state, in.mesh)) axes.push_back(axis);
  if (axes.empty() || (tensor.frozen && homes.zero() < 3)) return absl::OkStatus();
  const HomeKind kind = homes.zero() == 3   ? HomeKind::kWeights
                        : homes.zero() == 2 ? HomeKind::kGradients
                                            : HomeKind::kState;
  const std::string what = absl::StrCat("`", op, "`: `", kHomeKindNames[kind], ": ",
                                        PrintHome(kind, {state.axis, false, state.rank}),
                                        "` (from `", said.SourceOf(kind), "`)");
  const std::vector<int> copies = CopiesOf(in.mesh, weight);
  if (!std::includes(copies.begin(), copies.end(), axes.begin(), axes.end())) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " is on one rank, and `", tensor.name, "` is not whole on all ranks of `", state.axis,
        "`: these cut it, or a node is on some of them. Name another axis, or leave ",
        "the node's `home` out."));
  }
  if (state.on_host || homes[HomeKind::kWeights].on_host) {
    return absl::UnimplementedError(
        absl::StrCat("not supported yet: ", what, " with a part on the host (`offload`). Write `",
                     "shard(dp)` there, or say all of the node's homes."));
  }
  if (homes.zero() == 3 && in.options.reshard_ranks > 0) {
    return absl::UnimplementedError(
        absl::StrCat("not supported yet: ", what, " where reshard=", in.options.reshard_ranks,
                     " keeps parts of gathered weights. Leave `reshard` out."));
  }
  if (!in.place.empty()) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "not supported yet: ", what, " in plans that are ranked. Forecast them one by one, or ",
      "write `shard(", state.axis, ")`."));
}

}  // namespace plancast
