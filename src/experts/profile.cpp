#include "experts/profile.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file_writer.h"
#include "base/files/mapped_file.h"
#include "base/integer_cast.h"
#include "base/json.h"

namespace sluice::experts {

namespace {

constexpr const char* kUses = "uses";

}  // namespace

Profile read_profile(const std::filesystem::path& path) {
  const std::string where = path.string();
  const files::MappedFile file(path);
  const auto bytes = file.bytes();
  const Json json =
      parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, {where, ErrorKind::input});
  const Json* layers = json_find(json, kUses, {where, ErrorKind::input});
  if (layers == nullptr || !layers->is_array())
    fail(ErrorKind::input, "{}: a profile needs an array '{}' with one array per layer", where, kUses);
  Profile profile;
  for (const Json& layer : *layers) {
    profile.emplace_back();
    for (const std::int64_t uses : json_as<std::vector<std::int64_t>>(layer, {where, ErrorKind::input})) {
      if (uses < 0 || uses > std::numeric_limits<std::uint32_t>::max())
        fail(ErrorKind::input, "{}: an expert was used {} times, allowed is 0 to 2^32 - 1", where, uses);
      profile.back().push_back(to_unsigned(uses));
    }
  }
  return profile;
}

void write_profile(const Profile& profile, const std::filesystem::path& path) {
  files::FileWriter file(path);
  file.write(Json{{kUses, profile}}.dump() + "\n");
  file.commit();
}

PolicyMaker::PolicyMaker(const std::string& name) : name_(name) {
  constexpr std::string_view kStatic = "static:";
  if (!name.starts_with(kStatic)) return;
  file_ = name.substr(kStatic.size());
  name_ = "static";
  profile_ = read_profile(file_);
}

std::unique_ptr<Policy> PolicyMaker::operator()(int layer, std::int64_t experts) const {
  if (file_.empty()) return make_policy(name_, experts);
  const std::size_t number = layer;
  const std::size_t known = number < profile_.size() ? profile_[number].size() : 0;
  if (static_cast<std::int64_t>(known) != experts)
    fail(ErrorKind::input, "'{}' is the profile of another model: layer {} has {} experts there and {} here",
         file_, layer, known, experts);
  return make_policy(name_, experts, profile_[number]);
}

}  // namespace sluice::experts
