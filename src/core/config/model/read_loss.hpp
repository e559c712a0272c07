// "dstune.trainer", "dstune.loss" and "dstune.keep_logits": how the loss is made.
#pragma once

#include "core/experiment/loss_settings.hpp"
#include "core/input/section_reader.hpp"
#include "core/model/task.hpp"

namespace dstune {

/// A trainer names the settings that it has by itself ("trl", "trl==1.7.0": a table in
/// read_loss.cpp, and docs/loss.md); keys of their own win.
LossSettings read_loss(const SectionReader& dstune, Problems& problems);

/// A problem if a model that is trained for `task` has no such loss: all but the usual one are of
/// causal language models.
void check_loss(const LossSettings& loss, Task task, Problems& problems);

}  // namespace dstune
