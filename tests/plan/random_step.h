#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "ir/graph.h"
#include "plan/problem.h"

namespace penstock::plan {

/// A budget that nothing here comes near.
constexpr std::int64_t kPlenty = std::int64_t{1} << 40;

/// Numbers from a seed, for tests.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed, RandomPurpose::synthetic, 0, 0) {}
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_.bits(next_++) % static_cast<std::uint64_t>(bound));
  }
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool one_in(std::int64_t n) { return below(n) == 0; }

 private:
  CounterRandom random_;
  std::uint64_t next_ = 0;
};

struct RandomStep {
  ir::Graph graph;
  LongVector<std::int64_t> scratch_bytes;
};

struct RandomStepOptions {
  int layers = 6;
  std::int64_t max_elements = 8 * 1024;  ///< of a tensor
  bool training = true;                  ///< otherwise forward only, state unchanged
  bool same_size = false;                ///< all tensors have max_elements
  bool exchanges = false;                ///< gradients are exchanged with other ranks
};

/// A step of the shape of a real one: layers with parameters, residual inputs, activations in place,
/// statistics updated in forward, workspaces; backward in reverse; updates of parameter and momentum as soon
/// as a gradient is there. The op kinds mean nothing, except input and
/// output.
inline RandomStep random_step(std::uint64_t seed, const RandomStepOptions& options = {}) {
  Dice dice(seed);
  RandomStep step;
  ir::Graph& g = step.graph;
  g.name = "random";
  const auto shape = [&] {
    return ir::Shape{options.same_size ? options.max_elements : dice.between(1, options.max_elements)};
  };
  const auto add_op = [&](ir::OpKind kind, ir::Phase phase, std::string name,
                          std::vector<ir::TensorId> inputs, std::vector<ir::TensorId> outputs) {
    ir::Op op;
    op.kind = kind;
    op.phase = phase;
    op.name = std::move(name);
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    g.add_op(std::move(op));
    step.scratch_bytes.push_back(dice.one_in(3) ? dice.between(1, 4 * options.max_elements) : 0);
  };
  const auto state = [&](const std::string& name, ir::Role role, const ir::Shape& extents) {
    return g.add_state(name, extents, role, {});
  };

  const ir::TensorId images = g.add_tensor("images", ir::DType::f32, shape(), ir::Role::input);
  const ir::TensorId labels = g.add_tensor("labels", ir::DType::s32, {4}, ir::Role::input);
  add_op(ir::OpKind::input, ir::Phase::forward, "input", {}, {images, labels});

  struct Layer {
    std::vector<ir::TensorId> saved;
    ir::TensorId parameter = ir::kNone, momentum = ir::kNone, residual = ir::kNone;
    ir::TensorId input = ir::kNone, output = ir::kNone;
  };
  std::vector<Layer> layers;
  std::vector<ir::TensorId> reachable{images};
  ir::TensorId x = images;
  for (int l = 0; l < options.layers; ++l) {
    const std::string name = "layer" + std::to_string(l);
    Layer layer;
    layer.input = x;
    std::vector<ir::TensorId> inputs{x};
    if (!dice.one_in(4)) {
      const ir::Shape extents = shape();
      layer.parameter = state(name + ".weight", ir::Role::parameter, extents);
      inputs.push_back(layer.parameter);
      if (options.training && dice.one_in(2)) {
        layer.momentum = state(name + ".momentum", ir::Role::optimizer_state, extents);
      }
    }
    if (dice.one_in(3)) {
      layer.residual =
          reachable[static_cast<std::size_t>(dice.below(static_cast<std::int64_t>(reachable.size())))];
      inputs.push_back(layer.residual);
    }
    ir::TensorId y = g.add_tensor(name + ".y", ir::DType::f32, shape(), ir::Role::activation);
    std::vector<ir::TensorId> outputs{y};
    layer.saved = {x};
    if (dice.one_in(3)) {
      const ir::TensorId workspace =
          g.add_tensor(name + ".mask", ir::DType::f32, shape(), ir::Role::workspace);
      outputs.push_back(workspace);
      layer.saved.push_back(workspace);
    }
    add_op(ir::OpKind::conv, ir::Phase::forward, name, inputs, outputs);
    if (dice.one_in(3)) {
      const ir::TensorId running = state(name + ".running", ir::Role::buffer, shape());
      if (options.training) {
        const ir::TensorId updated = g.add_successor(running, name + ".running'");
        add_op(ir::OpKind::statistics_update, ir::Phase::forward, name + ".statistics", {running, y},
               {updated});
        g.replace_carried(running, updated);
      } else {
        const ir::TensorId z = g.add_tensor(name + ".z", ir::DType::f32, shape(), ir::Role::activation);
        add_op(ir::OpKind::batch_norm, ir::Phase::forward, name + ".norm", {running, y}, {z});
        y = z;
      }
    }
    if (dice.one_in(3)) {
      const ir::TensorId z = g.add_successor(y, name + ".relu");
      add_op(ir::OpKind::activation, ir::Phase::forward, name + ".relu", {y}, {z});
      y = z;
    }
    if (dice.one_in(2)) layer.saved.push_back(y);
    layer.output = x = y;
    reachable.push_back(y);
    layers.push_back(std::move(layer));
  }
  g.loss = g.add_tensor("loss", ir::DType::f32, {1}, ir::Role::activation);
  const ir::TensorId probabilities =
      g.add_tensor("probabilities", ir::DType::f32, shape(), ir::Role::activation);
  add_op(ir::OpKind::cross_entropy, ir::Phase::forward, "loss", {x, labels}, {g.loss, probabilities});
  g.add_output("loss", g.loss);
  step.scratch_bytes.push_back(0);
  if (!options.training) return step;

  /// Starts the exchange of a gradient; another op waits for it.
  const auto exchange = [&](ir::OpKind kind, const std::string& name, ir::TensorId given, ir::TensorId made) {
    add_op(kind, ir::Phase::backward, name, {given}, {made});
    ir::ExchangeAttrs attrs;
    attrs.bucket = g.tensor(given).storage;
    g.ops.back().attrs = attrs;
  };
  const auto update = [&](int l, ir::TensorId gradient) {
    const Layer& layer = layers[static_cast<std::size_t>(l)];
    const std::string name = "layer" + std::to_string(l);
    std::vector<ir::TensorId> before{layer.parameter, gradient};
    const ir::TensorId updated = g.add_successor(layer.parameter, name + ".weight'");
    std::vector<ir::TensorId> after{updated};
    g.replace_carried(layer.parameter, updated);
    if (layer.momentum != ir::kNone) {
      const ir::TensorId moved = g.add_successor(layer.momentum, name + ".momentum'");
      before.push_back(layer.momentum);
      after.push_back(moved);
      g.replace_carried(layer.momentum, moved);
    }
    add_op(ir::OpKind::sgd_update, ir::Phase::update, name + ".update", before, after);
  };
  std::vector<std::pair<int, ir::TensorId>> on_their_way;  // by layer
  ir::TensorId dy = g.add_tensor("dlogits", ir::DType::f32, shape(), ir::Role::gradient);
  add_op(ir::OpKind::cross_entropy_backward, ir::Phase::backward, "loss.backward", {probabilities, labels},
         {dy});
  for (int l = options.layers - 1; l >= 0; --l) {
    const Layer& layer = layers[static_cast<std::size_t>(l)];
    const std::string name = "layer" + std::to_string(l);
    if (dice.one_in(3)) {
      const ir::TensorId next = g.add_successor(dy, name + ".dmasked");
      add_op(ir::OpKind::activation_backward, ir::Phase::backward, name + ".relu.backward",
             {dy, layer.output}, {next});
      dy = next;
    }
    std::vector<ir::TensorId> inputs = layer.saved;
    inputs.push_back(dy);
    if (layer.parameter != ir::kNone) {
      const ir::TensorId dw = g.add_tensor(name + ".dweight", ir::DType::f32, g.tensor(layer.parameter).shape,
                                           ir::Role::gradient);
      add_op(ir::OpKind::conv_backward_weights, ir::Phase::backward, name + ".backward_weights", inputs,
             {dw});
      ir::TensorId gradient = dw;
      if (options.exchanges) {
        gradient = g.add_successor(dw, name + ".bucket");
        g.tensor(gradient).pinned = true;
        exchange(ir::OpKind::reduce_start, name + ".start", dw, gradient);
      }
      inputs = {dy, layer.parameter};
      const ir::TensorId dx = g.add_tensor(name + ".dx", ir::DType::f32, shape(), ir::Role::gradient);
      add_op(ir::OpKind::conv_backward_data, ir::Phase::backward, name + ".backward_data", inputs, {dx});
      dy = dx;
      if (options.exchanges) {
        on_their_way.emplace_back(l, gradient);
      } else {
        update(l, gradient);
      }
    } else {
      const ir::TensorId dx = g.add_tensor(name + ".dx", ir::DType::f32, shape(), ir::Role::gradient);
      add_op(ir::OpKind::max_pool_backward, ir::Phase::backward, name + ".backward", inputs, {dx});
      dy = dx;
    }
  }
  for (const auto& [l, bucket] : on_their_way) {
    const std::string name = "layer" + std::to_string(l);
    const ir::TensorId mean = g.add_successor(bucket, name + ".mean");
    exchange(ir::OpKind::reduce_wait, name + ".wait", bucket, mean);
    update(l, mean);
  }
  return step;
}

/// Lets each op write over whatever it reads and is as large.
inline void allow_overwrites(Problem& problem) {
  const auto may_share = [&](ir::StorageId s) {
    const StorageInfo& storage = problem.storage(s);
    return !storage.carried && storage.role != ir::Role::input;
  };
  RowsBuilder<Overwrite> overwrites(problem.ops.size());
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    const StepOp info = problem.ops[i];
    for (const Use& from : info.uses) {
      for (const Use& to : info.uses) {
        const bool apart = from.reads && !from.writes && to.writes && !to.reads;
        const bool as_large =
            problem.storage(from.storage).footprint_bytes == problem.storage(to.storage).footprint_bytes;
        if (apart && as_large && may_share(from.storage) && may_share(to.storage)) {
          overwrites.push_back({from.storage, to.storage});
        }
      }
    }
    overwrites.end_row();
  }
  problem.ops.set_overwrites(overwrites.finish());
}

inline std::int64_t count(const Plan& plan, Action action) {
  return std::count_if(plan.instructions.begin(), plan.instructions.end(),
                       [&](const Instruction& in) { return in.action == action; });
}

}  // namespace penstock::plan
