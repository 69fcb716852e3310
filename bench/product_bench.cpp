// Matrix products of transformers, shape by shape: Penstock's own kernel and oneDNN's, taking turns, in
// GFLOP/s and as a share of what a loop of fused multiply-adds reaches on the same threads.
//
//   product_bench [rounds] [tokens...]
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/native/simd/text_table.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace {

using penstock::kernels::native::MatrixView;
using penstock::kernels::native::Product;
using penstock::kernels::native::text_simd;

/// With one thread its own time, so that what else the machine does is not counted.
double now_seconds() {
  timespec now{};
  clock_gettime(omp_get_max_threads() > 1 ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_of(const std::function<void()>& work) {
  const double begin = now_seconds();
  work();
  return now_seconds() - begin;
}

/// Twelve chains of fused multiply-adds on registers.
#if defined(__x86_64__)
__attribute__((target("avx2,fma"), noinline)) void multiply_add(long turns) {
  using F8 = float __attribute__((vector_size(32)));
  F8 sums[12] = {};
  F8 a = F8{} + 1.0F;
  F8 b = F8{} + 1e-9F;
  for (long i = 0; i < turns; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) asm volatile("vfmadd231ps %1, %2, %0" : "+x"(sum) : "x"(a), "x"(b));
  }
}
#else
void multiply_add(long /*turns*/) {}
#endif

/// What the cores can do at best.
double peak_gflops() {
  constexpr long kTurns = 30'000'000;
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    const double seconds = seconds_of([] {
#pragma omp parallel
      multiply_add(kTurns);
    });
    best = std::max(best, 12.0 * 16 * kTurns * omp_get_max_threads() / seconds * 1e-9);
  }
  return best;
}

struct Shape {
  std::string name;
  std::int64_t m, n, k;
  bool a_turned, b_turned;
};

class Case {
 public:
  explicit Case(const Shape& shape)
      : shape_(shape),
        a_(values(shape.m * shape.k)),
        b_(values(shape.n * shape.k)),
        c_(values(shape.m * shape.n)),
        d_(values(shape.m * shape.n)),
        scratch_(values(text_simd().product_floats(shape.m, shape.n, shape.k))) {
    using dnnl::memory;
    const auto view = [](std::int64_t rows, std::int64_t columns, bool turned) {
      return memory::desc({rows, columns}, memory::data_type::f32,
                          turned ? memory::dims{1, rows} : memory::dims{columns, 1});
    };
    const auto a = view(shape.m, shape.k, shape.a_turned);
    const auto b = view(shape.k, shape.n, shape.b_turned);
    const auto c = view(shape.m, shape.n, false);
    const dnnl::matmul::primitive_desc desc(engine_, a, b, c);
    implementation_ = desc.impl_info_str();
    primitive_ = dnnl::matmul(desc);
    arguments_ = {{DNNL_ARG_SRC, memory(a, engine_, a_.get())},
                  {DNNL_ARG_WEIGHTS, memory(b, engine_, b_.get())},
                  {DNNL_ARG_DST, memory(c, engine_, d_.get())}};
  }

  void own() {
    Product product;
    product.m = shape_.m;
    product.n = shape_.n;
    product.k = shape_.k;
    product.a = shape_.a_turned ? MatrixView{a_.get(), 1, shape_.m} : MatrixView{a_.get(), shape_.k, 1};
    product.b = shape_.b_turned ? MatrixView{b_.get(), 1, shape_.k} : MatrixView{b_.get(), shape_.n, 1};
    product.c = c_.get();
    product.c_row = shape_.n;
    product.scratch = scratch_.get();
    text_simd().product(product);
  }
  void onednn() {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }
  const std::string& implementation() const { return implementation_; }

 private:
  static std::unique_ptr<float, decltype(&std::free)> values(std::int64_t count) {
    const auto bytes = static_cast<std::size_t>(count * 4 + 63) / 64 * 64;
    std::unique_ptr<float, decltype(&std::free)> memory(static_cast<float*>(std::aligned_alloc(64, bytes)),
                                                        &std::free);
    for (std::int64_t i = 0; i < count; ++i) memory.get()[i] = static_cast<float>(i % 17 - 8) / 16;
    return memory;
  }

  Shape shape_;
  std::unique_ptr<float, decltype(&std::free)> a_, b_, c_, d_, scratch_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::matmul primitive_;
  std::unordered_map<int, dnnl::memory> arguments_;
  std::string implementation_;
};

std::vector<Shape> shapes_of(std::int64_t tokens) {
  std::vector<Shape> shapes;
  const auto layer = [&](const std::string& name, std::int64_t in, std::int64_t out, bool turned) {
    const std::string at =
        name + " " + std::to_string(tokens) + "x" + std::to_string(in) + "x" + std::to_string(out);
    shapes.push_back({at + " forward", tokens, out, in, false, turned});
    shapes.push_back({at + " data", tokens, in, out, false, !turned});
    if (turned) {
      shapes.push_back({at + " weights", out, in, tokens, true, false});
    } else {
      shapes.push_back({at + " weights", in, out, tokens, true, false});
    }
  };
  layer("qkv", 768, 2304, false);
  layer("project", 768, 768, false);
  layer("widen", 768, 3072, false);
  layer("narrow", 3072, 768, false);
  layer("output", 768, 50257, true);
  layer("xl qkv", 1600, 4800, false);
  layer("xl widen", 1600, 6400, false);
  return shapes;
}

}  // namespace

int main(int count, char** words) {
  const int rounds = count > 1 ? std::atoi(words[1]) : 3;
  std::vector<std::int64_t> tokens;
  for (int i = 2; i < count; ++i) tokens.push_back(std::atoll(words[i]));
  if (tokens.empty()) tokens = {512, 2048};
  const double peak = peak_gflops();
  std::printf("peak of %d threads: %.0f GFLOP/s\n", omp_get_max_threads(), peak);
  std::printf("%-36s %18s %18s  %s\n", "product", "own", "oneDNN", "oneDNN's kernel");
  for (const std::int64_t t : tokens) {
    for (const Shape& shape : shapes_of(t)) {
      Case one(shape);
      double own = 1e30;
      double onednn = 1e30;
      for (int round = 0; round < rounds; ++round) {
        own = std::min(own, seconds_of([&] { one.own(); }));
        onednn = std::min(onednn, seconds_of([&] { one.onednn(); }));
      }
      const double work = 2e-9 * static_cast<double>(shape.m * shape.n) * static_cast<double>(shape.k);
      std::printf("%-36s %9.1f (%4.0f %%) %9.1f (%4.0f %%)  %s\n", shape.name.c_str(), work / own,
                  100 * work / own / peak, work / onednn, 100 * work / onednn / peak,
                  one.implementation().c_str());
      std::fflush(stdout);
    }
  }
}
