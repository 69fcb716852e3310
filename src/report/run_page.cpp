#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/bytes.h"
#include "report/chart.h"
#include "report/markup.h"
#include "report/page.h"
#include "report/run_report.h"
#include "report/step_figure.h"

namespace penstock::report {
namespace {

/// Points of a curve at most; longer ones are averaged.
constexpr std::size_t kCurvePoints = 800;

std::string row(const std::vector<std::string>& cells) {
  std::string text = "<tr>";
  for (const std::string& cell : cells) text += "<td>" + cell + "</td>";
  return text + "</tr>\n";
}

std::string layers_table(const RunReport& run) {
  std::int64_t largest = 1;
  for (const LayerUse& layer : run.layers) largest = std::max(largest, layer.total_bytes());
  std::string text =
      R"(<div class="legend" style="margin-left:0">)" + legend_entry("kept", "kept in memory") +
      legend_entry("swapped", "swapped to the tier") + legend_entry("recomputed", "computed again") +
      "</div>\n<table><caption>State, and what backward needs of forward, by module in order of execution. "
      "What lives only "
      "briefly (most gradients) is not in it.</caption>\n<thead><tr><th>layer</th><th></th><th>total</th>"
      R"(<th class="wide">kept</th><th class="wide">swapped</th><th class="wide">computed again</th></tr></thead><tbody>)"
      "\n";
  LayerUse sum;
  for (const LayerUse& layer : run.layers) {
    sum.kept_bytes += layer.kept_bytes;
    sum.swapped_bytes += layer.swapped_bytes;
    sum.recomputed_bytes += layer.recomputed_bytes;
    std::string bar;
    const std::pair<const char*, std::int64_t> parts[] = {
        {"kept", layer.kept_bytes}, {"swapped", layer.swapped_bytes}, {"recomputed", layer.recomputed_bytes}};
    for (const auto& [css, bytes] : parts) {
      if (bytes > 0) {
        bar += fmt::format(R"(<span class="{}" style="width:{:.2f}%"></span>)", css,
                           100.0 * static_cast<double>(bytes) / static_cast<double>(largest));
      }
    }
    const auto bytes_cell = [](std::int64_t bytes) {
      return fmt::format(R"(<td class="wide">{}</td>)", bytes == 0 ? "" : format_bytes(bytes));
    };
    text +=
        fmt::format(R"(<tr><td>{}</td><td class="bar"><div>{}</div></td><td>{}</td>{}{}{}</tr>)",
                    escape(layer.name), bar, format_bytes(layer.total_bytes()), bytes_cell(layer.kept_bytes),
                    bytes_cell(layer.swapped_bytes), bytes_cell(layer.recomputed_bytes));
    text += "\n";
  }
  text += fmt::format(
      R"(<tr><th>all</th><th></th><th>{}</th><th class="wide">{}</th><th class="wide">{}</th><th class="wide">{}</th></tr>)",
      format_bytes(sum.total_bytes()), format_bytes(sum.kept_bytes), format_bytes(sum.swapped_bytes),
      format_bytes(sum.recomputed_bytes));
  return text + "\n</tbody></table>";
}

std::string difference(double predicted, double measured) {
  return predicted > 0 ? fmt::format("{:+.1f} %", 100 * (measured / predicted - 1)) : "";
}

std::string comparison_table(const RunReport& run) {
  const bool known = run.plan.step.step_seconds > 0;
  const auto batch = static_cast<double>(run.story.batch);
  std::string text =
      "<table><thead><tr><th></th><th>predicted</th><th>measured</th><th>difference</th></tr></"
      "thead><tbody>\n";
  text += row({"time of a step", known ? seconds_text(run.plan.step.step_seconds) : "not known",
               seconds_text(run.story.typical.step_seconds),
               difference(run.plan.step.step_seconds, run.story.typical.step_seconds)});
  text += row({"images/s", known ? rate_text(batch / run.plan.step.step_seconds) : "not known",
               rate_text(run.samples_per_second()),
               known ? difference(batch / run.plan.step.step_seconds, run.samples_per_second()) : ""});
  text += row({"waiting for the tier", known ? seconds_text(run.plan.step.stall_seconds) : "not known",
               seconds_text(run.story.typical.stall_seconds), ""});
  const auto bytes_row = [&](const char* name, std::int64_t planned, std::int64_t measured) {
    text +=
        row({name, format_bytes(planned), format_bytes(measured),
             planned == measured ? "none"
                                 : difference(static_cast<double>(planned), static_cast<double>(measured))});
  };
  bytes_row("peak of the pool", run.plan.pool_bytes, run.pool_peak_bytes);
  bytes_row("written to the tier per step", run.plan.step.swapped_out_bytes,
            run.story.typical.swapped_out_bytes);
  bytes_row("read from the tier per step", run.plan.step.swapped_in_bytes,
            run.story.typical.swapped_in_bytes);
  text += "</tbody></table>\n";
  if (known && !run.profile_measured)
    text +=
        R"(<p class="soft">The prediction is from an estimate of this machine, not from a measured profile.</p>)";
  if (run.plan.bound_seconds > 0) {
    text += fmt::format(
        R"(<p class="soft">No plan for this budget can be faster than {} a step, as far as is proved; the predicted time is {} above that.</p>)",
        seconds_text(run.plan.bound_seconds),
        percent_text(run.plan.step.step_seconds / run.plan.bound_seconds - 1));
  }
  return text;
}

std::int64_t steps_of(const RunReport& run) {
  return run.story.steps > 0 ? run.story.steps : static_cast<std::int64_t>(run.story.loss.size());
}

std::string loss_figure(const RunReport& run) {
  std::vector<Point> points;
  const auto steps_in_all = static_cast<double>(steps_of(run));
  const auto every = static_cast<double>(run.story.kept_every);
  const std::size_t group = (run.story.loss.size() + kCurvePoints - 1) / kCurvePoints;
  for (std::size_t i = 0; i < run.story.loss.size(); i += group) {
    const std::size_t end = std::min(run.story.loss.size(), i + group);
    double sum = 0;
    for (std::size_t k = i; k < end; ++k) sum += run.story.loss[k];
    const double first = std::min(steps_in_all, static_cast<double>(i) * every + 1);
    const double last = std::min(steps_in_all, static_cast<double>(end - 1) * every + 1);
    points.push_back({(first + last) / 2, sum / static_cast<double>(end - i)});
  }
  double low = points.front().y, high = points.front().y;
  for (const Point& point : points) {
    low = std::min(low, point.y);
    high = std::max(high, point.y);
  }
  const double margin = std::max((high - low) * 0.08, 1e-3);
  const auto step_text = [](double value) {
    return value == static_cast<double>(static_cast<long>(value)) ? fmt::format("{:g}", value)
                                                                  : std::string();
  };
  const Axis steps = plain_axis(run.story.loss.size() > 1 ? 1 : 0, std::max(steps_in_all, 2.0), 8, step_text);
  Plot plot(steps,
            plain_axis(std::max(0.0, low - margin), high + margin, 5,
                       [](double v) { return fmt::format("{:g}", v); }),
            180);
  plot.line(points, "forward");
  if (points.size() <= 40) plot.dots(points, "forward");
  std::string text = plot.html(
      "loss over the steps", group > 1 ? fmt::format("step (loss, mean of {} steps)", group) : "step (loss)");
  text += fmt::format("<p>Loss {:.4f} at the first step, {:.4f} at the last.</p>", run.story.loss.front(),
                      run.story.loss.back());
  return text;
}

std::string accuracy_figure(const RunReport& run) {
  std::string text;
  if (run.story.accuracy_by_step.size() > 1) {
    std::vector<Point> points;
    for (const auto& [step, accuracy] : run.story.accuracy_by_step)
      points.push_back({static_cast<double>(step), accuracy * 100});
    const auto percent = [](double value) { return fmt::format("{:g} %", value); };
    Plot plot(plain_axis(0, points.back().x, 8, [](double v) { return fmt::format("{:g}", v); }),
              plain_axis(0, 100, 5, percent), 180);
    plot.line(points, "reads");
    plot.dots(points, "reads");
    text = plot.html("accuracy over the steps", "step (accuracy)");
  }
  return text + fmt::format("<p>Accuracy {:.2f} % on {} test images.</p>", run.story.accuracy * 100,
                            run.story.test_samples);
}

std::string process_bar(const RunReport& run) {
  std::int64_t sum = 0;
  for (const auto& [tag, bytes] : run.peak_by_tag) sum += bytes;
  const std::int64_t whole = std::max(sum, run.plan.budget_bytes < 3 * sum ? run.plan.budget_bytes : sum);
  if (whole <= 0) return "";
  std::string bar, legend;
  const char* kColours[] = {"c5", "c6", "c3", "c2", "c1", "c4"};
  std::size_t colour = 0;
  for (const auto& [tag, bytes] : run.peak_by_tag) {
    if (bytes == 0) continue;
    const char* css = tag == "pool" ? "memory" : kColours[colour++ % std::size(kColours)];
    bar += fmt::format(R"(<span class="{}" style="width:{:.2f}%"></span>)", css,
                       100.0 * static_cast<double>(bytes) / static_cast<double>(whole));
    legend += legend_entry(css, fmt::format("{} {}", tag, format_bytes(bytes)));
  }
  return fmt::format(R"(<div class="stack">{}</div><div class="legend" style="margin-left:0">{}</div>)", bar,
                     legend) +
         fmt::format(R"(<p class="soft">The process took {} at its highest, of a budget of {}.</p>)",
                     format_bytes(run.peak_rss_bytes), format_bytes(run.plan.budget_bytes));
}

std::string figures_table(const RunReport& run) {
  std::string text =
      "<table class=\"figures\"><caption>Names as in the output of "
      "its result file.</caption><thead><tr><th>figure</th><th>value</th></tr></thead><tbody>\n";
  const auto add = [&](const char* key, const std::string& value) {
    text += fmt::format(R"(<tr><td><code>{}</code></td><td>{}</td></tr>)", key, escape(value)) + "\n";
  };
  add("model", run.story.title);
  add("batch", std::to_string(run.story.batch));
  add("steps", std::to_string(steps_of(run)));
  add("threads", std::to_string(run.threads));
  add("policy", run.plan.policy);
  add("tier", run.tier);
  add("pool", run.plan.pool);
  add("images_per_second", rate_text(run.samples_per_second()));
  add("stall_seconds", seconds_text(run.story.typical.stall_seconds));
  add("startup_seconds", seconds_text(run.story.startup_seconds));
  add("plan_seconds", seconds_text(run.plan_seconds));
  if (run.plan.step.step_seconds > 0) add("predicted_step_seconds", seconds_text(run.plan.step.step_seconds));
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"budget_bytes", run.plan.budget_bytes},
      {"in_memory_bytes", run.plan.in_memory_bytes},
      {"peak_rss_bytes", run.peak_rss_bytes},
      {"overhead_bytes", run.plan.overhead_bytes()},
      {"pool_bytes", run.plan.pool_bytes},
      {"planned_peak_bytes", run.plan.pool_bytes},
      {"pool_peak_bytes", run.pool_peak_bytes},
      {"swapped_out_bytes", run.story.typical.swapped_out_bytes},
      {"swapped_in_bytes", run.story.typical.swapped_in_bytes},
      {"swap_file_bytes", run.plan.swap_file_bytes}};
  for (const auto& [key, bytes] : sizes) add(key, format_bytes(bytes));
  if (run.story.accuracy >= 0) add("accuracy", fmt::format("{:.2f} %", run.story.accuracy * 100));
  add("weights_sha256", run.story.weights_sha256);
  return text + "</tbody></table>";
}

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

}  // namespace

std::string memory_sentence(const RunReport& run) {
  std::string text = fmt::format(
      "The process peaked at {} of a budget of {}: {} of tensors and {} for program, loader and margin.",
      format_bytes(run.peak_rss_bytes), format_bytes(run.plan.budget_bytes),
      format_bytes(run.pool_peak_bytes), format_bytes(run.plan.overhead_bytes()));
  std::int64_t kept = 0, swapped = 0, recomputed = 0;
  for (const LayerUse& layer : run.layers) {
    kept += layer.kept_bytes;
    swapped += layer.swapped_bytes;
    recomputed += layer.recomputed_bytes;
  }
  if (swapped + recomputed > 0) {
    text += fmt::format(" In memory it would take {}; of what must outlive its making, {} is kept",
                        format_bytes(run.plan.in_memory_bytes), format_bytes(kept));
    if (swapped > 0) text += fmt::format(", {} swapped to {}", format_bytes(swapped), run.tier);
    if (recomputed > 0) text += fmt::format(", {} computed again", format_bytes(recomputed));
    text += ".";
  } else {
    text += " Nothing had to be swapped or computed again.";
  }
  return text;
}

std::string speed_sentence(const RunReport& run) {
  std::string text =
      fmt::format("A step took {} ({} images/s): {} of it in kernels",
                  seconds_text(run.story.typical.step_seconds), rate_text(run.samples_per_second()),
                  percent_text(share(run.story.typical.compute_seconds, run.story.typical.step_seconds)));
  if (run.story.typical.recompute_seconds > 0)
    text +=
        fmt::format(" ({} computing again)",
                    percent_text(share(run.story.typical.recompute_seconds, run.story.typical.step_seconds)));
  text += fmt::format(", {} waiting for the tier.",
                      percent_text(share(run.story.typical.stall_seconds, run.story.typical.step_seconds)));
  if (run.story.typical.swapped_out_bytes + run.story.typical.swapped_in_bytes > 0 &&
      run.story.typical.step_seconds > 0) {
    text += fmt::format(" Each step wrote {} and read {}: {} and {} on average.",
                        format_bytes(run.story.typical.swapped_out_bytes),
                        format_bytes(run.story.typical.swapped_in_bytes),
                        bandwidth_text(static_cast<double>(run.story.typical.swapped_out_bytes) /
                                       run.story.typical.step_seconds),
                        bandwidth_text(static_cast<double>(run.story.typical.swapped_in_bytes) /
                                       run.story.typical.step_seconds));
  }
  return text;
}

std::string run_page(const RunReport& run) {
  const std::string title = fmt::format("{}, batch {}, within {}", run.story.title, run.story.batch,
                                        format_bytes(run.plan.budget_bytes));
  std::string body = fmt::format("<h1>{}</h1>\n", escape(title));
  body += fmt::format("<p class=\"answer\"><b>Where did the memory go?</b>{}</p>\n",
                      escape(memory_sentence(run)));
  body += fmt::format("<p class=\"answer\"><b>Why is it this fast?</b>{}</p>\n", escape(speed_sentence(run)));
  for (const std::string& note : run.story.notes)
    body += fmt::format("<p class=\"answer warn\">{}</p>\n", escape(note));
  if (!run.step.events.empty()) body += section("One step: memory and lanes", step_figure(run));
  body += section("Predicted and measured", comparison_table(run));
  if (!run.peak_by_tag.empty()) body += section("What the budget went to", process_bar(run));
  if (!run.layers.empty()) {
    std::string layers =
        section(fmt::format("Kept, swapped, computed again (policy {})", run.plan.policy), layers_table(run));
    body += layers.replace(0, 9, "<section class=\"long\">");
  }
  if (!run.story.loss.empty()) body += section("Loss", loss_figure(run));
  if (run.story.accuracy >= 0) body += section("Accuracy", accuracy_figure(run));
  body += section("Figures", figures_table(run));
  body += section("Machine and command",
                  fmt::format("<p>{}</p><pre>{}</pre>", escape(run.machine), escape(run.story.command)));
  body += fmt::format("<footer>Penstock {}</footer>", escape(run.version));
  return page(title + " - Penstock", body);
}

}  // namespace penstock::report
