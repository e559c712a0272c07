#include "kernels/backends.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"

namespace dstune::backends_test {
namespace {

using testing::Contains;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

std::string refusal(const std::string& backend) {
  try {
    make_backend(backend);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(Backends, OnTheCpuTheHostsCodeCostsWhatItDoesWithGloo) {
  for (const auto& info : describe_devices()) {
    EXPECT_EQ(info.host_overhead, info.backend == "cpu" ? "cpu-gloo" : "cuda");
  }
}

TEST(Backends, EveryUsableOneGivesADeviceOfItsName) {
  int usable = 0;
  for (const auto& info : describe_devices()) {
    if (!info.unusable.empty()) continue;
    const auto backend = make_backend(info.backend);
    const Device& device = backend->device({.memory_limit = 4096, .threads = 1});

    EXPECT_EQ(device.name(), info.backend);
    EXPECT_EQ(device.memory().limit(), 4096U);
    EXPECT_GT(info.memory, 0U) << info.backend;
    EXPECT_LE(info.free_memory, info.memory) << info.backend;
    EXPECT_FALSE(info.name.empty()) << info.backend;
    ++usable;
  }
  EXPECT_GE(usable, 2) << "cpu and sim";
}

TEST(Backends, OneThatCannotBeUsedSaysWhyWithoutBeingMade) {
  const auto devices = describe_devices();
  ASSERT_EQ(devices.front().backend, "cuda");
  if (devices.front().unusable.empty()) GTEST_SKIP() << "CUDA can be used here";

  EXPECT_THAT(refusal("cuda"), HasSubstr(devices.front().unusable));
}

TEST(Backends, WhoOnlyAsksTakesNoPartOfTheHardware) {
  EXPECT_EQ(make_backend_to_ask("cuda"), nullptr);
  EXPECT_NE(make_backend_to_ask("cpu"), nullptr);
  EXPECT_THROW(make_backend_to_ask("tpu"), Error);
}

TEST(Backends, WhoMeasuresSeesWhatAWorkerSees) {
  const Placement worker{.is_worker = true};
  for (const DeviceInfo& info : describe_devices(worker)) {
    const DeviceInfo measured = measure_device(info.backend);

    EXPECT_EQ(measured.unusable, info.unusable);
    EXPECT_EQ(measured.memory, info.memory);
    EXPECT_EQ(measured.reserves, info.reserves);
    EXPECT_EQ(measured.host_overhead, info.host_overhead);
  }
  EXPECT_THROW(measure_device("tpu"), Error);
}

TEST(Backends, UnknownNameIsRefusedWithTheAcceptedOnes) {
  EXPECT_THAT(refusal("tpu"), HasSubstr("backend tpu is unknown; accepted: cuda, cpu, sim"));
}

TEST(Backends, AreListedForTheUser) {
  EXPECT_THAT(usable_backends(), ContainsRegex("^backends: .*cpu, sim$"));
  const auto lines = list_backends();
  EXPECT_THAT(lines, Contains(StartsWith("cpu: available (")));
  EXPECT_THAT(lines, Contains(ContainsRegex("^cuda: (unavailable: .|available )")));
}

}  // namespace
}  // namespace dstune::backends_test
