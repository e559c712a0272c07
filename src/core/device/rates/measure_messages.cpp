#include "core/device/rates/measure_messages.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include "core/base/linear_algebra.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/device/rates/timing.hpp"

namespace dstune {
namespace {

constexpr std::array<Bytes, 4> kParts{1024, 64, 8, 1};  // sizes: the largest message / each

Buffer zeros(Device& device, Bytes size) {
  Buffer buffer(device, MemoryCategory::temporaries, size);
  device.run(FillZero{buffer.tensor(DType::fp32)});  // whose bits are all 0
  return buffer;
}

/// Times the calls of any group.
class Messages {
 public:
  /// @param group  the groups of all calls are parts of it, or the whole
  Messages(Device& device, const Collectives& group, Bytes largest)
      : device_(device),
        largest_(largest),
        first_(zeros(device, space_for(group))),
        second_(zeros(device, space_for(group))) {}

  CollectiveRate rate_of(Collectives& group, CollectiveKind kind, DType dtype) {
    std::vector<double> wire;
    std::vector<Seconds> times;
    for (const Bytes part_of_largest : kParts) {
      const auto ranks = static_cast<Bytes>(group.size());
      const Bytes part = std::max<Bytes>(largest_ / part_of_largest / size_of(dtype) / ranks, 1);
      const auto numel = static_cast<std::int64_t>(part * ranks);
      wire.push_back(wire_bytes(kind, part * ranks * size_of(dtype), group.size()));
      times.push_back(time(group, kind, first_.tensor(dtype).slice(0, numel),
                           second_.tensor(dtype).slice(0, numel)));
    }
    return fit_collective(ring_steps(kind, group.size()), wire, times);
  }

 private:
  // One element of any type for each rank is a message, however small `largest_` is.
  Bytes space_for(const Collectives& group) const {
    return std::max(largest_, static_cast<Bytes>(group.size()) * sizeof(double));
  }

  /// The shortest time of a few calls, each on its own, so that all ranks begin together: anything
  /// else that the machine does only makes a call longer.
  Seconds time(Collectives& group, CollectiveKind kind, Tensor whole, Tensor other) {
    const auto run = [&] { device_.await(call(group, kind, whole, other)); };
    run();
    std::array<Seconds, 5> times{};
    for (Seconds& time : times) time = time_of_call(device_, 1, run);
    return *std::min_element(times.begin(), times.end());
  }

  static Event call(Collectives& group, CollectiveKind kind, Tensor whole, Tensor other) {
    const Tensor part = other.slice(0, whole.numel / group.size());
    switch (kind) {
      case CollectiveKind::all_reduce:
        return group.all_reduce(whole, sum_of(whole), Purpose::other);
      case CollectiveKind::reduce:
        return group.reduce(whole, sum_of(whole), 0, Purpose::other);
      case CollectiveKind::reduce_scatter:
        return group.reduce_scatter(whole, part, sum_of(whole), Purpose::other);
      case CollectiveKind::all_gather:
        return group.all_gather(part, whole, Purpose::other);
      case CollectiveKind::broadcast:
        return group.broadcast(whole, 0, Purpose::other);
      case CollectiveKind::all_to_all:
        return group.all_to_all(whole, other, Purpose::other);
    }
    return {};
  }

  static ReduceOp sum_of(Tensor tensor) {
    return tensor.dtype == DType::uint8 ? ReduceOp::max : ReduceOp::sum;
  }

  Device& device_;
  Bytes largest_;
  Buffer first_;
  Buffer second_;
};

/// The parts of a group, each of which is made once.
class Parts {
 public:
  explicit Parts(Collectives& all) : all_(all) {}

  /// Null if the group cannot be divided so.
  Collectives* with(int ranks, int spacing) {
    if (ranks < 1 || spacing < 1 || all_.size() % (ranks * spacing) != 0) return nullptr;
    if (ranks == all_.size()) return &all_;
    auto& part = parts_[{ranks, spacing}];
    if (!part) part = all_.sub_group(own_ranks(ranks, spacing));
    return part.get();
  }

 private:
  std::vector<int> own_ranks(int count, int spacing) const {
    const int block = count * spacing;
    const int first = all_.rank() / block * block + all_.rank() % spacing;
    std::vector<int> ranks;
    ranks.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) ranks.push_back(first + i * spacing);
    return ranks;
  }

  Collectives& all_;
  std::map<std::pair<int, int>, std::unique_ptr<Collectives>> parts_;
};

}  // namespace

CollectiveRate fit_collective(int steps, const std::vector<double>& wire,
                              const std::vector<Seconds>& times) {
  if (steps == 0) return {.latency = 0, .bytes_per_s = kAtOnce};
  // The unit is seconds per megabyte, so that both unknowns have the same magnitude.
  constexpr double kUnit = 1e6;
  SquareMatrix<2> matrix{{{1e-12, 0}, {0, 1e-12}}};
  RealVector<2> right{};
  for (std::size_t i = 0; i < times.size(); ++i) {
    const RealVector<2> row{steps / times[i], wire[i] / kUnit / times[i]};
    for (std::size_t a = 0; a < row.size(); ++a) {
      right[a] += row[a];
      for (std::size_t b = 0; b < row.size(); ++b) matrix[a][b] += row[a] * row[b];
    }
  }
  const auto fit = least_non_negative(matrix, right, Cholesky(matrix).solve(right));
  return {.latency = fit[0], .bytes_per_s = fit[1] > 0 ? kUnit / fit[1] : kAtOnce};
}

std::array<CollectiveRate, kCollectiveKinds> measure_collectives(Device& device,
                                                                 Collectives& collectives,
                                                                 DType dtype, Bytes largest) {
  Messages messages(device, collectives, largest);
  std::array<CollectiveRate, kCollectiveKinds> rates;
  for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind) {
    rates[kind] = messages.rate_of(collectives, static_cast<CollectiveKind>(kind), dtype);
  }
  return rates;
}

std::vector<MessageRate> measure_messages(Device& device, Collectives& collectives,
                                          const std::vector<GroupMessage>& messages,
                                          Bytes largest) {
  std::vector<MessageRate> rates;
  if (messages.empty()) return rates;
  Parts parts(collectives);
  Messages timed(device, collectives, largest);
  for (const GroupMessage& message : messages) {
    Collectives* const group = parts.with(message.ranks, message.spacing);
    if (group == nullptr) continue;
    rates.push_back({message, timed.rate_of(*group, message.kind, message.dtype)});
  }
  return rates;
}

}  // namespace dstune
