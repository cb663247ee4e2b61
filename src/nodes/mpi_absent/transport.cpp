// For builds without MPI.
#include "nodes/transport.h"
#include "base/error.h"

namespace sluice::nodes {

std::unique_ptr<Transport> join_mpi() {
  fail(ErrorKind::unsupported,
       "built without MPI: install libopenmpi-dev and openmpi-bin and build again with -D SLUICE_MPI=ON");
}

}  // namespace sluice::nodes
