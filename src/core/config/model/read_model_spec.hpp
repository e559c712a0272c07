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

/// The presets of all families: "gpt2", "gpt2-medium", ...
std::vector<std::string> model_presets();

/// Hugging Face's config.json of a family that "model_type" names, defaults for absent keys.
/// Dropout probabilities are the file's, the task is the family's first. `pointer` stands in front
/// of the place of each problem; nothing if there was one. A key that the family does not have is a
/// warning.
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
