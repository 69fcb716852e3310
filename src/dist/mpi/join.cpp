#include <fmt/format.h>

#include "base/error.h"
#include "dist/communicator.h"
#include "dist/mpi/mpi_communicator.h"

namespace penstock::dist {

std::unique_ptr<Communicator> join() {
  // MPI takes a third of a second and some memory: only where there is somebody to talk to.
  const Launch launch = launch_from_environment();
  if (!launch.launched) return make_alone();
  auto communicator = std::make_unique<MpiCommunicator>();
  if (communicator->size() != launch.size) {
    throw UserError(
        fmt::format("the launcher started {} ranks, but they find {} of them: it belongs to another MPI than "
                    "this penstock, which was built with Open MPI; start it with Open MPI's mpirun",
                    launch.size, communicator->size()));
  }
  return communicator;
}

}  // namespace penstock::dist
