#include "tests/executor/lower_reference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace plancast {
namespace {

// What jobs share.
struct Links {
  std::map<std::tuple<int, int64_t, int>, int32_t> resources;
  std::vector<int64_t> capacity;
};

class Lowering {
 public:
  Lowering(const ReferenceJob& job, const Machine& machine, const KernelCostModel& costs,
           Links& links)
      : graph_(*job.graph),
        devices_(job.devices),
        machine_(machine),
        costs_(costs),
        realise_(job.realise),
        links_(links) {}

  ReferenceLowering Lower() {
    const int64_t ranks = graph_.mesh.num_devices();
    for (int64_t rank = 0; rank < ranks; ++rank) {
      out_.ranks.push_back({ProgramOf(rank), {}});
    }
    for (int64_t rank = 0; rank < ranks; ++rank) LowerRank(rank);
    for (size_t m = 0; m < use_of_meeting_.size(); ++m) {
      out_.meetings[m].priority = priorities_.at(use_of_meeting_[m]);
    }
    return std::move(out_);
  }

 private:
  int32_t ProgramOf(int64_t rank) const {
    for (size_t p = 0; p < graph_.programs.size(); ++p) {
      const Program& program = graph_.programs[p];
      const DeviceMesh& mesh =
          program.stage_mesh < 0 ? graph_.mesh : graph_.stage_meshes[program.stage_mesh].mesh;
      const int64_t place =
          program.stage_mesh < 0 ? rank : rank - graph_.stage_meshes[program.stage_mesh].shift;
      bool here = place >= 0 && place < mesh.num_devices();
      for (const auto& [axis, coordinate] : program.where) {
        here = here && mesh.Coordinate(place, axis) == coordinate;
      }
      if (here) return static_cast<int32_t>(p);
    }
    PLANCAST_CHECK(false) << "rank " << rank << " runs no program";
    return -1;
  }

  // Digit by digit along the axes of the skew, the last one fastest.
  double LoadOf(int64_t rank) const {
    size_t place = 0, stride = 1;
    for (size_t i = graph_.skew.axes.size(); i-- > 0;) {
      const int axis = graph_.skew.axes[i];
      place += stride * static_cast<size_t>(graph_.mesh.Coordinate(rank, axis));
      stride *= static_cast<size_t>(graph_.mesh.size(axis));
    }
    return graph_.skew.loads.at(place);
  }

  void LowerRank(int64_t rank) {
    ReferenceRank& lowered = out_.ranks[rank];
    const Program& program = graph_.programs[lowered.program];
    // (instance, layer, block task) -> task
    std::map<std::tuple<int32_t, int32_t, int32_t>, int32_t> number;
    for (int32_t i = 0; i < static_cast<int32_t>(program.instances.size()); ++i) {
      const Instance& instance = program.instances[i];
      const Block& block = graph_.blocks[instance.block];
      for (int32_t layer = 0; layer < instance.layer_count; ++layer) {
        for (int32_t t = 0; t < block.size(); ++t) {
          ReferenceTask task;
          task.instance = i;
          task.layer = instance.layer_begin + layer;
          task.block_task = t;
          task.stream = static_cast<int32_t>(block.stream[t]);
          task.is_comm = block.kind[t] == TaskKind::kComm;
          task.host_sync = (block.flags[t] & Block::kHostSync) != 0;
          for (int32_t d = block.dep_begin[t]; d < block.dep_begin[t + 1]; ++d) {
            if (block.deps[d] >= 0) {
              task.deps.push_back(number.at({i, layer, block.deps[d]}));
            } else {
              PortTasks(program, i, layer, ~block.deps[d], number, task.deps);
            }
          }
          // What gates the whole instance.
          for (int32_t j = instance.join_begin; j < instance.join_end; ++j) {
            if (program.joins[j].to_port == -1) {
              OutTasks(program, program.joins[j], number, task.deps);
            }
          }
          if (!task.is_comm) {
            KernelSpec kernel = graph_.kernels[block.spec[t]];
            if (kernel.routed && !graph_.skew.axes.empty()) {
              kernel = UnderLoad(kernel, LoadOf(rank));
            }
            const double seconds =
                costs_.Estimate(kernel, machine_.DeviceOf(devices_[rank]))->seconds_alone;
            const double ps = seconds / machine_.ComputeScale(devices_[rank]) * 1e12;
            task.duration_ps = static_cast<int64_t>(std::ceil(ps - ps * 2.3e-16));
            task.launches = std::max(kernel.launches + std::min(kernel.calls, 0), 0);
            task.calls = task.launches > 0 ? std::max(kernel.calls, 0) : 0;
          } else {
            task.meeting = MeetingOf(rank, lowered.program, i, layer, t);
          }
          task.captured = Captured(instance, block);
          task.begins_graph = task.captured && layer == 0 && t == 0 && BeginsGraph(program, i);
          number[{i, layer, t}] = static_cast<int32_t>(lowered.tasks.size());
          lowered.tasks.push_back(std::move(task));
        }
      }
    }
  }

  // CUDA graphs: no meeting, nothing that the host waits for.
  static bool Captured(const Instance& instance, const Block& block) {
    return instance.rendezvous < 0 &&
           std::none_of(block.flags.begin(), block.flags.end(),
                        [](uint8_t flags) { return (flags & Block::kHostSync) != 0; });
  }

  // A graph holds what follows one another in one pass.
  bool BeginsGraph(const Program& program, int32_t i) const {
    if (i == 0) return true;
    const Instance& before = program.instances[i - 1];
    const Instance& here = program.instances[i];
    return !Captured(before, graph_.blocks[before.block]) || before.phase != here.phase ||
           before.micro_batch != here.micro_batch || before.chunk != here.chunk;
  }

  using Numbers = std::map<std::tuple<int32_t, int32_t, int32_t>, int32_t>;

  // The tasks that complete in-port `port` of one layer.
  void PortTasks(const Program& program, int32_t i, int32_t layer, int32_t port,
                 const Numbers& number, std::vector<int32_t>& deps) const {
    const Instance& instance = program.instances[i];
    if (layer > 0) {
      OutTasks(program, i, layer - 1, port, number, deps);
      return;
    }
    for (int32_t j = instance.join_begin; j < instance.join_end; ++j) {
      if (program.joins[j].to_port == port) OutTasks(program, program.joins[j], number, deps);
    }
  }

  void OutTasks(const Program& program, int32_t i, int32_t layer, int32_t port,
                const Numbers& number, std::vector<int32_t>& deps) const {
    const Block& block = graph_.blocks[program.instances[i].block];
    if (port >= static_cast<int32_t>(block.out_ports.size())) return;
    const int32_t task = block.out_ports[port];
    if (task >= 0) {
      deps.push_back(number.at({i, layer, task}));
    } else {
      PortTasks(program, i, layer, ~task, number, deps);
    }
  }

  void OutTasks(const Program& program, const Join& join, const Numbers& number,
                std::vector<int32_t>& deps) const {
    const Instance& from = program.instances[join.from];
    if (join.from_port >= 0) {
      OutTasks(program, join.from, from.layer_count - 1, join.from_port, number, deps);
      return;
    }
    for (int32_t layer = 0; layer < from.layer_count; ++layer) {
      for (int32_t t = 0; t < graph_.blocks[from.block].size(); ++t) {
        deps.push_back(number.at({join.from, layer, t}));
      }
    }
  }

  // Whether two ranks lie in one group of the communication.
  bool SameGroup(const CommSpec& comm, int64_t a, int64_t b, bool across) const {
    if (comm.kind == CollectiveKind::kReshard) return Reached(comm.reshard, a).count(b) > 0;
    if (across && comm.stage_mesh >= 0) {
      // Stages of one shape have groups of their own for each place, others one for all.
      const auto& meshes = graph_.stage_meshes;
      for (const Program& program : graph_.programs) {
        const bool idle = program.instances.empty();
        if (!idle && !(meshes[program.stage_mesh].mesh == meshes[0].mesh)) return true;
      }
      const DeviceMesh& mesh = meshes[0].mesh;
      const int64_t shift_a = meshes[graph_.programs[out_.ranks[a].program].stage_mesh].shift;
      const int64_t shift_b = meshes[graph_.programs[out_.ranks[b].program].stage_mesh].shift;
      for (int axis = 0; axis < mesh.num_axes(); ++axis) {
        const bool joined = std::find(comm.axes.begin(), comm.axes.end(), axis) != comm.axes.end();
        const int64_t at_a = mesh.Coordinate(a - shift_a, axis);
        if (!joined && at_a != mesh.Coordinate(b - shift_b, axis)) return false;
      }
      return true;
    }
    const StageMesh* own = comm.stage_mesh < 0 ? nullptr : &graph_.stage_meshes[comm.stage_mesh];
    const DeviceMesh& mesh = own == nullptr ? graph_.mesh : own->mesh;
    if (own != nullptr) a -= own->shift, b -= own->shift;
    for (int axis = 0; axis < mesh.num_axes(); ++axis) {
      const bool joined = std::find(comm.axes.begin(), comm.axes.end(), axis) != comm.axes.end();
      if (!joined && mesh.Coordinate(a, axis) != mesh.Coordinate(b, axis)) {
        return false;
      }
    }
    return true;
  }

  // The ranks that `rank` sends to or gets from, and these, and so on.
  std::set<int64_t> Reached(int reshard, int64_t rank) const {
    std::set<int64_t> reached = {rank};
    for (size_t before = 0; before != reached.size();) {
      before = reached.size();
      for (const Reshard::Way& way : graph_.reshards[reshard].ways) {
        for (const Reshard::Flow& flow : way.flows) {
          if (reached.count(flow.from) > 0) reached.insert(flow.to);
          if (reached.count(flow.to) > 0) reached.insert(flow.from);
        }
        if (way.after.bytes == 0) continue;
        for (const Reshard::Flow& a : way.flows) {
          for (const Reshard::Flow& b : way.flows) {
            if (reached.count(a.to) > 0 && SameGroup(way.after, a.to, b.to, false)) {
              reached.insert(b.to);
            }
          }
        }
      }
    }
    return reached;
  }

  // The programs that lie like `program` but for the axes of the communication.
  std::set<int32_t> Joined(int32_t program, const CommSpec& comm) const {
    std::set<int32_t> joined;
    const auto& where = graph_.programs[program].where;
    for (size_t p = 0; p < graph_.programs.size(); ++p) {
      bool like = comm.stage_mesh < 0 || static_cast<int32_t>(p) == program;
      for (const auto& [axis, coordinate] : where) {
        if (std::count(comm.axes.begin(), comm.axes.end(), axis) > 0) continue;
        for (const auto& [other_axis, other] : graph_.programs[p].where) {
          if (other_axis == axis && other != coordinate) like = false;
        }
      }
      if (like) joined.insert(static_cast<int32_t>(p));
    }
    return joined;
  }

  int32_t MeetingOf(int64_t rank, int32_t program, int32_t i, int32_t layer, int32_t t) {
    const Instance& instance = graph_.programs[program].instances[i];
    const Block& block = graph_.blocks[instance.block];
    const CommSpec* comm = &graph_.comms[block.spec[t]];
    std::set<int32_t> programs = {program};
    std::vector<int64_t> key;
    int32_t source = -1, spec = block.spec[t];
    if (IsOnHost(comm->kind)) {
      source = comm->kind == CollectiveKind::kCopyToDevice ? INT32_MAX : program;
    }
    if (t == block.rendezvous_task) {
      for (const Rendezvous::Party& party : graph_.rendezvous[instance.rendezvous].parties) {
        programs.insert(party.program);
      }
      for (const Rendezvous::Party& party : graph_.rendezvous[instance.rendezvous].parties) {
        const Block& theirs =
            graph_.blocks[graph_.programs[party.program].instances[party.instance].block];
        const StreamKind stream = theirs.stream[theirs.rendezvous_task];
        if ((comm->kind == CollectiveKind::kSendRecv || comm->kind == CollectiveKind::kReshard) &&
            Sends(stream)) {
          source = party.program;
        }
        if (party.program == (source < 0 ? *programs.begin() : source)) {
          spec = theirs.spec[theirs.rendezvous_task];
        }
      }
      key = {-1, instance.rendezvous, 0, 0};
    } else if (programs = Joined(program, *comm); programs.size() > 1) {
      // One after the other in each stream, whatever else the programs run.
      const int64_t number = come_[{rank, spec, block.stream[t]}]++;
      key = {-2, spec, static_cast<int64_t>(block.stream[t]), number};
    } else {
      key = {program, i, layer, t};
    }
    std::vector<int64_t> members;
    for (int64_t other = 0; other < graph_.mesh.num_devices(); ++other) {
      if (programs.count(out_.ranks[other].program) > 0 &&
          SameGroup(*comm, rank, other, programs.size() > 1)) {
        members.push_back(other);
      }
    }
    key.push_back(members[0]);
    const auto [found, fresh] =
        meetings_.try_emplace(key, static_cast<int32_t>(out_.meetings.size()));
    std::vector<int64_t> use(programs.begin(), programs.end());
    use.insert(use.end(), {source, spec});
    int32_t& priority = priorities_.try_emplace(use, 2).first->second;
    priority = std::min(priority, PriorityOf(block.stream[t]));
    if (fresh) {
      out_.meetings.push_back(MakeMeeting(*comm, members, source));
      use_of_meeting_.push_back(use);
    }
    return found->second;
  }

  static int32_t PriorityOf(StreamKind stream) {
    if (stream == StreamKind::kCompute || stream == StreamKind::kModelComm ||
        stream == StreamKind::kExpertComm) {
      return 0;
    }
    return stream == StreamKind::kGradComm || stream == StreamKind::kReplicaComm ? 2 : 1;
  }

  ReferenceMeeting MakeMeeting(const CommSpec& comm, const std::vector<int64_t>& members,
                               int32_t source) {
    ReferenceMeeting meeting;
    meeting.ranks = members;
    meeting.realised = *realise_(PatternOf(members), comm);
    std::map<int32_t, int64_t> loads;
    for (const LinkLoad& load : meeting.realised.loads) {
      const bool duplex = machine_.link_classes()[load.link_class].duplex;
      std::set<std::tuple<int64_t, int, bool>> crossed;  // (instance, direction, of receivers)
      for (int64_t rank : members) {
        // Links of other sections than the rank's.
        if (!machine_.Serves(load.link_class, devices_[rank])) continue;
        const int64_t instance = machine_.LinkInstance(load.link_class, devices_[rank]);
        const bool sends = source < 0 || out_.ranks[rank].program == source;
        const bool receives = source < 0 || out_.ranks[rank].program != source;
        if (sends) crossed.insert({instance, 0, false});
        if (receives) crossed.insert({instance, 1, source >= 0});
      }
      for (const auto& [instance, direction, receivers] : crossed) {
        const int64_t coefficient =
            receivers && load.to_q20 >= 0 ? load.to_q20 : load.coefficient_q20;
        if (coefficient == 0) continue;
        loads[ResourceOf(load.link_class, instance, duplex ? direction : 0)] += coefficient;
      }
    }
    meeting.loads.assign(loads.begin(), loads.end());
    return meeting;
  }

  GroupPattern PatternOf(const std::vector<int64_t>& ranks) const {
    std::vector<int64_t> members;
    for (int64_t rank : ranks) members.push_back(devices_[rank]);
    std::sort(members.begin(), members.end());
    return GroupPattern::Of(members);
  }

  int32_t ResourceOf(int link_class, int64_t instance, int direction) {
    const auto [found, fresh] =
        links_.resources.try_emplace(std::make_tuple(link_class, instance, direction),
                                     static_cast<int32_t>(links_.capacity.size()));
    if (fresh) {
      links_.capacity.push_back(
          std::max<int64_t>(std::llround(machine_.link_classes()[link_class].bytes_per_s *
                                         machine_.LinkScale(link_class, instance)),
                            1));
    }
    return found->second;
  }

  const ExecutionGraph& graph_;
  const std::vector<int64_t>& devices_;
  const Machine& machine_;
  const KernelCostModel& costs_;
  const CommPricer::RealiseFn& realise_;
  Links& links_;
  ReferenceLowering out_;
  std::map<std::vector<int64_t>, int32_t> meetings_;
  std::map<std::tuple<int64_t, int32_t, StreamKind>, int64_t> come_;  // rank, comm, stream
  std::vector<std::vector<int64_t>> use_of_meeting_;                  // programs, source, spec
  std::map<std::vector<int64_t>, int32_t> priorities_;  // per use, over all its streams
};

}  // namespace

ReferenceLowering LowerReference(const std::vector<ReferenceJob>& jobs, const Machine& machine,
                                 const KernelCostModel& costs) {
  ReferenceLowering all;
  Links links;
  for (const ReferenceJob& job : jobs) {
    ReferenceLowering own = Lowering(job, machine, costs, links).Lower();
    const auto first_rank = static_cast<int64_t>(all.ranks.size());
    const auto first_meeting = static_cast<int32_t>(all.meetings.size());
    for (ReferenceRank& rank : own.ranks) {
      for (ReferenceTask& task : rank.tasks) {
        if (task.is_comm) task.meeting += first_meeting;
      }
      all.ranks.push_back(std::move(rank));
    }
    for (ReferenceMeeting& meeting : own.meetings) {
      for (int64_t& rank : meeting.ranks) rank += first_rank;
      all.meetings.push_back(std::move(meeting));
    }
  }
  all.capacity = links.capacity;
  return all;
}

ReferenceLowering LowerReference(const ExecutionGraph& graph, const Machine& machine,
                                 const KernelCostModel& costs,
                                 const CommPricer::RealiseFn& realise) {
  ReferenceJob job{&graph, {}, realise};
  for (int64_t d = 0; d < graph.mesh.num_devices(); ++d) job.devices.push_back(d);
  ReferenceLowering lowering = LowerReference({job}, machine, costs);
  lowering.overlaps_iterations = graph.overlaps_iterations;
  return lowering;
}

int64_t ReferencePeak(const ExecutionGraph& graph, int32_t program) {
  int64_t live = 0;
  for (int64_t bytes : graph.programs[program].static_bytes) live += bytes;
  int64_t peak = live;
  for (const Instance& instance : graph.programs[program].instances) {
    for (int32_t layer = 0; layer < instance.layer_count; ++layer) {
      for (const MemoryEvent& event : graph.blocks[instance.block].memory) {
        live += event.delta;
        peak = std::max(peak, live);
      }
    }
  }
  return peak;
}

}  // namespace plancast
