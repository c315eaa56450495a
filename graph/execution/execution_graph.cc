#include "graph/execution/execution_graph.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plancast {
namespace {

// Shorter than kStreamNames: every line of a dump has one.
constexpr auto kShortStreamNames =
    NamesOf<StreamKind>("compute", "model", "expert", "grad", "send_next", "recv_prev", "send_prev",
                        "recv_next", "replica", "copy_out", "copy_in", "peer_out", "peer_in",
                        "f_to_prev", "f_from_next", "b_to_next", "b_from_prev", "all_stages");

std::string CommText(const CommSpec& comm, const DeviceMesh& mesh) {
  if (comm.kind == CollectiveKind::kReshard) {
    return absl::StrCat("reshard ", comm.bytes, " B by reshard ", comm.reshard);
  }
  if (IsOnHost(comm.kind)) {
    return absl::StrCat(kCollectiveKindNames[comm.kind], " ", comm.bytes, " B");
  }
  std::string text = absl::StrCat(kCollectiveKindNames[comm.kind], " ", comm.bytes, " B over ",
                                  absl::StrJoin(comm.axes, "*", [&](std::string* out, int axis) {
                                    absl::StrAppend(out, mesh.axis(axis).name);
                                  }));
  if (comm.peer_offset != 0) absl::StrAppend(&text, " offset ", comm.peer_offset);
  if (!comm.policy.empty()) absl::StrAppend(&text, " by ", comm.policy);
  if (comm.copies.each != 1) absl::StrAppend(&text, " of ", comm.copies.each, " copies");
  if (comm.copies.chosen < comm.copies.groups) {
    absl::StrAppend(&text, " in ", comm.copies.chosen, " of ", comm.copies.groups, " groups");
  }
  if (comm.copies.dealt > 0) absl::StrAppend(&text, " dealt to ", comm.copies.dealt);
  if (!comm.fused.empty()) {
    absl::StrAppend(&text, " computing on ", comm.fused.bytes,
                    comm.fused.of_sum ? " B of sums" : " B", " with ", comm.fused.traffic,
                    " B of memory");
  }
  if (comm.sms > 0) absl::StrAppend(&text, " on ", comm.sms, " SMs");
  if (comm.spared) absl::StrAppend(&text, " spared");
  return text;
}

std::string MemoryText(const Block& block, int32_t task) {
  std::string text;
  for (const MemoryEvent& event : block.memory) {
    if (event.task != task) continue;
    absl::StrAppend(&text, event.after ? " after " : " before ", kMemoryKindNames[event.kind],
                    event.delta < 0 ? "" : "+", event.delta, " ", block.tensors[event.tensor]);
  }
  return text;
}

std::string BlockText(const ExecutionGraph& graph, const Block& block) {
  std::string text = absl::StrCat("`", block.name, "` in ", block.num_in_ports, " out [",
                                  absl::StrJoin(block.out_ports, " ",
                                                [](std::string* out, int32_t task) {
                                                  task >= 0 ? absl::StrAppend(out, task)
                                                            : absl::StrAppend(out, "in", ~task);
                                                }),
                                  "]");
  if (block.rendezvous_task >= 0) absl::StrAppend(&text, " meets at ", block.rendezvous_task);
  absl::StrAppend(&text, "\n");
  for (int32_t t = 0; t < block.size(); ++t) {
    absl::StrAppend(
        &text, "  ", t, " ", kShortStreamNames[block.stream[t]], " ",
        kPurposeNames[block.purpose[t]], " `", block.label[t], "` ",
        block.kind[t] == TaskKind::kKernel
            ? graph.kernels[block.spec[t]].DebugString()
            : CommText(graph.comms[block.spec[t]], graph.MeshOf(graph.comms[block.spec[t]])));
    for (int32_t d = block.dep_begin[t]; d < block.dep_begin[t + 1]; ++d) {
      absl::StrAppend(&text, d == block.dep_begin[t] ? " <- " : " ");
      block.deps[d] >= 0 ? absl::StrAppend(&text, block.deps[d])
                         : absl::StrAppend(&text, "in", ~block.deps[d]);
    }
    if ((block.flags[t] & Block::kHostSync) != 0) absl::StrAppend(&text, " host-sync");
    if (block.IsPairForward(t)) absl::StrAppend(&text, " of-forward");
    absl::StrAppend(&text, MemoryText(block, t), "\n");
  }
  return text;
}

std::string ProgramText(const ExecutionGraph& graph, const Program& program) {
  std::string text = absl::StrCat("`", program.name, "`");
  for (const auto& [axis, coordinate] : program.where) {
    absl::StrAppend(&text, " ", graph.mesh.axis(axis).name, "=", coordinate);
  }
  for (int kind = 0; kind < kNumMemoryKinds; ++kind) {
    if (program.static_bytes[kind] == 0) continue;
    absl::StrAppend(&text, " ", kMemoryKindNames[static_cast<MemoryKind>(kind)], " ",
                    program.static_bytes[kind]);
  }
  if (program.host_bytes > 0) absl::StrAppend(&text, " host ", program.host_bytes);
  absl::StrAppend(&text, "\n");
  for (size_t i = 0; i < program.instances.size(); ++i) {
    const Instance& instance = program.instances[i];
    absl::StrAppend(&text, "  ", i, " ", kPhaseNames[instance.phase], " `",
                    graph.blocks[instance.block].name, "`");
    if (instance.layer_count != 1 || instance.phase == Phase::kForward) {
      absl::StrAppend(&text, " layers ", instance.layer_begin, "+",
                      instance.layer_count * graph.blocks[instance.block].layers);
    }
    absl::StrAppend(&text, " mb ", instance.micro_batch, " chunk ", instance.chunk);
    if (instance.pairs()) {
      absl::StrAppend(&text, " with F layers ", instance.forward.layer_begin, " mb ",
                      instance.forward.micro_batch, " chunk ", instance.forward.chunk);
    }
    if (instance.rendezvous >= 0) absl::StrAppend(&text, " meets ", instance.rendezvous);
    for (int32_t j = instance.join_begin; j < instance.join_end; ++j) {
      const Join& join = program.joins[j];
      absl::StrAppend(&text, j == instance.join_begin ? " <- " : " ", join.from);
      if (join.from_port >= 0) absl::StrAppend(&text, ".", join.from_port);
      if (join.to_port >= 0) absl::StrAppend(&text, ">", join.to_port);
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace

int64_t Skew::PlaceOf(const DeviceMesh& mesh, int64_t device) const {
  int64_t place = 0;
  for (int axis : axes) place = place * mesh.size(axis) + mesh.Coordinate(device, axis);
  if (empty()) return place;
  return std::find(loads.begin(), loads.end(), loads[place]) - loads.begin();
}

double Skew::Busiest() const {
  return loads.empty() ? 1 : *std::max_element(loads.begin(), loads.end());
}

int64_t ExecutionGraph::DevicesOf(const Program& program) const {
  const DeviceMesh& own = MeshOf(program);
  int64_t devices = own.num_devices();
  for (const auto& [axis, coordinate] : program.where) devices /= own.size(axis);
  return devices;
}

int64_t ExecutionGraph::FirstDeviceOf(const Program& program) const {
  int64_t device = ShiftOf(program);
  for (const auto& [axis, coordinate] : program.where) {
    device += coordinate * MeshOf(program).stride(axis);
  }
  return device;
}

std::vector<int32_t> ExecutionGraph::JoinedBy(const CommSpec& comm, int32_t program) const {
  const auto over = [&](int axis) {
    return std::find(comm.axes.begin(), comm.axes.end(), axis) != comm.axes.end();
  };
  const auto& where = programs[program].where;
  const auto leaves = [&](const auto& fixed) { return over(fixed.first); };
  if (std::none_of(where.begin(), where.end(), leaves)) return {program};
  std::vector<int32_t> joined;
  for (size_t p = 0; p < programs.size(); ++p) {
    const auto& other = programs[p].where;
    const bool beside = std::equal(
        where.begin(), where.end(), other.begin(), other.end(), [&](const auto& a, const auto& b) {
          return a.first == b.first && (a.second == b.second || over(a.first));
        });
    if (beside && programs[p].stage_mesh == programs[program].stage_mesh) {
      joined.push_back(static_cast<int32_t>(p));
    }
  }
  return joined;
}

bool ExecutionGraph::Runs(const Program& program, int64_t device) const {
  const DeviceMesh& own = MeshOf(program);
  const int64_t place = device - ShiftOf(program);
  return place >= 0 && place < own.num_devices() &&
         std::all_of(program.where.begin(), program.where.end(),
                     [&](const auto& at) { return own.Coordinate(place, at.first) == at.second; });
}

std::string ExecutionGraph::DebugString() const {
  std::string text = absl::StrCat("mesh ", mesh.DebugString(), "\n");
  for (const StageMesh& stage : stage_meshes) {
    absl::StrAppend(&text, "stage mesh ", stage.mesh.DebugString(), " shift ", stage.shift, "\n");
  }
  for (size_t r = 0; r < reshards.size(); ++r) {
    for (const Reshard::Way& way : reshards[r].ways) {
      absl::StrAppend(&text, "reshard ", r, " by ", way.name, ":");
      for (const Reshard::Flow& flow : way.flows) {
        absl::StrAppend(&text, " ", flow.from, ">", flow.to, ":", flow.bytes);
      }
      if (way.after.bytes > 0) {
        absl::StrAppend(&text, " then ", CommText(way.after, MeshOf(way.after)));
      }
      absl::StrAppend(&text, "\n");
    }
  }
  if (!skew.empty()) absl::StrAppend(&text, "loads ", absl::StrJoin(skew.loads, " "), "\n");
  for (size_t b = 0; b < blocks.size(); ++b) {
    absl::StrAppend(&text, "block ", b, " ", BlockText(*this, blocks[b]));
  }
  for (size_t p = 0; p < programs.size(); ++p) {
    absl::StrAppend(&text, "program ", p, " ", ProgramText(*this, programs[p]));
  }
  for (size_t r = 0; r < rendezvous.size(); ++r) {
    absl::StrAppend(&text, "rendezvous ", r, ":");
    for (const Rendezvous::Party& party : rendezvous[r].parties) {
      absl::StrAppend(&text, " ", party.program, "[", party.instance, "]");
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

int64_t UnfoldedTasks(const ExecutionGraph& graph, int program) {
  int64_t tasks = 0;
  for (const Instance& instance : graph.programs[program].instances) {
    tasks += int64_t{graph.blocks[instance.block].size()} * instance.layer_count;
  }
  return tasks;
}

}  // namespace plancast
