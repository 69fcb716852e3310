#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lower/lower.h"
#include "penstock/options.h"
#include "plan/profile.h"
#include "tier/make_tier.h"

namespace penstock::measure {

/// What a profile is of, and where it is to come from.
struct ProfileRequest {
  ProfileSource source = ProfileSource::cached;
  std::string file;  ///< of ProfileSource::file
  TierOptions tier;
  int threads = 1;
};

/// Where a training step's profile comes from: a file the user names, the user's cache folder, or a
/// measurement. The cache's key is everything the times depend on: the lowered graph, its kernels, threads,
/// processor, tier and where it lies. Nothing is said or thrown where the cache cannot be used: it only saves
/// time. One thread calls it; the step must outlive it.
class ProfileStore {
 public:
  /// Throws UserError if the file that is named is not there.
  ProfileStore(const lower::Executable& step, ProfileRequest request, TierMaker tier_maker = make_tier);

  /// As the request says: cached (measured and kept where there is none), fresh (measured and kept), or a
  /// file. `on_measure` is called before measuring, which takes seconds.
  plan::Profile get(const std::function<void()>& on_measure = {});
  /// Only what is there already.
  std::optional<plan::Profile> find() const;
  /// Keeps a better one for the next run.
  void put(const plan::Profile& profile) const;

  /// Where the last one came from: "measured", "cached", or the file's name.
  const std::string& source() const { return source_; }

 private:
  plan::Profile measure() const;
  std::string key() const;
  std::string cache_file() const;

  const lower::Executable& step_;
  ProfileRequest request_;
  TierMaker tier_maker_;
  std::string source_;
};

/// $XDG_CACHE_HOME/penstock, or .cache/penstock in the home directory; empty where there is neither.
std::string cache_directory();

}  // namespace penstock::measure
