// Tests of refusals: an op that breaks its contract must be refused by name on every host backend, and write
// nothing.
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "expect_error.h"
#include "sluice/ops/backend.h"

namespace sluice::ops {

class Refusal : public ::testing::Test {
 protected:
  // Zeroes, so that indices and positions are in range.
  View tensor(DType type, const Shape& shape) {
    auto& bytes = memory_.emplace_back(static_cast<std::size_t>(shape.elements()) * size_bytes(type));
    return {bytes.data(), type, shape};
  }
  View f32(const Shape& shape) { return tensor(DType::f32, shape); }

  template <class Op>
  void expect_accepted(const Op& op) {
    for (const char* backend : {"reference", "cpu"}) make_backend(backend, {.threads = 1})->run(op);
  }

  template <class Op>
  void expect_refused(const Op& op, std::initializer_list<std::string_view> parts) {
    for (const char* backend : {"reference", "cpu"}) {
      SCOPED_TRACE(backend);
      for (auto& bytes : memory_)
        if (!kept(bytes)) std::fill(bytes.begin(), bytes.end(), std::byte{0xa5});
      const auto before = memory_;
      expect_error(ErrorKind::input, parts, [&] { make_backend(backend, {.threads = 1})->run(op); });
      expect_error(ErrorKind::input, {Op::kName}, [&] { check(op); });
      EXPECT_EQ(memory_, before) << "a refused op wrote to memory";
    }
  }

  // Contents of this tensor matter to the refusal: do not poison it.
  void keep(const ConstView& view) { kept_.push_back(view.data); }

 private:
  bool kept(const std::vector<std::byte>& bytes) const {
    for (const void* data : kept_)
      if (data == bytes.data()) return true;
    return false;
  }
  std::deque<std::vector<std::byte>> memory_;
  std::vector<const void*> kept_;
};

}  // namespace sluice::ops
