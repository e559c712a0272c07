// The names that models are known by: presets, and what they are called on Hugging Face's hub.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/model_spec.hpp"

namespace dstune {

/// `name` in small letters and without "-", "_", "." and spaces: "GPT-NeoX" and "gpt_neox" are one.
std::string without_separators(std::string_view name);

/// Of all families, each with its family and that family's first task.
std::vector<ModelSpec> all_presets();
/// Their names: "gpt2", "gpt2-medium", ...
std::vector<std::string> model_presets();

/// The preset of that name.
std::optional<ModelSpec> find_preset(std::string_view name);

/// What is near to a name that means no model, as the middle of a message: "; did you mean
/// \"gpt2\"?" or "; similar presets: \"Qwen/Qwen2.5-7B\""; empty if nothing is. A model of another
/// kind or size is no slip of the pen, so it is never meant, and near only within its family.
std::string near_models(const std::string& name);

/// What a name that means no model is told to be: no preset, no file, and for a name of the hub not
/// in `cache` either, with what is near and how the model's config.json gets there.
std::string unknown_model(const std::string& name, const std::filesystem::path& cache);

}  // namespace dstune
