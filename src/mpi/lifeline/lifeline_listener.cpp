#include "mpi/lifeline/lifeline_listener.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <utility>

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "core/base/text.hpp"

namespace dstune {

namespace {

constexpr std::size_t kMostGuests = 16;
constexpr std::size_t kMostHosts = 8;
constexpr Seconds kGuestPatience = 2;

/// A random text that cannot be guessed; "" if the system gives no random bytes.
std::string random_text() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return "";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += kDigits[byte / 16U];
    text += kDigits[byte % 16U];
  }
  return text;
}

/// The numeric address of an interface; "" for an interface that other hosts cannot reach.
std::string numeric(const ifaddrs& interface) {
  const sockaddr* address = interface.ifa_addr;
  if (address == nullptr || (interface.ifa_flags & IFF_UP) == 0) return "";
  if ((interface.ifa_flags & IFF_LOOPBACK) != 0 || address->sa_family != AF_INET) return "";
  std::array<char, NI_MAXHOST> text{};
  const int result = getnameinfo(address, sizeof(sockaddr_in), text.data(), text.size(), nullptr, 0,
                                 NI_NUMERICHOST);
  return result == 0 ? text.data() : "";
}

std::vector<std::string> addresses_of_this_host() {
  std::vector<std::string> hosts;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return hosts;
  for (const ifaddrs* one = all; one != nullptr && hosts.size() < kMostHosts; one = one->ifa_next) {
    const std::string text = numeric(*one);
    if (!text.empty()) hosts.push_back(text);
  }
  freeifaddrs(all);
  return hosts;
}

/// The most lines at once: half of the process's descriptors, because the journal and MPI need some
/// too.
std::size_t half_of_the_descriptors() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur / 2 : 0;
}

}  // namespace

LifelineListener::LifelineListener(int world_size)
    : lines_(static_cast<std::size_t>(world_size)), most_(half_of_the_descriptors()) {
  address_.token = random_text();
  address_.answer = random_text();
  if (address_.token.empty() || address_.answer.empty() || !listen()) return;
  address_.hosts = addresses_of_this_host();
}

bool LifelineListener::listen() {
  socket_.reset(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  // The kernel chooses the port.
  if (!socket_ || ::listen(socket_.get(), SOMAXCONN) != 0) return false;
  sockaddr_in own{};
  socklen_t size = sizeof own;
  if (getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) return false;
  address_.port = ntohs(own.sin_port);
  return true;
}

void LifelineListener::look(Seconds now) {
  if (socket_) let_in(now);
  guests_.remove_if([&](Guest& guest) { return is_done_with(guest) || now > guest.leave_time; });
  for (auto& line : lines_) {
    if (line.state == LineState::whole) check(line);
  }
}

void LifelineListener::let_in(Seconds now) {
  while (guests_.size() < kMostGuests && count_ + guests_.size() < most_) {
    FileHandle guest(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!guest) return;
    guests_.push_back({std::move(guest), "", 0, now + kGuestPatience});
  }
}

// A worker that gave up waiting for the answer has closed its end but is not dead. So a line counts
// only once the worker has said that it read the answer.
bool LifelineListener::is_done_with(Guest& guest) {
  const std::size_t length = lifeline_greeting(address_.token, 0).size();
  const std::size_t awaited = (guest.rank == 0 ? length : length + 1) - guest.heard.size();
  std::array<char, 64> buffer{};
  const auto got = recv(guest.socket.get(), buffer.data(), std::min(buffer.size(), awaited), 0);
  if (got < 0) return errno != EAGAIN && errno != EINTR;
  if (got == 0) return true;
  guest.heard.append(buffer.data(), static_cast<std::size_t>(got));
  if (guest.heard.size() == length) return !answer(guest);
  if (guest.heard.size() < length) return false;
  if (guest.heard.back() == kLifelineTaken) admit(guest);
  return true;
}

bool LifelineListener::answer(Guest& guest) const {
  const std::string_view digits = std::string_view(guest.heard).substr(address_.token.size());
  int rank = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (rank < 1 || rank >= static_cast<int>(lines_.size())) return false;
  if (guest.heard != lifeline_greeting(address_.token, rank)) return false;
  guest.rank = rank;
  const std::string& text = address_.answer;
  return send(guest.socket.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(text.size());
}

void LifelineListener::admit(Guest& guest) {
  notice_a_silent_host(guest.socket.get());
  Line& line = lines_[static_cast<std::size_t>(guest.rank)];
  if (!line.socket) ++count_;
  line = {std::move(guest.socket), LineState::whole};
}

void LifelineListener::check(Line& line) {
  char word = 0;
  const auto got = recv(line.socket.get(), &word, 1, 0);
  if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
  line = {FileHandle(), got == 0 ? LineState::closed : LineState::broken};
  --count_;
}

}  // namespace dstune
