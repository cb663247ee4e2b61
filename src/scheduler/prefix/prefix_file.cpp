#include "scheduler/prefix/prefix_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/error.h"
#include "base/files/file_descriptor.h"
#include "base/files/file_writer.h"
#include "base/integer_cast.h"
#include "experts/fingerprint.h"
#include "scheduler/prompt_budget.h"

namespace sluice::scheduler::prefix {

namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

constexpr std::array<char, 8> kMagic = {'S', 'L', 'U', 'I', 'C', 'E', 'P', 'F'};
constexpr std::uint32_t kFormat = 1;

struct Head {
  std::array<char, 8> magic = kMagic;
  std::uint32_t format = kFormat;
  std::uint32_t kind = 0;
  std::uint64_t fingerprint = 0;
  Salt salt = {};
  std::uint64_t tick = 0;
  std::uint64_t gain = 0;
  std::uint64_t begin = 0;
  std::uint64_t ids = 0;
  std::uint64_t blocks = 0;
  std::uint64_t block_bytes = 0;
  std::uint64_t checksum = 0;  // of the head with 0 here, the ids and the blocks' checksums
};
static_assert(sizeof(Head) == 96);

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& items) {
  return std::as_bytes(std::span(items));
}

std::span<const std::byte> bytes_of(const Head& head) {
  return std::as_bytes(std::span(&head, 1));
}

std::uint64_t checksum_of(Head head, const PrefixFile& file) {
  head.checksum = 0;
  const std::uint64_t seed = experts::fingerprint(bytes_of(head));
  return experts::fingerprint(bytes_of(file.checksums), experts::fingerprint(bytes_of(file.ids), seed));
}

Head head_of(const PrefixFile& file) {
  Head head;
  head.kind = static_cast<std::uint32_t>(file.kind);
  head.fingerprint = file.fingerprint;
  head.salt = file.salt;
  head.tick = file.tick;
  head.gain = file.gain;
  head.begin = file.begin;
  head.ids = file.ids.size();
  head.blocks = file.checksums.size();
  head.block_bytes = file.block_bytes;
  return head;
}

// A file opened for reading.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path)
      : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {
    struct stat status {};
    if (!file_.valid() || ::fstat(file_.get(), &status) != 0) fail_with_errno();
    if (!S_ISREG(status.st_mode)) damaged("it is no plain file");
    size_ = status.st_size;
  }

  std::uint64_t size() const { return size_; }
  void read(void* to, std::uint64_t bytes, std::uint64_t offset) const {
    auto* at = static_cast<std::byte*>(to);
    while (bytes > 0) {
      const ssize_t got = ::pread(file_.get(), at, bytes, offset);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_with_errno();
      if (got == 0) damaged("it ends too early");
      at += got;
      offset += got;
      bytes -= got;
    }
  }
  [[noreturn]] void damaged(std::string_view why) const {
    fail(ErrorKind::input, "the cached prompt in '{}' cannot be used: {}", path_.string(), why);
  }

 private:
  [[noreturn]] void fail_with_errno() const {
    const int code = errno;
    fail(ErrorKind::resource, "cannot read '{}': {}", path_.string(), std::generic_category().message(code));
  }

  std::filesystem::path path_;
  files::FileDescriptor file_;
  std::uint64_t size_ = 0;
};

void check(const Head& head, const Reader& reader) {
  if (head.magic != kMagic) reader.damaged("it is of another kind");
  if (head.format != kFormat)
    reader.damaged(fmt::format("its format is {}, this program writes {}", head.format, kFormat));
  const std::uint64_t left = reader.size() - sizeof(Head);
  const std::uint64_t unit = kChunkUnit;
  const bool counts = head.ids <= left / sizeof(std::int32_t) &&
                      head.blocks <= left / sizeof(std::uint64_t) && head.begin <= head.ids && head.ids > 0 &&
                      head.ids % unit == 0 && head.begin % unit == 0 && head.block_bytes <= left;
  const bool state = head.kind == static_cast<std::uint32_t>(FileKind::state);
  if (!counts || head.kind > 1 || head.blocks != (state ? 1 : (head.ids - head.begin) / unit))
    reader.damaged("its head makes no sense");
}

PrefixFile read_file(const Reader& reader) {
  Head head;
  if (reader.size() < sizeof(head)) reader.damaged("it ends too early");
  reader.read(&head, sizeof(head), 0);
  check(head, reader);
  PrefixFile file;
  file.kind = static_cast<FileKind>(head.kind);
  file.fingerprint = head.fingerprint;
  file.salt = head.salt;
  file.tick = head.tick;
  file.gain = head.gain;
  file.begin = head.begin;
  file.ids.resize(head.ids);
  file.checksums.resize(head.blocks);
  file.block_bytes = head.block_bytes;
  file.checksum = head.checksum;
  reader.read(file.ids.data(), bytes_of(file.ids).size(), sizeof(head));
  reader.read(file.checksums.data(), bytes_of(file.checksums).size(),
              sizeof(head) + bytes_of(file.ids).size());
  if (checksum_of(head, file) != head.checksum) reader.damaged("its head is not as it was written");
  if (reader.size() != file.file_bytes()) reader.damaged("its size is not as it was written");
  return file;
}

}  // namespace

Salt salt_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {experts::fingerprint(bytes, 1), experts::fingerprint(bytes, 2)};
}

Salt salt_of(std::string_view client, std::string_view text) {
  const std::string both = std::string(client) + '\n' + std::string(text);
  return {experts::fingerprint(std::as_bytes(std::span(client)), 3),
          experts::fingerprint(std::as_bytes(std::span(both)), 4)};
}

std::uint64_t PrefixFile::head_bytes() const {
  return sizeof(Head) + bytes_of(ids).size() + bytes_of(checksums).size();
}

std::string PrefixFile::name() const {
  const std::array<std::uint64_t, 5> named = {static_cast<std::uint64_t>(kind), fingerprint, salt[0], salt[1],
                                              static_cast<std::uint64_t>(begin)};
  const auto seeds = std::as_bytes(std::span(named));
  const std::uint64_t first = experts::fingerprint(bytes_of(ids), experts::fingerprint(seeds, 1));
  const std::uint64_t second = experts::fingerprint(bytes_of(ids), experts::fingerprint(seeds, 2));
  return fmt::format("{:016x}{:016x}{}", first, second, kPrefixFileEnding);
}

void write_prefix_file(const std::filesystem::path& folder, PrefixFile& file,
                       std::span<const std::byte> blocks) {
  const std::size_t count =
      file.kind == FileKind::state ? 1 : to_size((file.end() - file.begin) / kChunkUnit);
  file.block_bytes = blocks.size() / count;
  file.checksums.clear();
  for (std::size_t i = 0; i < count; ++i)
    file.checksums.push_back(experts::fingerprint(blocks.subspan(i * file.block_bytes, file.block_bytes)));
  Head head = head_of(file);
  file.checksum = head.checksum = checksum_of(head, file);
  files::FileWriter writer(folder / file.name());
  writer.write(bytes_of(head));
  writer.write(bytes_of(file.ids));
  writer.write(bytes_of(file.checksums));
  writer.write(blocks);
  writer.commit();
}

PrefixFile read_prefix_file(const std::filesystem::path& path) {
  return read_file(Reader(path));
}

void read_blocks(const std::filesystem::path& path, std::uint64_t checksum, std::int64_t first,
                 std::span<std::byte> to) {
  const Reader reader(path);
  const PrefixFile file = read_file(reader);
  if (file.checksum != checksum) reader.damaged("it was replaced by another one");
  const std::uint64_t begin = first;
  const std::uint64_t blocks = file.block_bytes == 0 ? 0 : to.size() / file.block_bytes;
  if (blocks * file.block_bytes != to.size() || begin > file.checksums.size() ||
      blocks > file.checksums.size() - begin)
    fail(ErrorKind::internal, "{} bytes from block {} on of a file with {} of {}", to.size(), begin,
         file.checksums.size(), file.block_bytes);
  reader.read(to.data(), to.size(), file.head_bytes() + begin * file.block_bytes);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const auto block = to.subspan(i * file.block_bytes, file.block_bytes);
    if (experts::fingerprint(block) != file.checksums[begin + i])
      reader.damaged("its contents are not as they were written");
  }
}

}  // namespace sluice::scheduler::prefix
