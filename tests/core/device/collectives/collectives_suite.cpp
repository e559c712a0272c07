#include "tests/core/device/collectives/collectives_suite.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <type_traits>

namespace dstune::testing {
namespace {

// Odd, smaller than a group, and larger.
constexpr std::int64_t kCounts[] = {0, 1, 2, 3, 1001};

template <class T>
void encode(const std::vector<double>& values, std::vector<std::byte>& bytes) {
  bytes.resize(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T element = from_float<T>(static_cast<float>(values[i]));
    std::memcpy(&bytes[i * sizeof(T)], &element, sizeof(T));
  }
}

template <class T>
void encode_number(const std::vector<double>& values, std::vector<std::byte>& bytes) {
  bytes.resize(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T element = static_cast<T>(values[i]);
    std::memcpy(&bytes[i * sizeof(T)], &element, sizeof(T));
  }
}

std::vector<std::byte> encoded(const std::vector<double>& values, DType dtype) {
  std::vector<std::byte> bytes;
  if (dtype == DType::fp32) encode<float>(values, bytes);
  if (dtype == DType::bf16) encode<BFloat16>(values, bytes);
  if (dtype == DType::fp16) encode<Float16>(values, bytes);
  if (dtype == DType::int8) encode_number<std::int8_t>(values, bytes);
  if (dtype == DType::uint8) encode_number<std::uint8_t>(values, bytes);
  if (dtype == DType::fp64) encode_number<double>(values, bytes);
  return bytes;
}

template <class T>
double decoded(const std::byte* bytes) {
  T element;
  std::memcpy(&element, bytes, sizeof(T));
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(element);
  } else {
    return to_float(element);
  }
}

double decoded(const std::byte* bytes, DType dtype) {
  if (dtype == DType::bf16) return decoded<BFloat16>(bytes);
  if (dtype == DType::fp16) return decoded<Float16>(bytes);
  if (dtype == DType::int8) return decoded<std::int8_t>(bytes);
  if (dtype == DType::uint8) return decoded<std::uint8_t>(bytes);
  return dtype == DType::fp64 ? decoded<double>(bytes) : decoded<float>(bytes);
}

}  // namespace

double value_of(int rank, std::int64_t index) {
  return static_cast<double>((index * 7 + rank * 13) % 23 - 11);
}

double reduced(ReduceOp op, int ranks, std::int64_t index) {
  double result = value_of(0, index);
  for (int rank = 1; rank < ranks; ++rank) {
    const double other = value_of(rank, index);
    result = op == ReduceOp::sum ? result + other : std::max(result, other);
  }
  return result;
}

Tensor RankUnderTest::make(const std::vector<double>& values, DType dtype) {
  buffers_.push_back(make_buffer(device_, MemoryCategory::temporaries,
                                 static_cast<std::int64_t>(values.size()), dtype));
  const Tensor tensor = buffers_.back().tensor(dtype);
  device_.synchronize();
  const auto bytes = encoded(values, dtype);
  if (!bytes.empty()) under_test_.upload(bytes.data(), tensor.data, bytes.size());
  return tensor;
}

Tensor RankUnderTest::make_values(std::int64_t count, DType dtype) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    values[static_cast<std::size_t>(i)] = value_of(rank(), i);
  }
  return make(values, dtype);
}

Tensor RankUnderTest::make_room(std::int64_t count, DType dtype) {
  return make(std::vector<double>(static_cast<std::size_t>(count), 99), dtype);
}

std::vector<double> RankUnderTest::values(Tensor tensor) const {
  device_.synchronize();
  std::vector<std::byte> bytes(tensor.size());
  if (!bytes.empty()) under_test_.download(tensor.data, bytes.data(), bytes.size());
  std::vector<double> values;
  for (std::size_t begin = 0; begin < bytes.size(); begin += size_of(tensor.dtype)) {
    values.push_back(decoded(&bytes[begin], tensor.dtype));
  }
  return values;
}

void RankUnderTest::expect(Tensor tensor, const Expected& expected, const char* what) const {
  const auto actual = values(tensor);
  int differences = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] != expected(static_cast<std::int64_t>(i))) ++differences;
  }
  EXPECT_EQ(differences, 0) << what << ": " << tensor.numel << " elements of "
                            << name_of(tensor.dtype) << ", rank " << rank() << " of " << size();
}

void CollectivesTest::on_ranks(const Body& body) {
  const CollectivesCase under_test = collectives_case();
  under_test.run(ranks(), [&](Device& device, Collectives& collectives) {
    RankUnderTest rank(under_test, device, collectives);
    body(rank);
  });
}

void CollectivesTest::for_every_group(const SizedBody& body) {
  const std::vector<std::vector<int>> divisions[] = {
      {{0, 1}, {2, 3}}, {{0, 2}, {1, 3}}, {{3, 1, 0}, {2}}, {{3, 2, 1, 0}}};
  const CollectivesCase under_test = collectives_case();
  under_test.run(ranks(), [&](Device& device, Collectives& whole) {
    const auto with = [&](Collectives& collectives, std::int64_t count) {
      RankUnderTest rank(under_test, device, collectives);
      body(rank, count);
    };
    for (const std::int64_t count : kCounts) with(whole, count);
    with(whole, under_test.large);
    if (whole.size() != 4) return;
    for (const auto& division : divisions) {
      for (const auto& ranks : division) {
        if (std::find(ranks.begin(), ranks.end(), whole.rank()) == ranks.end()) continue;
        const auto part = whole.sub_group(ranks);
        EXPECT_EQ(ranks[static_cast<std::size_t>(part->rank())], whole.rank());
        for (const std::int64_t count : kCounts) {
          with(*part, count);
          if (count == 3) with(whole, count);
        }
        if (&division == divisions) with(*part, under_test.large);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, CollectivesTest,
                         ::testing::Combine(::testing::Values(1, 2, 3, 4),
                                            ::testing::Values(DType::fp32, DType::bf16,
                                                              DType::fp16)),
                         [](const auto& test) {
                           return std::to_string(std::get<0>(test.param)) + "_" +
                                  std::string(name_of(std::get<1>(test.param)));
                         });

}  // namespace dstune::testing
