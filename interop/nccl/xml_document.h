#ifndef PLANCAST_INTEROP_NCCL_XML_DOCUMENT_H_
#define PLANCAST_INTEROP_NCCL_XML_DOCUMENT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "cluster/topology/system_element.h"

namespace plancast {

// What both kinds of NCCL's files have in common: elements with attributes and
// nothing between them.
struct XmlLimits {
  size_t bytes = size_t{16} << 20;
  int elements = 65536;
  int attributes = 128;  // of an element; NCCL writes some twenty
  int depth = 64;
};

// The root, which has to be called `root`; comments and white space are dropped.
// Errors name the file, and line or byte.
absl::StatusOr<SystemElement> ReadXml(absl::string_view text, absl::string_view what,
                                      absl::string_view root, const XmlLimits& limits = {});

// Two spaces a level, attributes in their order.
std::string WriteXml(const SystemElement& root);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_NCCL_XML_DOCUMENT_H_
