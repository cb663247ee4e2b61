// Enters and leaves a block with its own scope.
#pragma once

#include "jinja/runtime/interpreter.h"

namespace sluice::jinja::runtime {

class InnerScope {
 public:
  explicit InnerScope(Interpreter& interpreter) : InnerScope(interpreter, interpreter.scope_) {}
  InnerScope(Interpreter& interpreter, const Scope* parent);
  ~InnerScope();
  InnerScope(const InnerScope&) = delete;
  InnerScope& operator=(const InnerScope&) = delete;

  Scope& operator*() { return *scope_; }
  Scope* operator->() { return scope_; }

 private:
  Interpreter& interpreter_;
  Scope* outer_;
  Scope* scope_;
};

}  // namespace sluice::jinja::runtime
