// The classes of models that are trained to classify sequences with a decoder.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/json_fwd.hpp"
#include "core/input/key_rules.hpp"
#include "core/model/model_spec.hpp"

namespace dstune {

/// Keys of every config.json, which have an effect on classifiers only.
inline constexpr KeyRule kLabelRules[] = {
    rules::integer("num_labels", 1, 1'000'000),
    rules::object("id2label").or_null(),
    rules::choice("problem_type",
                  "single_label_classification|multi_label_classification|regression")
        .or_null(),
};

/// `own` of a ModelSpec, a text, with what `config` says of labels where that is not usual.
/// @param config  as check_section() has left it
std::string with_labels(const std::string& own, const json::object& config);

/// 2 unless the model's file says otherwise.
std::int64_t label_count(const ModelSpec& spec);

/// Rows of the last layer's weight: a classifier's, for its task, or the vocabulary.
std::int64_t head_rows(const ModelSpec& spec);

/// Why such a model cannot be trained to classify sequences; empty if it can.
std::string fault_of_labels(const ModelSpec& spec);

}  // namespace dstune
