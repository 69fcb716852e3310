/// Time of a training step by kind of op: step_bench MODEL [--batch N] [--size N] [--steps N] [--threads N]
/// [--ops]
#include <fmt/format.h>
#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <string>

#include "autodiff/backward.h"
#include "base/random.h"
#include "kernels/kernel.h"
#include "lower/lower.h"
#include "models/network_graph.h"

namespace {

using namespace penstock;

/// With others on the machine, the processor time of one thread says more than the time that passed.
bool g_processor_time = false;

double op_seconds() {
  timespec time{};
  clock_gettime(g_processor_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Fixed places for storages: state for good, everything else from its first to its last use.
class Places {
 public:
  explicit Places(const lower::Executable& executable) {
    const ir::Graph& graph = executable.graph;
    const auto sizes = ir::storage_sizes(graph);
    const auto count = static_cast<std::size_t>(graph.storages);
    std::vector<int> first(count, -1);
    std::vector<int> last(count, -1);
    const auto touch = [&](ir::TensorId id, int op) {
      const auto s = static_cast<std::size_t>(graph.tensor(id).storage);
      if (first[s] < 0) first[s] = op;
      last[s] = op;
    };
    const int ops = static_cast<int>(graph.ops.size());
    for (const ir::Carried& state : graph.carried) touch(state.begin, 0);
    for (int i = 0; i < ops; ++i) {
      for (const auto id : graph.ops[static_cast<std::size_t>(i)].inputs) touch(id, i);
      for (const auto id : graph.ops[static_cast<std::size_t>(i)].outputs) touch(id, i);
    }
    for (const ir::Carried& state : graph.carried) touch(state.end, ops);
    touch(graph.loss, ops);
    offsets.assign(count, 0);
    std::vector<std::size_t> order(count);
    for (std::size_t s = 0; s < count; ++s) order[s] = s;
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return sizes[a] > sizes[b]; });
    std::vector<std::size_t> placed;
    for (const std::size_t s : order) {
      if (first[s] < 0) continue;
      const std::int64_t need = (sizes[s] + 63) / 64 * 64;
      std::vector<std::pair<std::int64_t, std::int64_t>> busy;
      for (const std::size_t o : placed) {
        if (first[o] <= last[s] && first[s] <= last[o])
          busy.emplace_back(offsets[o], offsets[o] + (sizes[o] + 63) / 64 * 64);
      }
      std::sort(busy.begin(), busy.end());
      std::int64_t at = 0;
      for (const auto& [begin, end] : busy) {
        if (at + need <= begin) break;
        at = std::max(at, end);
      }
      offsets[s] = at;
      bytes = std::max(bytes, at + need);
      placed.push_back(s);
    }
    std::int64_t live = 0;
    for (int i = 0; i < ops; ++i) {
      live = 0;
      for (std::size_t s = 0; s < count; ++s) {
        if (first[s] >= 0 && first[s] <= i && i <= last[s]) live += sizes[s];
      }
      peak = std::max(peak, live + executable.scratch_bytes[static_cast<std::size_t>(i)]);
    }
  }
  std::vector<std::int64_t> offsets;
  std::int64_t bytes = 0;
  std::int64_t peak = 0;
};

char* map_bytes(std::int64_t bytes) {
  void* memory = mmap(nullptr, static_cast<std::size_t>(bytes + 64), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(memory, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
  std::memset(memory, 0, static_cast<std::size_t>(bytes));
  return static_cast<char*>(memory);
}

}  // namespace

int main(int argc, char** argv) {
  std::string model = "resnet50";
  ModelOptions options{16, 0, 224, 0};
  int steps = 5;
  bool each = false;
  bool adam = false;
  omp_set_num_threads(2);
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto value = [&] { return std::stoll(argv[++i]); };
    if (arg == "--batch")
      options.batch = value();
    else if (arg == "--size")
      options.image_size = value();
    else if (arg == "--steps")
      steps = static_cast<int>(value());
    else if (arg == "--threads")
      omp_set_num_threads(static_cast<int>(value()));
    else if (arg == "--ops")
      each = true;
    else if (arg == "--cpu") {
      g_processor_time = true;
      omp_set_num_threads(1);
    } else if (arg == "--adam")
      adam = true;
    else
      model = arg;
  }
  double t = now_seconds();
  ir::Graph graph = lower::fuse(lower::for_training(models::graph_of(Network::model(model, options))));
  autodiff::append_backward(graph, graph.loss, [&](ir::Graph& g, ir::TensorId p, ir::TensorId dp) {
    const std::string name = g.tensor(p).name;
    const ir::Shape shape = g.tensor(p).shape;
    const auto m = g.add_state(name + ".momentum", shape, ir::Role::optimizer_state, {});
    ir::Op op{ir::OpKind::sgd_update,          ir::Phase::update, name + ".update", {p, dp, m}, {},
              ir::SgdAttrs{0.9F, 1e-4F, false}};
    std::vector<ir::TensorId> states{p, m};
    if (adam) {
      states.push_back(g.add_state(name + ".v", shape, ir::Role::optimizer_state, {}));
      op.kind = ir::OpKind::adam_update;
      op.attrs = ir::AdamAttrs{};
      op.inputs.push_back(states.back());
    }
    for (const auto state : states) {
      op.outputs.push_back(g.add_successor(state, g.tensor(state).name + "'"));
      g.replace_carried(state, op.outputs.back());
    }
    g.add_op(op);
  });
  ir::verify(graph);
  fmt::print("graph: {:.3f} s, {} ops\n", now_seconds() - t, graph.ops.size());
  t = now_seconds();
  const auto backend = kernels::make_cpu_backend();
  const lower::Executable step = lower::lower(graph, *backend);
  fmt::print("lower: {:.3f} s, {} ops\n", now_seconds() - t, step.graph.ops.size());
  t = now_seconds();
  const Places places(step);
  std::int64_t scratch_bytes = 0;
  for (const auto bytes : step.scratch_bytes) scratch_bytes = std::max(scratch_bytes, bytes);
  fmt::print("peak {:.1f} MB live, {:.1f} MB placed, scratch {:.1f} MB\n", places.peak / 1e6,
             places.bytes / 1e6, scratch_bytes / 1e6);
  char* memory = map_bytes(places.bytes);
  char* scratch = map_bytes(scratch_bytes);
  const auto address = [&](ir::TensorId id) {
    return memory + places.offsets[static_cast<std::size_t>(step.graph.tensor(id).storage)];
  };
  for (std::size_t i = 0; i < step.graph.carried.size(); ++i) {
    const auto id = step.graph.carried[i].begin;
    const ir::Tensor& tensor = step.graph.tensor(id);
    std::vector<float> plain(static_cast<std::size_t>(tensor.shape.elements()), tensor.init.value);
    if (tensor.init.kind != ir::Init::Kind::constant) {
      const CounterRandom random(1, RandomPurpose::initialise, 0, static_cast<std::uint32_t>(i));
      for (std::size_t k = 0; k < plain.size(); ++k)
        plain[k] = (2 * random.uniform(k) - 1) * tensor.init.value;
    }
    const void* in[] = {plain.data()};
    void* out[] = {address(id)};
    if (tensor.layout.is_plain())
      std::memcpy(out[0], in[0], plain.size() * 4);
    else
      backend->reorder(tensor, {}, tensor.layout)->run({in, out, scratch, nullptr});
  }
  const std::int64_t images = graph.tensor(graph.inputs[0].tensor).shape.elements();
  const std::int64_t labels = graph.tensor(graph.inputs[1].tensor).shape.elements();
  const std::int64_t classes = options.classes > 0 ? options.classes : find_model(model).classes;
  std::vector<float> image_data(static_cast<std::size_t>(images));
  std::vector<std::int32_t> label_data(static_cast<std::size_t>(labels));
  const CounterRandom random(2, RandomPurpose::synthetic, 0, 0);
  for (std::size_t i = 0; i < image_data.size(); ++i) image_data[i] = random.uniform(i) * 2 - 1;
  for (std::size_t i = 0; i < label_data.size(); ++i)
    label_data[i] = static_cast<std::int32_t>(random.bits(i) % classes);
  kernels::StepContext context;
  context.learning_rate = 0.001;
  context.feed = [&](int input, void* to) {
    if (input == 0) std::memcpy(to, image_data.data(), image_data.size() * 4);
    if (input == 1) std::memcpy(to, label_data.data(), label_data.size() * 4);
  };
  float loss = 0;
  context.take = [&](int, const void* from) { std::memcpy(&loss, from, sizeof(loss)); };
  fmt::print("set-up: {:.3f} s\n", now_seconds() - t);
  std::vector<std::vector<double>> times(step.graph.ops.size());
  std::vector<double> totals;
  for (int s = 0; s < steps; ++s) {
    context.step = static_cast<std::uint64_t>(s);
    const double begin = now_seconds();
    for (std::size_t i = 0; i < step.graph.ops.size(); ++i) {
      const ir::Op& op = step.graph.ops[i];
      std::vector<const void*> in;
      std::vector<void*> out;
      for (const auto id : op.inputs) in.push_back(address(id));
      for (const auto id : op.outputs) out.push_back(address(id));
      const double start = op_seconds();
      step.kernels[i]->run({in, out, scratch, &context});
      times[i].push_back(op_seconds() - start);
    }
    totals.push_back(now_seconds() - begin);
    fmt::print("step {}: {:.3f} s, {:.2f} images/s, loss {:.5f}\n", s, totals.back(),
               options.batch / totals.back(), loss);
  }
  // The least of each op's times: what it takes when nobody disturbs it.
  std::map<std::string, std::pair<int, double>> kinds;
  double sum = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const double least = *std::min_element(times[i].begin() + (steps > 1 ? 1 : 0), times[i].end());
    auto& [count, seconds] = kinds[ir::op_name(step.graph.ops[i].kind)];
    ++count;
    seconds += least;
    sum += least;
    if (each) {
      const ir::Op& op = step.graph.ops[i];
      fmt::print("{:8.3f} ms {:24} {:36} {:20}", least * 1e3, ir::op_name(op.kind), op.name,
                 step.kernels[i]->implementation());
      for (const auto id : op.inputs)
        fmt::print(" {}{}", step.graph.tensor(id).shape.to_string(), step.graph.tensor(id).layout.tag());
      fmt::print(" ->");
      for (const auto id : op.outputs)
        fmt::print(" {}{}", step.graph.tensor(id).shape.to_string(), step.graph.tensor(id).layout.tag());
      fmt::print(" {}\n", ir::attrs_text(op.attrs));
    }
  }
  std::vector<std::pair<std::string, std::pair<int, double>>> sorted(kinds.begin(), kinds.end());
  std::sort(sorted.begin(), sorted.end(), [](auto& a, auto& b) { return a.second.second > b.second.second; });
  for (const auto& [kind, entry] : sorted)
    fmt::print("{:28} {:5} {:9.2f} ms {:5.1f} %\n", kind, entry.first, entry.second * 1e3,
               entry.second / sum * 100);
  fmt::print("sum of least times {:.3f} s = {:.2f} images/s; median step {:.3f} s\n", sum,
             options.batch / sum, (std::sort(totals.begin(), totals.end()), totals[totals.size() / 2]));
}
