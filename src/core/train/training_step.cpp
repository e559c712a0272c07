#include "core/train/training_step.hpp"

#include <algorithm>
#include <utility>

#include "core/device/dry/repeated_work.hpp"
#include "core/device/operations/random.hpp"
#include "core/train/batch_context.hpp"
#include "core/train/draw_lengths.hpp"
#include "core/train/families/families.hpp"

namespace dstune {
namespace {

std::uint64_t seed_at(std::uint64_t seed, std::uint64_t step, std::uint64_t index) {
  return seed_of(seed_of(seed_of(seed) ^ step) ^ index);
}

// transformers' own checkpointing calls enable_input_require_grads(), and so does PEFT.
bool inputs_need_gradients(const RunSettings& settings, const ActivationCheckpointing& way) {
  return way.unit == ActivationCheckpointing::Unit::layer ||
         (way.is_on() && settings.model.fine_tuning.lora.has_value());
}

MicroBatch micro_batch_of(const RunSettings& settings, const StepConfig& config) {
  return {.size = config.micro_batch,
          .sequence_length = settings.sequence_length,
          .dtype = config.dtype,
          .linear = config.replaces_linear() ? LinearLayers::memory_efficient : LinearLayers::torch,
          .attention = settings.attention,
          .loss = settings.loss,
          .checkpointing = config.checkpointing,
          .checkpoints_synchronize = config.checkpoints_synchronize,
          .inputs_need_gradients = inputs_need_gradients(settings, config.checkpointing),
          .workspace = settings.product_workspace};
}

// In some versions of DeepSpeed every gradient's hook goes through all parameters that are trained.
// That is 3.5 us for each in a hook: 76 ms of a step on 8 x H100 with 147 tensors
// (docs/deepspeed-versions.md). In stage 1 a tensor's event stands for the hooks of all its
// micro-steps.
HostOverhead with_counts_in_hooks(HostOverhead overhead, const StepConfig& config,
                                  const ModelParameters& parameters) {
  constexpr Seconds kCountOne = 3.5e-6;
  const bool counts = config.behaviour.counts_parameters_in_hooks && config.stage > 0 &&
                      !config.uses_bf16_optimizer();
  if (!counts || overhead.seconds == HostOverhead{}.seconds) return overhead;
  const auto trained =
      std::ranges::count_if(parameters.tensors, [](const auto& one) { return one.trainable; });
  const auto hooks = static_cast<double>(config.stage == 1 ? config.accumulation_steps : 1);
  overhead.at(HostEvent::gradient_hook) += kCountOne * static_cast<double>(trained) * hooks;
  return overhead;
}

}  // namespace

Bytes token_bytes(std::int64_t micro_batch, std::int64_t sequence_length,
                  std::int64_t target_length) {
  return static_cast<Bytes>(micro_batch * (sequence_length + target_length)) * sizeof(std::int64_t);
}

TrainingStep::TrainingStep(const RunSettings& settings, const StepConfig& config, Device& device,
                           Collectives& collectives,
                           std::shared_ptr<const ModelParameters> parameters)
    : settings_(settings),
      config_(config),
      device_(device),
      collectives_(collectives),
      parameters_(parameters ? std::move(parameters)
                             : std::make_shared<const ModelParameters>(
                                   make_model_parameters(settings.model))),
      engine_(make_zero_engine(config, *parameters_, device, collectives, settings.seed)),
      model_(
          family_of(settings.model)
              .make_model(settings.model, *parameters_, micro_batch_of(settings, config), device)),
      tokens_(device, MemoryCategory::activations,
              token_bytes(config.micro_batch, settings.sequence_length,
                          settings.model.target_tokens(settings.sequence_length))),
      loss_(device),
      rows_{config.micro_batch, settings.sequence_length} {
  device_.set_host_overhead(with_counts_in_hooks(settings_.host_overhead, config_, *parameters_));
}

TrainingStep::~TrainingStep() = default;

// The index, in the global batch, of the micro-step's first sequence.
std::uint64_t TrainingStep::first_sequence(std::int64_t micro_step) const {
  return static_cast<std::uint64_t>((micro_step * collectives_.size() + collectives_.rank()) *
                                    config_.micro_batch);
}

void TrainingStep::set_lengths(std::int64_t micro_step) {
  if (!settings_.lengths.varies()) return;
  if (batch_) {
    const auto size = static_cast<std::uint64_t>(config_.train_batch(collectives_.size()));
    rows_ =
        draw_rows(settings_.lengths, settings_.seed, *batch_ * size + first_sequence(micro_step),
                  config_.micro_batch, settings_.sequence_length);
  } else {
    rows_ = longest_rows(settings_.lengths, config_.micro_batch, settings_.sequence_length);
  }
  model_->set_lengths(rows_);
  count_work();
}

void TrainingStep::count_work() {
  work_.padded_tokens += static_cast<double>(rows_.tokens());
  const auto count = [&](std::int64_t length, std::int64_t times) {
    work_.real_tokens += static_cast<double>(times * length);
    work_.flops += static_cast<double>(times) * flops_of(length);
  };
  if (rows_.sequences.empty()) count(rows_.length, rows_.rows);
  for (const TokenSpan& sequence : rows_.sequences) count(sequence.length, 1);
}

double TrainingStep::flops_of(std::int64_t length) {
  const auto [known, is_new] = flops_.try_emplace(length, 0);
  if (is_new) known->second = training_flops(settings_.model, length, length);
  return known->second;
}

Tensor TrainingStep::tokens() const {
  const std::int64_t targets =
      config_.micro_batch * settings_.model.target_tokens(settings_.sequence_length);
  return tokens_.tensor(DType::int64).slice(0, rows_.tokens() + targets);
}

// Padding is drawn too, since it does not matter which tokens it has.
void TrainingStep::make_tokens(std::int64_t micro_step) {
  const std::int64_t length = rows_.tokens() / config_.micro_batch;
  const std::int64_t target = settings_.model.target_tokens(settings_.sequence_length);
  const std::uint64_t first = first_sequence(micro_step);
  const auto fill = [&](std::int64_t offset, std::int64_t count, std::uint64_t seed) {
    device_.run(FillTokens{.out = tokens_.tensor(DType::int64).slice(offset, count),
                           .vocab = settings_.model.vocab_size,
                           .seed = seed});
  };
  for (std::int64_t i = 0; i < config_.micro_batch; ++i) {
    const std::uint64_t seed =
        seed_at(settings_.seed, step_, first + static_cast<std::uint64_t>(i));
    fill(i * length, length, seed);
    if (target > 0) fill(rows_.tokens() + i * target, target, seed_of(seed));
  }
}

// Called at the start of every forward and at the end of every engine.step(), which a training loop
// calls after each micro-step, as DeepSpeed's throughput timer does.
void TrainingStep::synchronize_for_timer() {
  if (config_.timer_synchronizes) device_.host_sync(HostSync::timer);
}

TrainingStep::MicroStep TrainingStep::run_micro_step(std::int64_t micro) {
  MemoryBudget& memory = device_.memory();
  set_lengths(micro);
  make_tokens(micro);
  const bool boundary = micro + 1 == config_.accumulation_steps;
  engine_->begin_micro_step(boundary);
  memory.enter(StepPhase::forward);
  synchronize_for_timer();
  MicroStep times;
  times.begin = device_.record(Stream::compute);
  device_.host_event(HostEvent::micro_step);
  const auto place = static_cast<std::uint64_t>(micro * collectives_.size() + collectives_.rank());
  model_->forward(*engine_, tokens(), seed_at(~settings_.seed, step_, place), loss_.tensor());
  times.turn = device_.record(Stream::compute);
  memory.enter(StepPhase::backward);
  model_->backward(*engine_,
                   engine_->loss_scale() / static_cast<double>(config_.accumulation_steps));
  engine_->end_backward();
  times.end = device_.record(Stream::compute);
  if (!boundary) synchronize_for_timer();  // at the boundary the wait comes after the update
  device_.tick();
  return times;
}

std::vector<TrainingStep::MicroStep> TrainingStep::run_micro_steps(const MicroStepPlan& plan) {
  std::vector<MicroStep> times;
  FoldedMicroSteps folded(device_);
  std::optional<CountedMicroSteps> counted;
  for (std::int64_t micro = 0; micro < config_.accumulation_steps; ++micro) {
    if (plan.is_first_alike(micro)) counted.emplace(device_, plan.counted());
    times.push_back(run_micro_step(micro));
    if (plan.is_last_alike(micro)) {
      counted.reset();
      micro += plan.left_out;
    }
    const std::int64_t alike = folded.fold(config_.accumulation_steps - micro - 2);
    work_.folded = work_.folded || alike > 0;
    micro += alike;
  }
  if (plan.left_out > 0) work_.micro_steps_run = static_cast<int>(times.size());
  return times;
}

StepReport TrainingStep::run(std::optional<std::uint64_t> batch, MicroSteps which) {
  batch_ = batch;
  work_ = {};
  device_.ledger().clear();
  device_.timeline().clear();
  const MicroStepPlan plan = plan_micro_steps(config_.accumulation_steps, which);
  const Event begin = end_of_work();
  loss_.set_zero();
  const std::vector<MicroStep> times = run_micro_steps(plan);
  StepReport report = work_;
  const Event before = device_.record(Stream::compute);
  device_.memory().enter(StepPhase::update);
  report.result = engine_->step();
  synchronize_for_timer();
  const Event end = end_of_work();
  report.optimizer = device_.time_of(end) - device_.time_of(before);
  report.ran = device_.time_of(end) - device_.time_of(begin);
  report.total = report.ran;
  read_times(times, plan, report);
  read_numbers(report);
  ++step_;
  return report;
}

void TrainingStep::read_numbers(StepReport& report) {
  float loss = 0;
  device_.read(loss_.tensor(), {&loss, 1});
  const auto run = report.micro_steps_run > 0 ? report.micro_steps_run : config_.accumulation_steps;
  report.loss = static_cast<double>(loss) / static_cast<double>(run);
  report.grad_norm = engine_->grad_norm();
}

// The compute stream awaits sooner or later what runs on other streams, so that its end is the end
// of all.
Event TrainingStep::end_of_work() {
  Event end = device_.record(Stream::compute);
  device_.host_wait(end);
  return end;
}

// What a micro-step takes is the time until the next one begins: work of other streams that it
// started may reach into that one, as it does in all that are alike.
void TrainingStep::read_times(const std::vector<MicroStep>& times, const MicroStepPlan& plan,
                              StepReport& report) {
  const auto time_between = [&](const Event& begin, const Event& end) {
    return device_.time_of(end) - device_.time_of(begin);
  };
  for (std::size_t i = 0; i < times.size(); ++i) {
    const MicroStep& micro = times[i];
    const auto index = static_cast<std::int64_t>(i);  // none is left out before the two
    const bool is_alike = plan.is_first_alike(index) || plan.is_last_alike(index);
    const double counted = is_alike ? static_cast<double>(plan.counted()) : 1;
    report.forward += counted * time_between(micro.begin, micro.turn);
    report.backward += counted * time_between(micro.turn, micro.end);
    if (is_alike) report.total += (counted - 1) * time_between(micro.begin, times[i + 1].begin);
  }
  device_.timeline().settle(device_, device_.ledger());
}

}  // namespace dstune
