#include "proto/json.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/field_errors.h"

namespace plancast {
namespace {

namespace pb = ::google::protobuf;

// Whether brackets are open at once, outside strings, more than kDeepestJson deep.
bool TooDeep(absl::string_view json) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepestJson) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

// "(place): text" or "(place) text" -> place, text. The place of the root is
// "".
std::pair<absl::string_view, absl::string_view> SplitPlace(absl::string_view message) {
  if (!absl::ConsumePrefix(&message, "(")) {
    absl::ConsumePrefix(&message, ": ");
    return {"", message};
  }
  size_t end = message.find("): ");
  size_t skip = 3;
  if (end == absl::string_view::npos) {
    end = message.rfind(") ");
    skip = 2;
  }
  if (end == absl::string_view::npos) return {"", message};
  return {message.substr(0, end), message.substr(end + skip)};
}

// The field that a place such as `stages[2].layers` leads to, or nullptr. Of a
// map the parser says `by_name[0].value`, as of the repeated entries that it is.
const pb::FieldDescriptor* FieldAt(const pb::Descriptor* type, absl::string_view place) {
  const pb::FieldDescriptor* field = nullptr;
  while (!place.empty()) {
    if (type == nullptr) return nullptr;
    const size_t end = place.find_first_of(".[");
    field = FindField(*type, place.substr(0, end));
    if (field == nullptr) return nullptr;
    place.remove_prefix(std::min(end, place.size()));
    if (!place.empty() && place.front() == '[') {
      place.remove_prefix(std::min(place.find(']') + 1, place.size()));
    }
    absl::ConsumePrefix(&place, ".");
    type = field->message_type();
  }
  return field;
}

// Our words for what protobuf's parser says about `message`.
std::string Explain(absl::string_view what, const pb::Descriptor& root, absl::string_view message) {
  const auto [place, text] = SplitPlace(message);
  const pb::FieldDescriptor* field = FieldAt(&root, place);

  absl::string_view name = text;
  if (absl::ConsumeSuffix(&name, ": Cannot find field.")) {
    const pb::Descriptor* type = place.empty() ? &root : field ? field->message_type() : nullptr;
    return UnknownField(what, place, name, type);
  }
  absl::string_view listed = text;
  if (absl::ConsumeSuffix(&listed, ": Proto field is not repeating, cannot start list.")) {
    const std::string inner =
        place.empty() ? std::string(listed) : absl::StrCat(place, ".", listed);
    const pb::FieldDescriptor* single = FieldAt(&root, inner);
    if (single != nullptr) return UnfitValue(what, inner, "[...]", *single);
  }
  absl::string_view value = text;
  if (field != nullptr && absl::ConsumePrefix(&value, "invalid value ")) {
    value = value.substr(0, value.rfind(" for type "));
    return UnfitValue(what, place, value, *field);
  }
  return InvalidSyntax(what, "JSON", text);
}

}  // namespace

absl::Status ParseJsonInto(absl::string_view json, absl::string_view what, pb::Message& message) {
  if (TooDeep(json)) {
    return absl::InvalidArgumentError(absl::StrCat(what, " is nested more than ", kDeepestJson,
                                                   " deep; no description of ours is."));
  }
  const auto status =
      pb::util::JsonStringToMessage(pb::StringPiece(json.data(), json.size()), &message);
  if (status.ok()) return absl::OkStatus();
  const pb::StringPiece text = status.message();
  return absl::InvalidArgumentError(
      Explain(what, *message.GetDescriptor(), absl::string_view(text.data(), text.size())));
}

absl::StatusOr<std::string> ToJson(const pb::Message& message, JsonStyle style) {
  pb::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.add_whitespace = style == JsonStyle::kIndented;
  std::string json;
  const auto status = pb::util::MessageToJsonString(message, &json, options);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("this cannot be written as JSON: ",
                     absl::string_view(status.message().data(), status.message().size())));
  }
  return json;
}

}  // namespace plancast
