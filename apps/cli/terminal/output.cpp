#include "terminal/output.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "json.h"
#include "sluice/error.h"
#include "terminal/terminal.h"

namespace sluice::cli::terminal {

namespace {

[[noreturn]] void fail_to_write() {
  const int code = errno;
  throw Error(ErrorKind::resource,
              fmt::format("cannot write the output: {}", std::generic_category().message(code)));
}

void write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail_to_write();
}

}  // namespace

void guard_standard_streams() {
  // The lowest free number is the missing stream. Opened for reading only, so that writing fails.
  for (int stream = 0; stream <= 2; ++stream)
    if (fcntl(stream, F_GETFD) == -1 && errno == EBADF) {
      const int opened = open("/dev/null", O_RDONLY);
      if (opened > 2) close(opened);
    }
}

void print_json(const nlohmann::ordered_json& json) {
  write(dump(json, 2) + "\n");
}

void print_now(std::string_view text) {
  write(text);
  if (std::fflush(stdout) != 0) fail_to_write();
}

std::string for_stdout(std::string_view text) {
  return is_terminal(stdout) ? printable(text, true) : std::string(text);
}

void write_file(const std::string& path, std::string_view text) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (written && std::rename(temporary.c_str(), path.c_str()) == 0) return;
  const int code = errno;
  std::remove(temporary.c_str());
  throw Error(ErrorKind::input,
              fmt::format("cannot write '{}': {}", path, std::generic_category().message(code)));
}

void flush_output() {
  if (std::ferror(stdout) != 0 || std::fflush(stdout) != 0) fail_to_write();
}

}  // namespace sluice::cli::terminal
