// The task that the model is trained for.
#pragma once

#include <string_view>

#include "core/input/problems.hpp"
#include "core/input/section_reader.hpp"
#include "core/model/model_spec.hpp"

namespace dstune {

/// The names of all tasks, as a KeyRule takes them.
inline constexpr std::string_view kTaskChoices =
    "causal_lm|masked_lm|sequence_classification|seq2seq_lm";

/// Reads "task" of the section, if it has one, into `model`; a problem at `pointer` if the model's
/// family does not have it.
void read_task(const SectionReader& reader, std::string_view pointer, ModelSpec& model,
               Problems& problems);

}  // namespace dstune
