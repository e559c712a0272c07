// The suite of every Device runs on CUDA on the host.
#include <gtest/gtest.h>

#include "core/base/units.hpp"
#include "tests/kernels/device/cuda_machine.hpp"
#include "tests/support/cuda_on_host/control.hpp"

namespace dstune::testing {

void set_up_gpus() { cuda_on_host::set_up({.bytes = Bytes{2} << 30U}); }

bool has_real_gpus() { return false; }

void expect_nothing_left() {
  EXPECT_EQ(cuda_on_host::live(), cuda_on_host::Live{}) << "the backend has lost something";
}

}  // namespace dstune::testing
