#include "interop/astra/case_workloads.h"

#include <cstdio>
#include <functional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "interop/astra/text_workload.h"

namespace plancast {
namespace {

constexpr int64_t kMostNodes = 1'000'000;

AstraNode Kernel(int64_t us) {
  AstraNode node;
  node.kind = AstraNodeKind::kCompute;
  node.duration_us = us;
  return node;
}

AstraNode Collective(AstraCollective collective, int64_t bytes, int32_t group = -1) {
  AstraNode node;
  node.kind = AstraNodeKind::kCollective;
  node.collective = collective;
  node.bytes = bytes;
  node.group = group;
  return node;
}

AstraNode Message(bool send, int64_t peer, int64_t tag, int64_t bytes) {
  AstraNode node;
  node.kind = send ? AstraNodeKind::kSend : AstraNodeKind::kRecv;
  node.peer = peer;
  node.tag = tag;
  node.bytes = bytes;
  return node;
}

// Numbers nodes as they come.
int32_t Append(AstraProgram& program, AstraNode node, const std::vector<int32_t>& after = {}) {
  const auto index = static_cast<int32_t>(program.nodes.size());
  node.id = static_cast<uint64_t>(index);
  program.Add(node, after);
  return index;
}

absl::StatusOr<AstraCollective> CollectiveOf(absl::string_view word) {
  const auto found = kAstraCollectiveNames.Find(word);
  if (found && *found != AstraCollective::kReplay) return *found;
  return absl::InvalidArgumentError(
      absl::StrCat("collective `", word,
                   "` is not one of `all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all`"));
}

void SameOnAll(AstraWorkload& workload, AstraProgram program, int64_t npus) {
  workload.programs = {std::move(program)};
  workload.program_of.assign(npus, 0);
}

void EachItsOwn(AstraWorkload& workload, int64_t npus,
                const std::function<AstraProgram(int64_t)>& program) {
  for (int64_t r = 0; r < npus; ++r) {
    workload.programs.push_back(program(r));
    workload.program_of.push_back(static_cast<int32_t>(r));
  }
}

// Kernels and collectives in turn: a chain, or each collective behind its kernel.
AstraProgram InTurn(bool chain, int64_t times, int64_t us, const AstraNode& collective) {
  AstraProgram program;
  std::vector<int32_t> before;
  for (int64_t i = 0; i < times; ++i) {
    const int32_t kernel = Append(program, Kernel(us), before);
    const int32_t reduced = Append(program, collective, {kernel});
    if (chain) before = {reduced};
  }
  return program;
}

// Every rank passes each message on to the next.
AstraProgram PassOn(int64_t rank, int64_t npus, int64_t messages, int64_t bytes) {
  AstraProgram program;
  for (int64_t m = 0; m < messages; ++m) {
    std::vector<int32_t> after;
    if (rank > 0) after = {Append(program, Message(false, rank - 1, m, bytes))};
    if (rank + 1 < npus) Append(program, Message(true, rank + 1, m, bytes), after);
  }
  return program;
}

// The ring that MSCCL's example becomes: n chunks round n ranks, each added to
// what is there on the first way round. A chunk is an eighth of 1 MiB, and adding
// it takes 3 accesses at 50 GB/s, in whole microseconds, as in ASTRA-sim's example.
AstraProgram CustomRing(int64_t place, int64_t n) {
  constexpr int64_t kBytes = (1 << 20) / 8, kReduceUs = 3 * (kBytes / 50) / 1000;
  AstraProgram program;
  std::vector<int32_t> before;
  const int64_t next = (place + 1) % n, previous = (place + n - 1) % n;
  for (int64_t step = 0; step < 2 * (n - 1); ++step) {
    before = {Append(program, Message(true, next, 0, kBytes), before)};
    before = {Append(program, Message(false, previous, 0, kBytes), before)};
    if (step < n - 1) before = {Append(program, Kernel(kReduceUs), before)};
  }
  return program;
}

bool Contains(const AstraCase& c, absl::string_view word) {
  return absl::StrContains(c.workload, word);
}

absl::Status TooMany(int64_t nodes) {
  return absl::InvalidArgumentError(
      absl::StrCat("the workload asks for ", nodes, " nodes; the limit is ", kMostNodes));
}

absl::Status Groups(const AstraCase& c, int64_t count, int64_t size, AstraWorkload& workload) {
  const int64_t npus = c.network.npus();
  if (count < 1 || size < 1 || count > npus || size > npus || count * size != npus) {
    return absl::InvalidArgumentError(
        absl::StrCat(count, " groups of ", size, " are not the ", npus, " NPUs of the network"));
  }
  ASSIGN_OR_RETURN(const AstraCollective collective, CollectiveOf(c.collective));
  const bool strided = Contains(c, "strided") || Contains(c, "(dp)");
  for (int64_t g = 0; g < count; ++g) {
    AstraGroup group;
    group.id = g + 1;
    for (int64_t i = 0; i < size; ++i)
      group.ranks.push_back(strided ? g + i * count : g * size + i);
    workload.groups.push_back(group);
    AstraProgram program;
    Append(program, Collective(collective, c.bytes, static_cast<int32_t>(g)));
    workload.programs.push_back(std::move(program));
  }
  for (int64_t r = 0; r < npus; ++r) {
    workload.program_of.push_back(static_cast<int32_t>(strided ? r % count : r / size));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<AstraCaseInputs> InputsOfCase(const AstraCase& c) {
  const int64_t npus = c.network.npus();
  AstraCaseInputs inputs;
  inputs.system = c.system;
  AstraWorkload& workload = inputs.workload;
  const char* words = c.workload.c_str();
  long long a = 0, b = 0, d = 0;  // NOLINT(google-runtime-int): of scanf
  if (c.workload == "micro") {
    ASSIGN_OR_RETURN(const AstraCollective collective, CollectiveOf(c.collective));
    AstraProgram program;
    Append(program, Collective(collective, c.bytes));
    SameOnAll(workload, std::move(program), npus);
    if (absl::StrContains(c.note, "custom_collective")) {
      inputs.system.all_reduce = {AstraAlgorithm{AstraAlgorithm::Kind::kCustom}};
      for (int64_t place = 0; place < npus; ++place) {
        inputs.system.custom.push_back(CustomRing(place, npus));
      }
    }
    return inputs;
  }
  const bool chain = absl::StartsWith(c.workload, "chain:");
  if (chain || absl::StartsWith(c.workload, "overlap:")) {
    ASSIGN_OR_RETURN(const AstraCollective collective, CollectiveOf(c.collective));
    if (std::sscanf(words, "chain: %lld x (comp %lld us", &a, &d) != 2 &&
        std::sscanf(words, "overlap: %lld comp %lld us", &a, &d) != 2 &&
        std::sscanf(words, "%*[a-z]: %lld nodes/rank (%lld comp %lld us", &b, &a, &d) != 3) {
      return absl::InvalidArgumentError(
          absl::StrCat("workload `", c.workload,
                       "` does not say how many kernels of how many us; `chain: 10 x "
                       "(comp 10 us -> AR)` would"));
    }
    if (a < 1 || a > kMostNodes) return TooMany(2 * a);
    if (d < 0 || d > 1'000'000'000) {
      return absl::InvalidArgumentError(absl::StrCat("kernels of ", d, " us"));
    }
    SameOnAll(workload, InTurn(chain, a, d, Collective(collective, c.bytes)), npus);
    return inputs;
  }
  if (Contains(c, "p2p")) {
    const size_t at = c.workload.find("p2p: ");
    a = 4;  // what the generator takes unless told otherwise
    if (at != std::string::npos) std::sscanf(words + at, "p2p: %lld messages", &a);
    if (a < 1 || a > kMostNodes / npus) return TooMany(2 * a * npus);
    EachItsOwn(workload, npus, [&](int64_t r) { return PassOn(r, npus, a, c.bytes); });
    return inputs;
  }
  if (std::sscanf(words, "single %lld MiB message %lld->%lld", &a, &b, &d) == 3) {
    if (b < 0 || d < 0 || b >= npus || d >= npus || b == d) {
      return absl::InvalidArgumentError(
          absl::StrCat("message ", b, "->", d, " of ", npus, " NPUs"));
    }
    EachItsOwn(workload, npus, [&](int64_t r) {
      AstraProgram program;
      Append(program, r == b   ? Message(true, d, 0, c.bytes)
                      : r == d ? Message(false, b, 0, c.bytes)
                               : Kernel(1));
      return program;
    });
    return inputs;
  }
  if (std::sscanf(words, "ranks %lld-%lld AR in subgroup, then all AG", &a, &b) == 2) {
    if (a < 0 || b >= npus || a > b) {
      return absl::InvalidArgumentError(absl::StrCat("ranks ", a, "-", b, " of ", npus, " NPUs"));
    }
    workload.groups.push_back({1, {}});
    for (int64_t r = a; r <= b; ++r) workload.groups[0].ranks.push_back(r);
    workload.programs.resize(2);
    const AstraNode gather = Collective(AstraCollective::kAllGather, c.bytes);
    Append(workload.programs[0], gather);
    Append(workload.programs[1], Collective(AstraCollective::kAllReduce, c.bytes, 0));
    Append(workload.programs[1], gather, {0});
    for (int64_t r = 0; r < npus; ++r) workload.program_of.push_back(r >= a && r <= b ? 1 : 0);
    return inputs;
  }
  if (Contains(c, "independent AR") && std::sscanf(words, "%lld", &a) == 1) {
    if (a < 1 || a > kMostNodes) return TooMany(a);
    AstraProgram program;
    for (int64_t i = 0; i < a; ++i) {
      Append(program, Collective(AstraCollective::kAllReduce, c.bytes));
    }
    SameOnAll(workload, std::move(program), npus);
    return inputs;
  }
  if (std::sscanf(words, "%lld strided groups of %lld", &a, &b) == 2 ||
      std::sscanf(words, "%lld groups of %lld", &a, &b) == 2) {
    RETURN_IF_ERROR(Groups(c, a, b, workload));
    return inputs;
  }
  if (Contains(c, "MLP_ModelParallel") || Contains(c, "tutorials micro2024 demo2")) {
    ASSIGN_OR_RETURN(AstraProgram program,
                     ReadTextWorkload(MlpModelParallelText(), "MLP_ModelParallel"));
    SameOnAll(workload, std::move(program), npus);
    return inputs;
  }
  return absl::UnimplementedError(absl::StrCat(
      "workload `", c.workload,
      "` does not say what each rank runs: its traces are not in the table. Run them with "
      "`plancast run PREFIX --network NET.yml --system SYS.json`."));
}

}  // namespace plancast
