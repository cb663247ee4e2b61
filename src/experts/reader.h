// Many concurrent reads, past the page cache where the system allows it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files/file_descriptor.h"

namespace sluice::experts {

struct Request {
  int file = 0;  // index of a file the reader was made with
  std::uint64_t offset = 0;
  std::byte* to = nullptr;
  std::size_t bytes = 0;
  std::size_t needed = 0;  // fewer bytes are an error: the file is too short
  std::uint32_t tag = 0;
};

struct Completion {
  std::uint32_t tag = 0;
  std::string error;  // empty: success
};

class Reader {
 public:
  virtual ~Reader() = default;
  virtual std::string description() const = 0;
  // Starts all of them at once; offsets, lengths and addresses are multiples of 4096.
  virtual void start(std::span<const Request> requests) = 0;
  // Waits for the next completion; only while some are in flight. Reports a failed read as an error text, not
  // an exception.
  virtual Completion wait() = 0;
  // Whether a completion is available without waiting.
  virtual bool ready() = 0;
  // Whether a file certainly still holds what it held when it was opened.
  virtual bool unchanged(int) const { return false; }
};

// A file open for reading, past the page cache unless the system refuses that.
struct OpenFile {
  files::FileDescriptor descriptor;
  bool direct = false;
  // The modification time in nanoseconds; 0 if it was so shortly before the opening that the file system's
  // clock may not distinguish a later write.
  std::int64_t written = 0;

  bool unchanged() const;
};
// Throws if the file's size is not `bytes`.
OpenFile open_for_reading(const std::filesystem::path& path, std::uint64_t bytes);

using OpenFiles = std::vector<OpenFile>;
// io_uring, or threads that call pread if the system or the build has no io_uring.
std::unique_ptr<Reader> make_reader(OpenFiles files);
std::unique_ptr<Reader> make_thread_reader(OpenFiles files, std::string reason);
// Copies from memory; `sources` take the place of files.
std::unique_ptr<Reader> make_memory_reader(std::vector<std::span<const std::byte>> sources);
// Throws if io_uring is not available.
std::unique_ptr<Reader> make_uring_reader(OpenFiles& files);

// The message for a read that returned `got` bytes, or the error code -got.
std::string read_error(const Request& request, std::int64_t got);

}  // namespace sluice::experts
