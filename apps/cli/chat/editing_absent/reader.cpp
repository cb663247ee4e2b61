// For builds without libedit.
#include "chat/editing/reader.h"

namespace sluice::cli::chat::editing {

std::unique_ptr<LineReader> make_reader(std::vector<std::string>, const std::filesystem::path&) {
  return nullptr;
}

}  // namespace sluice::cli::chat::editing
