#include "nodes/agreement.h"

#include <algorithm>

#include "base/error.h"
#include "base/files/text_file.h"
#include "base/integer_cast.h"
#include "experts/fingerprint.h"
#include "nodes/measure.h"
#include "nodes/settle.h"
#include "nodes/wire.h"

namespace sluice::nodes {

namespace {

constexpr const char* kArithmetic = "arithmetic";

// Two processors with the same instructions, or two devices of one kind, give the same bits. How many threads
// there are makes no difference.
std::string arithmetic(const ops::Backend& backend) {
  const std::string description = backend.description();
  const auto threads = description.find(" threads, ");
  const std::string kind =
      threads == std::string::npos ? description : description.substr(threads + std::size(" threads, ") - 1);
  return fmt::format("{} ({}{})", backend.name(), kind, backend.exact() ? ", exact" : "");
}

NodeStrength strength_of(const Cluster& cluster, const engine::Core& core) {
  constexpr double kWorthMeasuring = 1e9;
  constexpr std::uint64_t kMeasured = std::uint64_t{64} << 20;
  NodeStrength strength;
  strength.memory = memory_for_weights(cluster, *core.backend, core.options.memory);
  if (static_cast<double>(core.summary.weight_bytes) > kWorthMeasuring)
    strength.speed = core.backend->measure_rates(kMeasured).read_bytes_per_second;
  return strength;
}

Message introduce(const std::vector<Fact>& facts, const NodeStrength& strength) {
  Writer writer;
  writer.put(strength);
  writer.put(facts.size());
  for (const Fact& fact : facts) {
    writer.put(fact.what);
    writer.put(fact.value);
  }
  return writer.take();
}

std::vector<Fact> read_facts(Reader& reader) {
  std::vector<Fact> facts(reader.get<std::size_t>());
  for (Fact& fact : facts) {
    fact.what = reader.get_text();
    fact.value = reader.get_text();
  }
  return facts;
}

void put(Writer& writer, const Layout& layout) {
  writer.put(layout.size());
  for (const Stage& stage : layout) {
    writer.put(stage.layers);
    writer.put_all(std::span<const std::int64_t>(stage.experts));
  }
}

Layout read_layout(Reader& reader) {
  Layout layout(reader.get<std::size_t>());
  for (Stage& stage : layout) {
    stage.layers = reader.get<std::int64_t>();
    stage.experts = reader.get_all<std::int64_t>();
  }
  return layout;
}

[[noreturn]] void refuse(Cluster& cluster, const std::string& sentence) {
  cluster.end_together();
  throw Error(ErrorKind::input, sentence);
}

}  // namespace

std::uint64_t fingerprint(const checkpoint::TensorFiles& files) {
  constexpr std::size_t kSamples = 64;
  constexpr std::size_t kSampleBytes = 4096;
  Writer writer;
  writer.put(read_text_file(files.folder() / "config.json"));
  const std::vector<const checkpoint::TensorEntry*>& tensors = files.tensors();
  const std::size_t spacing = std::max<std::size_t>(1, tensors.size() / kSamples);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const checkpoint::TensorEntry& tensor = *tensors[i];
    writer.put(tensor.name);
    writer.put(tensor.data.size());
    if (i % spacing == 0) writer.put_all(tensor.data.first(std::min(kSampleBytes, tensor.data.size())));
  }
  return experts::fingerprint(writer.take());
}

std::vector<Fact> facts_of(const engine::Core& core, const std::string& program) {
  const EngineOptions& options = core.options;
  return {{"the program", program},
          {"the checkpoint", fmt::format("{:016x}", fingerprint(core.store.files()))},
          {kArithmetic, arithmetic(*core.backend)},
          {"the type of activations", std::string(name(core.settings.activations))},
          {"the cache's type", std::string(name(core.settings.cache.type))},
          {"the cache's bits", fmt::format("{},{}", options.key_bits, options.value_bits)},
          {"the prefill chunk", fmt::format("{}", options.prefill_chunk)}};
}

std::string difference(const std::vector<Fact>& first, const std::string& first_name,
                       const std::vector<Fact>& other, const std::string& other_name) {
  if (first.size() != other.size())
    return fmt::format("{} and {} run different programs", first_name, other_name);
  for (std::size_t i = 0; i < first.size(); ++i)
    if (first[i].what != other[i].what || first[i].value != other[i].value)
      return fmt::format("{} differs: {} has {}, {} has {}{}", first[i].what, first_name, first[i].value,
                         other_name, other[i].value,
                         first[i].what == kArithmetic ? "; --isa gives all that of the lowest one" : "");
  return {};
}

Layout agree(Cluster& cluster, const engine::Core& core, const std::string& program,
             const std::string& layout) {
  const std::vector<Fact> own = facts_of(core, program);
  const NodeStrength strength = strength_of(cluster, core);
  if (cluster.rank() != 0) {
    cluster.send(0, Channel::replies, introduce(own, strength));
    const Message verdict = cluster.receive(0, Channel::commands);
    Reader reader(verdict);
    const std::string refusal = reader.get_text();
    if (!refusal.empty()) refuse(cluster, refusal);
    return read_layout(reader);
  }
  std::vector<NodeStrength> strengths{strength};
  std::string refusal;
  for (int other = 1; other < cluster.size(); ++other) {
    const Message message = cluster.receive(other, Channel::replies);
    Reader reader(message);
    strengths.push_back(reader.get<NodeStrength>());
    const std::vector<Fact> facts = read_facts(reader);
    if (refusal.empty()) refusal = difference(own, cluster.name(0), facts, cluster.name(other));
  }
  Layout settled;
  if (refusal.empty()) try {
      settled = settle(layout, core, strengths);
    } catch (const Error& error) {
      refusal = error.what();
    }
  for (int other = 1; other < cluster.size(); ++other) {
    Writer writer;
    writer.put(refusal);
    put(writer, settled);
    cluster.send(other, Channel::commands, writer.take());
  }
  if (!refusal.empty()) refuse(cluster, refusal);
  return settled;
}

}  // namespace sluice::nodes
