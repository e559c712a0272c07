// The names that presets have on Hugging Face's hub.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace dstune {

/// A preset and the repositories whose config.json has its sizes: the model itself, what was
/// fine-tuned from it with the same shapes, and former names of either.
struct HubNames {
  std::string_view preset;
  std::string_view names;   ///< "ORG/NAME", with blanks between; the model itself comes first
  bool has_vision = false;  ///< they read pictures, too: the preset is their language model alone

  /// Each of `names`.
  std::vector<std::string_view> each() const;
};

/// A row for each preset, in the order of the families.
std::span<const HubNames> hub_names();

/// A repository of the table as the hub spells it, and its preset; both empty if there is none.
struct HubPreset {
  std::string_view hub_name;
  std::string_view preset;
  bool has_vision = false;  ///< see HubNames
};

/// @param name  in any case, as the hub takes it
HubPreset find_hub_preset(std::string_view name);

}  // namespace dstune
