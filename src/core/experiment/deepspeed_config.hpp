// A DeepSpeed JSON together with the training step that it configures.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/json.hpp"
#include "core/experiment/step_config.hpp"

namespace dstune {

/// Holds the JSON as it leaves the program, with the keys that no step knows, and the StepConfig
/// that was read from it once. All copies share both.
class DeepSpeedConfig {
 public:
  DeepSpeedConfig() : DeepSpeedConfig(json::object()) {}
  /// Reads the StepConfig of `json`; if that fails, fault() says why.
  DeepSpeedConfig(json::object json);  // NOLINT(google-explicit-constructor)
  DeepSpeedConfig(std::initializer_list<std::pair<json::string_view, json::value_ref>> members)
      : DeepSpeedConfig(json::object(members)) {}

  const json::object& json() const& { return content_->json; }
  json::object json() && { return content_->json; }
  /// @throws std::invalid_argument  with fault(), if there is one
  const StepConfig& step() const&;
  StepConfig step() && { return std::as_const(*this).step(); }
  /// Why there is no step, which happens if the JSON was not checked; "" if there is one.
  const std::string& fault() const { return content_->fault; }

  /// Gives the member `key` a value in this object alone; copies keep the old one.
  void set(std::string_view key, json::value value);

  /// True if both have the same JSON, whatever the order of the keys.
  bool operator==(const DeepSpeedConfig& other) const {
    return content_ == other.content_ || json() == other.json();
  }

 private:
  struct Content {
    json::object json;
    StepConfig step;
    std::string fault;
  };
  std::shared_ptr<const Content> content_;
};

}  // namespace dstune
