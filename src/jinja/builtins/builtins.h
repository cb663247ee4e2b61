// Filters, tests and methods: how they are found by name, the tables they stand in, and the operations they
// share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jinja/runtime.h"

namespace sluice::jinja::builtins {

using Builtin = Value (*)(Runtime&, const Value& subject, const Call&);

const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
// The method of that name for the subject's Python type.
const Builtin* find_method(const Value& subject, std::string_view name);

struct NamedBuiltin {
  std::string_view name;
  Builtin body;
};
using Builtins = std::vector<NamedBuiltin>;

const Builtins& text_filters();
const Builtins& sequence_filters();
const Builtins& selection_filters();
const Builtins& number_filters();
const Builtins& markup_filters();
const Builtins& layout_filters();
const Builtins& pretty_print_filters();
const Builtins& urlize_filters();
const Builtins& text_methods();
const Builtins& split_methods();

std::string capitalize(std::string_view text);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);
// Replaces up to `count` occurrences; all of them if it is negative.
std::string replace(Budget& budget, std::string_view text, std::string_view old, std::string_view with,
                    std::int64_t count);

// The value at a path like "a.b.0", or the item itself without a path.
Value at_path(Runtime& runtime, Value item, const Value* path, const Value* missing = nullptr);
// Strings in lower case, other values unchanged.
Value ignore_case(const Value& value);

}  // namespace sluice::jinja::builtins
