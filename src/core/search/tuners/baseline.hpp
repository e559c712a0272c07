// The user's own configuration, measured beside those that the search chooses.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/search/tuners/tuner.hpp"

namespace dstune {

/// The configuration of the file as it is (TuningConfig::given_point), under the name of its point;
/// none where the file does not say one, or the batch sizes do not make one on these ranks.
std::optional<Candidate> baseline_of(const TuningConfig& config, int group_size);

/// Asks for the baseline before all that the tuner inside asks for. Where that asks for the same
/// configuration, under whatever name, it gets what was measured already, and what it calls so is
/// shown under the baseline's name. When it has finished, the baseline and the best are repeated in
/// turn until each has two repetitions: their ratio then has an interval. The faster by the means
/// of what was repeated, or by the single measurements where a run ended before, is the best.
/// Nothing is repeated where the baseline is the best already or could not be measured.
class BaselineTuner final : public Tuner {
 public:
  BaselineTuner(std::unique_ptr<Tuner> tuner, Candidate baseline, Metric metric);

  std::vector<Candidate> next(int free_groups) override;
  void learn(const Record& record) override;
  std::optional<int> still_to_come() override;
  std::optional<Seconds> foretold(const std::string& name) override;
  std::optional<Record> best() override;
  std::vector<Record> stage_bests() override { return tuner_->stage_bests(); }
  std::vector<std::string> contenders() override { return tuner_->contenders(); }
  std::vector<PredictedStep> predictions() override;
  std::vector<std::string> remarks() override;

 private:
  /// The candidates of the tuner inside but for the baseline itself, which it is told of.
  std::vector<Candidate> next_inside(int free_groups);
  /// Tells the tuner inside of what it asked for as the baseline under the name `twin_`.
  void tell_of_baseline();
  bool is_faster_than(const Record& best) const;
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
  std::optional<Record> baseline_;  ///< of the first measurement
  /// What the tuner inside asked for while the baseline was measured.
  std::optional<std::vector<Candidate>> waiting_ = std::nullopt;
  std::string twin_ = {};  ///< the name by which the tuner inside knows the baseline; "": by none
  /// By the name that is shown: the name by which the tuner inside asked.
  std::map<std::string, std::string> asked_ = {};
  std::vector<Record> repeated_ = {};  ///< all repetitions, also those of the tuner inside
};

}  // namespace dstune
