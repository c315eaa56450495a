#include "interop/nccl/trace_events.h"

#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interop/nccl/trace_summary.h"
#include "interop/timeline/timeline_json.h"
#include "tests/testing/status_matchers.h"

// The golden files say what is read of each dialect; here is what holds of all.

namespace plancast {
namespace {

using ::testing::HasSubstr;

std::string Contents(const std::string& name) {
  std::ifstream stream("tests/interop/nccl/testdata/" + name);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

class NcclTraceFileTest : public testing::TestWithParam<const char*> {};

TEST_P(NcclTraceFileTest, ComesBackFromPerfettosFormat) {
  ASSERT_OK_AND_ASSIGN(const NcclTrace trace, ReadNcclTrace(Contents(GetParam()), "`t`"));
  ASSERT_EQ(trace.events.size(), trace.timeline.spans.size());
  ASSERT_OK_AND_ASSIGN(const TimelineFile back, ReadTimeline(TimelineJson(trace.timeline), "`o`"));
  EXPECT_EQ(back.problems.count, 0);
  ASSERT_EQ(back.timeline.spans.size(), trace.timeline.spans.size());
  for (size_t i = 0; i < back.timeline.spans.size(); ++i) {
    const TimelineSpan &was = trace.timeline.spans[i], &is = back.timeline.spans[i];
    EXPECT_EQ(is.name, was.name);
    EXPECT_EQ(is.category, was.category);
    EXPECT_EQ(is.start_ps, was.start_ps);
    EXPECT_EQ(is.duration_ps, was.duration_ps);
    EXPECT_EQ(is.parent, was.parent);
    EXPECT_EQ(is.missing, was.missing);
    EXPECT_EQ(is.args, was.args);
    EXPECT_EQ(back.timeline.tracks[is.track].process_name,
              trace.timeline.tracks[was.track].process_name);
  }
  EXPECT_EQ(TimelineJson(back.timeline),
            TimelineJson(ReadTimeline(TimelineJson(back.timeline), "`o`")->timeline));
}

TEST_P(NcclTraceFileTest, IsReadAsFarAsItGoes) {
  const std::string text = Contents(GetParam());
  size_t spans = 0;
  for (size_t size = 0; size <= text.size(); size += 97) {
    const auto trace = ReadNcclTrace(text.substr(0, size), "`t`");
    if (!trace.ok()) continue;  // no event yet
    EXPECT_GE(trace->timeline.spans.size(), spans);
    spans = trace->timeline.spans.size();
  }
}

INSTANTIATE_TEST_SUITE_P(All, NcclTraceFileTest,
                         testing::Values("proxy_profile.json", "plugin_dump.txt",
                                         "plugin_readme_like.txt"));

TEST(NcclTraceTest, ShiftingEveryStampShiftsTheSpansAlone) {
  const char* const kAt0 = R"([
    {"name": "Send-1-0", "cat": "NET", "ph": "b", "id": 0, "pid": 2, "tid": 1, "ts": 1.000001},
    {"name": "Send-1-0", "cat": "NET", "ph": "e", "id": 0, "pid": 2, "tid": 1, "ts": 4.5}, {} ])";
  // Microseconds since 1970 leave 64 bits of picoseconds.
  const char* const kAtEpoch = R"([
    {"name": "Send-1-0", "cat": "NET", "ph": "b", "id": 0, "pid": 2, "tid": 1, "ts": 1765223116927674.000001},
    {"name": "Send-1-0", "cat": "NET", "ph": "e", "id": 0, "pid": 2, "tid": 1, "ts": 1765223116927677.5}, {} ])";
  ASSERT_OK_AND_ASSIGN(const NcclTrace a, ReadNcclTrace(kAt0, "`a`"));
  ASSERT_OK_AND_ASSIGN(const NcclTrace b, ReadNcclTrace(kAtEpoch, "`b`"));
  EXPECT_EQ(a.timeline.spans[0].start_ps, 1'000'001);
  EXPECT_EQ(a.timeline.spans[0].duration_ps, 3'499'999);
  EXPECT_EQ(b.timeline.spans[0].duration_ps, 3'499'999);
  EXPECT_EQ(b.timeline.origin_us, 1765223116927674);
  EXPECT_THAT(TimelineJson(b.timeline), HasSubstr("\"ts\":1765223116927674.000001,"));
  EXPECT_EQ(a.events[0].channel, 2);
}

TEST(NcclTraceTest, ATruncatedDumpKeepsItsNesting) {
  const char* const kCut = R"([
{"name": "AllGather", "cat": "COLL", "ph": "b", "id": 0, "pid": 1, "tid": 1, "ts": 1, "args": {"Rank": 5, "Algorithm": "RING"}},
{"name": "Send", "cat": "PROXY", "ph": "b", "id": 0, "pid": 1, "tid": 1, "ts": 2, "args": {"Channel": 3, "Peer": 6}},
{"name": "SendWait", "cat": "NET", "ph": "b", "id": 0, "pid": 1, "tid": 1, "ts": 3, "args": {"Step": 0}},
{"name": "SendWait", "cat": "NET", "ph": "e", "id": 0, "pid": 1, "tid": 1, "ts": 9},
{"name": "SendWa)";
  ASSERT_OK_AND_ASSIGN(const NcclTrace trace, ReadNcclTrace(kCut, "`t`"));
  ASSERT_EQ(trace.events.size(), 4u);  // the step is made
  EXPECT_EQ(trace.events[3].wait, NcclWait::kSend);
  EXPECT_EQ(trace.events[3].rank, 5);
  EXPECT_EQ(trace.events[3].channel, 3);
  EXPECT_EQ(trace.events[3].algorithm, "RING");
  EXPECT_EQ(trace.problems.count, 3);  // two without end, the last line
}

TEST(NcclTraceTest, SharesOfWaitingSumToOne) {
  ASSERT_OK_AND_ASSIGN(const NcclTrace trace, ReadNcclTrace(Contents("plugin_dump.txt"), "`t`"));
  double send = 0, receive = 0;
  for (const NcclWaitSummary& wait : Summarise(trace).waits) {
    (wait.direction == NcclDirection::kSend ? send : receive) += wait.share;
  }
  EXPECT_DOUBLE_EQ(send, 1);
  EXPECT_DOUBLE_EQ(receive, 1);
}

TEST(NcclTraceTest, RefusesWhatIsNoTraceOfNccl) {
  EXPECT_THAT(ReadNcclTrace(R"([{"name": "f", "ph": "X", "ts": 1, "dur": 2}])", "`t`"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("`t` holds 1 events of a trace, but none of NCCL's")));
  EXPECT_THAT(ReadNcclTrace("int main() {\n  return 0;\n}\n", "`t`"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("`t` has no trace event")));
  EXPECT_THAT(ReadNcclTrace("", "`t`"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(NcclTraceTest, SumsOfHugeFiguresEndAtTheLargest) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  NcclTrace trace;
  for (const int64_t bytes : {int64_t{4096}, kMost, kMost}) {
    NcclEvent& event = trace.events.emplace_back();
    event.kind = NcclEventKind::kProxyOp;
    event.bytes = bytes;
    trace.timeline.spans.emplace_back().name = "Send";
  }
  const NcclTraceSummary summary = Summarise(trace);
  ASSERT_EQ(summary.channels.size(), 1);
  EXPECT_EQ(summary.channels[0].operations, 3);
  EXPECT_EQ(summary.channels[0].bytes, kMost);
}

}  // namespace
}  // namespace plancast
