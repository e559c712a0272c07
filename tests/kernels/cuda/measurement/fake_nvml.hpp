// What the made-up NVML of the tests answers, and what was asked of it.
#pragma once

namespace dstune::test {

struct FakeNvml {
  bool fails = false;  // every query after the search for the device
  bool fails_to_set_up = false;
  unsigned long long reasons = 0;
  unsigned long long heat_ns = 0;  // the device has been too hot
  unsigned int processes = 0;
  int set_up_calls = 0;
  int shut_down_calls = 0;
};

}  // namespace dstune::test
