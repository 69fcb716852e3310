#pragma once

#include <cstdint>
#include <string>

#include "penstock/session.h"

namespace penstock::report {

/// What one budget gives, in a few lines: memory, speed, distance from the bound, traffic to the tier, wear.
std::string forecast_text(const Forecast& forecast, const std::string& network, std::int64_t batch);

/// Several budgets as a table.
std::string forecast_table(const ForecastTable& table, std::int64_t batch);

}  // namespace penstock::report
