// The one exception type of the library.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace sluice {

// What went wrong, coarse enough to act on: a server maps these to status codes, the command line to exit
// codes.
enum class ErrorKind {
  input,        // the caller passed something the contract does not allow
  checkpoint,   // a model file is damaged, incomplete or inconsistent
  unsupported,  // valid, but this build or machine cannot do it
  resource,     // memory, disk or device is exhausted or lost
  busy,         // no room or time for it now; it may work later
  internal,     // a defect of sluice itself
};

std::string_view name(ErrorKind kind);

// The message is one sentence that says what was wrong, where, and what would be right.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace sluice
