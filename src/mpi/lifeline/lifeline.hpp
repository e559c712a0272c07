// A worker's end of a quiet TCP connection to rank 0. When the process at one end dies, its kernel
// tells the other end at once.
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
  std::string token;   ///< the first text that a worker sends
  std::string answer;  ///< the only text that rank 0 ever sends, as a reply to the right token
};

json::object to_json(const LifelineAddress& address);
/// Inverse of to_json. @throws std::exception  if `object` is no LifelineAddress
LifelineAddress lifeline_address_from_json(const json::object& object);

/// The first text of a worker: token and rank. Its length depends on the token alone.
std::string lifeline_greeting(std::string_view token, int rank);

/// The second and last text of a worker, which says that it has read the answer.
constexpr char kLifelineTaken = '!';

/// Makes the kernel give up a peer whose host does not answer for some 4 s.
void notice_a_silent_host(int socket) noexcept;

/// The connecting end. Only hurry() blocks, and nothing throws. Where no connection can be made (a
/// firewall, no route), is_rank0_gone() stays false for ever, and only heartbeats show whether rank
/// 0 lives.
class Lifeline {
 public:
  Lifeline(LifelineAddress address, int rank);

  /// True once rank 0's process is gone: the line was whole and broke, and rank 0's host refuses a
  /// new one because nobody listens there any more. A line that broke otherwise is made again. Call
  /// it a few times a second, with `now` from steady_now().
  bool is_rank0_gone(Seconds now);

  /// Waits until the line is whole, at most `limit` seconds: a death of rank 0 before that goes
  /// unseen.
  void hurry(Seconds limit);

  /// True if rank 0 has answered on the present connection.
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
  /// The index in `hosts` of the address at which rank 0 has answered.
  std::optional<std::size_t> known_host_;
  int attempts_ = 0;
  Seconds give_up_time_ = 0;
};

}  // namespace dstune
