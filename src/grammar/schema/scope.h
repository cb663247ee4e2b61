// Where a schema is applied, for keywords that depend on it: unevaluatedProperties and unevaluatedItems
// depend on what other schemas say of the same value, $dynamicRef on the schemas through which it was
// reached. Elsewhere the scope is a null pointer.
#pragma once

#include <map>
#include <tuple>

#include "grammar/json/value.h"

namespace sluice::grammar::schema {

struct Scope {
  // For the same value: the schemas that need to know what is evaluated here. A scope without owner is a
  // `not`, which reports nothing outward.
  const Scope* outer = nullptr;
  const json::Value* owner = nullptr;
  // The schema resources on the path from the root of the value, each where it was first entered.
  const Scope* resources = nullptr;  // the scope of the previous resource
  const json::Value* resource = nullptr;
};

// Interns scopes, so equal scopes are one object.
class Scopes {
 public:
  const Scope* make(const Scope& scope) {
    if (scope.outer == nullptr && scope.owner == nullptr && scope.resource == nullptr) return nullptr;
    const auto [found, added] =
        known_.try_emplace({scope.outer, scope.owner, scope.resources, scope.resource}, scope);
    return &found->second;
  }
  // The scope for a part of the value.
  const Scope* inner(const Scope* scope) {
    return scope == nullptr ? nullptr : make({.resources = scope->resources, .resource = scope->resource});
  }
  const Scope* owned(const Scope* scope, const json::Value& owner) {
    Scope made{.outer = scope, .owner = &owner};
    return make(with_resources(made, scope));
  }
  const Scope* negated(const Scope* scope) {
    return collects(scope) ? make(with_resources({.outer = scope}, scope)) : scope;
  }
  const Scope* entered(const Scope* scope, const json::Value& resource) {
    for (const Scope* at = scope; at != nullptr; at = at->resources)
      if (at->resource == &resource) return scope;
    Scope made = scope == nullptr ? Scope{} : *scope;
    made.resources = scope == nullptr || scope->resource == nullptr ? nullptr : inner(scope);
    made.resource = &resource;
    return make(made);
  }

  // Whether any schema needs to know what is evaluated here.
  static bool collects(const Scope* scope) { return scope != nullptr && scope->owner != nullptr; }
  // Whether `owner` learns what is evaluated in `scope`.
  static bool tells(const Scope* scope, const Scope* owner) {
    for (; collects(scope); scope = scope->outer)
      if (scope->owner == owner->owner && scope->outer == owner->outer) return true;
    return false;
  }

 private:
  static Scope with_resources(Scope made, const Scope* scope) {
    if (scope != nullptr) {
      made.resources = scope->resources;
      made.resource = scope->resource;
    }
    return made;
  }

  using Key = std::tuple<const Scope*, const json::Value*, const Scope*, const json::Value*>;
  std::map<Key, Scope> known_;
};

}  // namespace sluice::grammar::schema
