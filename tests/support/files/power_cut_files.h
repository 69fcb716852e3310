#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"

namespace penstock::testing {

/// Remembers of one folder what a power cut would leave: the bytes that were synced, under the names that
/// were. Everything that is there at first is on disk.
class PowerCutFiles final : public Files {
 public:
  enum class Loss {
    all,         ///< nothing that was not synced is there
    bytes_only,  ///< names were written of their own accord, the bytes behind them were not
  };

  explicit PowerCutFiles(std::string root);

  int open(const std::string& path, int flags, unsigned mode) override;
  int close(int file) override;
  int sync(int file) override;

  /// Puts the folder into the state after a power cut.
  void cut(Loss loss);

 private:
  /// Names in a folder, with the file behind each; 0 is a folder.
  using Names = std::map<std::string, std::uint64_t>;
  Names names_now(const std::string& folder);
  void remember(const std::string& folder);
  void lay_out(const std::string& folder, Loss loss, std::map<std::string, std::string>& files,
               std::vector<std::string>& folders);

  const std::string root_;
  std::map<int, std::string> open_;
  std::map<std::string, Names> names_;          ///< by folder
  std::map<std::uint64_t, std::string> bytes_;  ///< by file
};

}  // namespace penstock::testing
