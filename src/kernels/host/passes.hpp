// The passes that DeepSpeed's offloaded optimizer makes over tensors in host memory: its own fused
// optimizers, and torch's loops that search and unscale gradients and cast parameters
// (one loop each, divided among threads, of plain loads and stores).
#pragma once

#include <functional>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/optimizers.hpp"
#include "kernels/host/instruction_set.hpp"
#include "kernels/host/threads.hpp"

namespace dstune::host {

struct PassOptions {
  /// Unless empty, it is called on the calling thread before the pass and about every millisecond
  /// of it; what it throws ends the pass.
  std::function<void()> tick = {};
  /// One of instruction_sets(). The search for inf and NaN has the plain one in any case.
  InstructionSet instructions = widest_instruction_set();
};

// All of an operation's tensors lie in host memory. An operation is finished when its call returns.
// What it makes of an element depends on neither the element's place nor the number of threads; the
// optimizers' results differ between sets of instructions by the roundings that a fused
// multiply-add saves.
//
// Of NaN only that it is one is kept.

void compute(Threads& threads, const Adam& op, const PassOptions& options = {});
void compute(Threads& threads, const Lion& op, const PassOptions& options = {});
/// It uses no scratch: `numerator` and `root` may be empty.
void compute(Threads& threads, const Adagrad& op, const PassOptions& options = {});

void compute(Threads& threads, const Scale& op, const PassOptions& options = {});
void compute(Threads& threads, const Cast& op, const PassOptions& options = {});
void compute(Threads& threads, const Copy& op, const PassOptions& options = {});
void compute(Threads& threads, const FillZero& op, const PassOptions& options = {});
void compute(Threads& threads, const FillConstant& op, const PassOptions& options = {});

void compute(Threads& threads, const FindInfOrNan& op, const PassOptions& options = {});

}  // namespace dstune::host
