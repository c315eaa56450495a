#include "interop/timeline/trace_json.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;

TEST(TraceJsonTest, ReadsAListAndAnObject) {
  const std::string events =
      R"([{"name": "f", "cat": "c", "ph": "X", "pid": 3, "tid": "main", "id": "0x1f", "ts": 1.5,)"
      R"( "dur": 2, "args": {"n": 7, "s": "seven", "o": {"a": [1, {"b": null}]}}}])";
  for (const std::string& text : {events, "{\"displayTimeUnit\": \"ns\", \"traceEvents\": " +
                                              events + ", \"otherData\": {\"x\": 1}}"}) {
    ASSERT_OK_AND_ASSIGN(const TraceFile file, ReadTraceFile(text, "`t`"));
    ASSERT_EQ(file.events.size(), 1u) << text;
    const TraceEvent& event = file.events[0];
    EXPECT_EQ(event.phase, 'X');
    EXPECT_EQ(event.process, "3");
    EXPECT_EQ(event.thread, "main");
    EXPECT_EQ(event.id, "0x1f");
    EXPECT_EQ(static_cast<int64_t>(event.start_ps), 1'500'000);
    EXPECT_EQ(event.duration_ps, 2'000'000);
    EXPECT_THAT(event.args,
                ElementsAre(TraceArg{"n", "7", false}, TraceArg{"s", "seven", true},
                            TraceArg{"o.a.0", "1", false}, TraceArg{"o.a.1.b", "null", false}));
    EXPECT_EQ(file.problems.count, 0);
    EXPECT_TRUE(file.problems.mended.empty());
  }
}

int64_t Ps(const std::string& ts) {
  const auto file = ReadTraceFile("[{\"ph\": \"X\", \"ts\": " + ts + "}]", "`t`");
  return file.ok() ? static_cast<int64_t>(file->events[0].start_ps) : -1;
}

TEST(TraceJsonTest, TimesAreExact) {
  EXPECT_EQ(Ps("0.000001"), 1);
  EXPECT_EQ(Ps("123456789012.345678"), 123456789012345678);
  EXPECT_EQ(Ps("1.0000005"), 1'000'001);
  EXPECT_EQ(Ps("-2.5"), -2'500'000);
  EXPECT_EQ(Ps("1e3"), 1'000'000'000);
  EXPECT_EQ(Ps("\"12\""), 12'000'000);
  EXPECT_EQ(Ps("nan"), -1);
  EXPECT_EQ(Ps("1e40"), -1);
  EXPECT_EQ(Ps("99999999999999999999999"), -1);
}

TEST(TraceJsonTest, UnderstandsEscapes) {
  ASSERT_OK_AND_ASSIGN(
      const TraceFile file,
      ReadTraceFile(R"([{"name": "a\"\\\n\u00e9\ud83d\ude00\ud83d\q", "ph": "M"}])", "`t`"));
  EXPECT_EQ(file.events[0].name, "a\"\\\n\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbd\\q");
}

TEST(TraceJsonTest, MendsWhatItCan) {
  ASSERT_OK_AND_ASSIGN(const TraceFile file, ReadTraceFile(R"([
{"name": "a", "ph": "X", "ts": 1, "args": {"type": ncclFloat32, "stream": 0x262ca50,},}
{“name”: “b”, "ph": "X", “ts": 2, "args": {"n": 1},
{"name": "say “c”, twice", ph: "X", "ts": 3},,
{}
)",
                                                           "`t`"));
  ASSERT_EQ(file.events.size(), 3u);
  EXPECT_THAT(file.events[0].args, ElementsAre(TraceArg{"type", "ncclFloat32", true},
                                               TraceArg{"stream", "0x262ca50", true}));
  EXPECT_EQ(file.events[1].name, "b");
  EXPECT_EQ(file.events[2].name, "say “c”, twice");
  EXPECT_EQ(file.problems.count, 0);
  EXPECT_THAT(file.problems.mended,
              ElementsAre(Key("a closing bracket that is missing"), Key("a comma too many"),
                          Key("an unquoted key"), Key("an unquoted value"), Key("curly quotes")));
}

TEST(TraceJsonTest, SkipsTheRestWithLineAndReason) {
  ASSERT_OK_AND_ASSIGN(const TraceFile file, ReadTraceFile(R"([
{"name": "a", "ph": "X", "ts": 1},
 ... [ trace truncated for brevity ]
{"name": "b", "ph": "X", "ts": nan},
{"name": "c", "ts": 1},
{"name": "d", "ph": "X"},
{"name "e", "ph": "X", "ts": 1},
{"name": "f", "ph": "X", "ts": 9},
{"name": "g", "ph": "X", "t)",
                                                           "`t`"));
  EXPECT_EQ(file.events.size(), 2u);
  std::vector<int64_t> lines;
  for (const TraceProblem& problem : file.problems.shown) lines.push_back(problem.line);
  EXPECT_THAT(lines, ElementsAre(3, 4, 5, 6, 7, 9));
  EXPECT_THAT(file.problems.shown[1].reason, HasSubstr("`ts` is `nan`"));
  EXPECT_THAT(file.problems.shown[2].reason, HasSubstr("without `ph`"));
}

TEST(TraceJsonTest, DepthIsLimited) {
  std::string deep = "[{\"name\": \"a\", \"ph\": \"X\", \"ts\": 1},\n{\"args\": ";
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":[";
  ASSERT_OK_AND_ASSIGN(const TraceFile file, ReadTraceFile(deep, "`t`"));
  EXPECT_EQ(file.events.size(), 1u);
  EXPECT_GE(file.problems.count, 1);
  EXPECT_LE(file.problems.shown.size(), TraceProblems::kMostShown);
}

}  // namespace
}  // namespace plancast
