#include "interop/timeline/timeline.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TimelineSpan Span(int64_t start, int64_t end, int32_t parent = -1, int32_t track = 0) {
  TimelineSpan span;
  span.name = "s";
  span.start_ps = start;
  span.duration_ps = end - start;
  span.parent = parent;
  span.track = track;
  return span;
}

TEST(AssignLanesTest, SpansThatOverlapGoToFurtherLanes) {
  Timeline timeline;
  timeline.tracks.resize(2);
  timeline.spans = {Span(0, 10), Span(5, 15), Span(10, 12), Span(2, 3), Span(0, 10, -1, 1)};
  EXPECT_THAT(AssignLanes(timeline), ElementsAre(0, 1, 0, 1, 0));
}

TEST(AssignLanesTest, ChildrenStayInsideTheirParents) {
  Timeline timeline;
  timeline.tracks.resize(1);
  timeline.spans = {Span(0, 10),   Span(1, 9),    Span(0, 5, 0), Span(5, 10, 0),
                    Span(1, 1, 1), Span(6, 12, 0)};  // the last one lasts longer than its parent
  EXPECT_THAT(AssignLanes(timeline), ElementsAre(0, 1, 0, 0, 1, 2));
}

TEST(TimelineTest, VerifyFindsWhatIsWrong) {
  Timeline timeline;
  timeline.tracks.resize(1);
  timeline.spans = {Span(0, 10), Span(0, 5, 0)};
  timeline.flows = {{"f", "", 0, 1, 10, 5}};
  EXPECT_OK(timeline.Verify());
  timeline.flows[0].to_ps = 6;
  EXPECT_THAT(timeline.Verify(),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("flow 0 has an end outside")));
  timeline.flows.clear();
  timeline.spans[0].parent = 1;
  EXPECT_THAT(timeline.Verify(), StatusIs(absl::StatusCode::kInternal, HasSubstr("parent")));
  timeline.spans[0] = Span(0, -1);
  EXPECT_THAT(timeline.Verify(), StatusIs(absl::StatusCode::kInternal, HasSubstr("ends before")));
}

TEST(TimelineTest, MicrosecondsAreExact) {
  EXPECT_EQ(Microseconds(0), "0.000000");
  EXPECT_EQ(Microseconds(1'000'001), "1.000001");
  EXPECT_EQ(Microseconds(-1), "-0.000001");
  EXPECT_EQ(Microseconds(INT64_MIN), "-9223372036854.775808");
}

}  // namespace
}  // namespace plancast
