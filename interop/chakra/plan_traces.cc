#include "interop/chakra/plan_traces.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "executor/comm_uses.h"

namespace plancast {
namespace {

// Tags of messages inside a group; those of rendezvous are their numbers.
constexpr int64_t kGroupTags = int64_t{1} << 30;
// Of those between programs, which meet one after the other.
constexpr int64_t kCrossingTags = kGroupTags + kGroupTags / 2;

void SetInt(chakra::Node& node, const char* name, int64_t value) {
  chakra::AttributeProto* attr = node.add_attr();
  attr->set_name(name);
  attr->set_int64_val(value);
}

void SetOnGpu(chakra::Node& node) {
  chakra::AttributeProto* attr = node.add_attr();
  attr->set_name("is_cpu_op");
  attr->set_bool_val(false);
}

// The messages of a reshard: every device is sent what it lacks.
const std::vector<Reshard::Flow>& MessagesOf(const ExecutionGraph& graph, const CommSpec& comm) {
  return graph.reshards[comm.reshard].ways[0].flows;
}

// The most nodes that a task of a rank becomes.
uint64_t MostNodesOfATask(const ExecutionGraph& graph) {
  uint64_t most = 2;  // a send and a receive
  for (const Reshard& reshard : graph.reshards) {
    std::map<int64_t, uint64_t> of_device;
    for (const Reshard::Flow& flow : reshard.ways[0].flows) {
      most = std::max({most, ++of_device[flow.from], ++of_device[flow.to]});
    }
  }
  return most;
}

int64_t TasksOf(const ExecutionGraph& graph, const Program& program) {
  int64_t tasks = 0;
  for (const Instance& instance : program.instances) {
    tasks += int64_t{instance.layer_count} * graph.blocks[instance.block].size();
  }
  return tasks;
}

}  // namespace

// Writes the trace of one rank.
class RankWriter {
 public:
  RankWriter(PlanTraces& traces, int64_t rank)
      : traces_(traces),
        graph_(*traces.graph_),
        rank_(rank),
        program_(graph_.programs[ProgramOf(graph_, rank)]),
        nodes_of_a_task_(MostNodesOfATask(graph_)) {}

  EtFile Write() && {
    file_.metadata.set_version("0.0.4");
    int64_t slot = 0;
    for (const Instance& instance : program_.instances) {
      first_slot_.push_back(slot);
      slot += int64_t{instance.layer_count} * graph_.blocks[instance.block].size();
    }
    nodes_of_.resize(slot);
    for (size_t i = 0; i < program_.instances.size(); ++i) WriteInstance(static_cast<int32_t>(i));
    return std::move(file_);
  }

 private:
  using Ids = std::vector<uint64_t>;

  int64_t Slot(int32_t instance, int32_t layer, int32_t task) const {
    return first_slot_[instance] + int64_t{layer} * BlockOf(instance).size() + task;
  }
  const Block& BlockOf(int32_t instance) const {
    return graph_.blocks[program_.instances[instance].block];
  }

  void AddOutPort(int32_t instance, int32_t layer, int32_t port, Ids& ids) const {
    const int32_t task = BlockOf(instance).out_ports[port];
    if (task < 0) return AddInPort(instance, layer, ~task, ids);
    const Ids& nodes = nodes_of_[Slot(instance, layer, task)];
    ids.insert(ids.end(), nodes.begin(), nodes.end());
  }
  void AddInPort(int32_t instance, int32_t layer, int32_t port, Ids& ids) const {
    if (layer > 0) return AddOutPort(instance, layer - 1, port, ids);
    const Instance& at = program_.instances[instance];
    for (int32_t j = at.join_begin; j < at.join_end; ++j) {
      if (program_.joins[j].to_port == port) AddJoin(program_.joins[j], ids);
    }
  }
  // A whole instance is over when the last task of each of its streams is.
  void AddJoin(const Join& join, Ids& ids) const {
    const Instance& from = program_.instances[join.from];
    const int32_t layer = from.layer_count - 1;
    if (join.from_port >= 0) return AddOutPort(join.from, layer, join.from_port, ids);
    const Block& block = BlockOf(join.from);
    bool seen[kNumStreams] = {};
    for (int32_t t = block.size(); t-- > 0;) {
      bool& stream = seen[static_cast<int>(block.stream[t])];
      if (stream) continue;
      stream = true;
      const Ids& nodes = nodes_of_[Slot(join.from, layer, t)];
      ids.insert(ids.end(), nodes.begin(), nodes.end());
    }
  }

  void WriteInstance(int32_t index) {
    const Instance& instance = program_.instances[index];
    const Block& block = BlockOf(index);
    Ids before_any;
    for (int32_t j = instance.join_begin; j < instance.join_end; ++j) {
      if (program_.joins[j].to_port < 0) AddJoin(program_.joins[j], before_any);
    }
    bool begun[kNumStreams] = {};
    for (int32_t layer = 0; layer < instance.layer_count; ++layer) {
      for (int32_t t = 0; t < block.size(); ++t) {
        const int stream = static_cast<int>(block.stream[t]);
        Ids deps = last_in_[stream];
        if (!begun[stream]) deps.insert(deps.end(), before_any.begin(), before_any.end());
        begun[stream] = true;
        for (int32_t d = block.dep_begin[t]; d < block.dep_begin[t + 1]; ++d) {
          const int32_t dep = block.deps[d];
          if (dep < 0) {
            AddInPort(index, layer, ~dep, deps);
          } else {
            const Ids& nodes = nodes_of_[Slot(index, layer, dep)];
            deps.insert(deps.end(), nodes.begin(), nodes.end());
          }
        }
        std::sort(deps.begin(), deps.end());
        deps.erase(std::unique(deps.begin(), deps.end()), deps.end());
        const int64_t slot = Slot(index, layer, t);
        WriteTask(instance, block, layer, t, slot, deps);
        last_in_[stream] = nodes_of_[slot];
      }
    }
  }

  chakra::Node& Add(int64_t slot, chakra::NodeType type, absl::string_view name, const Ids& deps) {
    file_.nodes.emplace_back();
    chakra::Node& node = file_.nodes.back();
    node.set_id(nodes_of_a_task_ * static_cast<uint64_t>(slot) + nodes_of_[slot].size());
    node.set_name(std::string(name));
    node.set_type(type);
    for (const uint64_t dep : deps) node.add_data_deps(dep);
    SetOnGpu(node);
    nodes_of_[slot].push_back(node.id());
    return node;
  }

  void WriteTask(const Instance& instance, const Block& block, int32_t layer, int32_t t,
                 int64_t slot, const Ids& deps) {
    const bool forward = block.IsPairForward(t);
    const std::string name = absl::StrCat(block.name, " ", block.label[t], " layer ",
                                          LayerOf(block, instance, layer, forward), " mb ",
                                          instance.MicroBatchOf(forward));
    if (block.kind[t] == TaskKind::kKernel) return WriteKernel(block.spec[t], slot, name, deps);
    const CommSpec& comm = graph_.comms[block.spec[t]];
    if (t == block.rendezvous_task && comm.kind == CollectiveKind::kSendRecv) {
      return WriteMeeting(instance.rendezvous, comm, block.stream[t], slot, name, deps);
    }
    if (comm.kind == CollectiveKind::kReshard) {
      return WriteReshard(instance.rendezvous, comm, slot, name, deps);
    }
    const bool meets = t == block.rendezvous_task;
    const std::vector<int64_t> members =
        meets && !graph_.stage_meshes.empty()
            ? MembersAcross(block.spec[t], graph_.rendezvous[instance.rendezvous])
            : Members(comm, meets ? instance.rendezvous : -1);
    if (members.size() < 2) return WriteNothing(slot, name, deps);
    if (comm.kind == CollectiveKind::kPermute || comm.kind == CollectiveKind::kSendRecv) {
      return WritePermute(block.spec[t], members, slot, name, deps);
    }
    WriteCollective(comm, members, slot, name, deps);
  }

  void WriteNothing(int64_t slot, absl::string_view name, const Ids& deps) {
    Add(slot, chakra::COMP_NODE, name, deps);
  }

  void WriteKernel(int32_t kernel, int64_t slot, absl::string_view name, const Ids& deps) {
    chakra::Node& node = Add(slot, chakra::COMP_NODE, name, deps);
    kernel_us_ += traces_.seconds_[kernel] * 1e6;
    const auto until = static_cast<int64_t>(std::llround(kernel_us_));
    node.set_duration_micros(static_cast<uint64_t>(until - written_us_));
    written_us_ = until;
    const KernelSpec& spec = graph_.kernels[kernel];
    SetInt(node, "num_ops", std::llround(spec.flops));
    SetInt(node, "tensor_size", std::llround(spec.read_bytes + spec.write_bytes));
  }

  // Devices that differ from this one along the axes only, ascending; at a
  // rendezvous those whose programs meet there.
  std::vector<int64_t> Members(const CommSpec& comm, int32_t rendezvous) const {
    const DeviceMesh& mesh = graph_.MeshOf(comm);
    const int64_t shift = graph_.ShiftOf(program_);
    std::vector<int64_t> members = {rank_};
    for (const int axis : comm.axes) {
      std::vector<int64_t> more;
      for (const int64_t member : members) {
        const int64_t base = member - mesh.Coordinate(member - shift, axis) * mesh.stride(axis);
        for (int64_t c = 0; c < mesh.size(axis); ++c) {
          more.push_back(base + c * mesh.stride(axis));
        }
      }
      members = std::move(more);
    }
    std::sort(members.begin(), members.end());
    if (rendezvous < 0) return members;
    const auto& parties = graph_.rendezvous[rendezvous].parties;
    members.erase(std::remove_if(members.begin(), members.end(),
                                 [&](int64_t member) {
                                   const int32_t program = ProgramOf(graph_, member);
                                   return std::none_of(parties.begin(), parties.end(),
                                                       [&](const Rendezvous::Party& party) {
                                                         return party.program == program;
                                                       });
                                 }),
                  members.end());
    return members;
  }

  // The same between programs with meshes of their own.
  std::vector<int64_t> MembersAcross(int32_t comm, const Rendezvous& rendezvous) const {
    CommUse use;
    use.comm = comm;
    for (const Rendezvous::Party& party : rendezvous.parties) use.programs.push_back(party.program);
    std::sort(use.programs.begin(), use.programs.end());
    for (const GroupPattern& group : GroupsOf(graph_, use)) {
      std::vector<int64_t> members = group.Members();
      if (std::binary_search(members.begin(), members.end(), rank_)) return members;
    }
    return {rank_};
  }

  void WriteReshard(int32_t rendezvous, const CommSpec& comm, int64_t slot, absl::string_view name,
                    const Ids& deps) {
    for (const bool send : {false, true}) {  // as in WriteMeeting
      for (const Reshard::Flow& flow : MessagesOf(graph_, comm)) {
        if (flow.from == flow.to || (send ? flow.from : flow.to) != rank_) continue;
        WriteMessage(send, send ? flow.to : flow.from, rendezvous, flow.bytes, slot, name, deps);
      }
    }
    if (nodes_of_[slot].empty()) WriteNothing(slot, name, deps);
  }

  void WriteCollective(const CommSpec& comm, const std::vector<int64_t>& members, int64_t slot,
                       absl::string_view name, const Ids& deps) {
    chakra::CollectiveCommType type = chakra::ALL_REDUCE;
    int64_t bytes = comm.bytes;
    switch (comm.kind) {
      case CollectiveKind::kAllGather:
        type = chakra::ALL_GATHER;  // of what each rank gives
        bytes /= static_cast<int64_t>(members.size());
        break;
      case CollectiveKind::kReduceScatter:
        type = chakra::REDUCE_SCATTER;
        break;
      case CollectiveKind::kAllToAll:
        type = chakra::ALL_TO_ALL;
        break;
      case CollectiveKind::kBroadcast:
        type = chakra::BROADCAST;
        break;
      case CollectiveKind::kReduce:
        type = chakra::REDUCE;
        break;
      case CollectiveKind::kGather:
        type = chakra::GATHER;
        bytes /= static_cast<int64_t>(members.size());
        break;
      case CollectiveKind::kScatter:
        type = chakra::SCATTER;
        break;
      default:
        break;
    }
    chakra::Node& node = Add(slot, chakra::COMM_COLL_NODE, name, deps);
    SetInt(node, "comm_type", type);
    SetInt(node, "comm_size", std::max<int64_t>(bytes, 1));
    if (static_cast<int64_t>(members.size()) == traces_.ranks()) return;
    chakra::AttributeProto* group = node.add_attr();
    group->set_name("pg_name");
    group->set_string_val(absl::StrCat(traces_.GroupId(members)));
  }

  void WriteMessage(bool send, int64_t peer, int64_t tag, int64_t bytes, int64_t slot,
                    absl::string_view name, const Ids& deps) {
    chakra::Node& node =
        Add(slot, send ? chakra::COMM_SEND_NODE : chakra::COMM_RECV_NODE, name, deps);
    SetInt(node, "comm_src", send ? rank_ : peer);
    SetInt(node, "comm_dst", send ? peer : rank_);
    SetInt(node, "comm_tag", tag);
    SetInt(node, "comm_size", std::max<int64_t>(bytes, 1));
  }

  // A pipeline's message between two programs; if both ends send, both receive too.
  void WriteMeeting(int32_t rendezvous, const CommSpec& comm, StreamKind stream, int64_t slot,
                    absl::string_view name, const Ids& deps) {
    int64_t peer = rank_;
    bool both_alike = false;
    for (const Rendezvous::Party& party : graph_.rendezvous[rendezvous].parties) {
      const Program& other = graph_.programs[party.program];
      if (&other == &program_) continue;
      const Block& block = graph_.blocks[other.instances[party.instance].block];
      both_alike = Sends(block.stream[block.rendezvous_task]) == Sends(stream);
      for (const auto& [axis, coordinate] : other.where) {
        peer += (coordinate - graph_.mesh.Coordinate(peer, axis)) * graph_.mesh.stride(axis);
      }
    }
    // Receives go first: in ASTRA-sim a send that waits keeps the rank's only slot.
    if (both_alike || !Sends(stream)) {
      WriteMessage(false, peer, rendezvous, comm.bytes, slot, name, deps);
    }
    if (both_alike || Sends(stream)) {
      WriteMessage(true, peer, rendezvous, comm.bytes, slot, name, deps);
    }
  }

  void WritePermute(int32_t spec, const std::vector<int64_t>& members, int64_t slot,
                    absl::string_view name, const Ids& deps) {
    const CommSpec& comm = graph_.comms[spec];
    const auto n = static_cast<int64_t>(members.size());
    const int64_t place = std::find(members.begin(), members.end(), rank_) - members.begin();
    const int64_t offset = ((comm.peer_offset == 0 ? 1 : comm.peer_offset) % n + n) % n;
    if (offset == 0) return WriteNothing(slot, name, deps);
    const bool crosses = graph_.JoinedBy(comm, ProgramOf(graph_, rank_)).size() > 1;
    const auto kinds = static_cast<int64_t>(graph_.comms.size());
    const int64_t tag =
        crosses ? kCrossingTags + permutes_[spec]++ * kinds + spec : kGroupTags + slot;
    WriteMessage(false, members[(place + n - offset) % n], tag, comm.bytes, slot, name, deps);
    WriteMessage(true, members[(place + offset) % n], tag, comm.bytes, slot, name, deps);
  }

  PlanTraces& traces_;
  const ExecutionGraph& graph_;
  int64_t rank_;
  const Program& program_;
  const uint64_t nodes_of_a_task_;
  EtFile file_;
  std::vector<int64_t> first_slot_;  // by instance
  std::vector<Ids> nodes_of_;        // by slot: a task of a layer of an instance
  Ids last_in_[kNumStreams];
  std::map<int32_t, int64_t> permutes_;  // between programs so far, by communication
  double kernel_us_ = 0;
  int64_t written_us_ = 0;
};

absl::StatusOr<PlanTraces> PlanTraces::Create(const ExecutionGraph& graph,
                                              std::vector<double> kernel_seconds) {
  if (graph.mesh.num_devices() > kMostRanks) {
    return absl::InvalidArgumentError(absl::StrCat("the plan has ", graph.mesh.num_devices(),
                                                   " ranks; traces are written of at most ",
                                                   kMostRanks));
  }
  for (const Program& program : graph.programs) {
    if (const int64_t tasks = TasksOf(graph, program); tasks > kMostTasks) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", program.name, "` has ", tasks, " tasks; traces are written of at most ",
                       kMostTasks, ". Take a smaller batch: fewer micro-batches say the same."));
    }
  }
  return PlanTraces(graph, std::move(kernel_seconds));
}

EtFile PlanTraces::TraceOf(int64_t rank) { return RankWriter(*this, rank).Write(); }

int64_t PlanTraces::GroupId(std::vector<int64_t> members) {
  const auto [known, added] = id_of_.try_emplace(members, static_cast<int64_t>(id_of_.size()) + 1);
  if (added) groups_[known->second] = std::move(members);
  return known->second;
}

absl::StatusOr<EtFile> MicrobenchmarkTrace(chakra::CollectiveCommType type, int64_t ranks,
                                           int64_t bytes) {
  if (ranks < 1 || bytes < 1) {
    return absl::InvalidArgumentError("a microbenchmark needs at least one rank and one byte");
  }
  const bool mib = bytes % (1 << 20) == 0;
  EtFile file;
  file.metadata.set_version("0.0.4");
  file.nodes.emplace_back();
  chakra::Node& node = file.nodes.back();
  node.set_name(absl::StrCat(absl::AsciiStrToLower(chakra::CollectiveCommType_Name(type)), "_",
                             ranks, "npus_",
                             mib ? absl::StrCat(bytes >> 20, "MB") : absl::StrCat(bytes, "B")));
  node.set_type(chakra::COMM_COLL_NODE);
  SetOnGpu(node);
  SetInt(node, "comm_type", type);
  SetInt(node, "comm_size", bytes);
  return file;
}

std::string WriteCommGroups(const CommGroups& groups) {
  std::vector<std::string> lines;
  for (const auto& [id, ranks] : groups) {
    lines.push_back(absl::StrCat("  \"", id, "\": [", absl::StrJoin(ranks, ", "), "]"));
  }
  return absl::StrCat("{\n", absl::StrJoin(lines, ",\n"), "\n}\n");
}

}  // namespace plancast
