#include "core/device/rates/aio_sweep.hpp"

#include <algorithm>
#include <utility>

#include "core/base/text.hpp"

namespace dstune {
namespace {

/// A half of the grid, as the point in it that is measured for it.
struct Half {
  AioSettings settings;
  std::string what;  ///< "queue_depth 128"
};

class Halving {
 public:
  Halving(const AioMeasure& measure, Bytes operation, int rounds)
      : measure_(measure), operation_(operation), rounds_(rounds) {}

  AioChoice choose() {
    choice_.best = {.block_size = kSmallBlock, .queue_depth = 32, .intra_op_parallelism = 2};
    decide_threads();
    decide([](AioSettings& each) { each.block_size = kLargeBlock; }, "block_size 8 MiB");
    decide([](AioSettings& each) { each.queue_depth = 128; }, "queue_depth 128");
    decide([](AioSettings& each) { each.overlap_events = false; }, "overlap_events false");
    decide([](AioSettings& each) { each.single_submit = true; }, "single_submit true");
    return std::move(choice_);
  }

 private:
  static constexpr Bytes kSmallBlock = Bytes{1} << 20U;
  static constexpr Bytes kLargeBlock = Bytes{8} << 20U;

  Half with_threads(int threads) const {
    Half half{choice_.best, concat("intra_op_parallelism ", threads)};
    half.settings.intra_op_parallelism = threads;
    return half;
  }

  // The inner values stand for the lower and the upper half of four.
  void decide_threads() {
    compare(with_threads(2), with_threads(4));
    const bool is_upper = choice_.best.intra_op_parallelism == 4;
    compare(with_threads(is_upper ? 4 : 1), with_threads(is_upper ? 8 : 2));
  }

  template <class Change>
  void decide(Change change, const char* what) {
    Half other{choice_.best, what};
    change(other.settings);
    compare({choice_.best, ""}, other);
  }

  /// Keeps `plain`, unless `other` is faster by more than a tie.
  void compare(const Half& plain, const Half& other) {
    if (!choice_.is_complete) return;
    if (as_operation_sees(plain.settings, operation_) ==
        as_operation_sees(other.settings, operation_)) {
      choice_.alike.push_back(other.what);
      choice_.best = plain.settings;
      return;
    }
    std::vector<double> rates[2];
    for (int turn = 0; turn < 2 * rounds_; ++turn) {
      const bool is_other = (turn / 2 + turn) % 2 == 1;
      const auto rate = measure_(is_other ? other.settings : plain.settings);
      choice_.is_complete = rate.has_value();
      if (!rate) return;
      rates[is_other ? 1 : 0].push_back(*rate);
    }
    const bool is_better = mean_rate(rates[1]) > (1 + kAioTie) * mean_rate(rates[0]);
    choice_.best = is_better ? other.settings : plain.settings;
  }

  const AioMeasure& measure_;
  Bytes operation_;
  int rounds_;
  AioChoice choice_;
};

}  // namespace

AioChoice halve_aio_grid(const AioMeasure& measure, Bytes operation, int rounds) {
  return Halving(measure, operation, rounds).choose();
}

double mean_rate(const std::vector<double>& rates) {
  double time = 0;
  for (const double rate : rates) {
    if (rate <= 0) return 0;
    time += 1 / rate;
  }
  return rates.empty() ? 0 : static_cast<double>(rates.size()) / time;
}

std::optional<AioSettings> best_for_both(const std::vector<AioPoint>& points,
                                         const std::vector<AioSettings>& candidates) {
  std::optional<AioSettings> best;
  double best_rate = 0;
  for (const AioSettings& candidate : candidates) {
    const auto point = std::find_if(points.begin(), points.end(), [&](const AioPoint& each) {
      return each.settings == candidate;
    });
    if (point == points.end()) continue;
    const double rate = mean_rate({mean_rate(point->read), mean_rate(point->write)});
    if (rate <= (best ? 1 + kAioTie : 1) * best_rate) continue;
    best = candidate;
    best_rate = rate;
  }
  return best;
}

}  // namespace dstune
