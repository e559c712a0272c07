#include "core/report/tables/progress.hpp"

#include <variant>

#include "core/base/text.hpp"

namespace dstune {

std::string Progress::line(const Record& record, bool from_journal, Seconds now,
                           std::optional<int> expected) {
  ++finished_;
  std::string verdict;
  const auto* measured = std::get_if<Measured>(&record.outcome);
  const double value = measured == nullptr ? 0 : metric_value(metric_, *measured);
  if (measured != nullptr && (!best_ || is_better(metric_, value, *best_))) {
    best_ = value;
    best_name_ = record.experiment.name;
    verdict = "  (best so far)";
  } else if (best_) {
    verdict = concat("  (best: ", best_name_, ")");
  }
  const std::string position = expected ? concat(finished_, "/", *expected) : concat(finished_);
  return concat("[", position, " ", fixed(now, 0), "s] ", record.experiment.name, " -> ",
                describe(record.outcome), from_journal ? " [from the journal]" : "", verdict);
}

}  // namespace dstune
