#include "data/checkpoint_file.h"
#include "data/safetensors.h"
#include "fuzz/memory_folder.h"
#include "fuzz/targets.h"

namespace penstock::fuzz {

void read_safetensors(const std::string& input) {
  MemoryFolder folder;
  folder.put("a", input);
  read_all(folder, [&] {
    const SafetensorsFile file = SafetensorsFile::open("a");
    std::vector<float> values(1 << 16);
    for (const SafetensorsEntry& entry : file.tensors()) {
      require(file.find(entry.name) == &entry, "a tensor is not found by its name");
      const auto count = std::min<std::int64_t>(entry.elements, static_cast<std::int64_t>(values.size()));
      try {
        file.read_float(entry.name, values.data(), entry.elements - count, count);
      } catch (const UserError&) {
        // Of a type that is not converted.
      }
    }
  });
}

void read_checkpoint(const std::string& input) {
  MemoryFolder folder;
  folder.put("a/checkpoint.safetensors", input);
  read_all(folder, [&] {
    const CheckpointReader reader = CheckpointReader::open("a");
    for (const std::string& name : reader.names()) {
      const SafetensorsEntry* tensor = reader.find(name);
      require(tensor != nullptr, "a tensor is not found by its name");
      std::vector<float> values(static_cast<std::size_t>(tensor->size_bytes / 4 + 1));
      reader.read(*tensor, values.data());
    }
  });
}

}  // namespace penstock::fuzz
