#include "base/error.h"

namespace sluice {

std::string_view name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::input:
      return "input";
    case ErrorKind::checkpoint:
      return "checkpoint";
    case ErrorKind::unsupported:
      return "unsupported";
    case ErrorKind::resource:
      return "resource";
    case ErrorKind::busy:
      return "busy";
    case ErrorKind::internal:
      return "internal";
  }
  return "unknown";
}

void fail_formatted(ErrorKind kind, fmt::string_view format, fmt::format_args args) {
  throw Error(kind, fmt::vformat(format, args));
}

}  // namespace sluice
