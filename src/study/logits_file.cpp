#include "sluice/logits_file.h"

#include "checkpoint/safetensors_writer.h"
#include "sampling/argmax.h"
#include "sluice/session.h"

namespace sluice {

void write_logits_file(Engine& engine, std::span<const std::int32_t> tokens, std::int64_t greedy,
                       const std::filesystem::path& out,
                       const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  const auto count = std::ssize(tokens);
  const auto session = engine.new_session(count + greedy);
  std::vector<checkpoint::TensorInfo> infos{
      {"logits", checkpoint::FileDType::f32, {count, engine.summary().vocab}}};
  if (greedy > 0) infos.push_back({"greedy", checkpoint::FileDType::i32, {greedy}});
  checkpoint::SafetensorsWriter writer(out, infos, {});
  const std::uint64_t total = count + greedy;
  std::uint64_t done = 0;
  const auto advance = [&] {
    if (progress) progress(++done, total);
  };
  session->extend(tokens, [&](std::int64_t, std::span<const float> row) {
    writer.write("logits", std::as_bytes(row));
    advance();
  });
  std::vector<std::int32_t> chosen;
  for (std::int64_t i = 0; i < greedy; ++i) {
    chosen.push_back(sampling::argmax(session->logits()));
    if (i + 1 < greedy) session->step(chosen.back());
    advance();
  }
  if (greedy > 0) writer.write("greedy", std::as_bytes(std::span<const std::int32_t>(chosen)));
  writer.finish();
}

}  // namespace sluice
