#ifndef PLANCAST_TESTS_PLANNER_LANGUAGE_RANDOM_JOB_H_
#define PLANCAST_TESTS_PLANNER_LANGUAGE_RANDOM_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/machine.h"
#include "executor/simulate/simulate.h"
#include "planner/forecast/job.h"

namespace plancast {

// A small job over the whole strategy language, as a user would say it: a transformer (with
// experts, windows, latent attention) or a graph of any ops; a plan; a tree with nodes that split,
// recompute, home, bucket, freeze, adapt; stages that begin anywhere, with meshes and devices of
// their own; any switches of the software. Jobs that contradict themselves are among them.
struct RandomJob {
  Job job;
  int64_t devices = 1;
  int64_t samples = 1;  // of a micro-batch, on all ranks of a stage
  // Of one kind or of several, which the mesh may fit badly, with that many devices or more.
  Machine::Spec machine;
  HostParams host;
  // Slow-down of kernels alongside communications and of these alongside kernels.
  double interference = 0, comm_interference = 0;

  std::vector<std::string> rules;  // of a graph of any ops
  bool cuts_by_hand = false;       // nodes split
  // On one line.
  std::string DebugString() const;
};

// `micro_batches`: so many on each rank; 0: a few.
RandomJob DrawJob(uint32_t seed, int64_t micro_batches = 0);

}  // namespace plancast

#endif  // PLANCAST_TESTS_PLANNER_LANGUAGE_RANDOM_JOB_H_
