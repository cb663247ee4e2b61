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
constexpr const char* kArithmeticOfExperts = "arithmetic of experts";

// Two processors with the same instructions, or two devices of the same kind, give the same bits, whatever
// the number of threads.
std::string arithmetic(const ops::Backend& backend) {
  const std::string description = backend.description();
  const auto threads = description.find(" threads, ");
  const std::string kind =
      threads == std::string::npos ? description : description.substr(threads + std::size(" threads, ") - 1);
  return fmt::format("{} ({}{})", backend.name(), kind, backend.exact() ? ", exact" : "");
}

NodeStrength strength_of(const Cluster& cluster, const engine::Core& core, ops::Backend& backend) {
  constexpr double kWorthMeasuring = 1e9;
  constexpr std::uint64_t kMeasured = std::uint64_t{64} << 20;
  const std::uint64_t allowed = backend.traits().host_memory ? core.options.memory : core.options.vram;
  NodeStrength strength;
  strength.memory = memory_for_weights(cluster, backend, allowed);
  if (static_cast<double>(core.summary.weight_bytes) > kWorthMeasuring)
    strength.speed = backend.measure_rates(kMeasured).read_bytes_per_second;
  return strength;
}

NodeStrengths strengths_of(const Cluster& cluster, const engine::Core& core) {
  const NodeStrength whole = strength_of(cluster, core, *core.backend);
  const bool device = !core.backend->traits().host_memory;
  return {whole, device ? strength_of(cluster, core, *core.make_processor()) : whole, device};
}

// The program version comes first: another version may format the rest of the message differently.
Message introduce(const std::string& program, const std::vector<Fact>& facts,
                  const NodeStrengths& strengths) {
  Writer writer;
  writer.put(program);
  writer.put(strengths);
  writer.put(facts.size());
  for (const Fact& fact : facts) {
    writer.put(fact.what);
    writer.put(fact.value);
    writer.put(fact.of);
  }
  return writer.take();
}

struct Introduction {
  std::string program;
  NodeStrengths strengths = {};
  std::vector<Fact> facts = {};
};

std::vector<Fact> read_facts(Reader& reader) {
  std::vector<Fact> facts(reader.get<std::size_t>());
  for (Fact& fact : facts) {
    fact.what = reader.get_text();
    fact.value = reader.get_text();
    fact.of = reader.get<Fact::Of>();
  }
  return facts;
}

// Reads only the program version if it differs from this node's.
Introduction read_introduction(const Message& message, const std::string& program) {
  Introduction read;
  Reader reader(message);
  try {
    read.program = reader.get_text();
  } catch (const Error&) {
    read.program = "another one";
  }
  if (read.program != program) return read;
  read.strengths = reader.get<NodeStrengths>();
  read.facts = read_facts(reader);
  return read;
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

// Runs on the leading node with the introductions of all nodes. Throws if two differ or the model cannot be
// shared this way.
Layout settle_agreed(std::vector<Introduced>& nodes, std::span<const NodeStrengths> strengths,
                     const engine::Core& core, const std::string& written) {
  const std::vector<Part> parts = parts_of(parse_layout(written, to_int(nodes.size())));
  for (std::size_t n = 0; n < nodes.size(); ++n) nodes[n].part = parts[n];
  for (std::size_t n = 1; n < nodes.size(); ++n)
    for (std::size_t before = 0; before < n; ++before)
      if (const std::string found = difference(nodes[before], nodes[n]); !found.empty())
        fail(ErrorKind::input, "{}", found);
  return settle(written, core, strengths);
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
  writer.put(files::read_text_file(files.folder() / "config.json"));
  const std::vector<const checkpoint::TensorEntry*>& tensors = files.tensors();
  const std::size_t spacing = std::max<std::size_t>(1, tensors.size() / kSamples);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const checkpoint::TensorEntry& tensor = *tensors[i];
    writer.put(tensor.name);
    writer.put(tensor.data.size());
    if (i % spacing == 0) writer.put_all(tensor.data.first(std::min(kSampleBytes, tensor.data.size())));
  }
  return sluice::experts::fingerprint(writer.take());
}

std::vector<Fact> facts_of(const engine::Core& core) {
  const EngineOptions& options = core.options;
  const std::string own = arithmetic(*core.backend);
  using Of = Fact::Of;
  return {{"the checkpoint", fmt::format("{:016x}", fingerprint(core.store.files()))},
          {kArithmetic, own, Of::dense},
          {kArithmeticOfExperts,
           core.backend->traits().host_memory ? own : arithmetic(*core.make_processor()), Of::experts},
          {"the type of activations", std::string(name(core.settings.activations)), Of::dense},
          {"the cache's type", std::string(name(core.settings.cache.type)), Of::dense},
          {"the number of cache bits", fmt::format("{},{}", options.key_bits, options.value_bits), Of::dense},
          {"the prefill chunk",
           options.prefill_chunk > 0 ? fmt::format("{}", options.prefill_chunk) : "the default", Of::dense}};
}

std::vector<Part> parts_of(const Layout& layout) {
  std::vector<Part> parts;
  for (const Stage& stage : layout)
    for (std::int64_t node = 0; node < stage.nodes(); ++node)
      parts.push_back({.dense = node == 0, .shared_experts = stage.nodes() > 1});
  return parts;
}

namespace {

struct Said {
  std::string name;  // of a node
  std::string value;
};
std::string different(const std::string& what, const Said& first, const Said& other) {
  return fmt::format("{} differs: {} has {}, {} has {}", what, first.name, first.value, other.name,
                     other.value);
}

}  // namespace

std::string difference(const Introduced& first, const Introduced& other) {
  const auto both_compute = [&](Fact::Of of) {
    return of == Fact::Of::all || (of == Fact::Of::dense && first.part.dense && other.part.dense) ||
           (of == Fact::Of::experts && first.part.shared_experts && other.part.shared_experts);
  };
  for (std::size_t i = 0; i < first.facts.size(); ++i) {
    const Fact& one = first.facts[i];
    const Fact& two = other.facts[i];
    if (!both_compute(one.of) || one.value == two.value) continue;
    const bool arithmetic = one.what == kArithmetic || one.what == kArithmeticOfExperts;
    return different(one.what, {first.name, one.value}, {other.name, two.value}) +
           (arithmetic ? "; --isa gives all that of the lowest one" : "");
  }
  return {};
}

Layout agree(Cluster& cluster, const engine::Core& core, const std::string& program,
             const std::string& layout) {
  const std::vector<Fact> own = facts_of(core);
  const NodeStrengths strengths = strengths_of(cluster, core);
  if (cluster.rank() != 0) {
    cluster.send(0, Channel::replies, introduce(program, own, strengths));
    const Message verdict = cluster.receive(0, Channel::commands);
    Reader reader(verdict);
    const std::string refusal = reader.get_text();
    if (!refusal.empty()) refuse(cluster, refusal);
    return read_layout(reader);
  }
  std::vector<Introduced> nodes{{cluster.name(0), own, {}}};
  std::vector<NodeStrengths> all{strengths};
  std::string refusal;
  for (int other = 1; other < cluster.size(); ++other) {
    Introduction read = read_introduction(cluster.receive(other, Channel::replies), program);
    if (read.program != program && refusal.empty())
      refusal = different("the program", {cluster.name(0), program}, {cluster.name(other), read.program});
    all.push_back(read.strengths);
    nodes.push_back({cluster.name(other), std::move(read.facts), {}});
  }
  Layout settled;
  if (refusal.empty()) try {
      settled = settle_agreed(nodes, all, core, layout);
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
