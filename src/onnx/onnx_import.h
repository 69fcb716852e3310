#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "penstock/network.h"

/// ONNX files as networks. All that can be wrong with a file throws UserError, one line that names the file
/// and the node or tensor.
namespace penstock::onnx {

/// The value of an input as a constant.
struct KnownInput {
  Extents dims;
  std::vector<double> values;
};

/// What the file calls one of its outputs: the network holds scalars as [1] and integers as s32.
struct OutputInfo {
  Extents dims;
  int element_type = 1;  ///< as ONNX numbers types
};

struct ImportOptions {
  std::int64_t batch = 0;  ///< 0: the file's own, or 1 where that is free
  std::map<std::string, std::int64_t> extents =
      {};                        ///< of other free extents, by the names the file gives them
  std::int64_t free_extent = 0;  ///< of all that are still free; 0: they are refused
  /// "": the file's outputs and no loss. "cross_entropy": the first output is logits, and there is an input
  /// `labels` (a Softmax at the end is left out). "output": the first output is the loss. A loss of
  /// NetworkBuilder::element_loss(): between the first output and an input `targets` of its shape.
  std::string loss = {};
  std::vector<std::string> freeze =
      {};  ///< patterns of parameters that are not trained, see Network::freeze()
  /// Inputs that are constants and not given in each step, by name: shapes, axes and the like.
  std::map<std::string, KnownInput> known = {};
};

struct Model;

/// A network and where the first values of its parameters are.
class ImportedModel {
 public:
  ImportedModel(Network network, std::shared_ptr<const Model> model,
                std::map<std::string, std::vector<float>> made,
                std::map<std::string, OutputInfo> outputs = {});

  const Network& network() const { return network_; }
  /// Whether the file has values for a parameter or buffer; the others begin as the network says.
  bool has(const std::string& parameter) const;
  /// By the names of the network's outputs.
  const std::map<std::string, OutputInfo>& outputs() const { return outputs_; }
  /// Elements [begin, begin + count) in row-major order, read from the file in small pieces.
  void read(const std::string& parameter, std::int64_t begin, std::int64_t count, float* to) const;

 private:
  Network network_;
  std::shared_ptr<const Model> model_;
  std::map<std::string, std::vector<float>> made_;   ///< small ones that are not in the file as such
  std::map<std::string, std::size_t> initializers_;  ///< places in the model
  std::map<std::string, OutputInfo> outputs_;
};

/// Whether a path names an ONNX file.
bool is_onnx_path(const std::string& path);

/// Floating-point initializers that feed computation become parameters of the same name, other tensors
/// constants. Opset 6 to the newest.
ImportedModel load(const std::string& path, const ImportOptions& options = {});

/// Lets `use` see all elements of a parameter; false if there is none of that name, whose values then stay as
/// they are. Without `use` it is only asked whether there is.
using ReadWeights =
    std::function<bool(const std::string& parameter, const std::function<void(std::span<const float>)>& use)>;

/// Writes the model of `path_in` with other weights to `path_out`; all else stays byte by byte. External data
/// goes to files of the same names in the folder of `path_out`, which must be another one then.
void save(const std::string& path_in, const std::string& path_out, const ReadWeights& read);

/// Throws what save() would throw because of where the files are, before there is anything to save.
void check_save(const std::string& path_in, const std::string& path_out);

/// Op types that load() knows.
std::vector<std::string> supported_ops();

}  // namespace penstock::onnx
