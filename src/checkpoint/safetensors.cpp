#include "checkpoint/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/quote.h"

namespace sluice::checkpoint {
namespace {

constexpr int kHeaderDepth = 8;  // the format needs 3
constexpr std::string_view kMetadataKey = "__metadata__";

uint64_t load_u64_le(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (size_t i = 8; i-- > 0;) value = value << 8 | std::to_integer<uint64_t>(bytes[i]);
  return value;
}

std::string_view header_text(std::span<const std::byte> image, std::string_view where) {
  if (image.size() < kSafetensorsLengthBytes) {
    fail(ErrorKind::checkpoint, "{} has {} bytes, too few for a safetensors file", where, image.size());
  }
  const uint64_t length = load_u64_le(image);
  const uint64_t available = image.size() - kSafetensorsLengthBytes;
  if (length > kMaxSafetensorsHeader || length > available) {
    fail(ErrorKind::checkpoint,
         "{} announces a header of {} bytes, but {}: it is cut short or not a safetensors file", where,
         length,
         length > available ? fmt::format("only {} follow", available)
                            : fmt::format("the format allows {}", kMaxSafetensorsHeader));
  }
  return {reinterpret_cast<const char*>(image.data()) + kSafetensorsLengthBytes, length};
}

std::map<std::string, std::string> parse_metadata(const Json& object, std::string_view where) {
  const std::string place = fmt::format("{}: '{}'", where, kMetadataKey);
  if (object.is_null()) return {};  // what MLX writes for no metadata
  if (!object.is_object())
    fail(ErrorKind::checkpoint, "{} is an {}, expected an object", place, object.type_name());
  std::map<std::string, std::string> metadata;
  for (const auto& [key, value] : object.items()) metadata[key] = json_get<std::string>(object, key, place);
  return metadata;
}

// One entry, checked against `data` but not yet against its neighbours.
TensorEntry parse_entry(const std::string& tensor, const Json& object, std::span<const std::byte> data,
                        std::string_view file) {
  const std::string where = fmt::format("{}: tensor {}", file, quote(tensor));
  TensorEntry entry;
  entry.name = tensor;
  const auto dtype = json_get<std::string>(object, "dtype", where);
  const auto known = file_dtype(dtype);
  if (!known) fail(ErrorKind::unsupported, "{} has the unknown element type {}", where, quote(dtype));
  entry.dtype = *known;
  entry.shape = json_get<std::vector<int64_t>>(object, "shape", where);
  const auto expected = size_bytes(entry);
  if (!expected) {
    fail(ErrorKind::checkpoint, "{} has the impossible shape {}", where, quote(object.at("shape").dump()));
  }
  const auto offsets = json_get<std::vector<int64_t>>(object, "data_offsets", where);
  if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0]) {
    fail(ErrorKind::checkpoint, "{} has data_offsets {}, expected [begin, end]", where,
         quote(object.at("data_offsets").dump()));
  }
  const uint64_t begin = offsets[0];
  const uint64_t end = offsets[1];
  if (end - begin != *expected) {
    fail(ErrorKind::checkpoint, "{} has {} bytes, but {} {} needs {}", where, end - begin, dtype,
         quote(object.at("shape").dump()), *expected);
  }
  if (end > data.size()) {
    fail(ErrorKind::checkpoint, "{} ends at byte {} of the data, but the file has only {}: it is cut short",
         where, end, data.size());
  }
  entry.data = data.subspan(begin, end - begin);
  return entry;
}

// Sorted by position, tensors must be contiguous up to the end of the file.
void check_tiling(const std::vector<TensorEntry>& tensors, std::span<const std::byte> data,
                  std::string_view where) {
  const std::byte* reached = data.data();
  for (const TensorEntry& tensor : tensors) {
    if (tensor.data.data() != reached) {
      fail(ErrorKind::checkpoint, "{}: tensor {} starts at byte {} of the data, expected {}: tensors {}",
           where, quote(tensor.name), tensor.data.data() - data.data(), reached - data.data(),
           tensor.data.data() < reached ? "overlap" : "leave a hole");
    }
    reached += tensor.data.size();
  }
  if (const size_t used = reached - data.data(); used != data.size()) {
    fail(ErrorKind::checkpoint, "{} has {} bytes after the last tensor", where, data.size() - used);
  }
}

}  // namespace

Safetensors::Safetensors(std::span<const std::byte> image, std::string_view where) {
  const std::string_view header = header_text(image, where);
  const auto data = image.subspan(kSafetensorsLengthBytes + header.size());
  const Json json = parse_json(header, fmt::format("{}: header", where),
                               {.bytes = kMaxSafetensorsHeader, .depth = kHeaderDepth});
  if (!json.is_object()) fail(ErrorKind::checkpoint, "{}: the header is not a JSON object", where);
  tensors_.reserve(json.size());
  for (const auto& [key, value] : json.items()) {
    if (key == kMetadataKey) {
      metadata_ = parse_metadata(value, where);
    } else {
      tensors_.push_back(parse_entry(key, value, data, where));
      tensors_.back().file_offset = tensors_.back().data.data() - image.data();
    }
  }
  std::sort(tensors_.begin(), tensors_.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tuple(a.file_offset, a.data.size(), std::string_view(a.name)) <
           std::tuple(b.file_offset, b.data.size(), std::string_view(b.name));
  });
  check_tiling(tensors_, data, where);
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), size_t{0});
  std::sort(by_name_.begin(), by_name_.end(),
            [&](size_t a, size_t b) { return tensors_[a].name < tensors_[b].name; });
}

const TensorEntry* Safetensors::find(std::string_view name) const {
  const auto found =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [&](size_t index, std::string_view n) { return tensors_[index].name < n; });
  return found == by_name_.end() || tensors_[*found].name != name ? nullptr : &tensors_[*found];
}

}  // namespace sluice::checkpoint
