// Messages between rank 0 and the workers: tagged JSON texts whose sender never blocks.
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
  // Messages from a worker to rank 0:
  hello,    ///< who the worker is (WorkerInfo)
  ready,    ///< {id}: the worker waits for go
  outcome,  ///< {id, outcome}
  /// {id, reason[, outcome]}: an exception ended the experiment on this rank; the outcome
  /// Failed{device_lost} says that the rank can run no other experiment either.
  failed,
  idle,       ///< {id, oom_kills}: the worker is done with this experiment, whatever came of it
  heartbeat,  ///< {oom_kills}: the worker is alive; rank 0 sends workers the same without content
  bye,        ///< {}: the worker obeys stop
  // Messages from rank 0 to a worker:
  welcome,     ///< who rank 0 is (WorkerInfo[, lifeline address])
  experiment,  ///< {id, ranks, experiment}: get ready
  go,          ///< {id, tag}: all ranks are ready; tag names their group
  abort,       ///< {id}: end this experiment
  forget,      ///< {tag}: this group will not be used again
  stop,        ///< {}: the run is over; the worker must say bye
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
/// A text travels in pieces below MPI's eager limit. A piece arrives completely or not at all, so
/// that neither end ever waits for a peer that died while it sent or received one.
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
  /// By sender: the text so far of a message that is not complete.
  std::map<int, std::string> partial_;
};

}  // namespace dstune
