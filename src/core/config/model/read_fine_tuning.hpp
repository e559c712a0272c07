// The part of the model that is trained.
#pragma once

#include "core/input/problems.hpp"
#include "core/input/section_reader.hpp"
#include "core/model/model_spec.hpp"

namespace dstune {

/// Reads "trainable" and "lora" of the section "dstune" into `model`, whose task is known. A
/// pattern that matches nothing is a problem.
void read_fine_tuning(const SectionReader& dstune, ModelSpec& model, Problems& problems);

}  // namespace dstune
