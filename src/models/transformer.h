#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace penstock::models {

/// What the layers of a transformer are put together with: a forward graph on tokens [batch, sequence] and
/// labels of the same shape (inputs `tokens` and `labels`, output `loss`); or, with a window, one that takes
/// a single token and gives the logits of the next (see NextToken in text_models.h). A parameter that is
/// named twice is one parameter. Layers fit together by construction, so shapes are not checked for the user.
/// One thread.
class Transformer {
 public:
  Transformer(std::string network, std::int64_t batch, std::int64_t sequence);
  Transformer(std::string network, std::int64_t window);

  ir::TensorId tokens() const { return tokens_; }
  const ir::Shape& shape(ir::TensorId value) const { return graph_.tensor(value).shape; }

  ir::TensorId parameter(const std::string& name, const ir::Shape& shape, ir::Init init);

  /// Tokens that the next one is told from; 0: the network is for training.
  std::int64_t window() const { return window_; }

  /// Rows of `weights`, plus those of `positions` unless it is kNone.
  ir::TensorId embedding(const std::string& name, ir::TensorId weights, ir::TensorId positions);

  struct Linear {
    std::int64_t outputs = 0;
    bool bias = true;
    bool turned = false;  ///< weights [inputs, outputs]
    ir::Init init;        ///< of the weights; biases begin as 0
  };
  ir::TensorId linear(const std::string& name, ir::TensorId x, const Linear& layer);

  /// x + z normalised along rows, and x + z itself. Without z (kNone) the sum is x.
  struct Normed {
    ir::TensorId y, sum;
  };
  Normed norm(const std::string& name, ir::TensorId x, ir::TensorId z, const ir::LayerNormAttrs& attrs);

  /// `operands`: one packed value or queries, keys and values. Its dropout gets a key of its own.
  ir::TensorId attention(const std::string& name, const std::vector<ir::TensorId>& operands,
                         ir::AttentionAttrs attrs);
  ir::TensorId rotary(const std::string& name, ir::TensorId x, const ir::RotaryAttrs& attrs);
  /// f(a), or f(a) * b.
  ir::TensorId gate(const std::string& name, ir::Gate function, ir::TensorId a, ir::TensorId b = ir::kNone);
  /// With a window: queries, keys and values of one token [1, 1, ...]. The rows before come from inputs, this
  /// one's keys and values go to outputs. `turn`: rotary positions of queries and keys; null: none.
  ir::TensorId attend_to_window(const std::string& name, ir::TensorId q, ir::TensorId k, ir::TensorId v,
                                ir::AttentionAttrs attrs, const ir::RotaryAttrs* turn);
  /// Parts of the last axis.
  std::vector<ir::TensorId> split(const std::string& name, ir::TensorId x,
                                  const std::vector<std::int64_t>& sizes);
  /// x itself where the probability is 0.
  ir::TensorId dropout(const std::string& name, ir::TensorId x, float probability);

  /// Ends the network with the cross-entropy of x weights^T against the labels as its loss; with a window,
  /// with x weights^T as its output.
  ir::Graph finish(ir::TensorId x, ir::TensorId weights);

 private:
  /// Appends an op whose outputs are shaped as its inputs say; the first is called `name`.
  std::vector<ir::TensorId> make(ir::OpKind kind, const std::string& name,
                                 const std::vector<ir::TensorId>& inputs, ir::Attrs attrs,
                                 const std::vector<std::string>& more_outputs = {});

  ir::Graph graph_;
  std::int64_t window_ = 0;
  std::int64_t attentions_ = 0;  ///< with a window, so far
  ir::TensorId tokens_ = ir::kNone, labels_ = ir::kNone;
  ir::TensorId positions_ = ir::kNone, seen_ = ir::kNone;  ///< with a window
  std::uint32_t dropouts_ = 0;
  std::unordered_map<std::string, ir::TensorId> parameters_;
};

}  // namespace penstock::models
