// Prints what is read of a file of NCCL's trace events, for golden files:
//   dump_trace FILE

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "interop/nccl/trace_events.h"
#include "interop/nccl/trace_summary.h"

namespace plancast {
namespace {

std::string Known(absl::string_view name, int64_t value) {
  return value < 0 ? "" : absl::StrCat(" ", name, "=", value);
}

std::string Direction(NcclDirection direction) {
  return direction == NcclDirection::kSend      ? " send"
         : direction == NcclDirection::kReceive ? " receive"
                                                : "";
}

void Print(const NcclTrace& trace) {
  std::cout << (trace.dialect == NcclTraceDialect::kProxyProfile ? "proxy profile"
                                                                 : "profiler plugin")
            << "\n"
            << trace.timeline.DebugString() << "\n";
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const NcclEvent& e = trace.events[i];
    std::cout << i << " " << trace.timeline.spans[i].name << ": " << NcclEventKindName(e.kind)
              << Direction(e.direction)
              << (e.wait == NcclWait::kNone ? ""
                                            : absl::StrCat(" waits for ", NcclWaitName(e.wait)))
              << Known("rank", e.rank) << Known("channel", e.channel) << Known("peer", e.peer)
              << Known("step", e.step) << Known("channels", e.channels) << Known("bytes", e.bytes)
              << (e.algorithm.empty() ? "" : absl::StrCat(" ", e.algorithm, "/", e.protocol))
              << "\n";
  }
  const NcclTraceSummary summary = Summarise(trace);
  std::cout << "\n";
  for (const NcclOperationSummary& o : summary.operations) {
    std::cout << o.name << " " << o.algorithm << " " << o.protocol << " " << o.bytes << " bytes, "
              << o.channels << " channels: " << o.calls << " calls, median " << o.median_ps
              << " ps, kernel " << o.kernel_ps << " ps\n";
  }
  for (const NcclChannelSummary& c : summary.channels) {
    std::cout << "channel " << c.channel << Direction(c.direction) << " " << c.peer << ": "
              << c.operations << " operations, " << c.steps << " steps, " << c.bytes
              << " bytes, steps " << c.step_ps << " ps, busy " << c.busy_ps << " ps\n";
  }
  for (const NcclWaitSummary& w : summary.waits) {
    std::cout << NcclWaitName(w.wait) << Direction(w.direction) << ": " << w.count << ", "
              << w.total_ps << " ps, " << absl::StrFormat("%.1f %%", w.share * 100) << "\n";
  }
  std::cout << "\n" << trace.problems.count << " problems\n";
  for (const TraceProblem& problem : trace.problems.shown) {
    std::cout << problem.line << ": " << problem.reason << "\n";
  }
  for (const auto& [kind, times] : trace.problems.mended) {
    std::cout << "mended: " << kind << ", " << times.first << " times, first in line "
              << times.second << "\n";
  }
}

}  // namespace
}  // namespace plancast

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ifstream stream(argv[1]);
  const std::string text((std::istreambuf_iterator<char>(stream)),
                         std::istreambuf_iterator<char>());
  const auto trace = plancast::ReadNcclTrace(text, "`trace`");
  if (!trace.ok()) {
    std::cout << trace.status() << "\n";
    return 1;
  }
  plancast::Print(*trace);
  return 0;
}
