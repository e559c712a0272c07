// Which modules of a model get adapters, and which are trained as a whole.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/fine_tuning.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"

namespace dstune {

/// nn.Linear or Conv1D: what can have adapters here, and what "all-linear" means.
bool is_linear(const ModuleSpec& module);

/// The last layer, from hidden states to words; a classifier has none.
std::optional<std::size_t> output_embeddings(const ModelParameters& parameters, Task task);

/// The modules that PEFT's check_target_module_exists() decides on by the names of the model's
/// modules, ascending; also modules that is_linear() denies.
/// @throws std::invalid_argument  if a pattern is no Pattern (core/base/pattern.hpp)
std::vector<std::size_t> find_lora_targets(const LoraSettings& lora,
                                           const ModelParameters& parameters, Task task);

/// modules_to_save, ascending: those whose name ends so (_set_trainable of PEFT); of two one of
/// which is inside the other, the outer one.
std::vector<std::size_t> find_saved_modules(const LoraSettings& lora,
                                            const ModelParameters& parameters);

/// PEFT's target modules of a model type unless the user names some; none: PEFT asks for them.
std::vector<std::string> usual_lora_targets(std::string_view model_type);

/// True if PEFT 0.21 adapts the experts' tensors and the routers of this model type with
/// "all-linear", too, which is not modelled.
bool all_linear_has_experts(std::string_view model_type);

/// True if `end` is `name`, or its end behind a dot.
bool is_name_or_end(std::string_view name, std::string_view end);

}  // namespace dstune
