#include "interop/chrome_trace.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "interop/timeline/timeline_json.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using google::protobuf::Struct;
using google::protobuf::Value;

// Two stages. Stage 0 computes and sends to stage 1; its gradient collectives
// overlap each other on one stream.
struct Example {
  ExecutionGraph graph;
  SimResult result;

  Example() {
    Block block;
    block.name = "layers.F";
    const auto add = [&](const std::string& label, TaskKind kind) {
      block.label.push_back(label);
      block.kind.push_back(kind);
      block.spec.push_back(0);
    };
    add("attn.\"qkv\"", TaskKind::kKernel);
    add("send", TaskKind::kComm);
    add("recv", TaskKind::kComm);
    add("grads", TaskKind::kComm);
    block.tensors = {"x"};
    block.memory = {{0, false, MemoryKind::kActivations, 0, 1 << 30},
                    {1, true, MemoryKind::kActivations, 0, -(1 << 30)}};
    graph.blocks.push_back(block);
    graph.kernels.emplace_back();
    graph.comms.emplace_back();
    graph.programs.resize(2);
    for (int stage = 0; stage < 2; ++stage) {
      DeviceClassResult device;
      device.name = stage == 0 ? "stage 0" : "stage 1";
      device.program = stage;
      device.devices = 4;
      device.representative = 4 * stage;
      result.classes.push_back(device);
    }
    Slice(0, StreamKind::kCompute, 0, 0, 1'000'000);
    Slice(0, StreamKind::kSendNext, 1, 1'000'000, 3'500'001);
    Slice(1, StreamKind::kRecvPrev, 2, 1'000'000, 3'500'001);
    Slice(0, StreamKind::kGradComm, 3, 1'000'000, 5'000'000);
    Slice(0, StreamKind::kGradComm, 3, 2'000'000, 4'000'000);
  }

  void Slice(int device_class, StreamKind stream, int task, int64_t start, int64_t end) {
    plancast::Slice slice;
    slice.device_class = device_class;
    slice.stream = stream;
    slice.task = task;
    slice.start_ps = start;
    slice.end_ps = end;
    result.slices.push_back(slice);
  }

  // The events of the trace, which must be JSON.
  std::vector<Struct> Events() const {
    Struct trace;
    const std::string text = ChromeTrace(graph, result);
    const auto status = google::protobuf::util::JsonStringToMessage(text, &trace);
    EXPECT_TRUE(status.ok()) << status << text;
    std::vector<Struct> events;
    for (const Value& value : trace.fields().at("traceEvents").list_value().values()) {
      events.push_back(value.struct_value());
    }
    return events;
  }
};

std::string Text(const Struct& event, const std::string& field) {
  auto it = event.fields().find(field);
  return it == event.fields().end() ? "" : it->second.string_value();
}

double Number(const Struct& event, const std::string& field) {
  return event.fields().at(field).number_value();
}

std::vector<Struct> OfPhase(const std::vector<Struct>& events, const std::string& phase) {
  std::vector<Struct> out;
  for (const Struct& event : events) {
    if (Text(event, "ph") == phase) out.push_back(event);
  }
  return out;
}

TEST(ChromeTraceTest, WritesEverySliceInMicroseconds) {
  const std::vector<Struct> slices = OfPhase(Example().Events(), "X");
  ASSERT_EQ(slices.size(), 5u);
  EXPECT_EQ(Text(slices[0], "name"), "attn.\"qkv\"");
  EXPECT_DOUBLE_EQ(Number(slices[1], "ts"), 1.0);
  EXPECT_DOUBLE_EQ(Number(slices[1], "dur"), 2.500001);
  EXPECT_EQ(Number(slices[2], "pid"), 4);
}

TEST(ChromeTraceTest, SlicesOfATrackNeverOverlap) {
  std::map<std::pair<double, double>, std::vector<std::pair<double, double>>> tracks;
  for (const Struct& slice : OfPhase(Example().Events(), "X")) {
    const double begin = Number(slice, "ts");
    tracks[{Number(slice, "pid"), Number(slice, "tid")}].push_back(
        {begin, begin + Number(slice, "dur")});
  }
  EXPECT_EQ(tracks.size(), 5u);  // the two gradient collectives need two
  for (auto& [track, spans] : tracks) {
    std::sort(spans.begin(), spans.end());
    for (size_t i = 1; i < spans.size(); ++i) EXPECT_GE(spans[i].first, spans[i - 1].second);
  }
}

TEST(ChromeTraceTest, NamesProcessesAndThreads) {
  std::vector<std::string> names;
  for (const Struct& event : OfPhase(Example().Events(), "M")) {
    if (Text(event, "name") != "process_name" && Text(event, "name") != "thread_name") continue;
    names.push_back(Text(event.fields().at("args").struct_value(), "name"));
  }
  EXPECT_THAT(names,
              testing::IsSupersetOf({"stage 0 (GPU 0, one of 4)", "compute", "data-parallel comm",
                                     "data-parallel comm 2", "recv from previous stage"}));
}

TEST(ChromeTraceTest, AFlowJoinsTheEndsOfAMessage) {
  const std::vector<Struct> events = Example().Events();
  const std::vector<Struct> from = OfPhase(events, "s"), to = OfPhase(events, "f");
  ASSERT_EQ(from.size(), 1u);
  ASSERT_EQ(to.size(), 1u);
  EXPECT_EQ(Number(from[0], "id"), Number(to[0], "id"));
  EXPECT_EQ(Number(from[0], "pid"), 0);
  EXPECT_EQ(Number(to[0], "pid"), 4);
}

TEST(ChromeTraceTest, ACounterFollowsMemory) {
  std::vector<std::pair<double, double>> points;
  for (const Struct& event : OfPhase(Example().Events(), "C")) {
    if (Number(event, "pid") != 0) continue;
    points.push_back(
        {Number(event, "ts"), Number(event.fields().at("args").struct_value(), "allocated")});
  }
  EXPECT_THAT(points, testing::ElementsAre(std::make_pair(0.0, 0.0), std::make_pair(0.0, 1.0),
                                           std::make_pair(3.500001, 0.0)));
}

TEST(ChromeTraceTest, ComesBackFromItsFile) {
  const Example example;
  const Timeline timeline = ForecastTimeline(example.graph, example.result);
  ASSERT_OK(timeline.Verify());
  ASSERT_OK_AND_ASSIGN(const TimelineFile back,
                       ReadTimeline(ChromeTrace(example.graph, example.result), "`t`"));
  EXPECT_EQ(back.problems.count, 0);
  ASSERT_EQ(back.timeline.spans.size(), timeline.spans.size());
  for (size_t i = 0; i < timeline.spans.size(); ++i) {
    EXPECT_EQ(back.timeline.spans[i].name, timeline.spans[i].name);
    EXPECT_EQ(back.timeline.spans[i].start_ps, timeline.spans[i].start_ps);
    EXPECT_EQ(back.timeline.spans[i].duration_ps, timeline.spans[i].duration_ps);
    EXPECT_EQ(back.timeline.spans[i].parent, -1);
    EXPECT_EQ(back.timeline.spans[i].args, timeline.spans[i].args);
  }
  ASSERT_EQ(back.timeline.flows.size(), 1u);
  EXPECT_EQ(back.timeline.flows[0].from, timeline.flows[0].from);
  EXPECT_EQ(back.timeline.flows[0].to, timeline.flows[0].to);
  EXPECT_EQ(back.timeline.counters.size(), timeline.counters.size());
}

}  // namespace
}  // namespace plancast
