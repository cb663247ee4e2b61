// Loaded models: text, sizes, and the creation of sessions.
#include "sluice/engine.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "home.h"
#include "interruption.h"
#include "sluice/find_model.h"
#include "sluice/generation_config.h"

namespace sluice::python {

namespace {

using Release = nb::call_guard<Unlocked>;

nb::dict summary(const Engine& engine) {
  const ModelSummary& s = engine.summary();
  nb::dict made;
  made["architecture"] = s.architecture;
  made["layers"] = s.layers;
  made["linear_layers"] = s.linear_layers;
  made["hidden"] = s.hidden;
  made["vocab"] = s.vocab;
  made["max_positions"] = s.max_positions;
  made["experts"] = s.experts;
  made["experts_per_token"] = s.experts_per_token;
  made["parameters"] = s.parameters;
  made["active_parameters"] = s.active_parameters;
  made["weight_bytes"] = s.weight_bytes;
  made["bytes_per_token"] = s.bytes_per_token;
  made["cache_bytes_per_position"] = s.cache_bytes_per_position;
  made["state_bytes"] = s.state_bytes;
  nb::dict parts;
  for (const ModelSummary::Part& part : s.parts) {
    nb::dict numbers;
    numbers["parameters"] = part.parameters;
    numbers["bytes"] = part.bytes;
    parts[nb::cast(std::string(name(part.kind)))] = numbers;
  }
  made["parts"] = parts;
  made["formats"] = s.formats;
  return made;
}

nb::dict memory(const Engine& engine) {
  const EngineMemory m = engine.memory();
  nb::dict made;
  made["sessions"] = m.sessions;
  made["shared"] = m.shared;
  made["programs"] = m.programs;
  made["allocated"] = m.allocated;
  return made;
}

nb::dict generation_config(const std::filesystem::path& folder) {
  const GenerationConfig config = read_generation_config(folder);
  nb::dict made;
  if (config.temperature) made["temperature"] = *config.temperature;
  if (config.top_k) made["top_k"] = *config.top_k;
  if (config.top_p) made["top_p"] = *config.top_p;
  if (config.min_p) made["min_p"] = *config.min_p;
  if (config.repetition_penalty) made["repetition_penalty"] = *config.repetition_penalty;
  return made;
}

// make(options): Ctrl-C ends it if it reports progress.
template <class F>
std::shared_ptr<Engine> made(EngineOptions options, F&& make) {
  return interruptible([&](Interruption& interruption) {
    options.progress = [&](std::uint64_t, std::uint64_t) { interruption.check(); };
    return kept_at_home(make(options));
  });
}

std::shared_ptr<Engine> load(const std::filesystem::path& folder, const EngineOptions& options) {
  return made(options, [&](const EngineOptions& heard) { return Engine::load(folder, heard); });
}

std::shared_ptr<Engine> random(std::string_view geometry, int bits, const EngineOptions& options,
                               double zipf) {
  return made(options,
              [&](const EngineOptions& heard) { return Engine::random(geometry, bits, heard, zipf); });
}

void bind_options(nb::module_& module) {
  nb::class_<EngineOptions>(module, "EngineOptions")
      .def(nb::init<>())
      .def_rw("backend", &EngineOptions::backend)
      .def_rw("threads", &EngineOptions::threads)
      .def_rw("isa", &EngineOptions::isa)
      .def_rw("prefill_chunk", &EngineOptions::prefill_chunk)
      .def_rw("key_bits", &EngineOptions::key_bits)
      .def_rw("value_bits", &EngineOptions::value_bits)
      .def_rw("exact", &EngineOptions::exact)
      .def_rw("memory", &EngineOptions::memory)
      .def_rw("vram", &EngineOptions::vram)
      .def_rw("miss", &EngineOptions::miss)
      .def_rw("expert_slots", &EngineOptions::expert_slots)
      .def_rw("expert_policy", &EngineOptions::expert_policy);
}

}  // namespace

void bind_engine(nb::module_& module) {
  module.attr("with_cuda") = SLUICE_WITH_CUDA != 0;
  bind_options(module);
  nb::class_<Engine>(module, "Engine")
      .def_static("load", &load, nb::arg("folder"), nb::arg("options"))
      .def_static("random", &random, nb::arg("geometry"), nb::arg("bits"), nb::arg("options"),
                  nb::arg("zipf"))
      .def("summary", &summary)
      .def("memory", &memory)
      .def("backend_description", &Engine::backend_description)
      .def("session_bytes", &Engine::session_bytes, nb::arg("capacity"))
      .def("has_tokenizer", &Engine::has_tokenizer)
      .def("has_chat_template", &Engine::has_chat_template)
      .def("encode", &Engine::encode, nb::arg("text"), nb::arg("add_special_tokens"), Release())
      .def(
          "decode",
          [](const Engine& engine, const std::vector<std::int32_t>& ids, bool skip_special) {
            // The ids may end inside a character; it is then replaced as Python does.
            std::string text;
            {
              const Unlocked unlocked;
              text = engine.decode(ids, skip_special);
            }
            return nb::steal<nb::str>(
                PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
          },
          nb::arg("ids"), nb::arg("skip_special"))
      .def("render_chat", &Engine::render_chat, nb::arg("messages_json"), nb::arg("add_generation_prompt"),
           nb::arg("variables_json"), Release())
      .def("stop_ids", [](const Engine& engine) { return engine.stop_ids(); });
  module.def(
      "find_model",
      [](const nb::bytes& name, const std::vector<std::filesystem::path>& folders) {
        return find_model(std::string(name.c_str(), name.size()), folders);
      },
      nb::arg("name"), nb::arg("folders"));
  module.def("generation_config", &generation_config, nb::arg("folder"));
}

}  // namespace sluice::python
