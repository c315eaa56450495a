#include "tests/fuzz/native/corpus.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace plancast {

absl::StatusOr<std::vector<std::string>> FuzzSeeds(absl::string_view target,
                                                   const std::string& folder) {
  const std::filesystem::path seeds =
      std::filesystem::path(folder.empty() ? "tests/fuzz/native/corpus" : folder) /
      std::string(target);
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(seeds, error)) {
    files.push_back(entry.path());
  }
  if (files.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", seeds.string(),
                     "` holds no seeds. Run it by `bazel run`, in the repository's root, or say "
                     "--corpus=FOLDER."));
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (const std::filesystem::path& file : files) {
    std::ifstream stream(file, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
  }
  return texts;
}

}  // namespace plancast
