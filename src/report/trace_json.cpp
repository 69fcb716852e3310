#include "report/trace_json.h"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <nlohmann/json.hpp>

namespace penstock::report {
namespace {

std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

/// Writes events one a line; Chrome's times are microseconds.
class TraceWriter {
 public:
  explicit TraceWriter(const std::string& title) {
    text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
    text_ += fmt::format(R"({{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{{"name":{}}}}})",
                         json_string(title));
  }

  void lane(Lane lane) {
    const int tid = static_cast<int>(lane) + 1;
    add(R"({{"ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":"{}"}}}})", tid, lane_name(lane));
    add(R"({{"ph":"M","pid":1,"tid":{0},"name":"thread_sort_index","args":{{"sort_index":{0}}}}})", tid);
  }

  void step(const StepView& view) {
    add(R"({{"ph":"X","pid":1,"tid":1,"ts":{:.3f},"dur":{:.3f},"name":"step {}","cat":"step"}})",
        view.start_seconds * 1e6, (view.end_seconds - view.start_seconds) * 1e6, view.step);
    for (const LaneEvent& event : view.events) this->event(event);
    for (const plan::MemoryPoint& point : view.memory) counter("memory", "pool_bytes", point);
    for (const plan::MemoryPoint& point : view.prefetched) counter("window", "prefetched_bytes", point);
  }

  std::string finish() { return std::move(text_) + "\n]}\n"; }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    text_ += ",\n";
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }

  void event(const LaneEvent& event) {
    std::string name = event.name, colour, args;
    if (event.kind == Kind::stall) {
      name = "stall: " + name;
      colour = R"(,"cname":"terrible")";
    }
    if (event.kind == Kind::recompute) {
      name += " (again)";
      colour = R"(,"cname":"bad")";
    }
    if (!event.operation.empty()) args = fmt::format(R"("operation":{})", json_string(event.operation));
    if (event.size_bytes > 0) args = fmt::format(R"("size_bytes":{})", event.size_bytes);
    add(R"({{"ph":"X","pid":1,"tid":{},"ts":{:.3f},"dur":{:.3f},"name":{},"cat":"{}"{},"args":{{{}}}}})",
        static_cast<int>(event.lane) + 1, event.start_seconds * 1e6,
        (event.end_seconds - event.start_seconds) * 1e6, json_string(name), kind_name(event.kind), colour,
        args);
  }

  void counter(const char* name, const char* key, const plan::MemoryPoint& point) {
    add(R"({{"ph":"C","pid":1,"ts":{:.3f},"name":"{}","args":{{"{}":{}}}}})", point.seconds * 1e6, name, key,
        point.bytes);
  }

  std::string text_;
};

}  // namespace

std::string trace_json(std::span<const StepView> steps, const std::string& title) {
  TraceWriter writer(title);
  std::array<bool, kLanes> used{true, true, true, false};
  for (const StepView& view : steps) {
    for (const LaneEvent& event : view.events) used[static_cast<std::size_t>(event.lane)] = true;
  }
  for (int i = 0; i < kLanes; ++i) {
    if (used[static_cast<std::size_t>(i)]) writer.lane(static_cast<Lane>(i));
  }
  for (const StepView& view : steps) writer.step(view);
  return writer.finish();
}

}  // namespace penstock::report
