// The model to train on: a preset's name, a Hugging Face config.json, or such an object.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/input/problems.hpp"
#include "core/model/model_spec.hpp"

namespace dstune {

/// "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl".
const std::vector<std::string>& model_presets();

/// Hugging Face's config.json of a GPT-2, defaults for absent keys. Dropout probabilities are the
/// file's. `pointer` stands in front of the place of each problem. Nothing if there was one: also
/// if there is no "model_type". A key that no GPT-2 has is a warning.
std::optional<ModelSpec> read_model_object(const json::object& object, const std::string& name,
                                           std::string_view pointer, Problems& problems,
                                           std::vector<std::string>& warnings);

/// A preset or a path: of a config.json or of the directory that holds it, relative to each of
/// `folders` in turn. Nothing, and a problem at `where`, if it is neither.
std::optional<ModelSpec> read_model_name(const std::string& name,
                                         const std::vector<std::filesystem::path>& folders,
                                         std::string_view where, Problems& problems,
                                         std::vector<std::string>& warnings);

}  // namespace dstune
