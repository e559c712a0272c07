// In stage 3 the gathered weights of experts stay until backward has used them.
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/json_parser.hpp"
#include "core/base/text.hpp"
#include "core/config/model/read_model_spec.hpp"
#include "core/train/run_experiment.hpp"

namespace dstune::kept_experts_test {
namespace {

constexpr std::int64_t kHidden = 64;
constexpr std::int64_t kInner = 128;
constexpr std::int64_t kLayers = 4;
constexpr std::int64_t kExperts = 8;
constexpr int kRanks = 4;

ModelSpec mixtral() {
  const json::object config =
      parse_json(concat(R"({"model_type": "mixtral", "vocab_size": 128, "hidden_size": )", kHidden,
                        R"(, "intermediate_size": )", kInner, R"(, "num_hidden_layers": )", kLayers,
                        R"(, "num_attention_heads": 4, "num_key_value_heads": 4,
                            "num_local_experts": )",
                        kExperts, R"(, "max_position_embeddings": 32})"))
          .as_object();
  Problems problems("model");
  std::vector<std::string> warnings;
  auto spec = read_model_object(config, "model", "", problems, warnings);
  problems.throw_if_any();
  return *spec;
}

/// The largest use of parameters in a step that keeps nothing gathered by itself.
Bytes peak_of_parameters(bool checkpointing) {
  Experiment experiment;
  experiment.name = "experts";
  experiment.ranks = kRanks;
  experiment.ds_config = {{"train_batch_size", kRanks},
                          {"train_micro_batch_size_per_gpu", 1},
                          {"gradient_accumulation_steps", 1},
                          {"bf16", {{"enabled", true}}},
                          {"zero_optimization",
                           {{"stage", 3},
                            {"stage3_max_live_parameters", 0},
                            {"stage3_max_reuse_distance", 0},
                            {"stage3_prefetch_bucket_size", 0},
                            {"stage3_param_persistence_threshold", 0}}},
                          {"dstune", {{"activation_checkpointing", checkpointing}}}};
  experiment.settings.model = mixtral();
  experiment.settings.sequence_length = 8;
  experiment.settings.memory_limit = Bytes{1} << 30U;
  const Outcome outcome = dry_run(experiment, 0).outcome;
  const auto* const measured = std::get_if<Measured>(&outcome);
  return measured == nullptr ? 0 : measured->peak_memory.categories.at(MemoryCategory::parameters);
}

// torch._grouped_mm saves weight.transpose(-2, -1), a view, which DeepSpeed's release does not
// empty (docs/deepspeed-versions.md).
TEST(KeptExperts, AreAllGatheredAtTheEndOfForward) {
  constexpr Bytes kOfALayer = Bytes{kExperts * 3 * kHidden * kInner} * 2;
  constexpr Bytes kOfAll = kLayers * kOfALayer;

  EXPECT_GT(peak_of_parameters(false), kOfAll + kOfAll / kRanks);
  // A checkpoint's first forward saves nothing, and one layer's second forward comes at a time.
  EXPECT_LT(peak_of_parameters(true), 2 * kOfALayer + kOfAll / kRanks);
}

}  // namespace
}  // namespace dstune::kept_experts_test
