#include "base/short_slices.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace penstock {
namespace {

/// Far below the kernel's usual 3 ms, and much longer than a thread takes to come and go.
constexpr std::uint64_t kShortNanoseconds = 300'000;

/// What sched_setattr(2) and sched_getattr(2) take, which the C library does not declare.
struct Attributes {
  std::uint32_t size = sizeof(Attributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0;
  std::uint64_t deadline = 0;
  std::uint64_t period = 0;
};

/// Whether the calling thread shares cores fairly with others, which is when it has slices, and how.
bool read(Attributes& attributes) {
  return ::syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0U) == 0 &&
         attributes.policy == SCHED_OTHER && attributes.runtime > 0;
}

bool set_slice(std::uint64_t nanoseconds) {
  Attributes attributes;
  if (!read(attributes)) return false;
  attributes.runtime = nanoseconds;
  return ::syscall(SYS_sched_setattr, 0, &attributes, 0U) == 0;
}

}  // namespace

ShortSlices::ShortSlices() {
  const std::uint64_t before = slice_nanoseconds();
  if (before > kShortNanoseconds && set_slice(kShortNanoseconds)) before_nanoseconds_ = before;
}

ShortSlices::~ShortSlices() {
  if (before_nanoseconds_ > 0) set_slice(before_nanoseconds_);
}

std::uint64_t slice_nanoseconds() {
  Attributes attributes;
  return read(attributes) ? attributes.runtime : 0;
}

}  // namespace penstock
