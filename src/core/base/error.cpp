#include "core/base/error.hpp"

#include "core/base/printable.hpp"
#include "core/base/text.hpp"

namespace dstune {

namespace {

std::string full_message(const std::string& source, const std::vector<Problem>& problems) {
  std::string text = concat(printable(source), ": ", problems.size(),
                            problems.size() == 1 ? " problem" : " problems");
  for (const auto& problem : problems) {
    text += concat("\n  ", printable(problem.where), "  ", printable(problem.what));
  }
  return text;
}

}  // namespace

ConfigError::ConfigError(const std::string& source, std::vector<Problem> problems)
    : Error(full_message(source, problems)), problems_(std::move(problems)) {}

}  // namespace dstune
