#include "interop/nccl/trace_words.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/enum_names.h"

namespace plancast {
namespace {

using absl::string_view;
using Kind = NcclEventKind;

// NVIDIA/nccl ext-profiler/example/print_event.cc, versions v1 to v6 of the interface.
constexpr NcclCategory kCategories[] = {
    {"GROUP_API", Kind::kGroupCall, 0},
    {"COLL_API", Kind::kCall, 1},
    {"P2P_API", Kind::kCall, 1},
    {"KERNEL_LAUNCH", Kind::kLaunch, 1},
    {"GROUP", Kind::kGroup, 2},
    {"COLL", Kind::kCollective, 3},
    {"P2P", Kind::kPointToPoint, 3},
    {"CE_COLL", Kind::kCopyEngine, 3},
    {"CE_SYNC", Kind::kCopyEngine, 4},
    {"CE_BATCH", Kind::kCopyEngine, 4},
    {"GPU", Kind::kKernel, 4},
    {"PROXY", Kind::kProxyOp, 4},
    {"NET", Kind::kWait, kNcclWaitLevel},
    {"NET_IB", Kind::kNetwork, 7},
    {"NET_SOCK", Kind::kNetwork, 7},
};

bool ConsumeDirection(string_view& word, NcclDirection& direction) {
  if (absl::ConsumePrefix(&word, "send")) {
    direction = NcclDirection::kSend;
  } else if (absl::ConsumePrefix(&word, "recv")) {
    direction = NcclDirection::kReceive;
  } else {
    return false;
  }
  return true;
}

}  // namespace

absl::string_view NcclEventKindName(NcclEventKind kind) {
  constexpr auto kNames = NamesOf<NcclEventKind>(
      "group call", "call", "launch", "group", "collective", "point to point", "copy engine",
      "kernel", "proxy op", "step", "wait", "network", "proxy thread", "other");
  return kNames[kind];
}

absl::string_view NcclWaitName(NcclWait wait) {
  constexpr auto kNames =
      NamesOf<NcclWait>("", "buffer", "gpu", "peer", "send", "receive", "flush");
  return kNames[wait];
}

const NcclCategory* FindNcclCategory(string_view name) {
  for (const NcclCategory& category : kCategories) {
    if (category.name == name) return &category;
  }
  return nullptr;
}

bool ParseProxyStep(string_view name, bool& send, int64_t& peer, int64_t& step) {
  const std::vector<string_view> parts = absl::StrSplit(name, absl::MaxSplits('-', 3));
  if (parts.size() != 3 || (parts[0] != "Send" && parts[0] != "Recv")) return false;
  send = parts[0] == "Send";
  return absl::SimpleAtoi(parts[1], &peer) && absl::SimpleAtoi(parts[2], &step);
}

bool ParseWait(string_view name, NcclWait& wait, NcclDirection& direction) {
  if (name.size() > 32) return false;
  const std::string lower = absl::AsciiStrToLower(name);
  string_view word = lower;
  if (!absl::ConsumeSuffix(&word, "wait")) return false;
  const bool directed = ConsumeDirection(word, direction);
  if (word.empty() && directed) {
    wait = direction == NcclDirection::kSend ? NcclWait::kSend : NcclWait::kReceive;
  } else if (word == "buffer") {
    wait = NcclWait::kBuffer;
  } else if (word == "gpu") {
    wait = NcclWait::kGpu;
  } else if (word == "peer" || word == "remfifo") {
    wait = NcclWait::kPeer;
  } else if (word == "flush") {
    wait = NcclWait::kFlush;
  } else {
    return false;
  }
  return true;
}

int64_t NcclTypeBytes(string_view datatype) {
  if (!absl::ConsumePrefix(&datatype, "nccl")) return 0;
  const std::string type = absl::AsciiStrToLower(datatype);
  if (type == "int8" || type == "char" || type == "uint8" || absl::StartsWith(type, "float8")) {
    return 1;
  }
  if (type == "float16" || type == "half" || type == "bfloat16") return 2;
  if (type == "int32" || type == "int" || type == "uint32" || type == "float32" ||
      type == "float") {
    return 4;
  }
  return type == "int64" || type == "uint64" || type == "float64" || type == "double" ? 8 : 0;
}

}  // namespace plancast
