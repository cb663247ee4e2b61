#include "backend/cuda/runtime/meeting.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/error.h"
#include "base/integer_cast.h"

namespace sluice::backend::cuda {

namespace {

constexpr std::size_t kMarks = 4096;  // at most in flight: older ones have long completed

int words(const ops::ConstView& view) {
  const auto bytes = to_size(view.elements()) * size_bytes(view.dtype);
  if (!view.present()) return 0;
  if (bytes % 4 != 0 || !view.contiguous())
    fail(ErrorKind::internal, "a meeting exchanges contiguous 4-byte words, not {} bytes", bytes);
  return to_int(bytes / 4);
}

const unsigned* data(const ops::ConstView& view) {
  return static_cast<const unsigned*>(view.data);
}

class CudaMeeting final : public ops::Meeting {
 public:
  CudaMeeting(Context& context, const Room& room)
      : context_(context),
        room_(room),
        flags_memory_(allocate_pinned(sizeof(MeetingFlags))),
        outbox_(allocate_pinned(std::max<std::size_t>(room.shown, 4))),
        guess_outbox_(allocate_pinned(std::max<std::size_t>(room.guess, 4))),
        inbox_(allocate_pinned(std::max<std::size_t>(room.answer, 4))),
        row_numbers_(allocate_pinned(std::max<std::size_t>(room.answer, 4))),
        row_inbox_(allocate_pinned(std::max<std::size_t>(room.rows, 4))),
        marks_(allocate_pinned(kMarks * sizeof(unsigned))),
        counts_(allocate_device(2 * sizeof(unsigned))),
        flags_(new (flags_memory_.data()) MeetingFlags) {
    check(cudaStreamCreateWithFlags(&uploads_, cudaStreamNonBlocking), "making a stream");
    clear_counts();
  }
  ~CudaMeeting() override {
    cudaStreamSynchronize(uploads_);
    cudaStreamDestroy(uploads_);
  }
  CudaMeeting(const CudaMeeting&) = delete;
  CudaMeeting& operator=(const CudaMeeting&) = delete;

  void publish_and_await(const ops::ConstView& chosen, const ops::ConstView& inputs,
                         const ops::View& places) override {
    MeetingCall call = empty_call();
    put(call, room_.shown, chosen, inputs);
    take(call, places);
    launch_meeting(context_, call);
  }
  void publish_choices(const ops::ConstView& chosen, const ops::ConstView& inputs) override {
    MeetingCall call = empty_call();
    put(call, room_.shown, chosen, inputs);
    call.waits = false;
    launch_meeting(context_, call);
  }
  void await_slots(const ops::ConstView& guessed, const ops::View& places) override {
    MeetingCall call = empty_call();
    call.outbox = static_cast<unsigned*>(guess_outbox_.data());
    call.raised = &flags_->guessed;
    put(call, room_.guess, guessed, {});
    take(call, places);
    launch_meeting(context_, call);
  }
  void await_rows(const ops::View& out) override {
    MeetingCall call = empty_call();
    call.rows = static_cast<unsigned*>(out.data);
    call.row_count = words(out) / to_int(std::max<std::int64_t>(out.dim(0), 1));
    launch_meeting(context_, call);
  }

  const std::byte* wait() override {
    ++number_;
    wait_for(flags_->shown);
    return static_cast<const std::byte*>(outbox_.data());
  }
  const std::byte* guess() override {
    wait_for(flags_->guessed);
    return static_cast<const std::byte*>(guess_outbox_.data());
  }
  void upload(void* to, const void* from, std::size_t bytes) override {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, uploads_), "copying to the device");
  }
  std::uint32_t mark() override {
    ++mark_;
    auto* source = static_cast<unsigned*>(marks_.data()) + mark_ % kMarks;
    *source = mark_;
    auto* uploaded = static_cast<unsigned*>(counts_.data()) + 1;
    check(cudaMemcpyAsync(uploaded, source, sizeof(unsigned), cudaMemcpyHostToDevice, uploads_),
          "copying to the device");
    return mark_;
  }
  void finish_uploads() override { check(cudaStreamSynchronize(uploads_), "copying to the device"); }
  void send_slots(std::span<const std::int32_t> places, std::uint32_t mark) override {
    std::memcpy(inbox_.data(), places.data(), places.size_bytes());
    flags_->mark = mark;
    go_on(number_);
  }
  std::byte* rows() override { return static_cast<std::byte*>(row_inbox_.data()); }
  void send_rows(std::span<const std::int32_t> rows) override {
    std::memcpy(row_numbers_.data(), rows.data(), rows.size_bytes());
    flags_->rows = to_unsigned(rows.size());
    go_on(number_);
  }
  void abandon() override {
    go_on(number_ + kLeft);
    finish_uploads();
    clear_counts();
    *flags_ = {};
    number_ = 0;
    mark_ = 0;
  }

 private:
  MeetingCall empty_call() const {
    MeetingCall call;
    call.flags = flags_;
    call.begun = static_cast<unsigned*>(counts_.data());
    call.uploaded = call.begun + 1;
    call.outbox = static_cast<unsigned*>(outbox_.data());
    call.raised = &flags_->shown;
    call.inbox = static_cast<const unsigned*>(inbox_.data());
    call.row_numbers = static_cast<const unsigned*>(row_numbers_.data());
    call.row_inbox = static_cast<const unsigned*>(row_inbox_.data());
    return call;
  }
  static void put(MeetingCall& call, std::size_t room, const ops::ConstView& first,
                  const ops::ConstView& second) {
    call.shown[0] = data(first);
    call.shown_count[0] = words(first);
    call.shown[1] = data(second);
    call.shown_count[1] = words(second);
    if (4 * to_size(call.shown_count[0] + call.shown_count[1]) > room)
      fail(ErrorKind::internal, "a meeting publishes {} + {} words, which is more than it has room for",
           call.shown_count[0], call.shown_count[1]);
  }
  void take(MeetingCall& call, const ops::View& places) const {
    call.answer = static_cast<unsigned*>(places.data);
    call.answer_count = words(places);
    if (4 * to_size(call.answer_count) > room_.answer)
      fail(ErrorKind::internal, "a meeting awaits {} words, which is more than it has room for",
           call.answer_count);
  }
  void wait_for(unsigned& flag) {
    const std::atomic_ref<unsigned> raised(flag);
    for (unsigned looks = 1; raised.load(std::memory_order_acquire) != number_; ++looks)
      if (looks % 65536 == 0) check_running(raised);
  }
  void go_on(unsigned number) {
    std::atomic_ref<unsigned>(flags_->answered).store(number, std::memory_order_release);
  }
  void clear_counts() {
    check(cudaMemsetAsync(counts_.data(), 0, counts_.bytes(), context_.stream()), "clearing counters");
    check(cudaStreamSynchronize(context_.stream()), "running on the device");
  }
  // A device that failed never raises the flag.
  void check_running(const std::atomic_ref<unsigned>& raised) const {
    const cudaError_t status = cudaStreamQuery(context_.stream());
    if (status == cudaErrorNotReady) return;
    check(status, "running on the device");
    if (raised.load(std::memory_order_acquire) != number_)
      fail(ErrorKind::internal, "a program ended before meeting {} with the host", number_);
  }

  Context& context_;
  Room room_;
  ops::Buffer flags_memory_;
  ops::Buffer outbox_;
  ops::Buffer guess_outbox_;
  ops::Buffer inbox_;
  ops::Buffer row_numbers_;
  ops::Buffer row_inbox_;
  ops::Buffer marks_;
  ops::Buffer counts_;  // on the device: meetings begun, and the last mark whose uploads are complete
  MeetingFlags* flags_;
  cudaStream_t uploads_ = nullptr;
  unsigned number_ = 0;  // of the current meeting
  unsigned mark_ = 0;
};

}  // namespace

std::unique_ptr<ops::Meeting> make_meeting(Context& context, const ops::Meeting::Room& room) {
  return std::make_unique<CudaMeeting>(context, room);
}

}  // namespace sluice::backend::cuda
