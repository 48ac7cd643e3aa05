// The C ABI: tensors, sessions, runs.
#include <algorithm>
#include <cmath>

#include "api/c_handles.h"
#include "api/dlpack.h"
#include "polyphase/dlpack.h"

namespace polyphase::api {
namespace {

constexpr double longest_timeout_seconds = 1e9;  // 30 years: beyond the clock's range lies not far

Result<RunOptions> run_options_of(const polyphase_run_options* given) {
  TRY(const polyphase_run_options options, options_of(given));
  RunOptions out;
  if (options.cancel != nullptr) out.cancelled = &options.cancel->requested;
  if (std::isnan(options.timeout_seconds) || options.timeout_seconds < 0) {
    return Error{
        ErrorCode::invalid_argument,
        "the timeout is " + std::to_string(options.timeout_seconds) + " seconds; expected 0 for none, or more.",
        "Set timeout_seconds to 0 or more."};
  }
  if (options.timeout_seconds > 0) {
    const std::chrono::duration<double> span(std::min(options.timeout_seconds, longest_timeout_seconds));
    out.deadline = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(span);
  }
  return out;
}

using Views = std::vector<TensorView>;

Result<Views> views_of(std::size_t count, const DLManagedTensorVersioned* const* tensors, const char* word,
                       bool with_data) {
  if (count > 0 && tensors == nullptr) return null_argument(word);
  Views out;
  for (std::size_t i = 0; i < count; ++i) {
    const auto which = std::string("while reading ") + word + "[" + std::to_string(i) + "]";
    if (tensors[i] == nullptr) return null_argument(word).within(which);
    auto view = with_data ? view_of_dlpack(*tensors[i]) : dlpack_shape(*tensors[i]);
    if (!view.ok()) return std::move(view).error().within(which);
    out.push_back(std::move(view).value());
  }
  return out;
}

Result<void> expect_count(const polyphase_session& session, std::size_t count) {
  const std::size_t expected = session.session.engine().outputs().size();
  if (count == expected) return {};
  return Error{
      ErrorCode::invalid_argument,
      "the model gives " + std::to_string(expected) + " outputs, found room for " + std::to_string(count) + ".",
      "Give one place for each output of the engine."};
}

Result<TensorView> described(polyphase_dtype dtype, std::int32_t rank, const std::int64_t* sizes) {
  if (dtype < 0 || dtype >= dtype_count)
    return Error{ErrorCode::invalid_argument, "there is no dtype " + std::to_string(dtype) + ".",
                 "Use a value of polyphase_dtype."};
  if (rank < 0 || rank > max_rank) {
    return Error{
        ErrorCode::invalid_argument,
        "the rank is " + std::to_string(rank) + "; ranks from 0 to " + std::to_string(max_rank) + " are taken.",
        "Reshape the tensor."};
  }
  if (rank > 0 && sizes == nullptr) return null_argument("sizes");
  TensorView out;
  out.dtype = static_cast<DType>(dtype);
  if (rank > 0) out.sizes.assign(sizes, sizes + rank);
  return out;
}

void free_tensor(DLManagedTensorVersioned* tensor) {
  if (tensor != nullptr && tensor->deleter != nullptr) tensor->deleter(tensor);
}

}  // namespace
}  // namespace polyphase::api

using namespace polyphase::api;

extern "C" {

polyphase_status polyphase_tensor_borrow(polyphase_dtype dtype, int32_t rank, const int64_t* sizes,
                                         const int64_t* strides, void* data, DLManagedTensorVersioned** out,
                                         polyphase_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (out == nullptr) return null_argument("out");
    TRY(TensorView view, described(dtype, rank, sizes));
    if (rank > 0 && strides != nullptr) view.strides.assign(strides, strides + rank);
    view.data = data;
    TRY(const Tensor tensor, Tensor::borrow(std::move(view)));
    TRY(*out, tensor.to_dlpack());
    return {};
  });
}

polyphase_status polyphase_tensor_allocate(polyphase_dtype dtype, int32_t rank, const int64_t* sizes,
                                           DLManagedTensorVersioned** out, polyphase_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (out == nullptr) return null_argument("out");
    TRY(const TensorView view, described(dtype, rank, sizes));
    TRY(const Tensor tensor, Tensor::allocate(view.dtype, view.sizes));
    TRY(*out, tensor.to_dlpack());
    return {};
  });
}

void polyphase_tensor_free(DLManagedTensorVersioned* tensor) { free_tensor(tensor); }

polyphase_status polyphase_cancel_create(polyphase_cancel** out, polyphase_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (out == nullptr) return null_argument("out");
    *out = new polyphase_cancel;
    return {};
  });
}
void polyphase_cancel_request(polyphase_cancel* cancel) {
  if (cancel != nullptr) cancel->requested.store(true);
}
void polyphase_cancel_reset(polyphase_cancel* cancel) {
  if (cancel != nullptr) cancel->requested.store(false);
}
void polyphase_cancel_free(polyphase_cancel* cancel) { delete cancel; }

polyphase_status polyphase_session_create(const polyphase_engine* engine, const polyphase_session_options* options,
                                          polyphase_session** out, polyphase_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (engine == nullptr) return null_argument("engine");
    if (out == nullptr) return null_argument("out");
    TRY(const polyphase_session_options given, options_of(options));
    if (given.threads < 0) {
      return Error{
          ErrorCode::invalid_argument,
          "the session shall have " + std::to_string(given.threads) + " threads; expected 0 for one per core, or more.",
          "Set threads to 0 or more."};
    }
    TRY(Session session, Session::create(engine->engine, {given.threads, given.memory_limit_bytes}));
    *out = new polyphase_session{std::move(session)};
    return {};
  });
}

int32_t polyphase_session_threads(const polyphase_session* session) {
  return session == nullptr ? 0 : session->session.threads();
}
void polyphase_session_free(polyphase_session* session) { delete session; }

polyphase_status polyphase_session_run(polyphase_session* session, size_t input_count,
                                       const DLManagedTensorVersioned* const* inputs, size_t output_count,
                                       DLManagedTensorVersioned** outputs, const polyphase_run_options* options,
                                       polyphase_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (session == nullptr) return null_argument("session");
    if (outputs == nullptr && output_count > 0) return null_argument("outputs");
    TRY_VOID(expect_count(*session, output_count));
    TRY(const RunOptions inner, run_options_of(options));
    TRY(const Views views, views_of(input_count, inputs, "inputs", true));
    TRY(const std::vector<Tensor> results, session->session.run(views, inner));
    std::vector<std::unique_ptr<DLManagedTensorVersioned, void (*)(DLManagedTensorVersioned*)>> made;
    made.reserve(results.size());
    for (const Tensor& result : results) {
      TRY(DLManagedTensorVersioned * face, result.to_dlpack());
      made.emplace_back(face, free_tensor);
    }
    for (std::size_t i = 0; i < made.size(); ++i) outputs[i] = made[i].release();
    return {};
  });
}

polyphase_status polyphase_session_run_into(polyphase_session* session, size_t input_count,
                                            const DLManagedTensorVersioned* const* inputs, size_t output_count,
                                            DLManagedTensorVersioned* const* outputs,
                                            const polyphase_run_options* options, polyphase_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (session == nullptr) return null_argument("session");
    TRY_VOID(expect_count(*session, output_count));
    TRY(const RunOptions inner, run_options_of(options));
    TRY(const Views views, views_of(input_count, inputs, "inputs", true));
    TRY(const Views places, views_of(output_count, outputs, "outputs", true));
    for (std::size_t i = 0; i < output_count; ++i) {
      if ((outputs[i]->flags & DLPACK_FLAG_BITMASK_READ_ONLY) == 0) continue;
      return Error{ErrorCode::invalid_argument, "outputs[" + std::to_string(i) + "] is marked as read-only.",
                   "Give memory that may be written."};
    }
    return session->session.run_into(views, places, inner);
  });
}

polyphase_status polyphase_session_output_sizes(polyphase_session* session, size_t input_count,
                                                const DLManagedTensorVersioned* const* inputs, size_t output_index,
                                                int32_t* rank, int64_t* sizes, polyphase_error** error) {
  return guarded(error, [&]() -> Result<void> {
    if (session == nullptr) return null_argument("session");
    if (rank == nullptr) return null_argument("rank");
    if (sizes == nullptr) return null_argument("sizes");
    TRY(const Views views, views_of(input_count, inputs, "inputs", false));
    std::vector<std::vector<std::int64_t>> given;
    for (const TensorView& view : views) given.push_back(view.sizes);
    TRY(const auto found, session->session.output_sizes(given));
    if (output_index >= found.size()) {
      return Error{ErrorCode::invalid_argument,
                   "there is no output " + std::to_string(output_index) + "; the engine has " +
                       std::to_string(found.size()) + ".",
                   "Outputs are counted from 0; ask for their number first."};
    }
    const auto& of = found[output_index];
    *rank = of.has_value() ? static_cast<std::int32_t>(of->size()) : -1;
    if (of.has_value()) std::copy(of->begin(), of->end(), sizes);
    return {};
  });
}

}  // extern "C"
