#include "interop/chakra/et_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "interop/chakra/gzip.h"
#include "tests/interop/chakra/et_builder.h"
#include "tests/testing/seed.h"
#include "tests/testing/status_matchers.h"

namespace plancast {
namespace {

using ::testing::HasSubstr;

EtFile Small() {
  EtFile file;
  file.metadata.set_version("0.0.4");
  file.nodes = {EtKernel(1, 5), EtCollective(2, chakra::ALL_REDUCE, 1 << 20, {1})};
  return file;
}

TEST(EtFileTest, TheBytesAreThoseOfTheSchema) {
  // The shipped microbenchmark of an all-reduce of 1 MiB, by hand.
  const std::string bytes(
      "\x07\n\x05"
      "0.0.4"
      "H\x12\x14"
      "all_reduce_4npus_1MB"
      "\x18\x07R\x0e\n\tis_cpu_op\xd8\x01\x00"
      "R\r\n\tcomm_typeH\x00"
      "R\x0f\n\tcomm_sizeH\x80\x80@",
      81);
  const auto file = ReadEtFile(bytes, "all_reduce.0.et");
  ASSERT_OK(file);
  EXPECT_EQ(file->metadata.version(), "0.0.4");
  ASSERT_EQ(file->nodes.size(), 1);
  EXPECT_EQ(file->nodes[0].type(), chakra::COMM_COLL_NODE);
  int64_t size = 0;
  EXPECT_TRUE(IntAttribute(file->nodes[0], "comm_size", size));
  EXPECT_EQ(size, 1 << 20);
  EXPECT_EQ(WriteEtFile(*file), bytes);
}

TEST(EtFileTest, GzipReadsAlike) {
  const std::string bytes = WriteEtFile(Small());
  const auto file = ReadEtFile(Gzip(bytes), "x");
  ASSERT_OK(file);
  EXPECT_EQ(WriteEtFile(*file), bytes);
}

TEST(EtFileTest, UnknownFieldsAreKept) {
  EtFile file = Small();
  file.nodes[0].GetReflection()->MutableUnknownFields(&file.nodes[0])->AddVarint(99, 7);
  const std::string bytes = WriteEtFile(file);
  const auto again = ReadEtFile(bytes, "x");
  ASSERT_OK(again);
  EXPECT_EQ(WriteEtFile(*again), bytes);
}

TEST(EtFileTest, IntegersOfAnyWidth) {
  chakra::Node node;
  const auto add = [&](const char* name) {
    chakra::AttributeProto* attr = node.add_attr();
    attr->set_name(name);
    return attr;
  };
  add("a")->set_int32_val(-3);
  add("b")->set_uint32_val(3);
  add("c")->set_sint64_val(-4);
  add("d")->set_fixed32_val(5);
  add("e")->set_sfixed64_val(-6);
  add("f")->set_bool_val(true);
  add("g")->set_uint64_val(uint64_t{1} << 63);
  add("h")->set_string_val("7");
  int64_t value = 0;
  for (const auto& [name, want] :
       {std::make_pair("a", -3), {"b", 3}, {"c", -4}, {"d", 5}, {"e", -6}, {"f", 1}}) {
    EXPECT_TRUE(IntAttribute(node, name, value)) << name;
    EXPECT_EQ(value, want) << name;
  }
  for (const char* name : {"g", "h", "i"}) EXPECT_FALSE(IntAttribute(node, name, value)) << name;
}

TEST(EtFileTest, ErrorsNameTheByte) {
  const std::string bytes = WriteEtFile(Small());
  EXPECT_THAT(ReadEtFile("", "t.et").status().message(), HasSubstr("t.et is empty"));
  EXPECT_THAT(ReadEtFile(bytes.substr(0, bytes.size() - 1), "t.et").status().message(),
              HasSubstr("It was cut short"));
  EXPECT_THAT(ReadEtFile("\xff\xff\xff\xff\xff\xff", "t.et").status().message(),
              HasSubstr("t.et: byte 0: no message begins here"));
  EXPECT_THAT(ReadEtFile("\xff\xff\xff\xff\x0f", "t.et").status().message(),
              HasSubstr("the limit is 16777216"));
  EXPECT_THAT(ReadEtFile(std::string("\x02\x0a\x7f", 3), "t.et").status().message(),
              HasSubstr("are no plancast.chakra.GlobalMetadata"));
  // Lists in attributes nest no deeper than the schema; groups in unknown fields do.
  const std::string deep = std::string(10000, '\x7b');
  EXPECT_FALSE(ReadEtFile(absl::StrCat("\x90\x4e", deep), "t.et").ok());
}

TEST(EtFileTest, ASetOfFilesHasOneAllowance) {
  const std::string bytes = WriteEtFile(Small());
  EtAllowance left;
  ASSERT_OK_AND_ASSIGN(const EtFile file, ReadEtFile(bytes, "t.et", left));
  const EtAllowance all;
  EXPECT_EQ(left.bytes, all.bytes - bytes.size());
  EXPECT_EQ(left.nodes, all.nodes - file.nodes.size());
  EXPECT_LT(left.parts, all.parts);
  left.nodes = file.nodes.size() - 1;
  EXPECT_THAT(ReadEtFile(bytes, "t.et", left).status().message(),
              HasSubstr("more than 4000000 nodes, the limit of a set of traces"));
  left = {};
  left.bytes = bytes.size() - 1;
  EXPECT_THAT(ReadEtFile(bytes, "t.et", left).status().message(),
              HasSubstr("a set of them 1073741824"));
  EXPECT_THAT(ReadEtFile(Gzip(bytes), "t.et", left).status().message(), HasSubstr("unpacks to"));
  left = {};
  left.parts = 0;
  EXPECT_THAT(ReadEtFile(bytes, "t.et", left).status().message(),
              HasSubstr("attributes and dependencies, the limit of a set of traces"));
}

TEST(EtFileTest, MemoryIsBoundedBesideBytes) {
  EtFile large;
  large.nodes.emplace_back().add_attr()->mutable_int64_list()->mutable_values()->Resize(10'000, 0);
  EtAllowance left;
  left.memory = 50'000;
  EXPECT_THAT(ReadEtFile(WriteEtFile(large), "t.et", left).status().message(),
              HasSubstr("take more than 50000 bytes of memory, the limit of a file"));
}

TEST(EtFileTest, AnyBytesGiveAnAnswer) {
  std::mt19937_64 random(TestSeed(4));
  const std::string good = WriteEtFile(Small());
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = i % 2 == 0 ? good : std::string(random() % 60, '\0');
    if (i % 2 == 1) {
      for (char& c : bytes) c = static_cast<char>(random());
    }
    for (uint64_t flips = random() % 4; flips > 0 && !bytes.empty(); --flips) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    bytes.resize(random() % (bytes.size() + 1));
    const auto file = ReadEtFile(bytes, "x");
    if (!file.ok()) continue;
    EXPECT_OK(ReadEtFile(WriteEtFile(*file), "x"));
  }
}

// All shipped samples come back byte for byte.
TEST(EtFileTest, SamplesRoundTrip) {
  const char* data = std::getenv("PLANCAST_SHARED_DATA");
  if (data == nullptr) GTEST_SKIP() << "needs ../shared: set PLANCAST_SHARED_DATA";
  int files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(absl::StrCat(data, "/chakra"))) {
    if (entry.path().extension() != ".et") continue;
    std::ifstream in(entry.path(), std::ios::binary);
    std::stringstream bytes;
    bytes << in.rdbuf();
    const auto file = ReadEtFile(bytes.str(), entry.path().string());
    ASSERT_OK(file);
    EXPECT_TRUE(WriteEtFile(*file) == bytes.str()) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 4 * (4 + 8 + 16) + 8);
}

}  // namespace
}  // namespace plancast
