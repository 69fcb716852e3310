#include <nanobind/stl/map.h>
#include <penstock/session.h>

#include "bindings.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace penstock::python {

void bind_forecast(nb::module_& module) {
  nb::class_<StepStats>(module, "StepStats", "What one step took, or would take.")
      .def_ro("step_seconds", &StepStats::step_seconds)
      .def_ro("compute_seconds", &StepStats::compute_seconds)
      .def_ro("recompute_seconds", &StepStats::recompute_seconds)
      .def_ro("stall_seconds", &StepStats::stall_seconds)
      .def_ro("exchange_seconds", &StepStats::exchange_seconds)
      .def_ro("swapped_out_bytes", &StepStats::swapped_out_bytes)
      .def_ro("swapped_in_bytes", &StepStats::swapped_in_bytes)
      .def_ro("peak_pool_bytes", &StepStats::peak_pool_bytes);

  nb::class_<Forecast>(module, "Forecast", "What training within one budget is like. Times are predicted.")
      .def_ro("budget_bytes", &Forecast::budget_bytes)
      .def_ro("feasible", &Forecast::feasible)
      .def_ro("policy", &Forecast::policy)
      .def_ro("pool", &Forecast::pool)
      .def_ro("pool_bytes", &Forecast::pool_bytes)
      .def_ro("beside_bytes", &Forecast::beside_bytes)
      .def_ro("in_memory_bytes", &Forecast::in_memory_bytes)
      .def_ro("in_memory_share", &Forecast::in_memory_share)
      .def_ro("bound_seconds", &Forecast::bound_seconds)
      .def_ro("swap_file_bytes", &Forecast::swap_file_bytes)
      .def_ro("recomputed_ops", &Forecast::recomputed_ops)
      .def_ro("profile_source", &Forecast::profile_source)
      .def_ro("plan_seconds", &Forecast::plan_seconds)
      .def_ro("step", &Forecast::step)
      .def_prop_ro("peak_bytes", &Forecast::peak_bytes)
      .def(
          "text",
          [](const Forecast& forecast, const std::string& network, std::int64_t batch, std::int64_t tokens) {
            return forecast_text(forecast, network, batch, tokens);
          },
          "network"_a, "batch"_a, "tokens"_a = 0);

  nb::class_<ForecastTable>(module, "ForecastTable", "What training is like within one or several budgets.")
      .def_ro("profile_source", &ForecastTable::profile_source)
      .def_ro("in_memory_bytes", &ForecastTable::in_memory_bytes)
      .def_ro("in_memory_step_seconds", &ForecastTable::in_memory_step_seconds)
      .def_ro("smallest_bytes", &ForecastTable::smallest_bytes)
      .def_ro("largest_batch", &ForecastTable::largest_batch)
      .def_ro("swap_space_bytes", &ForecastTable::swap_space_bytes)
      .def_ro("budgets", &ForecastTable::budgets)
      .def_ro("explanation", &ForecastTable::explanation)
      .def(
          "text",
          [](const ForecastTable& table, std::int64_t batch, std::int64_t tokens) {
            return forecast_text(table, batch, tokens);
          },
          "batch"_a, "tokens"_a = 0);

  module.def(
      "forecast",
      [](const nb::object& network_of_batch, std::int64_t batch, const Optimizer& optimizer,
         const SessionOptions& options, bool largest_batch, const std::string& explain,
         const std::string& plan_file) {
        const auto make = [&](std::int64_t size) {
          const nb::gil_scoped_acquire lock;
          return nb::cast<Network>(network_of_batch(size));
        };
        ForecastRequest request;
        request.largest_batch = largest_batch;
        request.explain = explain;
        request.plan_file = plan_file;
        ForecastTable table;
        {
          const nb::gil_scoped_release unlocked;
          table = forecast(make, batch, optimizer, options, request);
        }
        check_signals();
        return table;
      },
      "network_of_batch"_a, "batch"_a, "optimizer"_a, "options"_a, "largest_batch"_a = false,
      "explain"_a = "", "plan_file"_a = "");
}

}  // namespace penstock::python
