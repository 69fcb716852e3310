#include <algorithm>

#include "onnx/ops.h"

namespace penstock::onnx {
namespace {

/// One direction of a recurrent layer: what its steps work with. Steps are unrolled: each is a few layers of
/// its own, so that what they keep for the backward pass can be kept, swapped and computed again like any
/// other value.
struct Direction {
  std::vector<Value> inputs;  ///< one a step: the input's part of all gates [B, gates * H], biases added
  Value recurrent;            ///< [gates * H, H]
  Value recurrent_bias;       ///< [gates * H], or none where it is part of the inputs
  Value peepholes;            ///< [3 * H] or none
  Value hidden, cell;         ///< [B, H] before the first step
  std::int64_t width = 0;
};

struct Steps {
  std::vector<Value> hidden;  ///< one a step
  Value cell;                 ///< after the last
};

Value part(Importer& at, Value x, std::int64_t axis, std::int64_t which, std::int64_t width) {
  return at.net().slice(x, axis, which * width, width);
}

Value sum(Importer& at, Value a, Value b) {
  return apply(at, "add", {a, b});
}

Steps run_rnn(Importer& at, const Direction& d) {
  Steps steps;
  Value h = d.hidden;
  for (const Value x : d.inputs) {
    h = apply(at, "tanh", {sum(at, x, at.net().linear(h, d.recurrent, {}))});
    steps.hidden.push_back(h);
  }
  return steps;
}

Steps run_lstm(Importer& at, const Direction& d) {
  Steps steps;
  Value h = d.hidden, c = d.cell;
  const auto peep = [&](Value gate, Value cell, std::int64_t which) {
    if (d.peepholes == Value{}) return gate;
    return sum(at, gate, apply(at, "mul", {part(at, d.peepholes, 0, which, d.width), cell}));
  };
  for (const Value x : d.inputs) {
    const Value gates = sum(at, x, at.net().linear(h, d.recurrent, {}));
    const auto gate = [&](std::int64_t which) { return part(at, gates, 1, which, d.width); };
    const Value in = apply(at, "sigmoid", {peep(gate(0), c, 0)});
    const Value forget = apply(at, "sigmoid", {peep(gate(2), c, 2)});
    const Value fresh = apply(at, "tanh", {gate(3)});
    c = sum(at, apply(at, "mul", {forget, c}), apply(at, "mul", {in, fresh}));
    const Value out = apply(at, "sigmoid", {peep(gate(1), c, 1)});
    h = apply(at, "mul", {out, apply(at, "tanh", {c})});
    steps.hidden.push_back(h);
  }
  steps.cell = c;
  return steps;
}

Steps run_gru(Importer& at, const Direction& d) {
  const bool linear_first = at.integer("linear_before_reset", 0) != 0;
  Steps steps;
  Value h = d.hidden;
  const std::int64_t w = d.width;
  const Value of_gates = at.net().slice(d.recurrent, 0, 0, 2 * w), of_state = part(at, d.recurrent, 0, 2, w);
  const Value state_bias = part(at, d.recurrent_bias, 0, 2, w);
  const Value gate_bias = at.net().slice(d.recurrent_bias, 0, 0, 2 * w);
  for (const Value x : d.inputs) {
    const Value gates = sum(at, at.net().slice(x, 1, 0, 2 * w), at.net().linear(h, of_gates, gate_bias));
    const Value update = apply(at, "sigmoid", {part(at, gates, 1, 0, w)});
    const Value reset = apply(at, "sigmoid", {part(at, gates, 1, 1, w)});
    const Value past = linear_first ? apply(at, "mul", {reset, at.net().linear(h, of_state, state_bias)})
                                    : at.net().linear(apply(at, "mul", {reset, h}), of_state, state_bias);
    const Value fresh = apply(at, "tanh", {sum(at, part(at, x, 1, 2, w), past)});
    // (1 - update) * fresh + update * h
    h = sum(at, fresh, apply(at, "mul", {update, apply(at, "sub", {h, fresh})}));
    steps.hidden.push_back(h);
  }
  return steps;
}

/// What the three kinds have in common.
struct Layer {
  std::int64_t steps = 0, batch = 0, width = 0, gates = 0, directions = 1;
  bool batch_first = false;
};

void check_plain(Importer& at, const Layer& layer) {
  for (const char* name : {"clip", "input_forget", "activation_alpha", "activation_beta"}) {
    if (const Attribute* found = at.node().find(name);
        found != nullptr && (found->f != 0 || found->i != 0 || !found->floats.empty()))
      at.fail(std::string("has ") + name + ", which is not supported");
  }
  const std::vector<std::string> usual = layer.gates == 1 ? std::vector<std::string>{"Tanh"}
                                         : layer.gates == 3
                                             ? std::vector<std::string>{"Sigmoid", "Tanh"}
                                             : std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"};
  if (const Attribute* given = at.node().find("activations")) {
    for (std::size_t i = 0; i < given->strings.size(); ++i) {
      if (given->strings[i] != usual[i % usual.size()])
        at.fail("has other activations than the usual ones, which is not supported");
    }
  }
  if (!at.has(4)) return;
  for (const std::int64_t length : at.integers(std::size_t{4})) {
    if (length != layer.steps) at.fail("has sequences of different lengths, which is not supported");
  }
}

/// [1, ...] or [2, ...] -> [...] of one direction.
Value of_direction(Importer& at, Value x, std::int64_t direction) {
  Extents dims = at.net().shape(x);
  if (dims[0] > 1) x = at.net().slice(x, 0, direction, 1);
  dims.erase(dims.begin());
  return at.net().reshape(x, dims);
}

Value begin_state(Importer& at, std::size_t input, const Layer& layer, std::int64_t direction) {
  if (!at.has(input)) {
    const Extents dims{layer.batch, layer.width};
    return at.table(dims, std::vector<double>(static_cast<std::size_t>(layer.batch * layer.width), 0));
  }
  Value x = at.value(input);
  if (layer.batch_first) x = at.net().transpose(x, {1, 0, 2});
  return of_direction(at, x, direction);
}

Direction direction_of(Importer& at, const Layer& layer, Value x, std::int64_t which, bool backwards) {
  NetworkBuilder& net = at.net();
  Direction d;
  d.width = layer.width;
  const std::int64_t all = layer.gates * layer.width;
  Value bias;
  if (at.has(3)) {
    const Value both = of_direction(at, at.value(3), which);
    const Value of_inputs = net.slice(both, 0, 0, all);
    d.recurrent_bias = net.slice(both, 0, all, all);
    bias = layer.gates == 3 ? of_inputs : sum(at, of_inputs, d.recurrent_bias);
  } else if (layer.gates == 3) {
    d.recurrent_bias = at.table({all}, std::vector<double>(static_cast<std::size_t>(all), 0));
  }
  d.recurrent = of_direction(at, at.value(2), which);
  // The inputs' part of all steps is one product.
  const Value parts = net.linear(x, of_direction(at, at.value(1), which), bias);
  for (std::int64_t t = 0; t < layer.steps; ++t)
    d.inputs.push_back(net.reshape(net.slice(parts, 0, t, 1), {layer.batch, all}));
  if (backwards) std::reverse(d.inputs.begin(), d.inputs.end());
  d.hidden = begin_state(at, 5, layer, which);
  if (layer.gates == 4) {
    d.cell = begin_state(at, 6, layer, which);
    if (at.has(7)) d.peepholes = of_direction(at, at.value(7), which);
  }
  return d;
}

void recurrent(Importer& at, std::int64_t gates, Steps (*run)(Importer&, const Direction&)) {
  NetworkBuilder& net = at.net();
  Layer layer;
  layer.gates = gates;
  layer.batch_first = at.integer("layout", 0) != 0;
  const Extents in = at.shape(0), weights = at.shape(2);
  if (in.size() != 3 || weights.size() != 3) at.fail("needs an input [T, B, I] and weights of directions");
  layer.steps = in[layer.batch_first ? 1 : 0];
  layer.batch = in[layer.batch_first ? 0 : 1];
  layer.directions = weights[0];
  layer.width = weights[2];
  if (layer.steps > 4096) at.fail("has more than 4096 steps, which is not supported");
  const std::string way = at.text("direction", "forward");
  if (layer.directions != (way == "bidirectional" ? 2 : 1))
    at.fail("has weights of other directions than it says");
  if (weights[1] != gates * layer.width) at.fail("has weights of another number of gates");
  check_plain(at, layer);
  Value x = at.value(0);
  if (layer.batch_first) x = net.transpose(x, {1, 0, 2});
  std::vector<Value> all, last, cells;
  for (std::int64_t which = 0; which < layer.directions; ++which) {
    const bool backwards = way == "reverse" || which == 1;
    Steps steps = run(at, direction_of(at, layer, x, which, backwards));
    last.push_back(steps.hidden.back());
    if (gates == 4) cells.push_back(steps.cell);
    if (backwards) std::reverse(steps.hidden.begin(), steps.hidden.end());
    all.push_back(net.stack(steps.hidden, 0));
  }
  if (at.wants(0)) {
    const Value y = net.stack(all, 1);  // [T, directions, B, H]
    at.set(0, layer.batch_first ? net.transpose(y, {2, 0, 1, 3}) : y);
  }
  const std::int64_t direction_axis = layer.batch_first ? 1 : 0;
  if (at.wants(1)) at.set(1, net.stack(last, direction_axis));
  if (at.wants(2) && gates == 4) at.set(2, net.stack(cells, direction_axis));
}

}  // namespace

const OpTable& recurrent_ops() {
  static const OpTable table{{"RNN", [](Importer& at) { recurrent(at, 1, run_rnn); }},
                             {"GRU", [](Importer& at) { recurrent(at, 3, run_gru); }},
                             {"LSTM", [](Importer& at) { recurrent(at, 4, run_lstm); }}};
  return table;
}

}  // namespace penstock::onnx
