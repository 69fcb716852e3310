#pragma once

#include <nanobind/nanobind.h>
#include <penstock/session.h>

#include <atomic>

namespace penstock::python {

/// A session that one thread at a time may call; whoever comes meanwhile is refused, whatever is asked.
struct Engine {
  Session session;
  std::int64_t accumulate;  ///< micro-batches of a step
  std::atomic<bool> busy = false;

  Engine(const Network& network, const Optimizer& optimizer, const SessionOptions& options)
      : session(network, optimizer, options), accumulate(options.accumulate) {}

  /// Calls the session without the interpreter's lock.
  template <typename Body>
  auto call(const Body& body) {
    if (busy.exchange(true)) throw UserError("the session is in use: one thread at a time may call it");
    struct Done {
      std::atomic<bool>& flag;
      ~Done() { flag = false; }
    } const done{busy};
    const nanobind::gil_scoped_release unlocked;
    return body(session);
  }
};

}  // namespace penstock::python
