// The transport over MPI. One mutex guards every call, so any MPI that supports threads will do; no call
// blocks.
#include "nodes/transport.h"

// Leave out the C++ bindings, which MPI has removed.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <array>
#include <chrono>
#include <list>
#include <map>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::nodes {

namespace {

void check(int status, const char* action) {
  if (status == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  fail(ErrorKind::resource, "MPI cannot {}: {}", action, std::string_view(text.data(), to_size(length)));
}

class MpiTransport final : public Transport {
 public:
  MpiTransport() {
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "start");
    if (provided < MPI_THREAD_SERIALIZED)
      fail(ErrorKind::unsupported, "this MPI supports only programs with one thread");
    check(MPI_Comm_dup(MPI_COMM_WORLD, &all_), "connect the nodes");
    check(MPI_Comm_set_errhandler(all_, MPI_ERRORS_RETURN), "connect the nodes");
    check(MPI_Comm_rank(all_, &rank_), "count the nodes");
    check(MPI_Comm_size(all_, &size_), "count the nodes");
    std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
    int length = 0;
    check(MPI_Get_processor_name(name.data(), &length), "name this machine");
    host_.assign(name.data(), to_size(length));
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string host() const override { return host_; }

  void send(int to, Channel channel, Message message) override {
    const std::lock_guard lock(mutex_);
    Leaving& leaving = leaving_.emplace_back(Leaving{std::move(message), MPI_REQUEST_NULL});
    check(MPI_Isend(leaving.message.data(), static_cast<int>(leaving.message.size()), MPI_BYTE, to,
                    static_cast<int>(channel), all_, &leaving.request),
          "send");
  }

  std::optional<Message> poll(int from, Channel channel) override {
    const std::lock_guard lock(mutex_);
    Arriving& arriving = arriving_[{from, channel}];
    if (!arriving.begun) {
      int found = 0;
      MPI_Message handle = MPI_MESSAGE_NULL;
      MPI_Status status;
      check(MPI_Improbe(from, static_cast<int>(channel), all_, &found, &handle, &status), "receive");
      if (found == 0) return std::nullopt;
      int bytes = 0;
      check(MPI_Get_count(&status, MPI_BYTE, &bytes), "receive");
      arriving.message.resize(to_size(bytes));
      check(MPI_Imrecv(arriving.message.data(), bytes, MPI_BYTE, &handle, &arriving.request), "receive");
      arriving.begun = true;
    }
    int done = 0;
    check(MPI_Test(&arriving.request, &done, MPI_STATUS_IGNORE), "receive");
    if (done == 0) return std::nullopt;
    arriving.begun = false;
    return std::move(arriving.message);
  }

  bool arriving(int from, Channel channel) override {
    const std::lock_guard lock(mutex_);
    return arriving_[{from, channel}].begun;
  }

  std::size_t progress() override {
    const std::lock_guard lock(mutex_);
    for (auto one = leaving_.begin(); one != leaving_.end();) {
      int done = 0;
      check(MPI_Test(&one->request, &done, MPI_STATUS_IGNORE), "send");
      one = done != 0 ? leaving_.erase(one) : std::next(one);
    }
    return leaving_.size();
  }

  void close() override {
    using namespace std::chrono_literals;
    constexpr auto kPatience = 5s;
    for (const auto start = std::chrono::steady_clock::now(); progress() > 0;) {
      if (std::chrono::steady_clock::now() - start > kPatience) return;
      std::this_thread::sleep_for(1ms);
    }
    check(MPI_Comm_free(&all_), "part");
    check(MPI_Finalize(), "part");
  }

 private:
  struct Leaving {
    Message message;
    MPI_Request request;
  };
  struct Arriving {
    bool begun = false;
    Message message;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  std::mutex mutex_;
  MPI_Comm all_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  std::string host_;
  std::list<Leaving> leaving_;  // MPI reads them in place
  std::map<std::pair<int, Channel>, Arriving> arriving_;
};

}  // namespace

std::unique_ptr<Transport> join_mpi() {
  return std::make_unique<MpiTransport>();
}

}  // namespace sluice::nodes
