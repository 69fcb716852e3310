#include <fmt/format.h>

#include "base/error.h"
#include "dist/communicator.h"

namespace penstock::dist {

std::unique_ptr<Communicator> join() {
  const Launch launch = launch_from_environment();
  if (launch.size > 1) {
    throw UserError(
        fmt::format("{} ranks were started, but this penstock was built without MPI; install libopenmpi-dev "
                    "and build again",
                    launch.size));
  }
  return make_alone();
}

}  // namespace penstock::dist
