// For builds without liburing.
#include "experts/reader.h"
#include "base/error.h"

namespace sluice::experts {

std::unique_ptr<Reader> make_uring_reader(OpenFiles&) {
  fail(ErrorKind::unsupported, "built without liburing");
}

}  // namespace sluice::experts
