#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "sluice/op_runner.h"

namespace sluice {
namespace {

TEST(Docs, OpCatalogueIsCurrent) {
  std::ifstream file(SLUICE_SOURCE_DIR "/docs/ops.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), ops_markdown()) << "run: sluice op --markdown > docs/ops.md";
}

}  // namespace
}  // namespace sluice
