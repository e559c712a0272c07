// What a step may not do on a GPU: wait for all of it, or take and give back memory.
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/knob_grid.hpp"
#include "tests/support/training_run.hpp"

namespace dstune::step_calls_test {
namespace {

constexpr const char* kForbidden[] = {"cudaDeviceSynchronize",
                                      "cudaStreamSynchronize",
                                      "cudaEventSynchronize",
                                      "cudaMalloc",
                                      "cudaFree",
                                      "cudaHostAlloc",
                                      "cudaFreeHost",
                                      "cudaMemcpy",
                                      "cudaMemset",
                                      "cudaStreamCreateWithFlags",
                                      "cuMemAddressReserve",
                                      "cuMemCreate",
                                      "cuMemMap",
                                      "cuMemSetAccess",
                                      "cuMemUnmap",
                                      "cuMemRelease",
                                      "cuMemAddressFree"};

std::map<std::string, std::uint64_t> forbidden_calls() {
  std::map<std::string, std::uint64_t> calls;
  for (const char* function : kForbidden) calls[function] = cuda_on_host::calls(function);
  return calls;
}

using StageAndAllocator = std::tuple<int, AllocatorModel>;

class StepCallsTest : public testing::TestWithParam<StageAndAllocator> {};

INSTANTIATE_TEST_SUITE_P(Stages, StepCallsTest,
                         testing::Combine(testing::Values(0, 1, 2, 3),
                                          testing::Values(AllocatorModel::exact,
                                                          AllocatorModel::caching)));

TEST_P(StepCallsTest, AStepNeitherStopsTheGpuNorTakesMemoryOfIt) {
  const auto [stage, allocator] = GetParam();
  cuda_on_host::set_up({.bytes = Bytes{2} << 30U});
  const json::object config =
      test::config_of({.stage = stage, .accumulation = 3}, R"({"overlap_comm": true})");
  RunSettings settings = test::tiny_settings();
  settings.allocator = allocator;
  const auto run = [has_segments = allocator == AllocatorModel::caching](test::TrainingRank& own) {
    for (int step = 0; step < 2; ++step) own.step.run();  // the first are unlike the others
    EXPECT_EQ(cuda_on_host::live().pages > 0, has_segments);
    const auto before = forbidden_calls();
    const std::uint64_t launches = cuda_on_host::calls("cudaLaunchKernelEx");

    own.step.run();

    EXPECT_EQ(forbidden_calls(), before);
    EXPECT_GT(cuda_on_host::calls("cudaLaunchKernelEx"), launches + 100);
    EXPECT_THAT(own.device.ledger().stand_ins(),
                testing::ElementsAre(testing::HasSubstr("attention: PyTorch would take")));
  };
  test::on_training_ranks(make_step_config(config), 1, run, settings);
}

}  // namespace
}  // namespace dstune::step_calls_test
