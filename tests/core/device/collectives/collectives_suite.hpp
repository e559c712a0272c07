// The suite every Collectives must pass: the fixture, and what the tests share. Values are small
// integers, whose sums are exact in every type: the order of additions does not matter.
#pragma once

#include <cstdint>
#include <functional>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/collectives.hpp"
#include "core/device/device.hpp"

namespace dstune::testing {

/// What is under test, where.
struct CollectivesCase {
  using Body = std::function<void(Device& device, Collectives& collectives)>;
  /// Calls `body` on each of `size` ranks at once, which may be threads or processes; in a process
  /// that is none of them it does nothing.
  std::function<void(int size, const Body& body)> run;
  std::function<void(const void* host, void* device, std::size_t size)> upload;
  std::function<void(const void* device, void* host, std::size_t size)> download;
  /// Elements that are more than one message of the implementation, where it has such.
  std::int64_t large = 300'007;
};

/// Each program has one.
CollectivesCase collectives_case();

/// One rank's side of a test.
class RankUnderTest {
 public:
  RankUnderTest(const CollectivesCase& under_test, Device& device, Collectives& collectives)
      : under_test_(under_test), device_(device), collectives_(collectives) {}

  Device& device() const { return device_; }
  Collectives& collectives() const { return collectives_; }
  int rank() const { return collectives_.rank(); }
  int size() const { return collectives_.size(); }

  /// A tensor with these values; stays until the test ends.
  Tensor make(const std::vector<double>& values, DType dtype);
  /// value_of() this rank at first, first + 1, ...
  Tensor make_values(std::int64_t count, DType dtype);
  /// A tensor of `count` elements that no test expects.
  Tensor make_room(std::int64_t count, DType dtype);
  /// After everything queued.
  std::vector<double> values(Tensor tensor) const;

  using Expected = std::function<double(std::int64_t index)>;
  void expect(Tensor tensor, const Expected& expected, const char* what) const;

 private:
  const CollectivesCase& under_test_;
  Device& device_;
  Collectives& collectives_;
  std::vector<Buffer> buffers_;
};

double value_of(int rank, std::int64_t index);
double reduced(ReduceOp op, int ranks, std::int64_t index);

/// By number of ranks and type.
class CollectivesTest : public ::testing::TestWithParam<std::tuple<int, DType>> {
 protected:
  static int ranks() { return std::get<0>(GetParam()); }
  static DType dtype() { return std::get<1>(GetParam()); }

  using Body = std::function<void(RankUnderTest& rank)>;
  /// On all ranks of a group.
  static void on_ranks(const Body& body);
  using SizedBody = std::function<void(RankUnderTest& rank, std::int64_t count)>;
  /// With counts that are odd, smaller than the group, or large; with 4 ranks also in parts of the
  /// group, between calls of the whole.
  static void for_every_group(const SizedBody& body);
};

}  // namespace dstune::testing
