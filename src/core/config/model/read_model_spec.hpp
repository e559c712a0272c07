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

/// What is said of a model beside its settings.
struct ModelRemarks {
  std::vector<std::string> warnings;  ///< to log once
  std::vector<std::string> notes;     ///< what the optimum must be read with
  std::string task_note;              ///< one more, unless dstune.task says what is trained for
  /// Where its sizes come from: the path of its config.json, or "preset gpt2" where it was asked
  /// for by another name; empty for presets by their own names, and for objects.
  std::string source;
};

/// Hugging Face's config.json of a family that "model_type" names, defaults for absent keys. Of a
/// model that sees beside reading, the part that reads, and a note. Dropout probabilities are the
/// file's, the task is that of its "architectures", else the family's first. `pointer` stands in
/// front of the place of each problem; nothing if there was one. A key that the family does not
/// have is a warning.
std::optional<ModelSpec> read_model_object(const json::object& object, const std::string& name,
                                           std::string_view pointer, Problems& problems,
                                           ModelRemarks& remarks);
/// The same for callers that have no use for notes.
std::optional<ModelSpec> read_model_object(const json::object& object, const std::string& name,
                                           std::string_view pointer, Problems& problems,
                                           std::vector<std::string>& warnings);

/// The first of these that there is:
///
/// - a path: of a config.json or of the directory that holds it, relative to each of `folders` in
///   turn;
/// - a preset;
/// - a name of Hugging Face's hub, in any case, whose config.json is in the cache of this user
///   (hub_cache()), or that is one of a preset (hub_names()). Nothing is downloaded.
///
/// Nothing, and a problem at `where`, if it is none of them.
std::optional<ModelSpec> read_model_name(const std::string& name,
                                         const std::vector<std::filesystem::path>& folders,
                                         std::string_view where, Problems& problems,
                                         ModelRemarks& remarks);

}  // namespace dstune
