#include "interop/msccl/msccl_check.h"

#include <cstddef>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "collectives/programs/check/check.h"

namespace plancast {
namespace {

// Takes `word` and a number off the front of `text`.
bool Consume(absl::string_view& text, absl::string_view word, int32_t& number) {
  if (!absl::ConsumePrefix(&text, word)) return false;
  size_t digits = 0;
  while (digits < text.size() && absl::ascii_isdigit(text[digits])) ++digits;
  if (!absl::SimpleAtoi(text.substr(0, digits), &number)) return false;
  text.remove_prefix(digits);
  return true;
}

// "gpu 0, thread block 3, step 5" becomes "gpu 0, thread block 3, step 5 (line 12)".
std::string WithLines(const MscclAlgorithm& algorithm, absl::string_view message) {
  std::string out;
  while (!message.empty()) {
    absl::string_view rest = message;
    int32_t rank = 0, block = 0, step = 0;
    if (Consume(rest, "gpu ", rank) && Consume(rest, ", thread block ", block) &&
        Consume(rest, ", step ", step)) {
      absl::StrAppend(&out, message.substr(0, message.size() - rest.size()),
                      algorithm.LineOf(rank, block, step));
      message = rest;
    } else {
      out += message.front();
      message.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace

absl::Status CheckMscclAlgorithm(const MscclAlgorithm& algorithm, absl::string_view what) {
  const absl::Status status = CheckChunkProgram(algorithm.program);
  if (status.ok()) return status;
  absl::string_view message = status.message();
  absl::ConsumePrefix(&message, absl::StrCat("`", algorithm.program.name, "`: "));
  return absl::InvalidArgumentError(absl::StrCat("`", what, "`: ", WithLines(algorithm, message)));
}

}  // namespace plancast
