// What the tests of core/config compare: the faults of an input as text.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/input/problems.hpp"

namespace dstune::testing_support {

using Faults = std::vector<std::string>;

inline Faults to_text(const std::vector<Problem>& problems) {
  Faults faults;
  for (const auto& problem : problems) faults.push_back(concat(problem.where, "  ", problem.what));
  return faults;
}

/// The faults that `call` throws; none if it returns.
template <class Call>
Faults faults_of(const Call& call) {
  try {
    call();
    return {};
  } catch (const ConfigError& error) {
    return to_text(error.problems());
  }
}

inline Faults faults_in(const Problems& problems) {
  return faults_of([&] { problems.throw_if_any(); });
}

inline void write_file(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace dstune::testing_support
