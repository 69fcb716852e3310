#pragma once

#include <cstdint>
#include <string>

#include "penstock/session.h"

namespace penstock::report {

/// What one budget gives, in a few lines: memory, speed, distance from the bound, traffic to the tier, wear.
/// `tokens`: of a sample of text, for speeds in tokens; 0: samples are counted.
std::string forecast_text(const Forecast& forecast, const std::string& network, std::int64_t batch,
                          std::int64_t tokens = 0);

/// Several budgets as a table.
std::string forecast_table(const ForecastTable& table, std::int64_t batch, std::int64_t tokens = 0);

}  // namespace penstock::report
