// Padded and packed batches against Hugging Face's models: tests/data/lengths/models.json, written
// by scripts/make_lengths_fixture.py, which says what stands there.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <boost/json/parse.hpp>
#include <boost/json/value_to.hpp>
#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/device/dry/dry_device.hpp"
#include "core/experiment/activation_checkpointing.hpp"
#include "core/train/families/families.hpp"
#include "core/train/model.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/support/family_fixture.hpp"
#include "tests/support/numbers.hpp"
#include "tests/support/recording_engine.hpp"
#include "tests/support/test_data.hpp"

namespace dstune::lengths_test {
namespace {

struct Case {
  std::string name;
  bool is_packed = false;
  std::vector<std::int64_t> lengths;
  double loss = 0;
  json::array gradients;
  json::object saved;
};

std::vector<Case> cases() {
  std::ifstream file(test::test_data("lengths/models.json"));
  const json::value rows = json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  std::vector<Case> all;
  for (const auto& row : rows.as_array()) {
    const auto* saved = row.as_object().if_contains("saved");
    all.push_back({json::value_to<std::string>(row.at("case")), row.at("batches") == "packed",
                   json::value_to<std::vector<std::int64_t>>(row.at("lengths")),
                   row.at("loss").as_double(), row.at("gradients").as_array(),
                   saved == nullptr ? json::object() : saved->as_object()});
  }
  return all;
}

RowLengths rows_of(const Case& own, const test::FamilyFixture& fixture) {
  RowLengths rows{fixture.micro_batch, fixture.sequence_length, {}, own.is_packed};
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < own.lengths.size(); ++i) {
    if (!own.is_packed) begin = static_cast<std::int64_t>(i) * rows.length;
    rows.sequences.push_back({begin, own.lengths[i]});
    begin += own.lengths[i];
  }
  if (own.is_packed) rows = {1, rows.tokens(), rows.sequences, true};
  return rows;
}

class LengthsRun {
 public:
  LengthsRun(const Case& own, Device& device, AttentionKind attention, LossKind loss,
             const ActivationCheckpointing& checkpointing = {})
      : fixture_(test::read_family_fixture(own.name)),
        engine(test::model_of(fixture_, 0), DType::fp32, device),
        device_(device),
        model_(family_of(test::model_of(fixture_, 0))
                   .make_model(test::model_of(fixture_, 0), engine.parameters(),
                               {.size = fixture_.micro_batch,
                                .sequence_length = fixture_.sequence_length,
                                .attention = attention,
                                .loss = {loss},
                                .checkpointing = checkpointing},
                               device)),
        tokens_(device, MemoryCategory::temporaries, fixture_.tokens.size() * 8) {
    model_->set_lengths(rows_of(own, fixture_));
    if (!device.computes()) return;
    std::memcpy(tokens_.data(), fixture_.tokens.data(), tokens_.size());
    for (std::size_t i = 0; i < fixture_.parameters.size(); ++i) {
      engine.write_parameter(i, fixture_.parameters[i].values);
    }
  }

  double forward() {
    const Scalar loss(device_);
    loss.set_zero();
    model_->forward(engine, tokens_.tensor(DType::int64), 0, loss.tensor());
    return test::read(device_, loss);
  }
  void backward() { model_->backward(engine, 1); }
  void set_lengths(const RowLengths& rows) { model_->set_lengths(rows); }

 private:
  test::FamilyFixture fixture_;

 public:
  test::RecordingEngine engine;

 private:
  Device& device_;
  std::unique_ptr<Model> model_;
  Buffer tokens_;
};

// value_of() of scripts/make_family_fixture.py.
double probe(std::size_t element) {
  constexpr std::uint32_t kProbe = 2000;
  auto x = static_cast<std::uint32_t>((kProbe + 1) * 0x9E3779B1U + element * 0x85EBCA77U);
  x ^= x >> 15U;
  x *= 0x2C1B3C6DU;
  x ^= x >> 12U;
  return (static_cast<double>(x & 0xFFFFU) / 65536 - 0.5) / 2;
}

/// A list is the gradient, a number its product with the probe.
void expect_gradient(const std::vector<float>& actual, const json::value& expected,
                     const std::string& where) {
  if (!expected.is_array()) {
    double product = 0;
    double size = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      product += static_cast<double>(actual[i]) * probe(i);
      size += std::abs(static_cast<double>(actual[i]));
    }
    EXPECT_NEAR(product, expected.as_double(), 1e-5 * size + 1e-7) << where;
    return;
  }
  const auto values = json::value_to<std::vector<double>>(expected);
  ASSERT_EQ(actual.size(), values.size()) << where;
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(actual[i]), values[i], 2e-5 * largest + 1e-8) << where;
  }
}

void expect_huggingfaces_numbers(const Case& own, AttentionKind attention, LossKind loss,
                                 const ActivationCheckpointing& checkpointing = {}) {
  cpu::CpuDevice device(Bytes{1} << 30U);
  LengthsRun run(own, device, attention, loss, checkpointing);
  const std::string where =
      concat(own.name, own.is_packed ? " packed, " : " padded, ", name_of(attention), ", ",
             name_of(loss), ", checkpointing ", describe(checkpointing));

  EXPECT_NEAR(run.forward(), own.loss, 1e-6 * own.loss) << where;
  run.backward();

  for (std::size_t i = 0; i < own.gradients.size(); ++i) {
    expect_gradient(run.engine.gradient(i), own.gradients[i], concat(where, ", tensor ", i));
  }
}

TEST(Lengths, LossAndEveryGradientAreHuggingFaces) {
  for (const Case& own : cases()) {
    if (own.is_packed) {
      expect_huggingfaces_numbers(own, AttentionKind::flash, LossKind::plain);
    } else {
      expect_huggingfaces_numbers(own, AttentionKind::sdpa, LossKind::plain);
      expect_huggingfaces_numbers(own, AttentionKind::eager, LossKind::plain);
    }
  }
}

TEST(Lengths, EveryLossLeavesPaddingAndBordersOut) {
  for (const Case& own : cases()) {
    if (own.name != "llama") continue;
    for (const LossKind loss : {LossKind::chunked, LossKind::tiled, LossKind::fused}) {
      expect_huggingfaces_numbers(own, own.is_packed ? AttentionKind::flash : AttentionKind::sdpa,
                                  loss);
    }
  }
}

TEST(Lengths, LayersRunAgainWithTheLengthsOfTheirForward) {
  using Unit = ActivationCheckpointing::Unit;
  for (const Case& own : cases()) {
    for (const ActivationCheckpointing& checkpointing :
         {ActivationCheckpointing{Unit::layer},
          ActivationCheckpointing{.unit = Unit::group, .count = 2, .reentrant = true}}) {
      for (const AttentionKind attention : {AttentionKind::sdpa, AttentionKind::eager}) {
        expect_huggingfaces_numbers(own, own.is_packed ? AttentionKind::flash : attention,
                                    LossKind::plain, checkpointing);
      }
    }
  }
}

TEST(Lengths, AModelGoesBackToRowsWithoutPadding) {
  const Case own = cases().at(1);
  ASSERT_TRUE(own.is_packed);
  cpu::CpuDevice device(Bytes{1} << 30U);
  LengthsRun run(own, device, AttentionKind::flash, LossKind::plain);
  const auto fixture = test::read_family_fixture(own.name);
  run.forward();
  run.backward();

  run.set_lengths({fixture.micro_batch, fixture.sequence_length});

  EXPECT_NEAR(run.forward(), fixture.loss, 1e-6 * fixture.loss);
}

// As LayersKeepWhatAutogradSaves of families/fixture_test, where the CPU's kernel has no packs.
TEST(Lengths, LayersKeepTheMaskOfPaddingAsAutogradDoes) {
  for (const Case& own : cases()) {
    for (const auto& [name, layers] : own.saved) {
      const auto fixture = test::read_family_fixture(own.name);
      const std::int64_t length = fixture.sequence_length;
      DryDevice device(Bytes{1} << 30U);
      const AttentionKind attention = attention_kind_from(std::string_view(name)).value();
      LengthsRun run(own, device, attention, LossKind::plain);
      std::vector<Bytes> at_ticks;
      device.on_tick(
          [&] { at_ticks.push_back(device.memory().use().at(MemoryCategory::activations)); });

      run.forward();

      const std::int64_t missing = ((length + 7) / 8 * 8 - length) * length * 4;
      const auto packs = static_cast<Bytes>(fixture.micro_batch * missing);
      const auto saved = layers.as_array().back().to_number<Bytes>();
      EXPECT_EQ(at_ticks.at(1) - at_ticks.at(0),
                saved + (attention == AttentionKind::sdpa ? packs : 0))
          << own.name << " " << std::string_view(name);
    }
  }
}

}  // namespace
}  // namespace dstune::lengths_test
