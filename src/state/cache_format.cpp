#include "state/cache_format.h"

#include "base/error.h"

namespace sluice::state {

void check_packed_width(std::int64_t width) {
  if (width < 32 || width > 1024 || (width & (width - 1)) != 0)
    fail(ErrorKind::unsupported,
         "packed caches need rows whose width is a power of two from 32 to 1024, this model's are {} wide; "
         "choose a cache of bf16 or f32",
         width);
}

}  // namespace sluice::state
