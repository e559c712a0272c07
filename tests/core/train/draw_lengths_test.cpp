// The batches of dstune.lengths against scripts/simulate_lengths.py, written from their definition.
#include "core/train/draw_lengths.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <boost/json/parse.hpp>
#include <boost/json/value_to.hpp>
#include <gtest/gtest.h>

#include "core/base/statistics.hpp"
#include "core/device/dry/dry_collectives.hpp"
#include "core/device/dry/dry_device.hpp"
#include "core/train/training_step.hpp"
#include "tests/support/test_data.hpp"
#include "tests/support/tiny_experiment.hpp"

namespace dstune::draw_lengths_test {
namespace {

/// A row of the table.
struct Simulated {
  LengthSettings settings;
  std::int64_t ranks, micro_batch, accumulation, row_length;
  std::uint64_t seed;
  std::int64_t batches;
  json::object figures;

  double figure(const char* name) const { return figures.at(name).to_number<double>(); }
  std::int64_t sequences() const { return ranks * micro_batch * accumulation; }
  RowLengths rows(std::int64_t batch, std::int64_t micro, std::int64_t rank) const {
    const std::int64_t first = batch * sequences() + (micro * ranks + rank) * micro_batch;
    return draw_rows(settings, seed, static_cast<std::uint64_t>(first), micro_batch, row_length);
  }
};

Simulated simulated_of(const json::object& row) {
  const json::object& split = row.at("split").as_object();
  const auto of_split = [&](const char* key) {
    const auto* value = split.if_contains(key);
    return value == nullptr ? 0 : value->to_number<std::int64_t>();
  };
  return {length_settings_from_json(row.at("settings").as_object()),
          of_split("ranks"),
          of_split("micro_batch"),
          of_split("accumulation"),
          of_split("row_length"),
          row.at("seed").to_number<std::uint64_t>(),
          row.at("batches").to_number<std::int64_t>(),
          row};
}

std::vector<Simulated> table() {
  std::ifstream file(test::test_data("lengths/batches.json"));
  const json::value rows = json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  std::vector<Simulated> all;
  for (const auto& row : rows.as_array()) all.push_back(simulated_of(row.as_object()));
  return all;
}

struct Steps {
  std::vector<double> real, padded, rows, slowest, squares;
};

Steps steps_of(const Simulated& row) {
  Steps steps;
  for (std::int64_t batch = 0; batch < row.batches; ++batch) {
    std::vector<double> by_rank(static_cast<std::size_t>(row.ranks));
    double real = 0, padded = 0, longest = 0, squares = 0;
    for (std::int64_t i = 0; i < row.accumulation * row.ranks; ++i) {
      const RowLengths rows = row.rows(batch, i / row.ranks, i % row.ranks);
      const auto tokens = static_cast<double>(rows.tokens());
      by_rank[static_cast<std::size_t>(i % row.ranks)] += tokens;
      padded += tokens;
      longest = std::max(longest, tokens / static_cast<double>(row.micro_batch));
      std::vector<TokenSpan> sequences = rows.sequences;
      if (sequences.empty())
        sequences.assign(static_cast<std::size_t>(rows.rows), {0, rows.length});
      for (const TokenSpan& sequence : sequences) {
        const auto length = static_cast<double>(sequence.length);
        real += length;
        squares += length * length;
      }
    }
    steps.real.push_back(real);
    steps.padded.push_back(padded);
    steps.rows.push_back(longest);
    steps.slowest.push_back(*std::max_element(by_rank.begin(), by_rank.end()));
    steps.squares.push_back(squares);
  }
  return steps;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

TEST(DrawLengths, DrawsTheLengthsOfItsDefinition) {
  for (const Simulated& row : table()) {
    const auto expected = json::value_to<std::vector<std::int64_t>>(row.figures.at("lengths"));
    std::vector<std::int64_t> lengths;
    for (std::uint64_t i = 0; i < expected.size(); ++i) {
      lengths.push_back(draw_length(row.settings, row.seed, i));
    }
    EXPECT_EQ(lengths, expected) << describe(row.settings);
  }
}

TEST(DrawLengths, BatchesHaveTheSimulationsMeansAndP95) {
  for (const Simulated& row : table()) {
    const Steps steps = steps_of(row);

    EXPECT_NEAR(mean(steps.real), row.figure("real"), 1e-9) << describe(row.settings);
    EXPECT_NEAR(mean(steps.padded), row.figure("padded"), 1e-9) << describe(row.settings);
    EXPECT_EQ(percentile(steps.rows, 0.95), row.figure("p95_row")) << describe(row.settings);
    EXPECT_EQ(percentile(steps.rows, 1), row.figure("worst_row")) << describe(row.settings);
    EXPECT_EQ(percentile(steps.slowest, 0.95), row.figure("p95_slowest"));
    EXPECT_EQ(percentile(steps.squares, 0.95), row.figure("p95_squares"));
  }
}

TEST(DrawLengths, TheLongestBatchHasTheLongestRowThatThereIs) {
  for (const Simulated& row : table()) {
    const RowLengths longest = longest_rows(row.settings, row.micro_batch, row.row_length);

    EXPECT_EQ(static_cast<double>(longest.tokens()),
              static_cast<double>(row.micro_batch) * row.figure("longest_row"));
  }
}

// A mask costs memory, and comes with padding alone.
TEST(DrawLengths, TheLongestBatchIsPaddedWhereBatchesCanBe) {
  const LengthSettings settings{
      .law = LengthLaw::histogram, .counts = {{4, 1}, {9, 2}}, .least = 4, .most = 9};

  EXPECT_TRUE(longest_rows(settings, 1, 0).sequences.empty());
  EXPECT_EQ(longest_rows(settings, 3, 0).sequences,
            (std::vector<TokenSpan>{{0, 9}, {9, 9}, {18, 4}}));
}

TEST(DrawLengths, FillsPackedRowsAndCutsTheLast) {
  const LengthSettings settings{
      .law = LengthLaw::uniform, .least = 4, .most = 4, .is_packed = true};

  const RowLengths rows = draw_rows(settings, 1, 0, 2, 6);

  EXPECT_EQ(rows, (RowLengths{1, 12, {{0, 4}, {4, 2}, {6, 4}, {10, 2}}, true}));
}

// Two ranks with one row each have the two rows of one rank.
TEST(DrawLengths, DoesNotDependOnHowABatchIsSplit) {
  const Simulated row = table().front();
  const RowLengths whole = draw_rows(row.settings, row.seed, 10, 2, 0);
  const RowLengths first = draw_rows(row.settings, row.seed, 10, 1, 0);
  const RowLengths second = draw_rows(row.settings, row.seed, 11, 1, 0);

  EXPECT_EQ(whole.length, std::max(first.length, second.length));
}

Bytes peak_of(const Experiment& experiment, std::optional<std::uint64_t> batch) {
  DryDevice device(Bytes{1} << 40U);
  DryCollectives collectives(device, 0, experiment.ranks);
  TrainingStep step(experiment.settings, make_step_config(experiment), device, collectives);
  step.run(batch);
  return device.memory().peak().allocated;
}

// The memory that decides what fits is that of no batch that comes, but of none less.
TEST(DrawLengths, NoBatchNeedsMoreThanTheLongest) {
  const LengthSettings settings{.law = LengthLaw::uniform, .least = 3, .most = 40};
  for (const bool is_packed : {false, true}) {
    for (const LossKind loss : {LossKind::plain, LossKind::chunked, LossKind::fused}) {
      test::TinyExperiment tiny{.micro_batch = 3};
      tiny.model.max_positions = 40;
      tiny.model.vocab_size = 4096;
      Experiment experiment = tiny.make();
      experiment.settings.sequence_length = 40;
      experiment.settings.lengths = settings;
      experiment.settings.lengths.is_packed = is_packed;
      experiment.settings.loss.kind = loss;
      experiment.settings.attention = is_packed ? AttentionKind::flash : AttentionKind::sdpa;
      const Bytes longest = peak_of(experiment, std::nullopt);

      for (std::uint64_t batch = 0; batch < 20; ++batch) {
        EXPECT_LE(peak_of(experiment, batch), longest) << batch << is_packed << name_of(loss);
      }
    }
  }
}

}  // namespace
}  // namespace dstune::draw_lengths_test
