#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/kept_json.h"

namespace penstock::models {

/// Values of a config.json of the Hugging Face hub. Whatever is missing or does not fit is a UserError that
/// names the file and the key.
class HubConfig {
 public:
  static HubConfig read(const std::string& path);
  ~HubConfig() { take_apart(values_); }
  HubConfig(HubConfig&&) noexcept = default;
  HubConfig& operator=(HubConfig&&) = delete;

  bool has(const char* key) const { return values_.contains(key) && !values_[key].is_null(); }
  /// Between 1 and 2^31.
  std::int64_t count(const char* key) const;
  std::int64_t count(const char* key, std::int64_t usual) const { return has(key) ? count(key) : usual; }
  /// How often a block stands in the network: no more than any network has, because each is built.
  std::int64_t layers(const char* key) const;
  /// Above 0.
  float number(const char* key, float usual) const;
  /// From 0 up to, not including, 1.
  float probability(const char* key, float usual) const;
  bool flag(const char* key, bool usual) const;
  std::string text(const char* key, const char* usual) const;
  HubConfig part(const char* key) const;

  const nlohmann::json& values() const { return values_; }
  /// Throws the UserError for a value that does not fit, be it the file's or the usual one.
  [[noreturn]] void fail(const char* key) const;

 private:
  HubConfig(std::string path, nlohmann::json values) : path_(std::move(path)), values_(std::move(values)) {}

  std::string path_;
  nlohmann::json values_;
};

}  // namespace penstock::models
