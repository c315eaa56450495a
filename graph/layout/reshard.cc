#include "graph/layout/reshard.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "graph/layout/redistribution.h"

namespace plancast {
namespace {

// Axes of more than one device along which the layout holds copies.
std::vector<int> CopyAxes(const ReshardSide& side) {
  std::vector<int> axes;
  for (int a = 0; a < side.mesh.num_axes(); ++a) {
    if (side.layout.placements[a].is_replicate() && side.mesh.size(a) > 1) axes.push_back(a);
  }
  return axes;
}

// How to cut each dim of a target tile so that there are `count` slices: first where the tile
// consists of several pieces, so that a slice comes from few devices, then from the outermost dim
// on, as long as it comes out even; what is left falls to the longest dim.
std::vector<int64_t> SliceCounts(int64_t count, const std::vector<int64_t>& tile,
                                 const std::vector<int64_t>& pieces) {
  std::vector<int64_t> counts(tile.size(), 1);
  const auto cut = [&](size_t d, int64_t parts) {
    counts[d] *= parts;
    count /= parts;
  };
  for (size_t d = 0; d < tile.size(); ++d) {
    cut(d, std::gcd(std::gcd(count, pieces[d]), tile[d]));
  }
  for (size_t d = 0; d < tile.size(); ++d) {
    if (tile[d] > 0) cut(d, std::gcd(count, tile[d] / counts[d]));
  }
  size_t longest = 0;
  for (size_t d = 1; d < tile.size(); ++d) {
    if (tile[d] / counts[d] > tile[longest] / counts[longest]) longest = d;
  }
  cut(longest, count);
  return counts;
}

int64_t ElementsTo(const PairTransfers& transfers, int64_t device) {
  int64_t elements = 0;
  for (const Transfer& t : transfers.To(device)) elements += t.elements;
  return elements;
}

// The collective on the target's mesh that follows `transfers`.
RelayoutStep Collective(CollectiveKind kind, std::vector<int> axes, const ReshardProblem& problem,
                        const Tiling& tiles, const PairTransfers& transfers) {
  RelayoutStep step;
  step.is_collective = true;
  step.kind = kind;
  step.axes = std::move(axes);
  step.after = problem.target.layout;
  std::vector<int64_t> direct(tiles.tile_of.size());
  transfers.ForEach([&](const Transfer& t) { direct[t.target] += t.elements; });
  for (int64_t tile = 0; tile < tiles.num_tiles(); ++tile) {
    const int64_t elements = tiles.Elements(tile);
    step.elements = std::max(step.elements, elements);
    for (int64_t copy = 0; copy < tiles.copies; ++copy) {
      step.received = std::max(step.received, elements - direct[tiles.DeviceOf(tile, copy)]);
    }
  }
  return step;
}

// `before` are the steps that made the problem's source what it is.
absl::Status AddPrograms(const ReshardProblem& problem, const std::vector<RelayoutStep>& before,
                         std::vector<ReshardProgram>* programs) {
  ASSIGN_OR_RETURN(PairTransfers direct,
                   PairTransfers::Plan(problem.shape, problem.source, problem.target));
  const Tiling source = direct.source(), target = direct.target();
  const int64_t offset = problem.target.first_device - problem.source.first_device;
  const bool apart = direct.kept() == 0;
  std::vector<int64_t> pieces;
  for (int d = 0; d < target.num_dims(); ++d) pieces.push_back(direct.MostPieces(d));
  programs->push_back(
      {ReshardStrategy::kSendReceive, problem, before, std::move(direct), /*after=*/{}});
  const std::vector<int> copy_axes = CopyAxes(problem.target);
  if (!apart || copy_axes.empty()) return absl::OkStatus();
  const auto add = [&](ReshardStrategy strategy, PairTransfers transfers, CollectiveKind kind,
                       std::vector<int> axes) {
    RelayoutStep step = Collective(kind, std::move(axes), problem, target, transfers);
    programs->push_back({strategy, problem, before, std::move(transfers), {std::move(step)}});
  };
  const std::vector<int64_t> tile =
      problem.target.layout.LocalShape(problem.target.mesh, problem.shape);
  // A scalar has no slices.
  for (size_t first = tile.empty() ? 0 : copy_axes.size(); first-- > 0;) {
    std::vector<int> axes(copy_axes.begin() + first, copy_axes.end());
    const Tiling slices = target.Sliced(
        problem.target.mesh, axes, SliceCounts(problem.target.mesh.SizeOf(axes), tile, pieces));
    add(ReshardStrategy::kScatterGather, PairTransfers::Between(source, slices, offset, false),
        CollectiveKind::kAllGather, std::move(axes));
  }
  add(ReshardStrategy::kBroadcast, PairTransfers::Between(source, target, offset, true),
      CollectiveKind::kBroadcast, copy_axes);
  return absl::OkStatus();
}

// The way to a layout whose partial axes shard one dim, if that moves less than `best`.
absl::StatusOr<Relayout> ScatteredSums(const ReshardSide& side, const std::vector<int64_t>& shape,
                                       Relayout best) {
  const double elements = side.layout.LocalElements(side.mesh, shape);
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    Layout layout = side.layout;
    double parts = 1;
    Placement shard = Placement::Shard(static_cast<int>(dim));
    for (const Placement& p : side.layout.placements) {
      if (p.is_shard() && p.dim == shard.dim) shard = p;
    }
    for (int a = 0; a < side.mesh.num_axes(); ++a) {
      if (!layout.placements[a].is_partial()) continue;
      layout.placements[a] = shard;
      parts *= static_cast<double>(side.mesh.size(a));
    }
    if (layout.LocalElements(side.mesh, shape) * parts != elements) continue;
    ASSIGN_OR_RETURN(Relayout plan, PlanRelayout(side.mesh, shape, side.layout, layout));
    if (plan.received() < best.received()) best = std::move(plan);
  }
  return best;
}

std::string AxisNames(const DeviceMesh& mesh, const std::vector<int>& axes) {
  return absl::StrJoin(axes, ",", [&](std::string* out, int a) { out->append(mesh.axis(a).name); });
}

// `0..3,8`
std::string DeviceRanges(const std::vector<int64_t>& devices) {
  std::string text;
  for (size_t begin = 0; begin < devices.size();) {
    size_t end = begin + 1;
    while (end < devices.size() && devices[end] == devices[end - 1] + 1) ++end;
    absl::StrAppend(&text, text.empty() ? "" : ",", devices[begin]);
    if (end > begin + 1) absl::StrAppend(&text, "..", devices[end - 1]);
    begin = end;
  }
  return text;
}

// `2 of 4096, 1 of 512`, or `nothing`
std::string MessageSizes(const std::vector<int64_t>& messages) {
  std::string text;
  for (size_t begin = 0; begin < messages.size();) {
    size_t end = begin;
    while (end < messages.size() && messages[end] == messages[begin]) ++end;
    absl::StrAppend(&text, text.empty() ? "" : ", ", end - begin, " of ", messages[begin]);
    begin = end;
  }
  return text.empty() ? "nothing" : text;
}

void AppendClasses(const char* verb, const std::vector<TransferClass>& classes, std::string* text) {
  for (const TransferClass& c : classes) {
    absl::StrAppend(text, "\n  devices ", DeviceRanges(c.devices), " ", verb, " ",
                    MessageSizes(c.messages));
  }
}

void AppendSteps(const DeviceMesh& mesh, const std::vector<RelayoutStep>& steps,
                 std::string* text) {
  if (steps.empty()) return;
  const Relayout lines = {steps.front().after, steps.back().after, steps};
  for (const absl::string_view line : absl::StrSplit(lines.DebugString(mesh), '\n')) {
    absl::StrAppend(text, "\n  ", line);
  }
}

}  // namespace

ReshardTraffic ReshardProgram::TargetTraffic(int64_t device) const {
  const int64_t direct = ElementsTo(transfers, device);
  if (after.empty()) return {0, direct};
  const DeviceMesh& mesh = problem.target.mesh;
  int64_t next = device;
  for (size_t i = after[0].axes.size(); i-- > 0;) {
    const int axis = after[0].axes[i];
    const int64_t coordinate = mesh.Coordinate(device, axis);
    const bool wraps = coordinate + 1 == mesh.size(axis);
    next += (wraps ? -coordinate : 1) * mesh.stride(axis);
    if (!wraps) break;
  }
  int64_t tile = 1;
  for (const IndexSet& set : LocalIndices(mesh, problem.shape, problem.target.layout, device)) {
    tile *= CountOf(set);
  }
  return {tile - ElementsTo(transfers, next), tile};
}

std::string ReshardProgram::DebugString() const {
  std::string text(kReshardStrategyNames[strategy]);
  if (!after.empty()) {
    absl::StrAppend(&text, "(", AxisNames(problem.target.mesh, after[0].axes), ")");
  }
  AppendSteps(problem.source.mesh, before, &text);
  absl::StrAppend(&text, "\n  ", transfers.messages(), " messages, ", crossing(), " elements");
  AppendClasses("send", transfers.Senders(), &text);
  AppendClasses("receive", transfers.Receivers(), &text);
  AppendSteps(problem.target.mesh, after, &text);
  return text;
}

absl::StatusOr<std::vector<ReshardProgram>> PlanReshards(const ReshardProblem& problem) {
  std::vector<ReshardProgram> programs;
  RETURN_IF_ERROR(AddPrograms(problem, {}, &programs));
  return programs;
}

absl::StatusOr<std::vector<ReshardProgram>> PlanGradientReshards(const ReshardProblem& forward,
                                                                 const Layout& gradient) {
  if (gradient.has_halo()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a gradient with halos, ", gradient.DebugString(forward.target.mesh),
                     ", has to be added up where they overlap before it leaves its mesh."));
  }
  ReshardProblem back = {forward.shape, forward.target, forward.source};
  back.source.layout = gradient;
  back.target.layout = forward.source.layout.WithoutHalos();
  std::vector<ReshardProgram> programs;
  if (!gradient.has_partial()) {
    RETURN_IF_ERROR(AddPrograms(back, {}, &programs));
    return programs;
  }
  Layout summed = gradient;
  for (Placement& p : summed.placements) {
    if (p.is_partial()) p = Placement::Replicate();
  }
  const ReshardSide& side = back.source;
  ASSIGN_OR_RETURN(const Relayout copies, PlanRelayout(side.mesh, back.shape, gradient, summed));
  ASSIGN_OR_RETURN(const Relayout shards, ScatteredSums(side, back.shape, copies));
  for (const Relayout* reduction : {&copies, &shards}) {
    if (reduction == &shards && shards.target == copies.target) continue;
    back.source.layout = reduction->target;
    RETURN_IF_ERROR(AddPrograms(back, reduction->steps, &programs));
  }
  return programs;
}

double BusiestDevice(const PairTransfers& transfers,
                     const std::function<double(const Transfer&)>& message) {
  std::vector<double> sends(transfers.source().tile_of.size());
  std::vector<double> receives(transfers.target().tile_of.size());
  double busiest = 0;
  transfers.ForEach([&](const Transfer& t) {
    const double time = message(t);
    busiest = std::max({busiest, sends[t.source] += time, receives[t.target] += time});
  });
  return busiest;
}

double PriceOf(const ReshardProgram& program, const ReshardPrices& prices) {
  double price = 0;
  for (const RelayoutStep& step : program.before) {
    if (step.is_collective) price += prices.collective(program.problem.source.mesh, step);
  }
  double transfers = prices.transfers(program.transfers);
  for (const RelayoutStep& step : program.after) {
    const double time = prices.collective(program.problem.target.mesh, step);
    transfers = program.strategy == ReshardStrategy::kBroadcast ? std::max(transfers, time)
                                                                : transfers + time;
  }
  return price + transfers;
}

absl::StatusOr<int> CheapestReshard(const std::vector<ReshardProgram>& programs,
                                    const ReshardPrices& prices) {
  using Rank = std::tuple<double, int64_t, int64_t>;
  int best = -1;
  Rank lowest;
  for (size_t i = 0; i < programs.size(); ++i) {
    const Rank rank = {PriceOf(programs[i], prices), programs[i].crossing(),
                       programs[i].transfers.messages()};
    if (!std::isfinite(std::get<0>(rank))) continue;
    if (best < 0 || rank < lowest) {
      best = static_cast<int>(i);
      lowest = rank;
    }
  }
  if (best < 0) return absl::InvalidArgumentError("no way to reshard has a finite price.");
  return best;
}

}  // namespace plancast
