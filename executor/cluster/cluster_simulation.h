#ifndef PLANCAST_EXECUTOR_CLUSTER_CLUSTER_SIMULATION_H_
#define PLANCAST_EXECUTOR_CLUSTER_CLUSTER_SIMULATION_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "executor/cluster/competition.h"
#include "executor/cluster/free_gpus.h"
#include "executor/cluster/priorities.h"
#include "executor/cluster/routes.h"
#include "executor/cluster/simulate_cluster.h"
#include "executor/cluster/steady_run.h"

namespace plancast {

// SimulateCluster() in steps: between two changes it can stop, be saved, and go on in another
// process as if nothing had happened.
class ClusterSimulation {
 public:
  // All outlive it. Jobs are checked (CheckJob).
  ClusterSimulation(const Fabric& fabric, absl::Span<const ClusterJob> jobs,
                    const ClusterOptions& options);

  // Goes on until all is over (true), or `pauses` is true between two changes (false).
  absl::StatusOr<bool> Run(const std::function<bool()>& pauses);
  // Once all is over.
  ClusterOutcome TakeOutcome();

  // How it stands after a pause, bit for bit.
  std::string Save();
  // In place of the beginning, what Save() gave of the same fabric, jobs and options.
  absl::Status Restore(absl::string_view saved);

  struct Running {
    PlacedLoop placed;
    LoopState state;
    int64_t counted = 0;               // iterations whose bytes are in link_bytes_
    bool runs = false, moved = false;  // `moved`: has other paths than in its group
  };
  // Jobs that compete, since something changed among them.
  struct Group {
    std::vector<int32_t> members;  // ascending
    std::vector<int32_t> levels;   // of priority
    int64_t since = 0;
    std::unique_ptr<SteadyRun> run;
  };

 private:
  static constexpr int64_t kNever = Fluid::kNever;

  absl::Status RunsTooLong() const;
  int64_t NextEnd() const;
  bool strict() const { return options_.sharing == ClusterSharing::kStrict; }
  bool by_intensity() const {
    return (strict() && options_.order != ClusterOrder::kGiven) ||
           options_.paths == PathChoice::kIntensity;
  }

  // Jobs.
  void FindReference();
  const Loop& ReferenceLoop();
  absl::Status StartJobs();
  absl::Status CheckFree(const ClusterJob& job) const;
  absl::Status StartJob(int32_t j, std::vector<int64_t> gpus);
  void EndJob(int32_t j);
  void CountBytes(int32_t j);
  double PriorityOf(int32_t j) const { return out_.jobs[j].intensity * out_.jobs[j].correction; }
  void SortByPriority(std::vector<int32_t>* jobs) const;
  void ChooseAllPaths();

  // Groups.
  void Retire(const std::function<bool(const Group&)>& which);
  void Regroup();
  std::vector<int32_t> LevelsOf(const std::vector<int32_t>& members);
  std::vector<CompetingPair> PairsOf(const std::vector<int32_t>& order) const;
  void Begin(Group group);
  std::unique_ptr<SteadyRun> RunOf(const Group& group);

  // What is told.
  void Note(const Group& group, const LoopSet& set);
  void NotePeriod(const Group& group, const SteadyRun::Period& period);
  void Finish();

  // State.
  template <typename Archive>
  void AllFields(Archive& archive);
  bool IsSound() const;

  const Fabric& fabric_;
  const absl::Span<const ClusterJob> jobs_;
  const ClusterOptions& options_;
  FreeGpus free_;
  Routes routes_;
  int64_t now_ = 0;
  std::vector<int32_t> arrivals_;  // all jobs by arrival
  int64_t next_ = 0;               // of these, the next to arrive
  int32_t reference_ = 0;
  Loop reference_loop_;
  std::vector<Running> running_;
  std::vector<int32_t> now_running_;
  std::deque<int32_t> queue_;
  std::vector<Group> groups_;
  std::vector<std::pair<int32_t, PlacedLoop>> moves_;  // none between two changes
  std::vector<double> link_bytes_;
  std::vector<int32_t> link_jobs_;
  Competition competition_;
  std::map<std::array<int32_t, 3>, double> waits_;
  double off_by_ = 0, off_by_time_ = 0;
  ClusterOutcome out_;
};

}  // namespace plancast

#endif  // PLANCAST_EXECUTOR_CLUSTER_CLUSTER_SIMULATION_H_
