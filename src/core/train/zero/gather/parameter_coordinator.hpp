// Stage 3: when parameters are gathered, gathered ahead, and released. No device, no communication.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace dstune {

/// DeepSpeed's rules (docs/deepspeed-step.md, "Gathers of stage 3") as a state machine that is told
/// of every hook and says what to do. Its decisions depend on the calls alone, so all ranks take
/// the same ones.
///
/// The first micro-step records the order of modules; in it nothing is gathered ahead, and what a
/// module used is released after it. From the second micro-step on the record is followed.
///
/// Modules and tensors are indices; lists of tensors are in ascending order.
class ParameterCoordinator {
 public:
  using Tensors = std::vector<std::size_t>;

  /// All in elements.
  struct Rules {
    std::int64_t prefetch_bucket = 50'000'000;        ///< B_p; 0: nothing is gathered ahead
    std::int64_t max_live = 1'000'000'000;            ///< L_max
    std::int64_t max_reuse_distance = 1'000'000'000;  ///< R_max
  };

  struct Model {
    std::vector<std::int64_t> numels;   ///< by tensor
    std::vector<bool> persistent;       ///< by tensor
    std::vector<Tensors> used_tensors;  ///< by module
  };

  /// The steps to take before a module runs, in this order.
  struct Fetch {
    Tensors gather;    ///< together: what the module lacks
    Tensors await;     ///< everything it uses
    Tensors prefetch;  ///< together: what later modules will need
  };

  ParameterCoordinator(Model model, Rules rules);

  /// Before the first module of a micro-step.
  void begin_forward();
  /// Before a module's forward or backward.
  /// @throws std::logic_error  if the order of modules is not the recorded one
  Fetch fetch(std::size_t module);
  /// After it: what to release.
  Tensors release(std::size_t module);
  /// After a backward: what modules hold that never came to the end of theirs.
  Tensors release_leftovers();
  /// Before the update: everything that is still there.
  Tensors release_all();
  /// `tensors` were gathered after the update.
  void regathered(const Tensors& tensors);

  /// The tensors that stay gathered from step to step.
  Tensors persistent_tensors() const;
  /// Later micro-steps follow the record.
  bool is_complete() const noexcept { return mode_ == Mode::complete; }
  /// Elements that are gathered or on their way, persistent ones too.
  std::int64_t live() const noexcept { return live_; }

 private:
  enum class Mode { invalid, record, complete };
  /// One use of a tensor in the recorded micro-step.
  struct Use {
    std::size_t tensor;
    std::int64_t step;
  };

  void complete_record();
  Tensors take_missing(const Tensors& tensors);
  void mark_gathered(const Tensors& tensors);
  void skip_uses_of(std::size_t module);
  Tensors prefetch();
  const Tensors& release_candidates(std::size_t module);
  Tensors find_release_candidates(std::size_t module) const;
  bool is_used_soon(std::size_t tensor) const;

  Model model_;
  Rules rules_;
  Mode mode_ = Mode::invalid;
  std::vector<std::size_t> order_;    // of modules, recorded
  std::vector<Use> uses_;             // in that order
  std::vector<std::int64_t> passed_;  // by step, and behind the last: elements used before it
  std::size_t next_use_ = 0;          // front of the fetch queue
  std::int64_t step_ = 0;             // modules fetched in this micro-step
  std::int64_t available_numel_ = 0;
  std::int64_t live_ = 0;  // since ever, not since this forward
  std::vector<bool> available_;
  std::vector<std::vector<std::size_t>> users_;      // by tensor: modules that run with it
  std::vector<std::vector<std::int64_t>> steps_of_;  // by tensor: those that use it, ascending
  std::vector<std::int64_t> fetched_for_;  // by tensor: last step it was gathered or kept for
  std::vector<std::size_t> open_;          // modules fetched and not yet released
  std::map<std::pair<std::size_t, std::int64_t>, Tensors> decided_;  // by module and step
};

}  // namespace dstune
