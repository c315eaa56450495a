#ifndef PLANCAST_INTEROP_CHAKRA_ET_FILE_H_
#define PLANCAST_INTEROP_CHAKRA_ET_FILE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/chakra.pb.h"

namespace plancast {

// One Chakra execution trace as it lies in its file: what one rank ran.
struct EtFile {
  chakra::GlobalMetadata metadata;
  std::vector<chakra::Node> nodes;
};

// What may still be read of a set of files: of one rank each, there can be thousands.
struct EtAllowance {
  size_t bytes = size_t{1} << 30;  // unpacked
  size_t nodes = 4'000'000;
  size_t parts = 16'000'000;  // attributes and dependencies
  // Of the messages of any one file, where two bytes of the file can be a hundred.
  size_t memory = size_t{2} << 30;
};

// Reads a stream of messages behind their lengths, or the same in gzip. Fields that
// we do not know are kept. `what` stands for the file in errors, which name the
// byte of the (unpacked) stream. Limits: 256 MiB unpacked, 16 MiB a
// message, and what the set that the file is of has left, from which its own is taken.
absl::StatusOr<EtFile> ReadEtFile(absl::string_view bytes, absl::string_view what,
                                  EtAllowance& left);
// A file alone.
absl::StatusOr<EtFile> ReadEtFile(absl::string_view bytes, absl::string_view what);

// The stream, unpacked: what ASTRA-sim reads. A file whose writer put fields in the
// order of their numbers, as protobuf does, comes back byte for byte.
std::string WriteEtFile(const EtFile& file);

// Value of an integer or bool attribute of any width. False: there is none of that
// name, or it holds something else or more than an int64.
bool IntAttribute(const chakra::Node& node, absl::string_view name, int64_t& value);

// The attribute, or null.
const chakra::AttributeProto* FindAttribute(const chakra::Node& node, absl::string_view name);

}  // namespace plancast

#endif  // PLANCAST_INTEROP_CHAKRA_ET_FILE_H_
