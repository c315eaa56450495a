#include <algorithm>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "executor/fold/fold.h"
#include "executor/fold/link_directions.h"

namespace plancast {
namespace {

// The classes of links of one sort: two links are alike if the same programs
// use them, that is, if they agree in the digits along which programs differ.
struct LinkClasses {
  bool one_way = false;             // some one-way message crosses them
  std::vector<int32_t> of_program;  // class that serves a program's devices
  std::vector<int32_t> resource;    // per class, the first of its resources
};

class ClosedForm {
 public:
  ClosedForm(const FoldInput& input, const MixedRadix& radix)
      : input_(input), graph_(input.graph), radix_(radix) {}

  absl::StatusOr<SimGraph> Fold() && {
    AddEntities();
    RETURN_IF_ERROR(PriceUses());
    AddResources();
    AddGroups();
    return std::move(sim_);
  }

 private:
  void AddEntities() {
    fixed_digits_ = 0;
    for (size_t p = 0; p < graph_.programs.size(); ++p) {
      SimGraph::Entity entity;
      entity.program = static_cast<int32_t>(p);
      entity.representative = FirstDevice(graph_, entity.program);
      entity.devices = graph_.mesh.num_devices();
      for (const auto& [axis, coordinate] : graph_.programs[p].where) {
        entity.devices /= graph_.mesh.size(axis);
        fixed_digits_ |= DigitsOf(axis);
      }
      sim_.entities.push_back(entity);
    }
  }

  absl::Status PriceUses() {
    links_.resize(input_.machine.link_classes().size());
    for (const CommUse& use : input_.uses.uses) {
      // Inside a program all groups lie alike; take the one at zero, so that
      // programs share prices. Groups across programs lie where those lie.
      GroupPattern group = use.group;
      if (use.programs.size() == 1) group.base = 0;
      ASSIGN_OR_RETURN(const int32_t realised, input_.comms.Price(use.comm, group));
      realised_.push_back(realised);
      if (!use.one_way()) continue;
      for (const LinkLoad& load : input_.comms.realised()[realised].loads) {
        links_[load.link_class].one_way = true;
      }
    }
    return absl::OkStatus();
  }

  void AddResources() {
    for (size_t l = 0; l < links_.size(); ++l) {
      const int link = static_cast<int>(l);
      LinkClasses& classes = links_[l];
      const LinkDirections directions = DirectionsOf(input_.machine, link, classes.one_way);
      const uint64_t telling = radix_.link_digits[l] & fixed_digits_;
      std::vector<std::pair<int64_t, int32_t>> keys;
      for (size_t p = 0; p < graph_.programs.size(); ++p) {
        keys.emplace_back(ValueOf(telling, sim_.entities[p].representative), p);
      }
      std::sort(keys.begin(), keys.end());
      classes.of_program.resize(graph_.programs.size());
      const int64_t links_per_class = Size(radix_.link_digits[l] & ~fixed_digits_);
      for (size_t i = 0; i < keys.size(); ++i) {
        if (i == 0 || keys[i].first != keys[i - 1].first) {
          classes.resource.push_back(static_cast<int32_t>(sim_.resources.size()));
          for (int direction = 0; direction < (directions.separate ? 2 : 1); ++direction) {
            sim_.resources.push_back({LinkCapacity(input_.machine, link, 1.0), link,
                                      links_per_class, input_.machine.link_classes()[l].reaches});
          }
        }
        classes.of_program[keys[i].second] = static_cast<int32_t>(classes.resource.size()) - 1;
      }
    }
  }

  void AddGroups() {
    for (size_t u = 0; u < input_.uses.uses.size(); ++u) {
      const CommUse& use = input_.uses.uses[u];
      SimGraph::Group group;
      group.use = static_cast<int32_t>(u);
      group.realised = realised_[u];
      group.groups = sim_.entities[use.programs[0]].devices *
                     static_cast<int64_t>(use.programs.size()) / use.group.size();
      group.member_begin = static_cast<int32_t>(sim_.members.size());
      sim_.members.insert(sim_.members.end(), use.programs.begin(), use.programs.end());
      group.member_end = static_cast<int32_t>(sim_.members.size());
      group.load_begin = static_cast<int32_t>(sim_.loads.size());
      uint64_t varied = 0;
      for (int axis : graph_.comms[use.comm].axes) varied |= DigitsOf(axis);
      for (const LinkLoad& load : input_.comms.realised()[realised_[u]].loads) {
        // Groups across one link: the devices behind it that differ in a digit
        // which the group does not vary, programs apart.
        const int64_t crossing =
            Size(~radix_.link_digits[load.link_class] & ~varied & ~fixed_digits_);
        AddLoads(use, load, crossing);
      }
      group.load_end = static_cast<int32_t>(sim_.loads.size());
      sim_.uses.push_back({static_cast<int32_t>(sim_.groups.size()), 1, -1});
      sim_.groups.push_back(group);
    }
  }

  void AddLoads(const CommUse& use, const LinkLoad& load, int64_t crossing) {
    const LinkClasses& classes = links_[load.link_class];
    const LinkDirections directions =
        DirectionsOf(input_.machine, load.link_class, classes.one_way);
    const int64_t coefficient = load.coefficient_q20 * crossing;
    if (use.one_way() && use.programs.size() == 1) {
      const int32_t own = classes.resource[classes.of_program[use.programs[0]]];
      const bool receives = use.source == CommUse::kHost && directions.separate;
      sim_.loads.push_back({own + (receives ? 1 : 0), coefficient});
      return;
    }
    if (use.one_way()) {
      const int32_t target = use.programs[0] == use.source ? use.programs[1] : use.programs[0];
      const int32_t from = classes.resource[classes.of_program[use.source]];
      const int32_t to = classes.resource[classes.of_program[target]];
      if (!directions.separate && from == to) {
        sim_.loads.push_back({from, 2 * coefficient});
        return;
      }
      sim_.loads.push_back({from, coefficient});
      sim_.loads.push_back({to + (directions.separate ? 1 : 0), coefficient});
      return;
    }
    reached_.clear();
    for (int32_t program : use.programs) reached_.push_back(classes.of_program[program]);
    std::sort(reached_.begin(), reached_.end());
    reached_.erase(std::unique(reached_.begin(), reached_.end()), reached_.end());
    for (int32_t reached : reached_) {
      const int32_t resource = classes.resource[reached];
      sim_.loads.push_back({resource, directions.both_ways * coefficient});
      if (directions.separate) sim_.loads.push_back({resource + 1, coefficient});
    }
  }

  uint64_t DigitsOf(int axis) const {
    uint64_t mask = 0;
    for (size_t d = 0; d < radix_.digits.size(); ++d) {
      if (radix_.digits[d].axis == axis) mask |= uint64_t{1} << d;
    }
    return mask;
  }

  // How many numbers differ only in these digits.
  int64_t Size(uint64_t mask) const {
    int64_t size = 1;
    for (size_t d = 0; d < radix_.digits.size(); ++d) {
      if ((mask >> d & 1) != 0) size *= radix_.digits[d].size;
    }
    return size;
  }

  // The part of a device's number in these digits.
  int64_t ValueOf(uint64_t mask, int64_t device) const {
    int64_t value = 0;
    for (size_t d = 0; d < radix_.digits.size(); ++d) {
      if ((mask >> d & 1) != 0) {
        value += radix_.ValueOf(static_cast<int>(d), device) * radix_.digits[d].stride;
      }
    }
    return value;
  }

  const FoldInput& input_;
  const ExecutionGraph& graph_;
  const MixedRadix& radix_;
  SimGraph sim_;
  uint64_t fixed_digits_ = 0;  // along which programs differ
  std::vector<int32_t> realised_;
  std::vector<LinkClasses> links_;
  std::vector<int32_t> reached_;
};

}  // namespace

absl::StatusOr<SimGraph> FoldInClosedForm(const FoldInput& input, const MixedRadix& radix) {
  return ClosedForm(input, radix).Fold();
}

}  // namespace plancast
