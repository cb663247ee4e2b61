// An optional log with one line per request.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace sluice::server::http {

struct AccessEntry {
  std::string id, address, client, method, path;
  int status = 0;
  std::uint64_t bytes = 0;  // of the answer
  double seconds = 0;
};

class AccessLog {
 public:
  // A file to append to, "-" for standard error, or empty for none. Throws Error if it cannot be written.
  explicit AccessLog(const std::string& path);

  void write(const AccessEntry& entry);

 private:
  std::shared_ptr<std::FILE> file_;
};

}  // namespace sluice::server::http
