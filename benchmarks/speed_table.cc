// The speed table: every target beside our figure and the field's. Each case
// runs in a process of its own, so that its peak memory is its own.
//
//   speed_table [--tiny] [WORD...]   only lines that hold one of the words
//
// With PLANCAST_CLI set to the command line tool, one line starts that afresh.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "benchmarks/speed_cases.h"

namespace plancast {
namespace {

struct Line {
  Measured measured;
  double peak_bytes = 0;
  bool ran = false;
};

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

Line RunApart(const SpeedCase& which) {
  int ends[2];
  PLANCAST_CHECK(pipe(ends) == 0);
  std::fflush(stdout);
  const pid_t child = fork();
  PLANCAST_CHECK(child >= 0);
  if (child == 0) {
    const Measured measured = which.run();
    const bool sent = write(ends[1], &measured, sizeof(measured)) == sizeof(measured);
    _exit(sent ? 0 : 1);
  }
  close(ends[1]);
  Line line;
  line.ran = read(ends[0], &line.measured, sizeof(line.measured)) == sizeof(line.measured);
  close(ends[0]);
  int status = 0;
  rusage usage;
  PLANCAST_CHECK(wait4(child, &status, 0, &usage) == child);
  line.peak_bytes = static_cast<double>(usage.ru_maxrss) * 1024;
  return line;
}

// User and system time of a whole `plancast predict`, interpreter included;
// median of five.
Line RunTool(const char* tool) {
  Line line;
  std::vector<double> seconds;
  for (int run = 0; run < 5; ++run) {
    const pid_t child = fork();
    PLANCAST_CHECK(child >= 0);
    if (child == 0) {
      const int null = open("/dev/null", O_WRONLY);
      dup2(null, STDOUT_FILENO);
      execl(tool, tool, "predict", "-m", "llama3-405b", "-c", "grandteton-h100-80g:2048", "-s",
            "dp=128,tp=8,pp=16,vpp=8,sp,zero=1,mb=1,overlap=grad+param+tp", "--batch", "2048",
            nullptr);
      _exit(127);
    }
    int status = 0;
    rusage usage;
    PLANCAST_CHECK(wait4(child, &status, 0, &usage) == child);
    line.ran = WIFEXITED(status) && WEXITSTATUS(status) <= 1;  // 1: does not fit
    seconds.push_back(Seconds(usage.ru_utime) + Seconds(usage.ru_stime));
    line.peak_bytes = static_cast<double>(usage.ru_maxrss) * 1024;
  }
  std::sort(seconds.begin(), seconds.end());
  line.measured.value = seconds[2];
  return line;
}

std::string Figure(double value, const std::string& unit) {
  char text[64];
  if (unit == "s") {
    std::snprintf(text, sizeof(text), value < 0.9995 ? "%.1f ms" : "%.3g s",
                  value < 0.9995 ? value * 1e3 : value);
  } else if (value >= 1e6) {
    std::snprintf(text, sizeof(text), "%.1f M %s", value * 1e-6, unit.c_str());
  } else if (value >= 1e4) {
    std::snprintf(text, sizeof(text), "%.0f k %s", value * 1e-3, unit.c_str());
  } else {
    std::snprintf(text, sizeof(text), "%.0f %s", value, unit.c_str());
  }
  return text;
}

void PrintHead() {
  std::printf("CPU time of one thread, medians; peak memory of the process of a line.\n\n");
  std::printf("| %-68s | %-14s | %-12s | %-3s | %-24s | %-9s | %-7s | %-6s |\n", "what", "ours",
              "target", "met", "the field", "ratio", "tasks", "memory");
  std::printf("|---|---|---|---|---|---|---|---|\n");
}

void Print(const SpeedCase& which, const Line& line) {
  if (!line.ran) {
    std::printf("| %-68s | failed |\n", which.what.c_str());
    return;
  }
  const double ours = line.measured.value;
  const bool met = which.more_is_better ? ours >= which.target : ours <= which.target;
  std::string field, ratio, tasks;
  if (!which.peer.empty()) {
    field = which.peer + " " + Figure(which.peer_value, which.unit);
    char text[32];
    std::snprintf(text, sizeof(text), "%.3gx",
                  which.more_is_better ? ours / which.peer_value : which.peer_value / ours);
    ratio = text;
  }
  if (line.measured.tasks > 0) tasks = Figure(line.measured.tasks, "");
  char memory[32];
  std::snprintf(memory, sizeof(memory), "%.0f MB", line.peak_bytes * 1e-6);
  std::printf("| %-68s | %-14s | %-12s | %-3s | %-24s | %-9s | %-7s | %-6s |\n", which.what.c_str(),
              Figure(ours, which.unit).c_str(), Figure(which.target, which.unit).c_str(),
              met ? "yes" : "no", field.c_str(), ratio.c_str(), tasks.c_str(), memory);
}

int Main(int argc, char** argv) {
  bool tiny = false, ran = true;
  std::vector<const char*> words;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--tiny") == 0) {
      tiny = true;
    } else if (argv[i][0] != '-') {
      words.push_back(argv[i]);
    }
  }
  const auto wanted = [&](const std::string& what) {
    for (const char* word : words) {
      if (what.find(word) != std::string::npos) return true;
    }
    return words.empty();
  };
  PrintHead();
  std::vector<SpeedCase> cases = SpeedCases(tiny);
  for (const SpeedCase& which : cases) {
    if (!wanted(which.what)) continue;
    const Line line = RunApart(which);
    Print(which, line);
    ran = ran && line.ran;
  }
  SpeedCase tool;
  tool.what = "Llama-3-405B, 16,384 GPUs: `plancast predict` as a fresh process";
  tool.unit = "s";
  tool.target = 0.3;
  if (const char* path = std::getenv("PLANCAST_CLI"); path != nullptr && wanted(tool.what)) {
    Print(tool, RunTool(path));
  }
  std::printf("\nThe field's figures:\n");
  std::string last;
  for (const SpeedCase& which : cases) {
    if (which.source == last || which.source.empty()) continue;
    last = which.source;
    std::printf("  %s\n", last.c_str());
  }
  return ran ? 0 : 1;
}

}  // namespace
}  // namespace plancast

int main(int argc, char** argv) { return plancast::Main(argc, argv); }
