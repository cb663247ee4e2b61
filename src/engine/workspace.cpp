#include "engine/workspace.h"

#include "base/error.h"

namespace sluice::engine {

std::uint64_t Workspace::bytes(const layers::Decoder& decoder, const Settings& settings,
                               std::int64_t tokens) {
  return decoder.activation_bytes(tokens, settings.cache, settings.activations) +
         kInputs * input_bytes(tokens);
}

std::uint64_t Workspace::bytes() const {
  return tokens_ == 0 ? 0 : bytes(core_.model.decoder, core_.settings, tokens_);
}

std::uint64_t Workspace::growth(std::int64_t tokens) const {
  return tokens <= tokens_ ? 0 : claimed(tokens) - claimed(tokens_);
}

void Workspace::grow(std::int64_t tokens, std::uint64_t beside) {
  if (tokens <= tokens_) return;
  claims_.push_back(core_.budget.claim(growth(tokens), beside));
  core_.backend->synchronize();
  drop();
  ops::Backend& backend = *core_.backend;
  arena_ = layers::Arena(backend.allocate(
      core_.model.decoder.activation_bytes(tokens, core_.settings.cache, core_.settings.activations)));
  for (ops::Buffer* buffer : {&ids_, &positions_, &seq_starts_, &slots_, &starts_, &saves_})
    *buffer = backend.allocate(input_bytes(tokens));
  tokens_ = tokens;
}

void Workspace::drop() {
  tokens_ = 0;
  arena_ = layers::Arena();
  for (ops::Buffer* buffer : {&ids_, &positions_, &seq_starts_, &slots_, &starts_, &saves_}) *buffer = {};
}

void Workspace::release() {
  drop();
  claims_.clear();
}

ops::ConstView Workspace::put(ops::Buffer& buffer, std::span<const std::int32_t> values) {
  if (values.size_bytes() > buffer.bytes())
    fail(ErrorKind::internal, "{} values do not fit a workspace for {} tokens", values.size(), tokens_);
  core_.backend->upload(buffer.data(), values.data(), values.size_bytes());
  return {buffer.data(), ops::DType::i32, {std::ssize(values)}};
}

}  // namespace sluice::engine
