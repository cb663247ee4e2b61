#include "convert/plan.h"

#include <functional>
#include <numeric>

namespace sluice::convert {

int64_t Parameter::rows() const {
  return std::accumulate(shape.begin(), shape.end() - 1, int64_t{1}, std::multiplies<>());
}

std::vector<checkpoint::TensorInfo> stored_tensors(const Parameter& parameter) {
  if (!parameter.quant) return {{parameter.name, parameter.dtype, parameter.shape}};
  std::vector<int64_t> packed = parameter.shape;
  std::vector<int64_t> groups = parameter.shape;
  packed.back() = parameter.columns() * parameter.quant->bits / 32;
  groups.back() = parameter.columns() / parameter.quant->group_size;
  const std::string module = parameter.module();
  return {{parameter.name, checkpoint::FileDType::u32, packed},
          {module + ".scales", parameter.dtype, groups},
          {module + ".biases", parameter.dtype, groups}};
}

}  // namespace sluice::convert
