#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "data/safetensors.h"

namespace penstock {
namespace {

/// The header's text, and in data_bytes the size of what follows.
std::string make_header(const std::vector<SafetensorsSpec>& tensors,
                        const std::map<std::string, std::string>& metadata, std::int64_t& data_bytes) {
  nlohmann::ordered_json root;
  if (!metadata.empty()) root["__metadata__"] = metadata;
  data_bytes = 0;
  for (const SafetensorsSpec& tensor : tensors) {
    const std::int64_t element_bytes = safetensors_element_bytes(tensor.type);
    require(element_bytes != 0, "unknown safetensors type");
    require(data_bytes % element_bytes == 0, "declare safetensors of larger elements first");
    require(!root.contains(tensor.name), "two safetensors of one name");
    std::int64_t bytes = element_bytes;
    for (const std::int64_t size : tensor.shape) bytes *= size;
    root[tensor.name] = {
        {"dtype", tensor.type}, {"shape", tensor.shape}, {"data_offsets", {data_bytes, data_bytes + bytes}}};
    data_bytes += bytes;
  }
  std::string text = root.dump();
  // The data begins at a multiple of 8.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::string path, const std::vector<SafetensorsSpec>& tensors,
                                     const std::map<std::string, std::string>& metadata)
    : path_(std::move(path)), temporary_path_(fmt::format("{}.partial-{}", path_, ::getpid())) {
  const std::string header = make_header(tensors, metadata, bytes_left_);
  descriptor_ = ::open(temporary_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw UserError(fmt::format("cannot write {}: {}", path_, std::strerror(errno)));
  try {
    const std::uint64_t header_bytes = header.size();
    write(&header_bytes, sizeof(header_bytes));
    write(header.data(), static_cast<std::int64_t>(header.size()));
  } catch (...) {
    ::close(descriptor_);
    ::unlink(temporary_path_.c_str());
    throw;
  }
}

SafetensorsWriter::~SafetensorsWriter() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_path_.c_str());
}

void SafetensorsWriter::fail(const char* doing) const {
  throw RunError(fmt::format("cannot {} {}: {}", doing, path_, std::strerror(errno)));
}

void SafetensorsWriter::write(const void* data, std::int64_t size_bytes) {
  const auto* at = static_cast<const char*>(data);
  while (size_bytes > 0) {
    const ssize_t put = ::write(descriptor_, at, static_cast<std::size_t>(size_bytes));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("write");
    at += put;
    size_bytes -= put;
  }
}

void SafetensorsWriter::append(const void* data, std::int64_t size_bytes) {
  require(descriptor_ >= 0 && size_bytes <= bytes_left_, "more safetensors data than was declared");
  write(data, size_bytes);
  bytes_left_ -= size_bytes;
}

void SafetensorsWriter::commit() {
  require(descriptor_ >= 0 && bytes_left_ == 0, "less safetensors data than was declared");
  if (::fsync(descriptor_) != 0) fail("sync");
  if (std::rename(temporary_path_.c_str(), path_.c_str()) != 0) fail("rename");
  ::close(std::exchange(descriptor_, -1));
  // The new name itself lasts only once its folder is synced; not every file system can.
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  const int folder_descriptor =
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_descriptor < 0) return;
  ::fsync(folder_descriptor);
  ::close(folder_descriptor);
}

}  // namespace penstock
