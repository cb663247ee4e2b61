// Ordering a device's ops behind work that other libraries have queued on streams of their own.
#pragma once

namespace sluice::ops {

// A backend that computes on a device also implements this interface: use dynamic_cast.
class StreamOrder {
 public:
  virtual ~StreamOrder() = default;
  // The device's CUDA number.
  virtual int device() const = 0;
  // Ops that are run after this call wait, on the device, for the work that is in the stream (a cudaStream_t
  // of that device) at the time of the call.
  virtual void wait_for(void* stream) = 0;
};

}  // namespace sluice::ops
