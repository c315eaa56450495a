#ifndef PLANCAST_TESTS_GRAPH_RESHARD_SIMULATOR_H_
#define PLANCAST_TESTS_GRAPH_RESHARD_SIMULATOR_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/layout/redistribution.h"
#include "graph/layout/reshard.h"
#include "tests/graph/relayout_simulator.h"

namespace plancast {

inline std::string ReshardText(const ReshardProblem& problem,
                               const ReshardProgram* program = nullptr) {
  const auto side = [](const ReshardSide& s) {
    return absl::StrCat(s.mesh.DebugString(), " from ", s.first_device, " ",
                        s.layout.DebugString(s.mesh));
  };
  return absl::StrCat("[", absl::StrJoin(problem.shape, ", "), "] ", side(problem.source), " -> ",
                      side(problem.target), "\n", program ? program->DebugString() : "");
}

// Moves elements, numbers of a prime field, between the devices of two meshes as programs say.
class ReshardSimulator {
 public:
  explicit ReshardSimulator(const ReshardProblem& problem) : problem_(problem) {
    whole_ = Array<Field>::Empty(problem.shape);
    for (size_t e = 0; e < whole_.values.size(); ++e) {
      whole_.values[e] = Field::FromHash(Mix(e + 1));
    }
    Fill(problem.source, &sources_);
    targets_.assign(problem.target.mesh.num_devices(), Array<Field>::Empty(problem.shape));
    // What a device of both meshes has of its new part.
    for (size_t t = 0; t < targets_.size(); ++t) {
      const int64_t s = SourceDevice(static_cast<int64_t>(t));
      if (s < 0) continue;
      Visit(
          LocalIndices(problem.source.mesh, problem.shape, problem.source.layout.WithoutHalos(), s),
          [&](int64_t e) { Put(&targets_[t], e, whole_.values[e]); });
      DropAllBut(problem.target, static_cast<int64_t>(t));
    }
    for (const Array<Field>& target : targets_) kept_.push_back(Count(target));
  }

  // "" or what is wrong.
  std::string Run(const ReshardProgram& program) {
    std::string wrong;
    std::vector<std::vector<int64_t>> direct(targets_.size());  // elements that came in messages
    int64_t elements = 0, messages = 0;
    program.transfers.ForEach([&](const Transfer& t) {
      ++messages;
      elements += t.elements;
      int64_t moved = 0;
      Visit(program.transfers.Box(t.source, t.target), [&](int64_t e) {
        ++moved;
        if (!sources_[t.source].present[e]) wrong = "the sender does not hold an element";
        if (targets_[t.target].present[e]) wrong = "an element comes twice";
        Put(&targets_[t.target], e, sources_[t.source].values[e]);
        direct[t.target].push_back(e);
      });
      if (moved != t.elements || moved == 0) wrong = "a message has another size";
      if (SourceDevice(t.target) == t.source) wrong = "a device sends to itself";
    });
    if (elements != program.crossing() || messages != program.transfers.messages()) {
      wrong = "the totals are others";
    }
    std::vector<ReshardTraffic> traffic(targets_.size());
    for (size_t t = 0; t < targets_.size(); ++t) {
      traffic[t].received = static_cast<int64_t>(direct[t].size());
    }
    for (const RelayoutStep& step : program.after) {
      if (std::string text = PassOn(step, direct, &traffic); !text.empty()) wrong = text;
    }
    for (size_t t = 0; t < targets_.size(); ++t) {
      const ReshardTraffic said = program.TargetTraffic(static_cast<int64_t>(t));
      if (said.sent != traffic[t].sent || said.received != traffic[t].received) {
        wrong = absl::StrCat("device ", t, " sends ", traffic[t].sent, ", receives ",
                             traffic[t].received, "; said: ", said.sent, ", ", said.received);
      }
      // Exactly what it lacks.
      if (traffic[t].received != Wanted(static_cast<int64_t>(t)) - kept_[t]) {
        wrong = "a device does not receive what it lacks";
      }
    }
    return wrong.empty() ? Check() : wrong;
  }

  int64_t Wanted(int64_t target) const {
    int64_t elements = 1;
    for (const IndexSet& set :
         LocalIndices(problem_.target.mesh, problem_.shape, problem_.target.layout, target)) {
      elements *= CountOf(set);
    }
    return elements;
  }
  int64_t Kept() const {
    int64_t kept = 0;
    for (const int64_t k : kept_) kept += k;
    return kept;
  }

 private:
  template <typename Visitor>
  void Visit(const std::vector<IndexSet>& sets, const Visitor& visit) const {
    ForEachIndex(problem_.shape, sets, [&](const std::vector<int64_t>&, int64_t e) { visit(e); });
  }
  static void Put(Array<Field>* array, int64_t e, Field value) {
    array->values[e] = value;
    array->present[e] = true;
  }
  static int64_t Count(const Array<Field>& array) {
    return std::count(array.present.begin(), array.present.end(), true);
  }
  int64_t SourceDevice(int64_t target) const {
    const int64_t s = target + problem_.target.first_device - problem_.source.first_device;
    return s >= 0 && s < problem_.source.mesh.num_devices() ? s : -1;
  }
  void Fill(const ReshardSide& side, std::vector<Array<Field>>* devices) const {
    devices->assign(side.mesh.num_devices(), Array<Field>::Empty(problem_.shape));
    for (size_t d = 0; d < devices->size(); ++d) {
      Visit(LocalIndices(side.mesh, problem_.shape, side.layout, static_cast<int64_t>(d)),
            [&](int64_t e) { Put(&(*devices)[d], e, whole_.values[e]); });
    }
  }
  void DropAllBut(const ReshardSide& side, int64_t device) {
    std::vector<bool> kept(whole_.values.size(), false);
    Visit(LocalIndices(side.mesh, problem_.shape, side.layout, device),
          [&](int64_t e) { kept[e] = targets_[device].present[e]; });
    targets_[device].present = kept;
  }

  // What each device of a group received goes round the ring of the group.
  std::string PassOn(const RelayoutStep& step, const std::vector<std::vector<int64_t>>& direct,
                     std::vector<ReshardTraffic>* traffic) {
    std::string wrong;
    int64_t largest = 0, most = 0;
    for (const std::vector<int>& group : GroupsAlong(problem_.target.mesh, step.axes)) {
      for (size_t origin = 0; origin < group.size(); ++origin) {
        const int64_t size = static_cast<int64_t>(direct[group[origin]].size());
        for (size_t hop = 1; hop < group.size(); ++hop) {
          const int from = group[(origin + hop - 1) % group.size()];
          const int to = group[(origin + hop) % group.size()];
          (*traffic)[from].sent += size;
          (*traffic)[to].received += size;
          for (const int64_t e : direct[group[origin]]) {
            if (targets_[to].present[e]) wrong = "an element is gathered twice";
            Put(&targets_[to], e, targets_[from].values[e]);
          }
        }
      }
      for (const int d : group) {
        largest = std::max(largest, Wanted(d));
        most = std::max(most, Wanted(d) - static_cast<int64_t>(direct[d].size()));
      }
    }
    if (step.elements != largest || step.received != most) wrong = "the collective has other sizes";
    return wrong;
  }

  std::string Check() const {
    std::vector<Array<Field>> expected;
    Fill(problem_.target, &expected);
    for (size_t t = 0; t < targets_.size(); ++t) {
      if (targets_[t].present != expected[t].present) return "a device has the wrong part";
      for (size_t e = 0; e < whole_.values.size(); ++e) {
        if (expected[t].present[e] && targets_[t].values[e] != whole_.values[e]) {
          return "a value is wrong";
        }
      }
    }
    return "";
  }

  const ReshardProblem problem_;
  Array<Field> whole_;
  std::vector<Array<Field>> sources_, targets_;
  std::vector<int64_t> kept_;
};

}  // namespace plancast

#endif  // PLANCAST_TESTS_GRAPH_RESHARD_SIMULATOR_H_
