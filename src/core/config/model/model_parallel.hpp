// "autotuning.mp_size": the part of a model that one rank of a model-parallel group holds.
#pragma once

#include <cstdint>
#include <string>

#include "core/input/problems.hpp"
#include "core/model/model_spec.hpp"

namespace dstune {

/// `model` with its layers and its vocabulary divided by `mp_size` and rounded up: DeepSpeed's
/// formula, all model states divided by mp_size, as nearly as a model that runs can have it.
/// mp_size 1: the model itself. More than it has layers is a problem.
ModelSpec part_of_one_rank(ModelSpec model, int mp_size, Problems& problems);

/// What the optimum must be read with then; "" for mp_size 1.
/// @param whole  parameters of the whole model
/// @param part   of part_of_one_rank
std::string note_of_model_parallelism(int mp_size, std::int64_t whole, std::int64_t part);

}  // namespace dstune
