#pragma once

#include <functional>
#include <string>

#include "penstock/penstock.h"
#include "plan/profile.h"
#include "train/engine.h"
#include "train/program.h"

namespace penstock::training {

/// Where a training step's profile comes from: a file the user names, the user's cache directory, or a
/// measurement. The cache's key is everything the times depend on: the lowered graph, its kernels, threads,
/// processor, tier and where it lies. Nothing is said or thrown where the cache cannot be used: it only saves
/// time. One thread calls it; program and options must outlive it.
class ProfileStore {
 public:
  /// Throws UserError if `--profile` is a file that is not there.
  ProfileStore(const Program& program, const Options& options, int threads,
               const TierMaker& tier_maker = make_tier);

  /// By `--profile`: cached (measured and kept where there is none), fresh (measured and kept), or a file.
  /// `on_measure` is called before measuring, which takes seconds.
  plan::Profile get(const std::function<void()>& on_measure = {});
  /// Only what is there already; false if there is none.
  bool find(plan::Profile& profile) const;
  /// Keeps a better one for the next run.
  void put(const plan::Profile& profile) const;

  /// Where the last one came from: "measured", "cached", or the file's name.
  const std::string& source() const { return source_; }

 private:
  plan::Profile measure() const;
  std::string key() const;
  std::string cache_file() const;

  const Program& program_;
  const Options& options_;
  int threads_;
  TierMaker tier_maker_;
  std::string source_;
};

/// $XDG_CACHE_HOME/penstock, or .cache/penstock in the home directory; empty where there is neither.
std::string cache_directory();

}  // namespace penstock::training
