#include "dist/communicator.h"
#include "dist/mpi/mpi_communicator.h"

namespace penstock::dist {

std::unique_ptr<Communicator> join() {
  // MPI takes a third of a second and some memory: only where there is somebody to talk to.
  if (!launch_from_environment().launched) return make_alone();
  return std::make_unique<MpiCommunicator>();
}

}  // namespace penstock::dist
