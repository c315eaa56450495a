#ifndef PLANCAST_PROTO_FIELD_ERRORS_H_
#define PLANCAST_PROTO_FIELD_ERRORS_H_

#include <google/protobuf/descriptor.h>

#include <string>

#include "absl/strings/string_view.h"

// The wording of what can be wrong with a written message, for json.cc and
// text_proto.cc. `what` stands in front as it is; `place` is the path of fields to the spot, "" at
// the root.

namespace plancast {

// By its name in the .proto file or in JSON; nullptr when there is none.
const google::protobuf::FieldDescriptor* FindField(const google::protobuf::Descriptor& type,
                                                   absl::string_view name);

// `type` is the message that lacks the field, or nullptr when not known.
std::string UnknownField(absl::string_view what, absl::string_view place, absl::string_view name,
                         const google::protobuf::Descriptor* type);

std::string UnfitValue(absl::string_view what, absl::string_view place, absl::string_view value,
                       const google::protobuf::FieldDescriptor& field);

// `complaint` is the parser's, of which the lines after the first show the spot.
std::string InvalidSyntax(absl::string_view what, absl::string_view format,
                          absl::string_view complaint);

}  // namespace plancast

#endif  // PLANCAST_PROTO_FIELD_ERRORS_H_
