// How much of a grid of cases a test runs.
#pragma once

#include <cstdlib>

namespace dstune::test {

/// All, and not a sample: scripts/test.sh --long sets DSTUNE_TEST_ALL.
inline bool takes_all() { return std::getenv("DSTUNE_TEST_ALL") != nullptr; }

}  // namespace dstune::test
