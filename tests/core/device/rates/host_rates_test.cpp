#include "core/device/rates/host_rates.hpp"

#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "core/device/operations/elementwise.hpp"

namespace dstune::host_rates_test {
namespace {

HostRates some_rates() {
  HostRates rates;
  for (std::size_t i = 0; i < rates.copies.size(); ++i) {
    const auto number = static_cast<double>(i + 1);
    rates.copies[i] = {{1e-6 * number, 1e9 * number / 3}, {2e-6 * number, 1e9 * number / 7}};
  }
  rates.both_ways_bytes_per_s = 1e10 / 3;
  rates.passes = {{1, 8e9}, {2, 16e9}, {4, 20e9}, {6, 19e9}};
  rates.threads = 6;
  return rates;
}

constexpr Tensor kThousandBytes{nullptr, 250, DType::fp32};

TEST(HostRates, SurviveTheJournal) {
  const HostRates rates = some_rates();

  EXPECT_EQ(host_rates_from_json(to_json(rates)), rates);
}

TEST(HostRates, OfAnotherVersionAreNotMeasured) {
  json::object other = to_json(some_rates());
  other["version"] = 2;

  EXPECT_EQ(host_rates_from_json(other), std::nullopt);
}

TEST(HostRates, AreNotReadFromWhatIsNone) {
  json::object broken = to_json(some_rates());
  broken.erase("pinned_to_host");

  EXPECT_THROW(host_rates_from_json(broken), std::exception);
}

TEST(HostRates, OfCopiesAreTheirTiersAndDirectionsWhileAllRanksCopy) {
  const HostRates rates = some_rates();
  const auto time = [&](Tier tier, Transfer direction) {
    return rates.time_of(
        {.from = kThousandBytes, .to = kThousandBytes, .direction = direction, .tier = tier});
  };

  EXPECT_DOUBLE_EQ(time(Tier::pinned, Transfer::device_to_host), 2e-6 + 7e-6);
  EXPECT_DOUBLE_EQ(time(Tier::pinned, Transfer::host_to_device), 4e-6 + 7e-6 / 2);
  EXPECT_DOUBLE_EQ(time(Tier::pageable, Transfer::device_to_host), 6e-6 + 7e-6 / 3);
  EXPECT_DOUBLE_EQ(time(Tier::pageable, Transfer::host_to_device), 8e-6 + 7e-6 / 4);
}

TEST(HostRates, OfPassesAreThoseOfTheWorkersThreads) {
  HostRates rates = some_rates();
  const Work work = work_of(Copy{kThousandBytes, kThousandBytes});

  EXPECT_DOUBLE_EQ(rates.time_of_pass(work), 2000 / 19e9);
  rates.threads = 2;
  EXPECT_DOUBLE_EQ(rates.time_of_pass(work), 2000 / 16e9);
}

TEST(HostRates, OfOtherThreadsAreThoseOfOneOrOfTheMemory) {
  const HostRates rates = some_rates();

  EXPECT_DOUBLE_EQ(rates.pass_bytes_per_s(3), 20e9);
  EXPECT_DOUBLE_EQ((HostRates{.passes = {{1, 8e9}, {4, 30e9}}}).pass_bytes_per_s(3), 24e9);
}

TEST(HostRates, AreDescribedInALine) {
  HostRates rates = some_rates();
  rates.at(Tier::pinned, Transfer::device_to_host) = {{0, 25.04e9}, {0, 21.9e9}};

  EXPECT_EQ(describe(rates),
            "pinned 21.9 GB/s to the host and 0.3 to the device (alone 25.0 and 0.7), pageable 0.4 "
            "GB/s to the host and 0.6 to the device (alone 1.0 and 1.3), both ways at once 3.3; "
            "Adam 8.0 GB/s with 1 thread, 16.0 with 2, 20.0 with 4, 19.0 with 6");
}

}  // namespace
}  // namespace dstune::host_rates_test
