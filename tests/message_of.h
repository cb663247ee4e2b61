#pragma once

#include <exception>
#include <string>

namespace sluice {

// The message of an exception; empty if there is none.
inline std::string message_of(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const std::exception& caught) {
    return caught.what();
  }
  return {};
}

}  // namespace sluice
