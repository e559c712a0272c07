// The micro-batch search of one ZeRO stage (docs/deepspeed-step.md, "DeepSpeed's autotuner:
// micro-batches").
#pragma once

#include <cstdint>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/feasibility/micro_batches.hpp"
#include "core/search/feasibility/stage_plan.hpp"
#include "core/search/tuners/prober.hpp"

namespace dstune {

/// What a stage gave.
struct StageResult {
  std::int64_t max_micro_batch = 0;  ///< largest that ran, or beyond which nothing is gained; or 0
  const Record* best = nullptr;      ///< among the points visited in the stage; owned by the prober
  std::vector<Point> candidates;     ///< 4. below, or the user's list
};

/// Middles of [low, high] that a bisection may visit, breadth first, at most `count`.
std::vector<std::int64_t> bisection_tree(std::int64_t low, std::int64_t high, std::size_t count);

class StageSearch {
 public:
  /// All references must outlive the search.
  StageSearch(Prober& prober, const TuningConfig& config, int group_size, const StagePlan& plan);

  /// 1. With a list of the user's: exactly those. Otherwise
  /// 2. the smallest micro-batch: `previous_max`, or (0) the user's, or the least allowed;
  /// 3. the largest that runs: the estimate, upwards while measured memory leaves room for more, or
  ///    0.95 of it and bisection, until the gain is below 5 %;
  /// 4. the candidate list, with accumulation steps that keep the batch of the largest;
  /// 5. smaller ones than the largest, while each is more than 5 % better than the one before.
  StageResult run(std::int64_t previous_max);

 private:
  Point point_at(std::int64_t micro_batch) const;
  bool runs(std::int64_t micro_batch) { return prober_.visit(point_at(micro_batch)) != nullptr; }
  double score_at(const Point& point);

  std::int64_t find_smallest(std::int64_t previous_max);
  std::int64_t find_largest(std::int64_t smallest);
  std::int64_t raise(std::int64_t largest);
  /// The next micro-batch above that the measured peak leaves room for; 0: none.
  std::int64_t next_above(std::int64_t micro_batch);
  std::int64_t bisect(std::int64_t runs, std::int64_t high);
  std::vector<Point> candidates(std::int64_t smallest, std::int64_t largest) const;
  std::vector<Point> smaller_points(const std::vector<Point>& candidates,
                                    std::int64_t smallest) const;
  void visit_candidates(const std::vector<Point>& candidates);
  void visit_smaller(const std::vector<Point>& candidates, std::int64_t smallest);
  void fetch_ahead(std::int64_t smallest);

  Prober& prober_;
  const TuningConfig& config_;
  int group_size_;
  const StagePlan& plan_;
};

}  // namespace dstune
