// Nobody observes.
#include "tests/support/cuda_on_host/observation.hpp"

namespace cuda_on_host {

Unobserved::Unobserved() = default;
Unobserved::~Unobserved() = default;
void happens_before(const void* /*token*/) {}
void happens_after(const void* /*token*/) {}

}  // namespace cuda_on_host
