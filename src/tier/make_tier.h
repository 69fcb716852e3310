#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "penstock/options.h"
#include "tier/extents.h"
#include "tier/file_io.h"
#include "tier/tier.h"
#include "tier/verified_tier.h"

namespace penstock {

struct TierOptions {
  TierKind kind = TierKind::disk;
  /// Empty: default_swap_dir().
  std::string swap_dir;
  /// What the ram tier may take; more is refused instead of being killed for. 0: not known.
  std::int64_t ram_available_bytes = 0;
  /// 0: as fast as it goes.
  std::int64_t read_bytes_per_second = 0;
  std::int64_t write_bytes_per_second = 0;
  VerifyMode verify = VerifyMode::sampled;
  /// Tests put one here that fails on demand; none: the operating system.
  std::shared_ptr<FileIo> file_io;
  /// Tests put a FaultyTier around the store with this, beneath throttling and verification.
  std::function<std::unique_ptr<Tier>(std::unique_ptr<Tier>)> wrap;
};

struct MadeTier {
  std::unique_ptr<Tier> tier;
  /// What the user should be told: a fallback that was taken, a directory that is memory. One line each.
  std::vector<std::string> notes;
  /// "disk (io_uring)", "disk (threads)", "ram".
  std::string description;
};

/// Makes the tier with its wrappers, for these extents (a vector of sizes: each has its own place). All space
/// is allocated here. Throws UserError when the directory or the space will not do.
MadeTier make_tier(const TierOptions& options, const TierExtents& extents);

/// How a tier is got: make_tier(), or what a test puts in its place.
using TierMaker = std::function<MadeTier(const TierOptions& options, const TierExtents& extents)>;

}  // namespace penstock
