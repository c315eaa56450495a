#include "strategy/profile/additions.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "proto/software_profile.pb.h"
#include "proto/text_proto.h"
#include "strategy/addition_files.h"

namespace plancast {

std::vector<std::string> ProfileAdditionNames() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : AdditionFiles()) names.emplace_back(file.stem());
  return names;
}

absl::StatusOr<const EmbeddedFile*> FindProfileAddition(absl::string_view name) {
  const EmbeddedFile* file = FindByStem(AdditionFiles(), name);
  if (file != nullptr) return file;
  return absl::NotFoundError(
      absl::StrCat("nothing is called `", name, "` that may be added to a profile.",
                   Offer(name, ProfileAdditionNames()), " docs/strategy.md says what each is."));
}

absl::StatusOr<std::string> DescribeProfileAddition(absl::string_view name) {
  ASSIGN_OR_RETURN(const EmbeddedFile* file, FindProfileAddition(name));
  ASSIGN_OR_RETURN(const auto added,
                   ParseTextProto<proto::SoftwareProfile>(file->contents, file->path));
  return added.description();
}

}  // namespace plancast
