#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "dist/communicator.h"

namespace penstock::dist {
namespace {

std::optional<int> number(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc() || stop != end || value < 0) return std::nullopt;
  return value;
}

}  // namespace

Launch launch_from_environment() {
  // Open MPI's mpirun, then what other launchers set. A batch system's own variables say nothing about
  // whether this very process was started as a rank, so they are not looked at.
  constexpr const char* kVariables[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                           {"PMI_RANK", "PMI_SIZE"}};
  for (const auto& [rank_variable, size_variable] : kVariables) {
    const std::optional<int> rank = number(rank_variable);
    const std::optional<int> size = number(size_variable);
    if (rank && size && *size >= 1 && *rank < *size) return {*rank, *size, true};
  }
  return {};
}

}  // namespace penstock::dist
