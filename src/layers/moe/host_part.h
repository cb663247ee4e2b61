// The CPU's part of a device's pass, if experts are computed in host memory: rows are copied there, and
// results back. Results are rounded as by a CPU, as on other nodes.
#pragma once

#include <optional>

#include "layers/moe/gathered_choices.h"
#include "layers/moe/spread_experts.h"

namespace sluice::layers::moe {

class HostPart {
 public:
  // `cpu` computes in host memory, in F32.
  HostPart(ops::Backend& device, ops::Backend& cpu) : device_(device), cpu_(cpu) {}

  // The same question in host memory, valid until the next one: waits for the choices; `out` is filled by
  // those who answer.
  RemoteExperts::Question fetch(const RemoteExperts::Question& question);
  void compute(const RemoteExperts::Question& question, const Choices& choices, const ExpertSupply& supply);
  // Copies the results to the device.
  void put(const RemoteExperts::Question& answered, const ops::View& out);

 private:
  ops::View room_like(ops::Buffer& buffer, const ops::View& view);
  ops::View copy_of(ops::Buffer& buffer, const ops::View& view);

  ops::Backend& device_;
  ops::Backend& cpu_;
  ops::Buffer h_;
  ops::Buffer chosen_;
  ops::Buffer guessed_;
  ops::Buffer out_;
  std::optional<Arena> arena_;
  std::size_t arena_bytes_ = 0;
};

}  // namespace sluice::layers::moe
