#include "jinja/budget.h"

namespace sluice::jinja {

void fault_formatted(fmt::string_view format, fmt::format_args args) {
  throw Fault(fmt::vformat(format, args));
}

}  // namespace sluice::jinja
