// Checks an Error: its kind and what its message names.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "sluice/error.h"

namespace sluice {

template <class Function>
void expect_error(ErrorKind kind, std::initializer_list<std::string_view> parts, Function&& function) {
  try {
    function();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(name(error.kind()), name(kind)) << error.what();
    for (const std::string_view part : parts) {
      EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos)
          << "'" << part << "' is not in: " << error.what();
    }
  }
}

}  // namespace sluice
