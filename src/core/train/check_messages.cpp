#include "core/train/check_messages.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "core/base/text.hpp"
#include "core/device/known_values.hpp"
#include "core/device/rates/measure_messages.hpp"
#include "core/device/rates/timing.hpp"

namespace dstune {
namespace {

constexpr int kBatches = 4;         // of messages that follow each other; the fastest counts
constexpr int kShortMessages = 10;  // of a batch
constexpr int kLongMessages = 2;
constexpr int kEveryPair = 4;  // ranks up to which every pair is checked

/// Sends known values through groups, and times them.
class Messages {
 public:
  /// @param ranks  of the largest group
  Messages(Device& device, int ranks, Bytes longest)
      : device_(device),
        numel_(std::max<std::int64_t>(static_cast<std::int64_t>(longest / sizeof(float)), 1)),
        in_(make_buffer(device, MemoryCategory::temporaries, numel_, DType::fp32)),
        out_(make_buffer(device, MemoryCategory::temporaries, std::min(ranks, 2) * numel_,
                         DType::fp32)) {}

  /// @param members  the ranks of `pair` in the whole group
  CollectiveRate check_pair(Collectives& pair, const std::vector<int>& members) {
    check_bytes(pair, members);
    check_sum(pair, members);
    return rate(pair, numel_, [&](std::int64_t numel) {
      return pair.all_gather(in_.tensor(DType::fp32).slice(0, numel),
                             out_.tensor(DType::fp32).slice(0, 2 * numel), Purpose::other);
    });
  }

  CollectiveRate check_ring(Collectives& all, const std::vector<int>& members) {
    check_sum(all, members);
    return rate(all, numel_, [&](std::int64_t numel) {
      return all.all_reduce(in_.tensor(DType::fp32).slice(0, numel), ReduceOp::sum, Purpose::other);
    });
  }

  const std::vector<WrongBytes>& wrong() const { return wrong_; }

 private:
  template <class Expected>
  std::string difference(Tensor tensor, Expected expected) {
    std::vector<float> values(static_cast<std::size_t>(tensor.numel));
    device_.synchronize();
    device_.read(tensor, values);
    const auto found = first_wrong(values, expected);
    return found ? concat(found->actual, " instead of ", found->expected, " at element ",
                          found->index)
                 : "";
  }

  void write_own(int rank) {
    std::vector<float> values(static_cast<std::size_t>(numel_));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = known_value(rank, i);
    device_.write(values, in_.tensor(DType::fp32));
  }

  void check_bytes(Collectives& pair, const std::vector<int>& members) {
    if (!device_.computes()) return;
    write_own(members.at(static_cast<std::size_t>(pair.rank())));
    const Tensor both = out_.tensor(DType::fp32);
    device_.await(pair.all_gather(in_.tensor(DType::fp32), both, Purpose::other));
    for (std::size_t place = 0; place < members.size(); ++place) {
      const int from = members[place];
      const auto how = difference(both.slice(static_cast<std::int64_t>(place) * numel_, numel_),
                                  [&](std::size_t i) { return known_value(from, i); });
      if (!how.empty()) wrong_.push_back({from, how});
    }
  }

  void check_sum(Collectives& group, const std::vector<int>& members) {
    if (!device_.computes()) return;
    write_own(members.at(static_cast<std::size_t>(group.rank())));
    const Tensor sum = in_.tensor(DType::fp32);
    device_.await(group.all_reduce(sum, ReduceOp::sum, Purpose::other));
    const auto how = difference(sum, [&](std::size_t i) {
      float expected = 0;
      for (const int rank : members) expected += known_value(rank, i);
      return expected;
    });
    if (!how.empty()) wrong_.push_back({WrongBytes::kSum, how});
  }

  template <class Call>
  CollectiveRate rate(const Collectives& group, std::int64_t numel, const Call& call) {
    if (group.size() == 1) return {.latency = 0, .bytes_per_s = kAtOnce};
    // A call of a batch needs what the call before it has sent, so that a rank which comes late and
    // finds its message there does not count as fast.
    const auto shortest = [&](int calls, std::int64_t count) {
      const auto run = [&] { device_.await(call(count)); };
      run();
      Seconds least = std::numeric_limits<Seconds>::infinity();
      for (int i = 0; i < kBatches; ++i) least = std::min(least, time_of_call(device_, calls, run));
      return least;
    };
    const Seconds one = shortest(kShortMessages, 1);
    const Seconds all = shortest(kLongMessages, numel) - one;
    const double bytes = static_cast<double>(numel - 1) * sizeof(float);
    return {.latency = one, .bytes_per_s = all > 0 && bytes > 0 ? bytes / all : kAtOnce};
  }

  Device& device_;
  std::int64_t numel_;
  Buffer in_;
  Buffer out_;
  std::vector<WrongBytes> wrong_;
};

}  // namespace

int pair_rounds(int size) {
  if (size < 2) return 0;
  if (size <= kEveryPair) return size + size % 2 - 1;
  return static_cast<int>(std::bit_width(static_cast<unsigned>(size - 1)));
}

// Up to kEveryPair the rounds are those of a round-robin tournament, by the circle method.
int partner_of(int rank, int round, int size) {
  int partner = 0;
  if (size <= kEveryPair) {
    const int turning = size + size % 2 - 1;
    partner = rank == turning ? round : (2 * round - rank + turning) % turning;
    if (partner == rank) partner = turning;
  } else {
    partner = static_cast<int>(static_cast<unsigned>(rank) ^ (1U << static_cast<unsigned>(round)));
  }
  return partner < size ? partner : -1;
}

MessageCheck check_messages(Device& device, Collectives& collectives, Bytes longest) {
  MessageCheck check;
  const int size = collectives.size();
  const int rank = collectives.rank();
  Messages messages(device, size, longest);
  for (int round = 0; round < pair_rounds(size); ++round) {
    const int partner = partner_of(rank, round, size);
    const std::vector<int> members =
        partner < 0 ? std::vector<int>{rank}
                    : std::vector<int>{std::min(rank, partner), std::max(rank, partner)};
    const auto part = collectives.sub_group(members);
    if (partner < 0) continue;
    const CollectiveRate rate = messages.check_pair(*part, members);
    if (rank < partner) check.pairs.push_back({rank, partner, rate});
  }
  std::vector<int> all;
  all.reserve(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i) all.push_back(i);
  check.ring = messages.check_ring(collectives, all);
  check.wrong = messages.wrong();
  return check;
}

}  // namespace dstune
