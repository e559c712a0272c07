#include "mpi/lifeline/lifeline.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "core/base/json.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "mpi/base/waiting.hpp"

namespace dstune {

namespace {

constexpr Seconds kPatience = 2;  // how long to wait for an answer from one address
// Lines are tried so often because the listener may refuse for a while (too many workers at once),
// and a cut link may come back.
constexpr int kMostAttempts = 40;
constexpr std::size_t kRankDigits = 10;

void set_option(int socket, int level, int name, int value) noexcept {
  setsockopt(socket, level, name, &value, sizeof value);
}

/// A socket that is connected or about to be; null, with errno set, if it cannot be.
FileHandle begin_to_connect(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;  // numeric, so that no name server is asked
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    errno = EINVAL;
    return {};
  }
  FileHandle file(socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const bool begun =
      file && (connect(file.get(), found->ai_addr, found->ai_addrlen) == 0 || errno == EINPROGRESS);
  const int error = errno;
  freeaddrinfo(found);
  if (!begun) file.reset();
  errno = error;
  return file;
}

}  // namespace

json::object to_json(const LifelineAddress& address) {
  return {{"hosts", json::array(address.hosts.begin(), address.hosts.end())},
          {"port", address.port},
          {"token", address.token},
          {"answer", address.answer}};
}

LifelineAddress lifeline_address_from_json(const json::object& object) {
  LifelineAddress address;
  for (const auto& host : object.at("hosts").as_array()) {
    address.hosts.emplace_back(host.as_string());
  }
  address.port = object.at("port").to_number<int>();
  address.token = std::string(object.at("token").as_string());
  address.answer = std::string(object.at("answer").as_string());
  return address;
}

std::string lifeline_greeting(std::string_view token, int rank) {
  const std::string digits = std::to_string(rank);
  return concat(token, std::string(kRankDigits - digits.size(), '0'), digits);
}

void notice_a_silent_host(int socket) noexcept {
  constexpr int kMilliseconds = 4000;
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 2);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kMilliseconds);
}

Lifeline::Lifeline(LifelineAddress address, int rank)
    : address_(std::move(address)), greeting_(lifeline_greeting(address_.token, rank)) {
  if (address_.hosts.empty()) state_ = State::given_up;
}

bool Lifeline::is_rank0_gone(Seconds now) {
  if (state_ == State::apart) {
    start(now);
  } else if (state_ == State::connecting) {
    finish_connecting();
  } else if (state_ == State::greeted) {
    read_answer();
  } else if (state_ == State::whole) {
    expect_silence();
  }
  const bool waiting = state_ == State::connecting || state_ == State::greeted;
  if (waiting && now > give_up_time_) failed(ETIMEDOUT);
  return state_ == State::rank0_gone;
}

void Lifeline::hurry(Seconds limit) {
  const Seconds begin = steady_now();
  for (Backoff backoff; !is_whole() && state_ != State::given_up; backoff.pause()) {
    const Seconds now = steady_now();
    if (now - begin > limit || is_rank0_gone(now)) return;
  }
}

void Lifeline::start(Seconds now) {
  give_up_time_ = now + kPatience;
  ++attempts_;
  heard_.clear();
  socket_ = begin_to_connect(address_.hosts.at(host_), address_.port);
  if (!socket_) return failed(errno);
  notice_a_silent_host(socket_.get());
  state_ = State::connecting;
}

void Lifeline::finish_connecting() {
  pollfd look{socket_.get(), POLLOUT, 0};
  if (poll(&look, 1, 0) <= 0) return;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) return failed(error);
  const auto sent = send(socket_.get(), greeting_.data(), greeting_.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(greeting_.size())) return failed(EPIPE);
  state_ = State::greeted;
}

void Lifeline::read_answer() {
  std::array<char, 64> buffer{};
  const auto most = std::min(buffer.size(), address_.answer.size() - heard_.size());
  const auto got = recv(socket_.get(), buffer.data(), most, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return failed(got == 0 ? EPIPE : errno);
  heard_.append(buffer.data(), static_cast<std::size_t>(got));
  if (heard_.size() < address_.answer.size()) return;
  if (heard_ != address_.answer) return failed(EPROTO);
  if (send(socket_.get(), &kLifelineTaken, 1, MSG_NOSIGNAL) != 1) return failed(EPIPE);
  known_host_ = host_;
  state_ = State::whole;
  attempts_ = 0;
  log_debug(concat("rank 0 answers at ", address_.hosts[host_], " port ", address_.port));
}

void Lifeline::expect_silence() {
  char word = 0;
  const auto got = recv(socket_.get(), &word, 1, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  failed(got < 0 ? errno : EPIPE);
}

// Only "connection refused" by the host where rank 0 has answered before proves that rank 0 is
// gone: every other cause of a broken line (a firewall that forgets it, a link that is cut) can
// also break it while rank 0 lives.
void Lifeline::failed(int error) {
  socket_.reset();
  state_ = State::apart;
  if (known_host_ && error == ECONNREFUSED) {
    state_ = State::rank0_gone;
    return;
  }
  if (!known_host_) host_ = (host_ + 1) % address_.hosts.size();
  if (attempts_ < kMostAttempts) return;
  state_ = State::given_up;
  log_debug("no connection to rank 0; relying on heartbeats");
}

}  // namespace dstune
