#include "hub/download.h"

#include <fmt/core.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "sluice/error.h"
#include "terminal/signals.h"

namespace sluice::cli::hub {

namespace {

namespace fs = std::filesystem;

constexpr int kMostAttempts = 5;  // in a row without progress
constexpr std::size_t kBlock = std::size_t{1} << 20;
constexpr long kWhole = 200;
constexpr long kPart = 206;
constexpr long kNoSuchPart = 416;

// For temporary failures: the hub is busy, or does not have that part.
bool is_worth_another_attempt(long status) {
  return status == 408 || status == kNoSuchPart || status == 429 || status >= 500;
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File open_file(const fs::path& path, const char* mode) {
  return {std::fopen(path.c_str(), mode), std::fclose};
}

[[noreturn]] void fail_to_write(const fs::path& path) {
  const int code = errno;
  throw Error(ErrorKind::resource,
              fmt::format("cannot write '{}': {}", path.string(), std::generic_category().message(code)));
}

std::uint64_t size_of(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

// The checksum of a complete file. `each` is called for every block.
std::string checksum_of(const fs::path& path, const RemoteFile& file,
                        const std::function<void(std::uint64_t)>& each) {
  const File opened = open_file(path, "rb");
  if (opened == nullptr) return {};
  transfer::Checksum checksum = file.start();
  std::vector<char> block(kBlock);
  for (std::size_t count = 0; (count = std::fread(block.data(), 1, block.size(), opened.get())) > 0;) {
    checksum.add({block.data(), count});
    each(count);
    terminal::stop_if_interrupted();
  }
  return checksum.finish();
}

// Waits longer after each attempt, and stops at an interrupt.
void pause(int attempt) {
  using namespace std::chrono_literals;
  for (int tenth = 0; tenth < (5 << (attempt - 1)); ++tenth) {
    terminal::stop_if_interrupted();
    std::this_thread::sleep_for(100ms);
  }
}

}  // namespace

Download::Download(Host host, Repository repository, std::function<void(const DownloadProgress&)> show)
    : host_(std::move(host)), repository_(std::move(repository)), show_(std::move(show)) {
  progress_.all = repository_.bytes();
}

void Download::add(std::uint64_t bytes, const RemoteFile& file) {
  progress_.done += bytes;
  progress_.file = file.name;
  show_(progress_);
}

bool Download::is_there(const fs::path& path, const RemoteFile& file) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) || size_of(path) != file.bytes) return false;
  const std::uint64_t before = progress_.done;
  const std::string found = checksum_of(path, file, [&](std::uint64_t bytes) { add(bytes, file); });
  if (found == file.checksum) return true;
  progress_.done = before;
  return false;
}

bool Download::is_whole(const fs::path& folder) {
  progress_.done = 0;
  for (const RemoteFile& file : repository_.files)
    if (!is_there(folder / file.name, file)) return false;
  return true;
}

std::string Download::get_rest(const fs::path& part, const RemoteFile& file) {
  const transfer::Request request{repository_.url_of(host_, file), host_.token, size_of(part)};
  File opened(nullptr, std::fclose);
  std::uint64_t size = request.from;
  const auto begin = [&](long status) {
    if (status == kWhole) {  // from the start, whatever was requested
      progress_.done -= size;
      size = 0;
    }
    opened = open_file(part, status == kWhole ? "wb" : "ab");
    if (opened == nullptr) fail_to_write(part);
  };
  const transfer::Result result = transfer::get(request, [&](long status, std::string_view bytes) {
    if (status != kWhole && status != kPart) return true;  // the body is an error message
    if (opened == nullptr) begin(status);
    if (size + bytes.size() > file.bytes)
      throw Error(ErrorKind::resource,
                  fmt::format("the hub sends more bytes for '{}' than it announced", file.name));
    if (std::fwrite(bytes.data(), 1, bytes.size(), opened.get()) != bytes.size()) fail_to_write(part);
    size += bytes.size();
    received_ += bytes.size();
    add(bytes.size(), file);
    return true;
  });
  if (opened != nullptr && std::fclose(opened.release()) != 0) fail_to_write(part);
  if (result.status == kNoSuchPart) fs::remove(part);
  if (result.status == 0 || result.status == kWhole || result.status == kPart)
    return result.trouble.empty() && size != file.bytes ? "the connection ended too early" : result.trouble;
  const std::string trouble = fmt::format("the hub answers with status {}", result.status);
  if (is_worth_another_attempt(result.status)) return trouble;
  throw Error(ErrorKind::input, fmt::format("cannot get '{}': {}", file.name, trouble));
}

void Download::get(const fs::path& folder, const RemoteFile& file) {
  // Named after checksum and file, so that a later version of the file does not continue an earlier one.
  const fs::path part = folder / fmt::format("{}.{}.part", file.name, file.checksum.substr(0, 16));
  const std::uint64_t before = progress_.done;
  if (size_of(part) > file.bytes) fs::remove(part);
  bool resumed = size_of(part) > 0;
  for (int idle = 0;;) {
    progress_.done = before + size_of(part);
    const std::uint64_t received = received_;
    const std::string trouble = size_of(part) == file.bytes && file.bytes > 0 ? "" : get_rest(part, file);
    if (trouble.empty()) {
      if (file.bytes == 0 && open_file(part, "wb") == nullptr) fail_to_write(part);
      if (checksum_of(part, file, [](std::uint64_t) {}) == file.checksum) break;
      fs::remove(part);
      if (!resumed)
        throw Error(ErrorKind::resource,
                    fmt::format("the downloaded '{}' does not match the hub's checksum", file.name));
      resumed = false;  // an earlier attempt's data may be wrong: try once more from the start
      continue;
    }
    idle = received_ > received ? 1 : idle + 1;
    if (idle == kMostAttempts)
      throw Error(ErrorKind::resource, fmt::format("cannot get '{}': {}", file.name, trouble));
    pause(idle);
  }
  progress_.done = before + file.bytes;
  fs::rename(part, folder / file.name);
}

std::uint64_t Download::fill(const fs::path& folder) {
  progress_.done = 0;
  received_ = 0;
  for (const RemoteFile& file : repository_.files)
    if (!is_there(folder / file.name, file)) get(folder, file);
  return received_;
}

}  // namespace sluice::cli::hub
