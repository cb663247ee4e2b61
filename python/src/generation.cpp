#include "generation.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace sluice::python {

nb::str to_str(const std::string& text) {
  return nb::steal<nb::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

const char* name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::cancelled:
      return "cancelled";
  }
  return "?";
}

nb::object to_python(const GeneratedToken& token) {
  nb::list top;
  for (const TokenLogprob& one : token.top) top.append(nb::make_tuple(one.id, one.logprob));
  return nb::make_tuple(token.id, to_str(token.text), token.logprob, top);
}

nb::dict to_python(const GenerateResult& result) {
  nb::dict made;
  made["text"] = to_str(result.text);
  made["ids"] = result.ids;
  made["finish_reason"] = name_of(result.reason);
  made["prompt_tokens"] = result.prompt_tokens;
  made["prompt_seconds"] = result.prompt_seconds;
  made["first_token_seconds"] = result.first_token_seconds;
  made["decode_seconds"] = result.decode_seconds;
  return made;
}

void bind_generation(nb::module_& module) {
  nb::class_<SamplingSettings>(module, "SamplingSettings")
      .def(nb::init<>())
      .def_rw("temperature", &SamplingSettings::temperature)
      .def_rw("top_k", &SamplingSettings::top_k)
      .def_rw("top_p", &SamplingSettings::top_p)
      .def_rw("min_p", &SamplingSettings::min_p)
      .def_rw("repetition_penalty", &SamplingSettings::repetition_penalty)
      .def_rw("presence_penalty", &SamplingSettings::presence_penalty)
      .def_rw("frequency_penalty", &SamplingSettings::frequency_penalty)
      .def_rw("penalty_window", &SamplingSettings::penalty_window)
      .def_rw("logit_bias", &SamplingSettings::logit_bias)
      .def_rw("seed", &SamplingSettings::seed)
      .def_rw("logprobs", &SamplingSettings::logprobs);
  nb::class_<GenerateOptions>(module, "GenerateOptions")
      .def(nb::init<>())
      .def_rw("max_tokens", &GenerateOptions::max_tokens)
      .def_rw("min_tokens", &GenerateOptions::min_tokens)
      .def_rw("sampling", &GenerateOptions::sampling)
      .def_rw("stop", &GenerateOptions::stop)
      .def_rw("extra_stop_ids", &GenerateOptions::extra_stop_ids)
      .def_rw("ignore_stop_ids", &GenerateOptions::ignore_stop_ids)
      .def_rw("skip_special", &GenerateOptions::skip_special);
}

}  // namespace sluice::python
