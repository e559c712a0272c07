#include "tests/support/test_data.hpp"

namespace dstune::test {

std::string test_data(const std::string& file) { return DSTUNE_TEST_DATA "/" + file; }

}  // namespace dstune::test
