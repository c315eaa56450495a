#include "proto/field_errors.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/suggest.h"

namespace plancast {
namespace {

namespace pb = ::google::protobuf;

std::string NeededFor(const pb::FieldDescriptor& field, absl::string_view value) {
  const bool whole = !value.empty() && std::all_of(value.begin(), value.end(), absl::ascii_isdigit);
  switch (field.cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_INT32:
      if (whole) return absl::StrCat("a whole number of at most ", INT32_MAX);
      return "a whole number";
    case pb::FieldDescriptor::CPPTYPE_INT64:
      return "a whole number";
    case pb::FieldDescriptor::CPPTYPE_UINT32:
    case pb::FieldDescriptor::CPPTYPE_UINT64:
      return "a whole number, not negative,";
    case pb::FieldDescriptor::CPPTYPE_FLOAT:
    case pb::FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case pb::FieldDescriptor::CPPTYPE_BOOL:
      return "`true` or `false`";
    case pb::FieldDescriptor::CPPTYPE_STRING:
      return "a string";
    case pb::FieldDescriptor::CPPTYPE_ENUM:
    case pb::FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  return "a block of fields";
}

}  // namespace

const pb::FieldDescriptor* FindField(const pb::Descriptor& type, absl::string_view name) {
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor* field = type.field(i);
    if (name == field->name() || name == field->json_name()) return field;
  }
  return nullptr;
}

std::string UnknownField(absl::string_view what, absl::string_view place, absl::string_view name,
                         const pb::Descriptor* type) {
  std::string text = absl::StrCat(what, " has no field `", name, "`");
  if (!place.empty()) absl::StrAppend(&text, " in `", place, "`");
  absl::StrAppend(&text, ".");
  if (type == nullptr) return text;
  std::vector<std::string> names;
  for (int i = 0; i < type->field_count(); ++i) names.push_back(type->field(i)->name());
  return text + Offer(name, names);
}

std::string UnfitValue(absl::string_view what, absl::string_view place, absl::string_view value,
                       const pb::FieldDescriptor& field) {
  if (absl::ConsumePrefix(&value, "\"")) absl::ConsumeSuffix(&value, "\"");
  std::string text = absl::StrCat(what, ": `", place, "` cannot be `", value, "`");
  if (field.cpp_type() != pb::FieldDescriptor::CPPTYPE_ENUM) {
    return absl::StrCat(text, "; ", NeededFor(field, value), " is needed.");
  }
  std::vector<std::string> names;
  for (int i = 0; i < field.enum_type()->value_count(); ++i) {
    names.push_back(field.enum_type()->value(i)->name());
  }
  return absl::StrCat(text, ".", Offer(value, names));
}

std::string InvalidSyntax(absl::string_view what, absl::string_view format,
                          absl::string_view complaint) {
  const std::vector<absl::string_view> lines = absl::StrSplit(complaint, '\n');
  std::string text =
      absl::StrCat(what, " is not valid ", format, ": ", absl::StripAsciiWhitespace(lines.front()));
  // The last line is a caret under the line before it.
  if (lines.size() > 2) {
    const absl::string_view spot = absl::StripAsciiWhitespace(lines[lines.size() - 2]);
    if (!spot.empty()) absl::StrAppend(&text, " Look near `", spot, "`.");
  }
  return text;
}

}  // namespace plancast
