// A worker's end of a quiet TCP connection to rank 0: its kernel says at once that a process died.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/files/file.hpp"
#include "core/base/json_fwd.hpp"
#include "core/base/units.hpp"

namespace dstune {

/// Where rank 0 listens, and how the two ends know each other.
struct LifelineAddress {
  std::vector<std::string> hosts;  ///< numeric addresses of rank 0's host
  int port = 0;
  std::string token;   ///< what a worker says first
  std::string answer;  ///< all that rank 0 ever says, to the right token
};

json::object to_json(const LifelineAddress& address);
/// Inverse of to_json. @throws std::exception  if `object` is no LifelineAddress
LifelineAddress lifeline_address_from_json(const json::object& object);

/// The first words of a worker: token and rank, of a length that depends on the token alone.
std::string lifeline_greeting(std::string_view token, int rank);

/// Its word when it has read the answer, and its last one.
constexpr char kLifelineTaken = '!';

/// Sees to it that the kernel gives up a peer whose host does not answer for some 4 s.
void notice_a_silent_host(int socket) noexcept;

/// The connecting end. Never throws and never blocks; where no connection can be made (a firewall,
/// no route) it says nothing for ever, and heartbeats have to do.
class Lifeline {
 public:
  Lifeline(LifelineAddress address, int rank);

  /// True once rank 0's process is gone: the line to it was whole, broke, and its host says that
  /// nobody listens there any more. A line that broke otherwise is made again. To be called a few
  /// times a second, `now` from steady_now().
  bool is_rank0_gone(Seconds now);

  /// Waits until the line is whole, or `limit` seconds have passed: a death before that is unseen.
  void hurry(Seconds limit);

  /// Rank 0 has answered on the present connection.
  bool is_whole() const noexcept { return state_ == State::whole; }

 private:
  enum class State { apart, connecting, greeted, whole, given_up, rank0_gone };

  void start(Seconds now);
  void finish_connecting();
  void read_answer();
  void expect_silence();
  void failed(int error);

  LifelineAddress address_;
  std::string greeting_;
  FileHandle socket_;
  State state_ = State::apart;
  std::string heard_;
  std::size_t host_ = 0;
  std::optional<std::size_t> known_host_;  ///< rank 0 has answered there
  int attempts_ = 0;
  Seconds give_up_time_ = 0;
};

}  // namespace dstune
