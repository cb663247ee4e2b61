// A schema document: the location of its parts, the targets of its references, and schemas derived from
// others.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "grammar/json/value.h"
#include "grammar/schema/scope.h"

namespace sluice::grammar::schema {

class Document {
 public:
  explicit Document(json::Value root);

  const json::Value& root() const { return root_; }
  // What a reference in `schema` points to. Throws if it is not in the document, naming the keyword.
  const json::Value& resolve(const json::Value& schema, std::string_view reference,
                             std::string_view keyword = "$ref") const;
  // The same for a dynamic reference, which may resolve to a schema in a resource through which it was
  // reached.
  const json::Value& resolve_dynamic(const json::Value& schema, std::string_view reference,
                                     const Scope* scope) const;
  bool has_dynamic_references() const { return has_dynamic_references_; }
  // The innermost enclosing schema with an identifier of its own.
  const json::Value& resource_of(const json::Value& schema) const;
  // The location of a schema as a JSON pointer; of a derived one, its origin's.
  std::string path(const json::Value& schema) const;
  // Stores a schema derived from another.
  const json::Value& keep(json::Value schema, const json::Value& origin);
  // Whether a draft up to 7 applies, in which a reference hides its siblings.
  bool reference_alone() const { return reference_alone_; }
  // Whether items matched by `contains` count as evaluated; in draft 2019-09 they do not.
  bool contains_evaluates() const { return contains_evaluates_; }

 private:
  struct Location {
    const json::Value* parent = nullptr;
    std::string key;
    bool made = false;  // derived from the parent, so it has the parent's location
  };

  // What a value in a schema is; only keywords in schemas have a meaning.
  enum class Role { schema, schemas_by_name, data };

  void index(const json::Value& value, const json::Value* parent, std::string key, Role role);
  static Role role_of(std::string_view keyword);
  void index_names(const json::Value& schema);
  void index_id(const json::Value& schema);
  const std::string* id_of(const json::Value& schema) const {
    const auto found = ids_.find(&schema);
    return found == ids_.end() ? nullptr : found->second;
  }
  std::string base_of(const json::Value& schema) const;
  const json::Value* follow(const json::Value& from, std::string_view pointer) const;

  json::Value root_;
  bool reference_alone_ = false;
  bool old_id_ = false;
  bool contains_evaluates_ = true;
  bool has_dynamic_references_ = false;
  std::deque<json::Value> made_;
  std::unordered_map<const json::Value*, Location> locations_;
  std::unordered_map<const json::Value*, const std::string*> ids_;
  std::unordered_map<std::string, const json::Value*> resources_;  // by absolute URI
  std::unordered_map<const json::Value*, std::unordered_map<std::string, const json::Value*>> anchors_,
      dynamic_anchors_;  // by resource
};

}  // namespace sluice::grammar::schema
