#pragma once

#include <memory>
#include <new>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "kernels/kernel.h"
#include "lower/lower.h"

namespace penstock::testing {

/// Runs an executable's steps with everything in memory: each storage has bytes of its own for good, kernels
/// run in order. Memory that no op has written yet holds NaNs.
class SimpleRunner {
 public:
  /// The backend is the one that lowered the executable; both must outlive the runner.
  SimpleRunner(const lower::Executable& executable, kernels::Backend& backend);

  /// Sets or reads the state called `name`, in plain order.
  void set_state(const std::string& name, const std::vector<float>& values);
  std::vector<float> state(const std::string& name);
  /// The names of all state, in the graph's order.
  std::vector<std::string> state_names() const;

  void run(const kernels::StepContext& step);

  float loss() const;            ///< of the last step
  std::int32_t correct() const;  ///< evaluation graphs only
  /// The bytes of an output of the last step.
  const std::vector<std::byte>& output(const std::string& name) const;

 private:
  struct Free {
    void operator()(std::byte* data) const { ::operator delete (data, std::align_val_t{64}); }
  };
  using Buffer = std::unique_ptr<std::byte, Free>;

  static Buffer allocate(std::int64_t size_bytes);
  void* address(ir::TensorId id) const;
  const ir::Carried& find(const std::string& name) const;
  void convert(const ir::Tensor& tensor, const ir::Layout& from, const ir::Layout& to, const void* in,
               void* out);

  const lower::Executable& executable_;
  kernels::Backend& backend_;
  std::vector<Buffer> storages_;
  Buffer scratch_;
  std::vector<std::vector<std::byte>> taken_;  ///< by output
};

}  // namespace penstock::testing
