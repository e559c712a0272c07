#include "core/model/config_keys.hpp"

#include <algorithm>
#include <utility>

#include "core/base/json.hpp"
#include "core/base/text.hpp"

namespace dstune {

namespace {

constexpr std::string_view kOfPretrainedConfig[] = {
    "_attn_implementation",
    "_name_or_path",
    "architectures",
    "attn_implementation",
    "auto_map",
    "bos_token_id",
    "chunk_size_feed_forward",
    "decoder_start_token_id",
    "dtype",
    "eos_token_id",
    "finetuning_task",
    "gradient_checkpointing",
    "id2label",
    "is_decoder",
    "is_encoder_decoder",
    "label2id",
    "model_type",
    "output_attentions",
    "output_hidden_states",
    "output_past",
    "pad_token_id",
    "prefix",
    "problem_type",
    "pruned_heads",
    "return_dict",
    "sep_token_id",
    "task_specific_params",
    "tokenizer_class",
    "torch_dtype",
    "torchscript",
    "transformers_version",
    "use_bfloat16",
    "use_cache",
};

template <class List, class Key>
bool holds(const List& list, const Key& key) {
  return std::find(std::begin(list), std::end(list), key) != std::end(list);
}

}  // namespace

void warn_of_unknown_keys(const json::object& config, const Section& section,
                          std::span<const std::string_view> no_op_keys, std::string_view family,
                          std::string_view pointer, std::vector<std::string>& warnings) {
  const auto read = known_keys(section);
  Problems unknown("model");
  for (const auto& member : config) {
    const std::string_view key(member.key());
    if (holds(read, key) || holds(no_op_keys, key) || holds(kOfPretrainedConfig, key)) continue;
    unknown.warn(child(pointer, key),
                 concat("is not a key of ", family, " and has no effect", suggestion(key, read)));
  }
  for (auto& warning : unknown.warnings()) warnings.push_back(std::move(warning));
}

}  // namespace dstune
