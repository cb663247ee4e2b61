#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "sluice/op_runner.h"
#include "source_dir.h"

namespace sluice {
namespace {

TEST(Docs, OpCatalogueIsCurrent) {
  std::ifstream file(source_dir() + "/docs/ops.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), ops_markdown()) << "run: sluice op --markdown > docs/ops.md";
}

// life_of_a_token.md must not name files that do not exist.
TEST(Docs, LifeOfATokenNamesFilesThatExist) {
  std::ifstream file(source_dir() + "/docs/life_of_a_token.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  const std::regex path("`((?:src|apps|include)/[a-z0-9_/.]+)`");
  int found = 0;
  for (std::sregex_iterator it(all.begin(), all.end(), path), end; it != end; ++it, ++found)
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(source_dir()) / (*it)[1].str())) << (*it)[1];
  EXPECT_GT(found, 20);
}

}  // namespace
}  // namespace sluice
