#include <gtest/gtest.h>

#include "base/bytes.h"
#include "measure/mapping_meter.h"

namespace penstock::measure {
namespace {

TEST(Profiler, MappingCostsSomething) {
  for (const std::int64_t bytes : {std::int64_t{0}, 3 * kMiB, 64 * kMiB}) {
    plan::HostProfile host;
    measure_mapping(bytes, host);
    EXPECT_GT(host.mapping_seconds + host.mapping_seconds_per_byte, 0);
    EXPECT_GE(host.mapping_seconds, 0);
    EXPECT_GE(host.mapping_seconds_per_byte, 0);
  }
}

}  // namespace
}  // namespace penstock::measure
