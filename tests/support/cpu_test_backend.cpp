// Tests on the CPU backend.
#include "tests/support/test_backend.hpp"

namespace dstune::test {

std::unique_ptr<Backend> make_test_backend(int rank) { return make_cpu_backend(rank); }

AllocatorModel test_allocator() { return AllocatorModel::exact; }

}  // namespace dstune::test
