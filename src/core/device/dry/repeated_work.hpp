// Work that repeats itself: it is carried out, or in a dry run done once and counted.
#pragma once

#include <cstdint>

#include "core/device/device.hpp"

namespace dstune {

/// While it lives, each entry in `ledger` counts `times` times.
class CountedEach {
 public:
  CountedEach(Ledger& ledger, std::uint64_t times) : ledger_(ledger), outer_(ledger.count_each(1)) {
    std::uint64_t all = 0;
    if (__builtin_mul_overflow(outer_, times, &all)) all = ~std::uint64_t{0};
    ledger_.count_each(all);
  }
  ~CountedEach() { ledger_.count_each(outer_); }
  CountedEach(const CountedEach&) = delete;
  CountedEach& operator=(const CountedEach&) = delete;

 private:
  Ledger& ledger_;
  std::uint64_t outer_;
};

/// Calls operation(i) for i in [0, times), all of which do the same to tensors of the same sizes. A
/// device that folds() does only the first: ledger and memory are as if it had done all.
template <class Operation>
void repeat(Device& device, std::int64_t times, Operation operation) {
  if (!device.folds()) {
    for (std::int64_t i = 0; i < times; ++i) operation(i);
    return;
  }
  if (times <= 0) return;
  const CountedEach scope(device.ledger(), static_cast<std::uint64_t>(times));
  operation(0);
}

/// Folds the micro-steps of one optimizer step on a device that folds(). From the third on,
/// micro-steps that are not the last are alike: in the first two gradients become sums, and stage 3
/// records the order of modules and then decides what it keeps for ever.
class FoldedMicroSteps {
 public:
  /// @param device  must outlive this; its ledger is empty
  explicit FoldedMicroSteps(Device& device) : device_(device) {}

  /// Called after every micro-step. If that did what the one before did, counts `left` more like
  /// it.
  /// @returns how many were counted: `left`, or 0
  std::int64_t fold(std::int64_t left);

 private:
  Device& device_;
  std::int64_t walked_ = 0;
  Ledger before_;     // the ledger at the end of the micro-step before
  Ledger last_work_;  // the work of the micro-step before
  MemoryUse last_use_;
  Bytes last_in_flight_ = 0;
  CachingModel::FreeLists last_cache_;  ///< at the end of the micro-step before
};

}  // namespace dstune
