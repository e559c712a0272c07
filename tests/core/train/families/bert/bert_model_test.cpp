// What the fixtures of BERT and its kin do not show: 16 bit, dropout, memory beside the layers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/dry/dry_device.hpp"
#include "core/model/deberta/deberta.hpp"
#include "core/train/families/families.hpp"
#include "core/train/model.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "tests/support/family_fixture.hpp"
#include "tests/support/numbers.hpp"
#include "tests/support/recording_engine.hpp"
#include "tests/support/spying_device.hpp"

namespace dstune::bert_model_test {
namespace {

using test::FamilyFixture;
using test::RecordingEngine;

constexpr Bytes kEnough = Bytes{1} << 40U;

// One micro-batch; `spec` is the fixture's but for its dropout.
class BertRun {
 public:
  BertRun(const FamilyFixture& fixture, const ModelSpec& spec, DType dtype, Device& device)
      : engine(spec, dtype, device),
        fixture_(fixture),
        device_(device),
        model_(family_of(spec).make_model(spec, engine.parameters(),
                                          {fixture.micro_batch, fixture.sequence_length, dtype},
                                          device)),
        tokens_(device, MemoryCategory::temporaries, fixture.tokens.size() * 8) {
    if (!device.computes()) return;
    for (std::size_t i = 0; i < fixture.parameters.size(); ++i) {
      engine.write_parameter(i, fixture.parameters[i].values);
    }
  }

  double forward(std::uint64_t seed = 0) {
    if (device_.computes()) {
      std::memcpy(tokens_.data(), fixture_.tokens.data(), tokens_.size());
    }
    return forward_again(seed);
  }
  /// With the tokens as they are.
  double forward_again(std::uint64_t seed) {
    const Scalar loss(device_);
    loss.set_zero();
    model_->forward(engine, tokens_.tensor(DType::int64), seed, loss.tensor());
    return device_.computes() ? test::read(device_, loss) : 0;
  }
  void backward() { model_->backward(engine, 1); }
  std::span<std::int64_t> tokens() {
    return {static_cast<std::int64_t*>(tokens_.data()), fixture_.tokens.size()};
  }
  Bytes activations() const { return device_.memory().use().at(MemoryCategory::activations); }

  RecordingEngine engine;

 private:
  const FamilyFixture& fixture_;
  Device& device_;
  std::unique_ptr<Model> model_;
  Buffer tokens_;
};

double norm_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

std::vector<float> difference(std::vector<float> a, const std::vector<float>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return a;
}

class BertFixtures : public testing::TestWithParam<std::string> {
 protected:
  BertFixtures() : fixture_(test::read_family_fixture(GetParam())) {}

  FamilyFixture fixture_;
};

INSTANTIATE_TEST_SUITE_P(Kin, BertFixtures,
                         testing::Values("bert_masked_lm", "bert_classification",
                                         "roberta_masked_lm", "roberta_classification",
                                         "distilbert_masked_lm", "distilbert_classification",
                                         "deberta_masked_lm", "deberta_convolution",
                                         "deberta_classification", "deberta_plain"),
                         [](const auto& param_info) { return param_info.param; });

// Gradients are compared as vectors, as GPT-2's; a bias of keys has none.
TEST_P(BertFixtures, LossAndGradientsIn16BitAreNearThoseOfFp32) {
  for (const DType dtype : {DType::bf16, DType::fp16}) {
    cpu::CpuDevice device(kEnough);
    BertRun run(fixture_, test::model_of(fixture_), dtype, device);
    const double unit = dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;

    const double loss = run.forward();
    run.backward();

    EXPECT_NEAR(loss, fixture_.loss, 4 * unit * fixture_.loss);
    for (std::size_t i = 0; i < fixture_.parameters.size(); ++i) {
      const auto& expected = fixture_.parameters[i].gradient;
      const double error = norm_of(difference(run.engine.gradient(i), expected));
      EXPECT_LE(error, 24 * unit * norm_of(expected) + 0.05 * unit) << fixture_.parameters[i].name;
    }
  }
}

// A central difference along the gradient's own direction, every place dropping out.
TEST_P(BertFixtures, FiniteDifferencesAgreeWithDropout) {
  constexpr std::uint64_t kSeed = 7;
  ModelSpec spec = test::model_of(fixture_);
  spec.embedding_dropout = spec.attention_dropout = spec.residual_dropout =
      spec.classifier_dropout = 0.25;
  cpu::CpuDevice device(kEnough);
  BertRun run(fixture_, spec, DType::fp32, device);
  run.forward(kSeed);
  run.backward();

  for (std::size_t i = 0; i < fixture_.parameters.size(); ++i) {
    const auto& parameter = fixture_.parameters[i];
    const std::vector<float> gradient = run.engine.gradient(i);
    const double norm = norm_of(gradient);
    const double step = 1e-3 / std::max(norm, 0.1);
    const auto loss_at = [&](double distance) {
      auto moved = parameter.values;
      for (std::size_t k = 0; k < moved.size() && norm > 0; ++k) {
        moved[k] = static_cast<float>(moved[k] + distance * gradient[k] / norm);
      }
      BertRun other(fixture_, spec, DType::fp32, device);
      other.engine.write_parameter(i, moved);
      return other.forward(kSeed);
    };
    const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
    EXPECT_NEAR(slope, norm, 3e-3 * norm + 4e-5) << parameter.name;
  }
}

/// Numbers of positions and types, of which PyTorch has views (DeBERTa's types are tensors there).
Bytes bytes_of_numbers(const ModelSpec& spec, Bytes batch, Bytes length) {
  if (spec.family == "bert") return 8 * batch * length;
  if (spec.family == "distilbert") return 8 * length;
  const bool is_deberta = spec.family == "deberta-v2";
  return is_deberta && deberta::settings_of(spec).position_biased_input ? 8 * length : 0;
}

/// Beside that, of DeBERTa: a copy of the table of relative positions that is not normed, and the
/// convolution's mask, which is the embeddings' in PyTorch. Not here: the logits and rows of labels
/// that are there.
std::int64_t more_of_deberta(const ModelSpec& spec, std::int64_t batch, std::int64_t length) {
  if (spec.family != "deberta-v2") return 0;
  const deberta::DebertaSettings settings = deberta::settings_of(spec);
  std::int64_t bytes = 0;
  if (settings.relative_attention && !settings.norm_rel_ebd) {
    bytes += 4 * 2 * settings.span() * spec.hidden_size;
  }
  if (settings.conv_kernel_size > 0) bytes += 4 * batch * length;
  if (spec.task == Task::sequence_classification && settings.loss_in_fp32) {
    bytes -= (8 + 8 + 4 * settings.common.num_labels) * batch;
  }
  return bytes;
}

// Beside the tensors that autograd saves: the batch's labels (the fixture counts no inputs), and
// what a view of PyTorch's is a tensor for here: numbers of positions and types, and DeBERTa's
// first tokens.
TEST_P(BertFixtures, ForwardKeepsWhatAutogradSaves) {
  DryDevice device(kEnough);
  const ModelSpec spec = test::model_of(fixture_);
  BertRun run(fixture_, spec, DType::fp32, device);
  const auto batch = static_cast<Bytes>(fixture_.micro_batch);
  const auto length = static_cast<Bytes>(fixture_.sequence_length);

  run.forward();

  const bool classifies = spec.task == Task::sequence_classification;
  const Bytes labels = 8 * batch * (classifies ? 1 : length);
  const Bytes expected =
      fixture_.saved.front().total + labels + bytes_of_numbers(spec, batch, length);
  EXPECT_EQ(static_cast<std::int64_t>(run.activations()),
            static_cast<std::int64_t>(expected) +
                more_of_deberta(spec, fixture_.micro_batch, fixture_.sequence_length));
}

TEST_P(BertFixtures, NoTokenIsPadding) {
  const ModelSpec spec = test::model_of(fixture_);
  const std::int64_t padding = fixture_.config.at("pad_token_id").as_int64();
  cpu::CpuDevice device(kEnough);
  BertRun run(fixture_, spec, DType::fp32, device);
  std::fill(run.tokens().begin(), run.tokens().end(), padding);

  run.forward_again(0);

  EXPECT_EQ(std::count(run.tokens().begin(), run.tokens().end(), padding), 0);
}

// Autograd never comes back to what has token numbers for its input.
TEST_P(BertFixtures, BackwardEndsEveryModuleThatAGradientComesBackTo) {
  DryDevice device(kEnough);
  BertRun run(fixture_, test::model_of(fixture_), DType::fp32, device);
  run.forward();
  run.engine.events.clear();

  run.backward();

  std::map<std::string, int> open;
  for (const auto& event : run.engine.events) {
    const std::string name = event.substr(event.find(' ') + 1);
    if (event.rfind("fetch ", 0) == 0) ++open[name];
    if (event.rfind("release ", 0) == 0) --open[name];
  }
  for (const auto& module : run.engine.parameters().modules) {
    EXPECT_EQ(open.count(module.name), 1U) << module.name;
    EXPECT_EQ(open[module.name], module.input_has_gradient ? 0 : 1) << module.name;
  }
}

// Rows of first tokens are a matrix: DeepSpeed's function adds their bias in the product, as
// torch's does; that of a batch of sequences it adds behind it.
TEST(BertClassifier, BiasesOfFirstTokensAreAddedByTheirProducts) {
  const FamilyFixture fixture = test::read_family_fixture("bert_classification");
  const ModelSpec spec = test::model_of(fixture);
  DryDevice dry(kEnough);
  int added_behind = 0;
  test::SpyingDevice device(dry, [&](const Work& work) {
    if (work.operation == "add_bias") ++added_behind;
  });
  RecordingEngine engine(spec, DType::fp32, device);
  const auto model = family_of(spec).make_model(
      spec, engine.parameters(), {3, 5, DType::fp32, LinearLayers::memory_efficient}, device);
  const Buffer tokens(device, MemoryCategory::temporaries, fixture.tokens.size() * 8);
  const Scalar loss(device);

  model->forward(engine, tokens.tensor(DType::int64), 0, loss.tensor());

  EXPECT_EQ(added_behind, 6 * spec.num_layers);
}

/// What one layer more keeps per token, of a micro-batch of 2 * 64 tokens.
Bytes per_layer(const char* family, DType dtype, double dropout) {
  const auto saved = [&](std::int64_t layers) {
    ModelSpec spec = find_family(family)->presets().front();
    spec.family = family;
    spec.task = Task::masked_lm;
    spec.num_layers = layers;
    spec.embedding_dropout = spec.attention_dropout = spec.residual_dropout = dropout;
    DryDevice device(kEnough);
    RecordingEngine engine(spec, dtype, device);
    const auto model =
        family_of(spec).make_model(spec, engine.parameters(), {2, 64, dtype}, device);
    const Buffer tokens(device, MemoryCategory::temporaries, Bytes{2} * 64 * 8);
    const Scalar loss(device);
    model->forward(engine, tokens.tensor(DType::int64), 0, loss.tensor());
    return device.memory().use().at(MemoryCategory::activations);
  };
  return (saved(2) - saved(1)) / 128;
}

// docs/deepspeed-step.md, "What a block keeps": 34 h + 4 A and 66 h + 4 A, and 16 for the
// statistics of two norms. DistilBERT drops nothing out behind attention.
TEST(BertPerLayer, EqualsTheTableOfPyTorch) {
  constexpr Bytes kRest = 4 * 12 + 16;

  EXPECT_EQ(per_layer("bert", DType::bf16, 0.1), 34 * 768 + kRest);
  EXPECT_EQ(per_layer("roberta", DType::fp32, 0.1), 66 * 768 + kRest);
  EXPECT_EQ(per_layer("bert", DType::fp16, 0), 32 * 768 + kRest);
  EXPECT_EQ(per_layer("distilbert", DType::bf16, 0.1), 33 * 768 + kRest);
}

// Written out for bert-base: per layer 12 h^2, the head h^2 + V h; a classifier once per sequence.
TEST(BertTrainingFlops, CountTheHeadOfTheTask) {
  ModelSpec spec = find_family("bert")->presets().front();
  spec.family = "bert";
  spec.task = Task::masked_lm;
  constexpr double kLayers = 12 * 12.0 * 768 * 768;
  constexpr double kAttention = 12 * 12.0 * 768 * 128;
  constexpr double kDense = 768.0 * 768;

  EXPECT_DOUBLE_EQ(training_flops(spec, 256, 128),
                   256 * (6 * (kLayers + kDense + 30522.0 * 768) + kAttention));
  spec.task = Task::sequence_classification;
  EXPECT_DOUBLE_EQ(training_flops(spec, 256, 128),
                   256 * (6 * kLayers + kAttention) + 2 * 6 * (kDense + 2 * 768.0));
}

// Written out for deberta-v2-xlarge: BERT's, a convolution beside one layer, and for c2p and p2c a
// product with the 512 rows of the table each.
TEST(DebertaTrainingFlops, CountPositionsAndTheConvolution) {
  ModelSpec spec;
  for (const ModelSpec& preset : find_family("deberta-v2")->presets()) {
    if (preset.name == "deberta-v2-xlarge") spec = preset;
  }
  spec.family = "deberta-v2";
  spec.task = Task::masked_lm;
  constexpr double kSquare = 1536.0 * 1536;
  constexpr double kProducts = 24 * 12 * kSquare + 3 * kSquare + kSquare + 128100.0 * 1536;
  constexpr double kScores = 24 * 1536.0 * (12 * 128 + 2 * 6 * 512);

  EXPECT_DOUBLE_EQ(training_flops(spec, 256, 128), 256 * (6 * kProducts + kScores));
}

}  // namespace
}  // namespace dstune::bert_model_test
