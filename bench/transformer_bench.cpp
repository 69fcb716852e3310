// What a transformer does beside its products: attention, in GFLOP/s, and GELU, in GB/s, forward and
// backward.
//
//   transformer_bench [rounds] [batch] [tokens] [heads] [head width] [causal]
//
// With ONEDNN_MAX_CPU_ISA=AVX2 in the environment: the kernels of machines without AVX-512.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "ir/functions.h"
#include "kernels/native/program_kernel.h"
#include "kernels/native/simd/text_table.h"

namespace {

namespace ir = penstock::ir;
namespace kernels = penstock::kernels;
using namespace penstock::kernels::native;

double median_seconds(int rounds, const std::function<void()>& work) {
  std::vector<double> seconds;
  work();
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::ranges::nth_element(seconds, seconds.begin() + rounds / 2);
  return seconds[static_cast<std::size_t>(rounds / 2)];
}

/// Floats that begin on a cache line, as tensors do.
class Floats {
 public:
  explicit Floats(std::int64_t count) : all_(static_cast<std::size_t>(count) + 16) {
    while (reinterpret_cast<std::uintptr_t>(&all_[begin_]) % 64 != 0) ++begin_;
  }
  static Floats filled(std::int64_t count) {
    Floats made(count);
    for (std::int64_t i = 0; i < count; ++i)
      made.data()[i] = static_cast<float>(i * 7919 % 1013) / 250.0F - 2.0F;
    return made;
  }
  float* data() { return all_.data() + begin_; }

 private:
  std::vector<float> all_;
  std::size_t begin_ = 0;
};

void run_attention(int rounds, const AttentionShape& shape) {
  const std::int64_t rows = shape.batch * shape.queries;
  const std::int64_t row = shape.heads * shape.width;
  Floats qkv = Floats::filled(rows * 3 * row);
  Floats dy = Floats::filled(rows * row);
  Floats y(rows * row);
  Floats dqkv(rows * 3 * row);
  Floats logsum(rows * shape.heads);
  const TextTable& table = text_simd();
  const std::int64_t floats =
      std::max(table.attention_floats(shape), table.attention_backward_floats(shape)) * omp_get_max_threads();
  Floats scratch(floats);
  AttentionBackward back;
  Attention& at = back.forward;
  at.shape = shape;
  at.threads = omp_get_max_threads();
  at.q = qkv.data(), at.k = at.q + row, at.v = at.k + row;
  at.y = y.data();
  at.logsum = logsum.data();
  at.scratch = scratch.data();
  back.dy = dy.data();
  back.dq = dqkv.data(), back.dk = back.dq + row, back.dv = back.dk + row;
  const double product = 2e-9 * static_cast<double>(rows * shape.keys * row) / (shape.causal ? 2 : 1);
  const double forward = median_seconds(rounds, [&] { table.attention(at); });
  std::printf("attention            %8.2f ms %7.1f GFLOP/s\n", forward * 1e3, 2 * product / forward);
  const double backward = median_seconds(rounds, [&] { table.attention_backward(back); });
  std::printf("attention, backward  %8.2f ms %7.1f GFLOP/s\n", backward * 1e3, 5 * product / backward);
}

void run_gelu(int rounds, std::int64_t count) {
  Floats x = Floats::filled(count);
  Floats dy = Floats::filled(count);
  Floats y(count);
  const ir::Program program = ir::named_function("gelu");
  const auto run = [&](const char* name, const ir::Program& steps, int tensors) {
    const auto kernel = make_program(steps, std::vector<ProgramInput>(static_cast<std::size_t>(steps.inputs)),
                                     {ir::DType::f32}, count);
    kernels::KernelArgs args;
    const std::vector<const void*> in{x.data(), dy.data()};
    const std::vector<void*> out{y.data()};
    args.inputs = in;
    args.outputs = out;
    const double seconds = median_seconds(rounds, [&] { kernel->run(args); });
    std::printf("%s %8.2f ms %7.1f GB/s\n", name, seconds * 1e3,
                4e-9 * tensors * static_cast<double>(count) / seconds);
  };
  run("GELU                ", program, 2);
  run("GELU, backward      ", ir::gradient_of(program, {0}), 3);
}

}  // namespace

int main(int argc, char** argv) {
  const auto word = [&](int i, std::int64_t otherwise) { return argc > i ? std::atoll(argv[i]) : otherwise; };
  AttentionShape shape;
  shape.batch = word(2, 16);
  shape.queries = shape.keys = word(3, 197);
  shape.heads = shape.kv_heads = word(4, 12);
  shape.width = word(5, 64);
  shape.causal = word(6, 0) != 0;
  shape.scale = 0.125F;
  const std::int64_t row = shape.heads * shape.width;
  shape.y = {shape.queries * row, shape.width, row};
  shape.q = shape.k = shape.v = {shape.queries * 3 * row, shape.width, 3 * row};
  const int rounds = static_cast<int>(word(1, 15));
  run_attention(rounds, shape);
  run_gelu(rounds, shape.batch * shape.queries * 4 * row);
}
