// Every configuration of a space, measured on the simulated machine: a truth without noise.
#pragma once

#include <filesystem>

#include "bench/replay.hpp"

namespace dstune::bench {

/// 970 configurations of stages 0 to 3 of the model at `model` (a Hugging Face config.json):
/// buckets, overlap, contiguity, prefetch, persistence, checkpointing and micro-batches, by the
/// step's own code in virtual time. Seconds.
Table measure_on_sim(const std::filesystem::path& model, int ranks);

}  // namespace dstune::bench
