#include "tests/support/knob_grid.hpp"

#include "core/base/json_parser.hpp"

namespace dstune::test {

namespace {

constexpr std::int64_t kBatch = 36;  // sequences per optimizer step: every split below divides it

constexpr const char* kStage3Knobs[] = {
    R"({"stage3_param_persistence_threshold": 0})",
    R"({"stage3_param_persistence_threshold": 0, "stage3_max_live_parameters": 0,
        "stage3_max_reuse_distance": 0})",
    R"({"stage3_param_persistence_threshold": 48, "stage3_prefetch_bucket_size": 0,
        "stage3_max_reuse_distance": 2000})",
    R"({"stage3_param_persistence_threshold": 12, "stage3_prefetch_bucket_size": 500,
        "stage3_max_live_parameters": 1500, "stage3_max_reuse_distance": 0})",
    R"({"stage3_param_persistence_threshold": 40, "stage3_prefetch_bucket_size": 700,
        "stage3_max_live_parameters": 2500, "stage3_max_reuse_distance": 1500,
        "overlap_comm": false})",
    R"({"stage3_param_persistence_threshold": 12, "stage3_model_persistence_threshold": 12})",
    R"({"stage3_param_persistence_threshold": 40, "stage3_allgather_sequential": true,
        "stage3_max_live_parameters": 1500, "stage3_max_reuse_distance": 500})",
    R"({"stage3_param_persistence_threshold": 12, "stage3_use_all_reduce_for_fetch_params": true,
        "stage3_prefetch_bucket_size": 700, "stage3_max_live_parameters": 1500,
        "stage3_max_reuse_distance": 500})",
    R"({"stage3_param_persistence_threshold": 0, "contiguous_gradients": false})",
    R"({"contiguous_gradients": false, "reduce_scatter": false, "reduce_bucket_size": 700})",
    R"({"leaf_module": {"classes": ["GPT2Block"]}, "stage3_max_reuse_distance": 0,
        "stage3_param_persistence_threshold": 0, "stage3_prefetch_bucket_size": 700})",
    R"({"leaf_module": {"name_suffixes": ["attn", "mlp", "ln_f"]}, "stage3_max_reuse_distance": 0,
        "stage3_param_persistence_threshold": 12, "reduce_bucket_size": 900})"};

}  // namespace

std::vector<Split> all_splits() {
  std::vector<Split> splits;
  for (const int stage : {0, 1, 2, 3}) {
    for (const int ranks : {1, 2, 3, 4}) {
      for (const std::int64_t accumulation : {1, 3}) splits.push_back({stage, ranks, accumulation});
    }
  }
  return splits;
}

std::vector<Split> sharded_splits() {
  std::vector<Split> splits;
  for (const Split& split : all_splits()) {
    if (split.stage == 3) splits.push_back(split);
  }
  return splits;
}

std::string name_of_split(const testing::TestParamInfo<Split>& split) {
  return "Stage" + std::to_string(split.param.stage) + "Ranks" + std::to_string(split.param.ranks) +
         "Accumulation" + std::to_string(split.param.accumulation);
}

json::object config_of(const Split& split, std::string_view zero_keys) {
  json::object config = parse_json(R"({
    "gradient_clipping": 0.3,
    "optimizer": {"type": "AdamW",
                  "params": {"lr": 0.01, "betas": [0.9, 0.95], "eps": 1e-3, "weight_decay": 0.1}},
    "zero_optimization": {"reduce_bucket_size": 300, "sub_group_size": 500}
  })")
                            .as_object();
  config["train_batch_size"] = kBatch;
  config["train_micro_batch_size_per_gpu"] = kBatch / (split.ranks * split.accumulation);
  config["gradient_accumulation_steps"] = split.accumulation;
  json::object& zero = config["zero_optimization"].as_object();
  zero["stage"] = split.stage;
  const json::value others = parse_json(zero_keys);
  for (const auto& [key, value] : others.as_object()) zero[key] = value;
  return config;
}

std::vector<const char*> knobs_of(const Split& split) {
  std::vector<const char*> knobs = {
      R"({"round_robin_gradients": true, "overlap_comm": true, "reduce_bucket_size": 5000})"};
  if (split.stage == 0) return knobs;
  knobs.insert(knobs.end(), {R"({"overlap_comm": true, "reduce_scatter": false})",
                             R"({"reduce_bucket_size": 1, "sub_group_size": 1})"});
  knobs.emplace_back(R"({"offload_optimizer": {"device": "cpu"}})");
  if (split.stage == 3) {
    knobs.emplace_back(R"({"offload_optimizer": {"device": "cpu", "pin_memory": false},
                           "overlap_comm": false, "sub_group_size": 1})");
    knobs.emplace_back(R"({"offload_optimizer": {"device": "cpu", "ratio": 0.5}})");
    knobs.emplace_back(R"({"offload_param": {"device": "cpu"}, "sub_group_size": 200,
                           "stage3_param_persistence_threshold": 12,
                           "stage3_prefetch_bucket_size": 500, "stage3_max_reuse_distance": 0})");
    knobs.emplace_back(R"({"offload_param": {"device": "cpu", "pin_memory": false},
                           "offload_optimizer": {"device": "cpu"},
                           "stage3_param_persistence_threshold": 12})");
    knobs.emplace_back(R"({"offload_param": {"device": "cpu"}, "sub_group_size": 200,
                           "offload_optimizer": {"device": "cpu", "ratio": 0.5}})");
    knobs.emplace_back(R"({"offload_param": {"device": "cpu"}, "stage3_allgather_sequential": true,
                           "stage3_max_live_parameters": 1500, "stage3_max_reuse_distance": 500})");
    knobs.emplace_back(R"({"offload_param": {"device": "cpu"},
                           "stage3_use_all_reduce_for_fetch_params": true,
                           "stage3_param_persistence_threshold": 0})");
  } else {
    knobs.insert(knobs.end(), {R"({"offload_optimizer": {"device": "nvme", "nvme_path": "/tmp",
                                   "pin_memory": false}, "overlap_comm": true})"});
  }
  if (split.ranks == 1 || split.ranks == 4) return knobs;
  if (split.stage < 3) {
    knobs.insert(knobs.end(),
                 {R"({"contiguous_gradients": false})",
                  R"({"contiguous_gradients": false, "overlap_comm": true})",
                  R"({"use_multi_rank_bucket_allreduce": false, "round_robin_gradients": true})",
                  R"({"use_multi_rank_bucket_allreduce": false, "overlap_comm": true})"});
  }
  const bool overlaps_by_default = split.stage == 3;
  knobs.insert(knobs.end(),
               {overlaps_by_default ? R"({"overlap_comm": false})" : R"({"overlap_comm": true})",
                R"({"reduce_scatter": false})", R"({"round_robin_gradients": true})",
                R"({"reduce_bucket_size": 1, "reduce_scatter": false})",
                R"({"reduce_bucket_size": 5000, "sub_group_size": 5000})"});
  return knobs;
}

std::span<const char* const> stage_3_knobs() { return kStage3Knobs; }

}  // namespace dstune::test
