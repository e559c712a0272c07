#include "mpi/collectives/mpi_collectives.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/dry_device.hpp"

namespace dstune {
namespace {

// Small integers: their sums are exact in every type, so the order of additions does not matter.
float value_of(int rank, std::int64_t index) {
  return static_cast<float>((index * 7 + rank * 13) % 23 - 11);
}

template <class T>
std::vector<T> values_of(int rank, std::int64_t count, std::int64_t first = 0) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(from_float<T>(value_of(rank, first + i)));
  }
  return values;
}

float serial(ReduceOp op, int ranks, std::int64_t index) {
  float result = value_of(0, index);
  for (int rank = 1; rank < ranks; ++rank) {
    const float other = value_of(rank, index);
    result = op == ReduceOp::sum ? result + other : std::max(result, other);
  }
  return result;
}

template <class T>
constexpr DType kTypeOf = DType::fp32;
template <>
constexpr DType kTypeOf<BFloat16> = DType::bf16;
template <>
constexpr DType kTypeOf<Float16> = DType::fp16;

template <class T>
Tensor view(std::vector<T>& values) {
  return {values.data(), static_cast<std::int64_t>(values.size()), kTypeOf<T>};
}

/// How many elements differ from the function of their index.
template <class T, class Expected>
int differences(const std::vector<T>& values, Expected expected) {
  int count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (to_float(values[i]) != expected(static_cast<std::int64_t>(i))) ++count;
  }
  return count;
}

// Odd, smaller than a group, and larger than a slot.
constexpr std::int64_t kSizes[] = {0, 1, 2, 3, 1001, 300'007};

template <class T>
class MpiCollectivesTest : public testing::Test {
 protected:
  /// Calls test(collectives) on the first `n` ranks for n = 1 .. all, and on parts of a group.
  template <class Test>
  void for_every_group(Test test) {
    for (int n = 1; n <= world_.size(); ++n) {
      if (world_.rank() >= n) continue;
      std::vector<int> ranks(static_cast<std::size_t>(n));
      std::iota(ranks.begin(), ranks.end(), 0);
      MpiGroup group(ranks, 100 - n, link_);
      DryDevice device(1U << 30U);
      MpiCollectives collectives(device, group);
      for (const std::int64_t size : kSizes) test(collectives, size);
      if (n == 4) for_every_part(collectives, test);
    }
  }

  /// Between the calls of the parts come calls of the whole.
  template <class Test>
  void for_every_part(Collectives& whole, Test test) {
    const std::vector<std::vector<int>> parts[] = {
        {{0, 1}, {2, 3}}, {{0, 2}, {1, 3}}, {{3, 1, 0}, {2}}, {{3, 2, 1, 0}}};
    for (const auto& division : parts) {
      for (const auto& ranks : division) {
        if (std::find(ranks.begin(), ranks.end(), whole.rank()) == ranks.end()) continue;
        const auto part = whole.sub_group(ranks);
        EXPECT_EQ(ranks[static_cast<std::size_t>(part->rank())], whole.rank());
        for (const std::int64_t size : kSizes) {
          test(*part, size);
          if (size == 3) test(whole, size);
        }
      }
    }
  }

  Communicator world_ = Communicator::duplicate(MPI_COMM_WORLD);
  WorkerLink link_{world_, WorkerOptions{}};
};

using Types = testing::Types<float, BFloat16, Float16>;
TYPED_TEST_SUITE(MpiCollectivesTest, Types);

TYPED_TEST(MpiCollectivesTest, AllReduceEqualsTheSerialResult) {
  this->for_every_group([](Collectives& collectives, std::int64_t size) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
      auto values = values_of<TypeParam>(collectives.rank(), size);

      collectives.all_reduce(view(values), op, Purpose::other);

      EXPECT_EQ(
          differences(values, [&](std::int64_t i) { return serial(op, collectives.size(), i); }), 0)
          << size << " elements on " << collectives.size() << " ranks";
    }
  });
}

TYPED_TEST(MpiCollectivesTest, ReduceGivesEveryRootTheSerialResult) {
  this->for_every_group([](Collectives& collectives, std::int64_t size) {
    for (int root = 0; root < collectives.size(); ++root) {
      auto values = values_of<TypeParam>(collectives.rank(), size);

      collectives.reduce(view(values), ReduceOp::sum, root, Purpose::other);

      if (collectives.rank() != root) continue;
      EXPECT_EQ(
          differences(values,
                      [&](std::int64_t i) { return serial(ReduceOp::sum, collectives.size(), i); }),
          0)
          << size << " elements on " << collectives.size() << " ranks, root " << root;
    }
  });
}

TYPED_TEST(MpiCollectivesTest, ReduceScatterGivesEachRankItsPartAndKeepsTheInput) {
  this->for_every_group([](Collectives& collectives, std::int64_t size) {
    auto in = values_of<TypeParam>(collectives.rank(), size * collectives.size());
    std::vector<TypeParam> out(static_cast<std::size_t>(size));

    collectives.reduce_scatter(view(in), view(out), ReduceOp::sum, Purpose::other);

    const std::int64_t first = size * collectives.rank();
    EXPECT_EQ(differences(out,
                          [&](std::int64_t i) {
                            return serial(ReduceOp::sum, collectives.size(), first + i);
                          }),
              0);
    EXPECT_EQ(differences(in, [&](std::int64_t i) { return value_of(collectives.rank(), i); }), 0);
  });
}

TYPED_TEST(MpiCollectivesTest, AllGatherWorksInPlaceAndFromElsewhere) {
  this->for_every_group([](Collectives& collectives, std::int64_t size) {
    const auto expected = [&](std::int64_t i) {
      return value_of(static_cast<int>(i / size), i % size);
    };
    auto in = values_of<TypeParam>(collectives.rank(), size);
    std::vector<TypeParam> out(static_cast<std::size_t>(size * collectives.size()));
    auto in_place = out;
    const Tensor own = view(in_place).slice(size * collectives.rank(), size);
    if (size > 0) std::memcpy(own.data, in.data(), own.size());

    collectives.all_gather(view(in), view(out), Purpose::other);
    collectives.all_gather(own, view(in_place), Purpose::other);

    EXPECT_EQ(differences(out, expected), 0);
    EXPECT_EQ(differences(in_place, expected), 0);
  });
}

TYPED_TEST(MpiCollectivesTest, AllToAllGivesEachRankItsPartsAndKeepsTheInput) {
  this->for_every_group([](Collectives& collectives, std::int64_t size) {
    const int rank = collectives.rank();
    auto in = values_of<TypeParam>(rank, size * collectives.size());
    std::vector<TypeParam> out(in.size());

    collectives.all_to_all(view(in), view(out), Purpose::other);

    EXPECT_EQ(differences(out,
                          [&](std::int64_t i) {
                            return value_of(static_cast<int>(i / size), size * rank + i % size);
                          }),
              0);
    EXPECT_EQ(differences(in, [&](std::int64_t i) { return value_of(rank, i); }), 0);
  });
}

TYPED_TEST(MpiCollectivesTest, BroadcastCopiesTheRoot) {
  this->for_every_group([](Collectives& collectives, std::int64_t size) {
    const int root = collectives.size() - 1;
    auto values = values_of<TypeParam>(collectives.rank(), size);

    collectives.broadcast(view(values), root, Purpose::other);

    EXPECT_EQ(differences(values, [&](std::int64_t i) { return value_of(root, i); }), 0);
  });
}

using MpiBytesTest = MpiCollectivesTest<float>;

TEST_F(MpiBytesTest, QuantizedValuesAreGatheredAndExchangedAsTheyAre) {
  for_every_group([](Collectives& collectives, std::int64_t size) {
    const int n = collectives.size();
    const auto byte_of = [](int rank, std::int64_t i) {
      return static_cast<std::int8_t>((i * 31 + rank * 77) % 256 - 128);
    };
    std::vector<std::int8_t> in;
    for (std::int64_t i = 0; i < size * n; ++i) in.push_back(byte_of(collectives.rank(), i));
    std::vector<std::int8_t> exchanged(in.size());
    std::vector<std::int8_t> gathered(in.size());
    const auto bytes = [](std::vector<std::int8_t>& values) {
      return Tensor{values.data(), static_cast<std::int64_t>(values.size()), DType::int8};
    };

    collectives.all_to_all(bytes(in), bytes(exchanged), Purpose::other);
    collectives.all_gather(bytes(in).slice(0, size), bytes(gathered), Purpose::other);

    int differences = 0;
    for (std::int64_t i = 0; i < size * n; ++i) {
      const auto index = static_cast<std::size_t>(i);
      const int from = static_cast<int>(i / size);
      if (exchanged[index] != byte_of(from, size * collectives.rank() + i % size)) ++differences;
      if (gathered[index] != byte_of(from, i % size)) ++differences;
    }
    EXPECT_EQ(differences, 0);
  });
}

using MpiScalarTest = MpiCollectivesTest<float>;

TEST_F(MpiScalarTest, NumbersAreCombinedInEveryGroup) {
  for_every_group([](Collectives& collectives, std::int64_t) {
    const auto rank = static_cast<float>(collectives.rank());
    const auto n = static_cast<float>(collectives.size());
    std::vector<float> sum = {1 + rank};
    std::vector<float> largest = {-rank};

    collectives.all_reduce(view(sum), ReduceOp::sum, Purpose::other);
    collectives.all_reduce(view(largest), ReduceOp::max, Purpose::other);

    EXPECT_EQ(sum[0], n * (n + 1) / 2);
    EXPECT_EQ(largest[0], 0);
  });
}

TEST_F(MpiScalarTest, AFlagIsSetForAllIfItIsForOne) {
  for_every_group([](Collectives& collectives, std::int64_t) {
    std::int8_t raised = collectives.rank() == collectives.size() - 1 ? 1 : 0;
    std::int8_t lowered = 0;

    collectives.all_reduce({&raised, 1, DType::int8}, ReduceOp::max, Purpose::other);
    collectives.all_reduce({&lowered, 1, DType::int8}, ReduceOp::max, Purpose::other);

    EXPECT_EQ(raised, 1);
    EXPECT_EQ(lowered, 0);
  });
}

TEST_F(MpiScalarTest, NanAndInfinityAreNotLost) {
  for_every_group([](Collectives& collectives, std::int64_t) {
    const bool last = collectives.rank() == collectives.size() - 1;
    std::vector<float> values = {last ? NAN : 1.0F, last ? INFINITY : 1.0F};

    collectives.all_reduce(view(values), ReduceOp::max, Purpose::other);

    EXPECT_TRUE(std::isnan(values[0]));
    EXPECT_TRUE(std::isinf(values[1]));
  });
}

}  // namespace
}  // namespace dstune
