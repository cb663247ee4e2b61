#include "grammar/schema/document.h"

#include <algorithm>

#include "base/error.h"
#include "base/quote.h"

namespace sluice::grammar::schema {
namespace {

bool has_scheme(std::string_view uri) {
  const std::size_t colon = uri.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  return std::ranges::all_of(uri.substr(0, colon), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '-' || c == '.';
  });
}

// RFC 3986, as far as references in schemas need it.
std::string join_uri(const std::string& base, std::string_view reference) {
  if (base.empty() || has_scheme(reference)) return std::string(reference);
  if (reference.empty()) return base;
  const std::size_t authority = base.find("://");
  const std::size_t path =
      authority == std::string::npos ? 0 : std::min(base.find('/', authority + 3), base.size());
  if (reference.starts_with('/')) return base.substr(0, path) + std::string(reference);
  if (authority == std::string::npos && has_scheme(base)) return std::string(reference);  // urn:...
  const std::size_t slash = base.rfind('/');
  std::string joined =
      slash == std::string::npos || slash < path ? base.substr(0, path) + "/" : base.substr(0, slash + 1);
  while (true) {
    if (reference.starts_with("./")) {
      reference.remove_prefix(2);
    } else if (reference.starts_with("../")) {
      reference.remove_prefix(3);
      const std::size_t above = joined.size() < 2 ? std::string::npos : joined.rfind('/', joined.size() - 2);
      if (above != std::string::npos && above >= path) joined.resize(above + 1);
    } else {
      return joined + std::string(reference);
    }
  }
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 && hex_value(text[i + 2]) >= 0) {
      out += static_cast<char>(16 * hex_value(text[i + 1]) + hex_value(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string pointer_escaped(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

// A custom dialect may have any meaning, and nothing is fetched to find out.
void check_dialect(std::string_view name) {
  if (name.empty()) return;
  for (const std::string_view known : {"json-schema.org", "openapis.org", "draft-0", "draft/20"})
    if (name.find(known) != std::string_view::npos) return;
  fail(ErrorKind::unsupported, "schema: #/$schema: the dialect {} is not known", quote(name));
}

}  // namespace

Document::Document(json::Value root) : root_(std::move(root)) {
  if (root_.is_object()) {
    const json::Value* draft = root_.find("$schema");
    const std::string name = draft != nullptr && draft->is_string() ? draft->string : "";
    check_dialect(name);
    for (const std::string_view old : {"draft-03", "draft-04", "draft-06", "draft-07"})
      reference_alone_ |= name.find(old) != std::string::npos;
    contains_evaluates_ = name.find("2019-09") == std::string::npos;
    old_id_ = name.find("draft-03") != std::string::npos || name.find("draft-04") != std::string::npos;
  }
  resources_[""] = &root_;
  index(root_, nullptr, "", Role::schema);
}

Document::Role Document::role_of(std::string_view keyword) {
  constexpr std::string_view kNamed[] = {"properties",  "patternProperties", "$defs",
                                         "definitions", "dependentSchemas",  "dependencies"};
  constexpr std::string_view kSchemas[] = {"items",
                                           "prefixItems",
                                           "additionalItems",
                                           "unevaluatedItems",
                                           "contains",
                                           "additionalProperties",
                                           "unevaluatedProperties",
                                           "propertyNames",
                                           "allOf",
                                           "anyOf",
                                           "oneOf",
                                           "not",
                                           "if",
                                           "then",
                                           "else",
                                           "contentSchema"};
  if (std::ranges::find(kNamed, keyword) != std::end(kNamed)) return Role::schemas_by_name;
  return std::ranges::find(kSchemas, keyword) != std::end(kSchemas) ? Role::schema : Role::data;
}

void Document::index_id(const json::Value& schema) {
  const json::Value* reference = reference_alone_ ? schema.find("$ref") : nullptr;
  if (reference != nullptr && reference->is_string()) return;
  const json::Value* id = schema.find(old_id_ ? "id" : "$id");
  if (id != nullptr && id->is_string()) ids_[&schema] = &id->string;
}

void Document::index(const json::Value& value, const json::Value* parent, std::string key, Role role) {
  if (!value.is_object() && !value.is_array() && !value.is_boolean()) return;
  locations_[&value] = {parent, std::move(key)};
  for (std::size_t i = 0; i < value.items.size(); ++i) index(value.items[i], &value, std::to_string(i), role);
  if (!value.is_object()) return;
  if (role != Role::schemas_by_name) index_id(value);
  if (role == Role::schema) index_names(value);
  for (const auto& [name, member] : value.members) {
    Role inner = Role::data;
    if (role == Role::schemas_by_name) inner = Role::schema;
    if (role == Role::schema) inner = role_of(name);
    index(member, &value, name, inner);
  }
}

void Document::index_names(const json::Value& schema) {
  if (const std::string* id = id_of(schema); id != nullptr) {
    const std::size_t hash = id->find('#');
    if (hash != 0) resources_.try_emplace(base_of(schema), &schema);
    if (hash != std::string::npos && hash + 1 < id->size())
      anchors_[&resource_of(schema)].try_emplace(id->substr(hash + 1), &schema);
  }
  for (const char* name : {"$anchor", "$dynamicAnchor"})
    if (const json::Value* anchor = schema.find(name); anchor != nullptr && anchor->is_string()) {
      anchors_[&resource_of(schema)].try_emplace(anchor->string, &schema);
      if (std::string_view(name) == "$dynamicAnchor")
        dynamic_anchors_[&resource_of(schema)].try_emplace(anchor->string, &schema);
    }
  has_dynamic_references_ |= schema.find("$dynamicRef") != nullptr;
}

const json::Value& Document::resource_of(const json::Value& schema) const {
  for (const json::Value* at = &schema; at != nullptr;) {
    const std::string* id = id_of(*at);
    if (id != nullptr && !id->starts_with('#')) return *at;
    const auto location = locations_.find(at);
    at = location == locations_.end() ? nullptr : location->second.parent;
  }
  return root_;
}

std::string Document::base_of(const json::Value& schema) const {
  std::vector<std::string_view> ids;
  for (const json::Value* at = &schema; at != nullptr;) {
    const std::string* id = id_of(*at);
    if (id != nullptr && !id->starts_with('#')) ids.push_back(std::string_view(*id).substr(0, id->find('#')));
    const auto location = locations_.find(at);
    at = location == locations_.end() ? nullptr : location->second.parent;
  }
  std::string base;
  for (auto id = ids.rbegin(); id != ids.rend(); ++id) base = join_uri(base, *id);
  return base;
}

const json::Value* Document::follow(const json::Value& from, std::string_view pointer) const {
  const json::Value* at = &from;
  while (!pointer.empty() && at != nullptr) {
    pointer.remove_prefix(1);
    const std::size_t slash = pointer.find('/');
    std::string key;
    const std::string_view raw = pointer.substr(0, slash);
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] == '~' && i + 1 < raw.size()) {
        key += raw[++i] == '1' ? '/' : '~';
      } else {
        key += raw[i];
      }
    }
    pointer = slash == std::string_view::npos ? std::string_view() : pointer.substr(slash);
    if (at->is_array()) {
      const bool digits =
          !key.empty() && key.size() < 9 && key.find_first_not_of("0123456789") == std::string::npos;
      at = digits && std::stoul(key) < at->items.size() ? &at->items[std::stoul(key)] : nullptr;
    } else {
      at = at->find(key);
    }
  }
  return at;
}

const json::Value& Document::resolve(const json::Value& schema, std::string_view reference,
                                     std::string_view keyword) const {
  const std::size_t hash = reference.find('#');
  const std::string_view uri = reference.substr(0, hash);
  const std::string fragment =
      hash == std::string_view::npos ? "" : percent_decoded(reference.substr(hash + 1));
  const json::Value* resource = &resource_of(schema);
  if (!uri.empty()) {
    const auto found = resources_.find(join_uri(base_of(schema), uri));
    if (found == resources_.end())
      fail(ErrorKind::unsupported, "schema: {}/{}: {} is not in the document, and nothing is fetched",
           path(schema), keyword, quote(reference));
    resource = found->second;
  }
  const json::Value* target = resource;
  if (fragment.starts_with('/')) {
    target = follow(*resource, fragment);
  } else if (!fragment.empty()) {
    const auto anchors = anchors_.find(resource);
    target = nullptr;
    if (anchors != anchors_.end())
      if (const auto found = anchors->second.find(fragment); found != anchors->second.end())
        target = found->second;
  }
  if (target == nullptr || !(target->is_object() || target->is_boolean()))
    fail(ErrorKind::input, "schema: {}/{}: {} points to no schema", path(schema), keyword, quote(reference));
  return *target;
}

const json::Value& Document::resolve_dynamic(const json::Value& schema, std::string_view reference,
                                             const Scope* scope) const {
  const json::Value& target = resolve(schema, reference, "$dynamicRef");
  const std::size_t hash = reference.find('#');
  const json::Value* anchor = target.find("$dynamicAnchor");
  if (anchor == nullptr || hash == std::string_view::npos || !anchor->is_string() ||
      anchor->string != percent_decoded(reference.substr(hash + 1)))
    return target;
  const json::Value* outermost = &target;
  for (; scope != nullptr; scope = scope->resources)
    if (const auto anchors = dynamic_anchors_.find(scope->resource); anchors != dynamic_anchors_.end())
      if (const auto found = anchors->second.find(anchor->string); found != anchors->second.end())
        outermost = found->second;
  return *outermost;
}

std::string Document::path(const json::Value& schema) const {
  std::string path;
  for (auto at = locations_.find(&schema); at != locations_.end() && at->second.parent != nullptr;
       at = locations_.find(at->second.parent))
    if (!at->second.made) path.insert(0, "/" + pointer_escaped(at->second.key));
  return "#" + path;
}

const json::Value& Document::keep(json::Value schema, const json::Value& origin) {
  made_.push_back(std::move(schema));
  // Its parts were copied from the origin, so references in it resolve as there.
  const auto place = [&](const auto& self, const json::Value& value) -> void {
    locations_[&value] = {&origin, "", true};
    if (value.is_object()) index_id(value);
    for (const json::Value& item : value.items) self(self, item);
    for (const auto& [key, member] : value.members) self(self, member);
  };
  place(place, made_.back());
  return made_.back();
}

}  // namespace sluice::grammar::schema
