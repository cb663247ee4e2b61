// Binds the arguments of a call to the parameters of a built-in.
#pragma once

#include <array>
#include <initializer_list>
#include <string_view>

#include "jinja/value.h"

namespace sluice::jinja::builtins {

class Parameters {
 public:
  static constexpr std::size_t kMax = 5;

  // The first `required` parameters must be given.
  Parameters(const Call& call, std::initializer_list<std::string_view> names, std::size_t required = 0);

  // Null if the call omits the parameter.
  const Value* find(std::size_t i) const { return values_[i]; }
  // Also null if the call passes none.
  const Value* given(std::size_t i) const {
    return values_[i] && !values_[i]->is_none() ? values_[i] : nullptr;
  }

  const Value& value(std::size_t i) const { return *values_[i]; }
  bool truth(std::size_t i, bool missing) const;
  std::int64_t integer(std::size_t i, std::int64_t missing) const;
  // Must be a string.
  const std::string& text(std::size_t i) const;

 private:
  std::array<const Value*, kMax> values_{};
};

}  // namespace sluice::jinja::builtins
