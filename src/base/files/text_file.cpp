#include "base/files/text_file.h"

#include "base/error.h"
#include "base/files/mapped_file.h"

namespace sluice::files {

std::string read_text_file(const std::filesystem::path& path, std::size_t max_bytes) {
  const MappedFile file(path);
  if (file.bytes().size() > max_bytes)
    fail(ErrorKind::input, "'{}' has {} bytes, expected at most {}", path.string(), file.bytes().size(),
         max_bytes);
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::optional<std::string> read_text_file_if_present(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::symlink_status(path, error).type() == std::filesystem::file_type::not_found)
    return std::nullopt;
  return read_text_file(path);
}

}  // namespace sluice::files
