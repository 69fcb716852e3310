#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <utility>

#include "base/slices.h"
#include "lower/passes.h"

namespace penstock::lower {
namespace {

using ir::ExchangeKind;
using ir::Op;
using ir::OpKind;
using ir::Phase;
using ir::TensorId;

/// An update that waits for its gradient to be averaged.
struct Update {
  Op op;
  std::shared_ptr<const kernels::Kernel> kernel;

  TensorId parameter() const { return op.inputs[0]; }
  /// Where in the parameter the elements lie that it updates.
  std::int64_t begin() const { return ir::update_begin(op); }
  TensorId gradient() const { return op.inputs[1]; }
};

/// Gradients that travel together, or (sharded) the parameters made of them.
struct Bucket {
  std::vector<Update> updates;
  std::int64_t floats = 0;
  TensorId tensor = ir::kNone;  ///< once it is on its way
  std::int32_t number = 0;
  bool gathering = false;

  std::int64_t size_bytes() const { return floats * 4; }
};

class Exchanger {
 public:
  Exchanger(Executable& executable, kernels::Backend& backend, const ExchangeOptions& options)
      : result_(executable), graph_(executable.graph), backend_(backend), options_(options) {}

  void run() {
    const LongVector<Op> ops = std::move(graph_.ops);
    const auto kernels = std::move(result_.kernels);
    graph_.ops.clear();
    result_.kernels.clear();
    result_.scratch_bytes.clear();
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].kind == OpKind::sgd_update || ops[i].kind == OpKind::adam_update) {
        add({ops[i], kernels[i]});
      } else {
        append(ops[i], kernels[i]);
      }
    }
    close();
    while (!in_flight_.empty()) finish_oldest();
  }

 private:
  void append(Op op, std::shared_ptr<const kernels::Kernel> kernel) {
    append_op(result_, std::move(op), std::move(kernel));
  }
  void append(Op op) { append_op(result_, backend_, std::move(op)); }

  std::int64_t floats_of(TensorId id) const { return graph_.tensor(id).size_bytes() / 4; }

  void add(Update update) {
    const std::int64_t floats = floats_of(update.gradient());
    if (2 * 4 * floats >= options_.bucket_bytes) {
      Bucket alone;
      alone.floats = floats;
      alone.updates.push_back(std::move(update));
      return start(std::move(alone));
    }
    if (filling_.size_bytes() + 4 * floats > options_.bucket_bytes) close();
    // Slices of one weight follow each other: each gets to its memory by a wait of its own.
    const bool follows =
        std::any_of(filling_.updates.begin(), filling_.updates.end(),
                    [&](const Update& other) { return other.op.outputs[0] == update.parameter(); });
    if (follows) close();
    filling_.floats += floats;
    filling_.updates.push_back(std::move(update));
  }

  void close() {
    if (!filling_.updates.empty()) start(std::exchange(filling_, {}));
  }

  ir::ExchangeAttrs attrs(const Bucket& bucket) const {
    const ExchangeKind reduce =
        options_.shard_optimizer ? ExchangeKind::reduce_scatter : ExchangeKind::all_reduce;
    return {bucket.number,
            bucket.gathering ? ExchangeKind::all_gather : reduce,
            options_.rank,
            options_.ranks,
            {},
            {}};
  }

  /// Lets the oldest of what is on its way end first where this would be too much.
  void launch(Bucket bucket, OpKind kind, const char* what, const std::vector<TensorId>& inputs) {
    bucket.number = next_number_++;
    const std::string name = fmt::format("{}.{}", what, bucket.number);
    bucket.tensor = graph_.add_tensor(name, ir::DType::f32, {bucket.floats}, ir::Role::gradient);
    graph_.tensor(bucket.tensor).pinned = true;
    append({kind,
            kind == OpKind::reduce_start ? Phase::backward : Phase::update,
            name + ".start",
            inputs,
            {bucket.tensor},
            attrs(bucket)});
    in_flight_bytes_ += bucket.size_bytes();
    in_flight_.push_back(std::move(bucket));
  }

  void start(Bucket bucket) {
    while (!in_flight_.empty() && in_flight_bytes_ + bucket.size_bytes() > options_.in_flight_bytes) {
      finish_oldest();
    }
    std::vector<TensorId> gradients;
    gradients.reserve(bucket.updates.size());
    for (const Update& update : bucket.updates) gradients.push_back(update.gradient());
    launch(std::move(bucket), OpKind::reduce_start, "gradients", gradients);
  }

  void finish_oldest() {
    const Bucket bucket = std::move(in_flight_.front());
    in_flight_.pop_front();
    in_flight_bytes_ -= bucket.size_bytes();
    if (bucket.gathering) {
      finish_gather(bucket);
    } else if (options_.shard_optimizer) {
      finish_sharded(bucket);
    } else {
      finish_whole(bucket);
    }
  }

  void append_wait(const Bucket& bucket, const std::vector<TensorId>& outputs) {
    append({OpKind::reduce_wait,
            Phase::update,
            graph_.tensor(bucket.tensor).name + ".wait",
            {bucket.tensor},
            outputs,
            attrs(bucket)});
  }

  void finish_whole(const Bucket& bucket) {
    std::vector<TensorId> means;
    for (const Update& update : bucket.updates) {
      const ir::Tensor gradient = graph_.tensor(update.gradient());
      means.push_back(
          graph_.add_tensor(gradient.name + ".mean", gradient.dtype, gradient.shape, ir::Role::gradient));
      graph_.tensor(means.back()).layout = gradient.layout;
    }
    append_wait(bucket, means);
    for (std::size_t i = 0; i < means.size(); ++i) {
      Op op = bucket.updates[i].op;
      op.inputs[1] = means[i];
      append(std::move(op), bucket.updates[i].kernel);
    }
  }

  /// This rank's part of a parameter that lies at `offset` in a bucket, and with `bounds` all ranks' parts.
  Slice own_part(const Bucket& bucket, std::int64_t offset, std::int64_t floats,
                 std::vector<std::int64_t>& bounds) const {
    bounds.assign(static_cast<std::size_t>(options_.ranks) + 1, floats);
    for (int rank = 0; rank < options_.ranks; ++rank) {
      const Slice slice = rank_slice(bucket.floats, rank, options_.ranks);
      bounds[static_cast<std::size_t>(rank)] = std::clamp<std::int64_t>(slice.begin - offset, 0, floats);
    }
    const auto rank = static_cast<std::size_t>(options_.rank);
    return {bounds[rank], bounds[rank + 1]};
  }

  void finish_sharded(const Bucket& bucket) {
    for (const Update& update : bucket.updates)
      on_their_way_.emplace(update.op.outputs[0], update.parameter());
    struct Part {
      Slice slice;
      TensorId mean = ir::kNone;
    };
    std::vector<Part> parts;
    std::vector<TensorId> means;
    const std::string gathered_in = fmt::format("parameters.{}", next_number_);
    std::int64_t offset = 0;
    for (const Update& update : bucket.updates) {
      const std::int64_t floats = floats_of(update.gradient());
      std::vector<std::int64_t> bounds;
      Part part{own_part(bucket, offset, floats, bounds)};
      offset += floats;
      shard_state(update, part.slice, bounds, gathered_in);
      if (part.slice.size() > 0) {
        part.mean = add_part(graph_.tensor(update.gradient()).name + ".mean", part.slice);
        means.push_back(part.mean);
      }
      parts.push_back(part);
    }
    append_wait(bucket, means);
    std::vector<TensorId> updated;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].slice.size() == 0) continue;
      updated.push_back(update_part(bucket.updates[i], parts[i].slice, parts[i].mean));
    }
    Bucket parameters = bucket;
    parameters.gathering = true;
    launch(std::move(parameters), OpKind::gather_start, "parameters", updated);
  }

  TensorId add_part(const std::string& name, const Slice& slice) {
    return graph_.add_tensor(name, ir::DType::f32, {slice.size()}, ir::Role::gradient);
  }

  /// The optimizer's state shrinks to this rank's part.
  void shard_state(const Update& update, const Slice& slice, const std::vector<std::int64_t>& bounds,
                   const std::string& gathered_in) {
    for (std::size_t i = 2; i < update.op.inputs.size(); ++i) {
      const TensorId before = update.op.inputs[i];
      const ir::Tensor& state = graph_.tensor(before);
      result_.sharded.push_back({state.name, state.shape, state.layout, gathered_in, bounds});
      if (slice.size() == 0) {
        std::erase_if(graph_.carried, [&](const ir::Carried& state) { return state.begin == before; });
        continue;
      }
      for (const TensorId id : {before, update.op.outputs[i - 1]}) {
        graph_.tensor(id).shape = ir::Shape{slice.size()};
        graph_.tensor(id).layout = {};
      }
    }
  }

  TensorId update_part(const Update& update, const Slice& slice, TensorId mean) {
    const std::string name = graph_.tensor(update.parameter()).name;
    const TensorId part = add_part(name + ".part", slice);
    // Of a weight that is updated in slices the others may be on their way still. They are other elements, so
    // this one is taken from the weight as it is in memory now.
    TensorId now = update.parameter();
    while (on_their_way_.contains(now)) now = on_their_way_.at(now);
    append({OpKind::take_slice,
            Phase::update,
            name + ".part",
            {now},
            {part},
            ir::SliceAttrs{update.begin() + slice.begin}});
    Op op = update.op;
    ir::set_update_begin(op, 0);
    op.inputs[0] = part;
    op.inputs[1] = mean;
    op.outputs[0] = add_part(name + ".part'", slice);
    const TensorId updated = op.outputs[0];
    append(std::move(op));
    return updated;
  }

  void finish_gather(const Bucket& bucket) {
    Op op{OpKind::gather_wait,
          Phase::update,
          graph_.tensor(bucket.tensor).name + ".wait",
          {bucket.tensor},
          {},
          {}};
    ir::ExchangeAttrs exchange = attrs(bucket);
    for (const Update& update : bucket.updates) {
      op.inputs.push_back(update.parameter());
      op.outputs.push_back(update.op.outputs[0]);
      on_their_way_.erase(update.op.outputs[0]);
      exchange.begins.push_back(update.begin());
      exchange.counts.push_back(floats_of(update.gradient()));
    }
    op.attrs = std::move(exchange);
    append(std::move(op));
  }

  Executable& result_;
  ir::Graph& graph_;
  kernels::Backend& backend_;
  const ExchangeOptions& options_;
  Bucket filling_;
  std::deque<Bucket> in_flight_;
  std::int64_t in_flight_bytes_ = 0;
  /// Weights that are being gathered -> what they were before.
  std::unordered_map<TensorId, TensorId> on_their_way_;
  std::int32_t next_number_ = 0;
};

}  // namespace

void exchange_gradients(Executable& executable, kernels::Backend& backend, const ExchangeOptions& options) {
  Exchanger(executable, backend, options).run();
}

}  // namespace penstock::lower
