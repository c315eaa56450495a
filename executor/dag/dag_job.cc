#include "executor/dag/dag_job.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "absl/strings/str_cat.h"

namespace plancast {
namespace {

constexpr int32_t kNotKnown = -2;

}  // namespace

void RankDag::Add(DagTask task, const std::vector<int32_t>& waits_for) {
  tasks.push_back(task);
  deps.insert(deps.end(), waits_for.begin(), waits_for.end());
  dep_begin.push_back(static_cast<int32_t>(deps.size()));
}

void RankDag::Waiting(std::vector<int32_t>& begin, std::vector<int32_t>& waiting) const {
  const size_t n = tasks.size();
  begin.assign(n + 1, 0);
  for (const int32_t dep : deps) ++begin[dep + 1];
  for (size_t i = 0; i < n; ++i) begin[i + 1] += begin[i];
  waiting.resize(deps.size());
  std::vector<int32_t> cursor(begin.begin(), begin.end() - 1);
  for (size_t i = 0; i < n; ++i) {
    for (int32_t d = dep_begin[i]; d < dep_begin[i + 1]; ++d) {
      waiting[cursor[deps[d]]++] = static_cast<int32_t>(i);
    }
  }
}

std::vector<int32_t> RankDag::Order() const {
  std::vector<int32_t> begin, waiting, left(tasks.size()), order;
  Waiting(begin, waiting);
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
  for (size_t i = 0; i < tasks.size(); ++i) {
    left[i] = dep_begin[i + 1] - dep_begin[i];
    if (left[i] == 0) ready.push(static_cast<int32_t>(i));
  }
  while (!ready.empty()) {
    const int32_t task = ready.top();
    ready.pop();
    order.push_back(task);
    for (int32_t w = begin[task]; w < begin[task + 1]; ++w) {
      if (--left[waiting[w]] == 0) ready.push(waiting[w]);
    }
  }
  return order;
}

absl::Status DagJob::Verify() const {
  const auto ranks = static_cast<int64_t>(dag_of.size());
  if (ranks == 0) return absl::InvalidArgumentError("the job has no ranks");
  for (const int32_t dag : dag_of) {
    if (dag < 0 || dag >= static_cast<int32_t>(dags.size())) {
      return absl::InvalidArgumentError("a rank has no tasks");
    }
  }
  for (const auto& group : groups) {
    if (group.empty() || group.front() < 0 || group.back() >= ranks ||
        !std::is_sorted(group.begin(), group.end(), std::less_equal<>())) {
      return absl::InvalidArgumentError("a group must list different ranks of the job, ascending");
    }
  }
  for (const CommQueue& queue : queues) {
    if (queue.credit_bytes < 1) {
      return absl::InvalidArgumentError("a queue must have a credit of at least one byte");
    }
  }
  std::vector<int32_t> queue_of(groups.size(), kNotKnown);
  for (const RankDag& dag : dags) {
    for (const int32_t dep : dag.deps) {
      if (dep < 0 || dep >= static_cast<int32_t>(dag.tasks.size())) {
        return absl::InvalidArgumentError("a task waits for one that is not there");
      }
    }
    for (const DagTask& task : dag.tasks) {
      const bool message = task.kind == DagTask::Kind::kSend || task.kind == DagTask::Kind::kRecv;
      if (task.duration_ps < 0 || task.bytes < 0 || (message && task.bytes < 1) ||
          (message && (task.peer < 0 || task.peer >= ranks)) ||
          (task.kind == DagTask::Kind::kCollective &&
           (task.group < 0 || task.group >= static_cast<int32_t>(groups.size())))) {
        return absl::InvalidArgumentError(
            absl::StrCat("task ", task.id, " has no valid size, peer or group"));
      }
      if (task.queue < -1 || task.queue >= static_cast<int32_t>(queues.size()) ||
          task.overhead_ps < 0 || task.takes_ps < -1) {
        return absl::InvalidArgumentError(
            absl::StrCat("task ", task.id, " has no valid queue or time"));
      }
      if (task.kind != DagTask::Kind::kCollective) continue;
      int32_t& queue = queue_of[task.group];
      if (queue == kNotKnown) queue = task.queue;
      if (queue != task.queue) {
        return absl::InvalidArgumentError(absl::StrCat(
            "task ", task.id, ": all collectives of a group must take turns in one queue"));
      }
    }
    if (dag.Order().size() != dag.tasks.size()) {
      return absl::InvalidArgumentError("tasks wait for each other in a circle");
    }
  }
  return absl::OkStatus();
}

}  // namespace plancast
