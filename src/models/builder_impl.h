#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"
#include "penstock/network.h"

namespace penstock {

/// The graph under construction and what all layers are made with. Names given to these functions are
/// complete: layer_name() has put the scope before them.
struct NetworkBuilder::Impl {
  ir::Graph graph;
  std::string scope;  ///< what names begin with: "" or "layer1.0."
  std::uint32_t dropouts = 0;
  std::string base;  ///< what layers without a name are called after; "": their input
  std::unordered_map<std::string, int> layers;  ///< by name: the last number that made a like one its own
  std::unordered_map<std::string, ir::TensorId> states;

  /// UserError if the value is none, or of another network.
  ir::TensorId id(Value value) const;
  const ir::Tensor& tensor(Value value) const { return graph.tensor(id(value)); }
  const ir::Shape& shape(Value value) const { return tensor(value).shape; }

  /// The name for a layer that reads `x`: `name` in its scope, or the input's with `suffix`; UserError if it
  /// is taken.
  std::string layer_name(const std::string& name, Value x, const char* suffix);
  /// Refuses what has no axis of channels.
  void check_channels(const std::string& layer, Value x) const;
  /// A value that an op of the layer makes.
  Value add_value(const std::string& name, ir::DType dtype, ir::Shape shape,
                  ir::Role role = ir::Role::activation);
  /// UserError if there is a state of that name.
  Value add_state(const std::string& name, const ir::Shape& shape, ir::Role role, Init init);
  /// The shapes of what an op makes; UserError if its inputs do not fit.
  std::vector<ir::Shape> infer(ir::OpKind kind, const std::string& layer, const std::vector<Value>& inputs,
                               const ir::Attrs& attrs) const;
  /// Appends an op; UserError if its inputs or their types do not fit.
  void append(ir::OpKind kind, ir::Phase phase, const std::string& layer, const std::vector<Value>& inputs,
              const std::vector<Value>& outputs, ir::Attrs attrs = {});
  /// Appends a forward op with one output that is called like the layer.
  Value make(ir::OpKind kind, const std::string& layer, const std::vector<Value>& inputs,
             ir::Attrs attrs = {}, ir::DType dtype = ir::DType::f32);

  /// Appends a forward op with several outputs, all f32: the first is called like the layer, the others have
  /// the names of `more` behind it.
  std::vector<Value> make_all(ir::OpKind kind, const std::string& layer, const std::vector<Value>& inputs,
                              const ir::Attrs& attrs, const std::vector<std::string>& more);

  Value pool(ir::OpKind kind, const std::string& layer, Value x, const PoolOptions& options);
  Value adaptive_axis(Value x, std::size_t axis, std::int64_t size, const std::string& layer);
};

/// UserError if a shape is empty or larger than can be meant.
void check_size(const std::string& layer, const ir::Shape& shape);

ir::DType to_ir(DType dtype);
DType from_ir(ir::DType dtype);

}  // namespace penstock
