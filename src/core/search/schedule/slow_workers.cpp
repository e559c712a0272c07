#include "core/search/schedule/slow_workers.hpp"

#include <algorithm>

#include "core/base/statistics.hpp"
#include "core/base/text.hpp"

namespace dstune {
namespace {

constexpr double kSlow = 1.3;
constexpr int kExperiments = 3;

}  // namespace

std::optional<std::string> SlowWorkers::look(const std::string& experiment,
                                             const Measured& measured,
                                             const std::vector<Worker>& workers) {
  const auto& times = measured.compute_times;
  if (times.size() < 2 || times.size() != workers.size()) return std::nullopt;
  const auto slowest = std::max_element(times.begin(), times.end());
  std::vector<Seconds> others = times;
  others.erase(others.begin() + (slowest - times.begin()));
  const Seconds usual = summarize(others).median;
  const Worker& suspect = workers[static_cast<std::size_t>(slowest - times.begin())];
  for (const auto& worker : workers) {
    if (worker.rank != suspect.rank) in_a_row_[worker.rank] = 0;
  }
  int& count = in_a_row_[suspect.rank];
  count = usual > 0 && *slowest > kSlow * usual ? count + 1 : 0;
  if (count < kExperiments || !named_.insert(suspect.rank).second) return std::nullopt;
  return concat(
      "rank ", suspect.rank, " on ", suspect.host, " computes ", fixed(*slowest / usual, 1),
      " times as long as its peers (", format_seconds(*slowest), " against ", format_seconds(usual),
      " per step in ", experiment,
      ", the third experiment in a row); every experiment waits for it: look for other programs, "
      "heat or shared cores there");
}

}  // namespace dstune
