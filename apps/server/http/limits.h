// Limits on what a client may send, and how long it may take.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace sluice::server::http {

struct Limits {
  std::uint32_t header_bytes = 64 << 10;
  std::uint64_t body_bytes = 32 << 20;
  std::size_t connections = 4096;
  std::chrono::seconds header_time{10};  // from the first byte of a request to the end of its headers
  std::chrono::seconds body_time{60};
  std::chrono::seconds idle_time{75};  // between two requests of a connection
  std::chrono::seconds send_time{30};  // for one write to a client that does not read
};

}  // namespace sluice::server::http
