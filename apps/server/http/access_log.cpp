#include "server/http/access_log.h"

#include <fmt/core.h>

#include <cerrno>
#include <ctime>
#include <system_error>

#include "server/json.h"
#include "sluice/error.h"

namespace sluice::server::http {

AccessLog::AccessLog(const std::string& path) {
  if (path.empty()) return;
  if (path == "-") {
    file_ = std::shared_ptr<std::FILE>(stderr, [](std::FILE*) {});
    return;
  }
  std::FILE* file = std::fopen(path.c_str(), "a");
  if (file == nullptr)
    throw Error(ErrorKind::input, fmt::format("cannot write the access log '{}': {}", path,
                                              std::generic_category().message(errno)));
  file_ = std::shared_ptr<std::FILE>(file, std::fclose);
}

void AccessLog::write(const AccessEntry& entry) {
  if (!file_) return;
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char time[32];
  std::strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%SZ", &utc);
  // As JSON, so that nothing a client sends can forge a line.
  const Json line{{"time", time},           {"id", entry.id},         {"address", entry.address},
                  {"client", entry.client}, {"method", entry.method}, {"path", entry.path},
                  {"status", entry.status}, {"bytes", entry.bytes},   {"seconds", entry.seconds}};
  fmt::print(file_.get(), "{}\n", dump(line));
  std::fflush(file_.get());
}

}  // namespace sluice::server::http
