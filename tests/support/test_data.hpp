// Files of tests/data.
#pragma once

#include <string>

namespace dstune::test {

/// The path of tests/data/`file`.
std::string test_data(const std::string& file);

}  // namespace dstune::test
