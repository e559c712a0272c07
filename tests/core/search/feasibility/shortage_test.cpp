#include "core/search/feasibility/shortage.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dstune::shortage_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Stores stores(std::initializer_list<Store> all) {
  Stores found;
  for (const Store store : all) found.set(number_of(store));
  return found;
}

TEST(HostShortages, AreOfEveryStoreThatIsAByteTooSmall) {
  const PeakHostMemory peak{.at_peak = {}, .held = 100, .drive = 300, .pinned = 50};
  RunSettings settings;
  settings.host_memory_limit = 100;
  settings.pinned_limit = 50;
  settings.drive_limit = 300;
  EXPECT_THAT(host_shortages(peak, settings), IsEmpty());

  settings.host_memory_limit = 99;
  settings.pinned_limit = 49;
  settings.drive_limit = 299;
  EXPECT_THAT(host_shortages(peak, settings),
              ElementsAre(HostShortage{Store::host, 100, 99}, HostShortage{Store::pinned, 50, 49},
                          HostShortage{Store::drive, 300, 299}));

  EXPECT_THAT(host_shortages(peak, {}), IsEmpty()) << "one memory, and no limits";
}

TEST(StoreOf, TellsTheLimitsApartThatBoundWhatIsPinned) {
  RunSettings settings;
  settings.host_memory_limit = 100;
  settings.pinned_limit = 50;
  const auto store = [&](Tier tier, Bytes limit, std::string refusal = "") {
    OutOfMemory fault;
    fault.tier = tier;
    fault.limit = limit;
    fault.refusal = std::move(refusal);
    return store_of(fault, settings);
  };

  EXPECT_EQ(store(Tier::device, 10), Store::device);
  EXPECT_EQ(store(Tier::nvme, 10), Store::drive);
  EXPECT_EQ(store(Tier::pageable, 100), Store::host);
  EXPECT_EQ(store(Tier::pinned, 100), Store::host);
  EXPECT_EQ(store(Tier::pinned, 50), Store::pinned);
  EXPECT_EQ(store(Tier::locked, 50), Store::pinned);
  EXPECT_EQ(store(Tier::locked, 100, "ulimit -l is 64 KiB"), Store::pinned);
  settings.pinned_limit = 0;
  EXPECT_EQ(store(Tier::pinned, 0), Store::host) << "no limit is no limit that was met";
}

TEST(NothingFitsText, NamesWhatWasTooSmall) {
  const std::string of_device = nothing_fits_text({});

  EXPECT_EQ(of_device,
            "no experiment fits in memory; raise memory_limit, use more ranks or a smaller model");
  EXPECT_EQ(nothing_fits_text(stores({Store::device})), of_device);
  EXPECT_THAT(nothing_fits_text(stores({Store::drive})),
              HasSubstr("the drive is too small (dstune.drive_limit); raise that limit"));
  EXPECT_THAT(
      nothing_fits_text(stores({Store::device, Store::host, Store::pinned})),
      HasSubstr("no experiment fits: the device's memory is too small (memory_limit), the host's "
                "memory is too small (dstune.host_memory_limit), pinned memory is too small "
                "(dstune.pinned_limit, ulimit -l); raise these limits, "));
}

}  // namespace
}  // namespace dstune::shortage_test
