#include "tests/fuzz/native/session.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/fuzz/native/guard.h"
#include "tests/fuzz/native/mutate.h"

namespace plancast {
namespace {

// Beside what is quoted.
constexpr size_t kLongestMessage = 4000;

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

absl::Status Timed(const FuzzTarget& target, const std::string& input, double& took) {
  const double begin = Seconds();
  absl::Status answer;
  try {
    answer = target.read(input);
  } catch (const std::exception& thrown) {  // bad_alloc, most likely
    answer = absl::InternalError(absl::StrCat("an exception, ", thrown.what()));
  }
  took = Seconds() - begin;
  return answer;
}

}  // namespace

absl::Status CheckAnswer(const absl::Status& answer, absl::string_view bytes) {
  if (answer.ok()) return answer;
  if (answer.code() != absl::StatusCode::kInvalidArgument) {
    return absl::InternalError(absl::StrCat("the reader answered ", answer.ToString()));
  }
  if (answer.message().empty()) return absl::InternalError("a refusal without words");
  if (answer.message().size() > kLongestMessage + 4 * bytes.size()) {
    return absl::InternalError(absl::StrCat("a refusal of ", answer.message().size(),
                                            " bytes: ", answer.message().substr(0, 200), "..."));
  }
  return absl::OkStatus();
}

absl::StatusOr<FuzzCounts> RunFuzz(const FuzzTarget& target, const std::vector<std::string>& seeds,
                                   const FuzzOptions& options) {
  InstallGuards();
  FuzzCounts counts;
  for (uint64_t number = options.first; number < options.first + options.runs; ++number) {
    const std::string input = FuzzInput(target, seeds, number);
    const std::string path = absl::StrCat(options.save, "/fuzz-", target.name, "-", number);
    Watch(input, path, options.seconds);
    CountMemory(target.most_bytes);
    double took = 0;
    const absl::Status answer = Timed(target, input, took);
    // Something else may have run; what is slow is slow twice.
    if (took > counts.slowest_seconds && took > 0.05) {
      double again = 0;
      Timed(target, input, again).IgnoreError();
      took = std::min(took, again);
    }
    StopCountingMemory();
    absl::Status verdict = CheckAnswer(answer, input);
    if (MemoryWasShort()) verdict = absl::InternalError("the case asked for too much memory");
    if (!verdict.ok()) {
      std::ofstream(path, std::ios::binary) << input;
      Unwatch();
      return absl::InternalError(absl::StrCat("target ", target.name, ", case ", number, ", input ",
                                              path, ": ", verdict.message()));
    }
    Unwatch();
    ++counts.runs;
    ++(answer.ok() ? counts.accepted : counts.refused);
    counts.seconds += took;
    counts.most_bytes = std::max(counts.most_bytes, PeakMemory());
    if (took > counts.slowest_seconds) {
      counts.slowest_seconds = took;
      counts.slowest = number;
    }
  }
  return counts;
}

}  // namespace plancast
