// The GPUs of a program of tests: this machine's, or CUDA on the host.
#pragma once

namespace dstune::testing {

/// Before the first test.
void set_up_gpus();
/// Whether they are this machine's.
bool has_real_gpus();
/// After the last: a test fails if the backend has lost something, as far as that is known.
void expect_nothing_left();

}  // namespace dstune::testing
