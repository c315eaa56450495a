#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/status_macros.h"
#include "base/wrong.h"
#include "graph/execution/execution_graph.h"

namespace plancast {
namespace {

absl::Status VerifyComm(const ExecutionGraph& graph, const CommSpec& comm) {
  if (comm.bytes < 0) return Wrong("moves ", comm.bytes, " bytes; at least 0 is needed");
  if (IsOnHost(comm.kind) && !comm.axes.empty()) {
    return Wrong("is a ", kCollectiveKindNames[comm.kind], " over ", comm.axes.size(),
                 " mesh axes; it concerns one device and takes none");
  }
  if (comm.stage_mesh < -1 || comm.stage_mesh >= static_cast<int>(graph.stage_meshes.size())) {
    return Wrong("names stage mesh ", comm.stage_mesh, " of ", graph.stage_meshes.size());
  }
  const bool reshards = comm.kind == CollectiveKind::kReshard;
  const int most = reshards ? static_cast<int>(graph.reshards.size()) : 0;
  if (reshards ? comm.reshard < 0 || comm.reshard >= most : comm.reshard != -1) {
    return Wrong("is a ", kCollectiveKindNames[comm.kind], " by reshard ", comm.reshard, " of ",
                 graph.reshards.size());
  }
  if (comm.axes.empty() && !IsOnHost(comm.kind) && !reshards) {
    return Wrong("names no mesh axis; its group needs at least one");
  }
  const DeviceMesh& mesh = graph.MeshOf(comm);
  for (size_t i = 0; i < comm.axes.size(); ++i) {
    if (comm.axes[i] < 0 || comm.axes[i] >= mesh.num_axes()) {
      return Wrong("names mesh axis ", comm.axes[i], "; the mesh has ", mesh.num_axes());
    }
    if (i > 0 && comm.axes[i] <= comm.axes[i - 1]) {
      return Wrong("lists its mesh axes out of order; outermost comes first, each once");
    }
  }
  if (comm.kind == CollectiveKind::kSendRecv && comm.axes.size() != 1) {
    return Wrong("is a send_recv over ", comm.axes.size(), " mesh axes; it goes along one");
  }
  return absl::OkStatus();
}

absl::Status VerifyDependencies(const Block& block) {
  if (block.dep_begin.front() != 0 ||
      block.dep_begin.back() != static_cast<int32_t>(block.deps.size())) {
    return Wrong("its dependencies do not span [0, ", block.deps.size(), ")");
  }
  for (int32_t t = 0; t < block.size(); ++t) {
    if (block.dep_begin[t] > block.dep_begin[t + 1]) {
      return Wrong("task ", t, ": its dependencies end before they begin");
    }
    for (int32_t d = block.dep_begin[t]; d < block.dep_begin[t + 1]; ++d) {
      const int32_t dep = block.deps[d];
      if (dep >= t || (dep < 0 && ~dep >= block.num_in_ports)) {
        return Wrong("task ", t, " depends on ", dep >= 0 ? "task " : "in-port ",
                     dep >= 0 ? dep : ~dep, "; only earlier tasks and the ", block.num_in_ports,
                     " in-ports can be waited for");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyBlock(const ExecutionGraph& graph, const Block& block) {
  const size_t size = block.kind.size();
  if (block.spec.size() != size || block.stream.size() != size || block.purpose.size() != size ||
      block.flags.size() != size || block.label.size() != size ||
      block.dep_begin.size() != size + 1) {
    return Wrong("its columns differ in length; each needs ", size, " tasks");
  }
  for (int32_t t = 0; t < block.size(); ++t) {
    const size_t specs =
        block.kind[t] == TaskKind::kKernel ? graph.kernels.size() : graph.comms.size();
    if (block.spec[t] < 0 || block.spec[t] >= static_cast<int32_t>(specs)) {
      return Wrong("task ", t, " names spec ", block.spec[t], " of ", specs);
    }
    if (block.kind[t] == TaskKind::kComm && t != block.rendezvous_task &&
        graph.comms[block.spec[t]].kind == CollectiveKind::kSendRecv) {
      return Wrong("task ", t, " is a send_recv without a rendezvous; both ends must meet");
    }
  }
  RETURN_IF_ERROR(VerifyDependencies(block));
  for (int32_t task : block.out_ports) {
    if (task >= block.size() || (task < 0 && ~task >= block.num_in_ports)) {
      return Wrong("an out-port names task ", task, " of ", block.size());
    }
  }
  for (size_t i = 0; i < block.memory.size(); ++i) {
    const MemoryEvent& event = block.memory[i];
    if (event.task < 0 || event.task >= block.size()) {
      return Wrong("a memory event names task ", event.task, " of ", block.size());
    }
    if (event.tensor >= block.tensors.size()) {
      return Wrong("a memory event names tensor ", event.tensor, " of ", block.tensors.size());
    }
    if (i == 0) continue;
    const MemoryEvent& previous = block.memory[i - 1];
    if (event.task < previous.task ||
        (event.task == previous.task && previous.after && !event.after)) {
      return Wrong("its memory events are not sorted by (task, after)");
    }
  }
  for (const std::vector<PortMemory>* ports : {&block.takes, &block.gives}) {
    for (const PortMemory& port : *ports) {
      if (port.tensor < block.tensors.size() && port.bytes >= 0) continue;
      return Wrong("a port brings ", port.bytes, " bytes of tensor ", port.tensor, " of ",
                   block.tensors.size());
    }
  }
  if (block.rendezvous_task >= block.size() ||
      (block.rendezvous_task >= 0 && block.kind[block.rendezvous_task] != TaskKind::kComm)) {
    return Wrong("task ", block.rendezvous_task,
                 " cannot meet other programs: not a communication");
  }
  if (block.rendezvous_task >= 0 && IsOnHost(graph.comms[block.spec[block.rendezvous_task]].kind)) {
    return Wrong("task ", block.rendezvous_task,
                 " cannot meet other programs: it is of one device");
  }
  return absl::OkStatus();
}

absl::Status VerifyInstance(const ExecutionGraph& graph, const Program& program, int32_t index) {
  const Instance& instance = program.instances[index];
  if (instance.block < 0 || instance.block >= static_cast<int32_t>(graph.blocks.size())) {
    return Wrong("names block ", instance.block, " of ", graph.blocks.size());
  }
  const Block& block = graph.blocks[instance.block];
  if (instance.layer_count < 1) return Wrong("runs ", instance.layer_count, " times");
  const bool meets = instance.rendezvous >= 0;
  if (meets != (block.rendezvous_task >= 0)) {
    return Wrong("`", block.name, "` ", meets ? "has no task to meet at" : "meets nobody");
  }
  if (meets && instance.layer_count != 1) {
    return Wrong("`", block.name, "` meets other programs and so cannot repeat");
  }
  if (meets && instance.rendezvous >= static_cast<int32_t>(graph.rendezvous.size())) {
    return Wrong("names rendezvous ", instance.rendezvous, " of ", graph.rendezvous.size());
  }
  if (instance.join_begin < 0 || instance.join_begin > instance.join_end ||
      instance.join_end > static_cast<int32_t>(program.joins.size())) {
    return Wrong("names joins [", instance.join_begin, ", ", instance.join_end, ") of ",
                 program.joins.size());
  }
  for (int32_t j = instance.join_begin; j < instance.join_end; ++j) {
    const Join& join = program.joins[j];
    if (join.from < 0 || join.from >= index) {
      return Wrong("waits for instance ", join.from, "; only earlier ones can be waited for");
    }
    const Block& from = graph.blocks[program.instances[join.from].block];
    if (join.from_port < -1 || join.from_port >= static_cast<int>(from.out_ports.size())) {
      return Wrong("waits for out-port ", join.from_port, " of `", from.name, "`, which has ",
                   from.out_ports.size());
    }
    if (join.to_port < -1 || join.to_port >= block.num_in_ports) {
      return Wrong("joins in-port ", join.to_port, " of `", block.name, "`, which has ",
                   block.num_in_ports);
    }
  }
  return absl::OkStatus();
}

// No communication without a rendezvous may leave its program's mesh. `leaves`: set if one leaves
// the program.
absl::Status VerifyGroups(const ExecutionGraph& graph, const Program& program, const Block& block,
                          bool* leaves) {
  for (int32_t t = 0; t < block.size(); ++t) {
    if (block.kind[t] != TaskKind::kComm || t == block.rendezvous_task) continue;
    const CommSpec& comm = graph.comms[block.spec[t]];
    if (comm.kind == CollectiveKind::kReshard) {
      return Wrong("task ", t, " of `", block.name, "` reshards; that needs a rendezvous");
    }
    if (comm.stage_mesh != program.stage_mesh && !IsOnHost(comm.kind)) {
      return Wrong("task ", t, " of `", block.name, "` talks over axes of stage mesh ",
                   comm.stage_mesh, " and the program lies on ", program.stage_mesh);
    }
    for (const auto& [fixed, coordinate] : program.where) {
      *leaves |= std::find(comm.axes.begin(), comm.axes.end(), fixed) != comm.axes.end();
    }
  }
  return absl::OkStatus();
}

// Programs that differ along the axes of a communication meet for it without a rendezvous: as often
// in each stream.
absl::Status VerifyMeetings(const ExecutionGraph& graph) {
  std::map<std::tuple<int32_t, int32_t, StreamKind>, int64_t> times;  // program, comm, stream
  for (size_t p = 0; p < graph.programs.size(); ++p) {
    const Program& program = graph.programs[p];
    const auto crosses = [&](int axis) {
      return std::any_of(program.where.begin(), program.where.end(),
                         [axis](const auto& fixed) { return fixed.first == axis; });
    };
    std::vector<int> leaves(graph.comms.size(), -1);
    std::vector<int64_t> repeats(graph.blocks.size());
    for (const Instance& i : program.instances) repeats[i.block] += i.layer_count;
    for (size_t b = 0; b < graph.blocks.size(); ++b) {
      const Block& block = graph.blocks[b];
      for (int32_t t = 0; repeats[b] > 0 && t < block.size(); ++t) {
        if (block.kind[t] != TaskKind::kComm || t == block.rendezvous_task) continue;
        int& leaves_here = leaves[block.spec[t]];
        const std::vector<int>& axes = graph.comms[block.spec[t]].axes;
        if (leaves_here < 0) leaves_here = std::any_of(axes.begin(), axes.end(), crosses) ? 1 : 0;
        if (leaves_here == 0) continue;
        times[{static_cast<int32_t>(p), block.spec[t], block.stream[t]}] += repeats[b];
      }
    }
  }
  for (const auto& [at, count] : times) {
    const auto& [program, comm, stream] = at;
    for (const int32_t joined : graph.JoinedBy(graph.comms[comm], program)) {
      const auto theirs = times.find({joined, comm, stream});
      const int64_t their_count = theirs == times.end() ? 0 : theirs->second;
      if (their_count == count) continue;
      return Wrong("program `", graph.programs[program].name, "` comes ", count,
                   " times to the same ", kCollectiveKindNames[graph.comms[comm].kind], " as `",
                   graph.programs[joined].name, "`, which comes ", their_count, " times");
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyProgram(const ExecutionGraph& graph, const Program& program, bool* leaves) {
  if (program.stage_mesh < -1 ||
      program.stage_mesh >= static_cast<int>(graph.stage_meshes.size()) ||
      (program.stage_mesh < 0 && !graph.stage_meshes.empty())) {
    return Wrong("lies on stage mesh ", program.stage_mesh, " of ", graph.stage_meshes.size());
  }
  const DeviceMesh& mesh = graph.MeshOf(program);
  for (size_t i = 0; i < program.where.size(); ++i) {
    const auto& [axis, coordinate] = program.where[i];
    if (axis < 0 || axis >= mesh.num_axes() || coordinate < 0 || coordinate >= mesh.size(axis)) {
      return Wrong("its place is coordinate ", coordinate, " of mesh axis ", axis,
                   ", which does not exist");
    }
    for (size_t j = 0; j < i; ++j) {
      if (program.where[j].first == axis)
        return Wrong("its place names mesh axis ", axis, " twice");
    }
  }
  std::vector<bool> seen(graph.blocks.size());
  for (size_t i = 0; i < program.instances.size(); ++i) {
    RETURN_IF_ERROR(VerifyInstance(graph, program, static_cast<int32_t>(i))) << "instance " << i;
    const int32_t block = program.instances[i].block;
    if (seen[block]) continue;
    seen[block] = true;
    RETURN_IF_ERROR(VerifyGroups(graph, program, graph.blocks[block], leaves));
  }
  return absl::OkStatus();
}

// Every device runs exactly one program, each on a stage mesh.
absl::Status VerifyStagePlaces(const ExecutionGraph& graph) {
  std::vector<int32_t> program_of(graph.mesh.num_devices(), -1);
  for (size_t p = 0; p < graph.programs.size(); ++p) {
    const Program& program = graph.programs[p];
    const DeviceMesh& mesh = graph.MeshOf(program);
    for (int64_t place = 0; place < mesh.num_devices(); ++place) {
      const int64_t device = place + graph.ShiftOf(program);
      if (!graph.Runs(program, device)) continue;
      if (device < 0 || device >= graph.mesh.num_devices()) {
        return Wrong("program `", program.name, "` is on device ", device, " of ",
                     graph.mesh.num_devices());
      }
      if (program_of[device] >= 0) {
        return Wrong("programs `", graph.programs[program_of[device]].name, "` and `", program.name,
                     "` claim the same devices");
      }
      program_of[device] = static_cast<int32_t>(p);
    }
  }
  const auto idle = std::find(program_of.begin(), program_of.end(), -1);
  if (idle == program_of.end()) return absl::OkStatus();
  return Wrong("device ", idle - program_of.begin(), " runs no program; each runs exactly one");
}

absl::Status VerifyReshard(const ExecutionGraph& graph, const Reshard& reshard) {
  if (reshard.ways.empty()) return Wrong("has no way to go");
  for (const Reshard::Way& way : reshard.ways) {
    for (const Reshard::Flow& flow : way.flows) {
      const int64_t devices = graph.mesh.num_devices();
      if (flow.from < 0 || flow.from >= devices || flow.to < 0 || flow.to >= devices ||
          flow.bytes < 0) {
        return Wrong("sends ", flow.bytes, " bytes from device ", flow.from, " to ", flow.to,
                     " of ", devices);
      }
    }
    if (way.after.bytes > 0) {
      RETURN_IF_ERROR(VerifyComm(graph, way.after)) << way.name;
    }
  }
  return absl::OkStatus();
}

bool Disjoint(const Program& a, const Program& b) {
  for (const auto& [axis, coordinate] : a.where) {
    for (const auto& [other_axis, other] : b.where) {
      if (axis == other_axis && coordinate != other) return true;
    }
  }
  return false;
}

// Every device of the mesh runs exactly one program.
absl::Status VerifyPlaces(const ExecutionGraph& graph) {
  if (!graph.stage_meshes.empty()) return VerifyStagePlaces(graph);
  int64_t placed = 0;
  for (size_t p = 0; p < graph.programs.size(); ++p) {
    int64_t devices = graph.mesh.num_devices();
    for (const auto& [axis, coordinate] : graph.programs[p].where) {
      devices /= graph.mesh.size(axis);
    }
    placed += devices;
    for (size_t q = 0; q < p; ++q) {
      if (!Disjoint(graph.programs[p], graph.programs[q])) {
        return Wrong("programs `", graph.programs[q].name, "` and `", graph.programs[p].name,
                     "` claim the same devices");
      }
    }
  }
  if (placed != graph.mesh.num_devices()) {
    return Wrong("programs cover ", placed, " of ", graph.mesh.num_devices(),
                 " devices of the mesh; each device runs exactly one");
  }
  return absl::OkStatus();
}

// Whether two programs lie at one place but for the mesh axes `axes`.
bool DifferOnlyAlong(const std::vector<int>& axes, const Program& a, const Program& b) {
  if (a.where.size() != b.where.size()) return false;
  for (const auto& [axis, coordinate] : a.where) {
    const auto same_axis = std::find_if(b.where.begin(), b.where.end(),
                                        [axis = axis](const auto& w) { return w.first == axis; });
    if (same_axis == b.where.end()) return false;
    if (same_axis->second != coordinate &&
        std::find(axes.begin(), axes.end(), axis) == axes.end()) {
      return false;
    }
  }
  return true;
}

absl::Status VerifyRendezvous(const ExecutionGraph& graph, int32_t index) {
  const auto& parties = graph.rendezvous[index].parties;
  if (parties.size() < 2) return Wrong("has ", parties.size(), " parties; it takes two");
  const CommSpec* comm = nullptr;
  for (size_t i = 0; i < parties.size(); ++i) {
    const auto [p, at] = parties[i];
    if (p < 0 || p >= static_cast<int32_t>(graph.programs.size()) || at < 0 ||
        at >= static_cast<int32_t>(graph.programs[p].instances.size()) ||
        graph.programs[p].instances[at].rendezvous != index) {
      return Wrong("names instance ", at, " of program ", p, ", which does not come to it");
    }
    const Program& program = graph.programs[p];
    const Block& block = graph.blocks[program.instances[at].block];
    const CommSpec& own = graph.comms[block.spec[block.rendezvous_task]];
    if (comm == nullptr) comm = &own;
    const bool same_axes = own.axes == comm->axes || own.stage_mesh != comm->stage_mesh;
    if (own.kind != comm->kind || own.bytes != comm->bytes || !same_axes ||
        own.reshard != comm->reshard) {
      return Wrong("its parties disagree on what they communicate");
    }
    for (size_t j = 0; j < i; ++j) {
      if (parties[j].program == p) return Wrong("program `", program.name, "` comes to it twice");
    }
    if (!graph.stage_meshes.empty()) continue;
    if (!DifferOnlyAlong(comm->axes, graph.programs[parties[0].program], program)) {
      return Wrong("programs `", graph.programs[parties[0].program].name, "` and `", program.name,
                   "` differ along mesh axes that it does not join");
    }
  }
  const bool joins_two =
      comm->kind == CollectiveKind::kSendRecv || comm->kind == CollectiveKind::kReshard;
  if (joins_two && parties.size() != 2) {
    return Wrong("is a ", kCollectiveKindNames[comm->kind], " of ", parties.size(),
                 " parties; it joins two");
  }
  return absl::OkStatus();
}

absl::Status VerifySkew(const ExecutionGraph& graph) {
  size_t places = 1;
  for (size_t i = 0; i < graph.skew.axes.size(); ++i) {
    const int axis = graph.skew.axes[i];
    if (axis < 0 || axis >= graph.mesh.num_axes() || (i > 0 && axis <= graph.skew.axes[i - 1])) {
      return Wrong("loads differ along mesh axis ", axis, ", which is not there or out of order");
    }
    places *= graph.mesh.size(axis);
  }
  if (!graph.skew.empty() && graph.skew.loads.size() != places) {
    return Wrong("there are ", graph.skew.loads.size(), " loads for ", places, " places");
  }
  for (const double load : graph.skew.loads) {
    if (!(load >= 0) || load > 1e9) return Wrong("a load is ", load, "; it must be 0 or more");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ExecutionGraph::Verify() const {
  RETURN_IF_ERROR(VerifySkew(*this));
  for (size_t i = 0; i < comms.size(); ++i) {
    RETURN_IF_ERROR(VerifyComm(*this, comms[i])) << "communication " << i;
  }
  for (size_t i = 0; i < reshards.size(); ++i) {
    RETURN_IF_ERROR(VerifyReshard(*this, reshards[i])) << "reshard " << i;
  }
  for (const Block& block : blocks) {
    RETURN_IF_ERROR(VerifyBlock(*this, block)) << "block `" << block.name << "`";
  }
  if (programs.empty()) return Wrong("the execution graph has no program; it needs at least one");
  bool leaves = false;
  for (const Program& program : programs) {
    RETURN_IF_ERROR(VerifyProgram(*this, program, &leaves)) << "program `" << program.name << "`";
  }
  RETURN_IF_ERROR(VerifyPlaces(*this));
  if (leaves) {
    RETURN_IF_ERROR(VerifyMeetings(*this));
  }
  size_t meetings = 0, parties = 0;
  for (const Program& program : programs) {
    for (const Instance& instance : program.instances) meetings += instance.rendezvous >= 0;
  }
  for (size_t i = 0; i < rendezvous.size(); ++i) {
    RETURN_IF_ERROR(VerifyRendezvous(*this, static_cast<int32_t>(i))) << "rendezvous " << i;
    parties += rendezvous[i].parties.size();
  }
  if (meetings != parties) {
    return Wrong(meetings, " instances come to ", parties,
                 " places at rendezvous; an instance is missing from its rendezvous");
  }
  return absl::OkStatus();
}

}  // namespace plancast
