// What a step launches was loaded when the GPU's memory was measured: CUDA takes memory for a
// kernel at its first launch, and may wait for the whole GPU.
#include <algorithm>
#include <iterator>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include <boost/json/value_to.hpp>
#include <gtest/gtest.h>

#include "core/base/json.hpp"
#include "core/base/json_parser.hpp"
#include "core/input/problems.hpp"
#include "core/train/families/families.hpp"
#include "kernels/cuda/device/memory_probe.hpp"
#include "tests/support/cuda_on_host/control.hpp"
#include "tests/support/training_run.hpp"

namespace dstune::loaded_kernels_test {
namespace {

constexpr Bytes kKernel = Bytes{64} << 10U;

// Sizes divide by a pack, as those of real models do.
constexpr const char* kGpt2 = R"({"model_type": "gpt2", "vocab_size": 96, "n_positions": 16,
  "n_embd": 32, "n_layer": 2, "n_head": 2, "embd_pdrop": 0.1, "attn_pdrop": 0.1,
  "resid_pdrop": 0.1})";
constexpr const char* kLlama = R"({"model_type": "llama", "vocab_size": 96,
  "max_position_embeddings": 16, "hidden_size": 32, "intermediate_size": 64,
  "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1})";

constexpr const char* kOpt = R"({"model_type": "opt", "vocab_size": 96,
  "max_position_embeddings": 16, "hidden_size": 32, "ffn_dim": 64, "num_hidden_layers": 2,
  "num_attention_heads": 2, "word_embed_proj_dim": 32})";

struct Case {
  std::string name;
  const char* model = kGpt2;
  std::string precision = "bf16";
  bool dropout = false;
  AttentionKind attention = AttentionKind::sdpa;
  std::string optimizer = "AdamW";
  int stage = 2;
  std::string zero = "{}";
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

RunSettings settings_of(const Case& one) {
  const json::object config = parse_json(one.model).as_object();
  const std::string type = json::value_to<std::string>(config.at("model_type"));
  Problems problems(one.name);
  std::vector<std::string> warnings;
  RunSettings settings = test::tiny_settings();
  settings.model = find_family(type)->read(config, "", problems, warnings).value();
  settings.model.family = type;
  settings.model.name = one.name;
  if (!one.dropout) {
    settings.model.embedding_dropout = settings.model.attention_dropout =
        settings.model.residual_dropout = 0;
  }
  settings.sequence_length = 16;
  settings.attention = one.attention;
  return settings;
}

StepConfig config_of(const Case& one, int ranks) {
  json::object config = parse_json(R"({"gradient_clipping": 0.3, "gradient_accumulation_steps": 2,
    "train_micro_batch_size_per_gpu": 2,
    "zero_optimization": {"reduce_bucket_size": 5000, "sub_group_size": 5000}})")
                            .as_object();
  config["train_batch_size"] = 4 * ranks;
  config["optimizer"] = {{"type", one.optimizer}, {"params", {{"lr", 0.01}}}};
  json::object& zero = config["zero_optimization"].as_object();
  zero["stage"] = one.stage;
  const json::object others = parse_json(one.zero).as_object();
  for (const auto& [key, value] : others) zero[key] = value;
  if (one.precision != "fp32") config[one.precision] = {{"enabled", true}};
  return make_step_config(config);
}

std::set<std::string> loaded_on(int device) {
  const auto names = cuda_on_host::loaded_kernels(device);
  return {names.begin(), names.end()};
}

/// The kernels that two steps load after the memory was measured.
std::set<std::string> loaded_by_steps(const Case& one, int ranks) {
  cuda_on_host::set_up({.devices = ranks, .bytes = Bytes{4} << 30U, .kernel_bytes = kKernel});
  for (int rank = 0; rank < ranks; ++rank) cuda::probe_memory(rank, ranks > 1);
  const std::set<std::string> before = loaded_on(0);
  test::on_training_ranks(
      config_of(one, ranks), ranks,
      [](test::TrainingRank& own) {
        own.step.run();
        own.step.run();
      },
      settings_of(one));
  const std::set<std::string> after = loaded_on(0);
  std::set<std::string> loaded;
  std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                      std::inserter(loaded, loaded.end()));
  return loaded;
}

class LoadedKernels : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    Steps, LoadedKernels,
    testing::Values(
        Case{.name = "gpt2_bf16"}, Case{.name = "gpt2_fp16", .precision = "fp16"},
        Case{.name = "gpt2_fp32", .precision = "fp32", .stage = 0},
        Case{.name = "gpt2_dropout", .dropout = true},
        Case{.name = "gpt2_eager", .dropout = true, .attention = AttentionKind::eager},
        Case{.name = "gpt2_stage_0", .stage = 0}, Case{.name = "gpt2_stage_1", .stage = 1},
        Case{.name = "gpt2_stage_3", .stage = 3},
        Case{.name = "gpt2_quantized",
             .stage = 3,
             .zero = R"({"zero_quantized_weights": true, "zero_quantized_gradients": true})"},
        Case{.name = "gpt2_lion", .optimizer = "Lion"},
        Case{.name = "gpt2_adagrad", .optimizer = "Adagrad"},
        Case{.name = "gpt2_lamb", .precision = "fp16", .optimizer = "Lamb", .stage = 0},
        Case{.name = "gpt2_lamb_fp32", .precision = "fp32", .optimizer = "Lamb", .stage = 0},
        Case{.name = "gpt2_sgd", .precision = "fp32", .optimizer = "SGD", .stage = 0},
        Case{.name = "llama_bf16", .model = kLlama},
        Case{.name = "llama_fp16", .model = kLlama, .precision = "fp16", .stage = 3},
        Case{.name = "llama_fp32", .model = kLlama, .precision = "fp32", .stage = 1},
        Case{.name = "opt_bf16", .model = kOpt},
        Case{.name = "llama_eager", .model = kLlama, .attention = AttentionKind::eager}),
    [](const auto& param_info) { return param_info.param.name; });

TEST_P(LoadedKernels, OfAStepAreThoseOfTheProbe) {
  for (const int ranks : {1, 2}) {
    SCOPED_TRACE(ranks);

    EXPECT_EQ(loaded_by_steps(GetParam(), ranks), std::set<std::string>{});
  }
}

}  // namespace
}  // namespace dstune::loaded_kernels_test
