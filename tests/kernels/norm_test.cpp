#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/random.h"
#include "kernels/native/norm_kernels.h"

namespace penstock::testing {
namespace {

using kernels::native::ChannelView;

struct Free {
  void operator()(void* p) const { std::free(p); }
};

/// Memory as pools give it.
class Floats {
 public:
  explicit Floats(std::int64_t count)
      : bytes_((static_cast<std::size_t>(count) * 4 + 63) / 64 * 64),
        values_(static_cast<float*>(std::aligned_alloc(64, bytes_))) {
    std::memset(values_.get(), 0xFF, bytes_);
  }
  Floats(std::int64_t count, std::uint32_t stream) : Floats(count) {
    CounterRandom(5, RandomPurpose::synthetic, 0, stream).fill_normal(values_.get(), count, 1);
    for (std::int64_t i = 0; i < count; ++i) values_.get()[i] += 2;
  }
  float* get() const { return values_.get(); }

 private:
  std::size_t bytes_;
  std::unique_ptr<float, Free> values_;
};

class NormOfLayout : public ::testing::TestWithParam<ChannelView> {};

/// What is written over its input is stored, what is large and elsewhere streams past the caches.
TEST_P(NormOfLayout, IsTheSameWhereItStreams) {
  const ChannelView& view = GetParam();
  ASSERT_GE(view.elements() * 4, std::int64_t{24} << 20);
  const auto kernel = kernels::native::make_norm_forward(view, {.epsilon = 1e-5F, .relu = true});
  const Floats x(view.elements(), 0), gamma(view.channels, 1), beta(view.channels, 2), mean(view.channels, 3);
  Floats variance(view.channels, 4), y(view.elements());
  for (std::int64_t c = 0; c < view.channels; ++c) variance.get()[c] = 1 + 0.01F * static_cast<float>(c);
  const void* inputs[] = {x.get(), gamma.get(), beta.get(), mean.get(), variance.get()};
  void* fresh[] = {y.get()};
  kernel->run({.inputs = inputs, .outputs = fresh});
  void* over[] = {x.get()};
  kernel->run({.inputs = inputs, .outputs = over});
  EXPECT_EQ(std::memcmp(x.get(), y.get(), static_cast<std::size_t>(view.elements()) * 4), 0);
}

INSTANTIATE_TEST_SUITE_P(Layouts, NormOfLayout,
                         ::testing::Values(ChannelView{3, 24, 90000, 1, 24}, ChannelView{3, 24, 90002, 1, 24},
                                           ChannelView{3, 3, 90001, 8, 21}, ChannelView{3, 2, 90001, 16, 28},
                                           ChannelView{3, 1, 30001, 96, 96},
                                           ChannelView{3, 1, 90001, 24, 24}));

}  // namespace
}  // namespace penstock::testing
