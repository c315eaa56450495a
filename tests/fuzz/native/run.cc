// Reads changed files, case by case, with every reader of text that is not ours:
//
//   bazel run -c opt //tests/fuzz/native:run -- --runs=1000000 [--target=NAME,...] [--first=N]
//   bazel run -c opt //tests/fuzz/native:run -- --target=NAME --input=FILE
//
// A case that is neither read nor refused stops the run with its number and its input.
// docs/fuzzing.md

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tests/fuzz/native/corpus.h"
#include "tests/fuzz/native/guard.h"
#include "tests/fuzz/native/mutate.h"
#include "tests/fuzz/native/session.h"
#include "tests/fuzz/native/target.h"

ABSL_FLAG(std::vector<std::string>, target, {}, "names, separated by commas; default: all");
ABSL_FLAG(uint64_t, runs, 10'000, "cases of each target");
ABSL_FLAG(uint64_t, first, 0, "number of the first case");
ABSL_FLAG(int, seconds, 1, "CPU seconds that a case may take");
ABSL_FLAG(std::string, corpus, "", "folder with a folder of seeds for each target");
ABSL_FLAG(std::string, save, "", "folder for the input of a case that fails");
ABSL_FLAG(bool, keep, false, "write the input of case --first, and run none");
ABSL_FLAG(std::string, input, "", "a file to read once, in place of cases");

namespace plancast {
namespace {

std::string SaveFolder() {
  if (const std::string folder = absl::GetFlag(FLAGS_save); !folder.empty()) return folder;
  const char* called_from = std::getenv("BUILD_WORKING_DIRECTORY");  // by `bazel run`
  return called_from == nullptr ? "." : called_from;
}

bool ReadOnce(const FuzzTarget& target, const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    std::cerr << "`" << path << "` cannot be read\n";
    return false;
  }
  const std::string bytes((std::istreambuf_iterator<char>(stream)),
                          std::istreambuf_iterator<char>());
  CountMemory(target.most_bytes);
  const absl::Status answer = target.read(bytes);
  const int64_t peak = PeakMemory();
  StopCountingMemory();
  std::cout << target.name << ": " << answer.ToString() << "\nmemory: " << peak << " bytes\n";
  return CheckAnswer(answer, bytes).ok() && !MemoryWasShort();
}

int Main() {
  std::vector<const FuzzTarget*> targets;
  for (const FuzzTarget& target : FuzzTargets()) {
    if (absl::GetFlag(FLAGS_target).empty()) targets.push_back(&target);
  }
  for (const std::string& name : absl::GetFlag(FLAGS_target)) {
    const FuzzTarget* target = FindFuzzTarget(name);
    if (target == nullptr) {
      std::cerr << "no target `" << name << "`; there are "
                << absl::StrJoin(FuzzTargets(), ", ",
                                 [](std::string* out, const FuzzTarget& t) { *out += t.name; })
                << "\n";
      return 2;
    }
    targets.push_back(target);
  }
  if (const std::string path = absl::GetFlag(FLAGS_input); !path.empty()) {
    return targets.size() == 1 && ReadOnce(*targets.front(), path) ? 0 : 1;
  }
  FuzzOptions options;
  options.first = absl::GetFlag(FLAGS_first);
  options.runs = absl::GetFlag(FLAGS_runs);
  options.seconds = absl::GetFlag(FLAGS_seconds);
  options.save = SaveFolder();
  std::cout << "| target | cases | read | refused | seconds | slowest case | most memory |\n"
               "|---|---|---|---|---|---|---|\n";
  int failed = 0;
  for (const FuzzTarget* target : targets) {
    const auto seeds = FuzzSeeds(target->name, absl::GetFlag(FLAGS_corpus));
    if (seeds.ok() && absl::GetFlag(FLAGS_keep)) {
      const std::string path =
          absl::StrCat(options.save, "/fuzz-", target->name, "-", options.first);
      std::ofstream(path, std::ios::binary) << FuzzInput(*target, *seeds, options.first);
      std::cout << path << "\n";
      continue;
    }
    const auto counts = seeds.ok() ? RunFuzz(*target, *seeds, options) : seeds.status();
    if (!counts.ok()) {
      std::cerr << counts.status().message() << "\n";
      failed = 1;
      continue;
    }
    std::cout << absl::StrFormat("| `%s` | %d | %d | %d | %.0f | %.0f ms (%d) | %.1f MiB |\n",
                                 target->name, counts->runs, counts->accepted, counts->refused,
                                 counts->seconds, counts->slowest_seconds * 1e3, counts->slowest,
                                 static_cast<double>(counts->most_bytes) / (1 << 20))
              << std::flush;
  }
  return failed;
}

}  // namespace
}  // namespace plancast

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("Fuzzes the readers of files that others wrote.");
  absl::ParseCommandLine(argc, argv);
  return plancast::Main();
}
