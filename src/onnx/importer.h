#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "onnx/constant.h"
#include "onnx/model.h"
#include "onnx/onnx_import.h"
#include "penstock/network.h"

namespace penstock::onnx {

/// Makes a network of a model's nodes, one after the other. Functions of ops (ops.h) see the node at hand
/// through it. One thread.
class Importer {
 public:
  Importer(const Model& model, const ImportOptions& options);

  Network run();
  /// Values of buffers that the file does not have as tensors of that name.
  std::map<std::string, std::vector<float>> take_made() { return std::move(made_); }

  std::map<std::string, OutputInfo> take_outputs() { return std::move(outputs_); }

  // The node at hand.

  NetworkBuilder& net() { return net_; }
  const Node& node() const { return *node_; }
  std::int64_t opset() const { return model_.opset(); }
  [[noreturn]] void fail(const std::string& what) const;
  bool has(std::size_t input) const;
  /// The input as a value of the network; a constant becomes state.
  Value value(std::size_t input);
  /// The same as floats, whatever its type.
  Value real_value(std::size_t input);
  /// The same where it is an initializer: a parameter or, with `buffer`, a buffer.
  Value state(std::size_t input, bool buffer);
  /// The input's elements if they are known now, else null.
  const Constant* known(std::size_t input);
  /// The input's elements; fails where they are known only in the step.
  const Constant& constant(std::size_t input);
  std::vector<std::int64_t> integers(std::size_t input);
  double number(std::size_t input);
  /// The one number that an input holds, if that is known now and not to be trained.
  std::optional<float> scalar(std::size_t input);
  /// Extents of an input, constant or not; of a scalar none, though its value is [1].
  const Extents& shape(std::size_t input);
  /// What its elements are in the file.
  ElementType type(std::size_t input);
  /// Whether the input is a tensor of the file.
  bool is_initializer(std::size_t input);

  std::int64_t integer(const char* attribute, std::int64_t usual) const;
  float real(const char* attribute, float usual) const;
  std::string text(const char* attribute, const std::string& usual) const;
  std::vector<std::int64_t> integers(const char* attribute) const;
  /// `axis` counted from the begin; fails if there is none of that number.
  std::size_t axis(std::int64_t given, std::size_t rank) const;

  /// A name for the node's layer that is not taken.
  std::string layer();
  bool wants(std::size_t output) const;
  void set(std::size_t output, Value value);
  /// With the extents that ONNX gives it, and of that type where it is said: an integer is cut off towards 0.
  void set(std::size_t output, Value value, Extents dims, ElementType type = ElementType::none);
  void set_constant(std::size_t output, Constant constant);
  /// The elements of a small tensor of the file.
  Constant read(const TensorInfo& tensor) const;
  /// A buffer that holds a constant.
  Value buffer_of(const Constant& constant, const std::string& name);
  /// The same of numbers that the layer at hand works with.
  Value table(const Extents& dims, const std::vector<double>& values);
  /// Integers (s32) that are known now.
  Value index_table(const Extents& dims, const std::vector<std::int64_t>& values);
  /// Whether the network has a loss.
  bool trains() const { return !options_.loss.empty(); }

  std::int64_t batch() const { return batch_; }
  std::int64_t file_batch() const { return file_batch_; }

 private:
  /// What a name of the graph stands for.
  struct Entry {
    Value value;
    const TensorInfo* initializer = nullptr;
    std::shared_ptr<Constant> constant;
    Extents dims = {};  ///< of a scalar empty, though its value in the network is [1]
    ElementType type = ElementType::f32;
  };

  void add_inputs();
  void add_input(const ValueInfo& input);
  void add_known(const ValueInfo& input, const KnownInput& known);
  std::vector<std::size_t> order() const;
  void add_node(const Node& node);
  bool fold_node(const Node& node);
  void add_outputs();
  Value output_value(const std::string& name);
  Entry& entry(const std::string& name);
  Entry& entry(std::size_t input);
  const Constant* known(Entry& entry);
  Value value(const std::string& name, Entry& entry, bool buffer);

  const Model& model_;
  const ImportOptions& options_;
  NetworkBuilder net_;
  const Node* node_ = nullptr;
  std::unordered_map<std::string, Entry> entries_;
  std::set<std::string> layers_;
  std::map<std::string, std::vector<float>> made_;
  std::int64_t made_elements_ = 0;
  std::map<std::string, OutputInfo> outputs_;
  std::int64_t batch_ = 0, file_batch_ = 0;
  std::string batch_name_;
};

}  // namespace penstock::onnx
