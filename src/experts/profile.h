// How often experts were needed, stored in a file, to decide which of them stay in memory.
#pragma once

#include <filesystem>
#include <string>

#include "experts/policy.h"

namespace sluice::experts {

using Profile = std::vector<std::vector<std::uint32_t>>;  // uses, by layer with experts and by expert

Profile read_profile(const std::filesystem::path& path);
void write_profile(const Profile& profile, const std::filesystem::path& path);

// Makes the policies of a model's layers: "lru", "lfru", or "static:FILE" with a profile's file.
class PolicyMaker {
 public:
  explicit PolicyMaker(const std::string& name);
  std::unique_ptr<Policy> operator()(int layer, std::int64_t experts) const;

 private:
  std::string name_;
  std::string file_;
  Profile profile_;
};

}  // namespace sluice::experts
