#include "fit/fit_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/error.h"
#include "base/json_numbers.h"
#include "base/kept_json.h"
#include "base/long_vector.h"
#include "base/text.h"
#include "fit/offset_check.h"
#include "fit/step_problem.h"
#include "plan/checker.h"
#include "plan/json.h"

namespace penstock::fit {
namespace {

using Json = nlohmann::ordered_json;
using ReadJson = nlohmann::json;

constexpr int kVersion = 4;
constexpr std::int64_t kLargest = std::int64_t{1} << 50;
/// What the process takes differs a little from run to run; the margin bears that much.
constexpr std::int64_t kMarginSlackBytes = 6 * kMiB;

/// What the plan's numbers stand for, for who checks it without the program.
Json problem_json(const plan::Problem& problem) {
  Json json;
  json["budget_bytes"] = problem.budget_bytes;
  json["fixed_bytes"] = problem.fixed_bytes;
  Json& storages = json["storages"] = Json::array();
  for (const plan::StorageInfo& storage : problem.storages)
    storages.push_back({storage.size_bytes, storage.footprint_bytes, storage.swappable, storage.carried});
  Json& tensors = json["tensors"] = Json::array();
  for (const ir::Tensor& tensor : problem.graph->tensors) tensors.push_back({tensor.name, tensor.storage});
  Json& ops = json["ops"] = Json::array();
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    const ir::Op& op = problem.graph->ops[i];
    Json overwrites = Json::array();
    for (const plan::Overwrite& pair : problem.ops[i].overwrites) overwrites.push_back({pair.from, pair.to});
    const std::span<const std::int64_t> scratch = problem.ops[i].scratch_bytes;
    ops.push_back({op.name, op.inputs, op.outputs, LongVector<std::int64_t>(scratch.begin(), scratch.end()),
                   overwrites});
  }
  return json;
}

Json step_json(const FittedStep& step) {
  Json json = Json::parse(plan::plan_to_json(step.problem, step.plan));
  json["problem"] = problem_json(step.problem);
  json["offsets"] = step.plan.offsets;
  json["homes"] = step.plan.homes;
  return json;
}

/// By storage: where it lies on the tier. What has space there for another plan only has no place yet.
LongVector<std::int64_t> places_from_json(const ReadJson& json, std::size_t storages) {
  LongVector<std::int64_t> places(storages, -1);
  for (const ReadJson& extent : json) {
    const auto storage = whole_number<std::int64_t>(extent.at(0));
    if (storage < 0 || static_cast<std::size_t>(storage) >= storages)
      throw UserError("it has space on the tier for a storage that is not there");
    places[static_cast<std::size_t>(storage)] = whole_number<std::int64_t>(extent.at(1));
  }
  return places;
}

FittedStep step_from_json(const lower::Executable& step, const StorageMap& map, const plan::PoolRule& rule,
                          const std::optional<plan::Boundary>& boundary,
                          const LongVector<std::int64_t>& places, const ReadJson& json, const char* what) {
  FittedStep fitted;
  fitted.problem = step_problem(step, map, rule, boundary);
  fitted.plan = plan::plan_from_json(fitted.problem, json.dump(), what);
  fitted.plan.offsets = whole_numbers<std::int64_t>(json.at("offsets"));
  fitted.plan.homes = whole_numbers<std::int64_t>(json.at("homes"));
  fitted.plan.places = places;
  const plan::CheckResult check = plan::check(fitted.problem, fitted.plan);
  if (!check.ok) throw UserError("the plan does not hold: " + check.message);
  fitted.plan.summary = check.summary;
  return fitted;
}

Fit parse(const Steps& steps, const ReadJson& json) {
  if (whole_number<int>(json.at("version")) != kVersion) throw UserError("it is of another version");
  Fit fit;
  fit.map = map_slots(steps.all());
  const std::string pool = json.at("pool").get<std::string>();
  if (pool != "virtual" && pool != "packed") throw UserError("its pool is not known");
  const auto rounding = whole_number<std::int64_t>(json.at("rounding_bytes"));
  fit.division.budget_bytes = whole_number<std::int64_t>(json.at("budget_bytes"));
  fit.given_bytes = whole_number<std::int64_t>(json.at("given_bytes"));
  fit.size = {whole_number<std::int64_t>(json.at("pool_bytes")),
              whole_number<std::int64_t>(json.at("small_bytes")),
              whole_number<std::int64_t>(json.at("paged_bytes")),
              whole_number<std::int64_t>(json.at("address_bytes"))};
  fit.in_memory_bytes = whole_number<std::int64_t>(json.at("in_memory_bytes"));
  if (rounding < 0 || fit.given_bytes <= 0 || fit.pool_bytes() <= 0 ||
      std::max({rounding, fit.given_bytes, fit.pool_bytes(), fit.size.small_bytes, fit.size.paged_bytes,
                fit.size.address_bytes}) > kLargest)
    throw UserError("its sizes are absurd");
  fit.pool =
      pool == "packed" ? make_packed_model(fit.map) : make_virtual_model(fit.map, std::max(rounding, kMiB));
  fit.policy = plan::parse_policy(json.at("policy").get<std::string>());
  plan::PoolRule rule = fit.pool->rule(fit.given_bytes);
  rule.tier_bytes = whole_number<std::int64_t>(json.at("tier_bytes"));
  if (rule.tier_bytes < 0 || rule.tier_bytes > kLargest) throw UserError("its sizes are absurd");
  const LongVector<std::int64_t> places = places_from_json(json.at("extents"), fit.map.extent.size());
  LongVector<PlannedStep> planned;
  LongVector<const plan::Plan*> plans;
  fit.training =
      step_from_json(*steps.training, fit.map, rule, std::nullopt, places, json.at("training"), "training");
  planned.push_back({steps.training, &fit.training->problem, &fit.training->plan});
  if (steps.evaluation != nullptr) {
    if (!json.contains("evaluation")) throw UserError("it has no room for an evaluation");
    fit.evaluation =
        step_from_json(*steps.evaluation, fit.map, rule, plan::settled(fit.training->plan.boundary), places,
                       json.at("evaluation"), "evaluation");
    planned.push_back({steps.evaluation, &fit.evaluation->problem, &fit.evaluation->plan});
  }
  for (const PlannedStep& step : planned) plans.push_back(step.plan);
  if (std::string wrong = check_offsets(fit.map, planned, fit.size, fit.pool->grain_bytes()); !wrong.empty())
    throw UserError("its offsets do not hold: " + wrong);
  map_extents(fit.map, plans);
  // Another plan in mid-run may swap more.
  StorageMap spare = fit.map;
  spare.tier_bytes = rule.tier_bytes;
  for (const ReadJson& extent : json.at("extents")) spare.extent[whole_number<std::size_t>(extent.at(0))] = 0;
  add_extents(fit.map, spare);
  return fit;
}

}  // namespace

std::string fit_to_json(const Steps& steps, const Fit& fit, const std::string& model, std::int64_t batch) {
  require(steps.training != nullptr && fit.training.has_value(), "a plan file is of a training step");
  Json json;
  json["version"] = kVersion;
  json["model"] = model;
  json["batch"] = batch;
  json["policy"] = plan::policy_name(fit.policy);
  json["pool"] = fit.pool->name();
  json["rounding_bytes"] = fit.pool->rounding_bytes();
  json["budget_bytes"] = fit.division.budget_bytes;
  json["beside_bytes"] = fit.division.beside;
  json["given_bytes"] = fit.given_bytes;
  json["pool_bytes"] = fit.pool_bytes();
  json["small_bytes"] = fit.size.small_bytes;
  json["paged_bytes"] = fit.size.paged_bytes;
  json["address_bytes"] = fit.size.address_bytes;
  json["in_memory_bytes"] = fit.in_memory_bytes;
  json["predicted_step_seconds"] = fit.predicted_seconds();
  Json& extents = json["extents"] = Json::array();
  for (std::size_t s = 0; s < fit.map.extent.size(); ++s) {
    if (fit.map.extent[s] >= 0) extents.push_back({s, fit.map.place(s)});
  }
  json["tier_bytes"] = fit.map.tier_bytes;
  json["training"] = step_json(*fit.training);
  if (fit.evaluation) json["evaluation"] = step_json(*fit.evaluation);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Fit fit_from_json(const Steps& steps, const Division& division, const std::string& text,
                  const std::string& source) {
  Fit fit;
  try {
    if (nests_deeper_than(text, 16)) throw UserError("it is nested too deeply");
    const KeptJson<ReadJson> json(ReadJson::parse(text));
    fit = parse(steps, *json);
  } catch (const std::exception& error) {
    throw UserError(
        fmt::format("{}: not a plan that can be used here: {}; plan again with the same model and options",
                    source, error.what()));
  }
  const std::int64_t own_budget = fit.division.budget_bytes;
  fit.division = division;
  if (division.budget_bytes == 0) fit.division.budget_bytes = own_budget;
  const std::int64_t missing = fit.pool_bytes() - fit.division.pool_bytes();
  if (missing > kMarginSlackBytes) {
    throw UserError(fmt::format(
        "{}: the plan's pool of {} and {} for the process exceed {}; give {} MiB of memory or more, "
        "or plan again",
        source, format_bytes(fit.pool_bytes()), format_bytes(fit.division.beside_bytes()),
        format_bytes(fit.division.budget_bytes), (fit.division.budget_bytes + missing) / kMiB + 1));
  }
  fit.division.beside["margin"] -= std::max<std::int64_t>(0, missing);
  return fit;
}

}  // namespace penstock::fit
