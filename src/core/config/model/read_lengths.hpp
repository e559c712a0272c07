// "dstune.sequence_length" and "dstune.lengths": how long sequences are.
#pragma once

#include "core/config/tuning_config.hpp"
#include "core/input/section_reader.hpp"

namespace dstune {

/// Fills sequence_lengths of `config`, and sequence_length and lengths of its settings, whose model
/// and attention are read already; config.source says where relative paths start.
/// docs/lengths.md has the forms.
void read_lengths(const SectionReader& dstune, TuningConfig& config, Problems& problems);

}  // namespace dstune
