#include "core/experiment/deepspeed_config.hpp"

#include <stdexcept>

namespace dstune {

DeepSpeedConfig::DeepSpeedConfig(json::object json) {
  Content content{own_copy(std::move(json)), {}, {}};
  try {
    content.step = make_step_config(content.json);
  } catch (const std::invalid_argument& error) {
    content.fault = error.what();
  }
  content_ = std::make_shared<const Content>(std::move(content));
}

const StepConfig& DeepSpeedConfig::step() const& {
  if (!fault().empty()) throw std::invalid_argument(fault());
  return content_->step;
}

void DeepSpeedConfig::set(std::string_view key, json::value value) {
  json::object changed = json();
  changed[key] = std::move(value);
  *this = DeepSpeedConfig(std::move(changed));
}

}  // namespace dstune
