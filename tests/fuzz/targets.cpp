#include "fuzz/targets.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace penstock::fuzz {

const std::vector<Target>& targets() {
  static const std::vector<Target> all{
      {"idx", read_idx},
      {"cifar10", read_cifar10},
      {"npy", read_npy},
      {"tokens", read_tokens},
      {"png", read_image},
      {"jpeg", read_image},
      {"plan", read_plan},
      {"safetensors", read_safetensors},
      {"checkpoint", read_checkpoint},
      {"profile", read_profile},
      {"option", read_option},
      {"onnx", read_onnx},
      {"config", read_config},
  };
  return all;
}

void run(const Target& target, const std::string& input) {
  const auto check_message = [](const char* message) {
    require(std::strchr(message, '\n') == nullptr, "a message of several lines");
    require(std::strlen(message) < 4000, "a message without end");
  };
  try {
    target.read(input);
  } catch (const UserError& error) {
    check_message(error.what());
  } catch (const RunError& error) {
    check_message(error.what());
  }
}

}  // namespace penstock::fuzz

/// What libFuzzer calls; the environment says which target. Anything thrown ends the program.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const penstock::fuzz::Target* target = [] {
    const char* name = std::getenv("PENSTOCK_FUZZ_TARGET");
    for (const penstock::fuzz::Target& each : penstock::fuzz::targets()) {
      if (name != nullptr && std::strcmp(name, each.name) == 0) return &each;
    }
    std::fputs("PENSTOCK_FUZZ_TARGET names no target\n", stderr);
    std::exit(2);
  }();
  penstock::fuzz::run(*target, std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
