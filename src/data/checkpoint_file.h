#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/safetensors.h"

namespace penstock {

/// What a checkpoint says beside the values.
struct CheckpointHeader {
  std::int64_t step = 0;  ///< steps done
  std::uint64_t seed = 0;
  /// Whatever else a run goes on from or is to be compared with: position in the data, learning rate,
  /// schedule, image size. Text that is not UTF-8 is escaped (to_utf8()).
  std::map<std::string, std::string> facts;
};

/// A tensor of float32 in a checkpoint.
struct CheckpointTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

/// Writes a checkpoint, a safetensors file with a checksum of its header and of each tensor, to
/// FOLDER/checkpoint.safetensors as AtomicFile does: that name always is the newest complete one. With `keep`
/// above 1, up to keep - 1 earlier ones stay beside it as checkpoint-STEP.safetensors. One thread.
class CheckpointWriter {
 public:
  /// Makes the folder if need be. Throws UserError if it cannot be written, RunError if the disk fails.
  CheckpointWriter(std::string folder, const CheckpointHeader& header,
                   const std::vector<CheckpointTensor>& tensors, int keep = 1);

  /// All values of the next tensor. Throws RunError if one is NaN or infinite: what is diverged replaces no
  /// good checkpoint.
  void append(const float* values);
  /// All tensors are there: the checkpoint has its name from now on.
  void commit();

 private:
  void keep_current() const;
  void remove_oldest() const;

  std::string folder_;
  std::int64_t step_;
  int keep_;
  std::vector<CheckpointTensor> tensors_;
  std::vector<std::uint64_t> checksums_;
  SafetensorsWriter writer_;
};

/// A checkpoint open for reading: header and values are of one file, whoever writes a new one meanwhile. Any
/// thread may read.
class CheckpointReader {
 public:
  /// The newest one of a folder, or a file. Throws UserError if there is none, it is no checkpoint, or its
  /// header is damaged; names the earlier ones that are there.
  static CheckpointReader open(const std::string& folder_or_file);

  const std::string& path() const { return file_.path(); }
  const CheckpointHeader& header() const { return header_; }
  std::size_t tensor_count() const { return file_.tensors().size() - 1; }
  /// Null if there is none of that name. (The last tensor of the file holds the checksums and is not found.)
  const SafetensorsEntry* find(const std::string& name) const;
  /// Names of all tensors, in the order of their data.
  std::vector<std::string> names() const;
  /// All values of a tensor. Throws UserError if its checksum is wrong.
  void read(const SafetensorsEntry& tensor, float* to) const;

 private:
  explicit CheckpointReader(SafetensorsFile file) : file_(std::move(file)) {}
  void read_header();
  void read_checksums();
  [[noreturn]] void damaged(const std::string& why) const;

  SafetensorsFile file_;
  CheckpointHeader header_;
  std::vector<std::uint64_t> checksums_;  ///< by the tensor's place in the file
};

/// Files of earlier checkpoints in a folder (checkpoint-STEP.safetensors) by their step.
std::map<std::int64_t, std::string> earlier_checkpoints(const std::string& folder);

/// One line for each fact that both have and that differs: "learning rate: 0.1 before, 0.2 now".
std::vector<std::string> changed_facts(const std::map<std::string, std::string>& before,
                                       const std::map<std::string, std::string>& now);

}  // namespace penstock
