#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace penstock {

enum class DType : std::uint8_t { f32, s32, u8 };

struct ModelOptions {
  std::int64_t batch = 1;
  std::int64_t channels = 0;    ///< 0: the model's default
  std::int64_t image_size = 0;  ///< 0: the model's default; for volumes the edge of the cube
  std::int64_t classes = 0;     ///< 0: the model's default
  double width = 1;     ///< multiplies every channel count inside the network: small instances for tests
  bool dropout = true;  ///< false: leaves dropout layers out
};

class Network {
 public:
  struct Impl;
  explicit Network(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  static Network model(const std::string& name, const ModelOptions& options = {});
  const std::string& name() const;
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace penstock
