#include "checkpoint/shards.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "checkpoint/safetensors_writer.h"
#include "expect_error.h"
#include "temporary_folder.h"

namespace sluice::checkpoint {
namespace {

class Shards : public testing::Test {
 protected:
  // Each tensor is U8 [4], filled with the first letter of its name.
  void add(const std::string& file, const std::vector<std::string>& names) const {
    std::vector<TensorInfo> tensors;
    for (const std::string& name : names) tensors.push_back({name, FileDType::u8, {4}});
    SafetensorsWriter writer(folder_.path() / file, tensors);
    for (const std::string& name : names) {
      writer.write(name, std::vector<std::byte>(4, static_cast<std::byte>(name[0])));
    }
    writer.finish();
  }
  void index(std::string_view weight_map) const {
    folder_.write("model.safetensors.index.json",
                  fmt::format(R"({{"metadata":{{}},"weight_map":{}}})", weight_map));
  }
  TensorFiles open() const { return TensorFiles(folder_.path()); }
  void expect_refused(std::initializer_list<std::string_view> parts,
                      ErrorKind kind = ErrorKind::checkpoint) const {
    expect_error(kind, parts, [&] { open(); });
  }

  TemporaryFolder folder_;
};

std::vector<std::string> names_of(const TensorFiles& files) {
  std::vector<std::string> names;
  for (const TensorEntry* tensor : files.tensors()) names.push_back(tensor->name);
  return names;
}

TEST_F(Shards, OneFile) {
  add("model.safetensors", {"b", "a"});
  const TensorFiles files = open();
  EXPECT_EQ(names_of(files), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(files.total_bytes(), 8u);
  EXPECT_EQ(files.get("a").data[3], static_cast<std::byte>('a'));
  EXPECT_EQ(files.find("c"), nullptr);
  expect_error(ErrorKind::checkpoint, {"lacks the tensor 'c'"}, [&] { files.get("c"); });
}

TEST_F(Shards, TheIndexNamesTheFiles) {
  add("part-two.safetensors", {"c", "extra"});
  add("part-one.safetensors", {"b", "a"});
  add("model-unrelated.safetensors", {"a"});  // not in the index
  index(R"({"a": "part-one.safetensors", "b": "part-one.safetensors", "c": "part-two.safetensors"})");
  TensorFiles opened = open();
  const TensorFiles files = std::move(opened);  // views survive a move
  EXPECT_EQ(names_of(files), (std::vector<std::string>{"b", "a", "c", "extra"}));
  EXPECT_EQ(files.files().size(), 2u);
  EXPECT_EQ(files.total_bytes(), 16u);
  for (const char* name : {"a", "b", "c", "extra"})
    EXPECT_EQ(files.get(name).data[0], static_cast<std::byte>(*name));
  EXPECT_EQ(files.file_of(files.get("a")).path().filename(), "part-one.safetensors");
  EXPECT_EQ(files.file_of(files.get("extra")).path().filename(), "part-two.safetensors");
  const TensorEntry stranger{};
  expect_error(ErrorKind::internal, {"none of"}, [&] { files.file_of(stranger); });
}

TEST_F(Shards, WithoutAnIndexEveryModelFileCounts) {
  add("model.safetensors-00002-of-00002.safetensors", {"b"});
  add("model.safetensors-00001-of-00002.safetensors", {"a"});
  add("adapter.safetensors", {"z"});
  folder_.write("model.bin", "x");
  EXPECT_EQ(names_of(open()), (std::vector<std::string>{"a", "b"}));
}

TEST_F(Shards, NamesAMissingShard) {
  add("model-00001-of-00003.safetensors", {"a"});
  add("model-00003-of-00003.safetensors", {"c"});
  expect_refused({"'model-00002-of-00003.safetensors'", "one of 3"});
  index(R"({"a": "model-00001-of-00003.safetensors", "b": "model-00002-of-00003.safetensors"})");
  expect_refused({"'model-00002-of-00003.safetensors'", "'b'"});
}

TEST_F(Shards, RefusesAnIndexThatLies) {
  add("model-1.safetensors", {"a"});
  add("model-2.safetensors", {"b"});
  index(R"({"a": "model-1.safetensors", "b": "model-1.safetensors"})");
  expect_refused({"model-1.safetensors", "'b'"});
  index(R"({"a": "model-2.safetensors", "b": "model-1.safetensors"})");
  expect_refused({"does not hold"});
}

TEST_F(Shards, RefusesATensorStoredTwice) {
  add("model-a.safetensors", {"x", "a"});
  add("model-b.safetensors", {"b", "x"});
  expect_refused({"'x'", "model-a.safetensors", "model-b.safetensors"});
}

TEST_F(Shards, RefusesABrokenIndex) {
  add("model.safetensors", {"a"});
  for (const char* bad : {"[]", "{}", "1", R"({"a": 1})", R"({"a": "../model.safetensors"})",
                          R"({"a": ".."})", R"({"a": "/etc/passwd"})", R"({"a": ""})",
                          R"({"a": "x\\y.safetensors"})", R"({"a": "model.safetensors\u0000.safetensors"})",
                          R"({"a": "model.safetensors", "a": "model.safetensors"})"}) {
    SCOPED_TRACE(bad);
    index(bad);
    expect_refused({"index.json"});
  }
  folder_.write("model.safetensors.index.json", "{}");
  expect_refused({"'weight_map'", "missing"});
}

TEST_F(Shards, RefusesFoldersWithoutAModel) {
  expect_refused({"neither", "model*.safetensors"});
  expect_error(ErrorKind::input, {"not a folder"}, [&] { TensorFiles(folder_.path() / "none"); });
  expect_error(ErrorKind::input, {"not a folder"}, [&] { TensorFiles(folder_.write("file", "x")); });
}

TEST_F(Shards, NamesADamagedShard) {
  add("model-1.safetensors", {"a"});
  folder_.write("model-2.safetensors", "garbage that is no header");
  expect_refused({"model-2.safetensors"});
}

}  // namespace
}  // namespace sluice::checkpoint
