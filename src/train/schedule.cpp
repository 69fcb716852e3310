#include "train/schedule.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <numbers>
#include <sstream>
#include <vector>

#include "base/error.h"

namespace penstock::training {
namespace {

template <typename Number>
Number parse_number(const std::string& schedule, const std::string& text, Number least) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least)) {
    throw UserError(
        fmt::format("--schedule '{}': '{}' is not a number of at least {}", schedule, text, least));
  }
  return value;
}

}  // namespace

Schedule Schedule::parse(const std::string& text, double base, std::int64_t steps) {
  Schedule schedule;
  schedule.base_ = base;
  schedule.steps_ = steps;
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    if (i == 0 && part == "constant") {
      schedule.kind_ = Kind::constant;
    } else if (i == 0 && part == "cosine") {
      schedule.kind_ = Kind::cosine;
    } else if (i == 0 && part.starts_with("step:")) {
      schedule.kind_ = Kind::step;
      schedule.every_ = parse_number<std::int64_t>(text, part.substr(5), 1);
    } else if (i == 1 && schedule.kind_ == Kind::step && !part.starts_with("warmup:")) {
      schedule.factor_ = parse_number<double>(text, part, 0.0);
    } else if (i > 0 && part.starts_with("warmup:")) {
      schedule.warmup_ = parse_number<std::int64_t>(text, part.substr(7), 0);
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

double Schedule::at(std::int64_t step) const {
  double rate = base_;
  if (kind_ == Kind::step) {
    const std::int64_t drops = step / every_;
    rate *= std::pow(factor_, static_cast<double>(drops));
  } else if (kind_ == Kind::cosine) {
    const std::int64_t length = std::max<std::int64_t>(1, steps_ - warmup_);
    const double done =
        static_cast<double>(std::max<std::int64_t>(0, step - warmup_)) / static_cast<double>(length);
    rate *= 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, done)));
  }
  if (step < warmup_) rate *= static_cast<double>(step + 1) / static_cast<double>(warmup_);
  return rate;
}

}  // namespace penstock::training
