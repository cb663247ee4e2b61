// Concurrent requests.
#include "sluice/scheduler.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <mutex>
#include <string>

#include "generation.h"
#include "home.h"
#include "mailbox.h"
#include "sluice/error.h"
#include "unlocked.h"

namespace sluice::python {

namespace {

// Closing cancels and waits for running requests, without the interpreter's lock.
struct HeldScheduler {
  ~HeldScheduler() { close(); }
  void close() {
    std::shared_ptr<Scheduler> last;
    {
      const std::lock_guard lock(mutex);
      last = std::move(scheduler);
    }
    if (!last) return;
    if (!home.here()) {
      static_cast<void>(new std::shared_ptr<Scheduler>(std::move(last)));  // intentionally never destroyed
      return;
    }
    const Unlocked unlocked;
    last.reset();
  }
  std::shared_ptr<Scheduler> get() {
    home.check("scheduler");
    const std::lock_guard lock(mutex);
    if (!scheduler) throw Error(ErrorKind::input, "the scheduler is closed");
    return scheduler;
  }

  Home home;
  std::mutex mutex;
  std::shared_ptr<Scheduler> scheduler;
};

std::shared_ptr<HeldScheduler> new_scheduler(std::shared_ptr<Engine> engine,
                                             const SchedulerOptions& options) {
  auto held = std::make_shared<HeldScheduler>();
  const Unlocked unlocked;
  held->scheduler = std::make_shared<Scheduler>(std::move(engine), options);
  return held;
}

struct HeldRequest {
  void cancel() const {
    if (home.here()) handle.cancel();
  }

  Home home;
  RequestHandle handle;
};

HeldRequest submit(HeldScheduler& held, Request request, const std::shared_ptr<Mailbox>& mailbox,
                   std::uint64_t ticket) {
  const std::shared_ptr<Scheduler> scheduler = held.get();
  const Unlocked unlocked;
  HeldRequest made;
  made.handle =
      scheduler->submit(std::move(request), {.progress =
                                                 [=](std::int64_t read, std::int64_t all) {
                                                   mailbox->leave({ticket, PromptProgress{read, all}});
                                                 },
                                             .token =
                                                 [=](const GeneratedToken& token) {
                                                   mailbox->leave({ticket, token});
                                                 },
                                             .done =
                                                 [=](const RequestResult& result) {
                                                   mailbox->leave({ticket, result});
                                                 }});
  return made;
}

nb::object said(const PromptProgress& progress) {
  return nb::make_tuple(progress.read, progress.all);
}

nb::object said(const GeneratedToken& token) {
  return to_python(token);
}

nb::object said(const RequestResult& result) {
  nb::dict made = to_python(result.generated);
  made["prompt_tokens"] = result.prompt.tokens;
  made["cached_tokens"] = result.prompt.cached;
  return nb::make_tuple(made, result.error ? exception_of(result.error) : nb::none());
}

// (ticket, kind, content)
nb::list take(Mailbox& mailbox) {
  mailbox.home.check("request");
  constexpr const char* kKinds[] = {"progress", "token", "done"};
  nb::list made;
  for (const Letter& letter : mailbox.take())
    made.append(
        nb::make_tuple(letter.ticket, kKinds[letter.news.index()],
                       std::visit([](const auto& news) -> nb::object { return said(news); }, letter.news)));
  return made;
}

// Waits for a message; Ctrl-C and other signal handlers run meanwhile.
void wait(Mailbox& mailbox) {
  mailbox.home.check("request");
  constexpr std::chrono::milliseconds kPatience{50};
  for (;;) {
    {
      const Unlocked unlocked;
      if (mailbox.wait(kPatience)) return;
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

nb::dict state(HeldScheduler& held) {
  const SchedulerState s = held.get()->state();
  nb::dict made;
  made["running"] = s.sequences.size();
  made["waiting"] = s.waiting;
  made["parallel"] = s.parallel;
  made["context"] = s.context;
  made["cache_tokens"] = s.cache_tokens;
  made["cache_tokens_used"] = s.cache_tokens_used;
  made["requests"] = s.requests;
  made["finished"] = s.finished;
  made["cancelled"] = s.cancelled;
  made["failed"] = s.failed;
  made["refused"] = s.refused;
  made["suspensions"] = s.suspensions;
  made["prompt_tokens"] = s.prompt_tokens;
  made["cached_tokens"] = s.cached_tokens;
  made["generated_tokens"] = s.generated_tokens;
  made["decode_steps"] = s.decode_steps;
  return made;
}

void bind_requests(nb::module_& module) {
  nb::class_<SchedulerOptions>(module, "SchedulerOptions")
      .def(nb::init<>())
      .def_rw("parallel", &SchedulerOptions::parallel)
      .def_rw("context", &SchedulerOptions::context)
      .def_rw("cache_tokens", &SchedulerOptions::cache_tokens)
      .def_rw("queue", &SchedulerOptions::queue)
      .def_rw("token_interval_seconds", &SchedulerOptions::token_interval_seconds);
  nb::class_<Request>(module, "Request", "Made by Model.request() for a Scheduler.")
      .def(nb::init<>())
      .def("__repr__",
           [](const Request& request) {
             return "<sluice.Request of " + std::to_string(request.prompt.size()) + " tokens>";
           })
      .def_rw("prompt", &Request::prompt)
      .def_rw("options", &Request::options)
      .def_rw("key", &Request::key)
      .def_rw("priority", &Request::priority)
      .def_rw("timeout_seconds", &Request::timeout_seconds);
  nb::class_<HeldRequest>(module, "RequestHandle")
      .def("cancel", &HeldRequest::cancel, nb::call_guard<Unlocked>());
}

}  // namespace

void bind_scheduler(nb::module_& module) {
  bind_requests(module);
  nb::class_<Mailbox>(module, "Mailbox").def("wait", &wait).def("take", &take).def("file", &Mailbox::file);
  module.def("new_mailbox", [] { return kept_at_home(std::make_shared<Mailbox>()); });
  nb::class_<HeldScheduler>(module, "Scheduler")
      .def("submit", &submit, nb::arg("request"), nb::arg("mailbox"), nb::arg("ticket"))
      .def("state", &state)
      .def("drain",
           [](HeldScheduler& held) {
             const std::shared_ptr<Scheduler> scheduler = held.get();
             const Unlocked unlocked;
             scheduler->drain();
           })
      .def("close", &HeldScheduler::close);
  module.def("new_scheduler", &new_scheduler, nb::arg("engine"), nb::arg("options"));
}

}  // namespace sluice::python
