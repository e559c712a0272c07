// Changes one value in a section of a DeepSpeed JSON.
#pragma once

#include <string_view>
#include <utility>

#include "core/experiment/deepspeed_config.hpp"

namespace dstune::testing_support {

inline void set_in(DeepSpeedConfig& config, std::string_view section, std::string_view key,
                   json::value value) {
  json::object changed = config.json().at(section).as_object();
  changed[key] = std::move(value);
  config.set(section, std::move(changed));
}

}  // namespace dstune::testing_support
