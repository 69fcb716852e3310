#include "session/checkpoint.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "data/safetensors.h"
#include "data/weight_files.h"
#include "penstock/session.h"

namespace penstock::session {
namespace {

bool is_weight(const StateEntry& entry) {
  return entry.role == ir::Role::parameter || entry.role == ir::Role::buffer;
}

/// Buffers of torch modules that Penstock has no use for: counters, masks, frequencies of positions.
bool is_ignored(const std::string& name) {
  for (const char* buffer :
       {"num_batches_tracked", ".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq"}) {
    if (name.ends_with(buffer)) return true;
  }
  return false;
}

/// Whether a tensor of a file is one of `known` names, or, in a network whose output layer shares the
/// embedding's weights, that output layer.
bool is_known(const std::string& name, const std::set<std::string>& known) {
  for (const std::string& spelling : WeightFiles::spellings(name)) {
    if (known.contains(spelling)) return true;
  }
  return name == "lm_head.weight" &&
         (known.contains("transformer.wte.weight") || known.contains("model.embed_tokens.weight"));
}

/// Throws UserError unless the file at `path` has exactly the tensors of the state that `wanted` says, in
/// their shapes.
template <typename File, typename Wanted>
void check_names(const File& file, const std::vector<std::string>& names, const StateIo& state,
                 const Wanted& wanted, bool refuse_others) {
  std::vector<std::string> missing;
  std::set<std::string> known;
  for (const StateEntry& entry : state.entries()) {
    known.insert(entry.name);
    if (!wanted(entry)) continue;
    const SafetensorsEntry* found = file.find(entry.name);
    if (found == nullptr) {
      missing.push_back(entry.name);
    } else if (found->shape != entry.shape.dims()) {
      throw UserError(fmt::format("'{}': tensor '{}' has the shape {}, this network needs {}", file.path(),
                                  entry.name, ir::Shape(found->shape).to_string(), entry.shape.to_string()));
    }
  }
  if (!missing.empty()) {
    throw UserError(fmt::format("'{}': {} tensors of this network are missing, such as '{}'", file.path(),
                                missing.size(), missing.front()));
  }
  std::vector<std::string> extra;
  for (const std::string& name : names) {
    if (!is_known(name, known) && !is_ignored(name)) extra.push_back(name);
  }
  if (refuse_others && !extra.empty()) {
    throw UserError(
        fmt::format("'{}': {} tensors are not of this network, such as '{}'; is it of another model?",
                    file.path(), extra.size(), printable(extra.front())));
  }
}

}  // namespace

void write_checkpoint(const std::string& dir, const CheckpointHeader& header, StateIo& state, int keep) {
  std::vector<CheckpointTensor> tensors;
  for (const StateEntry& entry : state.entries()) tensors.push_back({entry.name, entry.shape.dims()});
  CheckpointWriter writer(dir, header, tensors, keep);
  for (const StateEntry& entry : state.entries()) {
    state.read(entry, [&](const float* values) { writer.append(values); });
  }
  writer.commit();
}

CheckpointHeader read_checkpoint(const std::string& dir, StateIo& state, bool with_optimizer) {
  const CheckpointReader reader = CheckpointReader::open(dir);
  const auto wanted = [&](const StateEntry& entry) { return with_optimizer || is_weight(entry); };
  check_names(reader, reader.names(), state, wanted, with_optimizer);
  for (const StateEntry& entry : state.entries()) {
    if (wanted(entry)) state.write(entry, [&](float* to) { reader.read(*reader.find(entry.name), to); });
  }
  return reader.header();
}

void save_weights(const std::string& path, StateIo& state) {
  std::vector<SafetensorsSpec> specs;
  for (const StateEntry& entry : state.entries()) {
    if (is_weight(entry)) specs.push_back({entry.name, "F32", entry.shape.dims()});
  }
  SafetensorsWriter writer(path, specs);
  for (const StateEntry& entry : state.entries()) {
    if (is_weight(entry))
      state.read(entry, [&](const float* values) { writer.append(values, entry.size_bytes()); });
  }
  writer.commit();
}

void load_weights(const std::string& path, StateIo& state) {
  const WeightFiles file = WeightFiles::open(path);
  check_names(file, file.names(), state, is_weight, true);
  for (const StateEntry& entry : state.entries()) {
    if (!is_weight(entry)) continue;
    state.write(entry, [&](float* to) { file.read_float(entry.name, to, 0, entry.shape.elements()); });
  }
}

}  // namespace penstock::session

namespace penstock {

CheckpointFacts checkpoint_facts(const std::string& dir) {
  const CheckpointReader reader = CheckpointReader::open(dir);
  return {reader.header().step, reader.header().seed, reader.header().facts};
}

}  // namespace penstock
