// Stage 3: when parameters are gathered, gathered ahead, and released. It has no device and does
// not communicate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/train/zero/gather/shards_on_drive.hpp"

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

  /// The settings and the model. Limits are numbers of elements.
  struct Rules {
    std::int64_t prefetch_bucket = 50'000'000;        ///< B_p; 0: nothing is gathered ahead
    std::int64_t max_live = 1'000'000'000;            ///< L_max
    std::int64_t max_reuse_distance = 1'000'000'000;  ///< R_max
    /// Frozen tensors that a checkpoint's second forward used stay for the module whose backward
    /// began it, and go with it, however soon they are used again (DeepSpeed's
    /// ds_recompute_parameters).
    bool drops_recomputed = true;
  };

  struct Model {
    std::vector<std::int64_t> numels;   ///< by tensor
    std::vector<bool> persistent;       ///< by tensor
    std::vector<bool> frozen;           ///< by tensor; empty: none is
    std::vector<Tensors> used_tensors;  ///< by module
  };

  /// What to do before a module runs, in this order; then what prefetch() and read_ahead() say.
  struct Fetch {
    Tensors gather;  ///< together: what the module lacks
    Tensors await;   ///< everything it uses
  };

  ParameterCoordinator(Model model, Rules rules);
  /// @param shards  null: none is on a drive; it must outlive this
  void watch(const ShardsOnDrive* shards) { on_drive_ = shards; }

  /// Called before the first module of a micro-step.
  void begin_forward();
  /// What of a module a hook is around. What a checkpoint runs again is a forward.
  enum class Pass { forward, backward };
  /// Called before a module's forward or backward.
  /// @throws std::logic_error  if the order of modules is not the recorded one
  Fetch fetch(std::size_t module, Pass pass = Pass::forward);
  /// Called when that has been done: what to gather, together, for later modules. Nothing that is
  /// behind a tensor whose shard is still on a drive.
  Tensors prefetch();
  /// Called when that has been done: whose shards to begin to read from a drive. DeepSpeed may name
  /// one twice.
  Tensors read_ahead() const;
  /// Called after the module; returns what to release.
  Tensors release(std::size_t module, Pass pass = Pass::forward);
  /// Called after a backward; returns the tensors held by modules whose own backward has not ended.
  Tensors release_leftovers();
  /// Called before the update; returns everything that is still there.
  Tensors release_all();
  /// Says that `tensors` were gathered after the update.
  void regathered(const Tensors& tensors);

  /// The tensors that stay gathered from step to step.
  Tensors persistent_tensors() const;
  bool is_persistent(std::size_t tensor) const { return model_.persistent[tensor]; }
  /// True if later micro-steps follow the record.
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
  void mark_awaited(const Tensors& tensors);
  void note_recomputed(const Tensors& tensors);
  Tensors take_recomputed(std::size_t module);
  void skip_uses_of(std::size_t module);
  const Tensors& release_candidates(std::size_t module);
  Tensors find_release_candidates(std::size_t module) const;
  bool is_used_soon(std::size_t tensor) const;

  Model model_;
  Rules rules_;
  Mode mode_ = Mode::invalid;
  std::vector<std::size_t> order_;    // the modules in the recorded order
  std::vector<Use> uses_;             // their uses of tensors in that order
  std::vector<std::int64_t> passed_;  // elements used before each step, and before the end
  std::size_t next_use_ = 0;          // front of the fetch queue
  std::int64_t step_ = 0;             // modules fetched in this micro-step
  std::int64_t available_numel_ = 0;
  std::int64_t live_ = 0;  // gathered at any time, not only in this forward
  std::vector<bool> available_;
  std::vector<bool> on_their_way_;  // by tensor: gathered, and not yet awaited
  std::int64_t on_their_way_numel_ = 0;
  const ShardsOnDrive* on_drive_ = nullptr;
  std::vector<std::vector<std::size_t>> users_;      // by tensor: modules that run with it
  std::vector<std::vector<std::int64_t>> steps_of_;  // by tensor: steps that use it, ascending
  std::vector<std::int64_t> fetched_for_;  // by tensor: the last step it was gathered or kept for
  std::vector<std::size_t> open_;          // modules that are fetched and not yet released
  std::vector<std::size_t> in_backward_;   // those whose backward runs, in the order of its begin
  std::map<std::size_t, Tensors> recomputed_;  // by module: frozen, of forwards in its backward
  std::map<std::pair<std::size_t, std::int64_t>, Tensors> decided_;  // by module and step
};

}  // namespace dstune
