#include "absl/status/statusor.h"
#include "interop/msccl/msccl_check.h"
#include "interop/msccl/msccl_xml.h"
#include "interop/msccl/nvlink_graph.h"
#include "tests/fuzz/native/targets/groups.h"

namespace plancast {
namespace {

// What was read is run on symbols; if it is right, it is written and read again.
absl::Status MscclFile(absl::string_view bytes) {
  const absl::StatusOr<MscclAlgorithm> algorithm = ReadMscclAlgorithm(bytes, "algorithm");
  if (!algorithm.ok()) return algorithm.status();
  if (absl::Status right = CheckMscclAlgorithm(*algorithm, "algorithm"); !right.ok()) return right;
  const absl::StatusOr<std::string> written = WriteMscclAlgorithm(*algorithm);
  if (!written.ok()) return written.status();
  const absl::Status again = ReadMscclAlgorithm(*written, "written").status();
  return again.ok() ? again : absl::InternalError(again.message());
}

absl::Status NvlinkGraph(absl::string_view bytes) {
  return ReadNvlinkGraph(bytes, "topology").status();
}

}  // namespace

std::vector<FuzzTarget> MscclTargets() {
  return {{"msccl_xml",
           MscclFile,
           {"type=\"rrcs\"", "type=\"re\"", "type=\"cpy\"", "srcbuf=\"s\"", "hasdep=\"1\"",
            "depid=\"0\"", "deps=\"0\"", "cnt=\"71\"", "<gpu id=\"2\">", "<tb id=\"1\">", "<!--",
            "proto=\"LL128\"", "coll=\"alltoall\"", "ngpus=\"3\"", "<![CDATA["},
           {"<algo>", "<gpu id=\"0\">", "<tb id=\"0\">", "<", "<step s=\"0\"/>"}},
          {"msccl_nvlinks",
           NvlinkGraph,
           {"<nvlink target=\"0000:02:00.0\" count=\"2\" tclass=\"0x030200\"/>", "0x068000",
            "rank=\"2\"", "sm=\"90\"", "count=\"2147483647\""},
           {"<pci busid=\"0\">", "<cpu numaid=\"0\">", "<"}}};
}

}  // namespace plancast
