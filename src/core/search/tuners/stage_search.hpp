// The micro-batch search of one ZeRO stage (docs/deepspeed-step.md, "DeepSpeed's autotuner:
// micro-batches").
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/feasibility/micro_batches.hpp"
#include "core/search/feasibility/stage_plan.hpp"
#include "core/search/tuners/prober.hpp"

namespace dstune {

/// The result of a stage.
struct StageResult {
  /// The largest that ran, or beyond which nothing is gained; 0 if none ran.
  std::int64_t max_micro_batch = 0;
  /// The best of the points visited in the stage; owned by the prober.
  const Record* best = nullptr;
  std::vector<Point> candidates;  ///< the list of step 4 of run(), or the user's list
};

/// The middles that a bisection of [low, high] may visit, breadth first, at most `count`.
std::vector<std::int64_t> bisection_tree(std::int64_t low, std::int64_t high, std::size_t count);

class StageSearch {
 public:
  /// All references must outlive the search.
  StageSearch(Prober& prober, const TuningConfig& config, int group_size, const StagePlan& plan);

  /// 1. With a list of the user's it visits exactly those. Otherwise it visits
  /// 2. the smallest micro-batch: `previous_max`, or (0) the user's, or the least allowed;
  /// 3. the largest that runs: the estimate, upwards while measured memory leaves room for more, or
  ///    0.95 of it and bisection, until the gain is below 5 %;
  /// 4. the candidate list, with accumulation steps that keep the batch of the largest;
  /// 5. smaller ones than the largest, while each is more than 5 % better than the one before.
  ///
  /// With a fixed batch it visits the micro-batches that make it (fixed_batch_points()): downwards
  /// from the largest by the estimate to the largest that runs, or upwards while measured memory
  /// leaves room; then num_tuning_micro_batch_sizes smaller ones, and more while each is more than
  /// 5 % better than the one before.
  StageResult run(std::int64_t previous_max);

 private:
  StageResult run_fixed_batch();
  /// The index of the largest of `points` that runs; none if none does.
  std::optional<std::size_t> largest_of(const std::vector<Point>& points);
  /// Whether the peak measured at a point leaves room for the activations of a larger one.
  bool has_room_for(const Point& measured, const Point& larger);
  void visit_down_from(const std::vector<Point>& points, std::size_t largest);

  Point point_at(std::int64_t micro_batch) const;
  bool runs(std::int64_t micro_batch) { return prober_.visit(point_at(micro_batch)) != nullptr; }
  double score_at(const Point& point);

  std::int64_t find_smallest(std::int64_t previous_max);
  std::int64_t find_largest(std::int64_t smallest);
  std::int64_t raise(std::int64_t largest);
  /// The next micro-batch above `micro_batch` for which its measured peak leaves room; 0: none.
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
