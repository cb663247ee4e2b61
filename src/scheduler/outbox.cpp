#include "scheduler/outbox.h"

#include <utility>

namespace sluice::scheduler {

void Outbox::call(const Event& event) {
  const RequestCallbacks& callbacks = event.sequence->callbacks;
  if (const auto* read = std::get_if<Read>(&event.what)) {
    if (callbacks.progress) callbacks.progress(read->read, read->all);
  } else if (const auto* token = std::get_if<GeneratedToken>(&event.what)) {
    if (callbacks.token) callbacks.token(*token);
  } else if (callbacks.done) {
    callbacks.done(std::get<RequestResult>(event.what));
  }
}

std::int64_t Outbox::deliver() {
  std::int64_t done = 0;
  for (const Event& event : std::exchange(events_, {})) {
    if (std::holds_alternative<RequestResult>(event.what)) ++done;
    try {
      call(event);
    } catch (...) {
      if (!event.sequence->error) event.sequence->error = std::current_exception();
    }
  }
  return done;
}

}  // namespace sluice::scheduler
