#include "base/bytes.h"
#include "data/images.h"
#include "fuzz/memory_folder.h"
#include "fuzz/targets.h"

namespace penstock::fuzz {

void read_image(const std::string& input) {
  constexpr std::int64_t kMostPixels = 1 << 24;
  MemoryFolder folder;
  folder.put("a", input);
  for (const std::int64_t side : {0, 16}) {
    read_all(folder, [&] {
      const auto rows = open_image("a", {4 * kMiB, side});
      if (rows->width() * rows->height() > kMostPixels) return;
      std::vector<std::uint8_t> row(static_cast<std::size_t>(rows->width() * rows->channels()));
      for (std::int64_t y = 0; y < rows->height(); ++y) rows->read_row(row.data());
    });
  }
}

}  // namespace penstock::fuzz
