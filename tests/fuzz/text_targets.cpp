#include "fuzz/memory_folder.h"
#include "fuzz/targets.h"
#include "models/text_models.h"

namespace penstock::fuzz {
namespace {

constexpr const char* kPath = "a/config.json";

models::TextOptions short_samples(std::int64_t positions) {
  models::TextOptions options;
  options.sequence = std::min<std::int64_t>(positions, 8);
  return options;
}

}  // namespace

/// A config.json of the hub; of one with few layers, the network too.
void read_config(const std::string& input) {
  MemoryFolder folder;
  folder.put(kPath, input);
  read_all(folder, [&] {
    try {
      const models::Gpt2Config gpt2 = models::read_gpt2_config(kPath);
      if (gpt2.layers <= 4) models::build_gpt2("gpt2", gpt2, short_samples(gpt2.positions));
      return;
    } catch (const UserError&) {
      // It may be of the other kind.
    }
    const models::LlamaConfig llama = models::read_llama_config(kPath);
    if (llama.layers <= 4) models::build_llama("llama", llama, short_samples(llama.positions));
  });
}

}  // namespace penstock::fuzz
