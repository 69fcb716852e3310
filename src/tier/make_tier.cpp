#include "tier/make_tier.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "tier/disk_tier.h"
#include "tier/swap_dir.h"
#include "tier/swap_file.h"
#include "tier/thread_tier.h"
#include "tier/throttled_tier.h"

namespace penstock {
namespace {

/// Enough to keep a disk busy both ways; they sleep in the kernel nearly all of the time.
constexpr int kThreads = 8;

MadeTier make_disk_tier(const TierOptions& options, const TierExtents& extents,
                        const std::shared_ptr<FileIo>& io) {
  MadeTier made;
  const std::string directory = options.swap_dir.empty() ? default_swap_dir() : options.swap_dir;
  if (std::string warning = check_swap_dir(directory, extents.total_bytes()); !warning.empty()) {
    made.notes.push_back(std::move(warning));
  }
  SwapFile file = SwapFile::on_disk(directory, extents.total_bytes(), *io);
  if (!file.direct()) {
    made.notes.push_back(
        fmt::format("'{}' does not support direct I/O: swapping goes through the page cache, which takes "
                    "memory for a while",
                    directory));
  }
  if (!file.reserved()) {
    made.notes.push_back(
        fmt::format("'{}' cannot reserve disk space: the disk may become full in mid-run", directory));
  }
  const int refused = options.kind == TierKind::disk ? DiskTier::probe(*io) : 0;
  if (refused != 0) {
    made.notes.push_back(fmt::format("io_uring is not to be had here ({}): swapping with threads instead",
                                     std::strerror(-refused)));
  }
  if (options.kind == TierKind::disk && refused == 0) {
    made.tier = std::make_unique<DiskTier>(extents, std::move(file), io);
    made.description = "disk (io_uring)";
  } else {
    made.tier = std::make_unique<ThreadTier>(extents, std::move(file), io, kThreads);
    made.description = "disk (threads)";
  }
  return made;
}

}  // namespace

MadeTier make_tier(const TierOptions& options, const TierExtents& extents) {
  const std::shared_ptr<FileIo> io = options.file_io ? options.file_io : std::make_shared<FileIo>();
  MadeTier made;
  if (options.kind == TierKind::ram) {
    const std::int64_t needed_bytes = extents.total_bytes();
    if (options.ram_available_bytes > 0 && needed_bytes > options.ram_available_bytes) {
      throw UserError(
          fmt::format("the ram tier needs {} of memory outside the budget, and there is {}; swap to disk",
                      format_bytes(needed_bytes), format_bytes(options.ram_available_bytes)));
    }
    made.tier = make_ram_tier(extents, io);
    made.description = "ram";
  } else {
    made = make_disk_tier(options, extents, io);
  }
  if (options.wrap) made.tier = options.wrap(std::move(made.tier));
  if (options.read_bytes_per_second > 0 || options.write_bytes_per_second > 0) {
    made.tier = std::make_unique<ThrottledTier>(std::move(made.tier), options.read_bytes_per_second,
                                                options.write_bytes_per_second);
  }
  if (options.verify != VerifyMode::off)
    made.tier = std::make_unique<VerifiedTier>(std::move(made.tier), options.verify);
  return made;
}

}  // namespace penstock
