#include "core/train/nn/linear.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/text.hpp"
#include "core/device/dry/dry_device.hpp"
#include "core/device/scalar.hpp"
#include "core/train/families/families.hpp"
#include "tests/support/recording_engine.hpp"
#include "tests/support/spying_device.hpp"

namespace dstune::linear_test {
namespace {

using test::RecordingEngine;

/// What an OPT of one layer, all of nn.Linear, does in a micro-step.
struct Record {
  std::vector<std::string> gradients;  ///< tensors, in the order in which the hooks get theirs
  std::map<std::string, int> counts;   ///< of operations
};

Record record_of(LinearLayers linear) {
  ModelSpec model;
  for (const ModelSpec& preset : find_family("opt")->presets()) model = preset;
  model.family = "opt";
  model.vocab_size = 40;
  model.max_positions = 4;
  model.hidden_size = 6;
  model.inner_size = 8;
  model.num_layers = 1;
  model.num_heads = 2;
  model.own = R"({"activation_function": "relu", "word_embed_proj_dim": 6,
                  "do_layer_norm_before": true, "_remove_final_layer_norm": false,
                  "enable_bias": true, "layer_norm_elementwise_affine": true,
                  "tie_word_embeddings": true})";
  Record record;
  DryDevice dry(Bytes{1} << 30U);
  test::SpyingDevice device(
      dry, [&](const Work& work) { ++record.counts[std::string(work.operation)]; });
  RecordingEngine engine(model, DType::bf16, device);
  const auto opt =
      family_of(model).make_model(model, engine.parameters(), {1, 4, DType::bf16, linear}, device);
  const Buffer tokens(device, MemoryCategory::temporaries, Bytes{4} * 8);
  const Scalar loss(device);
  opt->forward(engine, tokens.tensor(DType::int64), 0, loss.tensor());
  opt->backward(engine, 1);
  for (const auto& event : engine.events) {
    if (event.rfind("gradient ", 0) == 0) record.gradients.push_back(event.substr(9));
  }
  return record;
}

std::ptrdiff_t place_of(const Record& record, const std::string& tensor) {
  const auto found = std::find(record.gradients.begin(), record.gradients.end(),
                               "model.decoder.layers.0." + tensor);
  EXPECT_NE(found, record.gradients.end()) << tensor;
  return found - record.gradients.begin();
}

// addmm has the bias's gradient at once, the weight's goes through the transposition's node. A
// torch.autograd.Function hands on what it returns in the order of its arguments.
TEST(Linear, GradientsOfDeepSpeedsFunctionArriveTheWeightFirst) {
  const Record torchs = record_of(LinearLayers::torch);
  const Record deepspeeds = record_of(LinearLayers::memory_efficient);
  for (const char* name : {"self_attn.q_proj", "self_attn.out_proj", "fc1", "fc2"}) {
    const std::string weight = concat(name, ".weight");
    const std::string bias = concat(name, ".bias");
    EXPECT_EQ(place_of(torchs, weight), place_of(torchs, bias) + 1) << name;
    EXPECT_EQ(place_of(deepspeeds, weight), place_of(deepspeeds, bias) - 1) << name;
  }
}

// fc1 and fc2 of OPT get their input as a matrix: there DeepSpeed's function is addmm too.
TEST(Linear, DeepSpeedsFunctionAddsTheBiasApartFromTheProductOfSequences) {
  EXPECT_EQ(record_of(LinearLayers::torch).counts["add_bias"], 0);
  EXPECT_EQ(record_of(LinearLayers::memory_efficient).counts["add_bias"], 4);
}

}  // namespace
}  // namespace dstune::linear_test
