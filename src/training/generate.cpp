#include "penstock/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <span>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "memory/process.h"
#include "models/text_catalog.h"
#include "penstock/session.h"

namespace penstock {
namespace {

/// Rows of keys or values of one layer, oldest first. Takes the memory of all rows at once.
class Rows {
 public:
  Rows(std::int64_t width, std::int64_t most) : width_(static_cast<std::size_t>(width)) {
    values_.reserve(width_ * static_cast<std::size_t>(most));
  }
  void append(const OutputArray& row) {
    const std::span<const float> values = row.floats();
    require(values.size() == width_, "a row of keys or values");
    values_.insert(values_.end(), values.begin(), values.end());
  }
  /// To the end of `count` rows; zeros before.
  void copy_to(float* to, std::int64_t count) const {
    const std::size_t all = width_ * static_cast<std::size_t>(count);
    std::fill_n(to, all - values_.size(), 0.0F);
    std::copy(values_.begin(), values_.end(), to + (all - values_.size()));
  }

 private:
  std::size_t width_;
  std::vector<float> values_;
};

class Generator {
 public:
  Generator(const std::string& model, const GenerateOptions& options)
      : options_(options), window_(static_cast<std::int64_t>(options.prompt.size()) + options.tokens - 1) {
    check(model);
    const Network network = models::build_next_token_model(model, options.vocabulary, window_);
    std::int64_t kept_bytes = 0;
    for (const PortInfo& output : network.outputs()) {
      if (!output.name.starts_with("key.") && !output.name.starts_with("value.")) continue;
      rows_.emplace(output.name, Rows(output.shape.back(), window_ - 1));
      kept_bytes += output.shape.back() * (window_ - 1) * static_cast<std::int64_t>(sizeof(float));
    }
    SessionOptions session = options.session;
    session.training = false;
    session.evaluation = true;
    session.reserved_bytes["keys and values"] = kept_bytes;
    session_.emplace(network, Optimizer{}, session);
    if (!options.init_file.empty()) session_->load(options.init_file);
    if (!options.resume_dir.empty()) session_->load_checkpoint(options.resume_dir, false);
  }

  GenerateResult run() {
    GenerateResult result;
    const double begin = clock_seconds();
    std::vector<float> logits;
    for (const std::int32_t token : options_.prompt) logits = see(token);
    while (true) {
      result.tokens.push_back(draw_token(logits, options_, seen_));
      if (options_.on_token) options_.on_token(result.tokens.back());
      if (static_cast<std::int64_t>(result.tokens.size()) == options_.tokens) break;
      logits = see(result.tokens.back());
    }
    result.tokens_per_second = static_cast<double>(seen_) / std::max(clock_seconds() - begin, 1e-9);
    result.peak_rss_bytes = process_memory().peak_resident_bytes;
    return result;
  }

 private:
  void check(const std::string& model) const {
    const std::optional<models::TextInfo> info = models::find_text_info(model);
    if (!info) {
      const ModelInfo images = find_model(model);
      throw UserError(fmt::format("{} is a network for images: it tells no text", images.name));
    }
    if (options_.init_file.empty() == options_.resume_dir.empty())
      throw UserError("say which weights tell the text: a file of weights or a checkpoint, one of them");
    if (options_.prompt.empty()) throw UserError("the prompt is empty: it needs one token at least");
    if (options_.tokens < 1)
      throw UserError(fmt::format("{} tokens are none: ask for 1 or more", options_.tokens));
    if (!(options_.temperature >= 0) || !std::isfinite(options_.temperature) || options_.top_k < 0)
      throw UserError(fmt::format("temperature {} with the likeliest {} is out of range; use 0 or more",
                                  options_.temperature, options_.top_k));
    const std::int64_t vocabulary = options_.vocabulary > 0 ? options_.vocabulary : info->vocabulary;
    for (const std::int32_t token : options_.prompt) {
      if (token < 0 || token >= vocabulary)
        throw UserError(fmt::format("the prompt has token {}, but the vocabulary of {} has {}", token, model,
                                    vocabulary));
    }
    if (window_ > info->positions) {
      throw UserError(
          fmt::format("a prompt of {} tokens and {} more are too long for {}: it has {} positions",
                      options_.prompt.size(), options_.tokens, model, info->positions));
    }
  }

  /// Runs one token and returns the logits of the next.
  std::vector<float> see(std::int32_t token) {
    const std::vector<std::int32_t> tokens{token}, positions{static_cast<std::int32_t>(seen_)};
    Inputs inputs{{"token", tokens}, {"position", positions}};
    inputs["seen"] = InputArray([this](const InputPart& part) {
      auto* flags = static_cast<std::uint8_t*>(part.to);
      std::fill_n(flags, window_, std::uint8_t{0});
      std::fill_n(flags + (window_ - 1 - seen_), seen_ + 1, std::uint8_t{1});
    });
    if (window_ > 1) {
      for (const auto& [name, rows] : rows_) {
        // key.3 is given back to keys.3
        const std::size_t dot = name.find('.');
        inputs[fmt::format("{}s{}", name.substr(0, dot), name.substr(dot))] =
            InputArray([this, kept = &rows](const InputPart& part) {
              kept->copy_to(static_cast<float*>(part.to), window_ - 1);
            });
      }
    }
    const StepResult done = session_->run(inputs);
    ++seen_;
    if (seen_ < window_) {
      for (auto& [name, rows] : rows_) rows.append(done.outputs.at(name));
    }
    const std::span<const float> logits = done.outputs.at("logits").floats();
    return {logits.begin(), logits.end()};
  }

  const GenerateOptions& options_;
  std::int64_t window_;
  std::map<std::string, Rows> rows_;  ///< by output
  std::optional<Session> session_;
  std::int64_t seen_ = 0;
};

}  // namespace

std::int32_t draw_token(const std::vector<float>& logits, const GenerateOptions& options,
                        std::int64_t place) {
  require(!logits.empty(), "there are logits");
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [&](std::int32_t a, std::int32_t b) {
    const float first = logits[static_cast<std::size_t>(a)], second = logits[static_cast<std::size_t>(b)];
    return first > second || (first == second && a < b);
  };
  if (options.temperature == 0) return *std::min_element(order.begin(), order.end(), likelier);
  const std::int64_t most = options.top_k > 0 ? options.top_k : static_cast<std::int64_t>(order.size());
  const auto count = static_cast<std::size_t>(std::min(most, static_cast<std::int64_t>(order.size())));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(), likelier);
  order.resize(count);
  std::vector<double> weights;
  double sum = 0;
  const double largest = logits[static_cast<std::size_t>(order[0])];
  for (const std::int32_t token : order) {
    weights.push_back(std::exp((logits[static_cast<std::size_t>(token)] - largest) / options.temperature));
    sum += weights.back();
  }
  const CounterRandom random(options.session.seed, RandomPurpose::draw, 0, 0);
  double left = static_cast<double>(random.bits(static_cast<std::uint64_t>(place))) * 0x1p-32 * sum;
  for (std::size_t i = 0; i < count; ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order.back();
}

GenerateResult generate(const std::string& model, const GenerateOptions& options) {
  return Generator(model, options).run();
}

}  // namespace penstock
