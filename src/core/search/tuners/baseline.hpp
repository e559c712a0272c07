// The user's own configuration, measured beside those that the search chooses.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/tuners/tuner.hpp"

namespace dstune {

/// The configuration of the file as it is (TuningConfig::given_point), under the name of its point;
/// none where the file does not say one, or the batch sizes do not make one on these ranks.
std::optional<Candidate> baseline_of(const TuningConfig& config, int group_size);

/// Asks for the baseline before all that the tuner inside asks for, which hears of it only where it
/// asks for it too, and so chooses as without. When that has finished, the baseline and the best
/// are repeated in turn until each has two repetitions: their ratio then has an interval, and the
/// faster by the means of these is the best. Nothing is repeated where the baseline is the best
/// already or could not be measured.
class BaselineTuner final : public Tuner {
 public:
  BaselineTuner(std::unique_ptr<Tuner> tuner, Candidate baseline, Metric metric);

  std::vector<Candidate> next(int free_groups) override;
  void learn(const Record& record) override;
  std::optional<Record> best() override;
  std::vector<Record> stage_bests() override { return tuner_->stage_bests(); }
  std::vector<std::string> contenders() override { return tuner_->contenders(); }
  std::vector<PredictedStep> predictions() override { return tuner_->predictions(); }
  std::vector<std::string> remarks() override { return tuner_->remarks(); }

 private:
  /// The repetition that is to be made next, once the tuner inside has finished; none: no more.
  std::optional<Candidate> repetition();
  /// The repetitions of `record`'s configuration that ended, however.
  std::vector<const Record*> repetitions(const Record& record) const;
  /// The highest number of these; 0: none.
  int last_repetition(const Record& record) const;
  /// The mean of the measured ones, or the record's own outcome, which is Measured.
  Measured mean_of_repetitions(const Record& record) const;

  std::unique_ptr<Tuner> tuner_;
  Candidate candidate_;
  Metric metric_;
  std::optional<Record> baseline_;     ///< of the first measurement
  std::set<std::string> asked_;        ///< the names for which the tuner inside asked
  std::vector<Record> repeated_ = {};  ///< all repetitions, also those of the tuner inside
};

}  // namespace dstune
