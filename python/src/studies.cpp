// Operations on complete models: plans, perplexity, conversion, random weights.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "bindings.h"
#include "interruption.h"
#include "sluice/convert.h"
#include "sluice/perplexity.h"
#include "sluice/plan.h"
#include "sluice/random_model.h"

namespace sluice::python {

namespace {

nb::dict to_python(const PlacePlan& place) {
  nb::list contexts;
  for (const PlacePlan::Context& context : place.contexts) {
    nb::dict one;
    one["tokens"] = context.tokens;
    one["bytes"] = context.bytes;
    one["fits"] = context.fits;
    contexts.append(one);
  }
  nb::dict made;
  made["place"] = place.place;
  made["budget"] = place.budget;
  made["scratch"] = place.scratch;
  made["longest_context"] = place.longest_context;
  made["expert_slots"] = place.expert_slots;
  made["smallest_budget"] = place.smallest_budget;
  made["bytes_per_second"] = place.bytes_per_second;
  made["decode_tokens_per_second"] = place.decode_tokens_per_second;
  made["contexts"] = contexts;
  return made;
}

nb::dict plan(const std::filesystem::path& model, int bits, std::uint64_t memory, std::uint64_t vram,
              std::int64_t sequences) {
  MemoryPlan plan;
  {
    const Unlocked unlocked;
    const PlanOptions options{.vram = vram, .memory = memory, .sequences = sequences};
    plan = bits == 0 ? plan_model(model, options, {}) : plan_geometry(model.string(), bits, options, {});
  }
  nb::list places;
  for (const PlacePlan& place : plan.places) places.append(to_python(place));
  nb::dict made;
  made["architecture"] = plan.model.architecture;
  made["parameters"] = plan.model.parameters;
  made["active_parameters"] = plan.model.active_parameters;
  made["weight_bytes"] = plan.model.weight_bytes;
  made["dense_bytes"] = plan.dense;
  made["expert_bytes"] = plan.experts;
  made["places"] = places;
  return made;
}

nb::dict perplexity(Engine& engine, const std::string& text, std::int64_t context, std::int64_t stride) {
  const PerplexityResult result = interruptible([&](Interruption& interruption) {
    return measure_perplexity(engine, text, {.context = context, .stride = stride},
                              [&](std::uint64_t, std::uint64_t) { interruption.check(); });
  });
  nb::dict made;
  made["documents"] = result.documents;
  made["tokens"] = result.tokens;
  made["nats_per_token"] = result.nats_per_token;
  made["bits_per_byte"] = result.bits_per_byte;
  return made;
}

nb::dict convert(const std::filesystem::path& in, const std::filesystem::path& out,
                 const ConvertOptions& options) {
  const ConvertSummary summary = interruptible([&](Interruption& interruption) {
    return convert_checkpoint(in, out, options, [&](const ConvertProgress&) { interruption.check(); });
  });
  nb::dict made;
  made["tensors"] = summary.tensors;
  made["quantized"] = summary.quantized;
  made["parameters"] = summary.parameters;
  made["bytes_in"] = summary.bytes_in;
  made["bytes_out"] = summary.bytes_out;
  made["shards"] = summary.shards;
  return made;
}

}  // namespace

void bind_studies(nb::module_& module) {
  nb::class_<ConvertOptions>(module, "ConvertOptions")
      .def(nb::init<>())
      .def_rw("quantize", &ConvertOptions::quantize)
      .def_rw("bits", &ConvertOptions::bits)
      .def_rw("group_size", &ConvertOptions::group_size)
      .def_rw("mixed", &ConvertOptions::mixed)
      .def_rw("dtype", &ConvertOptions::dtype)
      .def_rw("threads", &ConvertOptions::threads);
  module.def("plan", &plan);
  module.def("perplexity", &perplexity);
  module.def("convert", &convert);
  module.def("write_random_model", [](const std::string& geometry, int bits,
                                      const std::filesystem::path& folder, double zipf) {
    return interruptible([&](Interruption& interruption) {
      return write_random_model(
          geometry, bits, folder, [&](std::uint64_t, std::uint64_t) { interruption.check(); }, zipf);
    });
  });
}

}  // namespace sluice::python
