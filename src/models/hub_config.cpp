#include "models/hub_config.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "base/text_file.h"

namespace penstock::models {
namespace {

using nlohmann::json;

constexpr int kDeepest = 32;
constexpr std::int64_t kLargestNumber = std::int64_t{1} << 31;
constexpr std::int64_t kMostLayers = 4096;
constexpr std::int64_t kLongestFile = kMiB;

}  // namespace

HubConfig HubConfig::read(const std::string& path) {
  const std::string text = read_file(path, kLongestFile);
  if (nests_deeper_than(text, kDeepest)) throw UserError(path + " is nested too deeply for a config.json");
  json values = json::parse(text, nullptr, false);
  if (!values.is_object()) throw UserError(path + " is no JSON object");
  return {path, std::move(values)};
}

std::int64_t HubConfig::count(const char* key) const {
  if (!has(key)) {
    throw UserError(fmt::format("{} has no {}: it is no config.json of a {}", path_, key,
                                printable(text("model_type", "llama"))));
  }
  const json& value = values_[key];
  if (!value.is_number_integer() || value < 1 || value > kLargestNumber) fail(key);
  return value.get<std::int64_t>();
}

std::int64_t HubConfig::layers(const char* key) const {
  const std::int64_t layers = count(key);
  if (layers > kMostLayers) fail(key);
  return layers;
}

float HubConfig::number(const char* key, float usual) const {
  if (!has(key)) return usual;
  const json& value = values_[key];
  if (!value.is_number() || !(value > 0) || value > 1e30) fail(key);
  return value.get<float>();
}

float HubConfig::probability(const char* key, float usual) const {
  if (!has(key)) return usual;
  const json& value = values_[key];
  if (!value.is_number() || !(value >= 0) || !(value < 1)) fail(key);
  return value.get<float>();
}

bool HubConfig::flag(const char* key, bool usual) const {
  if (!has(key)) return usual;
  if (!values_[key].is_boolean()) fail(key);
  return values_[key].get<bool>();
}

std::string HubConfig::text(const char* key, const char* usual) const {
  if (!has(key)) return usual;
  if (!values_[key].is_string()) fail(key);
  return values_[key].get<std::string>();
}

HubConfig HubConfig::part(const char* key) const {
  if (!has(key)) return {path_, json::object()};
  if (!values_[key].is_object()) fail(key);
  return {path_, values_[key]};
}

void HubConfig::fail(const char* key) const {
  if (!values_.contains(key))
    throw UserError(fmt::format("{} has no {}, and the usual value is not supported", path_, key));
  throw UserError(
      fmt::format("{}: {} is {}, which is not supported", path_, key, printable(values_[key].dump())));
}

}  // namespace penstock::models
