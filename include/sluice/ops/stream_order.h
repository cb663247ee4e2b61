// Ordering a device's ops behind work that other libraries have queued on streams of their own.
#pragma once

namespace sluice::ops {

// A backend that computes on a device is one of these as well: dynamic_cast finds out.
class StreamOrder {
 public:
  virtual ~StreamOrder() = default;
  // The device's number, as CUDA counts.
  virtual int device() const = 0;
  // Ops that are run after this call wait, on the device, for what the stream (a cudaStream_t of that device)
  // holds now.
  virtual void wait_for(void* stream) = 0;
};

}  // namespace sluice::ops
