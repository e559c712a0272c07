// Collectives and messages between ranks beside plain loops.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include "tests/support/cuda_on_host/nccl/test_ranks.hpp"

namespace collective_test {
namespace {

using cuda_on_host::DeviceArray;
using cuda_on_host::run_ranks;
using cuda_on_host::TestRank;

constexpr std::size_t kCount = 37;

template <class T>
constexpr ncclDataType_t kType = ncclFloat32;
template <>
constexpr ncclDataType_t kType<double> = ncclFloat64;
template <>
constexpr ncclDataType_t kType<__half> = ncclFloat16;
template <>
constexpr ncclDataType_t kType<__nv_bfloat16> = ncclBfloat16;
template <>
constexpr ncclDataType_t kType<std::int8_t> = ncclInt8;
template <>
constexpr ncclDataType_t kType<std::uint8_t> = ncclUint8;
template <>
constexpr ncclDataType_t kType<std::int64_t> = ncclInt64;

/// What rank `rank` holds: small numbers that no two ranks share.
template <class T>
std::vector<T> values_of(int rank, std::size_t count = kCount) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = T(static_cast<float>((i * 5 + static_cast<std::size_t>(rank) * 3) % 11));
  return values;
}

template <class T>
T sum_of(int ranks, std::size_t i, std::size_t count = kCount) {
  T sum = values_of<T>(0, count)[i];
  for (int rank = 1; rank < ranks; ++rank) sum = T(sum + values_of<T>(rank, count)[i]);
  return sum;
}

template <class T>
void expect_same(const std::vector<T>& result, const std::vector<T>& wanted) {
  ASSERT_EQ(result.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_EQ(static_cast<float>(result[i]), static_cast<float>(wanted[i])) << i;
}

class Collectives : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, testing::Values(1, 2, 3, 4));

template <class T>
void expect_all_reduce(TestRank& rank) {
  const DeviceArray<T> send(values_of<T>(rank.rank));
  const DeviceArray<T> receive(kCount);
  std::vector<T> wanted;
  for (std::size_t i = 0; i < kCount; ++i) wanted.push_back(sum_of<T>(rank.size, i));

  ASSERT_EQ(
      ncclAllReduce(send.data(), receive.data(), kCount, kType<T>, ncclSum, rank.comm, rank.stream),
      ncclSuccess);

  cuda_on_host::check(cudaStreamSynchronize(rank.stream));
  expect_same(receive.values(), wanted);
}

TEST_P(Collectives, all_reduce_sums_every_type_in_the_order_of_ranks) {
  run_ranks(GetParam(), [](TestRank& rank) {
    expect_all_reduce<float>(rank);
    expect_all_reduce<double>(rank);
    expect_all_reduce<__half>(rank);
    expect_all_reduce<__nv_bfloat16>(rank);
    expect_all_reduce<std::int8_t>(rank);
    expect_all_reduce<std::uint8_t>(rank);
    expect_all_reduce<std::int64_t>(rank);
  });
}

TEST(AllReduce, rounds_to_the_type_after_each_addition) {
  run_ranks(3, [](TestRank& rank) {
    const std::vector<float> values{256.0F, 1.0F, 1.0F};  // bf16 has 8 bits: 257 is not one
    const DeviceArray<__nv_bfloat16> data(
        std::vector{__nv_bfloat16(values[static_cast<std::size_t>(rank.rank)])});
    ncclAllReduce(data.data(), data.data(), 1, ncclBfloat16, ncclSum, rank.comm, rank.stream);
    cuda_on_host::check(cudaStreamSynchronize(rank.stream));
    EXPECT_EQ(float{data.values()[0]}, 256.0F);
  });
}

TEST(AllReduce, finds_extremes_averages_and_products) {
  run_ranks(4, [](TestRank& rank) {
    const std::vector<std::pair<ncclRedOp_t, float>> wanted{
        {ncclMax, 4.0F}, {ncclMin, 1.0F}, {ncclAvg, 2.5F}, {ncclProd, 24.0F}};
    for (const auto& [op, value] : wanted) {
      const DeviceArray<float> data(std::vector{static_cast<float>(rank.rank + 1)});
      ncclAllReduce(data.data(), data.data(), 1, ncclFloat32, op, rank.comm, rank.stream);
      cuda_on_host::check(cudaStreamSynchronize(rank.stream));
      EXPECT_EQ(data.values()[0], value) << op;
    }
  });
}

TEST_P(Collectives, reduce_gives_the_sum_to_the_root_alone) {
  run_ranks(GetParam(), [](TestRank& rank) {
    const int root = rank.size - 1;
    const DeviceArray<float> send(values_of<float>(rank.rank));
    const DeviceArray<float> receive(kCount);
    std::vector<float> wanted(kCount);
    for (std::size_t i = 0; rank.rank == root && i < kCount; ++i)
      wanted[i] = sum_of<float>(rank.size, i);
    ncclReduce(send.data(), receive.data(), kCount, ncclFloat32, ncclSum, root, rank.comm,
               rank.stream);
    cuda_on_host::check(cudaStreamSynchronize(rank.stream));
    expect_same(receive.values(), wanted);
  });
}

TEST_P(Collectives, reduce_scatter_gives_each_rank_its_part_also_in_place) {
  run_ranks(GetParam(), [](TestRank& rank) {
    const std::size_t all = kCount * static_cast<std::size_t>(rank.size);
    const std::size_t first = kCount * static_cast<std::size_t>(rank.rank);
    const DeviceArray<float> data(values_of<float>(rank.rank, all));
    std::vector<float> wanted(kCount);
    for (std::size_t i = 0; i < kCount; ++i) wanted[i] = sum_of<float>(rank.size, first + i, all);
    ncclReduceScatter(data.data(), data.data() + first, kCount, ncclFloat32, ncclSum, rank.comm,
                      rank.stream);
    cuda_on_host::check(cudaStreamSynchronize(rank.stream));
    const auto values = data.values();
    const auto start = values.begin() + static_cast<std::ptrdiff_t>(first);
    expect_same({start, start + static_cast<std::ptrdiff_t>(kCount)}, wanted);
  });
}

TEST_P(Collectives, all_gather_puts_the_parts_one_after_another) {
  run_ranks(GetParam(), [](TestRank& rank) {
    const DeviceArray<std::int8_t> send(values_of<std::int8_t>(rank.rank));
    const DeviceArray<std::int8_t> receive(kCount * static_cast<std::size_t>(rank.size));
    std::vector<std::int8_t> wanted;
    for (int other = 0; other < rank.size; ++other)
      std::ranges::copy(values_of<std::int8_t>(other), std::back_inserter(wanted));
    ncclAllGather(send.data(), receive.data(), kCount, ncclInt8, rank.comm, rank.stream);
    cuda_on_host::check(cudaStreamSynchronize(rank.stream));
    expect_same(receive.values(), wanted);
  });
}

TEST_P(Collectives, broadcast_gives_all_what_the_root_has) {
  run_ranks(GetParam(), [](TestRank& rank) {
    const int root = rank.size / 2;
    const DeviceArray<double> data(values_of<double>(rank.rank));
    ncclBroadcast(data.data(), data.data(), kCount, ncclFloat64, root, rank.comm, rank.stream);
    cuda_on_host::check(cudaStreamSynchronize(rank.stream));
    expect_same(data.values(), values_of<double>(root));
  });
}

TEST_P(Collectives, grouped_messages_go_round_a_ring_and_to_oneself) {
  run_ranks(GetParam(), [](TestRank& rank) {
    const int next = (rank.rank + 1) % rank.size;
    const int previous = (rank.rank + rank.size - 1) % rank.size;
    const DeviceArray<float> send(values_of<float>(rank.rank));
    const DeviceArray<float> receive(kCount);
    ncclGroupStart();
    ncclSend(send.data(), kCount, ncclFloat32, next, rank.comm, rank.stream);
    ncclRecv(receive.data(), kCount, ncclFloat32, previous, rank.comm, rank.stream);
    EXPECT_EQ(ncclGroupEnd(), ncclSuccess);
    cuda_on_host::check(cudaStreamSynchronize(rank.stream));
    expect_same(receive.values(), values_of<float>(previous));
  });
}

TEST(GroupedCollectives, run_at_the_groups_end_in_their_order) {
  run_ranks(2, [](TestRank& rank) {
    const DeviceArray<float> data(std::vector<float>{1.0F});
    ncclGroupStart();
    ncclAllReduce(data.data(), data.data(), 1, ncclFloat32, ncclSum, rank.comm, rank.stream);
    ncclAllReduce(data.data(), data.data(), 1, ncclFloat32, ncclProd, rank.comm, rank.stream);
    cuda_on_host::check(cudaStreamSynchronize(rank.stream));
    EXPECT_EQ(data.values()[0], 1.0F);  // nothing ran yet
    ncclGroupEnd();
    cuda_on_host::check(cudaStreamSynchronize(rank.stream));
    EXPECT_EQ(data.values()[0], 4.0F);
  });
}

TEST(CollectivesDeathTest, calls_that_do_not_match_are_both_named) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run_ranks(2,
                         [](TestRank& rank) {
                           const DeviceArray<float> data(4);
                           const std::size_t count = rank.rank == 0 ? 4 : 3;
                           ncclAllReduce(data.data(), data.data(), count, ncclFloat32, ncclSum,
                                         rank.comm, rank.stream);
                           cuda_on_host::check(cudaStreamSynchronize(rank.stream));
                         }),
               "collectives do not match: rank .: ncclAllReduce of . elements.*; rank .: "
               "ncclAllReduce of . elements");
}

}  // namespace
}  // namespace collective_test
