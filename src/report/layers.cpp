#include "report/layers.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string_view>

#include "plan/walker.h"

namespace penstock::report {
namespace {

constexpr std::size_t kMaxParts = 3;

bool is_suffix(std::string_view part) {
  static constexpr std::array<std::string_view, 16> kSuffixes{
      "relu",    "mean",          "variance",  "mask",       "weight",       "bias",
      "grad",    "momentum",      "exp_avg",   "exp_avg_sq", "running_mean", "running_var",
      "indices", "probabilities", "workspace", "update"};
  return std::find(kSuffixes.begin(), kSuffixes.end(), part) != kSuffixes.end();
}

/// The first `parts` parts of a dotted name.
std::string prefix(const std::string& name, std::size_t parts) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < parts; ++i) {
    end = name.find('.', i == 0 ? 0 : end + 1);
    if (end == std::string::npos) return name;
  }
  return name.substr(0, end);
}

/// Sees what is swapped or made again.
class FateFinder : public plan::PlanVisitor {
 public:
  FateFinder(const plan::Problem& problem, std::vector<Fate>& fates) : problem_(problem), fates_(fates) {}

  void stands(const plan::Standing& standing) {
    if (!standing.resident || standing.pending != plan::Transfer::none) of(standing.storage) = Fate::swapped;
  }
  void started(ir::StorageId storage, plan::Transfer /*direction*/) { of(storage) = Fate::swapped; }
  void begins(const plan::OpRun& run) {
    if (!run.repeated) return;
    for (const ir::TensorId output : problem_.graph->op(run.op).outputs) {
      Fate& fate = of(problem_.graph->tensor(output).storage);
      if (fate == Fate::kept) fate = Fate::recomputed;
    }
  }

 private:
  Fate& of(ir::StorageId storage) { return fates_[static_cast<std::size_t>(storage)]; }

  const plan::Problem& problem_;
  std::vector<Fate>& fates_;
};

std::vector<LayerUse> group(const plan::Problem& problem, const std::vector<Fate>& fate, std::size_t parts) {
  std::vector<LayerUse> rows;
  std::map<std::string, std::size_t> row_of;
  for (std::size_t s = 0; s < problem.storages.size(); ++s) {
    if (fate[s] == Fate::brief) continue;
    const std::string name = prefix(module_of(problem.storage_name(static_cast<ir::StorageId>(s))), parts);
    const auto [found, added] = row_of.emplace(name, rows.size());
    if (added) rows.push_back({name, 0, 0, 0});
    LayerUse& row = rows[found->second];
    const std::int64_t bytes = problem.storages[s].size_bytes;
    if (fate[s] == Fate::kept) row.kept_bytes += bytes;
    if (fate[s] == Fate::swapped) row.swapped_bytes += bytes;
    if (fate[s] == Fate::recomputed) row.recomputed_bytes += bytes;
  }
  return rows;
}

/// Order of the first use of any of a row's storages.
void sort_by_first_use(const plan::Problem& problem, std::vector<LayerUse>& rows, std::size_t parts) {
  std::map<std::string, ir::OpId> first;
  for (std::size_t s = 0; s < problem.storages.size(); ++s) {
    const auto& accesses = problem.storages[s].accesses;
    if (accesses.empty()) continue;
    const std::string name = prefix(module_of(problem.storage_name(static_cast<ir::StorageId>(s))), parts);
    const auto [found, added] = first.emplace(name, accesses.front().position);
    if (!added) found->second = std::min(found->second, accesses.front().position);
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const LayerUse& a, const LayerUse& b) {
    const auto at = [&](const LayerUse& row) {
      const auto found = first.find(row.name);
      return found == first.end() ? static_cast<ir::OpId>(problem.ops.size()) : found->second;
    };
    return at(a) < at(b);
  });
}

/// Keeps the largest rows and sums the others up in a last one.
void merge_small(std::vector<LayerUse>& rows, std::size_t max_rows) {
  if (rows.size() <= max_rows) return;
  std::vector<std::int64_t> sizes;
  for (const LayerUse& row : rows) sizes.push_back(row.total_bytes());
  std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(max_rows - 1), sizes.end(),
                   std::greater<>());
  const std::int64_t least = sizes[max_rows - 1];
  LayerUse rest;
  std::int64_t merged = 0;
  std::vector<LayerUse> kept;
  for (const LayerUse& row : rows) {
    if (row.total_bytes() >= least && kept.size() + 1 < max_rows) {
      kept.push_back(row);
      continue;
    }
    ++merged;
    rest.kept_bytes += row.kept_bytes;
    rest.swapped_bytes += row.swapped_bytes;
    rest.recomputed_bytes += row.recomputed_bytes;
  }
  rest.name = std::to_string(merged) + " smaller layers";
  kept.push_back(rest);
  rows = std::move(kept);
}

}  // namespace

std::vector<Fate> fates(const plan::Problem& problem, const plan::Plan& plan) {
  std::vector<Fate> result(problem.storages.size(), Fate::brief);
  for (std::size_t s = 0; s < problem.storages.size(); ++s) {
    const plan::StorageInfo& storage = problem.storages[s];
    bool forward = false, backward = false;
    for (const plan::Access& access : storage.accesses) {
      const ir::Phase phase = problem.graph->op(access.position).phase;
      forward |= phase == ir::Phase::forward;
      backward |= phase == ir::Phase::backward;
    }
    if (storage.carried || (forward && backward)) result[s] = Fate::kept;
  }
  FateFinder finder(problem, result);
  plan::Walker walker(problem, plan);
  walker.begin(finder);
  walker.step(finder);
  return result;
}

std::string module_of(const std::string& tensor_name) {
  std::string name = tensor_name.substr(0, tensor_name.find('@'));
  while (!name.empty() && name.back() == '\'') name.pop_back();
  // "x.grad.1" is one of several gradients that are summed up.
  const std::size_t gradient = name.rfind(".grad.");
  if (gradient != std::string::npos) name.resize(gradient);
  for (std::size_t dot = name.rfind('.'); dot != std::string::npos; dot = name.rfind('.')) {
    if (!is_suffix(std::string_view(name).substr(dot + 1))) break;
    name.resize(dot);
  }
  return name;
}

std::vector<LayerUse> layer_uses(const plan::Problem& problem, const plan::Plan& plan, std::size_t max_rows) {
  const std::vector<Fate> fate = fates(problem, plan);
  std::size_t parts = kMaxParts;
  std::vector<LayerUse> rows = group(problem, fate, parts);
  while (rows.size() > max_rows && parts > 1) rows = group(problem, fate, --parts);
  sort_by_first_use(problem, rows, parts);
  merge_small(rows, max_rows);
  return rows;
}

}  // namespace penstock::report
