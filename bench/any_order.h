// Instances of schemas as text: the order of members may differ from a grammar's.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sluice/grammar.h"

namespace sluice {

using OrderedJson = nlohmann::ordered_json;

// The orders in which a schema lists properties, one for each object that it describes.
class PropertyOrders {
 public:
  using Members = std::vector<std::pair<std::string, const OrderedJson*>>;

  explicit PropertyOrders(const OrderedJson& schema) { collect(schema); }

  // The members of an object in the order that lists most of them; unlisted ones come last.
  Members sorted(const OrderedJson& object) const {
    Members members;
    for (const auto& [key, member] : object.items()) members.emplace_back(key, &member);
    const auto known = [&](const Order& order) {
      return std::ranges::count_if(members, [&](const auto& member) { return order.contains(member.first); });
    };
    const auto best = std::ranges::max_element(orders_, {}, known);
    if (best == orders_.end()) return members;
    std::ranges::stable_sort(members, {}, [&](const auto& member) {
      const auto found = best->find(member.first);
      return found == best->end() ? static_cast<int>(best->size()) : found->second;
    });
    return members;
  }

 private:
  using Order = std::map<std::string, int>;

  void collect(const OrderedJson& schema) {
    if (schema.is_object() && schema.contains("properties") && schema["properties"].is_object()) {
      Order& order = orders_.emplace_back();
      for (const auto& [key, unused] : schema["properties"].items())
        order.try_emplace(key, static_cast<int>(order.size()));
    }
    if (schema.is_structured())
      for (const OrderedJson& part : schema) collect(part);
  }

  std::vector<Order> orders_;
};

// Writes one blank after commas and colons. With property orders the text is canonical: properties in order,
// whole numbers without fraction.
inline void write(const OrderedJson& value, const PropertyOrders* orders, std::string& out) {
  if (value.is_object()) {
    PropertyOrders::Members members;
    if (orders != nullptr)
      members = orders->sorted(value);
    else
      for (const auto& [key, member] : value.items()) members.emplace_back(key, &member);
    out += '{';
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i > 0) out += ", ";
      out += OrderedJson(members[i].first).dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + ": ";
      write(*members[i].second, orders, out);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i > 0) out += ", ";
      write(value[i], orders, out);
    }
    out += ']';
  } else if (orders != nullptr && value.is_number_float() && std::isfinite(value.get<double>()) &&
             value.get<double>() == std::trunc(value.get<double>())) {
    out += fmt::format("{:.0f}", value.get<double>());
  } else {
    out += value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  }
}

// Whether the grammar accepts the value with the members of its objects in some order; the schema's order is
// tried first. For each object, the first order that works is kept.
class AnyOrder {
 public:
  AnyOrder(const std::shared_ptr<const Grammar>& grammar, const PropertyOrders& orders)
      : matcher_(grammar), orders_(orders) {}

  bool accepts(const OrderedJson& value) { return follow(value) && matcher_.can_stop(); }

 private:
  using Members = PropertyOrders::Members;

  bool text(const std::string& part) {
    if (--budget_ < 0) return false;
    const bool whole = matcher_.accept_text(part) == part.size();
    if (!whole) matcher_.rollback(1);
    steps_ += whole ? 1 : 0;
    return whole;
  }
  void back_to(std::size_t steps) {
    matcher_.rollback(steps_ - steps);
    steps_ = steps;
  }
  bool follow(const OrderedJson& value) {
    const std::size_t before = steps_;
    bool good = false;
    if (value.is_object()) {
      good = text("{") && follow_members(orders_.sorted(value), true);
    } else if (value.is_array()) {
      good = text("[");
      for (std::size_t i = 0; good && i < value.size(); ++i)
        good = (i == 0 || text(", ")) && follow(value[i]);
      good = good && text("]");
    } else {
      std::string scalar;
      write(value, &orders_, scalar);
      good = text(scalar);
    }
    if (!good) back_to(before);
    return good;
  }
  bool follow_members(const Members& members, bool first) {
    if (members.empty()) return text("}");
    const std::size_t before = steps_;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::string name =
          OrderedJson(members[i].first).dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
      Members others = members;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      if (text((first ? "" : ", ") + name + ": ") && follow(*members[i].second) &&
          follow_members(others, false))
        return true;
      back_to(before);
    }
    return false;
  }

  Matcher matcher_;
  const PropertyOrders& orders_;
  std::size_t steps_ = 0;
  int budget_ = 1'000'000;
};

}  // namespace sluice
