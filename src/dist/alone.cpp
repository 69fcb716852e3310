#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "dist/communicator.h"

namespace penstock::dist {
namespace {

class Alone final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int local_size() const override { return 1; }
  std::int64_t growth_bytes() const override { return 0; }

  // The mean of one is what it was.
  void start(int /*ticket*/, Exchange /*exchange*/, float* /*values*/, std::int64_t /*count*/) override {}
  void wait(int /*ticket*/) override {}
  ExchangeStats stats() const override { return {}; }

  std::vector<std::string> all_gather(const std::string& value) override { return {value}; }
  void broadcast(float* /*values*/, std::int64_t /*count*/) override {}
  void gather(const float* own, std::span<const std::int64_t> bounds, float* whole) override {
    require(bounds.size() == 2, "gather: bounds are not given for each rank");
    std::copy_n(own, bounds[1] - bounds[0], whole + bounds[0]);
  }
  [[noreturn]] void abort(int exit_code) override { std::_Exit(exit_code); }
};

}  // namespace

std::unique_ptr<Communicator> make_alone() {
  return std::make_unique<Alone>();
}

}  // namespace penstock::dist
