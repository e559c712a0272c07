#include "mpi/base/messages.hpp"

#include <algorithm>
#include <string_view>

#include <boost/json/parse.hpp>

#include "core/base/text.hpp"
#include "mpi/base/check.hpp"

namespace dstune {

namespace {

// The size of a piece in bytes: half of the smallest eager limit of Open MPI's transports (shared
// memory, 4 KiB).
constexpr std::size_t kPieceSize = 2048;
constexpr char kMore = '+';
constexpr char kLast = '.';

}  // namespace

Mailbox::~Mailbox() {
  try {
    forget_sent();
  } catch (const MpiError&) {
    // MPI may still read the texts that are left in sent_, so that they are leaked below.
  }
  if (!sent_->empty()) (void)sent_.release();
}

void Mailbox::send(int to, MessageKind kind, const json::object& content) {
  forget_sent();
  const std::string text = to_json_text(content, 0);
  std::string_view rest = text;
  do {
    const std::string_view part = rest.substr(0, kPieceSize);
    rest.remove_prefix(part.size());
    Piece& piece = sent_->emplace_back();
    piece.text = concat(rest.empty() ? kLast : kMore, part);
    // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker): tested by forget_sent()
    DSTUNE_MPI_CHECK(MPI_Isend(piece.text.data(), static_cast<int>(piece.text.size()), MPI_CHAR, to,
                               static_cast<int>(kind), communicator_->get(), &piece.request));
  } while (!rest.empty());
}

void Mailbox::forget_sent() {
  for (auto piece = sent_->begin(); piece != sent_->end();) {
    int done = 0;
    DSTUNE_MPI_CHECK(MPI_Test(&piece->request, &done, MPI_STATUS_IGNORE));
    piece = done != 0 ? sent_->erase(piece) : std::next(piece);
  }
}

std::optional<Message> Mailbox::receive() {
  while (true) {
    int found = 0;
    MPI_Message handle = MPI_MESSAGE_NULL;
    MPI_Status status{};
    DSTUNE_MPI_CHECK(
        MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, communicator_->get(), &found, &handle, &status));
    if (found == 0) return std::nullopt;
    if (auto message = take(handle, status)) return message;
  }
}

std::optional<Message> Mailbox::take(MPI_Message handle, const MPI_Status& status) {
  int size = 0;
  DSTUNE_MPI_CHECK(MPI_Get_count(&status, MPI_CHAR, &size));
  std::string piece(static_cast<std::size_t>(size), '\0');
  DSTUNE_MPI_CHECK(MPI_Mrecv(piece.data(), size, MPI_CHAR, &handle, MPI_STATUS_IGNORE));
  if (piece.empty() || status.MPI_TAG >= kMessageKinds) {
    throw MpiError(concat("rank ", status.MPI_SOURCE, " sent something that is not a message"));
  }
  std::string& text = partial_[status.MPI_SOURCE];
  text.append(piece, 1);
  if (piece.front() == kMore) return std::nullopt;
  Message message{static_cast<MessageKind>(status.MPI_TAG), status.MPI_SOURCE, {}};
  message.content = json::parse(text).as_object();
  text.clear();
  return message;
}

}  // namespace dstune
