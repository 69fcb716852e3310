#include "train/profile_store.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/sha256.h"
#include "base/text_file.h"
#include "run/profiler.h"
#include "tier/swap_dir.h"
#include "train/machine.h"

namespace penstock::training {
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

ProfileStore::ProfileStore(const Program& program, const Options& options, int threads,
                           const TierMaker& tier_maker)
    : program_(program), options_(options), threads_(threads), tier_maker_(tier_maker) {
  const std::string& profile = options.profile;
  if (profile != "cached" && profile != "fresh" && !fs::is_regular_file(profile)) {
    throw UserError(
        fmt::format("--profile '{}': there is no such file; name one, or say cached or fresh", profile));
  }
}

plan::Profile ProfileStore::get(const std::function<void()>& on_measure) {
  plan::Profile profile;
  if (options_.profile != "fresh" && find(profile)) {
    source_ = options_.profile;
    return profile;
  }
  if (on_measure) on_measure();
  profile = measure();
  put(profile);
  source_ = "measured";
  return profile;
}

bool ProfileStore::find(plan::Profile& profile) const {
  const std::size_t ops = program_.training->graph.ops.size();
  const bool named = options_.profile != "cached" && options_.profile != "fresh";
  if (named) {
    profile = plan::profile_from_json(read_file(options_.profile), options_.profile);
    if (!is_of(profile, *program_.training)) {
      throw UserError(
          fmt::format("--profile '{}' is of another step ({} ops, and this one has {}), or of other "
                      "--kernels; say --profile fresh",
                      options_.profile, profile.op_seconds.size(), ops));
    }
    return true;
  }
  const std::string file = cache_file();
  if (file.empty() || !fs::is_regular_file(file)) return false;
  try {
    profile = plan::profile_from_json(read_file(file), file);
  } catch (const UserError&) {
    return false;  // Damaged, or of another version: it is measured anew.
  }
  return is_of(profile, *program_.training);
}

void ProfileStore::put(const plan::Profile& profile) const {
  const std::string file = cache_file();
  if (file.empty()) return;
  std::error_code failed;
  fs::create_directories(fs::path(file).parent_path(), failed);
  if (failed) return;
  try {
    write_file(file, plan::profile_to_json(profile));
  } catch (const RunError&) {
    // A full or read-only home directory is no reason not to train.
  }
}

plan::Profile ProfileStore::measure() const {
  const lower::Executable& step = *program_.training;
  const std::int64_t work_bytes = run::Profiler::work_bytes(step);
  plan::Profile profile;
  profile.measured = true;
  run::Profiler::mapping(work_bytes, profile.host);
  run::Profiler profiler(work_bytes);
  profile.op_seconds = profiler.op_seconds(step);
  const auto make = [&](const std::vector<std::int64_t>& extents) {
    return tier_maker_(tier_options(options_), extents).tier;
  };
  profiler.tier(make, profile);
  // A throttled link books its time when a request is made, so nothing overtakes there.
  profile.tier.serves_waiting_first = options_.tier_bandwidth.empty();
  return profile;
}

std::string ProfileStore::key() const {
  const lower::Executable& step = *program_.training;
  Sha256 hash;
  const auto add = [&hash](const std::string& text) { hash.update(text.data(), text.size() + 1); };
  add(fmt::format("profile 9, penstock {}, {} threads", version(), threads_));
  add(processor_name());
  add(ir::print(step.graph));
  for (const auto& kernel : step.kernels) add(kernel->implementation());
  for (const auto& variants : step.variants) {
    for (const auto& kernel : variants) add(kernel->implementation());
  }
  const TierOptions tier = tier_options(options_);
  add(fmt::format("{} {} {}", options_.tier, options_.tier_bandwidth, options_.verify));
  if (tier.kind != TierKind::ram) {
    add(device_of(options_.swap_dir.empty() ? default_swap_dir() : options_.swap_dir));
  }
  return hash.finish();
}

std::string ProfileStore::cache_file() const {
  const std::string directory = cache_directory();
  return directory.empty() ? ""
                           : (fs::path(directory) / ("profile-" + key().substr(0, 32) + ".json")).string();
}

}  // namespace penstock::training
