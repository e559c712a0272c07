#include "core/device/rates/measure_host_rates.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <vector>

#include "core/base/statistics.hpp"
#include "core/device/operations/optimizers.hpp"
#include "core/device/rates/measure_messages.hpp"
#include "core/device/rates/timing.hpp"

namespace dstune {
namespace {

constexpr std::array<Bytes, 4> kSizes{Bytes{1} << 12U, Bytes{1} << 16U, Bytes{1} << 20U,
                                      Bytes{1} << 24U};
constexpr Bytes kLargest = Bytes{1} << 28U;
constexpr Bytes kLeastSpace = Bytes{1} << 20U;
// A copy of 16 MiB that takes longer shows the rate as well as one of 256 MiB would.
constexpr Seconds kLongCopy = 1.5e-3;
constexpr Seconds kBatch = 1e-3;  // in which short copies follow each other
constexpr int kBatches = 3;
constexpr int kMostCalls = 64;
constexpr Bytes kPassSpace = Bytes{1} << 27U;      // where the cache is not known
constexpr Bytes kMostPassSpace = Bytes{1} << 28U;  // a pass takes 50 ms at 10 GB/s
constexpr int kAdamArrays = 4;
constexpr Seconds kPassesTime = 0.05;  // of passes with one number of threads
constexpr int kMostPasses = 8;

/// Two equally large pieces of memory, one of the device and one of its host, between which it
/// copies. Successive copies take other parts of them, so that small ones do not stay in a cache.
class Copies {
 public:
  Copies(Device& device, Tier tier, Bytes space)
      : device_(device),
        tier_(tier),
        on_device_(device, MemoryCategory::temporaries, space),
        on_host_(device, MemoryCategory::temporaries, space, tier) {
    // Memory has no pages before it is written.
    device.run(FillZero{on_device_.tensor(DType::fp32)});
    device.run_on_host(FillZero{on_host_.tensor(DType::fp32)});
    device.synchronize();
  }

  Bytes space() const { return on_host_.size(); }

  /// The seconds of one copy, of several that follow each other for about `batch`.
  Seconds time(Transfer direction, Bytes size, Seconds batch) {
    const auto run = [&] { copy(direction, size); };
    const Seconds once = std::max(time_of_call(device_, 1, run), 1e-9);
    if (once >= batch) return once;
    return time_of_call(device_, static_cast<int>(std::min<double>(batch / once, kMostCalls)), run);
  }

  /// The seconds in which half of the space is copied each way, on two streams.
  Seconds time_both_ways() {
    const Bytes half = space() / 2;
    place_ = 0;
    const Event begin = device_.record(Stream::compute);
    device_.wait(Stream::reduction, begin);
    copy(Transfer::device_to_host, half);
    {
      const StreamScope other(device_, Stream::reduction);
      copy(Transfer::host_to_device, half);
    }
    const Event one = device_.record(Stream::compute);
    const Event other = device_.record(Stream::reduction);
    device_.synchronize();
    return std::max(device_.time_of(one), device_.time_of(other)) - device_.time_of(begin);
  }

 private:
  void copy(Transfer direction, Bytes size) {
    if (place_ + size > space()) place_ = 0;
    const auto part = [&](const Buffer& whole) {
      return whole.tensor(DType::uint8)
          .slice(static_cast<std::int64_t>(place_), static_cast<std::int64_t>(size));
    };
    const bool is_down = direction == Transfer::device_to_host;
    device_.transfer({.from = part(is_down ? on_device_ : on_host_),
                      .to = part(is_down ? on_host_ : on_device_),
                      .direction = direction,
                      .purpose = TransferPurpose::gradient,
                      .tier = tier_});
    place_ += size;
  }

  Device& device_;
  Tier tier_;
  Buffer on_device_;
  Buffer on_host_;
  Bytes place_ = 0;
};

/// The copies that were timed.
struct Points {
  std::vector<double> bytes;
  std::vector<Seconds> times;

  void add(Bytes size, Seconds time) {
    bytes.push_back(static_cast<double>(size));
    times.push_back(std::max(time, 1e-12));
  }
  CopyRate fit() const {
    const CollectiveRate line = fit_collective(1, bytes, times);
    return {line.latency, line.bytes_per_s};
  }
};

struct PointsOfKind {
  Points alone;
  Points together;
};

/// The device outlives the measurement, however that ends.
struct AllThreadsInTheEnd {
  explicit AllThreadsInTheEnd(Device& of) : device(of) {}
  ~AllThreadsInTheEnd() { device.limit_host_threads(device.host_threads()); }
  AllThreadsInTheEnd(const AllThreadsInTheEnd&) = delete;
  AllThreadsInTheEnd& operator=(const AllThreadsInTheEnd&) = delete;

  Device& device;
};

/// One rank's part in the measurement.
class HostTimes {
 public:
  HostTimes(Device& device, Group& group, const HostMeasure& how)
      : device_(device), group_(group), how_(how), begin_(device.now()) {}

  std::optional<HostRates> measure() {
    HostRates rates;
    for (const Tier tier : {Tier::pinned, Tier::pageable}) {
      if (!measure_copies(tier, rates)) return std::nullopt;
    }
    if (!measure_passes(rates)) return std::nullopt;
    return rates;
  }

 private:
  using Directions = std::array<PointsOfKind, 2>;
  static constexpr std::array<Transfer, 2> kBoth{Transfer::device_to_host,
                                                 Transfer::host_to_device};

  /// Whether this rank would not have spent `share` of the time after `more` seconds.
  bool has_time_left(double share, Seconds more = 0) const {
    return device_.now() - begin_ + more < share * how_.time;
  }
  void begin_together() { group_.vote(true); }

  /// What `make` makes of `size` bytes of the host's memory, on every rank or on none.
  template <class Make>
  auto on_all_ranks(Bytes size, const Make& make) {
    decltype(make()) made;
    try {
      if (size <= how_.memory) made = make();
    } catch (const OutOfMemoryError&) {
      made = nullptr;
    }
    if (!group_.vote(made != nullptr)) made = nullptr;
    return made;
  }
  std::unique_ptr<Copies> copies_of(Tier tier, Bytes size) {
    return on_all_ranks(size, [&] { return std::make_unique<Copies>(device_, tier, size); });
  }

  bool measure_copies(Tier tier, HostRates& rates) {
    Directions points;
    std::unique_ptr<Copies> copies;
    const Seconds begin = device_.now();
    for (Bytes space = kSizes.back(); !copies && space >= kLeastSpace; space /= 4) {
      copies = copies_of(tier, space);
    }
    if (!copies) return false;
    const Seconds making = device_.now() - begin;
    for (const Bytes size : kSizes) {
      if (size <= copies->space()) time_together(*copies, size, kBatches, points);
    }
    take_turns([&] {
      for (const Bytes size : kSizes) {
        if (size <= copies->space()) time_alone(*copies, size, points);
      }
    });
    if (tier == Tier::pinned && device_.overlaps()) {
      begin_together();
      rates.both_ways_bytes_per_s =
          static_cast<double>(copies->space()) / std::max(copies->time_both_ways(), 1e-12);
    }
    copies.reset();
    measure_largest(tier, making, points);
    for (std::size_t i = 0; i < kBoth.size(); ++i) {
      rates.at(tier, kBoth[i]) = {points[i].alone.fit(), points[i].together.fit()};
    }
    return true;
  }

  /// @param making  the seconds after which there was memory for the others, which for this much
  ///                may take longer than the copies
  void measure_largest(Tier tier, Seconds making, Directions& points) {
    const bool is_fast = std::ranges::all_of(points, [](const PointsOfKind& kind) {
      return kind.together.bytes.back() == static_cast<double>(kSizes.back()) &&
             kind.together.times.back() < kLongCopy;
    });
    constexpr double kLarger = static_cast<double>(kLargest) / static_cast<double>(kSizes.back());
    constexpr double kShare = 0.75;  // of the time; the rest is for passes
    if (!group_.vote(is_fast && has_time_left(kShare, kLarger * (making + 2 * kLongCopy)))) return;
    const auto copies = copies_of(tier, kLargest);
    if (copies) time_together(*copies, kLargest, 1, points);
  }

  void time_together(Copies& copies, Bytes size, int batches, Directions& points) {
    for (std::size_t i = 0; i < kBoth.size(); ++i) {
      std::vector<double> times;
      for (int batch = 0; batch < batches; ++batch) {
        begin_together();
        times.push_back(copies.time(kBoth[i], size, kBatch));
      }
      points[i].together.add(size, summarize(times).median);
    }
  }
  void time_alone(Copies& copies, Bytes size, Directions& points) {
    for (std::size_t i = 0; i < kBoth.size(); ++i) {
      points[i].alone.add(size, copies.time(kBoth[i], size, kBatch));
    }
  }
  /// So many ranks of a node say what the others' are like, and the time is for predictions.
  static constexpr int kMostTurns = 8;
  template <class Run>
  void take_turns(const Run& run) {
    for (int turn = 0; turn < std::min(how_.ranks_on_node, kMostTurns); ++turn) {
      begin_together();
      if (turn == how_.rank_on_node) run();
    }
    begin_together();
  }

  bool measure_passes(HostRates& rates) {
    const Bytes wanted = how_.cache == 0 ? kPassSpace : std::min(4 * how_.cache, kMostPassSpace);
    const Bytes space = std::min(wanted, how_.memory);
    const auto arrays = on_all_ranks(space, [&] {
      auto memory =
          std::make_unique<Buffer>(device_, MemoryCategory::temporaries, space, Tier::pageable);
      // In which Adam makes no number denormal or infinite.
      device_.run_on_host(FillConstant{memory->tensor(DType::fp32), 0.01});
      return memory;
    });
    if (!arrays) return false;
    const AllThreadsInTheEnd restore{device_};
    rates.passes.clear();
    rates.threads = device_.host_threads();
    for (int threads = 1; threads < rates.threads; threads *= 2) {
      rates.passes.push_back({threads, adam_rate(arrays->tensor(DType::fp32), threads)});
    }
    rates.passes.push_back({rates.threads, adam_rate(arrays->tensor(DType::fp32), rates.threads)});
    return true;
  }

  double adam_rate(Tensor space, int threads) {
    device_.limit_host_threads(threads);
    const std::int64_t part = space.numel / kAdamArrays;
    const auto array = [&](std::int64_t place) { return space.slice(place * part, part); };
    const Adam adam{.step = {},
                    .gradient = array(0),
                    .parameter = array(1),
                    .exp_avg = array(2),
                    .exp_avg_sq = array(3)};
    Seconds least = std::numeric_limits<Seconds>::infinity();
    const Seconds first = device_.now();
    for (int pass = 0; pass < kMostPasses; ++pass) {
      const bool goes_on = device_.now() - first < kPassesTime;
      if (!group_.vote(goes_on && has_time_left(1)) && pass > 0) break;
      const Seconds begin = device_.now();
      device_.run_on_host(adam);
      least = std::min(least, device_.now() - begin);
    }
    const Work work = work_of(adam);
    return static_cast<double>(work.read_bytes() + work.written_bytes()) / std::max(least, 1e-12);
  }

  Device& device_;
  Group& group_;
  const HostMeasure& how_;
  Seconds begin_;
};

}  // namespace

std::optional<HostRates> measure_host_rates(Device& device, Group& group, const HostMeasure& how) {
  return HostTimes(device, group, how).measure();
}

}  // namespace dstune
