#include "core/train/training_step.hpp"

#include "core/train/repeated_work.hpp"

namespace dstune {
namespace {

// splitmix64: neighbouring inputs give unrelated seeds.
std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

std::uint64_t seed_of(std::uint64_t seed, std::uint64_t step, std::uint64_t index) {
  return mix(mix(mix(seed) ^ step) ^ index);
}

}  // namespace

Bytes token_bytes(std::int64_t micro_batch, std::int64_t sequence_length) {
  return static_cast<Bytes>(micro_batch * sequence_length) * sizeof(std::int64_t);
}

TrainingStep::TrainingStep(const RunSettings& settings, const StepConfig& config, Device& device,
                           Collectives& collectives)
    : settings_(settings),
      config_(config),
      device_(device),
      collectives_(collectives),
      parameters_(make_model_parameters(settings.model)),
      engine_(make_zero_engine(config, settings_.model, parameters_, device, collectives,
                               settings.seed)),
      model_(settings_.model, config.micro_batch, settings.sequence_length, config.dtype, device,
             config.stage == 3 ? LinearLayers::memory_efficient : LinearLayers::torch),
      tokens_(device, MemoryCategory::activations,
              token_bytes(config.micro_batch, settings.sequence_length)) {
  device_.set_host_overhead(settings_.host_overhead);
}

TrainingStep::~TrainingStep() = default;

void TrainingStep::make_tokens(std::int64_t micro_step) {
  const std::int64_t length = settings_.sequence_length;
  const std::int64_t first =
      (micro_step * collectives_.size() + collectives_.rank()) * config_.micro_batch;
  auto* out = static_cast<std::int64_t*>(tokens_.data());
  for (std::int64_t i = 0; i < config_.micro_batch; ++i, out += length) {
    device_.fill_tokens(out, length, settings_.model.vocab_size,
                        seed_of(settings_.seed, step_, static_cast<std::uint64_t>(first + i)));
  }
}

// At the start of every forward and at the end of the step, as DeepSpeed's throughput timer does.
void TrainingStep::synchronize_for_timer() {
  if (config_.timer_synchronizes) device_.host_sync(HostSync::timer);
}

void TrainingStep::run_micro_step(std::int64_t micro, StepReport& report) {
  MemoryBudget& memory = device_.memory();
  make_tokens(micro);
  engine_->begin_micro_step(micro + 1 == config_.accumulation_steps);
  memory.enter(StepPhase::forward);
  synchronize_for_timer();
  const Seconds start = device_.now();
  const auto place = static_cast<std::uint64_t>(micro * collectives_.size() + collectives_.rank());
  report.loss += model_.forward(*engine_, static_cast<const std::int64_t*>(tokens_.data()),
                                seed_of(~settings_.seed, step_, place));
  device_.synchronize();
  const Seconds turn = device_.now();
  memory.enter(StepPhase::backward);
  model_.backward(*engine_,
                  engine_->loss_scale() / static_cast<double>(config_.accumulation_steps));
  engine_->end_backward();
  device_.synchronize();
  report.forward += turn - start;
  report.backward += device_.now() - turn;
  device_.tick();
}

StepReport TrainingStep::run() {
  StepReport report;
  device_.ledger().clear();
  device_.synchronize();
  const Seconds begin = device_.now();
  FoldedMicroSteps micro_steps(device_);
  for (std::int64_t micro = 0; micro < config_.accumulation_steps; ++micro) {
    run_micro_step(micro, report);
    micro += micro_steps.fold(config_.accumulation_steps - micro - 2);
  }
  const Seconds before = device_.now();
  device_.memory().enter(StepPhase::update);
  report.result = engine_->step();
  synchronize_for_timer();
  device_.synchronize();
  const Seconds end = device_.now();
  report.optimizer = end - before;
  report.total = end - begin;
  report.loss /= static_cast<double>(config_.accumulation_steps);
  ++step_;
  return report;
}

}  // namespace dstune
