#include "mpi/collectives/mpi_group.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/base/text.hpp"

namespace dstune {

MpiGroup::MpiGroup(const std::vector<int>& ranks, int tag, WorkerLink& link)
    : communicator_(Communicator::create(ranks, tag)),
      members_(ranks),
      link_(&link),
      transfers_(communicator_.get(), [this] { link_->poll(); }) {}

std::string MpiGroup::name_of_this_rank() const {
  return concat("rank ", members_.at(static_cast<std::size_t>(rank())));
}

void MpiGroup::broadcast(std::span<std::byte> data, int root) {
  link_->poll();
  if (size() == 1) return;
  for (; !data.empty(); data = data.subspan(std::min(data.size(), Transfers::kSlotSize))) {
    const auto part = data.first(std::min(data.size(), Transfers::kSlotSize));
    if (rank() == root) std::memcpy(transfers_.slot(0), part.data(), part.size());
    transfers_.broadcast(0, part.size(), root);
    transfers_.wait(0);
    if (rank() != root) std::memcpy(part.data(), transfers_.slot(0), part.size());
  }
}

bool MpiGroup::vote(bool ok) {
  link_->poll();
  if (size() == 1) return ok;
  const int mine = ok ? 1 : 0;
  std::memcpy(transfers_.slot(0), &mine, sizeof mine);
  transfers_.all_reduce(0, 1, MPI_INT, MPI_MIN);
  transfers_.wait(0);
  int all = 0;
  std::memcpy(&all, transfers_.slot(0), sizeof all);
  return all != 0;
}

std::vector<std::string> MpiGroup::gather(const std::string& text) {
  link_->poll();
  if (rank() != 0) {
    send_text(text);
    return {};
  }
  std::vector<std::string> texts = {text};
  for (int from = 1; from < size(); ++from) texts.push_back(receive_text(from));
  return texts;
}

void MpiGroup::send_text(const std::string& text) {
  const std::uint64_t size = text.size();
  std::memcpy(transfers_.slot(0), &size, sizeof size);
  transfers_.send(0, sizeof size, 0);
  transfers_.wait(0);
  for (std::size_t begin = 0; begin < text.size(); begin += Transfers::kSlotSize) {
    const std::size_t part = std::min(text.size() - begin, Transfers::kSlotSize);
    std::memcpy(transfers_.slot(0), text.data() + begin, part);
    transfers_.send(0, part, 0);
    transfers_.wait(0);
  }
}

std::string MpiGroup::receive_text(int from) {
  std::uint64_t size = 0;
  transfers_.receive(0, sizeof size, from);
  transfers_.wait(0);
  std::memcpy(&size, transfers_.slot(0), sizeof size);
  std::string text(size, '\0');
  for (std::size_t begin = 0; begin < text.size(); begin += Transfers::kSlotSize) {
    const std::size_t part = std::min(text.size() - begin, Transfers::kSlotSize);
    transfers_.receive(0, part, from);
    transfers_.wait(0);
    std::memcpy(text.data() + begin, transfers_.slot(0), part);
  }
  return text;
}

MpiGroup& GroupCache::get(int tag, const std::vector<int>& ranks) {
  auto& group = groups_[tag];
  if (!group) {
    try {
      group = std::make_unique<MpiGroup>(ranks, tag, *link_);
    } catch (...) {
      groups_.erase(tag);
      throw;
    }
  }
  return *group;
}

}  // namespace dstune
