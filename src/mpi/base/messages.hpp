// Messages between rank 0 and the workers: tagged JSON texts that never block the sender.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <mpi.h>

#include "core/base/json.hpp"
#include "mpi/base/communicator.hpp"

namespace dstune {

enum class MessageKind {
  // a worker to rank 0
  hello,      ///< who it is (WorkerInfo)
  ready,      ///< {id}: waits for go
  outcome,    ///< {id, outcome}
  failed,     ///< {id, reason[, outcome]}: an exception ended the experiment on this rank;
              ///< Failed{device_lost} as outcome: it can run no other either
  idle,       ///< {id, oom_kills}: done with this experiment, whatever came of it
  heartbeat,  ///< {oom_kills}: also from rank 0 to a worker, without content
  bye,        ///< {}: obeys stop
  // rank 0 to a worker
  welcome,     ///< who rank 0 is (WorkerInfo[, lifeline])
  experiment,  ///< {id, ranks, experiment}: get ready
  go,          ///< {id, tag}: all ranks are ready; tag names their group
  abort,       ///< {id}
  forget,      ///< {tag}: this group will not be used again
  stop,        ///< {}: the run is over, say bye
  leave,       ///< {finalize}: what to do after bye
};

constexpr int kMessageKinds = 14;

struct Message {
  MessageKind kind = MessageKind::heartbeat;
  int from = 0;
  json::object content;
};

/// Sends and receives messages of one communicator. Messages of one sender arrive in their order.
///
/// A text travels in pieces below MPI's eager limit: a piece is there completely or not at all, so
/// that neither end ever waits for a peer that died in the middle of one.
class Mailbox {
 public:
  explicit Mailbox(const Communicator& communicator) : communicator_(&communicator) {}
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// Never blocks. @throws MpiError
  void send(int to, MessageKind kind, const json::object& content = {});

  /// The next complete message, if there is one. @throws MpiError
  std::optional<Message> receive();

 private:
  struct Piece {
    std::string text;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  void forget_sent();
  std::optional<Message> take(MPI_Message handle, const MPI_Status& status);

  const Communicator* communicator_;
  std::unique_ptr<std::list<Piece>> sent_ = std::make_unique<std::list<Piece>>();
  std::map<int, std::string> partial_;  ///< by sender: pieces of a message that is not complete
};

}  // namespace dstune
