// The part of a running template that filters, tests, methods and macros use.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace sluice::jinja {

class Runtime {
 public:
  explicit Runtime(const Limits& limits) : budget_(limits) {}

  Budget& budget() { return budget_; }

  // An object that lives until the render ends.
  template <class T, class... Args>
  T* make(Args&&... args) {
    budget_.grow(sizeof(T) + sizeof(void*));
    auto object = std::make_unique<T>(std::forward<Args>(args)...);
    T* result = object.get();
    objects_.push_back(std::move(object));
    return result;
  }

  // object.name and object[key]: each falls back to the other; undefined if both fail.
  Value attribute(const Value& object, const std::string& name);
  Value item(const Value& object, const Value& key);

  Value call(const Value& callee, const Call& call);
  Value filter(const std::string& name, const Value& subject, const Call& call);
  bool test(const std::string& name, const Value& subject, const Call& call);

 private:
  std::optional<Value> find_attribute(const Value& object, const std::string& name);

  Budget budget_;
  std::vector<std::unique_ptr<Object>> objects_;
};

// A function of the template's global scope, or a method bound to its subject.
class Function final : public Object {
 public:
  Function(std::string name, std::function<Value(const Call&)> body)
      : name_(std::move(name)), body_(std::move(body)) {}
  std::string type_name() const override { return "function"; }
  std::string repr(Budget&) const override { return "<function " + name_ + ">"; }
  bool callable() const override { return true; }
  Value call(const Call& call) override { return body_(call); }

 private:
  std::string name_;
  std::function<Value(const Call&)> body_;
};

}  // namespace sluice::jinja
