#include "source_dir.h"

namespace sluice {

std::string source_dir() {
  return SLUICE_SOURCE_DIR;
}
std::string test_data() {
  return source_dir() + "/tests/data";
}

}  // namespace sluice
