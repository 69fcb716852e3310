#pragma once

#include <string>
#include <vector>

namespace penstock::fuzz {

/// Something that reads what anybody may have written. Any input must be taken or refused by an error of ours
/// (UserError, RunError): no crash, no hang, no other exception, no memory that grows beyond a bound, no file
/// left open.
struct Target {
  const char* name;
  void (*read)(const std::string& input);
};

const std::vector<Target>& targets();

/// Runs one input; throws InternalError for what must not be.
void run(const Target& target, const std::string& input);

// By file: data_targets.cpp, image_targets.cpp, tensor_targets.cpp, plan_targets.cpp, option_targets.cpp,
// onnx_targets.cpp, text_targets.cpp.
void read_idx(const std::string& input);
void read_cifar10(const std::string& input);
void read_npy(const std::string& input);
void read_tokens(const std::string& input);
void read_image(const std::string& input);
void read_safetensors(const std::string& input);
void read_checkpoint(const std::string& input);
void read_plan(const std::string& input);
void read_profile(const std::string& input);
void read_option(const std::string& input);
void read_onnx(const std::string& input);
void read_config(const std::string& input);

}  // namespace penstock::fuzz
