#include "dist/mpi/world.h"

#include <fmt/format.h>

#include <string>

#include "base/error.h"

namespace penstock::dist {

void check_mpi(int code) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw RunError(fmt::format("a transfer between ranks failed: {}",
                             std::string(text, static_cast<std::size_t>(length))));
}

World::World() {
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided));
  if (provided < MPI_THREAD_FUNNELED) throw RunError("this MPI cannot be used beside threads");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size_));
  MPI_Comm local = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local));
  check_mpi(MPI_Comm_size(local, &local_size_));
  check_mpi(MPI_Comm_free(&local));
}

World::~World() {
  MPI_Finalize();
}

MPI_Request World::send(const void* data, std::int64_t size_bytes, int to, int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Isend(data, static_cast<int>(size_bytes), MPI_BYTE, to, tag, MPI_COMM_WORLD, &request));
  return request;
}

MPI_Request World::receive(void* data, std::int64_t size_bytes, int from, int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Irecv(data, static_cast<int>(size_bytes), MPI_BYTE, from, tag, MPI_COMM_WORLD, &request));
  return request;
}

}  // namespace penstock::dist
