// One file of a cached prompt: cache rows of some of its blocks, or the recurrent states after it. It
// contains the tokens it belongs to and checksums of everything, so torn, damaged or foreign files are
// recognised before use.
//
// Layout, little-endian: a fixed head, the token ids from the start of the prompt (I32), one checksum per
// block (U64), then the blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::scheduler::prefix {

// A hash of the text that separates the prompts of some requests from others'; the text itself is not stored.
using Salt = std::array<std::uint64_t, 2>;
Salt salt_of(std::string_view text);
// The same for clients that share nothing, whatever their texts: the first half identifies the client.
Salt salt_of(std::string_view client, std::string_view text);

enum class FileKind : std::uint32_t { rows, state };

struct PrefixFile {
  FileKind kind = FileKind::rows;
  std::uint64_t fingerprint = 0;  // of the model and everything that determines its bits
  Salt salt = {};
  std::uint64_t tick = 0;                // time of writing: higher is later
  std::uint64_t gain = 0;                // tokens that would have to be computed without it
  std::int64_t begin = 0;                // first row; for a state, its end
  std::vector<std::int32_t> ids;         // of the prompt up to the end of the file's rows, in whole blocks
  std::vector<std::uint64_t> checksums;  // by block; a state is one block
  std::uint64_t block_bytes = 0;
  std::uint64_t checksum = 0;  // over everything above

  std::int64_t end() const { return std::ssize(ids); }
  std::uint64_t head_bytes() const;
  std::uint64_t file_bytes() const { return head_bytes() + checksums.size() * block_bytes; }
  // The same for the same rows of the same prompt, whichever process writes it.
  std::string name() const;
};

inline constexpr std::string_view kPrefixFileEnding = ".prefix";

// Fills in the checksums and writes the file atomically, even if the machine stops.
void write_prefix_file(const std::filesystem::path& folder, PrefixFile& file,
                       std::span<const std::byte> blocks);
// Everything but the blocks. Throws Error if the file is not as it was written.
PrefixFile read_prefix_file(const std::filesystem::path& path);
// Reads blocks from `first` on, as many as fill `to`, of the file that had this checksum when it was found.
// Throws Error if they are not as they were written.
void read_blocks(const std::filesystem::path& path, std::uint64_t checksum, std::int64_t first,
                 std::span<std::byte> to);

}  // namespace sluice::scheduler::prefix
