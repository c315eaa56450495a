#include "executor/jobs/joint_fold.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/status_macros.h"
#include "executor/fold/blocks.h"

namespace plancast {
namespace {

class Drawer {
 public:
  explicit Drawer(const JointFoldInput& input)
      : in_(input), machine_(input.machine), period_(PeriodOf(input.machine)) {}

  absl::StatusOr<JointFold> Draw() && {
    out_.graph.num_uses = static_cast<int32_t>(in_.merged.uses.uses.size());
    out_.graph.one_way.resize(machine_.link_classes().size());
    for (size_t j = 0; j < in_.jobs.size(); ++j) {
      job_ = j;
      RETURN_IF_ERROR(DrawJob());
    }
    return std::move(out_);
  }

 private:
  const PlacedJob& job() const { return *in_.jobs[job_]; }
  const ExecutionGraph& graph() const { return *job().graph; }

  absl::Status DrawJob() {
    const JobOffsets& at = in_.merged.offsets[job_];
    first_device_ = static_cast<int32_t>(out_.graph.devices.size());
    program_of_.clear();
    for (size_t d = 0; d < job().devices.size(); ++d) {
      program_of_.push_back(ProgramOf(graph(), static_cast<int64_t>(d)));
      const int64_t device = job().devices[d];
      out_.graph.devices.push_back(
          {at.program + program_of_.back(), machine_.ComputeScale(device), 1, device});
    }
    const auto first_group = out_.graph.groups.size();
    for (std::vector<int32_t>& uses : UsesByGroups(graph(), in_.uses[job_])) {
      RETURN_IF_ERROR(DrawGrouping(std::move(uses)));
    }
    // Outcomes are numbered job after job.
    const auto known = static_cast<int32_t>(out_.realised.size());
    for (size_t g = first_group; g < out_.graph.groups.size(); ++g) {
      for (int32_t& realised : out_.graph.groups[g].realised) realised += known;
    }
    const std::vector<RealisedCollective>& realised = in_.pricers[job_].realised();
    out_.realised.insert(out_.realised.end(), realised.begin(), realised.end());
    return absl::OkStatus();
  }

  absl::Status DrawGrouping(std::vector<int32_t> uses) {
    const CommUse& sample = in_.uses[job_].uses[uses[0]];
    FoldGraph::Grouping grouping;
    grouping.group_begin = static_cast<int32_t>(out_.graph.groups.size());
    out_.graph.groupings.push_back(grouping);
    std::map<GroupKey, std::vector<int32_t>> known;  // lie on the machine -> outcomes
    for (const GroupPattern& group : GroupsOf(graph(), sample)) {
      RETURN_IF_ERROR(DrawGroup(uses, sample, group, known));
    }
    out_.graph.groupings.back().group_end = static_cast<int32_t>(out_.graph.groups.size());
    for (int32_t& use : uses) use += in_.merged.offsets[job_].use;
    out_.graph.groupings.back().uses = std::move(uses);
    return absl::OkStatus();
  }

  // A group shifted to the first period of the machine.
  using GroupKey = std::vector<int64_t>;

  absl::Status DrawGroup(const std::vector<int32_t>& uses, const CommUse& sample,
                         const GroupPattern& pattern,
                         std::map<GroupKey, std::vector<int32_t>>& known) {
    const std::vector<int64_t> members = pattern.Members();
    const auto grouping = static_cast<int32_t>(out_.graph.groupings.size()) - 1;
    const auto number = static_cast<int32_t>(out_.graph.groups.size());
    GroupKey key;
    for (int64_t member : members) {
      out_.graph.edges.push_back({grouping, number, FoldGraph::kMember,
                                  first_device_ + static_cast<int32_t>(member), 1, 1});
      key.push_back(job().devices[member]);
    }
    std::sort(key.begin(), key.end());
    // What a reshard sends depends on which devices these are.
    const bool reshards = graph().comms[sample.comm].reshard >= 0;
    const int64_t shift = reshards ? 0 : key[0] / period_ * period_;
    for (int64_t& device : key) device -= shift;
    const auto [found, fresh] = known.try_emplace(std::move(key));
    if (fresh) {
      const GroupPattern placed = GroupPattern::Of(found->first);
      for (int32_t u : uses) {
        ASSIGN_OR_RETURN(const int32_t realised,
                         in_.pricers[job_].Price(in_.uses[job_].uses[u].comm, placed));
        found->second.push_back(realised);
      }
    }
    out_.graph.groups.push_back({1, found->second});
    DrawCrossings(found->second, members, sample.source, grouping, number);
    return absl::OkStatus();
  }

  void DrawCrossings(const std::vector<int32_t>& outcomes, const std::vector<int64_t>& members,
                     int32_t source, int32_t grouping, int32_t number) {
    std::vector<bool> loaded(machine_.link_classes().size());
    for (int32_t realised : outcomes) {
      for (const LinkLoad& load : in_.pricers[job_].realised()[realised].loads) {
        loaded[load.link_class] = true;
      }
    }
    std::vector<std::pair<int32_t, FoldGraph::Role>> crossed;
    for (int link_class = 0; link_class < static_cast<int>(loaded.size()); ++link_class) {
      if (!loaded[link_class]) continue;
      if (source >= 0) out_.graph.one_way[link_class] = true;
      for (int64_t member : members) {
        const FoldGraph::Role role = source < 0                      ? FoldGraph::kBoth
                                     : program_of_[member] == source ? FoldGraph::kFrom
                                                                     : FoldGraph::kTo;
        crossed.emplace_back(LinkAt(link_class, job().devices[member]), role);
      }
    }
    std::sort(crossed.begin(), crossed.end());
    crossed.erase(std::unique(crossed.begin(), crossed.end()), crossed.end());
    for (const auto& [link, role] : crossed) {
      out_.graph.edges.push_back({grouping, number, role, link, 1, 1});
    }
  }

  int32_t LinkAt(int link_class, int64_t device) {
    const int64_t instance = machine_.LinkInstance(link_class, device);
    const auto [found, fresh] = links_.try_emplace(std::make_pair(link_class, instance),
                                                   static_cast<int32_t>(out_.graph.links.size()));
    if (fresh) {
      out_.graph.links.push_back({link_class, machine_.LinkScale(link_class, instance), 1});
    }
    return found->second;
  }

  const JointFoldInput& in_;
  const Machine& machine_;
  const int64_t period_;
  JointFold out_;
  size_t job_ = 0;
  int32_t first_device_ = 0;
  std::vector<int32_t> program_of_;  // per device of the job
  absl::flat_hash_map<std::pair<int, int64_t>, int32_t> links_;
};

}  // namespace

absl::StatusOr<JointFold> DrawJointly(const JointFoldInput& input) { return Drawer(input).Draw(); }

}  // namespace plancast
