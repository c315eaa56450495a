#include "interop/timeline/timeline_json.h"

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using google::protobuf::Struct;

Timeline RandomTimeline(std::mt19937_64& random) {
  const auto below = [&](int64_t n) { return static_cast<int64_t>(random() % n); };
  Timeline timeline;
  const int64_t processes = 1 + below(3);
  for (int64_t process = 0; process < processes; ++process) {
    const int64_t threads = 1 + below(3);
    for (int64_t thread = 0; thread < threads; ++thread) {
      timeline.tracks.push_back({process, thread, "process \"" + std::to_string(process) + "\"",
                                 "thread " + std::to_string(thread)});
    }
  }
  const int64_t spans = below(60);
  for (int64_t i = 0; i < spans; ++i) {
    TimelineSpan span;
    span.name = "span\n" + std::to_string(i);
    span.category = below(2) == 0 ? "a" : "b";
    span.track = static_cast<int32_t>(below(static_cast<int64_t>(timeline.tracks.size())));
    span.start_ps = below(1000);
    span.duration_ps = below(4) == 0 ? 0 : below(300);
    if (i > 0 && below(2) == 0) {
      span.parent = static_cast<int32_t>(below(i));
      const TimelineSpan& parent = timeline.spans[span.parent];
      if (below(3) > 0) {  // inside
        span.track = parent.track;
        span.start_ps = parent.start_ps + below(parent.duration_ps + 1);
        span.duration_ps = below(parent.start_ps + parent.duration_ps - span.start_ps + 1);
      }
    }
    span.args = {{"n", std::to_string(i), false}, {"s", "\\\xc3\xa9\t", true}};
    timeline.spans.push_back(span);
  }
  for (int64_t i = 0; i < spans / 4; ++i) {
    const auto from = static_cast<int32_t>(below(spans)), to = static_cast<int32_t>(below(spans));
    timeline.flows.push_back({"flow", "x", from, to, timeline.spans[from].start_ps,
                              timeline.spans[to].start_ps + timeline.spans[to].duration_ps});
  }
  for (int64_t i = 0; i < 5; ++i) {
    timeline.counters.push_back({0, "memory", i * 10, {{"used", i * 0.25}, {"free", 1.0 - i}}});
  }
  return timeline;
}

// What ui.perfetto.dev needs of X slices: on a track they nest or do not overlap.
void ExpectTracksNest(const std::string& text) {
  Struct trace;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(text, &trace).ok()) << text;
  std::map<std::pair<double, double>, std::vector<std::pair<double, double>>> tracks;
  for (const auto& value : trace.fields().at("traceEvents").list_value().values()) {
    const auto& fields = value.struct_value().fields();
    if (fields.at("ph").string_value() != "X") continue;
    const double start = fields.at("ts").number_value();
    tracks[{fields.at("pid").number_value(), fields.at("tid").number_value()}].push_back(
        {start, start + fields.at("dur").number_value()});
  }
  for (auto& [track, slices] : tracks) {
    std::sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    std::vector<double> open;
    for (const auto& [start, end] : slices) {
      while (!open.empty() && open.back() <= start + 1e-9) open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(end, open.back() + 1e-9);
      }
      open.push_back(end);
    }
  }
}

TEST(TimelineJsonTest, SlicesNestAndEverythingComesBack) {
  std::mt19937_64 random(TestSeed(11));
  for (int round = 0; round < 300; ++round) {
    const Timeline timeline = RandomTimeline(random);
    ASSERT_OK(timeline.Verify());
    const std::string text = TimelineJson(timeline);
    ExpectTracksNest(text);
    if (timeline.spans.empty()) continue;
    ASSERT_OK_AND_ASSIGN(const TimelineFile back, ReadTimeline(text, "`t`"));
    ASSERT_EQ(back.problems.count, 0) << back.problems.shown[0].reason;
    ASSERT_EQ(back.timeline.spans.size(), timeline.spans.size());
    std::map<std::string, const TimelineSpan*> by_name;
    for (const TimelineSpan& span : back.timeline.spans) by_name[span.name] = &span;
    for (const TimelineSpan& was : timeline.spans) {
      const TimelineSpan& is = *by_name.at(was.name);
      EXPECT_EQ(is.start_ps, was.start_ps);
      EXPECT_EQ(is.duration_ps, was.duration_ps);
      EXPECT_EQ(is.args, was.args);
      EXPECT_EQ(is.parent < 0 ? "" : back.timeline.spans[is.parent].name,
                was.parent < 0 ? "" : timeline.spans[was.parent].name);
      EXPECT_EQ(back.timeline.tracks[is.track].process, timeline.tracks[was.track].process);
    }
    EXPECT_EQ(back.timeline.flows.size(), timeline.flows.size());
    ASSERT_EQ(back.timeline.counters.size(), timeline.counters.size());
    EXPECT_EQ(back.timeline.counters.back().values, timeline.counters.back().values);
    // From here on nothing changes any more.
    const std::string again = TimelineJson(back.timeline);
    EXPECT_EQ(TimelineJson(ReadTimeline(again, "`t`")->timeline), again);
  }
}

TEST(TimelineJsonTest, NumbersOfThreadsMayLeaveNoRoomForLanes) {
  for (const int64_t thread :
       {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), int64_t{7}}) {
    Timeline timeline;
    timeline.tracks = {{0, 3, "p", "a"}, {0, thread, "p", "b"}};
    for (int64_t i = 0; i < 3; ++i) {  // two lanes
      TimelineSpan span;
      span.name = "s" + std::to_string(i);
      span.track = i < 2 ? 1 : 0;
      span.start_ps = i * 5;
      span.duration_ps = 10;
      timeline.spans.push_back(span);
    }
    ASSERT_OK(timeline.Verify());
    const std::string text = TimelineJson(timeline);
    ExpectTracksNest(text);
    ASSERT_OK_AND_ASSIGN(const TimelineFile back, ReadTimeline(text, "`t`"));
    EXPECT_EQ(back.problems.count, 0);
    EXPECT_EQ(back.timeline.spans.size(), 3);
    EXPECT_EQ(back.timeline.tracks.size(), 3);
  }
}

TEST(TimelineJsonTest, ReadsWhatOthersWrite) {
  ASSERT_OK_AND_ASSIGN(const TimelineFile file, ReadTimeline(R"({"traceEvents": [
    {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "trainer"}},
    {"ph": "M", "name": "thread_name", "pid": 7, "tid": 1, "args": {"name": "stream 1"}},
    {"ph": "X", "name": "inner", "pid": 7, "tid": 1, "ts": 2, "dur": 3},
    {"ph": "X", "name": "outer", "pid": 7, "tid": 1, "ts": 1, "dur": 9},
    {"ph": "E", "pid": 7, "tid": "cpu", "ts": 8},
    {"ph": "B", "name": "step", "pid": 7, "tid": "cpu", "ts": 4},
    {"ph": "B", "name": "deep", "pid": 7, "tid": "cpu", "ts": 5},
    {"ph": "E", "pid": 7, "tid": "cpu", "ts": 6},
    {"ph": "b", "cat": "req", "name": "r", "id": 1, "pid": 7, "ts": 1},
    {"ph": "e", "cat": "req", "name": "r", "id": 1, "pid": 7, "ts": 3},
    {"ph": "s", "name": "f", "cat": "x", "id": 5, "pid": 7, "tid": 1, "ts": 3},
    {"ph": "f", "name": "f", "cat": "x", "id": 5, "pid": 7, "tid": "cpu", "ts": 4, "bp": "e"},
    {"ph": "C", "name": "memory", "pid": 7, "ts": 3, "args": {"GiB": 1.5}}]})",
                                                             "`t`"));
  EXPECT_EQ(file.timeline.DebugString(),
            "outer () on trainer / stream 1: 1.000000 + 9.000000 us\n"
            "r (req) on trainer / req: 1.000000 + 2.000000 us\n"
            "  inner () on trainer / stream 1: 2.000000 + 3.000000 us\n"
            "step () on trainer / cpu: 4.000000 + 4.000000 us\n"
            "  deep () on trainer / cpu: 5.000000 + 1.000000 us\n"
            "flow f: inner at 3.000000 -> step at 4.000000\n"
            "counter memory of 7 at 3.000000: GiB=1.5\n");
  EXPECT_EQ(file.problems.count, 0);
}

TEST(TimelineJsonTest, WhatStaysAloneIsKeptAndListed) {
  ASSERT_OK_AND_ASSIGN(const TimelineFile file, ReadTimeline(R"([
    {"ph": "B", "name": "never ends", "pid": 1, "tid": 1, "ts": 5},
    {"ph": "e", "cat": "c", "name": "never began", "id": 1, "pid": 1, "ts": 3},
    {"ph": "f", "name": "lost", "id": 2, "pid": 1, "tid": 1, "ts": 5}])",
                                                             "`t`"));
  ASSERT_EQ(file.timeline.spans.size(), 2u);
  EXPECT_EQ(file.timeline.spans[0].missing, TimelineSpan::Missing::kBegin);
  EXPECT_EQ(file.timeline.spans[1].missing, TimelineSpan::Missing::kEnd);
  EXPECT_EQ(file.problems.count, 3);
  EXPECT_EQ(file.problems.shown[0].reason, "`never ends` begins and does not end");
}

TEST(JsonStringTest, IsAlwaysUtf8) {
  EXPECT_EQ(JsonString("a\"\\\x01"), "\"a\\\"\\\\\\u0001\"");
  EXPECT_EQ(JsonString("\xc3\xa9\xf0\x9f\x98\x80"), "\"\xc3\xa9\xf0\x9f\x98\x80\"");
  EXPECT_EQ(JsonString("\xff|\xc0\xaf|\xed\xa0\x80|\xc3"),
            "\"\\ufffd|\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd|\\ufffd\"");
}

}  // namespace
}  // namespace plancast
