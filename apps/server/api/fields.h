// Strict access to the fields of a request: a wrong type or range is reported by name, and so are unknown
// fields.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/json.h"

namespace sluice::server::api {

// A field that is null counts as absent.
class Fields {
 public:
  // `object` must outlive the fields.
  explicit Fields(const Json& object) : object_(object) {}

  // The value, or nullptr.
  const Json* find(std::string_view name);
  bool has(std::string_view name) { return find(name) != nullptr; }
  const Json& need(std::string_view name);

  std::optional<std::string> text(std::string_view name);
  std::optional<bool> flag(std::string_view name);
  std::optional<std::int64_t> integer(std::string_view name,
                                      std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                                      std::int64_t most = std::numeric_limits<std::int64_t>::max());
  std::optional<double> number(std::string_view name, double least, double most);
  // A text or an array of texts.
  std::vector<std::string> texts(std::string_view name, std::size_t most);
  const Json* object(std::string_view name);
  const Json* array(std::string_view name);

  // Marks fields that have no effect here as known.
  void ignore(std::initializer_list<std::string_view> names);
  // Throws if there are fields that were not read.
  void refuse_others() const;

 private:
  const Json& object_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace sluice::server::api
