#include "core/search/tuners/stage_search.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <utility>
#include <variant>

#include "core/search/tuners/compare/score.hpp"

namespace dstune {
namespace {

/// The relative gain below which a larger micro-batch is not worth looking for, nor a still smaller
/// one worth trying.
constexpr double kPlateau = 0.05;

/// The points that are offered ahead. They are enough for any worker pool; the prober takes as many
/// as it has slots.
constexpr std::size_t kMostAhead = 64;

}  // namespace

std::vector<std::int64_t> bisection_tree(std::int64_t low, std::int64_t high, std::size_t count) {
  std::vector<std::int64_t> middles;
  std::deque<std::pair<std::int64_t, std::int64_t>> ranges = {{low, high}};
  while (!ranges.empty() && middles.size() < count) {
    const auto [first, last] = ranges.front();
    ranges.pop_front();
    if (first > last) continue;
    const auto middle = (first + last) / 2;
    middles.push_back(middle);
    ranges.emplace_back(middle + 1, last);
    ranges.emplace_back(first, middle - 1);
  }
  return middles;
}

StageSearch::StageSearch(Prober& prober, const TuningConfig& config, int group_size,
                         const StagePlan& plan)
    : prober_(prober), config_(config), group_size_(group_size), plan_(plan) {}

StageResult StageSearch::run(std::int64_t previous_max) {
  const auto first_visit = prober_.visits();
  StageResult result;
  if (!config_.micro_batches.empty()) {
    result.candidates = pool_points(config_, group_size_, plan_);
    visit_candidates(result.candidates);
    result.best = prober_.best_since(first_visit);
    if (result.best != nullptr) result.max_micro_batch = config_.micro_batches.back();
    return result;
  }
  if (config_.objective.train_batch_size) return run_fixed_batch();
  const auto smallest = find_smallest(previous_max);
  if (smallest == 0) return result;
  result.max_micro_batch = find_largest(smallest);
  result.candidates = candidates(smallest, result.max_micro_batch);
  visit_candidates(result.candidates);
  visit_smaller(result.candidates, smallest);
  result.best = prober_.best_since(first_visit);
  return result;
}

StageResult StageSearch::run_fixed_batch() {
  const auto first_visit = prober_.visits();
  const auto points = fixed_batch_points(config_, group_size_, plan_.stage);
  StageResult result;
  const auto largest = largest_of(points);
  if (!largest) return result;
  result.max_micro_batch = points[*largest].micro_batch;
  visit_down_from(points, *largest);
  result.candidates = {points.begin(), points.begin() + static_cast<std::ptrdiff_t>(*largest) + 1};
  result.best = prober_.best_since(first_visit);
  return result;
}

std::optional<std::size_t> StageSearch::largest_of(const std::vector<Point>& points) {
  const auto above =
      std::ranges::upper_bound(points, plan_.max_micro_batch, {}, &Point::micro_batch);
  const auto estimated = static_cast<std::size_t>(above - points.begin());
  prober_.prefetch({std::make_reverse_iterator(above), points.rend()});
  auto count = estimated;
  while (count > 0 && prober_.visit(points[count - 1]) == nullptr) --count;
  if (count == 0) return std::nullopt;
  if (count < estimated) return count - 1;
  while (count < points.size() && has_room_for(points[count - 1], points[count]) &&
         prober_.visit(points[count]) != nullptr) {
    ++count;
  }
  return count - 1;
}

bool StageSearch::has_room_for(const Point& measured, const Point& larger) {
  const auto* known = prober_.visit(measured);
  const Bytes limit = config_.settings.memory_limit;
  const Bytes each = plan_.activation_bytes_per_micro_batch;
  if (known == nullptr || each == 0 || known->peak_memory.counted() >= limit) return false;
  const auto more = static_cast<Bytes>(larger.micro_batch - measured.micro_batch);
  return more <= (limit - known->peak_memory.counted()) / each;
}

void StageSearch::visit_down_from(const std::vector<Point>& points, std::size_t largest) {
  const auto metric = config_.autotuning.metric;
  const auto surely = static_cast<std::size_t>(config_.autotuning.num_tuning_micro_batch_sizes);
  const auto* previous = prober_.visit(points[largest]);
  for (std::size_t i = largest; previous != nullptr && i-- > 0;) {
    const auto end =
        points.rend() - static_cast<std::ptrdiff_t>(std::max(largest, surely) - surely);
    const auto begin = points.rend() - static_cast<std::ptrdiff_t>(i + 1);
    if (begin < end) prober_.prefetch({begin, end});
    const auto* measured = prober_.visit(points[i]);
    if (measured == nullptr) return;
    const double gain = relative_gain(score(metric, *measured), score(metric, *previous));
    if (largest - i >= surely && gain <= kPlateau) return;
    previous = measured;
  }
}

Point StageSearch::point_at(std::int64_t micro_batch) const {
  return search_point(config_, group_size_, plan_.stage, micro_batch);
}

double StageSearch::score_at(const Point& point) {
  return score(config_.autotuning.metric, *prober_.visit(point));
}

std::int64_t StageSearch::find_smallest(std::int64_t previous_max) {
  const auto least = config_.autotuning.min_train_micro_batch_size_per_gpu;
  const auto users = std::max(config_.start_micro_batch, least);
  auto first = previous_max;
  // A micro-batch that does not fit by dry run is not tried: the least one replaces the user's.
  if (first == 0) first = users <= plan_.max_micro_batch ? users : least;
  fetch_ahead(first);
  if (runs(first)) return first;
  return previous_max == 0 && first != least && runs(least) ? least : 0;
}

void StageSearch::fetch_ahead(std::int64_t smallest) {
  const auto top = std::max(plan_.max_micro_batch, smallest);
  std::vector<Point> points = {point_at(smallest), point_at(top)};
  const auto list = candidates(smallest, top);
  const auto smaller = smaller_points(list, smallest);
  points.insert(points.end(), list.begin(), list.end());
  if (!smaller.empty()) points.push_back(smaller.front());
  prober_.prefetch(points);
}

std::int64_t StageSearch::find_largest(std::int64_t smallest) {
  const auto top = std::max(plan_.max_micro_batch, smallest);
  if (runs(top)) return raise(top);
  const auto near = static_cast<std::int64_t>(0.95 * static_cast<double>(top));
  if (near <= smallest) return bisect(smallest, top - 1);
  std::vector<Point> ahead = {point_at(near)};
  for (const auto middle : bisection_tree(smallest + 1, near - 1, kMostAhead)) {
    ahead.push_back(point_at(middle));
  }
  prober_.prefetch(ahead);
  return runs(near) ? bisect(near, top - 1) : bisect(smallest, near - 1);
}

std::int64_t StageSearch::next_above(std::int64_t micro_batch) {
  const auto* measured = prober_.visit(point_at(micro_batch));
  const Bytes limit = config_.settings.memory_limit;
  const Bytes each = plan_.activation_bytes_per_micro_batch;
  if (measured == nullptr || each == 0 || measured->peak_memory.counted() >= limit) return 0;
  const auto room = static_cast<std::int64_t>((limit - measured->peak_memory.counted()) / each);
  if (room == 0) return 0;
  // At least 5 % of the micro-batch, rounded up.
  const auto step = std::max(room, (micro_batch + 19) / 20);
  const auto next = std::min(micro_batch + step, largest_allowed_micro_batch(config_, group_size_));
  return next > micro_batch ? next : 0;
}

std::int64_t StageSearch::raise(std::int64_t largest) {
  for (auto next = next_above(largest); next != 0; next = next_above(largest)) {
    if (!runs(next)) return bisect(largest, next - 1);
    const double gain = relative_gain(score_at(point_at(next)), score_at(point_at(largest)));
    largest = next;
    if (gain < kPlateau) break;
  }
  return largest;
}

std::int64_t StageSearch::bisect(std::int64_t runs_at, std::int64_t high) {
  auto largest = runs_at;
  auto low = runs_at + 1;
  while (low <= high) {
    std::vector<Point> ahead;
    for (const auto middle : bisection_tree(low, high, kMostAhead)) {
      ahead.push_back(point_at(middle));
    }
    prober_.prefetch(ahead);
    const auto middle = (low + high) / 2;
    if (!runs(middle)) {
      high = middle - 1;
      continue;
    }
    const double gain = relative_gain(score_at(point_at(middle)), score_at(point_at(largest)));
    largest = middle;
    low = middle + 1;
    if (gain < kPlateau) break;
  }
  return largest;
}

std::vector<Point> StageSearch::candidates(std::int64_t smallest, std::int64_t largest) const {
  const auto samples = samples_per_rank(config_, group_size_, largest);
  std::vector<Point> points;
  for (const auto micro_batch : list_micro_batches(
           smallest, largest, samples, config_.autotuning.num_tuning_micro_batch_sizes)) {
    points.push_back(filled_point(plan_.stage, micro_batch, samples));
  }
  return points;
}

std::vector<Point> StageSearch::smaller_points(const std::vector<Point>& candidates,
                                               std::int64_t smallest) const {
  const auto largest = candidates.back();
  const auto lowest =
      candidates.size() > 1 ? candidates[candidates.size() - 2].micro_batch + 1 : smallest;
  std::vector<Point> points;
  for (const auto micro_batch : smaller_micro_batches(lowest, largest.micro_batch)) {
    points.push_back({plan_.stage, micro_batch, largest.accumulation_steps});
  }
  return points;
}

void StageSearch::visit_candidates(const std::vector<Point>& candidates) {
  for (auto point = candidates.begin(); point != candidates.end(); ++point) {
    prober_.prefetch({point, candidates.end()});
    prober_.visit(*point);
  }
}

void StageSearch::visit_smaller(const std::vector<Point>& candidates, std::int64_t smallest) {
  const auto* previous = prober_.visit(candidates.back());
  const auto points = smaller_points(candidates, smallest);
  for (auto point = points.begin(); previous != nullptr && point != points.end(); ++point) {
    prober_.prefetch({point, points.end()});
    const auto* measured = prober_.visit(*point);
    if (measured == nullptr) return;
    const auto metric = config_.autotuning.metric;
    if (relative_gain(score(metric, *measured), score(metric, *previous)) <= kPlateau) return;
    previous = measured;
  }
}

}  // namespace dstune
