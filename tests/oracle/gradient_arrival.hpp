// In which order gradients become final, how they are packed, and what lives meanwhile: the part
// of the memory model that is no formula.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/model/model_parameters.hpp"

namespace dstune::oracle {

/// A gradient at its hook.
struct Arrival {
  std::size_t tensor = 0;
  std::int64_t numel = 0;
  std::int64_t others = 0;  ///< elements of other gradients that autograd holds at that moment
  std::int64_t parts = 0;   ///< elements of what it is the sum of, gone by then
};

/// Backward of GPT-2: modules from the last to the first, the bias of a linear layer before its
/// weight; the tied embedding, whose first part waits all the time, comes last. Its second part is
/// not yet there when wpe's gradient is.
std::vector<Arrival> backward_arrivals(const ModelParameters& parameters);

/// Greedy packing (docs/deepspeed-step.md, "Buckets"): tensors that are reduced together, in order.
std::vector<std::vector<std::size_t>> pack_buckets(const std::vector<std::size_t>& order,
                                                   const ModelParameters& parameters,
                                                   std::int64_t capacity);

/// Largest number of gradient elements in one backward that only accumulates.
/// @param held  there are sums from earlier micro-steps
std::int64_t accumulation_peak(const std::vector<Arrival>& arrivals, bool held);

/// Gradients of a backward that reduces through a bucket, step by step: elements, or whatever
/// `each` says that one counts.
class ReductionWalk {
 public:
  struct Rules {
    std::int64_t capacity = 0;
    std::int64_t partition = 0;  ///< elements of the buffer for owned tensors, by first use
    std::function<bool(std::size_t tensor)> owns;
    bool keeps_unowned = false;   ///< extra-large tensors of others stay until the end (stage 1)
    bool accumulated = false;     ///< gradients are added to sums that `held` counts (stage 1)
    bool list = false;            ///< the bucket has no memory, nor has the partition (stage 2)
    bool waits = false;           ///< a list's tensors of others are dropped at the next flush
    std::int64_t each = 1;        ///< what an element counts
    std::int64_t sum = 0;         ///< and one of a sum in another type (stage 1); 0: there is none
    bool sums_in_bucket = false;  ///< it is such sums that get into the bucket, not copies of them
    /// Buffers for sums in fp32, by group, each made for the first owned tensor of its group or at
    /// the end; what an owned tensor brought then stays until the end. Empty: there are none.
    std::vector<std::int64_t> group_sums;
    std::function<std::size_t(std::size_t tensor)> group_of;
  };

  /// @param held  what there is at the start
  ReductionWalk(Rules rules, std::int64_t held);

  void arrive(const Arrival& arrival);
  /// A gradient that is already among the held ones, or a copy of its sum, goes to the bucket.
  void reduce(std::size_t tensor, std::int64_t numel, std::int64_t others);
  /// The last flush. Returns the peak.
  std::int64_t finish();

 private:
  void touch(std::int64_t more);
  void flush(std::int64_t others);
  void drop_list();
  void begin_sums(std::int64_t others);
  std::int64_t each_in_bucket() const { return rules_.sums_in_bucket ? rules_.sum : rules_.each; }

  Rules rules_;
  std::int64_t held_;
  std::int64_t waiting_ = 0;  ///< elements of others in the last flush's list
  std::int64_t peak_ = 0;
  std::int64_t fill_ = 0;
  bool has_partition_ = false;
  std::vector<std::pair<std::size_t, std::int64_t>> bucket_;  ///< tensor, elements
};

}  // namespace dstune::oracle
