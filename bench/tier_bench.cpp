// What the pool and the tiers cost: moves of memory, page mappings, bandwidth of each tier, verification.
// Times of what the caller does are core time, so that a busy machine does not blur them; bandwidth is by the
// clock. usage: tier_bench [DIRECTORY [MEBIBYTES]]
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <numeric>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "memory/address_range.h"
#include "memory/virtual_pool.h"
#include "tier/make_tier.h"
#include "tier/swap_dir.h"

namespace penstock {
namespace {

struct Spent {
  double wall_seconds = 0;
  double cpu_seconds = 0;
};

double cpu_now() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

template <typename Work>
Spent measure(Work work) {
  const auto start = std::chrono::steady_clock::now();
  const double cpu = cpu_now();
  work();
  return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), cpu_now() - cpu};
}

/// Sum of the times without the slowest hundredth.
double undisturbed_seconds(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  seconds.resize(seconds.size() - seconds.size() / 100);
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

double gib(std::int64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(kGiB);
}

/// Fills a pool with slots of one size and gives them back, again and again.
void bench_moves(std::int64_t size_bytes, std::int64_t capacity_bytes) {
  const VirtualPoolRule rule(capacity_bytes);
  const auto count = static_cast<int>(capacity_bytes / rule.footprint_bytes(size_bytes));
  // Twice as many slots as fit: half of them are held at any time, in changing company.
  VirtualPool pool(LongVector<std::int64_t>(static_cast<std::size_t>(2 * count), size_bytes), capacity_bytes,
                   false);
  const CounterRandom random(1, RandomPurpose::synthetic, 0, 0);
  for (int slot = 0; slot < count; ++slot) pool.acquire(slot);
  std::vector<int> held;
  std::vector<int> idle;
  for (int slot = 0; slot < count; ++slot) {
    held.push_back(slot);
    idle.push_back(slot + count);
  }
  const int cycles = 2000;
  std::vector<double> seconds;
  const std::int64_t moves_before = pool.moves();
  const Spent spent = measure([&] {
    for (int i = 0; i < cycles; ++i) {
      const auto out = static_cast<std::size_t>(random.bits(2 * static_cast<std::uint64_t>(i))) % held.size();
      const auto in =
          static_cast<std::size_t>(random.bits(2 * static_cast<std::uint64_t>(i) + 1)) % idle.size();
      pool.release(held[out]);
      pool.acquire(idle[in]);
      std::swap(held[out], idle[in]);
    }
  });
  fmt::print(
      "{:>9} slots, pool full: {:6.2f} us per acquire + release, {:7.3f} ms per GiB, {:.2f} moves each\n",
      format_bytes(size_bytes), spent.wall_seconds / cycles * 1e6,
      spent.wall_seconds * 1e3 / gib(cycles * size_bytes),
      static_cast<double>(pool.moves() - moves_before) / cycles);
}

/// The steady state of a training step: tensors of many sizes come and go in a pool that is nearly full.
void bench_mixed(std::int64_t capacity_bytes) {
  const CounterRandom random(2, RandomPurpose::synthetic, 0, 0);
  const VirtualPoolRule rule(capacity_bytes);
  LongVector<std::int64_t> sizes;
  for (std::uint64_t i = 0; i < 1500; ++i) {
    const std::int64_t bound = 98 * kMiB >> (random.bits(2 * i) % 10);
    sizes.push_back(1 + static_cast<std::int64_t>(random.bits(2 * i + 1)) % bound);
  }
  VirtualPool pool(sizes, capacity_bytes, false);
  std::int64_t moved_bytes = 0;
  int acquires = 0;
  std::vector<double> seconds;
  const auto churn = [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t i = first; i < last; ++i) {
      const auto slot = static_cast<int>(random.bits(10000 + i) % sizes.size());
      if (pool.held(slot)) {
        seconds.push_back(measure([&] { pool.release(slot); }).wall_seconds);
      } else if (pool.mapped_bytes() + rule.footprint_bytes(sizes[static_cast<std::size_t>(slot)]) <=
                 capacity_bytes) {
        seconds.push_back(measure([&] { pool.acquire(slot); }).wall_seconds);
        ++acquires;
        moved_bytes += sizes[static_cast<std::size_t>(slot)];
      }
    }
  };
  churn(0, 20000);
  moved_bytes = 0;
  acquires = 0;
  seconds.clear();
  const std::int64_t moves_before = pool.moves();
  churn(20000, 40000);
  const double spent_seconds = undisturbed_seconds(seconds);
  fmt::print(
      "mixed slots, pool {:.0f} % full: {:.2f} us per acquire + release, {:.3f} ms per GiB, {:.2f} moves "
      "each, {} lost "
      "to rounding at most\n",
      100.0 * static_cast<double>(pool.mapped_bytes()) / static_cast<double>(capacity_bytes),
      spent_seconds / acquires * 1e6, spent_seconds * 1e3 / gib(moved_bytes),
      static_cast<double>(pool.moves() - moves_before) / acquires, format_bytes(pool.peak_lost_bytes()));
  const std::int64_t largest = *std::max_element(sizes.begin(), sizes.end());
  const auto biggest = static_cast<int>(std::find(sizes.begin(), sizes.end(), largest) - sizes.begin());
  for (int slot = 0; slot < static_cast<int>(sizes.size()) && !pool.held(biggest); ++slot) {
    if (pool.held(slot) && pool.mapped_bytes() + rule.footprint_bytes(largest) > capacity_bytes)
      pool.release(slot);
    if (pool.mapped_bytes() + rule.footprint_bytes(largest) <= capacity_bytes) pool.acquire(biggest);
  }
  const auto sum = [](const void* data, std::int64_t size_bytes) {
    const auto* words = static_cast<const std::uint64_t*>(data);
    std::uint64_t total = 0;
    for (std::int64_t i = 0; i < size_bytes / 8; ++i) total += words[i];
    return total;
  };
  const auto read_speed = [&](const void* data, std::int64_t size_bytes) {
    double best = 1e9;
    std::uint64_t total = 0;
    for (int i = 0; i < 10; ++i) {
      best = std::min(best, measure([&] { total += sum(data, size_bytes); }).wall_seconds);
    }
    // The sum is used, or the compiler would drop it.
    return static_cast<double>(size_bytes) / best * 1e-9 + (total == 1 ? 1e-9 : 0);
  };
  AddressRange huge(largest, AddressRange::Access::read_write);
  huge.populate();
  AddressRange plain(largest, AddressRange::Access::read_write);
  std::memset(plain.data(), 1, static_cast<std::size_t>(largest));
  fmt::print(
      "reading {}: {:.1f} GB/s from this pool's slot, {:.1f} from fresh huge pages, {:.1f} from 4 KiB "
      "pages\n",
      format_bytes(largest), read_speed(pool.address(biggest), largest), read_speed(huge.data(), largest),
      read_speed(plain.data(), largest));
}

void bench_tier(TierKind kind, const std::string& directory, std::int64_t total_bytes) {
  constexpr std::int64_t kExtent = 32 * kMiB;
  const auto count = static_cast<int>(std::max<std::int64_t>(2, total_bytes / kExtent));
  TierOptions options;
  options.kind = kind;
  options.swap_dir = directory;
  options.verify = VerifyMode::off;
  AddressRange memory(4 * kExtent, AddressRange::Access::read_write);
  memory.populate();
  const MadeTier made =
      make_tier(options, LongVector<std::int64_t>(static_cast<std::size_t>(count), kExtent));
  Tier& tier = *made.tier;
  const auto buffer = [&](int i) { return memory.data() + i % 4 * kExtent; };
  const auto transfer = [&](bool writes, bool reads) {
    std::vector<Ticket> window;
    for (int i = 0; i < count; ++i) {
      if (window.size() >= 4) {
        tier.wait(window.front());
        window.erase(window.begin());
      }
      if (writes && (!reads || i % 2 == 0)) window.push_back(tier.write(i, buffer(i)));
      if (reads && (!writes || i % 2 == 1)) window.push_back(tier.read(i, buffer(i)));
    }
    for (const Ticket ticket : window) tier.wait(ticket);
  };
  const double gigabytes = static_cast<double>(count) * static_cast<double>(kExtent) * 1e-9;
  transfer(true, false);
  const auto report = [&](const char* what, bool writes, bool reads) {
    const Spent spent = measure([&] { transfer(writes, reads); });
    fmt::print("{:16} {:18} {:5.2f} GB/s, {:5.1f} ms of core time per GB\n", made.description, what,
               gigabytes / spent.wall_seconds, spent.cpu_seconds * 1e3 / gigabytes);
  };
  report("write", true, false);
  report("read", false, true);
  report("half and half", true, true);
}

void bench_verify(std::int64_t total_bytes) {
  AddressRange memory(total_bytes, AddressRange::Access::read_write);
  memory.populate();
  for (const auto& [mode, name] : {std::pair{VerifyMode::sampled, "sampled"}, {VerifyMode::full, "full"}}) {
    double best = 1e9;
    std::uint64_t hash = 0;
    for (int i = 0; i < 5; ++i) {
      best = std::min(
          best, measure([&] { hash ^= hash_extent(memory.data(), total_bytes, i, 1, mode); }).wall_seconds);
    }
    fmt::print("verify {:8} {:7.2f} ms per GiB{}\n", name, best * 1e3 / gib(total_bytes),
               hash == 1 ? " " : "");
  }
}

int run(int argc, char** argv) {
  const std::string directory = argc > 1 ? argv[1] : default_swap_dir();
  const std::int64_t total_bytes = (argc > 2 ? std::atoll(argv[2]) : 1024) * kMiB;
  for (const std::int64_t size_bytes : {98 * kMiB, 12 * kMiB + 256 * kKiB, 2304 * kKiB, kMiB, 300 * kKiB}) {
    bench_moves(size_bytes, kGiB);
  }
  bench_mixed(kGiB);
  bench_verify(std::min(total_bytes, kGiB));
  for (const TierKind kind : {TierKind::disk, TierKind::disk_threads, TierKind::ram}) {
    bench_tier(kind, directory, total_bytes);
  }
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  try {
    return penstock::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tier_bench: {}\n", error.what());
    return 1;
  }
}
