#pragma once

#include <cstdint>
#include <string>

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
};

/// Writes the state to DIR/checkpoint.safetensors (made anew, synced, renamed); makes the folder if need be.
void write_checkpoint(const std::string& dir, const CheckpointInfo& info, StateIo& state);

/// The info alone. Throws UserError if there is no checkpoint or it is damaged.
CheckpointInfo read_checkpoint_info(const std::string& dir);

/// Fills the state. Throws UserError if the checkpoint is of another model or optimizer, or damaged (every
/// tensor carries a checksum). `with_optimizer` false: takes parameters and statistics only.
void read_checkpoint(const std::string& dir, StateIo& state, bool with_optimizer);

/// Writes parameters and statistics as a state dict that PyTorch loads.
void save_weights(const std::string& path, StateIo& state);

/// Fills parameters and statistics from a safetensors state dict. Throws UserError that names tensors that
/// are missing, not known, or of another shape; nothing is changed then.
void load_weights(const std::string& path, StateIo& state);

}  // namespace penstock::training
