#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace penstock {

/// What a random stream is for; part of its key, so that two purposes never share numbers.
enum class RandomPurpose : std::uint32_t {
  initialise = 1,
  dropout = 2,
  shuffle = 3,
  synthetic = 4,
  augment = 5,
  draw = 6,
  round = 7
};

/// A counter-based generator (Philox 4x32, 10 rounds): each number is a pure function of
/// (seed, purpose, step, op, element), so any element can be drawn again, in any order, by any thread.
class CounterRandom {
 public:
  CounterRandom(std::uint64_t seed, RandomPurpose purpose, std::uint64_t step, std::uint32_t op)
      : key_{static_cast<std::uint32_t>(seed),
             static_cast<std::uint32_t>(seed >> 32) ^ (static_cast<std::uint32_t>(purpose) * 0x9E3779B9U)},
        step_(static_cast<std::uint32_t>(step)),
        op_(op ^ static_cast<std::uint32_t>(step >> 32) * 0x85EBCA6BU) {}

  /// Four independent 32-bit words of block `block`; elements 4*block .. 4*block+3 take one each.
  std::array<std::uint32_t, 4> block(std::uint64_t block) const {
    std::array<std::uint32_t, 4> counter{static_cast<std::uint32_t>(block),
                                         static_cast<std::uint32_t>(block >> 32), step_, op_};
    std::array<std::uint32_t, 2> key = key_;
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t product0 = std::uint64_t{0xD2511F53U} * counter[0];
      const std::uint64_t product1 = std::uint64_t{0xCD9E8D57U} * counter[2];
      counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
                 static_cast<std::uint32_t>(product1),
                 static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
                 static_cast<std::uint32_t>(product0)};
      key[0] += 0x9E3779B9U;
      key[1] += 0xBB67AE85U;
    }
    return counter;
  }

  /// The key's two words, step and op as they enter a block, for loops that draw blocks themselves.
  std::array<std::uint32_t, 4> key() const { return {key_[0], key_[1], step_, op_}; }

  std::uint32_t bits(std::uint64_t element) const { return block(element / 4)[element % 4]; }

  /// Uniform in [0, 1), 24 bits.
  float uniform(std::uint64_t element) const { return to_unit(bits(element)); }

  /// Standard normal: a block gives two Box-Muller pairs, so four elements.
  float normal(std::uint64_t element) const { return normals(element / 4)[element % 4]; }
  std::array<float, 4> normals(std::uint64_t block) const;

  /// Elements [0, count) of the stream, scaled: uniform in [-scale, scale), or normal of deviation `scale`.
  /// Parallel.
  void fill_uniform(float* values, std::int64_t count, float scale) const;
  void fill_normal(float* values, std::int64_t count, float scale) const;

  static float to_unit(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24F; }

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint32_t step_;
  std::uint32_t op_;
};

/// A stream of its own for each name (FNV-1a).
std::uint32_t name_key(std::string_view name);

}  // namespace penstock
