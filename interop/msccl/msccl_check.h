#ifndef PLANCAST_INTEROP_MSCCL_MSCCL_CHECK_H_
#define PLANCAST_INTEROP_MSCCL_MSCCL_CHECK_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "interop/msccl/msccl_xml.h"

namespace plancast {

// CheckChunkProgram of an algorithm that was read: the steps that it names get
// their lines in the text, called `what`.
absl::Status CheckMscclAlgorithm(const MscclAlgorithm& algorithm, absl::string_view what);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_MSCCL_MSCCL_CHECK_H_
