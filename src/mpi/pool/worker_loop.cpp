#include "mpi/pool/worker_loop.hpp"

#include <exception>
#include <new>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/host/memory_bounds.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/device/faults.hpp"
#include "mpi/lifeline/worker_link.hpp"

namespace dstune {

namespace {

/// The experiment that rank 0 wants this rank to run next.
struct Assignment {
  std::uint64_t id = 0;
  std::vector<int> ranks;
  Experiment experiment;
};

class WorkerLoop {
 public:
  WorkerLoop(const Communicator& world, const WorkerOptions& options,
             const ExperimentRunner& runner)
      : link_(world, options), groups_(link_), runner_(&runner) {}

  LoopResult run();

 private:
  std::optional<LoopResult> obey(const Message& order);
  void prepare(const json::object& order);
  void execute(int tag);
  void fail(const Assignment& assignment, const char* reason,
            const std::optional<Outcome>& outcome);
  void say_idle(std::uint64_t id);
  LoopResult wait_for_the_end();
  LoopResult end_of_line() const {
    return link_.orphaned() ? LoopResult::orphaned : LoopResult::cut_off;
  }

  WorkerLink link_;
  GroupCache groups_;
  const ExperimentRunner* runner_;
  std::optional<Assignment> assignment_;
};

std::uint64_t order_id(const json::object& order) {
  return order.at("id").to_number<std::uint64_t>();
}

Outcome with_world_ranks(Outcome outcome, const std::vector<int>& ranks) {
  if (auto* fault = std::get_if<OutOfMemory>(&outcome)) {
    fault->rank = ranks.at(static_cast<std::size_t>(fault->rank));
  }
  return outcome;
}

LoopResult WorkerLoop::run() {
  for (Backoff backoff; !link_.lost();) {
    const auto order = link_.next_order();
    if (!order) {
      backoff.pause();
      continue;
    }
    backoff.reset();
    if (const auto result = obey(*order)) return *result;
  }
  return end_of_line();
}

std::optional<LoopResult> WorkerLoop::obey(const Message& order) {
  const bool mine =
      assignment_ && order.content.contains("id") && order_id(order.content) == assignment_->id;
  switch (order.kind) {
    case MessageKind::experiment:
      prepare(order.content);
      break;
    case MessageKind::go:
      if (mine) execute(order.content.at("tag").to_number<int>());
      break;
    case MessageKind::abort:
      if (mine) {
        assignment_.reset();
        say_idle(order_id(order.content));
      }
      break;
    case MessageKind::forget:
      groups_.drop(order.content.at("tag").to_number<int>());
      break;
    case MessageKind::stop:
      link_.say(MessageKind::bye);
      break;
    case MessageKind::leave:
      if (order.content.at("finalize").as_bool()) return LoopResult::finished;
      return wait_for_the_end();
    default:
      break;
  }
  return std::nullopt;
}

void WorkerLoop::prepare(const json::object& order) {
  const std::uint64_t id = order_id(order);
  try {
    Assignment assignment{id, {}, experiment_from_json(order.at("experiment").as_object())};
    for (const auto& rank : order.at("ranks").as_array()) {
      assignment.ranks.push_back(rank.to_number<int>());
    }
    assignment_ = std::move(assignment);
    link_.say(MessageKind::ready, {{"id", id}});
  } catch (const std::exception& error) {
    link_.say(MessageKind::failed, {{"id", id}, {"reason", error.what()}});
    say_idle(id);
  }
}

void WorkerLoop::execute(int tag) {
  const Assignment assignment = *std::exchange(assignment_, std::nullopt);
  link_.begin(assignment.id);
  try {
    MpiGroup& group = groups_.get(tag, assignment.ranks);
    const Outcome outcome =
        with_world_ranks((*runner_)(assignment.experiment, group), assignment.ranks);
    if (group.rank() == 0) {
      link_.say(MessageKind::outcome, {{"id", assignment.id}, {"outcome", to_json(outcome)}});
    }
  } catch (const ExperimentAborted& aborted) {
    log_debug(concat(assignment.experiment.name, ": ", aborted.what()));
    groups_.drop(tag);
  } catch (const OutOfMemoryError& error) {
    fail(assignment, error.what(),
         OutOfMemory{link_.rank(), error.category, error.requested, error.in_use,
                     error.limit >= kNoLimit ? 0 : error.limit, error.reserved, error.refusal,
                     error.tier});
    groups_.drop(tag);
  } catch (const std::bad_alloc& error) {
    const Bytes limit = assignment.experiment.settings.memory_limit;
    fail(assignment, error.what(),
         OutOfMemory{link_.rank(),
                     {},
                     0,
                     most_resident(),
                     limit,
                     0,
                     concat("the system refused memory: ", why_refused())});
    groups_.drop(tag);
  } catch (const DeviceLostError& error) {
    fail(assignment, error.what(), Failed{FailureKind::device_lost, error.what()});
    groups_.drop(tag);
  } catch (const WrongSumsError& error) {
    fail(assignment, error.what(), Failed{FailureKind::wrong_sums, error.what()});
    groups_.drop(tag);
  } catch (const std::exception& error) {
    fail(assignment, error.what(), std::nullopt);
    groups_.drop(tag);
  }
  link_.end();
  say_idle(assignment.id);
}

void WorkerLoop::fail(const Assignment& assignment, const char* reason,
                      const std::optional<Outcome>& outcome) {
  json::object content = {{"id", assignment.id}, {"reason", reason}};
  if (outcome) content["outcome"] = to_json(*outcome);
  link_.say(MessageKind::failed, content);
}

// Sends the counts of kills with it: a rank that the system has just ended cannot report it, but
// the ranks beside it can.
void WorkerLoop::say_idle(std::uint64_t id) {
  link_.say(MessageKind::idle,
            {{"id", id}, {"oom_kills", to_json(count_oom_kills_in(link_.group()))}});
}

// Waits for mpirun to end this process after rank 0 has left. A worker that left before rank 0
// would take rank 0 with it.
LoopResult WorkerLoop::wait_for_the_end() {
  for (Backoff backoff; !link_.lost(); backoff.pause()) link_.next_order();
  return end_of_line();
}

}  // namespace

LoopResult run_worker_loop(const Communicator& world, const WorkerOptions& options,
                           const ExperimentRunner& runner) {
  return WorkerLoop(world, options, runner).run();
}

}  // namespace dstune
