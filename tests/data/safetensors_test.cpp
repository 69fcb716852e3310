#include "data/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "data/files.h"

namespace penstock {
namespace {

using testing::bytes_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempFolder;
using testing::user_error;
using testing::write_file;

std::string with_header(const std::string& header, std::string_view data) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data);
}

class Safetensors : public ::testing::Test {
 protected:
  std::string error(const std::string& header, std::size_t data_bytes) {
    write_file(path_, with_header(header, std::string(data_bytes, 'x')));
    return user_error([&] { SafetensorsFile::open(path_); });
  }

  TempFolder folder_;
  std::string path_ = folder_ / "a.safetensors";
};

TEST_F(Safetensors, WhatIsWrittenIsRead) {
  {
    SafetensorsWriter writer(path_,
                             {{"steps", "I64", {}}, {"conv.weight", "F32", {2, 3}}, {"none", "F32", {0, 4}}});
    const std::int64_t steps = 12;
    writer.append(&steps, 8);
    const std::vector<float> values{1, 2, 3, 4, 5, 6};
    writer.append(values.data(), 8);
    writer.append(values.data() + 2, 16);
    writer.commit();
  }
  EXPECT_THAT(folder_.names(), ElementsAre("a.safetensors"));
  const SafetensorsFile file = SafetensorsFile::open(path_);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  ASSERT_EQ(file.tensors().size(), 3U);
  const SafetensorsEntry* weight = file.find("conv.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->type, "F32");
  EXPECT_THAT(weight->shape, ElementsAre(2, 3));
  EXPECT_EQ(weight->elements, 6);
  EXPECT_EQ(file.find("none")->elements, 0);
  EXPECT_EQ(file.find("other"), nullptr);
  std::vector<float> part(2);
  file.read("conv.weight", part.data(), 12, 8);
  EXPECT_THAT(part, ElementsAre(4, 5));
  file.read_float("conv.weight", part.data(), 1, 2);
  EXPECT_THAT(part, ElementsAre(2, 3));
  file.read_float("steps", part.data(), 0, 1);
  EXPECT_EQ(part[0], 12);
  EXPECT_THROW(file.read("conv.weight", part.data(), 20, 8), InternalError);
  EXPECT_THAT(user_error([&] { file.read("other", part.data(), 0, 4); }), HasSubstr("has no tensor 'other'"));
}

TEST_F(Safetensors, HasThePublishedLayout) {
  {
    SafetensorsWriter writer(path_, {{"a", "F32", {1}}});
    const float one = 1;
    writer.append(&one, 4);
    writer.commit();
  }
  const std::string text = testing::read_file(path_);
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), 8);
  EXPECT_EQ(length % 8, 0U);
  EXPECT_EQ(text.size(), 8 + length + 4);
  EXPECT_THAT(
      text,
      HasSubstr(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})"));
}

TEST_F(Safetensors, LeavesNothingBehindUnlessCommitted) {
  write_file(path_, "what was there before");
  {
    SafetensorsWriter writer(path_, {{"a", "F32", {2}}});
    const float one = 1;
    writer.append(&one, 4);
    EXPECT_THROW(writer.commit(), InternalError);
  }
  EXPECT_THAT(folder_.names(), ElementsAre("a.safetensors"));
  EXPECT_EQ(testing::read_file(path_), "what was there before");
  EXPECT_THAT(user_error([&] { SafetensorsWriter(folder_.path() + "/none/b", {}); }),
              HasSubstr("none/b': No such file"));
}

TEST_F(Safetensors, RefusesToWriteWhatWasNotDeclared) {
  SafetensorsWriter writer(path_, {{"a", "F32", {1}}});
  const double wide = 1;
  EXPECT_THROW(writer.append(&wide, 8), InternalError);
  EXPECT_THROW(SafetensorsWriter(folder_ / "b", {{"a", "F32", {1}}, {"b", "F64", {1}}}), InternalError);
  EXPECT_THROW(SafetensorsWriter(folder_ / "b", {{"a", "F32", {1}}, {"a", "F32", {1}}}), InternalError);
}

TEST_F(Safetensors, ConvertsToFloat) {
  const std::string f16 = bytes_of<std::uint16_t>({0x3c00, 0xc000, 0x7c00, 0x0001, 0x3555});
  const std::string bf16 = bytes_of<std::uint16_t>({0x3f80, 0xc000});
  const std::string f64 = bytes_of<double>({0.1, -2.5});
  const std::string header = R"({"h":{"dtype":"F16","shape":[5],"data_offsets":[0,10]},)"
                             R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[10,14]},)"
                             R"("d":{"dtype":"F64","shape":[2],"data_offsets":[14,30]},)"
                             R"("u":{"dtype":"U8","shape":[1],"data_offsets":[30,31]}})";
  write_file(path_, with_header(header, f16 + bf16 + f64 + "u"));
  const SafetensorsFile file = SafetensorsFile::open(path_);
  std::vector<float> values(5);
  file.read_float("h", values.data(), 0, 5);
  EXPECT_THAT(values, ElementsAre(1, -2, INFINITY, 0x1p-24F, 0x1.554p-2F));
  values.resize(2);
  file.read_float("b", values.data(), 0, 2);
  EXPECT_THAT(values, ElementsAre(1, -2));
  file.read_float("d", values.data(), 0, 2);
  EXPECT_THAT(values, ElementsAre(0.1F, -2.5F));
  EXPECT_THAT(user_error([&] { file.read_float("u", values.data(), 0, 1); }), HasSubstr("'u'"));
}

TEST_F(Safetensors, ConvertsLongTensorsInPieces) {
  std::vector<double> stored(5000);
  for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<double>(i) / 2;
  write_file(path_, with_header(R"({"d":{"dtype":"F64","shape":[5000],"data_offsets":[0,40000]}})",
                                bytes_of(stored)));
  std::vector<float> values(4990);
  SafetensorsFile::open(path_).read_float("d", values.data(), 10, 4990);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<float>(i + 10) / 2);
}

TEST_F(Safetensors, RefusesFilesThatAreNone) {
  EXPECT_THAT(user_error([&] { SafetensorsFile::open(folder_.path() + "/none"); }),
              HasSubstr("none: No such file"));
  write_file(path_, "short");
  EXPECT_THAT(user_error([&] { SafetensorsFile::open(path_); }), HasSubstr("is not a safetensors file"));
  write_file(path_, "PK and a lot of bytes that are no length");
  EXPECT_THAT(user_error([&] { SafetensorsFile::open(path_); }), HasSubstr("is not a safetensors file"));
  write_file(path_, with_header("{}", "").substr(0, 9));
  EXPECT_THAT(user_error([&] { SafetensorsFile::open(path_); }), HasSubstr("cut short"));
}

TEST_F(Safetensors, RefusesHostileHeaders) {
  const auto tensor = [](const std::string& type, const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  EXPECT_EQ(error(tensor("F32", "[2]", "[0,8]"), 8), "");
  EXPECT_EQ(error("{}", 0), "");
  EXPECT_THAT(error("{", 8), HasSubstr("not JSON"));
  EXPECT_THAT(error("{}{}", 0), HasSubstr("not JSON"));
  EXPECT_THAT(error("[]", 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(error(tensor("F32", "[2]", "[0,8]"), 7), HasSubstr("lies outside the file"));
  EXPECT_THAT(error(tensor("F32", "[2]", "[0,8]"), 9), HasSubstr("9 bytes of data, its tensors take 8"));
  EXPECT_THAT(error(tensor("F31", "[2]", "[0,8]"), 8), HasSubstr("unknown dtype"));
  EXPECT_THAT(error(tensor("F32", "[3]", "[0,8]"), 8), HasSubstr("disagree"));
  EXPECT_THAT(error(tensor("F32", "[2]", "[8,0]"), 8), HasSubstr("lies outside"));
  EXPECT_THAT(error(tensor("F32", "[2]", "[4,12]"), 12), HasSubstr("leaves a gap"));
  EXPECT_THAT(error(tensor("F32", "[-2]", "[0,8]"), 8), HasSubstr("malformed shape"));
  EXPECT_THAT(error(tensor("F32", "[2.0]", "[0,8]"), 8), HasSubstr("malformed shape"));
  EXPECT_THAT(error(tensor("F32", "{}", "[0,8]"), 8), HasSubstr("malformed shape"));
  EXPECT_THAT(error(tensor("F32", "[2]", "[0]"), 8), HasSubstr("malformed data_offsets"));
  EXPECT_THAT(error(tensor("F32", "[2]", "[-8,0]"), 8), HasSubstr("malformed data_offsets"));
  EXPECT_THAT(error(tensor("F32", "[4294967296,4294967296]", "[0,0]"), 0), HasSubstr("impossibly large"));
  EXPECT_THAT(error(tensor("F32", "[4611686018427387904]", "[0,0]"), 0), HasSubstr("disagree"));
  EXPECT_THAT(error(tensor("F32", "[[2]]", "[0,8]"), 8), HasSubstr("nested too deeply"));
  EXPECT_THAT(error(R"({"a":1})", 0), HasSubstr("tensor 'a' needs exactly"));
  EXPECT_THAT(error(R"({"a\n":{"dtype":"F32","shape":[2]}})", 8), HasSubstr("tensor 'a?' needs exactly"));
  EXPECT_THAT(error(R"({"__metadata__":{"a":1}})", 0), HasSubstr("not all text"));
  EXPECT_THAT(error(std::string(100000, '['), 0), HasSubstr("not a JSON object"));
  EXPECT_THAT(error(R"({"a":)" + std::string(100000, '['), 0), HasSubstr("needs exactly"));
}

TEST_F(Safetensors, RefusesOverlapsAndDuplicates) {
  const auto part = [](const char* name, const char* offsets) {
    return '"' + std::string(name) + R"(":{"dtype":"F32","shape":[2],"data_offsets":)" + offsets + "}";
  };
  EXPECT_EQ(error("{" + part("b", "[8,16]") + "," + part("a", "[0,8]") + "}", 16), "");
  EXPECT_THAT(error("{" + part("a", "[0,8]") + "," + part("b", "[0,8]") + "}", 8), HasSubstr("overlaps"));
  EXPECT_THAT(error("{" + part("a", "[0,8]") + "," + part("b", "[4,12]") + "}", 12), HasSubstr("overlaps"));
  EXPECT_THAT(error("{" + part("a", "[0,8]") + "," + part("a", "[8,16]") + "}", 16), HasSubstr("'a' twice"));
  EXPECT_THAT(error(R"({"a":{"dtype":"F32","shape":[2],"shape":[1],"data_offsets":[0,4]}})", 4),
              HasSubstr("'shape' twice"));
}

}  // namespace
}  // namespace penstock
