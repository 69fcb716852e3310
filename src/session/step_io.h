#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "penstock/session.h"

namespace penstock::session {

/// What goes into one step and what comes out of it. Graph and inputs must outlive it.
class StepIo {
 public:
  /// What becomes of an input that is not given: an error, or zeros, and whatever depends on it is not given
  /// back.
  enum class Missing : std::uint8_t { refuse, leave_out };

  /// Throws UserError where an input is not known, missing, of another type or size, or not a number.
  StepIo(const ir::Graph& graph, const Inputs& inputs, Missing missing);

  void feed(int input, void* to) const;
  void take(int output, const void* from, std::map<std::string, OutputArray>& outputs);
  double loss() const { return loss_; }
  double gradient_norm() const { return gradient_norm_; }

 private:
  void check(std::int32_t number, const InputArray& array) const;
  /// Labels and tokens that a loss or an embedding does not have would be read from beside its tables.
  void check_classes(const std::string& name, const std::vector<std::int32_t>& ports,
                     const InputArray& array) const;
  /// Whatever depends on what is unknown is unknown.
  void follow_unknown();

  const ir::Graph& graph_;
  std::vector<const InputArray*> arrays_;  ///< by input or part; null: not given
  std::vector<bool> unknown_;              ///< by tensor: depends on what was not given
  double loss_ = 0;
  double gradient_norm_ = 0;
};

}  // namespace penstock::session
