#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "onnx/wire.h"
#include "penstock/network.h"

namespace penstock::onnx {

/// Types of elements as ONNX numbers them.
enum class ElementType : int {
  none = 0,
  f32 = 1,
  u8 = 2,
  s8 = 3,
  u16 = 4,
  s16 = 5,
  s32 = 6,
  s64 = 7,
  text = 8,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  u64 = 13,
  bf16 = 16,
};
bool is_floating(ElementType type);
/// Bytes of an element in raw data; 0: not supported.
std::int64_t element_bytes(ElementType type);
std::string type_name(ElementType type);

/// A tensor of the file. Its elements stay in the file; `parts` says where.
struct TensorInfo {
  std::string name;
  ElementType type = ElementType::none;
  Extents dims;
  std::int64_t elements = 0;

  std::int64_t part_element_bytes = 0;  ///< of an element as it lies in the parts
  std::vector<Range> parts;             ///< one behind the other
  std::vector<std::int64_t> integers;   ///< instead of parts: elements listed one by one
  bool listed = false;                  ///< they are
  std::string external;                 ///< the file that the parts are of; empty: the model's own
};

struct Attribute {
  std::string name;
  float f = 0;
  std::int64_t i = 0;
  std::string s;
  std::vector<float> floats;
  std::vector<std::int64_t> ints;
  std::vector<std::string> strings;
  std::shared_ptr<TensorInfo> tensor;
  bool has_graph = false;
};

struct Node {
  std::string name, op_type, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<Attribute> attributes;

  const Attribute* find(const std::string& attribute) const;
};

struct Dim {
  std::int64_t value = -1;  ///< -1: free
  std::string name;         ///< of a free one
};

struct ValueInfo {
  std::string name;
  ElementType type = ElementType::none;
  bool is_tensor = false, has_shape = false;
  std::vector<Dim> dims;
};

/// What an ONNX file says, without the weights.
struct Model {
  std::string path;
  std::map<std::string, std::int64_t> opsets;  ///< by domain
  std::string graph_name;
  std::vector<Node> nodes;
  std::vector<TensorInfo> initializers;
  std::vector<ValueInfo> inputs, outputs;

  std::int64_t opset() const;
};

/// Reads all but the weights. UserError if the file is damaged, or has what no network needs (tensors in
/// parts, data outside of its folder).
Model read_model(const std::string& path);

/// Reads a file that holds one tensor, as the test data of models does; the model has it as its initializer.
Model read_tensor_file(const std::string& path);

/// Reads `count` elements of a floating-point tensor from element `begin` on.
void read_floats(const Model& model, const TensorInfo& tensor, std::int64_t begin, std::int64_t count,
                 float* to);
/// All elements of an integer or boolean tensor of at most kMaxListed.
std::vector<std::int64_t> read_integers(const Model& model, const TensorInfo& tensor);

/// Element i of 2 or 4 or 8 bytes as a float, and back.
float decode_float(ElementType type, const std::uint8_t* from);
void encode_float(ElementType type, float value, std::uint8_t* to);

}  // namespace penstock::onnx
