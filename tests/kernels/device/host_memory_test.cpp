// Tensors in the host's memory: their way to a device and back, and the host's own passes.
#include <vector>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/optimizers.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing::host_memory_test {

namespace {

class HostTensorTest : public DeviceTest {
 protected:
  Buffer on_host(std::int64_t numel, Tier tier, DType dtype = DType::fp32) {
    return make_buffer(device(), MemoryCategory::optimizer, numel, dtype, tier);
  }
  /// Sends it to the device, and reads it there.
  std::vector<double> sent(const Buffer& host, Tier tier, DType dtype = DType::fp32) {
    const Tensor from = host.tensor(dtype);
    const Buffer arrived = buffer(from.numel, dtype);
    device().transfer({from, arrived.tensor(dtype), Transfer::host_to_device,
                       TransferPurpose::update, tier, true});
    return download(arrived.tensor(dtype));
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, HostTensorTest, ::testing::ValuesIn(device_cases()),
                         [](const auto& param) { return param.param.name; });

constexpr Tier kHostTiers[] = {Tier::pinned, Tier::pageable};

TEST_P(HostTensorTest, GoToTheDeviceAndComeBackAsTheyWere) {
  for (const Tier tier : kHostTiers) {
    for (const DType dtype : kDTypes) {
      const auto values = random_values(1030, dtype, 1);
      const Buffer original = upload(values, dtype);
      const Buffer host = on_host(1030, tier, dtype);

      device().transfer({original.tensor(dtype), host.tensor(dtype), Transfer::device_to_host,
                         TransferPurpose::gradient, tier});
      device().host_wait(device().record(Stream::compute));

      EXPECT_EQ(sent(host, tier, dtype), values);
    }
  }
}

TEST_P(HostTensorTest, AreComputedWithByTheHost) {
  for (const Tier tier : kHostTiers) {
    const Buffer host = on_host(65, tier);
    const Buffer narrow = on_host(65, tier, DType::bf16);
    device().run_on_host(FillConstant{host.tensor(DType::fp32), 3});
    device().run_on_host(MemoryPass::unscale, Scale{host.tensor(DType::fp32), 0.5});
    device().run_on_host(MemoryPass::master_cast,
                         Cast{host.tensor(DType::fp32), narrow.tensor(DType::bf16)});

    EXPECT_EQ(sent(narrow, tier, DType::bf16), std::vector<double>(65, 1.5));
  }
}

// Gradient 1 at the first step moves a parameter by lr, whatever its size.
TEST_P(HostTensorTest, AreUpdatedByTheHost) {
  const Buffer parameter = on_host(17, Tier::pinned);
  const Buffer gradient = on_host(17, Tier::pinned);
  const Buffer first = on_host(17, Tier::pageable);
  const Buffer second = on_host(17, Tier::pageable);
  device().run_on_host(FillConstant{parameter.tensor(DType::fp32), 2});
  device().run_on_host(FillConstant{gradient.tensor(DType::fp32), 1});
  device().run_on_host(FillZero{first.tensor(DType::fp32)});
  device().run_on_host(FillZero{second.tensor(DType::fp32)});

  device().run_on_host(MemoryPass::update, Adam{.step = {.lr = 0.25},
                                                .gradient = gradient.tensor(DType::fp32),
                                                .parameter = parameter.tensor(DType::fp32),
                                                .exp_avg = first.tensor(DType::fp32),
                                                .exp_avg_sq = second.tensor(DType::fp32)});

  expect_close(sent(parameter, Tier::pinned), std::vector<double>(17, 1.75), 1e-6);
}

TEST_P(HostTensorTest, TakeNothingOfTheDevicesLimitAndKeepTheirOwn) {
  const auto limited = GetParam().make(1000);
  limited->host_memory().limit_to({.held = 4096});
  const Buffer host(*limited, MemoryCategory::optimizer, 3000, Tier::pinned);

  EXPECT_EQ(limited->memory().in_use(), 0U);
  EXPECT_NO_THROW(Buffer(*limited, MemoryCategory::parameters, 1000));
  EXPECT_THROW(Buffer(*limited, MemoryCategory::optimizer, 1, Tier::pageable), OutOfMemoryError);
  EXPECT_EQ(limited->host_memory().held(), 4096U);
}

TEST_P(HostTensorTest, CountWithinTheDevicesLimitWhereBothAreOneMemory) {
  const auto limited = GetParam().make(1000);
  limited->share_memory_with_host(true);
  Buffer host(*limited, MemoryCategory::optimizer, 600, Tier::pageable);

  EXPECT_THROW(Buffer(*limited, MemoryCategory::parameters, 401), OutOfMemoryError);
  EXPECT_EQ(limited->memory().use().at(MemoryCategory::optimizer), 600U);
  host.reset();
  EXPECT_NO_THROW(Buffer(*limited, MemoryCategory::parameters, 1000));
  EXPECT_EQ(limited->host_memory().held(), 0U);
}

// A sanitizer ends a program that asks for so much, unless it is told not to (CMakeLists.txt).
TEST_P(HostTensorTest, AreOutOfMemoryWhereTheSystemHasNone) {
  constexpr Bytes kMoreThanAnyMachine = Bytes{1} << 61U;
  for (const Tier tier : kHostTiers) {
    try {
      const Buffer too_much(device(), MemoryCategory::optimizer, kMoreThanAnyMachine, tier);
      FAIL() << "a machine with 2 EiB";
    } catch (const OutOfMemoryError& error) {
      EXPECT_EQ(error.tier, tier);
      EXPECT_FALSE(error.refusal.empty());
    }
    EXPECT_EQ(device().host_memory().use(), HostUse{});
  }
}

TEST_P(HostTensorTest, ANumberOfTheHostReachesTheDevice) {
  const Buffer number = buffer(1);
  const Buffer flag(device(), MemoryCategory::temporaries, 1);

  device().write_scalar(2.5, number.tensor(DType::fp32));
  device().write_scalar(1, flag.tensor(DType::uint8));

  EXPECT_EQ(download(number.tensor(DType::fp32)), std::vector<double>{2.5});
  EXPECT_EQ(download_bytes(flag.data(), 1), std::vector<std::uint8_t>{1});
}

}  // namespace

}  // namespace dstune::testing::host_memory_test
