#include "study/documents.h"

namespace sluice::study {

std::vector<std::string_view> split_documents(std::string_view text) {
  std::vector<std::string_view> found;
  while (!text.empty()) {
    const auto end = text.find(kEndOfDocument);
    std::string_view one = text.substr(0, end);
    while (!one.empty() && (one.back() == '\n' || one.back() == '\r')) one.remove_suffix(1);
    while (!one.empty() && (one.front() == '\n' || one.front() == '\r')) one.remove_prefix(1);
    if (!one.empty()) found.push_back(one);
    text = end == std::string_view::npos ? "" : text.substr(end + kEndOfDocument.size());
  }
  return found;
}

}  // namespace sluice::study
