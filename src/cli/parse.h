#pragma once

// From words of the command line to types. Each throws UserError that names the option.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "penstock/options.h"
#include "penstock/training.h"

namespace penstock::cli {

/// "1GiB", or "50%" of `available_bytes`.
std::int64_t parse_memory_budget(const std::string& text, std::int64_t available_bytes);
/// "200MB/s" or "200MB", in bytes per second.
std::int64_t parse_bandwidth(const std::string& text);
/// "auto", or samples of a slice; 0: not cut.
std::optional<std::int64_t> parse_slice(const std::string& text);
/// "auto", or bands of an image; 1: not cut.
std::optional<std::int64_t> parse_bands(const std::string& text);
std::optional<PoolKind> parse_pool(const std::string& text);
TierKind parse_tier(const std::string& text);
VerifyMode parse_verify(const std::string& text);
OptimizerKind parse_optimizer(const std::string& text);
bool parse_dynamic_kernels(const std::string& text);
/// "all" or "matrices": whether only parameters of two axes and more decay.
bool parse_decay(const std::string& text);
MomentType parse_moments(const std::string& text);
/// "0.9,0.95"
std::pair<float, float> parse_betas(const std::string& text);
/// "constant", "step:EVERY[,FACTOR]" (times FACTOR, 0.1 by default, each EVERY steps), "cosine" (to zero);
/// each may end in ",warmup:N" (linear over the first N steps).
Schedule parse_schedule(const std::string& text);

}  // namespace penstock::cli
