#include "cli/parse.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <sstream>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/read_number.h"

namespace penstock::cli {
namespace {

template <typename Number>
Number parse_number(const std::string& schedule, const std::string& text, Number least) {
  Number value{};
  if (!read_number(text, value) || !(value >= least)) {
    throw UserError(
        fmt::format("--schedule '{}': '{}' is not a number of at least {}", schedule, text, least));
  }
  return value;
}

}  // namespace

std::int64_t parse_memory_budget(const std::string& text, std::int64_t available_bytes) {
  std::int64_t bytes = 0;
  if (!text.empty() && text.back() == '%') {
    double percent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
    if (error != std::errc() || end != text.data() + text.size() - 1 || !(percent > 0 && percent <= 100)) {
      throw UserError(fmt::format("--memory: '{}' is not a share; write a percentage from 1% to 100%", text));
    }
    bytes = static_cast<std::int64_t>(std::floor(static_cast<double>(available_bytes) * percent / 100));
  } else {
    bytes = parse_bytes(text, "--memory");
  }
  if (bytes <= 0) throw UserError(fmt::format("--memory: '{}' is no memory at all", text));
  return bytes;
}

std::int64_t parse_bandwidth(const std::string& text) {
  const std::string size = text.ends_with("/s") ? text.substr(0, text.size() - 2) : text;
  const std::int64_t bytes_per_second = parse_bytes(size, "--tier-bandwidth");
  if (bytes_per_second == 0)
    throw UserError(fmt::format("--tier-bandwidth: '{}' is no bandwidth at all", text));
  return bytes_per_second;
}

namespace {

/// "auto", or a number that is `least` or more.
std::optional<std::int64_t> parse_count(const std::string& text, std::int64_t least,
                                        const std::string& option, const char* what) {
  if (text == "auto") return std::nullopt;
  std::int64_t count = 0;
  if (!read_number(text, count) || count < least)
    throw UserError(fmt::format("{} '{}' is neither auto nor a number of {}", option, text, what));
  return count;
}

}  // namespace

std::optional<std::int64_t> parse_slice(const std::string& text) {
  return parse_count(text, 0, "--slice", "images");
}

std::optional<std::int64_t> parse_bands(const std::string& text) {
  return parse_count(text, 1, "--bands", "bands");
}

std::optional<PoolKind> parse_pool(const std::string& text) {
  if (text == "auto") return std::nullopt;
  if (text == "packed") return PoolKind::packed;
  if (text == "virtual") return PoolKind::paged;
  throw UserError(fmt::format("--pool '{}' is not known; there are auto, virtual and packed", text));
}

TierKind parse_tier(const std::string& text) {
  if (text == "disk") return TierKind::disk;
  if (text == "disk-threads") return TierKind::disk_threads;
  if (text == "ram") return TierKind::ram;
  throw UserError(fmt::format("--tier: '{}' is none of disk, disk-threads, ram", text));
}

VerifyMode parse_verify(const std::string& text) {
  if (text == "off") return VerifyMode::off;
  if (text == "sampled") return VerifyMode::sampled;
  if (text == "full") return VerifyMode::full;
  throw UserError(fmt::format("--verify: '{}' is none of sampled, full, off", text));
}

OptimizerKind parse_optimizer(const std::string& text) {
  if (text == "sgd") return OptimizerKind::sgd;
  if (text == "adam") return OptimizerKind::adam;
  if (text == "adamw") return OptimizerKind::adamw;
  throw UserError(fmt::format("--optimizer '{}' is not known; there are sgd, adam and adamw", text));
}

bool parse_dynamic_kernels(const std::string& text) {
  if (text == "fixed") return false;
  if (text == "dynamic") return true;
  throw UserError(fmt::format("--kernels '{}' is not known; there are fixed and dynamic", text));
}

bool parse_decay(const std::string& text) {
  if (text == "all") return false;
  if (text == "matrices") return true;
  throw UserError(fmt::format("--decay '{}' is not known; there are all and matrices", text));
}

MomentType parse_moments(const std::string& text) {
  if (text == "f32") return MomentType::f32;
  if (text == "bf16") return MomentType::bf16;
  throw UserError(fmt::format("--state-dtype '{}' is not known; there are f32 and bf16", text));
}

std::pair<float, float> parse_betas(const std::string& text) {
  float first = 0, second = 0;
  const char* end = text.data() + text.size();
  const auto one = std::from_chars(text.data(), end, first);
  if (one.ec == std::errc() && one.ptr != end && *one.ptr == ',') {
    const auto two = std::from_chars(one.ptr + 1, end, second);
    if (two.ec == std::errc() && two.ptr == end) return {first, second};
  }
  throw UserError(fmt::format("--betas: '{}' is not two numbers; write them as 0.9,0.95", text));
}

Schedule parse_schedule(const std::string& text) {
  Schedule schedule;
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    if (i == 0 && part == "constant") {
      schedule.kind = Schedule::Kind::constant;
    } else if (i == 0 && part == "cosine") {
      schedule.kind = Schedule::Kind::cosine;
    } else if (i == 0 && part.starts_with("step:")) {
      schedule.kind = Schedule::Kind::step;
      schedule.every = parse_number<std::int64_t>(text, part.substr(5), 1);
    } else if (i == 1 && schedule.kind == Schedule::Kind::step && !part.starts_with("warmup:")) {
      schedule.factor = parse_number<double>(text, part, 0.0);
    } else if (i > 0 && part.starts_with("warmup:")) {
      schedule.warmup = parse_number<std::int64_t>(text, part.substr(7), 0);
    } else {
      parts.clear();
    }
  }
  if (parts.empty()) {
    throw UserError(
        fmt::format("--schedule '{}' is not known; write constant, step:EVERY[,FACTOR] or cosine, each with "
                    ",warmup:N behind if wanted",
                    text));
  }
  return schedule;
}

}  // namespace penstock::cli
