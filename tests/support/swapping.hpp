// For tests that swap to a drive.
#pragma once

#include <string>

#include "tests/support/training_run.hpp"

namespace dstune::test {

/// Why no file can be swapped to in a directory, or no memory locked; "" if both can.
std::string why_no_swapping_here(const std::string& directory);

/// Two runs have the same numbers, to the bit.
void expect_same(const TrainingRun& actual, const TrainingRun& expected);

}  // namespace dstune::test
