// The models that are known by name, for --list-models.
#pragma once

#include <string>

#include "core/base/json.hpp"

namespace dstune {

/// Per family a heading and a line for each preset, with its parameters and its names on Hugging
/// Face's hub, each on a line of its own; at most 100 columns.
std::string format_model_list();

/// A list of {"name", "model_type", "num_params", "tasks", "hub_names"}, "name" being the preset's.
json::array model_list_to_json();

}  // namespace dstune
