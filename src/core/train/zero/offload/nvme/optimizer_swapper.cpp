#include "core/train/zero/offload/nvme/optimizer_swapper.hpp"

#include <algorithm>
#include <utility>

#include "core/device/operations/elementwise.hpp"

namespace dstune {
namespace {

constexpr MemoryCategory kCategory = MemoryCategory::optimizer;

}  // namespace

bool SwappedSubGroup::has_gradients() const {
  return !kept.empty() || std::any_of(files.begin(), files.end(),
                                      [](const GradientFile& file) { return file.is_written; });
}

OptimizerSwapper::OptimizerSwapper(Device& device, const StepConfig& config,
                                   const ShardLayout& layout, int rank)
    : device_(device),
      layout_(layout),
      reads_ahead_(config.pipeline_read),
      writes_behind_(config.pipeline_write),
      states_(static_cast<std::size_t>(state_tensors_on_host(config.optimizer))),
      rules_(config.aio),
      groups_(layout.sub_groups().size()),
      drive_(device, config.optimizer_nvme_path),
      buffers_(device, swap_buffer_numel(layout, rules_), config.optimizer_buffer_count),
      writes_(drive_, config.aio),
      gradients_(device, buffers_, writes_) {
  if (reads_ahead_ || writes_behind_) reads_.emplace(drive_, config.aio);
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    if (rules_.is_swapped(layout.sub_groups()[group].numel)) reserve(group, rank);
  }
}

// DeepSpeed makes each file when it writes it first; where a drive has no room it goes on without.
void OptimizerSwapper::reserve(std::size_t group, int rank) {
  const SubGroup& members = layout_.sub_groups()[group];
  SwappedSubGroup& swapped = groups_[group].emplace();
  swapped.numel = members.numel;
  const auto file_of = [&](MemoryCategory category, std::int64_t numel) {
    return drive_.take(category, static_cast<Bytes>(numel) * size_of(DType::fp32));
  };
  swapped.master = file_of(kCategory, rules_.padded(members.numel));
  for (std::size_t i = 0; i < states_; ++i) {
    swapped.state.push_back(file_of(kCategory, rules_.padded(members.numel)));
  }
  for (const std::size_t tensor : members.tensors) {
    const std::int64_t numel = rules_.written(layout_.filled(tensor, rank));
    if (numel == 0) continue;
    swapped.files.push_back({layout_.offset(tensor) - members.offset, numel,
                             file_of(MemoryCategory::gradients, numel), false});
  }
}

void OptimizerSwapper::take(std::size_t group, const std::vector<GradientPiece>& gradients) {
  SwappedSubGroup& swapped = of(group);
  const auto keep = [&](GradientPiece piece) {
    const auto same = std::find_if(swapped.kept.begin(), swapped.kept.end(),
                                   [&](const auto& kept) { return kept.offset == piece.offset; });
    if (same != swapped.kept.end()) {
      *same = std::move(piece);
    } else {
      swapped.kept.push_back(std::move(piece));
    }
  };
  for (const GradientPiece& piece : gradients) {
    const auto file = std::find_if(swapped.files.begin(), swapped.files.end(),
                                   [&](const auto& each) { return each.offset == piece.offset; });
    const std::int64_t written = file == swapped.files.end() ? 0 : file->numel;
    if (written > 0) {
      gradients_.add(piece.tensor.slice(0, written), file->extent);
      file->is_written = true;
    }
    const std::int64_t left = piece.tensor.numel - written;
    if (left > 0) keep({piece.offset + written, piece.tensor.slice(written, left), piece.memory});
  }
}

Tensor OptimizerSwapper::elements(const Loaded& loaded, std::size_t place) const {
  return buffers_.tensor(loaded.buffers[place], groups_[loaded.group]->numel);
}

std::optional<std::size_t> OptimizerSwapper::after(std::size_t group) const {
  for (std::size_t next = group + 1; next < groups_.size(); ++next) {
    if (has(next)) return next;
  }
  return std::nullopt;
}

OptimizerSwapper::Loaded OptimizerSwapper::take_buffers(std::size_t group) {
  const SwappedSubGroup& swapped = of(group);
  const bool has_gradients = swapped.has_gradients();
  Loaded loaded{group, buffers_.take(swapped.tensors() + (has_gradients ? 1 : 0)), {}};
  if (has_gradients) loaded.gradients = elements(loaded, loaded.buffers.size() - 1);
  return loaded;
}

void OptimizerSwapper::read_tensors(const Loaded& loaded) {
  SwappedSubGroup& swapped = of(loaded.group);
  swapped.first_state = OptimizerState{Tier::pageable};
  const auto read = [&](const DriveExtent& file, std::size_t place) {
    reads().read(file, padded(swapped.numel, loaded.buffers[place]), TransferPurpose::state);
  };
  read(swapped.master, 0);
  for (std::size_t i = 1; i < swapped.tensors(); ++i) read(swapped.state[i - 1], i);
}

bool OptimizerSwapper::read_gradients(const Loaded& loaded) {
  bool has_any = false;
  for (const SwappedSubGroup::GradientFile& file : of(loaded.group).files) {
    if (!file.is_written) continue;
    reads().read(file.extent, loaded.gradients.slice(file.offset, file.numel),
                 TransferPurpose::gradient);
    has_any = true;
  }
  return has_any;
}

void OptimizerSwapper::bring_kept(const Loaded& loaded) {
  for (const GradientPiece& piece : of(loaded.group).kept) {
    device_.transfer({piece.tensor, loaded.gradients.slice(piece.offset, piece.tensor.numel),
                      Transfer::device_to_host, TransferPurpose::gradient, Tier::locked, true});
  }
}

OptimizerSwapper::Loaded OptimizerSwapper::start_to_read(std::size_t group) {
  Loaded loaded = take_buffers(group);
  read_tensors(loaded);
  read_gradients(loaded);
  bring_kept(loaded);
  return loaded;
}

OptimizerSwapper::Loaded OptimizerSwapper::swap_in(std::size_t group) {
  gradients_.finish();
  if (!is_pipelined()) {
    Loaded loaded = take_buffers(group);
    read_tensors(loaded);
    reads().wait();
    if (read_gradients(loaded)) reads().wait();
    bring_kept(loaded);
    return loaded;
  }
  Loaded loaded = read_ahead_ ? *std::exchange(read_ahead_, std::nullopt) : start_to_read(group);
  reads().wait();
  const auto next = after(group);
  if (reads_ahead_ && next) read_ahead_ = start_to_read(*next);
  return loaded;
}

void OptimizerSwapper::step(const Loaded& loaded, const NextUpdate& next) {
  SwappedSubGroup& swapped = of(loaded.group);
  std::array<Tensor, 2> state;
  if (swapped.has_state) {
    for (std::size_t i = 0; i < states_; ++i) state.at(i) = elements(loaded, i + 1);
  } else {
    swapped.first_state.ensure(device_, *next.optimizer, swapped.numel);
    state = swapped.first_state.tensors();
  }
  update_on_host(device_, next, {loaded.gradients, elements(loaded, 0)}, state);
}

void OptimizerSwapper::begin_state(std::size_t group, const TakeMaster& take_master) {
  Loaded loaded = swap_in(group);
  take_master({elements(loaded, 0), Tier::locked});
  swap_out(std::move(loaded));
}

void OptimizerSwapper::update(std::size_t group, const NextUpdate& next, double factor,
                              const TakeMaster& take_master) {
  Loaded loaded = swap_in(group);
  if (loaded.gradients.numel > 0) {
    device_.run_on_host(MemoryPass::unscale, Scale{loaded.gradients, factor});
    step(loaded, next);
  }
  take_master({elements(loaded, 0), Tier::locked});
  swap_out(std::move(loaded));
}

void OptimizerSwapper::write_tensors(const Loaded& loaded) {
  const SwappedSubGroup& swapped = of(loaded.group);
  for (std::size_t i = 0; i < swapped.tensors(); ++i) {
    writes_.write(padded(swapped.numel, loaded.buffers[i]),
                  i == 0 ? swapped.master : swapped.state[i - 1], TransferPurpose::state);
  }
}

void OptimizerSwapper::swap_out(Loaded loaded) {
  if (is_pipelined()) {
    write_behind(std::move(loaded));
  } else {
    write_and_wait(loaded);
  }
}

// What the buffers have is written before the first state, which is not in buffers yet.
void OptimizerSwapper::write_and_wait(Loaded& loaded) {
  SwappedSubGroup& swapped = of(loaded.group);
  write_tensors(loaded);
  writes_.wait();
  if (swapped.has_new_state()) write_first_state(loaded);
  swapped.first_state = OptimizerState{Tier::pageable};
  buffers_.give_back(loaded.buffers);
  swapped.kept.clear();
}

// DeepSpeed keeps the first state until the sub-group is read again.
void OptimizerSwapper::write_behind(Loaded loaded) {
  SwappedSubGroup& swapped = of(loaded.group);
  end_writing();
  swapped.kept.clear();
  if (swapped.has_new_state()) add_first_state(loaded);
  write_tensors(loaded);
  const bool waits = !writes_behind_ || !after(loaded.group);
  written_behind_ = std::move(loaded);
  if (waits) end_writing();
}

// The buffer of the gradients, which is not written, goes to the end.
void OptimizerSwapper::add_first_state(Loaded& loaded) {
  SwappedSubGroup& swapped = of(loaded.group);
  const Numbers more = buffers_.take(states_);
  const std::array<Tensor, 2> state = swapped.first_state.tensors();
  for (std::size_t i = 0; i < more.size(); ++i) {
    device_.run_on_host(Copy{state[i], buffers_.tensor(more[i], swapped.numel)});
  }
  loaded.buffers.insert(loaded.buffers.begin() + 1, more.begin(), more.end());
  swapped.has_state = true;
}

void OptimizerSwapper::end_writing() {
  if (!written_behind_) return;
  writes_.wait();
  buffers_.give_back(std::exchange(written_behind_, std::nullopt)->buffers);
}

void OptimizerSwapper::write_first_state(Loaded& loaded) {
  SwappedSubGroup& swapped = of(loaded.group);
  const std::array<Tensor, 2> state = swapped.first_state.tensors();
  const Numbers more = buffers_.take_all();
  write_through(more, states_, [&](std::size_t i, SwapBuffers::Number buffer) {
    device_.run_on_host(Copy{state[i], buffers_.tensor(buffer, swapped.numel)});
    return BufferedTensor{swapped.numel, swapped.state[i]};
  });
  loaded.buffers.insert(loaded.buffers.end(), more.begin(), more.end());
  swapped.has_state = true;
}

void OptimizerSwapper::begin_masters(
    const Groups& groups, const std::function<PlacedTensor(std::size_t group)>& parameters) {
  const Numbers all = buffers_.take_all();
  write_through(all, groups.size(), [&](std::size_t i, SwapBuffers::Number buffer) {
    const SwappedSubGroup& group = of(groups[i]);
    const Tensor place = buffers_.tensor(buffer, group.numel);
    copy_weights(device_, parameters(groups[i]), {place, Tier::locked});
    return BufferedTensor{group.numel, group.master};
  });
  buffers_.give_back(all);
}

void OptimizerSwapper::begin_masters_in_turns(
    Groups groups, const std::function<std::vector<PlacedTensor>(const Groups& left)>& bring) {
  const Numbers all = buffers_.take_all();
  while (!groups.empty()) {
    const std::vector<PlacedTensor> parameters = bring(groups);
    for (std::size_t written = 0; written < parameters.size();) {
      written += write_some(all, std::span(groups).subspan(written),
                            std::span(parameters).subspan(written));
    }
    groups.erase(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(parameters.size()));
  }
  buffers_.give_back(all);
}

std::size_t OptimizerSwapper::write_some(const Numbers& buffers,
                                         std::span<const std::size_t> groups,
                                         std::span<const PlacedTensor> parameters) {
  std::vector<std::int64_t> numels;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    numels.push_back(rules_.padded(parameters[i].tensor.numel));
  }
  const auto places = pack_into_buffers(numels, buffers.size(), buffers_.numel());
  std::vector<Tensor> filled;
  for (std::size_t i = 0; i < places.size(); ++i) {
    filled.push_back(buffers_.tensor(buffers[places[i].buffer], buffers_.numel())
                         .slice(places[i].begin, numels[i]));
    const std::int64_t numel = parameters[i].tensor.numel;
    copy_weights(device_, parameters[i], {filled.back().slice(0, numel), Tier::locked});
  }
  for (std::size_t i = 0; i < filled.size(); ++i) {
    writes_.write(filled[i], of(groups[i]).master, TransferPurpose::state);
  }
  writes_.wait();
  return filled.size();
}

void OptimizerSwapper::write_through(
    const Numbers& buffers, std::size_t count,
    const std::function<BufferedTensor(std::size_t, SwapBuffers::Number)>& fill) {
  for (std::size_t begin = 0; begin < count; begin += buffers.size()) {
    const std::size_t filled = std::min(buffers.size(), count - begin);
    std::vector<BufferedTensor> tensors;
    for (std::size_t i = 0; i < filled; ++i) tensors.push_back(fill(begin + i, buffers[i]));
    for (std::size_t i = 0; i < filled; ++i) {
      writes_.write(padded(tensors[i].numel, buffers[i]), tensors[i].file, TransferPurpose::state);
    }
    writes_.wait();
  }
}

void OptimizerSwapper::with_master(std::size_t group,
                                   const std::function<void(Tensor master)>& use) {
  gradients_.finish();
  const SwappedSubGroup& swapped = of(group);
  const Numbers one = buffers_.take(1);
  const Tensor place = padded(swapped.numel, one.front());
  writes_.read(swapped.master, place, TransferPurpose::state);
  writes_.wait();
  use(place.slice(0, swapped.numel));
  writes_.write(place, swapped.master, TransferPurpose::state);
  writes_.wait();
  buffers_.give_back(one);
}

}  // namespace dstune
