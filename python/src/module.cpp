#include "bindings.h"
#include "home.h"
#include "unlocked.h"

NB_MODULE(_native, module) {
  using namespace sluice::python;
  module.doc() = "The native part of the package sluice. Its names may change, unlike those of the package.";
  watch_forks();
  watch_interpreter();
  bind_errors(module);
  bind_engine(module);
  bind_session(module);
  bind_scheduler(module);
  bind_answers(module);
  bind_ops(module);
  bind_studies(module);
}
