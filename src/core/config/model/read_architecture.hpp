// What a config.json says a model is: its family, and the task that its class is trained for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"
#include "core/input/problems.hpp"
#include "core/train/families/families.hpp"

namespace dstune {

/// The family of "model_type"; nullptr, and a problem, if there is none.
const Family* read_family(const json::object& config, std::string_view pointer, Problems& problems);

/// What a config.json is read as whose own "model_type" is of no family.
struct ReadAs {
  json::object config;          ///< of a family
  bool is_text_config = false;  ///< it is the object "text_config"; else its keys are the whole's
  std::string note;             ///< what it differs in
};

/// Says of a model that sees that its language model, of `text_family`, is trained alone.
/// @param model  its name or its "model_type"
std::string language_model_note(std::string_view model, std::string_view text_family);

/// Of a model that sees beside reading its language model, if that is one of a family's: its
/// "text_config", or in older files of Qwen2-VL the keys beside "vision_config". Of a model that
/// has another name but the tensors and the forward of a family: that family. Else nothing.
std::optional<ReadAs> read_as(const json::object& config);

/// The task of the class that "architectures" names, or the family's first. A class whose head the
/// family does not have is a warning; of one that is not what the family is mostly trained for
/// `note` says so.
Task read_architecture(const json::object& config, const Family& family, std::string_view pointer,
                       std::vector<std::string>& warnings, std::string& note);

}  // namespace dstune
