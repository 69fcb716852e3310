#include "session/state_io.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>

#include "base/bytes.h"
#include "base/error.h"
#include "base/random.h"
#include "base/sha256.h"

namespace penstock::session {
namespace {

constexpr std::size_t kAlignment = 64;

void* allocate(std::int64_t size_bytes) {
  void* memory = std::aligned_alloc(kAlignment, static_cast<std::size_t>(round_up(size_bytes, kAlignment)));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void fill_initial(const ir::Tensor& tensor, std::uint64_t seed, float* values) {
  const std::int64_t count = tensor.shape.elements();
  const CounterRandom random(seed, RandomPurpose::initialise, 0, name_key(tensor.name.text()));
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
  return {"", tensor.shape.elements() * ir::dtype_bytes(tensor.dtype)};
}

/// Sharded state as it would be without shards.
ir::Tensor whole_tensor(const lower::ShardedState& shard) {
  ir::Tensor tensor;
  tensor.name = shard.name;
  tensor.shape = shard.shape;
  tensor.layout = shard.layout;
  return tensor;
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
    if (tensor.layout.is_plain()) continue;
    const std::int64_t plain = plain_layout(tensor).size_bytes();
    // What is kept in less than float32 is widened first, then brought into order.
    bytes = std::max(bytes, tensor.layout.size_bytes() < plain ? 2 * plain : plain);
  }
  return bytes;
}

std::int64_t StateIo::shard_bytes(const Program& program) {
  std::int64_t floats = 0;
  if (!program.training) return floats;
  for (const lower::ShardedState& shard : program.training->sharded) {
    for (std::size_t i = 1; i < shard.bounds.size(); ++i) {
      floats = std::max(floats, shard.bounds[i] - shard.bounds[i - 1]);
    }
  }
  return floats * 4;
}

StateIo::StateIo(const Program& program, run::Executor& executor, dist::Communicator* communicator)
    : program_(program),
      executor_(executor),
      communicator_(communicator),
      entries_(list(program.state_graph())),
      buffer_(nullptr, std::free),
      scratch_(nullptr, std::free) {
  list_shards();
}

void StateIo::list_shards() {
  if (!program_.training || program_.training->sharded.empty()) return;
  require(communicator_ != nullptr, "sharded state needs a communicator");
  std::map<std::string, StateEntry> entries;
  for (StateEntry& entry : entries_) entries.emplace(entry.name, entry);
  for (const lower::ShardedState& shard : program_.training->sharded) {
    StateEntry& entry = entries[shard.name];
    entry.name = shard.name;
    entry.role = ir::Role::optimizer_state;
    entry.shape = shard.shape;
    entry.shard = &shard;
  }
  entries_.clear();
  for (auto& [name, entry] : entries) entries_.push_back(std::move(entry));
  const ir::Graph& graph = program_.training->graph;
  for (const ir::Op& op : graph.ops) {
    if (op.kind != ir::OpKind::gather_start) continue;
    const ir::Tensor& bucket = graph.tensor(op.outputs[0]);
    gathered_in_.emplace(bucket.name, bucket.storage);
  }
}

void StateIo::convert(const ir::Tensor& tensor, const ir::Layout& from_layout, const ir::Layout& to_layout,
                      const void* from, void* to) {
  const auto kernel = program_.backend->reorder(tensor, from_layout, to_layout);
  scratch_.reset(kernel->scratch_bytes() > 0 ? allocate(kernel->scratch_bytes()) : nullptr);
  const std::array<const void*, 1> inputs{from};
  const std::array<void*, 1> outputs{to};
  kernel->run({inputs, outputs, scratch_.get(), nullptr});
}

void StateIo::read_sharded(const StateEntry& entry, const std::function<void(const float*)>& use) {
  own_.clear();
  if (entry.tensor != ir::kNone) {
    const ir::Tensor& part = program_.state_graph().tensor(entry.tensor);
    executor_.read_state(part.storage, [&](const void* memory) {
      const auto* values = static_cast<const float*>(memory);
      own_.assign(values, values + part.shape.elements());
    });
  }
  if (communicator_->rank() != 0) return communicator_->gather(own_.data(), entry.shard->bounds, nullptr);
  executor_.borrow(gathered_in_.at(entry.shard->gathered_in), [&](void* memory) {
    auto* whole = static_cast<float*>(memory);
    communicator_->gather(own_.data(), entry.shard->bounds, whole);
    const ir::Tensor state = whole_tensor(*entry.shard);
    if (state.layout.is_plain()) return use(whole);
    convert(state, state.layout, plain_layout(state), whole, conversion());
    use(conversion());
  });
}

void StateIo::write_sharded(const StateEntry& entry, const std::function<void(float*)>& fill) {
  const auto rank = static_cast<std::size_t>(communicator_->rank());
  const std::int64_t begin = entry.shard->bounds[rank];
  const std::int64_t end = entry.shard->bounds[rank + 1];
  executor_.borrow(gathered_in_.at(entry.shard->gathered_in), [&](void* memory) {
    auto* whole = static_cast<float*>(memory);
    const ir::Tensor state = whole_tensor(*entry.shard);
    if (state.layout.is_plain()) {
      fill(whole);
    } else {
      fill(conversion());
      convert(state, plain_layout(state), state.layout, conversion(), whole);
    }
    own_.assign(whole + begin, whole + end);
  });
  if (entry.tensor == ir::kNone) return;
  executor_.write_state(program_.state_graph().tensor(entry.tensor).storage, [&](void* memory) {
    std::copy(own_.begin(), own_.end(), static_cast<float*>(memory));
  });
}

void StateIo::lend_shards() {
  for (const StateEntry& entry : entries_) {
    if (entry.shard != nullptr) read(entry, [](const float*) {});
  }
}

float* StateIo::conversion() {
  if (!buffer_) buffer_.reset(allocate(std::max<std::int64_t>(1, conversion_bytes(program_.state_graph()))));
  return static_cast<float*>(buffer_.get());
}

void StateIo::read(const StateEntry& entry, const std::function<void(const float*)>& use) {
  if (entry.shard != nullptr) return read_sharded(entry, use);
  const ir::Tensor& tensor = program_.state_graph().tensor(entry.tensor);
  executor_.read_state(tensor.storage, [&](const void* memory) {
    if (tensor.layout.is_plain()) return use(static_cast<const float*>(memory));
    convert(tensor, tensor.layout, plain_layout(tensor), memory, conversion());
    use(conversion());
  });
}

void StateIo::write(const StateEntry& entry, const std::function<void(float*)>& fill) {
  if (entry.shard != nullptr) return write_sharded(entry, fill);
  const ir::Tensor& tensor = program_.state_graph().tensor(entry.tensor);
  executor_.write_state(tensor.storage, [&](void* memory) {
    if (tensor.layout.is_plain()) return fill(static_cast<float*>(memory));
    fill(conversion());
    convert(tensor, plain_layout(tensor), tensor.layout, conversion(), memory);
  });
}

void StateIo::initialise(std::uint64_t seed) {
  for (const StateEntry& entry : entries_) {
    if (entry.shard != nullptr) {
      // State of an optimizer begins with zeros.
      write(entry, [&](float* values) { std::fill_n(values, entry.shape.elements(), 0.0F); });
      continue;
    }
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

}  // namespace penstock::session
