#include "plan/json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/json_numbers.h"
#include "base/kept_json.h"
#include "base/long_vector.h"
#include "base/text.h"
#include "plan/profile.h"

namespace penstock::plan {
namespace {

using Json = nlohmann::ordered_json;
using ReadJson = nlohmann::json;

constexpr const char* kTransferNames[] = {"none", "read", "write"};
constexpr Action kActions[] = {Action::acquire, Action::run,     Action::swap_out, Action::swap_in,
                               Action::wait,    Action::release, Action::adopt};

Action parse_action(const std::string& name) {
  for (const Action action : kActions) {
    if (name == action_name(action)) return action;
  }
  throw UserError("unknown action '" + name + "'");
}

Transfer parse_transfer(const std::string& name) {
  for (int i = 0; i < 3; ++i) {
    if (name == kTransferNames[i]) return static_cast<Transfer>(i);
  }
  throw UserError("unknown transfer '" + name + "'");
}

/// Our own files are three deep.
constexpr int kDeepest = 16;

/// No step takes weeks, and no disk or link moves less than bytes or more than hundreds of terabytes a
/// second: with such numbers a search might not end.
void check_profile(const Profile& profile) {
  constexpr double kLongestSeconds = 1e6;
  constexpr double kMostBandwidth = 1e15;
  const auto check_seconds = [](double seconds, const char* what) {
    if (!(seconds >= 0)) throw UserError(std::string(what) + " is below 0");
    if (seconds > kLongestSeconds) throw UserError(std::string(what) + " is impossibly large");
  };
  if (profile.link.ranks < 1) throw UserError("there is no rank");
  for (const double bandwidth :
       {profile.link.bandwidth, profile.tier.read_bandwidth, profile.tier.write_bandwidth,
        profile.tier.read_bandwidth_together, profile.tier.write_bandwidth_together}) {
    if (!(bandwidth > 0)) throw UserError("a bandwidth is not above 0");
    if (bandwidth < 1 || bandwidth > kMostBandwidth) throw UserError("a bandwidth is impossible");
  }
  for (const double seconds :
       {profile.host.mapping_seconds, profile.host.mapping_seconds_per_byte, profile.host.moves_each,
        profile.host.moved_share, profile.host.transfer_seconds, profile.host.transfer_seconds_per_byte,
        profile.tier.latency_seconds, profile.link.latency_seconds, profile.link.message_seconds}) {
    check_seconds(seconds, "a time of the host, the tier or the link");
  }
  for (std::size_t op = 0; op < profile.op_seconds.size(); ++op) {
    const std::span<const double> variants = profile.op_seconds[op];
    if (variants.empty()) throw UserError("an op has no time");
    for (const double seconds : variants) check_seconds(seconds, "an op's time");
  }
}

/// Runs `read` on the text as JSON; whatever is wrong becomes a UserError that begins with `source`.
template <typename Read>
auto parse(const std::string& text, const std::string& source, const char* what, const Read& read) {
  try {
    if (nests_deeper_than(text, kDeepest)) throw UserError("it is nested too deeply");
    const KeptJson<ReadJson> json(ReadJson::parse(text));
    if (whole_number<int>(json->at("version")) != 1) throw UserError("it is of another version");
    return read(*json);
  } catch (const std::exception& error) {
    throw UserError(source + ": not a " + what + " that can be used: " + printable(error.what()));
  }
}

}  // namespace

std::string plan_to_json(const Problem& problem, const Plan& plan) {
  Json json;
  json["version"] = 1;
  json["policy"] = plan.policy;
  json["graph"] = problem.graph->name;
  json["ops"] = problem.ops.size();
  json["storages"] = problem.storages.size();
  json["budget_bytes"] = plan.budget_bytes;
  json["summary"] = {{"peak_bytes", plan.summary.peak_bytes},
                     {"swapped_out_bytes", plan.summary.swapped_out_bytes},
                     {"swapped_in_bytes", plan.summary.swapped_in_bytes},
                     {"tier_bytes", plan.summary.tier_bytes},
                     {"runs", plan.summary.runs},
                     {"recomputed", plan.summary.recomputed}};
  Json& boundary = json["boundary"] = Json::array();
  for (const Standing& standing : plan.boundary) {
    boundary.push_back({{"storage", standing.storage},
                        {"name", problem.storage_name(standing.storage)},
                        {"resident", standing.resident},
                        {"on_tier", standing.on_tier},
                        {"pending", kTransferNames[static_cast<int>(standing.pending)]}});
  }
  Json& instructions = json["instructions"] = Json::array();
  for (const Instruction& in : plan.instructions) {
    if (in.action == Action::run) {
      instructions.push_back(Json::array({"run", in.id, problem.graph->op(in.id).name, in.variant}));
    } else if (in.action == Action::adopt) {
      instructions.push_back(
          Json::array({"adopt", in.id, problem.storage_name(in.id), in.from, problem.storage_name(in.from)}));
    } else {
      instructions.push_back(Json::array({action_name(in.action), in.id, problem.storage_name(in.id)}));
    }
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Plan plan_from_json(const Problem& problem, const std::string& text, const std::string& source) {
  return parse(text, source, "plan", [&](const ReadJson& json) {
    if (json.at("graph").get<std::string>() != problem.graph->name ||
        whole_number<std::size_t>(json.at("ops")) != problem.ops.size() ||
        whole_number<std::size_t>(json.at("storages")) != problem.storages.size()) {
      throw UserError("it is for another network");
    }
    Plan plan;
    plan.policy = json.at("policy").get<std::string>();
    plan.budget_bytes = whole_number<std::int64_t>(json.at("budget_bytes"));
    const ReadJson& summary = json.at("summary");
    plan.summary.peak_bytes = whole_number<std::int64_t>(summary.at("peak_bytes"));
    plan.summary.swapped_out_bytes = whole_number<std::int64_t>(summary.at("swapped_out_bytes"));
    plan.summary.swapped_in_bytes = whole_number<std::int64_t>(summary.at("swapped_in_bytes"));
    plan.summary.tier_bytes = whole_number<std::int64_t>(summary.at("tier_bytes"));
    plan.summary.runs = whole_number<std::int64_t>(summary.at("runs"));
    plan.summary.recomputed = whole_number<std::int64_t>(summary.at("recomputed"));
    for (const ReadJson& standing : json.at("boundary")) {
      plan.boundary.push_back({whole_number<ir::StorageId>(standing.at("storage")),
                               standing.at("resident").get<bool>(), standing.at("on_tier").get<bool>(),
                               parse_transfer(standing.at("pending").get<std::string>())});
    }
    for (const ReadJson& in : json.at("instructions")) {
      const Action action = parse_action(in.at(0).get<std::string>());
      const std::int32_t variant = action == Action::run ? whole_number<std::int32_t>(in.at(3)) : 0;
      const std::int32_t from = action == Action::adopt ? whole_number<std::int32_t>(in.at(3)) : ir::kNone;
      const std::int32_t id = whole_number<std::int32_t>(in.at(1));
      if (!Instruction::has_room(id, variant, from)) throw UserError("an instruction has an absurd number");
      plan.instructions.emplace_back(action, id, variant, from);
    }
    return plan;
  });
}

std::string profile_to_json(const Profile& profile) {
  Json json;
  json["version"] = 1;
  json["measured"] = profile.measured;
  json["host"] = {{"mapping_seconds", profile.host.mapping_seconds},
                  {"mapping_seconds_per_byte", profile.host.mapping_seconds_per_byte},
                  {"moves_each", profile.host.moves_each},
                  {"moved_share", profile.host.moved_share},
                  {"transfer_seconds", profile.host.transfer_seconds},
                  {"transfer_seconds_per_byte", profile.host.transfer_seconds_per_byte}};
  json["tier"] = {{"read_bandwidth", profile.tier.read_bandwidth},
                  {"write_bandwidth", profile.tier.write_bandwidth},
                  {"read_bandwidth_together", profile.tier.read_bandwidth_together},
                  {"write_bandwidth_together", profile.tier.write_bandwidth_together},
                  {"latency_seconds", profile.tier.latency_seconds},
                  {"serves_waiting_first", profile.tier.serves_waiting_first}};
  json["link"] = {{"ranks", profile.link.ranks},
                  {"bandwidth", profile.link.bandwidth},
                  {"latency_seconds", profile.link.latency_seconds},
                  {"message_seconds", profile.link.message_seconds}};
  // One by one behind the rest: a tree of all would take many times their bytes, and there may be hundreds of
  // thousands.
  std::string text = json.dump();
  text.pop_back();
  text += ",\"op_seconds\":[";
  const auto out = std::back_inserter(text);
  for (std::size_t op = 0; op < profile.op_seconds.size(); ++op)
    fmt::format_to(out, "{}[{}]", op == 0 ? "" : ",", fmt::join(profile.op_seconds[op], ","));
  text += "]}";
  return text;
}

Profile profile_from_json(const std::string& text, const std::string& source) {
  return parse(text, source, "profile", [](const ReadJson& json) {
    Profile profile;
    profile.measured = json.at("measured").get<bool>();
    const ReadJson& host = json.at("host");
    profile.host.mapping_seconds = host.at("mapping_seconds").get<double>();
    profile.host.mapping_seconds_per_byte = host.at("mapping_seconds_per_byte").get<double>();
    profile.host.moves_each = host.value("moves_each", 1.0);
    profile.host.moved_share = host.value("moved_share", 1.0);
    profile.host.transfer_seconds = host.at("transfer_seconds").get<double>();
    profile.host.transfer_seconds_per_byte = host.at("transfer_seconds_per_byte").get<double>();
    const ReadJson& tier = json.at("tier");
    profile.tier.read_bandwidth = tier.at("read_bandwidth").get<double>();
    profile.tier.write_bandwidth = tier.at("write_bandwidth").get<double>();
    profile.tier.read_bandwidth_together = tier.at("read_bandwidth_together").get<double>();
    profile.tier.write_bandwidth_together = tier.at("write_bandwidth_together").get<double>();
    profile.tier.latency_seconds = tier.at("latency_seconds").get<double>();
    profile.tier.serves_waiting_first = tier.at("serves_waiting_first").get<bool>();
    profile.op_seconds = OpSeconds(json.at("op_seconds").get<LongVector<LongVector<double>>>());
    if (json.contains("link")) {
      const ReadJson& link = json.at("link");
      profile.link.ranks = whole_number<int>(link.at("ranks"));
      profile.link.bandwidth = link.at("bandwidth").get<double>();
      profile.link.latency_seconds = link.at("latency_seconds").get<double>();
      profile.link.message_seconds = link.at("message_seconds").get<double>();
    }
    check_profile(profile);
    return profile;
  });
}

}  // namespace penstock::plan
