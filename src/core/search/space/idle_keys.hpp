// Keys of the DeepSpeed JSON that change no step.
#pragma once

#include <string_view>

namespace dstune {

/// Whether the value at `pointer` changes neither the step of `stage` nor what is valid there,
/// whatever the rest of the configuration is. False where that is not known: it only saves time.
bool does_nothing(std::string_view pointer, int stage);

}  // namespace dstune
