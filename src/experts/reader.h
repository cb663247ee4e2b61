// Many reads at once, past the page cache where the system allows it.
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
  int file = 0;  // index of those the reader was made with
  std::uint64_t offset = 0;
  std::byte* to = nullptr;
  std::size_t bytes = 0;
  std::size_t needed = 0;  // fewer are an error: the file ends too early
  std::uint32_t tag = 0;
};

struct Completion {
  std::uint32_t tag = 0;
  std::string error;  // empty: everything arrived
};

class Reader {
 public:
  virtual ~Reader() = default;
  virtual std::string description() const = 0;
  // All of them in flight together; offsets, lengths and addresses are multiples of 4096.
  virtual void start(std::span<const Request> requests) = 0;
  // Waits for the next one to be done; only while some are in flight. Never throws for what a read met.
  virtual Completion wait() = 0;
  // Whether one is done already.
  virtual bool ready() = 0;
  // Whether a file surely holds what it held when it was opened.
  virtual bool unchanged(int) const { return false; }
};

// A file open for reading, without the page cache unless the system refuses that.
struct OpenFile {
  FileDescriptor descriptor;
  bool direct = false;
  // When it was last written to, in nanoseconds; 0 where that was so short before it was opened that the
  // clock of the file system may not tell a later write from it.
  std::int64_t written = 0;

  bool unchanged() const;
};
// Refuses a file whose size is not `bytes`.
OpenFile open_for_reading(const std::filesystem::path& path, std::uint64_t bytes);

using OpenFiles = std::vector<OpenFile>;
// io_uring, or threads that call pread where the system or the build has no io_uring.
std::unique_ptr<Reader> make_reader(OpenFiles files);
std::unique_ptr<Reader> make_thread_reader(OpenFiles files, std::string reason);
// Copies from memory; the "files" are these.
std::unique_ptr<Reader> make_memory_reader(std::vector<std::span<const std::byte>> sources);
// Throws where it cannot be had.
std::unique_ptr<Reader> make_uring_reader(OpenFiles& files);

// What to say about a read that brought `got` bytes, or the error code -got.
std::string read_error(const Request& request, std::int64_t got);

}  // namespace sluice::experts
