#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

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

class NormInHalves : public ::testing::TestWithParam<ChannelView> {};

/// With all of the batch in one slice the two halves do what the whole op does, bit by bit, whether dz lies
/// in the memory of dy or elsewhere. What the ReLU held back is 0 for both, whatever dy has there.
TEST_P(NormInHalves, GiveTheBitsOfTheWhole) {
  const ChannelView& view = GetParam();
  const std::int64_t elements = view.elements(), channels = view.channels;
  const ir::NormAttrs attrs{.epsilon = 1e-5F, .relu = true, .add = true, .mask = true};
  const auto whole = kernels::native::make_norm_backward(view, attrs);
  const auto sums = kernels::native::make_norm_backward_sums(view, attrs);
  const auto data = kernels::native::make_norm_backward_data(
      view, {.epsilon = 1e-5F, .count = view.images * view.positions});
  ASSERT_TRUE(sums->can_overwrite(2, 1));
  const Floats x(elements, 0), dy(elements, 1), gamma(channels, 2), mean(channels, 3), variance(channels, 4);
  for (std::int64_t c = 0; c < channels; ++c) variance.get()[c] = 1 + 0.01F * static_cast<float>(c);
  const Floats scratch(whole->scratch_bytes() / 4);
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(view.mask_bytes()));
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = static_cast<std::uint8_t>(37 * i + i / 7);
  for (std::int64_t row = 0; row < view.rows(); ++row) {
    for (std::int64_t i = 0; i < view.row_elements(); i += 3) {
      const bool kept =
          (mask[static_cast<std::size_t>(row * view.mask_row_bytes() + i / 8)] >> (i % 8) & 1) != 0;
      dy.get()[row * view.row_elements() + i] = kept ? -0.0F : std::nanf("");
    }
  }
  const auto same = [](const Floats& a, const Floats& b, std::int64_t count) {
    return std::memcmp(a.get(), b.get(), static_cast<std::size_t>(count) * 4) == 0;
  };

  const Floats dx(elements), dgamma(channels), dbeta(channels), dz(elements);
  const void* inputs[] = {x.get(), dy.get(), gamma.get(), mean.get(), variance.get(), mask.data()};
  void* outputs[] = {dx.get(), dgamma.get(), dbeta.get(), dz.get()};
  whole->run({.inputs = inputs, .outputs = outputs, .scratch = scratch.get()});
  ASSERT_TRUE(std::all_of(dx.get(), dx.get() + elements, [](float v) { return std::isfinite(v); }));

  const Floats apart(elements);
  for (const Floats* to : {&apart, &dy}) {
    const Floats sum_gamma(channels), sum_beta(channels), made(elements);
    const void* to_sum[] = {x.get(), dy.get(), mean.get(), variance.get(), mask.data()};
    void* summed[] = {sum_gamma.get(), sum_beta.get(), to->get()};
    sums->run({.inputs = to_sum, .outputs = summed, .scratch = scratch.get()});
    const void* rest[] = {x.get(),        to->get(),       gamma.get(),   mean.get(),
                          variance.get(), sum_gamma.get(), sum_beta.get()};
    void* last[] = {made.get()};
    data->run({.inputs = rest, .outputs = last});
    EXPECT_TRUE(same(sum_gamma, dgamma, channels));
    EXPECT_TRUE(same(sum_beta, dbeta, channels));
    EXPECT_TRUE(same(*to, dz, elements));
    EXPECT_TRUE(same(made, dx, elements));
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, NormInHalves,
                         ::testing::Values(ChannelView{3, 24, 35, 1, 24}, ChannelView{3, 24, 1200, 1, 24},
                                           ChannelView{3, 3, 35, 8, 24}, ChannelView{3, 2, 1025, 16, 32},
                                           ChannelView{3, 1, 50, 96, 96}, ChannelView{2, 1, 300, 24, 24}));

}  // namespace
}  // namespace penstock::testing
