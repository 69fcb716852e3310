#include "report/trace_json.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "report/traced_step.h"

namespace penstock::report {
namespace {

std::vector<StepView> views(const TracedStep& traced) {
  return view_steps(traced.problem, traced.plan, traced.traces);
}

TEST(TraceJson, EventsOfALaneNest) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const TracedStep traced(seed, 3);
    const auto json = nlohmann::json::parse(trace_json(views(traced), "test"));
    std::map<int, std::vector<nlohmann::json>> by_thread;
    for (const auto& event : json["traceEvents"]) {
      if (event["ph"] == "X") by_thread[event["tid"]].push_back(event);
    }
    for (auto& [tid, events] : by_thread) {
      std::stable_sort(events.begin(), events.end(),
                       [](const auto& a, const auto& b) { return a["ts"] < b["ts"]; });
      std::vector<double> ends;  // of what is open
      for (const auto& event : events) {
        const double start = event["ts"], end = start + event["dur"].get<double>();
        EXPECT_GE(event["dur"], 0.0);
        while (!ends.empty() && ends.back() <= start + 0.002) ends.pop_back();
        if (!ends.empty()) {
          EXPECT_LE(end, ends.back() + 0.002) << event;
        }
        ends.push_back(end);
      }
    }
    EXPECT_GE(by_thread[1].size(), 3 * (traced.executable.graph.ops.size() + 1));
    EXPECT_FALSE(by_thread[2].empty());
    EXPECT_FALSE(by_thread[3].empty());
  }
}

TEST(TraceJson, NamesLanesOpsAndTensors) {
  const TracedStep traced(1);
  const auto json = nlohmann::json::parse(trace_json(views(traced), "a \"title\"\n"));
  std::set<std::string> threads, names, counters;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "thread_name") threads.insert(event["args"]["name"]);
    if (event["ph"] == "M" && event["name"] == "process_name") {
      EXPECT_EQ(event["args"]["name"], "a \"title\"\n");
    }
    if (event["ph"] == "X") names.insert(event["name"]);
    if (event["ph"] == "C") counters.insert(event["name"]);
  }
  EXPECT_EQ(threads, (std::set<std::string>{"compute", "reads", "writes"}));
  EXPECT_EQ(counters, (std::set<std::string>{"memory", "window"}));
  for (const ir::Op& op : traced.executable.graph.ops) EXPECT_TRUE(names.contains(op.name)) << op.name.text();
  for (const plan::Instruction& in : traced.plan.instructions) {
    if (in.action == plan::Action::swap_in) {
      EXPECT_TRUE(names.contains(traced.problem.storage_name(in.id)));
    }
  }
}

TEST(TraceJson, MarksStallsAndRepeatedOps) {
  StepView view;
  view.end_seconds = 3;
  view.events = {{Lane::compute, Kind::recompute, "conv1", "conv", 0, 1, 0},
                 {Lane::compute, Kind::stall, "weight", "", 1, 2, 7},
                 {Lane::network, Kind::transfer, "grad", "", 1, 2, 9}};
  const auto json = nlohmann::json::parse(trace_json(std::vector<StepView>{view}, ""));
  std::map<std::string, nlohmann::json> by_name;
  bool network = false;
  for (const auto& event : json["traceEvents"]) {
    if (event["ph"] == "X") by_name[event["name"]] = event;
    if (event["name"] == "thread_name" && event["args"]["name"] == "network") network = true;
  }
  EXPECT_TRUE(network);
  EXPECT_EQ(by_name.at("conv1 (again)")["cat"], "recompute");
  EXPECT_EQ(by_name.at("stall: weight")["cat"], "stall");
  EXPECT_EQ(by_name.at("stall: weight")["ts"], 1e6);
  EXPECT_EQ(by_name.at("grad")["args"]["size_bytes"], 9);
}

TEST(TraceJson, SurvivesNamesThatAreNotUtf8) {
  StepView view;
  view.events = {{Lane::compute, Kind::forward, "\xFF\x01\"\\", "conv", 0, 1, 0}};
  EXPECT_TRUE(nlohmann::json::accept(trace_json(std::vector<StepView>{view}, "\xC3")));
}

}  // namespace
}  // namespace penstock::report
