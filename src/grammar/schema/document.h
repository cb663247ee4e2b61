// A schema document: the location of its parts, the targets of its references, and schemas derived from
// others.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "grammar/json/value.h"
#include "grammar/schema/scope.h"

namespace sluice::grammar {

class SchemaDocument {
 public:
  explicit SchemaDocument(JsonValue root);

  const JsonValue& root() const { return root_; }
  // What a reference in `schema` points to. Throws if it is not in the document, naming the keyword.
  const JsonValue& resolve(const JsonValue& schema, std::string_view reference,
                           std::string_view keyword = "$ref") const;
  // The same for a dynamic reference, which may resolve to a schema in a resource through which it was
  // reached.
  const JsonValue& resolve_dynamic(const JsonValue& schema, std::string_view reference,
                                   const Scope* scope) const;
  bool has_dynamic_references() const { return has_dynamic_references_; }
  // The innermost enclosing schema with an identifier of its own.
  const JsonValue& resource_of(const JsonValue& schema) const;
  // The location of a schema as a JSON pointer; of a derived one, its origin's.
  std::string path(const JsonValue& schema) const;
  // Stores a schema derived from another.
  const JsonValue& keep(JsonValue schema, const JsonValue& origin);
  // Whether a draft up to 7 applies, in which a reference hides its siblings.
  bool reference_alone() const { return reference_alone_; }
  // Whether items matched by `contains` count as evaluated; in draft 2019-09 they do not.
  bool contains_evaluates() const { return contains_evaluates_; }

 private:
  struct Location {
    const JsonValue* parent = nullptr;
    std::string key;
    bool made = false;  // derived from the parent, so it has the parent's location
  };

  // What a value in a schema is; only keywords in schemas have a meaning.
  enum class Role { schema, schemas_by_name, data };

  void index(const JsonValue& value, const JsonValue* parent, std::string key, Role role);
  static Role role_of(std::string_view keyword);
  void index_names(const JsonValue& schema);
  void index_id(const JsonValue& schema);
  const std::string* id_of(const JsonValue& schema) const {
    const auto found = ids_.find(&schema);
    return found == ids_.end() ? nullptr : found->second;
  }
  std::string base_of(const JsonValue& schema) const;
  const JsonValue* follow(const JsonValue& from, std::string_view pointer) const;

  JsonValue root_;
  bool reference_alone_ = false;
  bool old_id_ = false;
  bool contains_evaluates_ = true;
  bool has_dynamic_references_ = false;
  std::deque<JsonValue> made_;
  std::unordered_map<const JsonValue*, Location> locations_;
  std::unordered_map<const JsonValue*, const std::string*> ids_;
  std::unordered_map<std::string, const JsonValue*> resources_;  // by absolute URI
  std::unordered_map<const JsonValue*, std::unordered_map<std::string, const JsonValue*>> anchors_,
      dynamic_anchors_;  // by resource
};

}  // namespace sluice::grammar
