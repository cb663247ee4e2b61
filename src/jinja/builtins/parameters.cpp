#include "jinja/builtins/parameters.h"

#include <algorithm>

namespace sluice::jinja::builtins {

Parameters::Parameters(const Call& call, std::initializer_list<std::string_view> names,
                       std::size_t required) {
  if (call.args.size() > names.size())
    fault("takes at most {} arguments but {} were given", names.size(), call.args.size());
  for (std::size_t i = 0; i < call.args.size(); ++i) values_[i] = &call.args[i];
  for (const auto& [name, value] : call.named) {
    auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end()) fault("got an unexpected keyword argument '{}'", name);
    auto& slot = values_[known - names.begin()];
    if (slot != nullptr) fault("got multiple values for argument '{}'", name);
    slot = &value;
  }
  for (std::size_t i = 0; i < required; ++i)
    if (values_[i] == nullptr) fault("missing required argument '{}'", names.begin()[i]);
}

bool Parameters::truth(std::size_t i, bool missing) const {
  return values_[i] ? jinja::truth(*values_[i]) : missing;
}

std::int64_t Parameters::integer(std::size_t i, std::int64_t missing) const {
  if (values_[i] == nullptr) return missing;
  require_defined(*values_[i]);
  if (!values_[i]->is_integer())
    fault("'{}' object cannot be interpreted as an integer", type_name(*values_[i]));
  return values_[i]->integer();
}

const std::string& Parameters::text(std::size_t i) const {
  require_defined(*values_[i]);
  if (!values_[i]->is_text()) fault("must be str, not {}", type_name(*values_[i]));
  return values_[i]->text();
}

}  // namespace sluice::jinja::builtins
