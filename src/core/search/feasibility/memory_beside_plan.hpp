// What a training process takes of a GPU beside the memory that a plan counts.
#pragma once

#include <string>
#include <vector>

#include "core/device/backend.hpp"
#include "core/experiment/experiment.hpp"

namespace dstune {

/// What nvidia-smi shows beside the peak of a plan, as others have measured it (docs/memory.md). No
/// part of it is modelled: another GPU, driver or library may take twice as much.
/// @param ranks  that communicate
/// @returns nothing where the backend stands for no GPU
std::vector<MemoryReserve> memory_beside_plan(const RunSettings& settings, int ranks);

/// A line for people: "In addition, as nvidia-smi shows: about ...", or "" if there is nothing.
std::string describe_beside_plan(const RunSettings& settings, int ranks);

Bytes sum_of(const std::vector<MemoryReserve>& reserves);

}  // namespace dstune
