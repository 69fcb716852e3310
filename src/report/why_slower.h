#pragma once

#include <cstdint>
#include <string>

namespace penstock::report {

/// What a step takes: as planned, or as measured. What is not known is 0.
struct Figures {
  double step_seconds = 0;
  double compute_seconds = 0;           ///< in kernels
  double stall_seconds = 0;             ///< waiting for the tier
  double read_bytes_per_second = 0;     ///< of the tier, while it reads
  double written_bytes_per_second = 0;  ///< of the tier, while it writes
  double memory_pressure = 0;           ///< share of the time that something on the machine waited for memory
  std::int64_t major_faults = 0;        ///< pages of this process that had to be read from a disk, per step
  double cpu_share = 1;                 ///< of the compute threads' time in kernels, what they really ran
};

/// Why a step takes longer than planned: one sentence with the numbers and what it comes from, as far as the
/// figures tell. Empty if it does not, or hardly.
std::string why_slower(const Figures& planned, const Figures& measured);

}  // namespace penstock::report
