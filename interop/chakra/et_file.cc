#include "interop/chakra/et_file.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "interop/chakra/gzip.h"

namespace plancast {
namespace {

constexpr size_t kMostBytes = 256u << 20, kMostMessageBytes = 16u << 20;
absl::Status Bad(absl::string_view what, size_t byte, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": byte ", byte, ": ", why));
}

// The length before a message: at most 32 bits.
bool ReadLength(absl::string_view bytes, size_t& at, uint32_t& length) {
  uint64_t value = 0;
  for (int shift = 0; shift < 35 && at < bytes.size(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes[at++]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      length = static_cast<uint32_t>(value);
      return value <= std::numeric_limits<uint32_t>::max();
    }
  }
  return false;
}

absl::Status ReadMessage(absl::string_view bytes, absl::string_view what, size_t& at,
                         google::protobuf::MessageLite& message) {
  const size_t begin = at;
  uint32_t length = 0;
  if (!ReadLength(bytes, at, length)) {
    return Bad(what, begin, "no message begins here. Is it a Chakra trace (*.et)?");
  }
  if (length > kMostMessageBytes) {
    return Bad(what, begin,
               absl::StrCat("a message of ", length, " bytes; the limit is ", kMostMessageBytes));
  }
  if (length > bytes.size() - at) {
    return Bad(what, begin,
               absl::StrCat("a message of ", length, " bytes, of which the file has ",
                            bytes.size() - at, ". It was cut short."));
  }
  if (!message.ParseFromArray(bytes.data() + at, static_cast<int>(length))) {
    return Bad(what, at,
               absl::StrCat("these ", length, " bytes are no ", message.GetTypeName(),
                            ". Is it a Chakra trace of schema 0.0.4?"));
  }
  at += length;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<EtFile> ReadEtFile(absl::string_view bytes, absl::string_view what) {
  EtAllowance alone;
  return ReadEtFile(bytes, what, alone);
}

absl::StatusOr<EtFile> ReadEtFile(absl::string_view bytes, absl::string_view what,
                                  EtAllowance& left) {
  const EtAllowance all;
  const size_t most = std::min(kMostBytes, left.bytes);
  std::string unpacked;
  if (IsGzip(bytes)) {
    ASSIGN_OR_RETURN(unpacked, Gunzip(bytes, what, most));
    bytes = unpacked;
  }
  if (bytes.size() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has ", bytes.size(), " bytes; a file may have ", kMostBytes,
                     " and a set of them ", all.bytes, ", of which ", left.bytes, " are left"));
  }
  left.bytes -= bytes.size();
  if (bytes.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is empty; a Chakra trace begins with its metadata"));
  }
  EtFile file;
  size_t at = 0, memory = 0;
  RETURN_IF_ERROR(ReadMessage(bytes, what, at, file.metadata));
  while (at < bytes.size()) {
    const size_t begin = at;
    if (left.nodes-- == 0) {
      return Bad(what, begin,
                 absl::StrCat("more than ", all.nodes, " nodes, the limit of a set of traces"));
    }
    file.nodes.emplace_back();
    chakra::Node& node = file.nodes.back();
    RETURN_IF_ERROR(ReadMessage(bytes, what, at, node));
    const size_t parts = node.attr_size() + node.ctrl_deps_size() + node.data_deps_size();
    if (parts > left.parts) {
      return Bad(what, begin,
                 absl::StrCat("more than ", all.parts,
                              " attributes and dependencies, the limit of a set of traces"));
    }
    left.parts -= parts;
    memory += node.SpaceUsedLong();
    if (memory > left.memory) {
      return Bad(what, begin,
                 absl::StrCat("the messages so far take more than ", left.memory,
                              " bytes of memory, the limit of a file"));
    }
  }
  return file;
}

std::string WriteEtFile(const EtFile& file) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  const auto write = [&](const google::protobuf::MessageLite& message) {
    out.WriteVarint32(static_cast<uint32_t>(message.ByteSizeLong()));
    PLANCAST_CHECK(message.SerializeToCodedStream(&out));
  };
  write(file.metadata);
  for (const chakra::Node& node : file.nodes) write(node);
  out.Trim();
  return bytes;
}

const chakra::AttributeProto* FindAttribute(const chakra::Node& node, absl::string_view name) {
  for (const chakra::AttributeProto& attr : node.attr()) {
    if (attr.name() == name) return &attr;
  }
  return nullptr;
}

bool IntAttribute(const chakra::Node& node, absl::string_view name, int64_t& value) {
  const chakra::AttributeProto* attr = FindAttribute(node, name);
  if (attr == nullptr) return false;
  uint64_t large = 0;
  switch (attr->value_case()) {
    case chakra::AttributeProto::kInt32Val:
      value = attr->int32_val();
      return true;
    case chakra::AttributeProto::kInt64Val:
      value = attr->int64_val();
      return true;
    case chakra::AttributeProto::kUint32Val:
      value = attr->uint32_val();
      return true;
    case chakra::AttributeProto::kSint32Val:
      value = attr->sint32_val();
      return true;
    case chakra::AttributeProto::kSint64Val:
      value = attr->sint64_val();
      return true;
    case chakra::AttributeProto::kFixed32Val:
      value = attr->fixed32_val();
      return true;
    case chakra::AttributeProto::kSfixed32Val:
      value = attr->sfixed32_val();
      return true;
    case chakra::AttributeProto::kSfixed64Val:
      value = attr->sfixed64_val();
      return true;
    case chakra::AttributeProto::kBoolVal:
      value = attr->bool_val() ? 1 : 0;
      return true;
    case chakra::AttributeProto::kUint64Val:
      large = attr->uint64_val();
      break;
    case chakra::AttributeProto::kFixed64Val:
      large = attr->fixed64_val();
      break;
    default:
      return false;
  }
  value = static_cast<int64_t>(large);
  return large <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
}

}  // namespace plancast
