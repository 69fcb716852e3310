#include "train/state_io.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/bytes.h"
#include "base/error.h"
#include "base/random.h"
#include "base/sha256.h"

namespace penstock::training {
namespace {

constexpr std::size_t kAlignment = 64;

void* allocate(std::int64_t size_bytes) {
  void* memory = std::aligned_alloc(kAlignment, static_cast<std::size_t>(round_up(size_bytes, kAlignment)));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

/// A stream of its own for each name (FNV-1a).
std::uint32_t name_key(const std::string& name) {
  std::uint32_t hash = 2166136261U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

void fill_initial(const ir::Tensor& tensor, std::uint64_t seed, float* values) {
  const std::int64_t count = tensor.shape.elements();
  const CounterRandom random(seed, RandomPurpose::initialise, 0, name_key(tensor.name));
  switch (tensor.init.kind) {
    case ir::Init::Kind::constant:
      std::fill_n(values, count, tensor.init.value);
      break;
    case ir::Init::Kind::uniform:
      random.fill_uniform(values, count, tensor.init.value);
      break;
    case ir::Init::Kind::normal:
      random.fill_normal(values, count, tensor.init.value);
      break;
  }
}

ir::Layout plain_layout(const ir::Tensor& tensor) {
  ir::Layout layout;
  layout.size_bytes = tensor.shape.elements() * ir::dtype_bytes(tensor.dtype);
  return layout;
}

}  // namespace

std::vector<StateEntry> StateIo::list(const ir::Graph& graph) {
  std::vector<StateEntry> entries;
  entries.reserve(graph.carried.size());
  for (const ir::Carried& carried : graph.carried) {
    const ir::Tensor& tensor = graph.tensor(carried.begin);
    entries.push_back({tensor.name, tensor.shape, tensor.role, carried.begin});
  }
  std::sort(entries.begin(), entries.end(),
            [](const StateEntry& a, const StateEntry& b) { return a.name < b.name; });
  return entries;
}

std::int64_t StateIo::conversion_bytes(const ir::Graph& graph) {
  std::int64_t bytes = 0;
  for (const ir::Carried& carried : graph.carried) {
    const ir::Tensor& tensor = graph.tensor(carried.begin);
    if (!tensor.layout.is_plain()) bytes = std::max(bytes, plain_layout(tensor).size_bytes);
  }
  return bytes;
}

StateIo::StateIo(const Program& program, run::Executor& executor)
    : program_(program),
      executor_(executor),
      entries_(list(program.state_graph())),
      buffer_(nullptr, std::free),
      scratch_(nullptr, std::free) {}

float* StateIo::conversion() {
  if (!buffer_) buffer_.reset(allocate(std::max<std::int64_t>(1, conversion_bytes(program_.state_graph()))));
  return static_cast<float*>(buffer_.get());
}

void StateIo::read(const StateEntry& entry, const std::function<void(const float*)>& use) {
  const ir::Tensor& tensor = program_.state_graph().tensor(entry.tensor);
  executor_.read_state(tensor.storage, [&](const void* memory) {
    if (tensor.layout.is_plain()) return use(static_cast<const float*>(memory));
    const auto kernel = program_.backend->reorder(tensor, tensor.layout, plain_layout(tensor));
    scratch_.reset(kernel->scratch_bytes() > 0 ? allocate(kernel->scratch_bytes()) : nullptr);
    const std::array<const void*, 1> inputs{memory};
    const std::array<void*, 1> outputs{conversion()};
    kernel->run({inputs, outputs, scratch_.get(), nullptr});
    use(conversion());
  });
}

void StateIo::write(const StateEntry& entry, const std::function<void(float*)>& fill) {
  const ir::Tensor& tensor = program_.state_graph().tensor(entry.tensor);
  executor_.write_state(tensor.storage, [&](void* memory) {
    if (tensor.layout.is_plain()) return fill(static_cast<float*>(memory));
    fill(conversion());
    const auto kernel = program_.backend->reorder(tensor, plain_layout(tensor), tensor.layout);
    scratch_.reset(kernel->scratch_bytes() > 0 ? allocate(kernel->scratch_bytes()) : nullptr);
    const std::array<const void*, 1> inputs{conversion()};
    const std::array<void*, 1> outputs{memory};
    kernel->run({inputs, outputs, scratch_.get(), nullptr});
  });
}

void StateIo::initialise(std::uint64_t seed) {
  for (const StateEntry& entry : entries_) {
    const ir::Tensor& tensor = program_.state_graph().tensor(entry.tensor);
    write(entry, [&](float* values) { fill_initial(tensor, seed, values); });
  }
}

std::string StateIo::sha256() {
  Sha256 sha;
  for (const StateEntry& entry : entries_) {
    read(entry,
         [&](const float* values) { sha.update(values, static_cast<std::size_t>(entry.size_bytes())); });
  }
  return sha.finish();
}

}  // namespace penstock::training
