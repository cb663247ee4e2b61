#include "server/local/state.h"

namespace sluice::server::local {

namespace {

const char* name_of(SchedulerState::Phase phase) {
  switch (phase) {
    case SchedulerState::Phase::waiting:
      return "waiting";
    case SchedulerState::Phase::reading:
      return "reading";
    case SchedulerState::Phase::decoding:
      return "decoding";
    case SchedulerState::Phase::suspended:
      return "suspended";
  }
  return "";
}

}  // namespace

Json state_json(const ServedModel& model, const Scheduler& scheduler, const std::string* client) {
  const SchedulerState state = scheduler.state();
  Json sequences = Json::array();
  for (const SchedulerState::Sequence& one : state.sequences)
    if (client == nullptr || one.key == *client)
      sequences.push_back({{"id", one.id},
                           {"phase", name_of(one.phase)},
                           {"prompt_tokens", one.prompt},
                           {"read_tokens", one.read},
                           {"generated_tokens", one.generated},
                           {"seconds", one.seconds}});
  const EngineMemory memory = model.engine->memory();
  return {{"model", model.name},
          {"backend", model.engine->backend_description()},
          {"context", model.context},
          {"parallel", state.parallel},
          {"waiting", state.waiting},
          {"cache_tokens", state.cache_tokens},
          {"cache_tokens_used", state.cache_tokens_used},
          {"sequences", sequences},
          {"memory",
           {{"sessions", memory.sessions},
            {"shared", memory.shared},
            {"programs", memory.programs},
            {"allocated", memory.allocated}}}};
}

}  // namespace sluice::server::local
