// An op's fields and attributes, independent of any backend: the contents of op files, cases and results.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/integer_cast.h"
#include "sluice/ops/view.h"

namespace sluice::runner {

struct HostTensor {
  ops::DType dtype = ops::DType::f32;
  ops::Shape shape;
  std::vector<std::byte> bytes;

  HostTensor() = default;
  HostTensor(ops::DType dtype, const ops::Shape& shape)
      : dtype(dtype), shape(shape), bytes(to_size(shape.elements()) * size_bytes(dtype)) {}

  template <class T>
  T* data() {
    return reinterpret_cast<T*>(bytes.data());
  }
  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
  double at(std::int64_t i) const;  // element i as a number, for any type
};

struct OpFile {
  std::map<std::string, HostTensor> tensors;
  std::map<std::string, std::string> attributes;  // without the "attr." prefix of the file
};

OpFile read_op_file(const std::filesystem::path& path);
OpFile parse_op_file(std::span<const std::byte> image, std::string_view where);
void write_op_file(const std::filesystem::path& path, const OpFile& file);

}  // namespace sluice::runner
