// The part of GradientFlow that brings updated parameters back to all who use them.

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/sharding/gradient_flow.h"
#include "compiler/sharding/shard_axes.h"
#include "compiler/sharding/state_bytes.h"
#include "compiler/sharding/synchronise.h"

namespace plancast {
namespace {

// Behind all that a block does.
void GiveUpGradients(int64_t bytes, Block* block) {
  MemoryEvent event;
  event.task = block->size() - 1;
  event.after = true;
  event.kind = MemoryKind::kGradients;
  event.tensor = static_cast<uint16_t>(block->tensors.size());
  event.delta = -bytes;
  block->tensors.emplace_back("gradients");
  block->memory.push_back(event);
}

}  // namespace

void GradientFlow::Gathering::Add(int64_t count, const ElementsByAxes& of_cut, int64_t times) {
  elements += count * times;
  AddTimes(of_cut, times, &cut);
}

void GradientFlow::Gathering::AddOwn(const ElementsByHome& elements, int64_t times) {
  for (const auto& [home, count] : elements) own[home] += count * times;
}

int64_t GradientFlow::Gathering::Own() const {
  int64_t total = 0;
  for (const auto& [home, count] : own) total += count;
  return total;
}

void GradientFlow::AddOwn(const HomeAxes& over, const ElementsByCopies& own,
                          Gathering* gathering) const {
  for (const auto& [copies, elements] : own) {
    const ShardAxes axes = ShardAxesOver(mesh_, options_, over, copies);
    if (!axes.shard.empty()) gathering->own[{axes.shard, over.root, over.here}] += elements;
  }
}

std::vector<GradientFlow::GatheredPiece> GradientFlow::TakeGathered(const StageRun& run) {
  auto it = gathered_.find({run.segment, run.layer_begin});
  if (it == gathered_.end()) return {};
  std::vector<GatheredPiece> pieces = std::move(it->second);
  gathered_.erase(it);
  return pieces;
}

int32_t GradientFlow::Gather(const Gathering& what, int messages, const std::vector<Join>& joins,
                             int64_t freed) {
  const int64_t all = std::max<int64_t>(parameters_, 1);
  const double element_bytes = ParameterWireBytes(profile_.GatherType(in_.dtype), in_.dtype, all,
                                                  contents_.ProductParameters()) /
                               static_cast<double>(all);
  const int64_t common = what.elements - (what.cut.empty() ? 0 : Total(what.cut));
  const auto make = [&] {
    BlockTemplate gather = ParameterGather(mesh_, options_, common, element_bytes, messages,
                                           what.cut, what.own, what.style);
    if (freed > 0) GiveUpGradients(freed, &gather.block);
    return gather;
  };
  const bool plain = what.cut.empty() && what.own.empty() && what.style.plain();
  std::string key;
  if (!plain) {
    key = absl::StrCat(MessagesKey("gather", what.elements, messages, what.cut), "|own|", freed,
                       "|", what.style.listed, "|", what.style.owners);
    for (const auto& [home, count] : what.own) {
      absl::StrAppend(&key, "|", absl::StrJoin(home.axes, ","), ":", count);
      for (const auto& [axis, rank] : home.root) absl::StrAppend(&key, " on ", axis, "=", rank);
    }
  }
  const int32_t block = plain ? writer_.BlockOf({BlockKey::kGather, what.elements, messages}, make)
                              : writer_.BlockOf(writer_.catalogue().NumberOfText(key, make));
  return writer_.Append(block, Phase::kComm, 0, 0, joins);
}

// Gathers at the start of the iteration, hidden behind the first forward pass;
// each piece of layers waits for its own.
void GradientFlow::GatherAhead() {
  contents_.ForEachRun([&](const StageRun& run) {
    int64_t placed = 0, piece = run.count, bytes = 0;
    Gathering each;
    contents_.ForEachPart(run, [&](const HomePart& part) {
      const int64_t elements = contents_.Parameters(run, part);
      if (!Gathers(part.homes) || elements == 0) return;
      bytes = bytes == 0 ? part.homes.bucket_bytes : std::min(bytes, part.homes.bucket_bytes);
      if (part.homes.over.has_value()) {
        AddOwn(*part.homes.over, part.state->own, &each);
      } else {
        each.Add(elements, part.state->cut_parameters);
        placed += part.state->placed_parameters;
      }
    });
    if (each.empty()) return;
    // What some ranks alone have says nothing where all agree on messages.
    const int64_t all = each.elements + each.Own();
    const int64_t per_layer = all > placed ? all - placed : all;
    piece = LayersPerBucket(bytes, per_layer, run.count);
    std::vector<GatheredPiece>& pieces = gathered_[{run.segment, run.layer_begin}];
    for (int64_t begin = 0; begin < run.count; begin += piece) {
      const int64_t count = std::min(piece, run.count - begin);
      Gathering what;
      what.Add(each.elements, each.cut, count);
      what.AddOwn(each.own, count);
      const int messages = MessagesFor(bytes, per_layer * count);
      pieces.push_back({Gather(what, messages, {}), run.layer_begin + begin, count});
    }
  });
}

// All at the end, behind the update.
void GradientFlow::GatherUpdated(const std::vector<Join>& joins, int64_t freed) {
  Gathering all;
  for (const StateGroup& group : groups_) {
    if (!Gathers(group.homes)) continue;
    if (group.homes.over.has_value()) {
      AddOwn(*group.homes.over, group.own, &all);
    } else {
      all.Add(group.parameters, group.cut);
    }
  }
  const SharedUpdate& shared = profile_.update.shared;
  if (shared.part_s > 0) {
    all.style.listed = TrainedTensors();
    const double launch_s = profile_.host.launch_s;
    all.style.launches = launch_s > 0 ? shared.part_s / launch_s : 0;
  }
  if (shared.owners_broadcast) all.style.owners = TrainedTensors();
  if (!all.empty()) Gather(all, 1, joins, freed);
}

}  // namespace plancast
