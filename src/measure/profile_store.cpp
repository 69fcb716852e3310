#include "measure/profile_store.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/sha256.h"
#include "base/text_file.h"
#include "measure/machine.h"
#include "measure/mapping_meter.h"
#include "measure/profiler.h"
#include "tier/swap_dir.h"

namespace penstock::measure {
namespace {

namespace fs = std::filesystem;

/// Two directories on one device share a disk.
std::string device_of(const std::string& directory) {
  struct stat info {};
  return ::stat(directory.c_str(), &info) == 0 ? std::to_string(info.st_dev) : "none";
}

/// Whether it is of such a step: so many ops, so many variants of each.
bool is_of(const plan::Profile& profile, const lower::Executable& step) {
  if (profile.op_seconds.size() != step.graph.ops.size()) return false;
  for (std::size_t i = 0; i < profile.op_seconds.size(); ++i) {
    if (profile.op_seconds[i].size() != (step.variants.empty() ? 1 : step.variants[i].size())) return false;
  }
  return true;
}

}  // namespace

std::string cache_directory() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != '\0') return (fs::path(cache) / "penstock").string();
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return (fs::path(home) / ".cache" / "penstock").string();
  return "";
}

ProfileStore::ProfileStore(const lower::Executable& step, ProfileRequest request, TierMaker tier_maker)
    : step_(step), request_(std::move(request)), tier_maker_(std::move(tier_maker)) {
  if (request_.source != ProfileSource::file) return;
  std::error_code failed;
  if (!fs::is_regular_file(request_.file, failed))
    throw UserError(fmt::format("profile '{}': there is no such file; name one, or have it cached or fresh",
                                request_.file));
}

plan::Profile ProfileStore::get(const std::function<void()>& on_measure) {
  if (request_.source != ProfileSource::fresh) {
    if (std::optional<plan::Profile> found = find()) {
      source_ = request_.source == ProfileSource::file ? request_.file : "cached";
      return std::move(*found);
    }
  }
  if (on_measure) on_measure();
  plan::Profile profile = measure();
  put(profile);
  source_ = "measured";
  return profile;
}

std::optional<plan::Profile> ProfileStore::find() const {
  if (request_.source == ProfileSource::file) {
    plan::Profile profile = plan::profile_from_json(read_file(request_.file), request_.file);
    if (!is_of(profile, step_)) {
      throw UserError(fmt::format(
          "profile '{}' is of another step ({} ops, and this one has {}), or of other kernels; have it "
          "measured afresh",
          request_.file, profile.op_seconds.size(), step_.graph.ops.size()));
    }
    return profile;
  }
  const std::string file = cache_file();
  std::error_code failed;
  if (file.empty() || !fs::is_regular_file(file, failed)) return std::nullopt;
  try {
    plan::Profile profile = plan::profile_from_json(read_file(file), file);
    if (is_of(profile, step_)) return profile;
  } catch (const std::runtime_error&) {
    // Damaged, not to be read, or of another version: it is measured anew.
  }
  return std::nullopt;
}

void ProfileStore::put(const plan::Profile& profile) const {
  const std::string file = cache_file();
  if (file.empty()) return;
  std::error_code failed;
  fs::create_directories(fs::path(file).parent_path(), failed);
  if (failed) return;
  try {
    write_file(file, plan::profile_to_json(profile));
  } catch (const std::runtime_error&) {
    // A full or read-only home directory is no reason not to train.
  }
}

plan::Profile ProfileStore::measure() const {
  const std::int64_t work_bytes = Profiler::work_bytes(step_);
  plan::Profile profile;
  profile.measured = true;
  measure_mapping(work_bytes, profile.host);
  Profiler profiler(work_bytes);
  profile.op_seconds = profiler.op_seconds(step_);
  const auto make = [&](const LongVector<std::int64_t>& extents) {
    return tier_maker_(request_.tier, extents).tier;
  };
  profiler.tier(make, profile);
  // A throttled link books its time when a request is made, so nothing overtakes there.
  profile.tier.serves_waiting_first = request_.tier.read_bytes_per_second == 0;
  return profile;
}

std::string ProfileStore::key() const {
  Sha256 hash;
  const auto add = [&hash](const std::string& text) { hash.update(text.data(), text.size() + 1); };
  add(fmt::format("profile 11, {} threads", request_.threads));
  add(processor_name());
  ir::print(step_.graph, [&hash](std::string_view piece) { hash.update(piece.data(), piece.size()); });
  hash.update("", 1);
  for (const auto& kernel : step_.kernels) add(kernel->implementation());
  for (const auto& variants : step_.variants) {
    for (const auto& kernel : variants) add(kernel->implementation());
  }
  const TierOptions& tier = request_.tier;
  add(fmt::format("{} {} {}", static_cast<int>(tier.kind), tier.read_bytes_per_second,
                  static_cast<int>(tier.verify)));
  if (tier.kind != TierKind::ram) add(device_of(tier.swap_dir.empty() ? default_swap_dir() : tier.swap_dir));
  return hash.finish();
}

std::string ProfileStore::cache_file() const {
  const std::string directory = cache_directory();
  return directory.empty() ? ""
                           : (fs::path(directory) / ("profile-" + key().substr(0, 32) + ".json")).string();
}

}  // namespace penstock::measure
