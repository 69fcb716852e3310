#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "penstock/network.h"

/// ONNX files as networks. All that can be wrong with a file throws UserError, one line that names the file
/// and the node or tensor.
namespace penstock::onnx {

struct ImportOptions {
  std::int64_t batch = 0;  ///< 0: the file's own, or 1 where that is free
  std::map<std::string, std::int64_t> extents =
      {};  ///< of other free extents, by the names the file gives them
  /// "": the file's outputs and no loss. "cross_entropy": the first output is logits, and there is an input
  /// `labels` (a Softmax at the end is left out). "output": the first output is the loss.
  std::string loss = {};
  std::vector<std::string> freeze =
      {};  ///< patterns of parameters that are not trained, see Network::freeze()
};

struct Model;

/// A network and where the first values of its parameters are.
class ImportedModel {
 public:
  ImportedModel(Network network, std::shared_ptr<const Model> model,
                std::map<std::string, std::vector<float>> made);

  const Network& network() const { return network_; }
  /// Whether the file has values for a parameter or buffer; the others begin as the network says.
  bool has(const std::string& parameter) const;
  /// Elements [begin, begin + count) in row-major order, read from the file in small pieces.
  void read(const std::string& parameter, std::int64_t begin, std::int64_t count, float* to) const;

 private:
  Network network_;
  std::shared_ptr<const Model> model_;
  std::map<std::string, std::vector<float>> made_;   ///< small ones that are not in the file as such
  std::map<std::string, std::size_t> initializers_;  ///< places in the model
};

/// Whether a path names an ONNX file.
bool is_onnx_path(const std::string& path);

/// Floating-point initializers that feed computation become parameters of the same name, other tensors
/// constants. Opset 9 to the newest.
ImportedModel load(const std::string& path, const ImportOptions& options = {});

/// Gives elements [begin, begin + count) of a parameter; false if there is none of that name, whose values
/// then stay as they are.
using ReadWeights =
    std::function<bool(const std::string& parameter, std::int64_t begin, std::int64_t count, float* to)>;

/// Writes the model of `path_in` with other weights to `path_out`; all else stays byte by byte. External data
/// goes to files of the same names in the folder of `path_out`, which must be another one then.
void save(const std::string& path_in, const std::string& path_out, const ReadWeights& read);

/// Op types that load() knows.
std::vector<std::string> supported_ops();

}  // namespace penstock::onnx
