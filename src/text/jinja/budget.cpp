#include "text/jinja/budget.h"

namespace sluice::text::jinja {

void fault_formatted(fmt::string_view format, fmt::format_args args) {
  throw Fault(fmt::vformat(format, args));
}

}  // namespace sluice::text::jinja
