#include "executor/jobs/merge.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

JobOffsets EndOf(const MergedJobs& merged) {
  JobOffsets end;
  end.program = static_cast<int32_t>(merged.graph.programs.size());
  end.kernel = static_cast<int32_t>(merged.graph.kernels.size());
  end.comm = static_cast<int32_t>(merged.graph.comms.size());
  end.block = static_cast<int32_t>(merged.graph.blocks.size());
  end.rendezvous = static_cast<int32_t>(merged.graph.rendezvous.size());
  end.use = static_cast<int32_t>(merged.uses.uses.size());
  return end;
}

void AppendGraph(const PlacedJob& job, const JobOffsets& at, ExecutionGraph& to) {
  const ExecutionGraph& from = *job.graph;
  to.kernels.insert(to.kernels.end(), from.kernels.begin(), from.kernels.end());
  for (CommSpec comm : from.comms) {  // whose groups and prices are the job's own
    comm.stage_mesh = -1;
    to.comms.push_back(std::move(comm));
  }
  for (Block block : from.blocks) {
    for (int32_t t = 0; t < block.size(); ++t) {
      block.spec[t] += block.kind[t] == TaskKind::kComm ? at.comm : at.kernel;
    }
    to.blocks.push_back(std::move(block));
  }
  for (Program program : from.programs) {
    program.name = absl::StrCat(job.name, "/", program.name);
    program.where.clear();
    program.stage_mesh = -1;
    for (Instance& instance : program.instances) {
      instance.block += at.block;
      if (instance.rendezvous >= 0) instance.rendezvous += at.rendezvous;
    }
    to.programs.push_back(std::move(program));
  }
  for (Rendezvous rendezvous : from.rendezvous) {
    for (Rendezvous::Party& party : rendezvous.parties) party.program += at.program;
    to.rendezvous.push_back(std::move(rendezvous));
  }
}

void AppendUses(const CommUses& from, const JobOffsets& at, CommUses& to) {
  for (CommUse use : from.uses) {
    use.comm += at.comm;
    for (int32_t& program : use.programs) program += at.program;
    if (use.one_way() && use.source != CommUse::kHost) use.source += at.program;
    to.uses.push_back(std::move(use));
  }
  for (int32_t use : from.of_rendezvous) to.of_rendezvous.push_back(use + at.use);
}

}  // namespace

MergedJobs Merge(absl::Span<const PlacedJob* const> jobs, absl::Span<const CommUses> uses) {
  MergedJobs merged;
  for (size_t j = 0; j < jobs.size(); ++j) {
    const JobOffsets at = EndOf(merged);
    merged.offsets.push_back(at);
    AppendGraph(*jobs[j], at, merged.graph);
    AppendUses(uses[j], at, merged.uses);
  }
  merged.offsets.push_back(EndOf(merged));
  const int32_t comms = merged.offsets.back().comm;
  merged.uses.num_comms = comms;
  merged.uses.of_comm.assign(static_cast<size_t>(merged.offsets.back().program) * comms, -1);
  for (size_t j = 0; j < jobs.size(); ++j) {
    const JobOffsets& at = merged.offsets[j];
    for (int32_t p = 0; p < static_cast<int32_t>(jobs[j]->graph->programs.size()); ++p) {
      for (int32_t c = 0; c < uses[j].num_comms; ++c) {
        const int32_t use = uses[j].OfComm(p, c);
        if (use < 0) continue;
        merged.uses.of_comm[static_cast<size_t>(at.program + p) * comms + at.comm + c] =
            at.use + use;
      }
    }
  }
  return merged;
}

}  // namespace plancast
