#include "layers/moe/host_part.h"

#include "base/integer_cast.h"

namespace sluice::layers::moe {

namespace {

constexpr std::int64_t kRowsPerCall = 256;

std::size_t bytes_of(const ops::View& view) {
  return to_size(view.elements()) * size_bytes(view.dtype);
}

}  // namespace

ops::View HostPart::room_like(ops::Buffer& buffer, const ops::View& view) {
  if (buffer.bytes() < bytes_of(view)) buffer = device_.allocate_pinned(bytes_of(view));
  return {buffer.data(), view.dtype, view.shape};
}

ops::View HostPart::copy_of(ops::Buffer& buffer, const ops::View& view) {
  if (!view.present()) return {};
  const ops::View copy = room_like(buffer, view);
  device_.download(copy.data, view.data, bytes_of(view));
  return copy;
}

RemoteExperts::Question HostPart::fetch(const RemoteExperts::Question& question) {
  device_.synchronize();
  RemoteExperts::Question here = question;
  here.h = copy_of(h_, question.h);
  here.chosen = copy_of(chosen_, question.chosen);
  here.guessed = copy_of(guessed_, question.guessed);
  here.out = room_like(out_, question.out);
  return here;
}

void HostPart::compute(const RemoteExperts::Question& question, const Choices& choices,
                       const ExpertSupply& supply) {
  const ops::Shape& shape = supply.gate_proj.shape();
  Arena counting;
  Device planning(counting, ops::DType::f32);
  [[maybe_unused]] const GatheredRows counted(planning, {}, shape, kRowsPerCall);
  if (arena_bytes_ < counting.peak()) {
    arena_.emplace(cpu_.allocate(counting.peak()));
    arena_bytes_ = counting.peak();
  }
  Device cpu(cpu_, *arena_, ops::DType::f32);
  cpu.set_phase(question.phase);
  const Scope scope = cpu.scope();
  GatheredRows rows(cpu, {question.h.data, question.out.data, question.h.dtype}, shape, kRowsPerCall);
  rows.compute(choices, supply);
}

void HostPart::put(const RemoteExperts::Question& answered, const ops::View& out) {
  device_.upload(out.data, answered.out.data, bytes_of(out));
}

}  // namespace sluice::layers::moe
