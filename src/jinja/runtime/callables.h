// The objects that run template code when called: macros and loops.
#pragma once

#include "jinja/runtime/interpreter.h"

namespace sluice::jinja::runtime {

class Macro final : public Object {
 public:
  Macro(Interpreter& interpreter, const syntax::Signature& signature, const syntax::Body& body,
        const Scope& scope)
      : interpreter_(interpreter), signature_(signature), body_(body), scope_(scope) {}

  std::string type_name() const override { return "jinja2.runtime.Macro"; }
  std::string repr(Budget& budget) const override;
  std::optional<Value> attribute(std::string_view name) const override;
  bool callable() const override { return true; }
  Value call(const Call& call) override;

 private:
  Interpreter& interpreter_;
  const syntax::Signature& signature_;
  const syntax::Body& body_;
  const Scope& scope_;
};

// The `loop` variable.
class Loop final : public Object {
 public:
  Loop(Interpreter& interpreter, const syntax::Statement& statement, const Scope& scope, Values items,
       int depth)
      : interpreter_(interpreter),
        statement_(statement),
        scope_(scope),
        items_(std::move(items)),
        depth_(depth) {}

  const Values& items() const { return items_; }
  void move_to(std::size_t index) { index_ = index; }

  std::string type_name() const override { return "jinja2.runtime.LoopContext"; }
  std::string repr(Budget& budget) const override;
  std::optional<Value> attribute(std::string_view name) const override;
  bool callable() const override { return true; }
  Value call(const Call& call) override;

 private:
  Value cycle(const Call& call) const;
  bool changed(const Call& call);

  Interpreter& interpreter_;
  const syntax::Statement& statement_;
  const Scope& scope_;
  Values items_;
  int depth_;
  std::int64_t index_ = 0;
  std::optional<Values> last_changed_;
};

}  // namespace sluice::jinja::runtime
