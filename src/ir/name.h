#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::ir {

/// What an op or a tensor is called. A step whose batch is cut has the same names once for each slice, so a
/// name is its words, which all slices share, and the slice's number between them: "conv1.", 12, "". Reads
/// as a std::string.
class Name {
 public:
  Name() : Name(std::string()) {}
  Name(std::string text) : Name(std::move(text), kNoNumber, {}) {}
  Name(const char* text) : Name(std::string(text)) {}
  Name(std::string before, std::int32_t number, std::string behind = {});

  std::string text() const;
  operator std::string() const { return text(); }
  /// The same with more behind it.
  Name with(std::string_view more) const;

  bool operator==(const Name& other) const { return text() == other.text(); }
  template <std::convertible_to<std::string_view> T>
  bool operator==(const T& other) const {
    return text() == std::string_view(other);
  }

  struct Words {
    std::string before, behind;
    bool operator==(const Words&) const = default;
  };
  /// One object for all names that differ in the slice's number alone.
  const Words* words() const { return words_; }

 private:
  static constexpr std::int32_t kNoNumber = -1;

  const Words* words_;
  std::int32_t number_;
};

inline std::string operator+(const Name& name, std::string_view more) {
  return name.text().append(more);
}
inline std::string operator+(const std::string& before, const Name& name) {
  return before + name.text();
}

}  // namespace penstock::ir

template <>
struct fmt::formatter<penstock::ir::Name> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(const penstock::ir::Name& name, Context& context) const {
    return fmt::formatter<std::string_view>::format(name.text(), context);
  }
};
