#include "interop/timeline/pair_events.h"

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace plancast {
namespace {

class Pairer {
 public:
  Pairer(const std::vector<TraceEvent>& events, TraceProblems& problems)
      : events_(events), problems_(problems) {}

  std::vector<PairedEvents> Run() {
    std::vector<int32_t> synchronous;
    for (int32_t i = 0; i < static_cast<int32_t>(events_.size()); ++i) {
      switch (events_[i].phase) {
        case 'X':
        case 'i':
        case 'I':
        case 'n':
          pairs_.push_back({i, i});
          break;
        case 'B':
        case 'E':
          synchronous.push_back(i);
          break;
        case 'b':
          Open(AsyncKey(events_[i], true), AsyncKey(events_[i], false), i);
          break;
        case 'e':
          Close(AsyncKey(events_[i], !events_[i].name.empty()), i);
          break;
        default:
          break;
      }
    }
    std::stable_sort(synchronous.begin(), synchronous.end(), [&](int32_t a, int32_t b) {
      return events_[a].start_ps < events_[b].start_ps;
    });
    for (int32_t i : synchronous) {
      const std::string key = absl::StrCat("B", Part(events_[i].process), Part(events_[i].thread));
      events_[i].phase == 'B' ? Open(key, "", i) : Close(key, i);
    }
    std::sort(pairs_.begin(), pairs_.end(),
              [](const PairedEvents& a, const PairedEvents& b) { return a.first() < b.first(); });
    Report();
    return std::move(pairs_);
  }

 private:
  static std::string Part(absl::string_view text) { return absl::StrCat(text.size(), ":", text); }

  static std::string AsyncKey(const TraceEvent& event, bool named) {
    return absl::StrCat(named ? "n" : "a", Part(event.process), Part(event.category),
                        Part(event.id), Part(event.scope), named ? event.name : "");
  }

  void Open(const std::string& key, const std::string& also, int32_t event) {
    const auto pair = static_cast<int32_t>(pairs_.size());
    pairs_.push_back({event, -1});
    open_[key].push_back(pair);
    if (!also.empty()) open_[also].push_back(pair);
  }

  void Close(const std::string& key, int32_t event) {
    const auto found = open_.find(key);
    if (found != open_.end()) {
      std::vector<int32_t>& stack = found->second;
      // Some were closed by their other key.
      while (!stack.empty() && pairs_[stack.back()].end >= 0) stack.pop_back();
      if (!stack.empty()) {
        pairs_[stack.back()].end = event;
        stack.pop_back();
        return;
      }
    }
    pairs_.push_back({-1, event});
  }

  void Report() {
    for (const PairedEvents& pair : pairs_) {
      if (pair.begin >= 0 && pair.end >= 0) continue;
      const TraceEvent& event = events_[pair.first()];
      problems_.Add(
          event.line,
          absl::StrCat("`", event.name.substr(0, 60), "`",
                       event.id.empty() ? "" : absl::StrCat(" (id ", event.id, ")"),
                       pair.end < 0 ? " begins and does not end" : " ends and did not begin"));
    }
  }

  const std::vector<TraceEvent>& events_;
  TraceProblems& problems_;
  std::vector<PairedEvents> pairs_;
  absl::flat_hash_map<std::string, std::vector<int32_t>> open_;
};

}  // namespace

std::vector<PairedEvents> PairEvents(const std::vector<TraceEvent>& events,
                                     TraceProblems& problems) {
  return Pairer(events, problems).Run();
}

}  // namespace plancast
