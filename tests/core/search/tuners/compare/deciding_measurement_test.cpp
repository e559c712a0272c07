#include "core/search/tuners/compare/deciding_measurement.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/core/report/records.hpp"

namespace dstune::deciding_measurement_test {
namespace {

using testing_support::make_experiment;
using testing_support::make_measured;
using testing_support::make_record;

/// `began` keeps it apart from others, or not.
Record record(int stage, double samples_per_s, Seconds began, int repetition = 0) {
  Record record = make_record(make_experiment(stage, 1), make_measured(samples_per_s));
  record.experiment.repetition = repetition;
  record.experiment.name += repetition == 0 ? "" : "_again" + std::to_string(repetition);
  record.started = began;
  record.finished = began + 1;
  return record;
}

double speed(const std::optional<Measured>& measured) {
  return measured ? measured->samples_per_s : 0;
}

TEST(DecidingMeasurement, IsTheMeanOfTheRepetitionsWhereThereAreAny) {
  const Record once = record(1, 8, 0);
  const Record other = record(2, 9, 1);
  const std::vector<Record> alone = {once, other};
  const std::vector<Record> records = {once, other, record(1, 5, 2, 1), record(1, 7, 3, 2),
                                       record(1, 6, 4, 3)};

  EXPECT_EQ(speed(deciding_measurement(once, alone)), 8);
  EXPECT_DOUBLE_EQ(speed(deciding_measurement(once, records)), std::cbrt(5 * 7 * 6));
  EXPECT_FALSE(deciding_measurement(other, records));
}

TEST(ComparableMeasurements, AreTheFirstOnesOfWhatRanAlone) {
  const Record best = record(1, 8, 0);
  const Record other = record(2, 9, 1);
  const Record beside = record(3, 9, 1.5);
  const Record again = record(1, 5, 3, 1);

  const std::vector<Record> records = {best, other, again};

  const auto pair = comparable_measurements(best, other, records);

  ASSERT_TRUE(pair);
  EXPECT_EQ(speed(pair->first), 8);
  EXPECT_EQ(speed(pair->second), 9);
  EXPECT_FALSE(comparable_measurements(best, other, {best, other, beside, again}));
}

TEST(ComparableMeasurements, AreTheRepetitionsOfWhatHasThem) {
  const Record best = record(1, 8, 0);
  const Record other = record(2, 9, 1);
  const std::vector<Record> records = {best, other, record(1, 5, 3, 1), record(2, 4, 4, 1)};

  const auto pair = comparable_measurements(best, other, records);

  ASSERT_TRUE(pair);
  EXPECT_EQ(speed(pair->first), 5);
  EXPECT_EQ(speed(pair->second), 4);
}

TEST(ComparableMeasurements, AreNoneWithoutNumbers) {
  Record failed = record(2, 9, 1);
  failed.outcome = OutOfMemory{};
  const Record best = record(1, 8, 0);

  EXPECT_FALSE(comparable_measurements(best, failed, {best, failed}));
}

}  // namespace
}  // namespace dstune::deciding_measurement_test
