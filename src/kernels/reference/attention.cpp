#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "ir/attention_sizes.h"
#include "kernels/reference/families.h"

namespace penstock::kernels::reference {
namespace {

using ir::AttentionLayout;

/// An attention op: which element of which input is what.
class Heads {
 public:
  Heads(const Described& d, std::size_t mask_input)
      : attrs(d.attrs<ir::AttentionAttrs>()),
        sizes(ir::attention_sizes(attrs, d.in)),
        mask_input_(mask_input) {
    if (d.in.size() > mask_input) {
      mask_ = d.in[mask_input];
      kept_ = d.in_types[mask_input] == ir::DType::u8;
    }
  }

  ir::AttentionAttrs attrs;
  ir::AttentionSizes sizes;

  enum class Which : std::uint8_t { q, k, v };
  /// Element (b, h, row, i) of q, k or v: which tensor, and where in it.
  struct Place {
    std::size_t tensor;
    std::int64_t at;
  };
  Place place(Which which, std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t i) const {
    if (attrs.layout != AttentionLayout::packed) {
      const bool is_query = which == Which::q;
      return {static_cast<std::size_t>(which), at(b, h, row, i, is_query ? sizes.heads : sizes.kv_heads,
                                                  is_query ? sizes.queries : sizes.keys)};
    }
    const std::int64_t first = which == Which::q   ? 0
                               : which == Which::k ? sizes.heads
                                                   : sizes.heads + sizes.kv_heads;
    return {0, at(b, first + h, row, i, sizes.heads + 2 * sizes.kv_heads, sizes.queries)};
  }
  std::int64_t y_at(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t i) const {
    return at(b, h, row, i, sizes.heads, sizes.queries);
  }
  std::int64_t kv_head(std::int64_t h) const { return h / (sizes.heads / sizes.kv_heads); }
  double value(const KernelArgs& args, Which which, std::int64_t b, std::int64_t h, std::int64_t row,
               std::int64_t i) const {
    const Place place = this->place(which, b, h, row, i);
    return floats_in(args, place.tensor)[place.at];
  }

  double score(const KernelArgs& args, std::int64_t b, std::int64_t h, std::int64_t query,
               std::int64_t key) const {
    constexpr double kHidden = -std::numeric_limits<double>::infinity();
    if (attrs.causal && key > query) return kHidden;
    double sum = 0;
    for (std::int64_t i = 0; i < sizes.width; ++i)
      sum += value(args, Which::q, b, h, query, i) * value(args, Which::k, b, kv_head(h), key, i);
    sum *= attrs.scale;
    if (mask_.rank() == 0) return sum;
    const auto along = [&](std::size_t axis, std::int64_t index) { return mask_[axis] > 1 ? index : 0; };
    const std::int64_t place =
        ((along(0, b) * mask_[1] + along(1, h)) * mask_[2] + along(2, query)) * mask_[3] + key;
    if (kept_) return static_cast<const std::uint8_t*>(args.inputs[mask_input_])[place] != 0 ? sum : kHidden;
    return sum + floats_in(args, mask_input_)[place];
  }

  /// What dropout multiplies a probability by. A row's elements begin at a multiple of four.
  double factor(const KernelArgs& args, std::int64_t b, std::int64_t h, std::int64_t query,
                std::int64_t key) const {
    if (attrs.dropout == 0) return 1;
    const CounterRandom random(args.step->seed, RandomPurpose::dropout, args.step->step, attrs.key);
    const std::int64_t row =
        ((args.step->first_sample + attrs.first_sample + b) * sizes.heads + h) * sizes.queries + query;
    const std::int64_t element = row * ((sizes.keys + 3) / 4 * 4) + key;
    return random.uniform(static_cast<std::uint64_t>(element)) >= attrs.dropout ? 1 / (1 - attrs.dropout) : 0;
  }

  template <typename Work>
  void for_each_row(const Work& work) const {
    for (std::int64_t b = 0; b < sizes.batch; ++b) {
      for (std::int64_t h = 0; h < sizes.heads; ++h) {
        for (std::int64_t query = 0; query < sizes.queries; ++query)
          work(b, h, query, (b * sizes.heads + h) * sizes.queries + query);
      }
    }
  }

 private:
  std::int64_t at(std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t i, std::int64_t heads,
                  std::int64_t rows) const {
    if (attrs.layout == AttentionLayout::heads) return ((b * heads + h) * rows + row) * sizes.width + i;
    return ((b * rows + row) * heads + h) * sizes.width + i;
  }

  std::size_t mask_input_;
  ir::Shape mask_;  ///< rank 0: none
  bool kept_ = false;
};

using Which = Heads::Which;

}  // namespace

Body attention(const Described& d) {
  const Heads heads(d, ir::attention_operands(d.attrs<ir::AttentionAttrs>()));
  return [=](const KernelArgs& args) {
    const auto& sizes = heads.sizes;
    heads.for_each_row([&](std::int64_t b, std::int64_t h, std::int64_t query, std::int64_t row) {
      std::vector<double> scores;
      for (std::int64_t key = 0; key < sizes.keys; ++key)
        scores.push_back(heads.score(args, b, h, query, key));
      const double largest = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (const double score : scores) sum += largest > -HUGE_VAL ? std::exp(score - largest) : 0;
      const double logsum = sum > 0 ? largest + std::log(sum) : 0;
      floats_out(args, 1)[row] = static_cast<float>(logsum);
      for (std::int64_t i = 0; i < sizes.width; ++i) {
        double y = 0;
        for (std::int64_t key = 0; key < sizes.keys; ++key) {
          const double probability = std::exp(scores[static_cast<std::size_t>(key)] - logsum);
          y += probability * heads.factor(args, b, h, query, key) *
               heads.value(args, Which::v, b, heads.kv_head(h), key, i);
        }
        floats_out(args, 0)[heads.y_at(b, h, query, i)] = static_cast<float>(y);
      }
    });
  };
}

Body attention_backward(const Described& d) {
  const std::size_t operands = ir::attention_operands(d.attrs<ir::AttentionAttrs>());
  const Heads heads(d, operands + 3);
  std::vector<std::int64_t> counts;
  for (const ir::Shape& shape : d.out) counts.push_back(shape.elements());
  return [=](const KernelArgs& args) {
    const auto& sizes = heads.sizes;
    const float* logsum = floats_in(args, operands + 1);
    const float* dy = floats_in(args, operands + 2);
    std::vector<std::vector<double>> sums;
    for (const std::int64_t count : counts) sums.emplace_back(count, 0.0);
    const auto add = [&](Which which, std::int64_t b, std::int64_t h, std::int64_t row, std::int64_t i,
                         double term) {
      const Heads::Place place = heads.place(which, b, h, row, i);
      sums[place.tensor][static_cast<std::size_t>(place.at)] += term;
    };
    heads.for_each_row([&](std::int64_t b, std::int64_t h, std::int64_t query, std::int64_t row) {
      const std::int64_t kv = heads.kv_head(h);
      double projection = 0;
      std::vector<double> probabilities, gradients;
      for (std::int64_t key = 0; key < sizes.keys; ++key) {
        const double probability = std::exp(heads.score(args, b, h, query, key) - logsum[row]);
        const double factor = heads.factor(args, b, h, query, key);
        double gradient = 0;
        for (std::int64_t i = 0; i < sizes.width; ++i) {
          const double given = dy[heads.y_at(b, h, query, i)];
          gradient += given * factor * heads.value(args, Which::v, b, kv, key, i);
          add(Which::v, b, kv, key, i, given * factor * probability);
        }
        projection += gradient * probability;
        probabilities.push_back(probability);
        gradients.push_back(gradient);
      }
      for (std::int64_t key = 0; key < sizes.keys; ++key) {
        const auto at = static_cast<std::size_t>(key);
        const double slope = probabilities[at] * (gradients[at] - projection) * heads.attrs.scale;
        for (std::int64_t i = 0; i < sizes.width; ++i) {
          add(Which::q, b, h, query, i, slope * heads.value(args, Which::k, b, kv, key, i));
          add(Which::k, b, kv, key, i, slope * heads.value(args, Which::q, b, h, query, i));
        }
      }
    });
    for (std::size_t t = 0; t < sums.size(); ++t)
      std::transform(sums[t].begin(), sums[t].end(), floats_out(args, t),
                     [](double v) { return static_cast<float>(v); });
  };
}

}  // namespace penstock::kernels::reference
