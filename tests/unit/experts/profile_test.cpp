#include "experts/profile.h"

#include <gtest/gtest.h>

#include "expect_error.h"
#include "temporary_folder.h"

namespace sluice::experts {
namespace {

TEST(Profile, IsReadAsItWasWritten) {
  const TemporaryFolder folder;
  const Profile profile{{5, 9, 1, 7}, {0, 0, 4000000000u, 2}};
  write_profile(profile, folder.path() / "uses.json");
  EXPECT_EQ(read_profile(folder.path() / "uses.json"), profile);
}

TEST(Profile, DecidesWhatStays) {
  const TemporaryFolder folder;
  write_profile({{5, 9, 1, 7}, {1, 2, 3, 4}}, folder.path() / "uses.json");
  const PolicyMaker make("static:" + (folder.path() / "uses.json").string());
  const std::vector<std::int32_t> candidates{0, 1, 3};
  EXPECT_EQ(make(0, 4)->victim(candidates), 0);
  EXPECT_EQ(make(1, 4)->victim(candidates), 0);
  EXPECT_EQ(make(0, 4)->victim(std::vector<std::int32_t>{1, 3}), 3);
  expect_error(ErrorKind::input, {"uses.json", "another model", "layer 2", "0"}, [&] { make(2, 4); });
  expect_error(ErrorKind::input, {"uses.json", "another model", "4", "8"}, [&] { make(0, 8); });
}

TEST(Profile, RefusesOtherFiles) {
  const TemporaryFolder folder;
  const std::pair<const char*, const char*> refused[] = {{"{}", "an array 'uses'"},
                                                         {"{\"uses\": 3}", "an array 'uses'"},
                                                         {"{\"uses\": [[1, -1]]}", "-1 times"},
                                                         {"{\"uses\": [[\"a\"]]}", "\"a\""},
                                                         {"[", "invalid JSON"},
                                                         {"[]", "an object"}};
  for (const auto& [text, part] : refused) {
    const auto file = folder.write("uses.json", text);
    SCOPED_TRACE(text);
    expect_error(ErrorKind::input, {"uses.json", part}, [&] { PolicyMaker("static:" + file.string()); });
  }
  expect_error(ErrorKind::input, {"/nonexistent/uses.json"},
               [] { PolicyMaker("static:/nonexistent/uses.json"); });
}

}  // namespace
}  // namespace sluice::experts
