#ifndef PLANCAST_EXECUTOR_DAG_DAG_JOB_H_
#define PLANCAST_EXECUTOR_DAG_DAG_JOB_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "graph/collective_kind.h"

namespace plancast {

// One thing a rank does, once all that it waits for is done.
struct DagTask {
  enum class Kind : uint8_t { kNothing, kHost, kKernel, kCollective, kSend, kRecv };
  Kind kind = Kind::kNothing;
  uint64_t id = 0;          // for errors
  int64_t duration_ps = 0;  // of kHost, kKernel
  CollectiveKind collective = CollectiveKind::kAllReduce;
  int64_t bytes = 0;  // of communication, in the unit of CollectiveKind
  int32_t group = 0;  // into DagJob::groups
  int64_t peer = 0;   // of kSend, kRecv: a rank
  int64_t tag = 0;
  // Of a collective or a send: takes its turn in this one of DagJob::queues, which every group and
  // every sender has for itself; -1: collectives of a group begin in order, messages at once.
  int32_t queue = -1;
  int32_t priority = 0;     // in a queue, the lowest first; below 0: at once, whatever is in flight
  int64_t overhead_ps = 0;  // before its bytes flow, beside what the machine says
  int64_t takes_ps = -1;  // what it takes after that, where it is known; -1: what the machine says
};

// A queue of communications. What waits in it begins as long as the bytes in flight are fewer than
// the credit, so that they are never more than the credit and one communication.
struct CommQueue {
  bool by_priority = false;   // else first come, first served
  int64_t credit_bytes = 1;   // 1: one at a time
  bool per_receiver = false;  // of messages: a sender has one for each receiver
};

// Tasks in the order in which a rank takes them up when several are free.
struct RankDag {
  std::vector<DagTask> tasks;
  std::vector<int32_t> dep_begin = {0};  // CSR, size tasks + 1
  std::vector<int32_t> deps;             // into tasks

  void Add(DagTask task, const std::vector<int32_t>& waits_for = {});
  // Those that wait for each task, as CSR.
  void Waiting(std::vector<int32_t>& begin, std::vector<int32_t>& waiting) const;
  // An order that keeps dependencies, the lowest index first; shorter than the tasks
  // if some wait in a circle.
  std::vector<int32_t> Order() const;
};

// What each rank of a job runs, without the regularity of a plan: an imported
// trace. Rank r is device r of the machine; ranks with equal tasks share a dag.
struct DagJob {
  std::vector<RankDag> dags;
  std::vector<int32_t> dag_of;               // by rank
  std::vector<std::vector<int64_t>> groups;  // ranks, ascending
  std::vector<CommQueue> queues = {};
  // A send goes without waiting for its receive, and is done when its bytes are across.
  bool buffered_sends = false;

  absl::Status Verify() const;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_DAG_DAG_JOB_H_
