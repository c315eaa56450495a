#ifndef PLANCAST_PROTO_TEXT_PROTO_H_
#define PLANCAST_PROTO_TEXT_PROTO_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

// Messages from and to protobuf's text format, as json.h for JSON; errors name
// line and column.

namespace plancast {

absl::Status ParseTextProtoInto(absl::string_view text, absl::string_view what,
                                google::protobuf::Message& message);

template <typename Msg>
absl::StatusOr<Msg> ParseTextProto(absl::string_view text, absl::string_view what) {
  Msg message;
  if (absl::Status status = ParseTextProtoInto(text, what, message); !status.ok()) return status;
  return message;
}

std::string ToTextProto(const google::protobuf::Message& message);

}  // namespace plancast

#endif  // PLANCAST_PROTO_TEXT_PROTO_H_
