#pragma once

#include <string>

#include "data/checkpoint_file.h"
#include "session/state_io.h"

namespace penstock::session {

/// Writes the state to DIR/checkpoint.safetensors; up to keep - 1 earlier ones stay beside it. See
/// CheckpointWriter, which also refuses a state that has diverged.
void write_checkpoint(const std::string& dir, const CheckpointHeader& header, StateIo& state, int keep = 1);

/// Fills the state from the newest checkpoint in a folder. Throws UserError if it is of another model or
/// optimizer, or damaged (header and tensors carry checksums). `with_optimizer` false: takes parameters and
/// statistics only.
CheckpointHeader read_checkpoint(const std::string& dir, StateIo& state, bool with_optimizer);

/// Writes parameters and statistics as a state dict that PyTorch loads.
void save_weights(const std::string& path, StateIo& state);

/// Fills parameters and statistics from a safetensors state dict. Throws UserError that names tensors that
/// are missing, not known, or of another shape; nothing is changed then.
void load_weights(const std::string& path, StateIo& state);

}  // namespace penstock::session
