#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace penstock::models {

/// What the layers of a transformer are put together with: a forward graph on tokens [batch, sequence] and
/// labels of the same shape (inputs `tokens` and `labels`, output `loss`). A parameter that is named twice is
/// one parameter. Layers fit together by construction, so shapes are not checked for the user. One thread.
class Transformer {
 public:
  using Value = ir::TensorId;

  Transformer(std::string network, std::int64_t batch, std::int64_t sequence);

  Value tokens() const { return tokens_; }
  const ir::Shape& shape(Value value) const { return graph_.tensor(value).shape; }

  Value parameter(const std::string& name, const ir::Shape& shape, ir::Init init);

  /// Rows of `weights`, plus those of `positions` unless it is kNone.
  Value embedding(const std::string& name, Value weights, Value positions);

  struct Linear {
    std::int64_t outputs = 0;
    bool bias = true;
    bool turned = false;  ///< weights [inputs, outputs]
    ir::Init init;        ///< of the weights; biases begin as 0
  };
  Value linear(const std::string& name, Value x, const Linear& layer);

  /// x + z normalised along rows, and x + z itself. Without z (kNone) the sum is x.
  struct Normed {
    Value y, sum;
  };
  Normed norm(const std::string& name, Value x, Value z, const ir::LayerNormAttrs& attrs);

  /// `operands`: one packed value or queries, keys and values. Its dropout gets a key of its own.
  Value attention(const std::string& name, const std::vector<Value>& operands, ir::AttentionAttrs attrs);
  Value rotary(const std::string& name, Value x, const ir::RotaryAttrs& attrs);
  /// f(a), or f(a) * b.
  Value gate(const std::string& name, ir::Gate function, Value a, Value b = ir::kNone);
  /// x itself where the probability is 0.
  Value dropout(const std::string& name, Value x, float probability);

  /// Ends the network with the cross-entropy of x weights^T against the labels as its loss.
  ir::Graph finish(Value x, Value weights);

 private:
  /// Appends an op whose outputs are shaped as its inputs say; the first is called `name`.
  std::vector<Value> make(ir::OpKind kind, const std::string& name, std::vector<Value> inputs,
                          ir::Attrs attrs, const std::vector<std::string>& more_outputs = {});

  ir::Graph graph_;
  Value tokens_ = ir::kNone, labels_ = ir::kNone;
  std::uint32_t dropouts_ = 0;
  std::unordered_map<std::string, Value> parameters_;
};

}  // namespace penstock::models
