// The supported formats of strings, as regular expressions.
#pragma once

#include <optional>
#include <string_view>

namespace sluice::grammar::schema {

struct Format {
  enum class Kind { pattern, annotation, unsupported } kind;
  std::string_view pattern;  // for the complete string
};

// Names that no standard defines do not constrain the string.
Format find_format(std::string_view name);

}  // namespace sluice::grammar::schema
