// The keys that the config.json files of BERT and its kin have in common.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/json.hpp"
#include "core/input/key_rules.hpp"
#include "core/input/problems.hpp"
#include "core/input/section_reader.hpp"
#include "core/model/bert/bert.hpp"
#include "core/model/config_keys.hpp"
#include "core/model/model_spec.hpp"

namespace dstune::bert {

inline constexpr KeyRule kOfAll[] = {
    rules::integer("vocab_size", 2, kMostTokens),
    rules::integer("max_position_embeddings", 2, kMostTokens),
    rules::integer("pad_token_id", 0, kMostTokens).or_null(),
    rules::at_least("initializer_range", 0),
    rules::integer("num_labels", 2, kWidest).because("; a single label is a regression"),
    rules::object("id2label").or_null(),
    rules::choice("problem_type", "single_label_classification").or_null(),
    rules::only("tie_word_embeddings", true),
};

/// Reads the keys of kOfAll; the members that are there are the defaults.
void read_common(const json::object& config, const SectionReader& reader, ModelSpec& spec,
                 Settings& settings);

/// Reports which of the values that were read contradict each other.
/// @param heads  the key of spec.num_heads
/// @param size   the key of spec.hidden_size
void check_common(const json::object& config, const ModelSpec& spec, const Settings& settings,
                  std::string_view heads, std::string_view size, std::string_view pointer,
                  Problems& problems);

/// read() of BERT and RoBERTa, and that of DistilBERT.
std::optional<ModelSpec> read_bert(Variant kin, const json::object& config,
                                   std::string_view pointer, Problems& problems,
                                   std::vector<std::string>& warnings);
std::optional<ModelSpec> read_distilbert(const json::object& config, std::string_view pointer,
                                         Problems& problems, std::vector<std::string>& warnings);

}  // namespace dstune::bert
