#include "data/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace penstock {
namespace {

using nlohmann::json;

constexpr const char* kMetadata = "__metadata__";
constexpr std::size_t kMostDimensions = 64;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw UserError(fmt::format("{} is not a sound safetensors file: {}", path, why));
}

/// Takes the header's parts as the parser meets them, so that there is never a tree of it, which would take
/// many times its size. The header's object has depth 1, a tensor in it 2, a list in that 3.
class HeaderReader final : public json::json_sax_t {
 public:
  HeaderReader(std::int64_t data_bytes, const std::string& path) : data_bytes_(data_bytes), path_(path) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool null() override { return other_value(); }
  bool boolean(bool /*value*/) override { return other_value(); }
  bool number_integer(number_integer_t /*value*/) override { return other_value(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return other_value(); }
  bool binary(binary_t& /*value*/) override { return other_value(); }

  bool number_unsigned(number_unsigned_t value) override {
    if (depth_ != 3 || in_metadata_ || value > std::uint64_t{1} << 62) return other_value();
    std::vector<std::int64_t>& sizes = field_ == Field::shape ? entry_.shape : offsets_;
    if (sizes.size() == kMostDimensions) return other_value();
    sizes.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(string_t& value) override {
    if (depth_ == 2 && in_metadata_) {
      if (!header_.metadata.emplace(key_, std::move(value)).second) twice(key_);
      return true;
    }
    if (depth_ != 2 || field_ != Field::dtype) return other_value();
    entry_.type = std::move(value);
    return true;
  }

  bool start_object(std::size_t /*elements*/) override {
    if (depth_ == 2) bad_value();
    enter();
    return true;
  }

  bool start_array(std::size_t /*elements*/) override {
    if (depth_ == 0) refuse(path_, "its header is not a JSON object");
    const bool list = depth_ == 2 && !in_metadata_ && (field_ == Field::shape || field_ == Field::offsets);
    if (!list && depth_ < 3) bad_value();
    enter();
    return true;
  }

  bool key(string_t& key) override {
    if (depth_ == 1) {
      in_metadata_ = key == kMetadata;
      if (in_metadata_ && std::exchange(has_metadata_, true)) twice(key);
      entry_ = {};
      offsets_.clear();
      seen_ = 0;
      entry_.name = std::move(key);
      return true;
    }
    key_ = std::move(key);
    if (in_metadata_) return true;
    field_ = key_ == "dtype"          ? Field::dtype
             : key_ == "shape"        ? Field::shape
             : key_ == "data_offsets" ? Field::offsets
                                      : Field::none;
    if (field_ == Field::none) bad("needs exactly dtype, shape and data_offsets");
    const unsigned bit = 1U << static_cast<unsigned>(field_);
    if ((seen_ & bit) != 0) twice(key_);
    seen_ |= bit;
    return true;
  }

  bool end_object() override {
    if (depth_ == 2 && !in_metadata_) finish_entry();
    --depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    refuse(path_, "its header is not JSON");
  }

 private:
  enum class Field { none, dtype, shape, offsets };

  [[noreturn]] void bad(const char* why) const {
    refuse(path_, fmt::format("tensor '{}' {}", printable(entry_.name), why));
  }
  [[noreturn]] void twice(const std::string& name) const {
    refuse(path_, fmt::format("its header has '{}' twice", printable(name)));
  }
  /// A value of a kind that does not belong where it stands.
  [[noreturn]] void bad_value() const {
    if (depth_ == 0) refuse(path_, "its header is not a JSON object");
    if (in_metadata_)
      refuse(path_, depth_ == 1 ? "its metadata is malformed" : "its metadata is not all text");
    if (depth_ >= 2 && field_ == Field::shape) bad("has a malformed shape");
    if (depth_ >= 2 && field_ == Field::offsets) bad("has malformed data_offsets");
    bad("needs exactly dtype, shape and data_offsets");
  }
  bool other_value() const { bad_value(); }

  void enter() {
    if (depth_ == 3) refuse(path_, "its header is nested too deeply");
    ++depth_;
  }

  void finish_entry() {
    if (seen_ != 0b1110U) bad("needs exactly dtype, shape and data_offsets");
    const std::int64_t element_bytes = safetensors_element_bytes(entry_.type);
    if (element_bytes == 0) bad("has an unknown dtype");
    if (offsets_.size() != 2) bad("has malformed data_offsets");
    if (offsets_[0] > offsets_[1] || offsets_[1] > data_bytes_) {
      bad("lies outside the file, which may be cut short");
    }
    entry_.elements = 1;
    for (const std::int64_t size : entry_.shape) {
      if (__builtin_mul_overflow(entry_.elements, size, &entry_.elements)) bad("is impossibly large");
    }
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(entry_.elements, element_bytes, &bytes) ||
        bytes != offsets_[1] - offsets_[0]) {
      bad("has a shape and data_offsets that disagree");
    }
    entry_.offset_bytes = offsets_[0];
    entry_.size_bytes = bytes;
    header_.tensors.push_back(std::move(entry_));
  }

  const std::int64_t data_bytes_;
  const std::string& path_;
  SafetensorsHeader header_;
  int depth_ = 0;
  bool in_metadata_ = false;
  bool has_metadata_ = false;
  std::string key_;
  Field field_ = Field::none;
  unsigned seen_ = 0;  ///< a bit for each field of the tensor
  SafetensorsEntry entry_;
  std::vector<std::int64_t> offsets_;
};

/// Tensors in the order of their data cover it without gap or overlap.
void check_cover(const std::vector<SafetensorsEntry>& tensors, std::int64_t data_bytes,
                 const std::string& path) {
  std::int64_t end = 0;
  for (const SafetensorsEntry& entry : tensors) {
    if (entry.offset_bytes != end) {
      refuse(path, fmt::format("tensor '{}' {}", printable(entry.name),
                               entry.offset_bytes < end ? "overlaps another" : "leaves a gap before it"));
    }
    end += entry.size_bytes;
  }
  if (end != data_bytes) {
    refuse(path, fmt::format("it has {} bytes of data, its tensors take {}", data_bytes, end));
  }
}

}  // namespace

std::int64_t safetensors_element_bytes(const std::string& type) {
  static const std::map<std::string, std::int64_t> types{
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"U16", 2}, {"I16", 2}, {"F16", 2},
      {"BF16", 2}, {"U32", 4}, {"I32", 4}, {"F32", 4},     {"U64", 8},     {"I64", 8}, {"F64", 8}};
  const auto at = types.find(type);
  return at == types.end() ? 0 : at->second;
}

SafetensorsHeader parse_safetensors_header(const std::string& text, std::int64_t data_bytes,
                                           const std::string& path) {
  HeaderReader reader(data_bytes, path);
  json::sax_parse(text, &reader);
  SafetensorsHeader header = reader.take();
  std::sort(header.tensors.begin(), header.tensors.end(), [](const auto& a, const auto& b) {
    return std::tie(a.offset_bytes, a.size_bytes, a.name) < std::tie(b.offset_bytes, b.size_bytes, b.name);
  });
  header.by_name.resize(header.tensors.size());
  std::iota(header.by_name.begin(), header.by_name.end(), 0U);
  const auto name = [&](std::uint32_t i) -> const std::string& { return header.tensors[i].name; };
  std::sort(header.by_name.begin(), header.by_name.end(),
            [&](std::uint32_t a, std::uint32_t b) { return name(a) < name(b); });
  for (std::size_t i = 1; i < header.by_name.size(); ++i) {
    if (name(header.by_name[i - 1]) == name(header.by_name[i])) {
      refuse(path, fmt::format("its header has '{}' twice", printable(name(header.by_name[i]))));
    }
  }
  check_cover(header.tensors, data_bytes, path);
  return header;
}

}  // namespace penstock
