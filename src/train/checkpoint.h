#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "data/checkpoint_file.h"
#include "data/sampler.h"
#include "train/state_io.h"

namespace penstock::training {

/// What a checkpoint says beside the state's values.
struct CheckpointInfo {
  std::string model;
  std::string optimizer;
  std::string data;
  std::int64_t batch = 0;
  std::int64_t step = 0;  ///< steps done
  DataPosition position;  ///< of the next batch
  std::uint64_t seed = 0;
  /// Whatever else is to be compared when a run goes on: learning rate, schedule, shuffle, image size.
  std::map<std::string, std::string> settings;
};

/// Writes the state to DIR/checkpoint.safetensors; up to keep - 1 earlier ones stay beside it. See
/// CheckpointWriter, which also refuses a state that has diverged.
void write_checkpoint(const std::string& dir, const CheckpointInfo& info, StateIo& state, int keep = 1);

/// What an open checkpoint says. Throws UserError if it is damaged.
CheckpointInfo checkpoint_info(const CheckpointReader& reader);

/// Fills the state. Throws UserError if the checkpoint is of another model or optimizer, or damaged (header
/// and tensors carry checksums). `with_optimizer` false: takes parameters and statistics only.
void read_checkpoint(const CheckpointReader& reader, StateIo& state, bool with_optimizer);

/// The same for the newest checkpoint in a folder, each opening it anew.
CheckpointInfo read_checkpoint_info(const std::string& dir);
void read_checkpoint(const std::string& dir, StateIo& state, bool with_optimizer);

/// Writes parameters and statistics as a state dict that PyTorch loads.
void save_weights(const std::string& path, StateIo& state);

/// Fills parameters and statistics from a safetensors state dict. Throws UserError that names tensors that
/// are missing, not known, or of another shape; nothing is changed then.
void load_weights(const std::string& path, StateIo& state);

}  // namespace penstock::training
