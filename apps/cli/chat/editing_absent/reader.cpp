// For builds without libedit.
#include "chat/line_reader.h"

namespace sluice::cli {

std::unique_ptr<LineReader> make_editing_reader(std::vector<std::string>, const std::filesystem::path&) {
  return nullptr;
}

}  // namespace sluice::cli
