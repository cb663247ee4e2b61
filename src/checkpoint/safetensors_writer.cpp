#include "checkpoint/safetensors_writer.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/quote.h"
#include "checkpoint/safetensors.h"

namespace sluice::checkpoint {
namespace {

std::string header_of(const std::vector<TensorInfo>& tensors,
                      const std::map<std::string, std::string>& metadata, uint64_t alignment) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t begin = 0;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.name == "__metadata__" || header.contains(tensor.name)) {
      fail(ErrorKind::input, "the tensor name {} is reserved or used twice", quote(tensor.name));
    }
    const auto bytes = size_bytes(tensor);
    uint64_t end = 0;
    if (!bytes || __builtin_add_overflow(begin, *bytes, &end)) {
      fail(ErrorKind::input, "tensor {} has an impossible shape", quote(tensor.name));
    }
    header[tensor.name] = {
        {"dtype", name(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::type_error&) {
    fail(ErrorKind::input, "a tensor name or a metadata text is not valid UTF-8");
  }
  const uint64_t front = text.size() + kSafetensorsLengthBytes;
  text.resize((front + alignment - 1) / alignment * alignment - kSafetensorsLengthBytes, ' ');
  if (text.size() > kMaxSafetensorsHeader) {
    fail(ErrorKind::input, "the header would have {} bytes, the format allows {}", text.size(),
         kMaxSafetensorsHeader);
  }
  return text;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorInfo> tensors,
                                     const std::map<std::string, std::string>& metadata, uint64_t alignment)
    : path_(path.string()), file_(path) {
  const std::string header = header_of(tensors, metadata, alignment);
  std::string length(kSafetensorsLengthBytes, '\0');
  for (size_t i = 0; i < length.size(); ++i) length[i] = header.size() >> (8 * i);
  file_.write(length);
  file_.write(header);
  for (TensorInfo& tensor : tensors) pending_.push_back({std::move(tensor.name), *size_bytes(tensor)});
}

void SafetensorsWriter::write(std::string_view tensor, std::span<const std::byte> bytes) {
  while (current_ < pending_.size() && pending_[current_].bytes == 0 && pending_[current_].name != tensor)
    ++current_;
  if (current_ == pending_.size() || pending_[current_].name != tensor) {
    fail(ErrorKind::internal, "{}: tensor {} is written out of turn, expected {}", path_, quote(tensor),
         current_ == pending_.size() ? "the end" : quote(pending_[current_].name));
  }
  if (bytes.size() > pending_[current_].bytes) {
    fail(ErrorKind::internal, "{}: tensor {} gets {} bytes too many", path_, quote(tensor),
         bytes.size() - pending_[current_].bytes);
  }
  file_.write(bytes);
  pending_[current_].bytes -= bytes.size();
}

void SafetensorsWriter::finish() {
  for (const Pending& tensor : pending_) {
    if (tensor.bytes == 0) continue;
    fail(ErrorKind::internal, "{}: tensor {} lacks {} bytes", path_, quote(tensor.name), tensor.bytes);
  }
  file_.commit();
}

}  // namespace sluice::checkpoint
