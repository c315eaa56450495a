#include "tests/executor/both_ways_cases.h"

#include <cmath>
#include <initializer_list>

#include "tests/executor/graph_builder.h"

namespace plancast {
namespace {

constexpr int64_t kGB = 1'000'000'000;

// Times in seconds, of the tasks of one rank.
std::vector<int64_t> Ends(std::initializer_list<double> seconds) {
  std::vector<int64_t> ends;
  for (double s : seconds) ends.push_back(std::llround(s * 1e12));
  return ends;
}

// Tasks of two devices that do the same.
GraphBuilder Pair(const std::string& block) {
  GraphBuilder b({{"tp", 2}});
  b.Block(block);
  return b;
}

void AddGradients(GraphBuilder& b, int64_t bytes, std::vector<int> deps = {}) {
  b.Comm(CollectiveKind::kAllReduce, bytes, {0}, std::move(deps), Purpose::kDp,
         StreamKind::kGradComm);
}

BothWaysCase OfPair(const std::string& name, GraphBuilder& b,
                    std::initializer_list<double> seconds) {
  BothWaysCase out;
  out.name = name;
  b.Program("all").Run("block");
  out.graph = b.Build();
  out.machine = UnitMachine(1, 2);
  out.ends.assign(2, Ends(seconds));
  return out;
}

// A kernel of 3 s and 20 GB at 10 GB/s. The transfer goes at 8 GB/s throughout and
// ends at 2.5 s, when the kernel has done 2 s of its own; the last one is alone.
BothWaysCase BesideALongKernel() {
  GraphBuilder b = Pair("block");
  b.Kernel(3);
  AddGradients(b, 20 * kGB);
  BothWaysCase out = OfPair("BesideALongKernel", b, {3.5, 2.5});
  out.interference = out.comm_interference = 0.25;
  return out;
}

// A kernel of 0.8 s takes 1 s. By then the transfer at 8 GB/s has moved 8 GB; the
// other 12 take 1.2 s.
BothWaysCase BesideAShortKernel() {
  GraphBuilder b = Pair("block");
  b.Kernel(0.8);
  AddGradients(b, 20 * kGB);
  BothWaysCase out = OfPair("BesideAShortKernel", b, {1, 2.2});
  out.interference = out.comm_interference = 0.25;
  return out;
}

// The kernels take 1.25 s each, since gradients are in flight, and between them is
// a second in which 10 GB of model parallelism run without a kernel. Gradients:
// 6.25 GB at half rate, 10, 6.25 again by 3.5 s; the other 17.5 take 1.75 s.
BothWaysCase AGapBetweenKernels() {
  GraphBuilder b = Pair("block");
  AddGradients(b, 40 * kGB);
  b.Kernel(1);
  b.Comm(CollectiveKind::kAllReduce, 10 * kGB, {0}, {1});
  b.Kernel(1, {2});
  BothWaysCase out = OfPair("AGapBetweenKernels", b, {5.25, 1.25, 2.25, 3.5});
  out.interference = 0.25;
  out.comm_interference = 1;
  return out;
}

// The kernel is slow in the delay of 1 s and ends with it, so the transfer of 10 GB
// never runs alongside it.
BothWaysCase OverWithTheDelay() {
  GraphBuilder b = Pair("block");
  b.Kernel(0.8);
  AddGradients(b, 10 * kGB);
  BothWaysCase out = OfPair("OverWithTheDelay", b, {1, 2});
  out.delay_ps = 1'000'000'000'000;
  out.interference = 0.25;
  out.comm_interference = 1;
  return out;
}

// The kernel lasts until 1.5 s: the delay is what it is, then 2.5 GB move at half
// rate and 7.5 at all of it.
BothWaysCase TheDelayIsNotSlowed() {
  GraphBuilder b = Pair("block");
  b.Kernel(1.2);
  AddGradients(b, 10 * kGB);
  BothWaysCase out = OfPair("TheDelayIsNotSlowed", b, {1.5, 2.25});
  out.delay_ps = 1'000'000'000'000;
  out.interference = 0.25;
  out.comm_interference = 1;
  return out;
}

// 100 and 200 GB on a link of 100 GB/s that either could fill: 50 GB/s each until
// 2 s, whatever slows them to 80. Then the larger has 100 GB left, of which it
// moves 40 alongside the kernel and 60 in 0.6 s after it.
BothWaysCase ALinkBindsBeforeTheCap() {
  GraphBuilder b = Pair("block");
  b.Kernel(2.5);
  b.Comm(CollectiveKind::kAllReduce, 100 * kGB, {0});
  AddGradients(b, 200 * kGB);
  BothWaysCase out = OfPair("ALinkBindsBeforeTheCap", b, {2.5, 2, 3.1});
  out.loads_nvlink = true;
  out.rate_cap = 100 * kGB;
  out.comm_interference = 0.25;
  return out;
}

// The host launches one thing a second: the communication at 1 s, the kernel at 2
// and its second half at 3, when it ends. So the transfer moves 10 GB alone, 5
// alongside the kernel and the last 5 in half a second.
BothWaysCase AKernelThatWaitsForItsLaunch() {
  GraphBuilder b = Pair("block");
  AddGradients(b, 20 * kGB);
  b.Kernel(0.5);
  BothWaysCase out = OfPair("AKernelThatWaitsForItsLaunch", b, {3.5, 3});
  out.graph.kernels[0].launches = 2;
  out.host.launch_ps = 1'000'000'000'000;
  out.interference = 0.25;
  out.comm_interference = 1;
  return out;
}

BothWaysCase AKernelOfNoTime() {
  GraphBuilder b = Pair("block");
  b.Kernel(0);
  AddGradients(b, 10 * kGB);
  BothWaysCase out = OfPair("AKernelOfNoTime", b, {0, 1});
  out.interference = out.comm_interference = 1;
  return out;
}

// The second of two kernels starts when the first ends: no gap. 5 GB/s for 2 s.
BothWaysCase KernelsOneAfterAnother() {
  GraphBuilder b = Pair("block");
  b.Kernel(1).Kernel(0, {0}).Kernel(1, {1});
  AddGradients(b, 20 * kGB);
  BothWaysCase out = OfPair("KernelsOneAfterAnother", b, {1, 1, 2, 3});
  out.comm_interference = 1;
  return out;
}

// A kernel outside the compute stream counts as any.
BothWaysCase AKernelOfAnotherStream() {
  GraphBuilder b = Pair("block");
  b.Kernel(1, {}, Purpose::kDp, StreamKind::kGradComm);
  b.Comm(CollectiveKind::kAllReduce, 20 * kGB, {0});
  BothWaysCase out = OfPair("AKernelOfAnotherStream", b, {1, 2.5});
  out.comm_interference = 1;
  return out;
}

// A cap of 10,000,000,001 is 5,000,000,000 at half. Of as many bytes 5,000,000,001
// are left after a second; they take 500,000,000,049.999999995 ps.
BothWaysCase RoundsTheCapDownAndTheEndUp() {
  GraphBuilder b = Pair("block");
  b.Kernel(1);
  AddGradients(b, 10 * kGB + 1);
  BothWaysCase out = OfPair("RoundsTheCapDownAndTheEndUp", b, {1, 1.50000000005});
  out.rate_cap = 10 * kGB + 1;
  out.comm_interference = 1;
  return out;
}

// A byte a second is as slow as it gets.
BothWaysCase ACapOfOne() {
  GraphBuilder b = Pair("block");
  b.Kernel(5);
  AddGradients(b, 3);
  BothWaysCase out = OfPair("ACapOfOne", b, {5, 3});
  out.rate_cap = 1;
  out.comm_interference = 1;
  return out;
}

// The kernel takes 1 s on device 1 and 2 on device 0, which is half as fast: slow
// until the last of both is over.
BothWaysCase AStraggler() {
  GraphBuilder b = Pair("block");
  b.Kernel(1);
  AddGradients(b, 20 * kGB);
  BothWaysCase out = OfPair("AStraggler", b, {1, 3});
  out.machine.device_overrides.push_back({0, 0.5});
  out.ends[0] = Ends({2, 3});
  out.comm_interference = 1;
  return out;
}

// A message of 20 GB from stage 0 to stage 1 alongside a kernel on each; none where it
// takes no time.
BothWaysCase Message(const std::string& name, double sender, double receiver, double arrives) {
  GraphBuilder b({{"pp", 2}});
  const int met = b.Rendezvous();
  const auto stage = [&](int64_t number, StreamKind stream, double seconds) {
    const std::string block = "stage " + std::to_string(number);
    b.Block(block);
    b.Comm(CollectiveKind::kSendRecv, 20 * kGB, {0}, {}, Purpose::kPp, stream).Meets();
    b.Kernel(seconds);
    b.Program(block, {{0, number}}).Run(block, {}, 1, 0, met);
  };
  stage(0, StreamKind::kSendNext, sender);
  stage(1, StreamKind::kRecvPrev, receiver);
  BothWaysCase out;
  out.name = name;
  out.graph = b.Build();
  out.machine = UnitMachine(1, 2);
  out.ends = {Ends({arrives, sender}), Ends({arrives, receiver})};
  out.comm_interference = 1;
  return out;
}

// Two all-reduces over the interface of 10 GB/s that two devices of a host share,
// one of them alongside a kernel of 1 s, which holds it down to 4 GB/s: the other gets
// the 6 that it leaves. Both have 5 GB left then, and halve the link.
BothWaysCase OthersTakeWhatACapLeaves() {
  GraphBuilder b({{"dp", 2}, {"tp", 2}});
  b.Block("slowed");
  AddGradients(b, 9 * kGB);
  b.Kernel(1);
  b.Program("slowed", {{1, 0}}).Run("slowed");
  b.Block("other");
  AddGradients(b, 11 * kGB);
  b.Program("other", {{1, 1}}).Run("other");
  BothWaysCase out;
  out.name = "OthersTakeWhatACapLeaves";
  out.graph = b.Build();
  out.machine = UnitMachine(2, 2, 2);
  out.loads_nic = true;
  out.comm_interference = 1.5;
  out.ends = {Ends({2, 1}), Ends({2}), Ends({2, 1}), Ends({2})};
  return out;
}

}  // namespace

std::vector<BothWaysCase> BothWaysCases() {
  return {BesideALongKernel(), BesideAShortKernel(), AGapBetweenKernels(), OverWithTheDelay(),
          TheDelayIsNotSlowed(), ALinkBindsBeforeTheCap(), AKernelThatWaitsForItsLaunch(),
          AKernelOfNoTime(), KernelsOneAfterAnother(), AKernelOfAnotherStream(),
          RoundsTheCapDownAndTheEndUp(), ACapOfOne(), AStraggler(),
          // 5 GB in the first second, the other 15 in 1.5 s.
          Message("AKernelOnTheSender", 1, 0, 2.5), Message("AKernelOnTheReceiver", 0, 1, 2.5),
          // Both at once slow it no more than one: 7.5 GB in 1.5 s, 12.5 in 1.25.
          Message("AKernelOnBothEnds", 1, 1.5, 2.75), OthersTakeWhatACapLeaves()};
}

CommPricer::RealiseFn CommOf(const BothWaysCase& of, const Machine& machine) {
  return [&of, &machine](const GroupPattern& group,
                         const CommSpec& comm) -> absl::StatusOr<RealisedCollective> {
    RealisedCollective realised;
    realised.rate_cap_bytes_per_s = 1;
    if (group.size() == 1) return realised;
    realised.rate_cap_bytes_per_s = of.rate_cap;
    realised.delay_ps = of.delay_ps;
    realised.work_bytes = comm.bytes;
    if (of.loads_nvlink) {
      realised.loads.push_back({machine.FindLinkClass(LinkKind::kNvlink), 1 << 20});
    }
    if (of.loads_nic) realised.loads.push_back({machine.FindLinkClass(LinkKind::kNic), 1 << 20});
    return realised;
  };
}

}  // namespace plancast
