#include "runner/op_file.h"

#include "base/error.h"
#include "base/integer_cast.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_writer.h"
#include "checkpoint/tensor_type.h"
#include "tensor/element.h"

namespace sluice::runner {

namespace {

using checkpoint::FileDType;
constexpr std::string_view kAttributePrefix = "attr.";

ops::DType tensor_dtype(FileDType type, std::string_view where, std::string_view tensor) {
  if (const auto known = checkpoint::tensor_type(type)) return *known;
  fail(ErrorKind::input, "{}: tensor '{}' has type {}, ops take F32, BF16, F16, I32, U32 and U8", where,
       tensor, checkpoint::name(type));
}

OpFile to_op_file(const checkpoint::Safetensors& from, std::string_view where) {
  OpFile file;
  for (const auto& entry : from.tensors()) {
    HostTensor tensor;
    tensor.dtype = tensor_dtype(entry.dtype, where, entry.name);
    if (entry.shape.empty() || entry.shape.size() > to_size(ops::kMaxRank))
      fail(ErrorKind::input, "{}: tensor '{}' has {} dimensions, ops take 1 to {}", where, entry.name,
           entry.shape.size(), ops::kMaxRank);
    for (const std::int64_t dim : entry.shape) tensor.shape.push_back(dim);
    tensor.bytes.assign(entry.data.begin(), entry.data.end());
    file.tensors.emplace(entry.name, std::move(tensor));
  }
  for (const auto& [key, value] : from.metadata())
    if (key.starts_with(kAttributePrefix))
      file.attributes.emplace(key.substr(kAttributePrefix.size()), value);
  return file;
}

}  // namespace

double HostTensor::at(std::int64_t i) const {
  return ops::load(bytes.data(), dtype, i);
}

OpFile read_op_file(const std::filesystem::path& path) {
  return to_op_file(checkpoint::SafetensorsFile(path), path.string());
}

OpFile parse_op_file(std::span<const std::byte> image, std::string_view where) {
  return to_op_file(checkpoint::Safetensors(image, where), where);
}

void write_op_file(const std::filesystem::path& path, const OpFile& file) {
  std::vector<checkpoint::TensorInfo> infos;
  for (const auto& [name, tensor] : file.tensors) {
    const auto dims = tensor.shape.dims();
    infos.push_back({name, checkpoint::file_type(tensor.dtype), {dims.begin(), dims.end()}});
  }
  std::map<std::string, std::string> metadata;
  for (const auto& [name, value] : file.attributes)
    metadata.emplace(std::string(kAttributePrefix) + name, value);
  checkpoint::SafetensorsWriter writer(path, std::move(infos), metadata);
  for (const auto& [name, tensor] : file.tensors) writer.write(name, tensor.bytes);
  writer.finish();
}

}  // namespace sluice::runner
