#include "checkpoint/shards.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "base/quote.h"

namespace sluice::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kSuffix = ".safetensors";

using WeightMap = std::map<std::string, std::string>;  // tensor name to file name

bool present(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

WeightMap read_index(const fs::path& path) {
  const Json index = read_json_file(path, {.bytes = kMaxSafetensorsHeader});
  const std::string where = path.string();
  const Json* map = json_find(index, "weight_map", where);
  if (map == nullptr) fail(ErrorKind::checkpoint, "{}: the required key 'weight_map' is missing", where);
  const std::string place = where + ": 'weight_map'";
  if (!map->is_object() || map->empty()) fail(ErrorKind::checkpoint, "{} names no tensor", place);
  WeightMap result;
  for (const auto& item : map->items()) {
    auto file = json_get<std::string>(*map, item.key(), place);
    // A name that leaves the folder could make the program read any of the user's files.
    if (file.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos || !file.ends_with(kSuffix)) {
      fail(ErrorKind::checkpoint,
           "{}: tensor {} is said to be in {}, expected the name of a {} file in the folder", place,
           quote(item.key()), quote(file), kSuffix);
    }
    result.emplace(item.key(), std::move(file));
  }
  return result;
}

std::set<std::string> named_files(const fs::path& folder, const WeightMap& map) {
  std::set<std::string> files;
  for (const auto& [tensor, file] : map) {
    if (files.insert(file).second && !present(folder / file)) {
      fail(ErrorKind::checkpoint, "'{}' lacks the file {} that its index names for tensor {}",
           folder.string(), quote(file), quote(tensor));
    }
  }
  return files;
}

// Even without an index, missing files are noticed: "x-00001-of-00003.safetensors" gives their number.
void check_numbering(const fs::path& folder, const std::set<std::string>& files) {
  constexpr size_t kDigits = 5;
  const size_t tail = std::string_view("-00001-of-00003").size();
  for (const std::string& file : files) {
    const std::string_view stem = std::string_view(file).substr(0, file.size() - kSuffix.size());
    if (stem.size() < tail || stem.substr(stem.size() - kDigits - 4, 4) != "-of-") continue;
    const std::string_view count_text = stem.substr(stem.size() - kDigits);
    int count = 0;
    if (std::from_chars(count_text.begin(), count_text.end(), count).ptr != count_text.end()) continue;
    const std::string_view prefix = stem.substr(0, stem.size() - tail);
    for (int i = 1; i <= count; ++i) {
      const std::string expected = fmt::format("{}-{:05}-of-{}{}", prefix, i, count_text, kSuffix);
      if (!files.contains(expected)) {
        fail(ErrorKind::checkpoint, "'{}' lacks the file {}, one of {} shards", folder.string(),
             quote(expected), count);
      }
    }
    return;  // one complete set is enough; tensors stored twice are found later
  }
}

std::set<std::string> found_files(const fs::path& folder) {
  std::set<std::string> files;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error) fail(ErrorKind::input, "cannot list the folder '{}': {}", folder.string(), error.message());
  for (; entries != fs::directory_iterator(); entries.increment(error)) {
    if (error) fail(ErrorKind::input, "cannot list the folder '{}': {}", folder.string(), error.message());
    std::string file = entries->path().filename().string();
    if (file.starts_with("model") && file.ends_with(kSuffix)) files.insert(std::move(file));
  }
  if (files.empty()) {
    fail(ErrorKind::checkpoint, "'{}' has neither {} nor any model*{} file", folder.string(), kIndex,
         kSuffix);
  }
  check_numbering(folder, files);
  return files;
}

bool name_less(const TensorEntry* a, const TensorEntry* b) {
  return a->name < b->name;
}

}  // namespace

TensorFiles::TensorFiles(const fs::path& folder) : folder_(folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    fail(ErrorKind::input, "'{}' is not a folder, expected one with {} files", folder.string(), kSuffix);
  }
  const bool indexed = present(folder / kIndex);
  const WeightMap map = indexed ? read_index(folder / kIndex) : WeightMap();
  for (const std::string& file : indexed ? named_files(folder, map) : found_files(folder)) {
    files_.emplace_back(folder / file);
    for (const TensorEntry& tensor : files_.back().tensors()) {
      tensors_.push_back(&tensor);
      total_bytes_ += tensor.data.size();
    }
  }
  by_name_ = tensors_;
  std::stable_sort(by_name_.begin(), by_name_.end(), name_less);
  const auto twice =
      std::adjacent_find(by_name_.begin(), by_name_.end(),
                         [](const TensorEntry* a, const TensorEntry* b) { return a->name == b->name; });
  if (twice != by_name_.end()) {
    fail(ErrorKind::checkpoint, "tensor {} is both in '{}' and in '{}'", quote((*twice)->name),
         file_of(**twice).path().string(), file_of(**(twice + 1)).path().string());
  }
  for (const auto& [tensor, file] : map) {
    const TensorEntry* entry = find(tensor);
    if (entry == nullptr || file_of(*entry).path().filename() != file) {
      fail(ErrorKind::checkpoint, "'{}' does not hold tensor {}, though the index says so",
           (folder / file).string(), quote(tensor));
    }
  }
}

const TensorEntry* TensorFiles::find(std::string_view name) const {
  const auto found =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [](const TensorEntry* tensor, std::string_view n) { return tensor->name < n; });
  return found == by_name_.end() || (*found)->name != name ? nullptr : *found;
}

const TensorEntry& TensorFiles::get(std::string_view name) const {
  const TensorEntry* tensor = find(name);
  if (tensor == nullptr)
    fail(ErrorKind::checkpoint, "'{}' lacks the tensor {}", folder_.string(), quote(name));
  return *tensor;
}

const SafetensorsFile& TensorFiles::file_of(const TensorEntry& tensor) const {
  for (const SafetensorsFile& file : files_) {
    const auto& own = file.tensors();
    if (std::greater_equal<>()(&tensor, own.data()) && std::less<>()(&tensor, own.data() + own.size()))
      return file;
  }
  fail(ErrorKind::internal, "tensor {} is none of '{}'", quote(tensor.name), folder_.string());
}

}  // namespace sluice::checkpoint
