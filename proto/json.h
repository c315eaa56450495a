#ifndef PLANCAST_PROTO_JSON_H_
#define PLANCAST_PROTO_JSON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

// Messages from and to JSON, with errors for the person who wrote the file: they
// name the place and suggest the nearest field or value. `what` stands for the
// input in errors as it is, usually its path in backquotes.

namespace plancast {

// Brackets within each other of a document that is read: more than any of ours has.
// protobuf prints 64 messages within each other, three for an object in an object of a
// google.protobuf.Struct, so that whatever was read can be printed again.
inline constexpr int kDeepestJson = 20;

absl::Status ParseJsonInto(absl::string_view json, absl::string_view what,
                           google::protobuf::Message& message);

template <typename Msg>
absl::StatusOr<Msg> ParseJson(absl::string_view json, absl::string_view what) {
  Msg message;
  if (absl::Status status = ParseJsonInto(json, what, message); !status.ok()) return status;
  return message;
}

enum class JsonStyle { kCompact, kIndented };

// Fields under their names in the .proto file; unset ones are left out. Of what ParseJson
// read this never fails; a message that was nested otherwise may be too deep.
absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message,
                                   JsonStyle style = JsonStyle::kCompact);

}  // namespace plancast

#endif  // PLANCAST_PROTO_JSON_H_
