// One file of what is remembered of a prompt: rows of the caches for some of its blocks, or the recurrent
// states behind it. It names the tokens it belongs to and carries checksums of everything in it, so that a
// file that is torn, damaged or somebody else's is recognised before any of it is used.
//
// Layout, little-endian: a fixed head, the token ids from the prompt's beginning (I32), a checksum per block
// (U64), then the blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::scheduler {

// Of the text that keeps the prompts of some requests apart from others': it is not kept itself.
using Salt = std::array<std::uint64_t, 2>;
Salt salt_of(std::string_view text);
// The same for clients that share nothing whatever their texts are: the first half is the client's.
Salt salt_of(std::string_view client, std::string_view text);

enum class FileKind : std::uint32_t { rows, state };

struct PrefixFile {
  FileKind kind = FileKind::rows;
  std::uint64_t fingerprint = 0;  // of the model and of what decides about its bits
  Salt salt = {};
  std::uint64_t tick = 0;                // when it was written: higher is later
  std::uint64_t gain = 0;                // tokens that would have to be computed without it
  std::int64_t begin = 0;                // first row; a state has none and begins at its end
  std::vector<std::int32_t> ids;         // of the prompt up to the end of the file's rows, whole blocks
  std::vector<std::uint64_t> checksums;  // by block; a state is one block
  std::uint64_t block_bytes = 0;
  std::uint64_t checksum = 0;  // of all of the above

  std::int64_t end() const { return std::ssize(ids); }
  std::uint64_t head_bytes() const;
  std::uint64_t file_bytes() const { return head_bytes() + checksums.size() * block_bytes; }
  // The same for the same rows of the same prompt, whoever writes it.
  std::string name() const;
};

inline constexpr std::string_view kPrefixFileEnding = ".prefix";

// Fills in the checksums and writes the file: it is there whole or not at all, whenever the machine stops.
void write_prefix_file(const std::filesystem::path& folder, PrefixFile& file,
                       std::span<const std::byte> blocks);
// Everything but the blocks. Throws Error where the file is not as it was written.
PrefixFile read_prefix_file(const std::filesystem::path& path);
// Blocks from `first` on of the file that had this checksum when it was found, as many as fill `to`. Throws
// Error where they are not as they were written.
void read_blocks(const std::filesystem::path& path, std::uint64_t checksum, std::int64_t first,
                 std::span<std::byte> to);

}  // namespace sluice::scheduler
