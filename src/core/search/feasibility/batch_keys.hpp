// DeepSpeed's keys of the three sizes of a batch.
#pragma once

#include <string_view>

namespace dstune {

inline constexpr std::string_view kTrainBatch = "train_batch_size";
inline constexpr std::string_view kMicroBatch = "train_micro_batch_size_per_gpu";
inline constexpr std::string_view kAccumulation = "gradient_accumulation_steps";

}  // namespace dstune
