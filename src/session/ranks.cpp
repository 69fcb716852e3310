#include "penstock/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <new>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "dist/communicator.h"

namespace penstock {
namespace {

/// What went wrong, as a rank tells the others: nothing, or the exit code and the message.
std::string status_of(const std::exception_ptr& error) {
  if (error == nullptr) return {};
  try {
    std::rethrow_exception(error);
  } catch (const UserError& user_error) {
    return std::string("2") + user_error.what();
  } catch (const std::bad_alloc&) {
    return "1out of memory; give the session less of it, or take a smaller batch";
  } catch (const std::exception& other) {
    return std::string("1") + other.what();
  } catch (...) {
    return "1unknown error";
  }
}

/// What each rank says, as numbers. A double is written so that it comes back as it was.
std::vector<double> gather_numbers(dist::Communicator& communicator, double value) {
  std::vector<double> values;
  for (const std::string& text : communicator.all_gather(fmt::format("{:a}", value))) {
    values.push_back(std::strtod(text.c_str(), nullptr));
  }
  return values;
}

int exit_code_of(const std::string& status) {
  return status[0] - '0';
}

}  // namespace

Ranks::Ranks(std::unique_ptr<dist::Communicator> communicator) : communicator_(std::move(communicator)) {}
Ranks::~Ranks() = default;

int Ranks::rank() const {
  return communicator_->rank();
}

int Ranks::size() const {
  return communicator_->size();
}

double Ranks::mean(double value) {
  if (size() == 1) return value;
  const std::vector<double> values = gather_numbers(*communicator_, value);
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::vector<std::int64_t> Ranks::all(std::int64_t value) {
  std::vector<std::int64_t> values;
  for (const std::string& text : communicator_->all_gather(std::to_string(value))) {
    values.push_back(std::strtoll(text.c_str(), nullptr, 10));
  }
  return values;
}

std::int64_t Ranks::sum(std::int64_t value) {
  const std::vector<std::int64_t> values = all(value);
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

void Ranks::together(const std::function<void()>& part) {
  if (size() == 1) return part();
  std::exception_ptr error;
  try {
    part();
  } catch (...) {
    error = std::current_exception();
  }
  const std::vector<std::string> all = communicator_->all_gather(status_of(error));
  const auto first = std::find_if(all.begin(), all.end(), [](const std::string& s) { return !s.empty(); });
  if (first == all.end()) return;
  agreed_ = true;
  const bool everywhere = std::none_of(all.begin(), all.end(), [](const auto& s) { return s.empty(); });
  // What all find wrong each throws as it is, so that its type is not lost.
  if (everywhere) std::rethrow_exception(error);
  const std::string message = fmt::format("rank {}: {}", first - all.begin(), first->substr(1));
  if (exit_code_of(*first) == 2) throw UserError(message);
  throw RunError(message);
}

void Ranks::side_by_side(const std::function<void()>& part,
                         const std::function<void(const std::string&, int)>& on_failure) {
  try {
    part();
  } catch (...) {
    if (size() > 1 && !agreed_ && on_failure) {
      const std::string status = status_of(std::current_exception());
      on_failure(fmt::format("rank {}: {}", rank(), status.substr(1)), exit_code_of(status));
    }
    throw;
  }
}

void Ranks::fail_together(const std::string& message) {
  agreed_ = true;
  throw RunError(message);
}

void Ranks::abort(int exit_code) {
  communicator_->abort(exit_code);
  std::_Exit(exit_code);
}

std::shared_ptr<Ranks> join_ranks() {
  return std::make_shared<Ranks>(dist::join());
}

int launched_rank() {
  return dist::launch_from_environment().rank;
}

}  // namespace penstock
