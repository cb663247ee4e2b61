// Timelines of tokens. A session is used by one thread at a time: threads that share one wait for each other
// here, without the interpreter's lock.
#include "sluice/session.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

#include "generation.h"
#include "home.h"
#include "interruption.h"
#include "sluice/error.h"

namespace sluice::python {

namespace {

using Tokens = std::vector<std::int32_t>;

struct HeldSession {
  ~HeldSession() {
    if (!home.here()) static_cast<void>(session.release());
  }

  Home home;
  std::shared_ptr<Engine> engine;
  std::timed_mutex mutex;
  std::atomic<std::thread::id> user;  // the thread that has locked it
  std::unique_ptr<Session> session;   // null: closed
};

// Locks the session for this thread. A waiting thread can be interrupted; a callback of an answer that used
// the same session would otherwise wait forever.
class InUse {
 public:
  InUse(HeldSession& held, Interruption& interruption) : held_(held) {
    if (held.user == std::this_thread::get_id())
      throw Error(ErrorKind::input, "a session cannot be used by the on_token of its own answer");
    constexpr std::chrono::milliseconds kPatience{50};
    while (!held.mutex.try_lock_for(kPatience)) interruption.check();
    held.user = std::this_thread::get_id();
  }
  ~InUse() {
    held_.user = std::thread::id();
    held_.mutex.unlock();
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  HeldSession& held_;
};

// Runs f(session) or f(session, interruption) without the interpreter's lock, which another thread that uses
// the session may hold.
template <class F>
auto with(HeldSession& held, F&& f) {
  held.home.check("session");
  return interruptible([&](Interruption& interruption) {
    const InUse use(held, interruption);
    if (!held.session) throw Error(ErrorKind::input, "the session is closed");
    if constexpr (std::is_invocable_v<F, Session&, Interruption&>)
      return f(*held.session, interruption);
    else
      return f(*held.session);
  });
}

std::shared_ptr<HeldSession> new_session(std::shared_ptr<Engine> engine, std::int64_t capacity) {
  auto held = std::make_shared<HeldSession>();
  const Unlocked unlocked;
  held->session = engine->new_session(capacity);
  held->engine = std::move(engine);
  return held;
}

void close(HeldSession& held) {
  if (!held.home.here()) return;
  interruptible([&](Interruption& interruption) {
    const InUse use(held, interruption);
    held.session.reset();
  });
}

// After an interrupt, the session ends with the tokens computed so far.
void extend(HeldSession& held, const Tokens& tokens) {
  with(held, [&](Session& session, Interruption& interruption) {
    session.extend(tokens, [&](std::int64_t, std::int64_t) {
      interruption.check();
      return true;
    });
  });
}

// An array owned by Python.
nb::object to_numpy(std::vector<float>&& values, std::initializer_list<std::size_t> shape) {
  auto held = std::make_unique<std::vector<float>>(std::move(values));
  float* data = held->data();
  const nb::capsule owner(held.release(),
                          [](void* p) noexcept { delete static_cast<std::vector<float>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, float>(data, shape, owner));
}

nb::object logits(HeldSession& held) {
  std::vector<float> row = with(held, [](Session& session) {
    const auto values = session.logits();
    return std::vector<float>(values.begin(), values.end());
  });
  const std::size_t size = row.size();
  return to_numpy(std::move(row), {size});
}

// Returns every token's logits, one row each.
nb::object extend_with_logits(HeldSession& held, const Tokens& tokens) {
  std::vector<float> rows = with(held, [&](Session& session, Interruption& interruption) {
    std::vector<float> all;
    session.extend(tokens, [&](std::int64_t, std::span<const float> row) {
      interruption.check();
      if (all.empty()) all.reserve(row.size() * tokens.size());
      all.insert(all.end(), row.begin(), row.end());
    });
    return all;
  });
  const auto columns = static_cast<std::size_t>(held.engine->summary().vocab);
  return to_numpy(std::move(rows), {tokens.size(), columns});
}

bool goes_on(const nb::object& hear, const GeneratedToken& token, Interruption& interruption) {
  const Locked locked;
  if (!locked) return false;
  try {
    return nb::cast<bool>(hear(to_python(token)));
  } catch (nb::python_error& error) {
    interruption.restore(error);
    return false;
  }
}

// Returns the result, with the tokens unless `hear` is called with each.
nb::tuple generate_in(HeldSession& held, const Tokens& prompt, GenerateOptions options,
                      const nb::object& hear) {
  std::vector<GeneratedToken> tokens;
  const bool told = !hear.is_none();
  const GenerateResult result = with(held, [&](Session& session, Interruption& interruption) {
    options.progress = [&](std::int64_t, std::int64_t) { return !interruption.raised(); };
    const auto take = [&](const GeneratedToken& token) {
      if (interruption.raised()) return false;
      if (told) return goes_on(hear, token, interruption);
      tokens.push_back(token);
      return true;
    };
    GenerateResult made = generate(session, prompt, options, take);
    interruption.check();
    return made;
  });
  nb::list made;
  for (const GeneratedToken& token : tokens) made.append(to_python(token));
  return nb::make_tuple(to_python(result), made);
}

void bind_timeline(nb::class_<HeldSession>& session) {
  session.def("length", [](HeldSession& held) { return with(held, [](Session& s) { return s.length(); }); })
      .def("capacity", [](HeldSession& held) { return with(held, [](Session& s) { return s.capacity(); }); })
      .def("bytes", [](HeldSession& held) { return with(held, [](Session& s) { return s.bytes(); }); })
      .def("tokens", [](HeldSession& held) { return with(held, [](Session& s) { return s.tokens(); }); })
      .def("reset", [](HeldSession& held) { with(held, [](Session& s) { s.reset(); }); })
      .def("snapshot", [](HeldSession& held) { return with(held, [](Session& s) { return s.snapshot(); }); })
      .def("restore",
           [](HeldSession& held, const Snapshot& from) { with(held, [&](Session& s) { s.restore(from); }); })
      .def("mark", [](HeldSession& held) { return with(held, [](Session& s) { return s.mark(); }); })
      .def("rewind",
           [](HeldSession& held, const Snapshot& mark) { with(held, [&](Session& s) { s.rewind(mark); }); });
}

}  // namespace

void bind_session(nb::module_& module) {
  bind_generation(module);
  nb::class_<Snapshot>(module, "Snapshot", "A saved point of a timeline; len() is its number of tokens.")
      .def("__len__", &Snapshot::length)
      .def("__bool__", [](const Snapshot&) { return true; })
      .def("__repr__",
           [](const Snapshot& snapshot) {
             return "<sluice.Snapshot after " + std::to_string(snapshot.length()) + " tokens>";
           })
      .def_prop_ro("bytes", &Snapshot::bytes, "Memory that it takes.");
  nb::class_<HeldSession> session(module, "Session");
  bind_timeline(session);
  session.def("close", &close)
      .def("extend", &extend)
      .def("extend_with_logits", &extend_with_logits)
      .def("step",
           [](HeldSession& held, std::int32_t token) { with(held, [&](Session& s) { s.step(token); }); })
      .def("logits", &logits)
      .def("generate", &generate_in, nb::arg("prompt"), nb::arg("options"), nb::arg("hear").none());
  module.def("new_session", &new_session, nb::arg("engine"), nb::arg("capacity"));
}

}  // namespace sluice::python
