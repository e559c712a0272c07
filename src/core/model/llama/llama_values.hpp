// Values of a checked config.json of Llama's kin, and how those of single layers are read.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/base/json.hpp"
#include "core/input/problems.hpp"
#include "core/model/llama/llama_kin.hpp"
#include "core/model/model_spec.hpp"

namespace dstune::llama {

/// Values of a checked section.
class Values {
 public:
  explicit Values(json::object values) : values_(std::move(values)) {}

  const json::value* find(const char* key) const {
    const auto* value = values_.if_contains(key);
    return value == nullptr || value->is_null() ? nullptr : value;
  }
  template <class T>
  T get(const char* key, T otherwise) const {
    const auto* value = find(key);
    if (value == nullptr) return otherwise;
    if constexpr (std::is_same_v<T, bool>) {
      return value->get_bool();
    } else {
      return value->to_number<T>();
    }
  }
  /// True if the key is there, also if it is null.
  bool has(const char* key) const { return values_.contains(key); }
  const json::object& all() const { return values_; }

 private:
  json::object values_;
};

/// Reads sliding_window and layer_types into `own`.
void read_windows(const Values& values, const ModelSpec& spec, const Description& kin,
                  std::string_view pointer, Problems& problems, json::object& own);
/// Reads rope_parameters, and those of windowed layers, into `own`.
void read_ropes(const Values& values, const ModelSpec& spec, const Description& kin,
                std::int64_t head_size, std::string_view pointer, Problems& problems,
                json::object& own);
/// Reads those of Phi-3, and its partial_rotary_factor, into `own`.
void read_rope_of_phi(const Values& values, const ModelSpec& spec, std::int64_t head_size,
                      std::string_view pointer, Problems& problems, json::object& own);

}  // namespace dstune::llama
