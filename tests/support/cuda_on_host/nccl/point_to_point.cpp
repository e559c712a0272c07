// Messages between two ranks of a communicator.
#include <cstring>
#include <string>

#include "tests/support/cuda_on_host/fault.hpp"
#include "tests/support/cuda_on_host/machine_state.hpp"
#include "tests/support/cuda_on_host/nccl/clique.hpp"
#include "tests/support/cuda_on_host/nccl/processes.hpp"

namespace cuda_on_host {
namespace {

using Letter = std::shared_ptr<Mail>;

/// Letters on their way; their counts of owners are not observed.
struct Letters {
  std::vector<Letter> sent;
  Letter received;
  ~Letters() {
    const Unobserved unobserved;
    sent.clear();
    received.reset();
  }
};

void post(const Rank& rank, const Transfer& transfer, Letters& letters) {
  Letter letter;
  {
    const Unobserved unobserved;
    letter = std::make_shared<Mail>();
    letter->data = transfer.data;
    letter->count = transfer.count;
    letter->bytes = transfer.count * size_of(transfer.type);
    letter->type = transfer.type;
  }
  happens_before(&letter->sent);
  const Locked locked;
  rank.clique->mail[{rank.rank, transfer.peer}].push_back(letter);
  letters.sent.push_back(std::move(letter));
  state().changed.notify_all();
}

/// Takes the next letter of the peer; false if this rank aborts first.
bool take(const Rank& rank, const Transfer& transfer, Letters& letters) {
  Locked locked;
  auto& box = rank.clique->mail[{transfer.peer, rank.rank}];
  locked.wait_until([&] { return !box.empty() || rank.aborted; });
  if (rank.aborted) return false;
  letters.received = box.front();
  letters.received->taken = true;
  box.pop_front();
  const Mail& mail = *letters.received;
  if (mail.count != transfer.count || mail.type != transfer.type) {
    misuse("messages do not match: rank " + std::to_string(transfer.peer) + ": ncclSend of " +
           std::to_string(mail.count) + " elements of type " + std::to_string(mail.type) +
           "; rank " + std::to_string(rank.rank) + ": ncclRecv of " +
           std::to_string(transfer.count) + " elements of type " + std::to_string(transfer.type));
  }
  return true;
}

bool receive(const Rank& rank, const Transfer& transfer, Letters& letters) {
  if (!take(rank, transfer, letters)) return false;
  Mail& mail = *letters.received;
  happens_after(&mail.sent);
  if (mail.bytes > 0) std::memmove(transfer.data, mail.data, mail.bytes);
  happens_before(&mail.received);
  const Locked locked;
  mail.done = true;
  state().changed.notify_all();
  return true;
}

/// What no rank has taken is taken back if this rank aborts.
bool wait_for_receipt(const Rank& rank, Mail& mail) {
  {
    Locked locked;
    locked.wait_until([&] { return mail.done || (rank.aborted && !mail.taken); });
    if (!mail.done) {
      for (auto& [ends, box] : rank.clique->mail) {
        std::erase_if(box, [&](const Letter& letter) { return letter.get() == &mail; });
      }
      return false;
    }
  }
  happens_after(&mail.received);
  return true;
}

}  // namespace

void run_transfers(const std::shared_ptr<Rank>& rank, const std::vector<Transfer>& transfers) {
  {
    const Locked locked;
    if (rank->aborted) return;
  }
  if (!rank->clique->folder.empty()) return run_transfers_of_processes(*rank, transfers);
  Letters letters;
  for (const Transfer& transfer : transfers) {
    if (transfer.sends) post(*rank, transfer, letters);
  }
  for (const Transfer& transfer : transfers) {
    if (!transfer.sends && !receive(*rank, transfer, letters)) break;
    const Unobserved unobserved;
    letters.received.reset();
  }
  for (const Letter& letter : letters.sent) wait_for_receipt(*rank, *letter);
}

}  // namespace cuda_on_host
