#pragma once

#include <map>
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

  // The node at hand.

  NetworkBuilder& net() { return net_; }
  const Node& node() const { return *node_; }
  std::int64_t opset() const { return model_.opset(); }
  [[noreturn]] void fail(const std::string& what) const;
  bool has(std::size_t input) const;
  /// The input as a value of the network; a floating-point constant becomes state.
  Value value(std::size_t input);
  /// The same where it is an initializer: a parameter or, with `buffer`, a buffer.
  Value state(std::size_t input, bool buffer);
  /// The input's elements if they are known now, else null.
  const Constant* known(std::size_t input);
  /// The input's elements; fails where they are known only in the step.
  const Constant& constant(std::size_t input);
  std::vector<std::int64_t> integers(std::size_t input);
  double number(std::size_t input);
  /// Extents of an input, constant or not.
  const Extents& shape(std::size_t input);

  std::int64_t integer(const char* attribute, std::int64_t usual) const;
  float real(const char* attribute, float usual) const;
  std::string text(const char* attribute, const std::string& usual) const;
  std::vector<std::int64_t> integers(const char* attribute) const;
  /// `axis` counted from the begin; fails if there is none of that number.
  std::size_t axis(std::int64_t given, std::size_t rank) const;

  /// A name for the node's layer that is not taken.
  std::string layer();
  void set(std::size_t output, Value value);
  void set_constant(std::size_t output, Constant constant);
  /// The elements of a small tensor of the file.
  Constant read(const TensorInfo& tensor) const;
  /// A buffer that holds a constant.
  Value buffer_of(const Constant& constant, const std::string& name);

  std::int64_t batch() const { return batch_; }
  std::int64_t file_batch() const { return file_batch_; }

 private:
  /// What a name of the graph stands for.
  struct Entry {
    Value value;
    const TensorInfo* initializer = nullptr;
    std::shared_ptr<Constant> constant;
    Extents dims;  ///< of a scalar empty, though its value in the network is [1]
  };

  void add_inputs();
  void add_input(const ValueInfo& input);
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
  std::int64_t batch_ = 0, file_batch_ = 0;
  std::string batch_name_;
};

}  // namespace penstock::onnx
