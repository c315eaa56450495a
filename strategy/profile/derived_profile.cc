#include "strategy/profile/derived_profile.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/embedded_file.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "proto/text_proto.h"
#include "strategy/software_profiles.h"

namespace plancast {
namespace {

absl::Status NoField(absl::string_view path) {
  return absl::InvalidArgumentError(absl::StrCat("`without` names `", path,
                                                 "`, which is no field of a profile. ",
                                                 "proto/software_profile.proto lists them."));
}

// Takes an entry out of a list: of texts the text, of messages those of its rule.
absl::Status ClearEntry(absl::string_view path, absl::string_view name, absl::string_view entry,
                        google::protobuf::Message* message) {
  const auto* field = message->GetDescriptor()->FindFieldByName(std::string(name));
  if (field == nullptr || !field->is_repeated()) return NoField(path);
  const auto* of_message = field->message_type();
  const auto* rule = of_message == nullptr ? nullptr : of_message->FindFieldByName("rule");
  const bool texts = field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING;
  if (!texts && rule == nullptr) return NoField(path);
  const auto* reflection = message->GetReflection();
  const auto is_it = [&](int i) {
    if (texts) return reflection->GetRepeatedString(*message, field, i) == entry;
    const auto& element = reflection->GetRepeatedMessage(*message, field, i);
    return element.GetReflection()->GetString(element, rule) == entry;
  };
  int kept = 0;
  for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
    if (!is_it(i)) reflection->SwapElements(message, field, i, kept++);
  }
  while (reflection->FieldSize(*message, field) > kept) reflection->RemoveLast(message, field);
  return absl::OkStatus();
}

// Empties a field, which may lie in a message of it (`limits.zero`), or takes an entry out of a
// list (`eager[rms_norm]`).
absl::Status ClearField(absl::string_view path, google::protobuf::Message* message) {
  if (const size_t bracket = path.find('['); bracket != path.npos && path.back() == ']') {
    return ClearEntry(path, path.substr(0, bracket),
                      path.substr(bracket + 1, path.size() - bracket - 2), message);
  }
  const std::vector<std::string> names = absl::StrSplit(path, '.');
  for (size_t i = 0; i < names.size(); ++i) {
    const auto* field = message->GetDescriptor()->FindFieldByName(names[i]);
    const bool last = i + 1 == names.size();
    const bool opens =
        field != nullptr && !field->is_repeated() && field->message_type() != nullptr;
    if (field == nullptr || !(last || opens)) return NoField(path);
    const auto* reflection = message->GetReflection();
    if (last) {
      reflection->ClearField(message, field);
    } else {
      message = reflection->MutableMessage(message, field);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<proto::SoftwareProfile> ReadDerivedProfile(absl::string_view text,
                                                          absl::string_view what) {
  ASSIGN_OR_RETURN(auto message, ParseTextProto<proto::SoftwareProfile>(text, what));
  if (message.like().empty() && message.without_size() > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": `without` takes fields from a profile, and `like` names none."));
  }
  std::vector<std::string> without;  // of all steps: a later one is like an earlier one's base
  // Each step names a shipped file; a chain longer than all of them is a ring.
  for (size_t step = 0; !message.like().empty(); ++step) {
    const EmbeddedFile* file = FindByStem(SoftwareProfiles(), message.like());
    if (file == nullptr || step > SoftwareProfiles().size()) {
      std::vector<std::string> names;
      for (const EmbeddedFile& shipped : SoftwareProfiles()) names.emplace_back(shipped.stem());
      return absl::InvalidArgumentError(
          absl::StrCat(what, ": `like` names `", message.like(), "`, which is ",
                       file == nullptr ? "no shipped profile" : "like itself", "; there are ",
                       JoinQuoted(names), "."));
    }
    ASSIGN_OR_RETURN(auto base, ParseTextProto<proto::SoftwareProfile>(file->contents, file->path));
    without.insert(without.end(), message.without().begin(), message.without().end());
    message.clear_without();
    const std::vector<std::string> next_without(base.without().begin(), base.without().end());
    base.clear_without();
    for (const std::string& field : without) {
      RETURN_IF_ERROR(ClearField(field, &base)) << what;
    }
    const std::string next = base.like();
    base.MergeFrom(message);
    base.set_like(next);
    for (const std::string& field : next_without) base.add_without(field);
    message = std::move(base);
  }
  return message;
}

absl::StatusOr<proto::SoftwareProfile> WithAdditions(proto::SoftwareProfile profile,
                                                     absl::Span<const EmbeddedFile* const> files) {
  for (const EmbeddedFile* file : files) {
    ASSIGN_OR_RETURN(auto added,
                     ParseTextProto<proto::SoftwareProfile>(file->contents, file->path));
    for (const std::string& field : added.without()) {
      RETURN_IF_ERROR(ClearField(field, &profile)) << file->path;
    }
    added.clear_without();
    added.set_name(absl::StrCat(profile.name(), "+", added.name()));
    added.set_description(absl::StrCat(profile.description(), "; ", added.description()));
    profile.MergeFrom(added);
  }
  return profile;
}

}  // namespace plancast
