#include "tests/fuzz/native/mutate.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/fuzz/native/random.h"
#include "tests/fuzz/native/structure.h"

namespace plancast {
namespace {

using absl::string_view;

// Values at the ends of types, counts nobody can mean, and what is no number.
constexpr string_view kNumbers[] = {"0",
                                    "-1",
                                    "1",
                                    "2",
                                    "255",
                                    "65536",
                                    "2147483647",
                                    "2147483648",
                                    "-2147483649",
                                    "1000000000",
                                    "4294967296",
                                    "9223372036854775807",
                                    "9223372036854775808",
                                    "-9223372036854775808",
                                    "18446744073709551615",
                                    "18446744073709551616",
                                    "1000000000000000000000000000000",
                                    "0x10",
                                    "1e308",
                                    "1e999",
                                    "-0.0",
                                    "1e-320",
                                    "nan",
                                    "inf",
                                    "1.5",
                                    "",
                                    "+3",
                                    "007"};
constexpr std::array<unsigned char, 12> kBytes = {0,    1,   0x1f, 0x7f, 0x80, 0xc0,
                                                  0xff, '"', '\\', '\n', '\r', ' '};
// Protocol-buffer integers of every length, the longest one cut and too long.
constexpr string_view kVarints[] = {"\xff\xff\x03",
                                    "\xff\xff\xff\xff\x07",
                                    "\xff\xff\xff\xff\x0f",
                                    "\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
                                    "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                                    "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"};

class Mutator {
 public:
  Mutator(const FuzzTarget& target, const std::vector<std::string>& seeds, uint64_t number)
      : target_(target), seeds_(seeds), random_(number), text_(random_.Of(seeds)) {}

  std::string Run() {
    constexpr std::array<size_t, 6> kChanges = {1, 1, 1, 2, 4, 12};
    for (size_t i = kChanges[random_.Below(kChanges.size())]; i > 0; --i) {
      random_.OneIn(2) ? ChangeBytes() : ChangeStructure();
      if (text_.size() > kLongestInput) text_.resize(kLongestInput);
    }
    return std::move(text_);
  }

 private:
  size_t Place() { return random_.Below(text_.size() + 1); }

  Region Range(size_t longest) {
    const size_t begin = Place();
    return {begin, std::min(text_.size(), begin + 1 + random_.Small(longest))};
  }

  void Replace(Region region, string_view with) {
    text_.replace(region.begin, region.size(), with.data(), with.size());
  }

  std::string Of(Region region) const { return text_.substr(region.begin, region.size()); }

  // Many times now and then, if the part is short.
  std::string Repeated(string_view part) {
    const size_t room = part.empty() ? 0 : (size_t{1} << 17) / part.size();
    const size_t times = random_.OneIn(100) ? random_.Below(room) : 1 + random_.Small(8);
    std::string all;
    for (size_t i = 0; i < times; ++i) absl::StrAppend(&all, part);
    return all;
  }

  std::string Word() {
    if (!target_.words.empty() && random_.OneIn(2)) return random_.Of(target_.words);
    const std::string& other = random_.Of(seeds_);
    const Region word = DrawWord(other, random_);
    return other.substr(word.begin, word.size());
  }

  void ChangeBytes() {
    switch (random_.Below(10)) {
      case 0:
        if (!text_.empty()) text_[random_.Below(text_.size())] ^= 1 << random_.Below(8);
        return;
      case 1:
        if (!text_.empty()) {
          text_[random_.Below(text_.size())] = kBytes[random_.Below(kBytes.size())];
        }
        return;
      case 2: {
        std::string bytes(1 + random_.Small(16), '\0');
        for (char& c : bytes) c = static_cast<char>(random_.Next());
        return void(text_.insert(Place(), bytes));
      }
      case 3:
        return Replace(Range(64), "");
      case 4: {
        const std::string part = Of(Range(64));
        return void(text_.insert(Place(), Repeated(part)));
      }
      case 5: {
        const std::string& other = random_.Of(seeds_);
        const size_t from = random_.Below(other.size() + 1);
        return Replace(Range(64), other.substr(from, 1 + random_.Small(128)));
      }
      case 6:
        return text_.resize(Place());
      case 7: {  // the head of one, the tail of another
        const std::string& other = random_.Of(seeds_);
        text_.resize(Place());
        return void(text_.append(other, random_.Below(other.size() + 1), std::string::npos));
      }
      case 8:
        return Replace(Range(8), kVarints[random_.Below(std::size(kVarints))]);
      default:
        return void(text_.insert(Place(), Word()));
    }
  }

  void ChangeStructure() {
    switch (random_.Below(10)) {
      case 0:
      case 1:
      case 2:
        return Replace(DrawNumber(text_, random_), kNumbers[random_.Below(std::size(kNumbers))]);
      case 3:
        return Replace(DrawWord(text_, random_), Word());
      case 4:
        return Replace(DrawRegion(text_, random_), "");
      case 5: {
        const Region region = DrawRegion(text_, random_);
        return void(text_.insert(region.end, Repeated(Of(region))));
      }
      case 6: {  // swapped with, or put in place of, another of any seed
        const std::string& other = random_.Of(seeds_);
        const Region from = DrawRegion(other, random_);
        return Replace(DrawRegion(text_, random_), other.substr(from.begin, from.size()));
      }
      case 7: {
        const Region region = DrawRegion(text_, random_);
        const std::string part = Of(region);
        if (random_.OneIn(2)) Replace(region, "");
        return void(text_.insert(DrawRegion(text_, random_).begin, part));
      }
      case 8: {  // a bomb of depth
        if (target_.openers.empty()) return;
        const std::string& opener = random_.Of(target_.openers);
        const size_t depth = size_t{1} << random_.Below(random_.OneIn(30) ? 18 : 10);
        std::string all;
        for (size_t i = 0; i < depth && all.size() < kLongestInput; ++i) all += opener;
        return void(text_.insert(DrawRegion(text_, random_).begin, all));
      }
      default: {  // a long word
        const Region word = DrawWord(text_, random_);
        return Replace(word, Repeated(Of(word)));
      }
    }
  }

  const FuzzTarget& target_;
  const std::vector<std::string>& seeds_;
  FuzzRandom random_;
  std::string text_;
};

}  // namespace

std::string FuzzInput(const FuzzTarget& target, const std::vector<std::string>& seeds,
                      uint64_t number) {
  if (number < seeds.size()) return seeds[number];
  return Mutator(target, seeds, number).Run();
}

}  // namespace plancast
