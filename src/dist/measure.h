#pragma once

#include "dist/communicator.h"

namespace penstock::dist {

/// How fast the ranks exchange arrays: an exchange in which each rank sends `b` bytes takes latency_seconds +
/// b / bandwidth.
struct NetworkSpeed {
  double bandwidth = 0;  ///< bytes per second, each way
  double latency_seconds = 0;
};

/// Measures it with a few MB; all ranks call it, and all get the same answer. Zeros where there is one rank.
NetworkSpeed measure_network(Communicator& communicator);

}  // namespace penstock::dist
