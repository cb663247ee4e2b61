#include "op_arrays.h"

#include <iterator>
#include <string>
#include <vector>

#include "sluice/error.h"

namespace sluice::python {

namespace {

std::string name_of(const nb::dlpack::dtype& type) {
  // By DLPack's type codes.
  constexpr const char* kNames[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  const std::string kind =
      type.code < std::size(kNames) ? kNames[type.code] : "kind " + std::to_string(type.code) + " x";
  return kind + std::to_string(type.bits) + (type.lanes == 1 ? "" : "x" + std::to_string(type.lanes));
}

ops::DType dtype_of(const std::string& field, const nb::dlpack::dtype& type) {
  const bool plain = type.lanes == 1;
  const auto is = [&](nb::dlpack::dtype_code code, int bits) {
    return plain && type.code == static_cast<std::uint8_t>(code) && type.bits == bits;
  };
  if (is(nb::dlpack::dtype_code::Float, 32)) return ops::DType::f32;
  if (is(nb::dlpack::dtype_code::Bfloat, 16)) return ops::DType::bf16;
  if (is(nb::dlpack::dtype_code::Float, 16)) return ops::DType::f16;
  if (is(nb::dlpack::dtype_code::Int, 32)) return ops::DType::i32;
  if (is(nb::dlpack::dtype_code::UInt, 32)) return ops::DType::u32;
  if (is(nb::dlpack::dtype_code::UInt, 8)) return ops::DType::u8;
  throw Error(ErrorKind::input, "'" + field + "' has elements of " + name_of(type) +
                                    ", ops take float32, bfloat16, float16, int32, uint32 and uint8");
}

nb::dlpack::dtype dlpack_type(ops::DType type) {
  using Code = nb::dlpack::dtype_code;
  const auto made = [](Code code, int bits) {
    return nb::dlpack::dtype{static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1};
  };
  switch (type) {
    case ops::DType::f32:
      return made(Code::Float, 32);
    case ops::DType::bf16:
      return made(Code::Bfloat, 16);
    case ops::DType::f16:
      return made(Code::Float, 16);
    case ops::DType::i32:
      return made(Code::Int, 32);
    case ops::DType::u32:
      return made(Code::UInt, 32);
    case ops::DType::u8:
      return made(Code::UInt, 8);
  }
  return {};
}

}  // namespace

Place place_of(const std::string& field, const Array& array) {
  // Pinned memory counts as the host's.
  if (array.device_type() == nb::device::cpu::value || array.device_type() == nb::device::cuda_host::value)
    return {};
  if (array.device_type() == nb::device::cuda::value) return {array.device_id()};
  throw Error(ErrorKind::input, "'" + field + "' lies neither in host memory nor on a CUDA device");
}

ops::ConstView view_of(const std::string& field, const Array& array) {
  if (array.ndim() == 0 || array.ndim() > static_cast<std::size_t>(ops::kMaxRank))
    throw Error(ErrorKind::input, "'" + field + "' has " + std::to_string(array.ndim()) +
                                      " dimensions, ops take 1 to " + std::to_string(ops::kMaxRank));
  ops::Shape shape;
  for (std::size_t i = 0; i < array.ndim(); ++i) shape.push_back(static_cast<std::int64_t>(array.shape(i)));
  return {array.data(), dtype_of(field, array.dtype()), shape};
}

nb::object array_over(const ops::View& view, const nb::capsule& owner, bool torch, Place place) {
  std::vector<std::size_t> shape;
  for (const std::int64_t dim : view.shape.dims()) shape.push_back(static_cast<std::size_t>(dim));
  const nb::dlpack::dtype type = dlpack_type(view.dtype);
  const int device = place.host() ? nb::device::cpu::value : nb::device::cuda::value;
  if (torch || !place.host() || view.dtype == ops::DType::bf16)  // numpy has no such numbers
    return nb::cast(nb::ndarray<nb::pytorch>(view.data, shape.size(), shape.data(), owner, nullptr, type,
                                             device, place.host() ? 0 : place.cuda_device));
  return nb::cast(nb::ndarray<nb::numpy>(view.data, shape.size(), shape.data(), owner, nullptr, type));
}

NewArray new_array(ops::DType type, const ops::Shape& shape) {
  const std::size_t bytes = static_cast<std::size_t>(shape.elements()) * size_bytes(type);
  auto memory = std::make_unique<std::byte[]>(bytes);
  void* data = memory.get();
  return {ops::View(data, type, shape),
          nb::capsule(memory.release(), [](void* p) noexcept { delete[] static_cast<std::byte*>(p); })};
}

}  // namespace sluice::python
