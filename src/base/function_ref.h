// A reference to a callable, valid during one call: std::function without ownership or allocation.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace sluice {

template <class Signature>
class FunctionRef;

template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  // Implicit, so that a lambda can be passed where a FunctionRef is expected; the lambda must outlive the
  // call.
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
           std::is_invocable_r_v<Result, F&, Args...> && std::is_class_v<std::remove_cvref_t<F>>)
      FunctionRef(F&& function)  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}

  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

}  // namespace sluice
