#include "tests/support/cuda_on_host/fault.hpp"

#include <cstdio>
#include <cstdlib>

namespace cuda_on_host {

void misuse(std::string_view message) {
  std::fprintf(stderr, "cuda_on_host: %.*s\n", static_cast<int>(message.size()), message.data());
  std::abort();
}

}  // namespace cuda_on_host
