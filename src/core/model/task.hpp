// The task that a model is trained for.
#pragma once

#include <string_view>

namespace dstune {

/// The next token of each (AutoModelForCausalLM), the tokens that were masked
/// (AutoModelForMaskedLM), the class of each sequence (AutoModelForSequenceClassification), or one
/// sequence from another (AutoModelForSeq2SeqLM).
enum class Task { causal_lm, masked_lm, sequence_classification, seq2seq_lm };

/// "causal_lm", ...
std::string_view name_of(Task task);
/// Inverse of name_of. @throws std::invalid_argument  if there is none of that name
Task task_from(std::string_view name);

}  // namespace dstune
