// Which release of DeepSpeed a file is tuned for.
#pragma once

#include <optional>
#include <string>

#include "core/base/json.hpp"
#include "core/config/space/axis.hpp"
#include "core/experiment/deepspeed_version.hpp"
#include "core/input/problems.hpp"

namespace dstune {

/// dstune.deepspeed_version of the file, else `installed`, else the newest known. A newer one
/// than that is used instead, with a warning; so is an `installed` one that is older than all known
/// ones, or no version. A text of another type is not this function's fault to name.
DeepSpeedVersion read_deepspeed_version(const json::object& file,
                                        const std::optional<std::string>& installed,
                                        Problems& problems);

/// Names the keys of `file`, and the axes of `space`, with which that release would refuse a file.
void refuse_later_keys(const json::object& file, const SpaceConfig& space,
                       const DeepSpeedVersion& version, Problems& problems);

/// Writes the release into the JSON of every experiment, unless it is the newest.
void set_deepspeed_version(const DeepSpeedVersion& version, json::object& deepspeed);

/// Whether the file says of the model that it is, or is not, made under deepspeed.zero.Init; null:
/// nothing, and so it is.
const json::value* find_zero_init(const json::object& file);
/// Writes it into the JSON of every experiment, if the model is not.
void set_zero_init(const json::object& file, json::object& deepspeed);
/// What a run that searches stage 3 says where the file leaves that open and the release keeps
/// weights for it; else empty.
std::string note_of_zero_init(const json::object& file, const DeepSpeedVersion& version);

}  // namespace dstune
