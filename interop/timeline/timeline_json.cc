#include "interop/timeline/timeline_json.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/int128.h"
#include "base/utf8.h"

namespace plancast {
namespace {

using absl::string_view;

class Writer {
 public:
  explicit Writer(const Timeline& timeline)
      : timeline_(timeline), lanes_(AssignLanes(timeline)), enclosing_(timeline.spans.size(), -1) {}

  std::string Write() {
    text_ = R"({"displayTimeUnit":"ms","otherData":{"writer":"plancast"},"traceEvents":[)";
    Names();
    FindEnclosing();
    for (size_t i = 0; i < timeline_.spans.size(); ++i) Span(i);
    for (size_t i = 0; i < timeline_.flows.size(); ++i) {
      const TimelineFlow& flow = timeline_.flows[i];
      FlowEnd("s", i + 1, flow, flow.from, flow.from_ps);
      FlowEnd("f", i + 1, flow, flow.to, flow.to_ps);
    }
    for (const TimelineCounter& counter : timeline_.counters) Counter(counter);
    text_ += "\n]}\n";
    return std::move(text_);
  }

 private:
  void Begin() {
    text_ += first_ ? "\n" : ",\n";
    first_ = false;
  }

  std::string Time(int64_t ps) const {
    if (timeline_.origin_us == 0) return Microseconds(ps);
    const int128 whole = int128{timeline_.origin_us} * 1'000'000 + ps;
    const int64_t us = static_cast<int64_t>(FloorDiv<int128>(whole, 1'000'000));
    return absl::StrFormat("%d.%06d", us, static_cast<int64_t>(whole - int128{us} * 1'000'000));
  }

  int64_t Thread(int32_t track, int32_t lane) const {
    return (by_position_ ? track : timeline_.tracks[track].thread) * stride_ + lane;
  }

  void Names() {
    std::vector<int32_t> lanes(timeline_.tracks.size(), 1);
    int32_t most = 1;
    for (size_t i = 0; i < lanes_.size(); ++i) {
      int32_t& count = lanes[timeline_.spans[i].track];
      count = std::max(count, lanes_[i] + 1);
      most = std::max(most, count);
    }
    // Threads stay what they are where no track needs a second lane, as in what was written here.
    if (most > 1) stride_ = 100;
    while (stride_ < most) stride_ *= 10;
    // Numbers that leave no room for lanes give way to the tracks' own.
    by_position_ =
        stride_ > 1 && absl::c_any_of(timeline_.tracks, [&](const TimelineTrack& track) {
          constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
          return track.thread > kMost / stride_ - 1 || track.thread < 1 - kMost / stride_;
        });
    std::set<int64_t> named;
    for (size_t i = 0; i < timeline_.tracks.size(); ++i) {
      const TimelineTrack& track = timeline_.tracks[i];
      if (named.insert(track.process).second) {
        Meta("process_name", track.process, 0, JsonString(track.process_name));
        Begin();
        absl::StrAppendFormat(
            &text_, R"({"ph":"M","name":"process_sort_index","pid":%d,"args":{"sort_index":%d}})",
            track.process, named.size() - 1);
      }
      for (int32_t lane = 0; lane < lanes[i]; ++lane) {
        const int64_t thread = Thread(static_cast<int32_t>(i), lane);
        Meta("thread_name", track.process, thread,
             JsonString(lane == 0 ? track.thread_name
                                  : absl::StrCat(track.thread_name, " ", lane + 1)));
        Begin();
        absl::StrAppendFormat(
            &text_,
            R"({"ph":"M","name":"thread_sort_index","pid":%d,"tid":%d,"args":{"sort_index":%d}})",
            track.process, thread, thread);
      }
    }
  }

  void Meta(string_view what, int64_t process, int64_t thread, const std::string& name) {
    Begin();
    absl::StrAppendFormat(&text_, R"({"ph":"M","name":"%s","pid":%d,"tid":%d,"args":{"name":%s}})",
                          what, process, thread, name);
  }

  // The slice that is drawn around each: what a reader of the file takes for its parent.
  void FindEnclosing() {
    const std::vector<TimelineSpan>& spans = timeline_.spans;
    std::vector<int32_t> order(spans.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      if (spans[a].start_ps != spans[b].start_ps) return spans[a].start_ps < spans[b].start_ps;
      return spans[a].duration_ps > spans[b].duration_ps;
    });
    std::map<std::pair<int32_t, int32_t>, std::vector<int32_t>> open;
    for (int32_t i : order) {
      std::vector<int32_t>& around = open[{spans[i].track, lanes_[i]}];
      while (!around.empty() && spans[around.back()].start_ps + spans[around.back()].duration_ps <=
                                    spans[i].start_ps) {
        around.pop_back();
      }
      if (!around.empty()) enclosing_[i] = around.back();
      around.push_back(i);
    }
    for (size_t i = 0; i < spans.size(); ++i) explicit_ |= spans[i].parent != enclosing_[i];
  }

  void Span(size_t i) {
    const TimelineSpan& span = timeline_.spans[i];
    Begin();
    absl::StrAppend(&text_, R"({"ph":"X","name":)", JsonString(span.name), R"(,"cat":)",
                    JsonString(span.category));
    if (!span.colour.empty()) absl::StrAppend(&text_, R"(,"cname":)", JsonString(span.colour));
    absl::StrAppendFormat(&text_, R"(,"pid":%d,"tid":%d,"ts":%s,"dur":%s,"args":{)",
                          timeline_.tracks[span.track].process, Thread(span.track, lanes_[i]),
                          Time(span.start_ps), Microseconds(span.duration_ps));
    bool first = true;
    const auto arg = [&](const std::string& key, const std::string& value) {
      absl::StrAppend(&text_, first ? "" : ",", JsonString(key), ":", value);
      first = false;
    };
    if (explicit_) {
      arg("span", absl::StrCat(i));
      if (span.parent >= 0) arg("parent", absl::StrCat(span.parent));
    }
    if (span.missing != TimelineSpan::Missing::kNone) {
      arg("missing", span.missing == TimelineSpan::Missing::kBegin ? "\"begin\"" : "\"end\"");
    }
    for (const TraceArg& a : span.args) {
      const bool plain = !a.quoted && (IsJsonNumber(a.value) || a.value == "true" ||
                                       a.value == "false" || a.value == "null");
      arg(a.key, plain ? a.value : JsonString(a.value));
    }
    text_ += "}}";
  }

  void FlowEnd(string_view phase, size_t id, const TimelineFlow& flow, int32_t span, int64_t ps) {
    Begin();
    const int32_t track = timeline_.spans[span].track;
    absl::StrAppendFormat(
        &text_, R"({"ph":"%s","name":%s,"cat":%s,"id":%d,"pid":%d,"tid":%d,"ts":%s%s})", phase,
        JsonString(flow.name), JsonString(flow.category), id, timeline_.tracks[track].process,
        Thread(track, lanes_[span]), Time(ps), phase == "f" ? R"(,"bp":"e")" : "");
  }

  void Counter(const TimelineCounter& counter) {
    Begin();
    absl::StrAppendFormat(&text_, R"({"ph":"C","name":%s,"pid":%d,"ts":%s,"args":{)",
                          JsonString(counter.name), counter.process, Time(counter.ps));
    for (size_t i = 0; i < counter.values.size(); ++i) {
      absl::StrAppendFormat(&text_, "%s%s:%.9g", i == 0 ? "" : ",",
                            JsonString(counter.values[i].first), counter.values[i].second);
    }
    text_ += "}}";
  }

  const Timeline& timeline_;
  const std::vector<int32_t> lanes_;
  std::vector<int32_t> enclosing_;
  std::string text_;
  int64_t stride_ = 1;
  bool by_position_ = false;
  bool first_ = true;
  bool explicit_ = false;
};

}  // namespace

std::string JsonString(string_view text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8At(text, i);
    if (length == 0) {
      out += "\\ufffd";
      ++i;
      continue;
    }
    const char c = text[i];
    if (length > 1) {
      absl::StrAppend(&out, text.substr(i, length));
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
    } else {
      out += c;
    }
    i += length;
  }
  return out + "\"";
}

std::string TimelineJson(const Timeline& timeline) { return Writer(timeline).Write(); }

}  // namespace plancast
