// A model on simulated nodes, and the comparison with a single engine.
#pragma once

#include <gtest/gtest.h>

#include "engine/core.h"
#include "load_model.h"
#include "local_nodes.h"
#include "sampling/argmax.h"
#include "sluice/nodes.h"
#include "sluice/scheduler.h"
#include "sluice/session.h"

namespace sluice {

// Loads the model on that many nodes and calls `use` with the leading node's engine. `change` may wrap a
// node's share until its engine is loaded.
inline nodes::Hub::Seen with_nodes(int count, const std::string& model, const EngineOptions& options,
                                   const NodesOptions& settings, const std::function<void(Engine&)>& use,
                                   const std::function<void(int rank, EngineOptions&)>& change = {}) {
  nodes::Hub hub(count);
  nodes::on_each_node(count, [&](int rank) {
    const auto cluster =
        std::make_shared<nodes::Cluster>(std::make_unique<nodes::LocalTransport>(hub, rank),
                                         nodes::Cluster::Options{.patience = std::chrono::seconds(60)});
    Nodes nodes(cluster, settings);
    EngineOptions own = options;
    std::shared_ptr<engine::LayerShare> share = nodes.share();
    own.share = share;
    if (change) change(rank, own);
    try {
      const auto engine = load_model(model, own);
      own.share = nullptr;
      engine::core(*engine).options.share = std::move(share);
      rank == 0 ? use(*engine) : nodes.follow(*engine);
    } catch (const std::exception& error) {
      own.share = share = nullptr;
      nodes.give_up(error.what());
      throw;
    }
  });
  return hub.seen();
}

inline void append(std::vector<float>& all, std::span<const float> row) {
  all.insert(all.end(), row.begin(), row.end());
}

// All operations of a session, as logits: prompts in chunks, steps, samples, saved and rewound pasts.
inline std::vector<float> transcript(Engine& engine, std::span<const std::int32_t> tokens) {
  const std::int64_t vocab = engine.summary().vocab;
  const auto session = engine.new_session(static_cast<std::int64_t>(tokens.size()) + 32);
  std::vector<float> all;
  const std::size_t half = tokens.size() / 2;
  session->extend(tokens.first(half), [&](std::int64_t, std::span<const float> row) { append(all, row); });
  const Snapshot mark = session->mark();
  session->extend(tokens.subspan(half));
  append(all, session->logits());
  for (int i = 0; i < 4; ++i) {
    session->step(sampling::argmax(session->logits()));
    append(all, session->logits());
  }
  const Snapshot snapshot = session->snapshot();
  all.push_back(static_cast<float>(session->sample({.temperature = 0.8, .seed = 5}, vocab).id));
  for (int i = 0; i < 4; ++i)
    all.push_back(static_cast<float>(session->step_and_sample({.temperature = 0.8, .seed = 5}, vocab).id));
  session->rewind(mark);
  session->step(3);
  append(all, session->logits());
  const auto other = engine.new_session(static_cast<std::int64_t>(tokens.size()) + 8);
  other->restore(snapshot);
  other->step(1);
  append(all, other->logits());
  other->reset();
  other->extend(tokens.first(3));
  append(all, other->logits());
  return all;
}

inline std::vector<std::int32_t> some_tokens(std::size_t count) {
  std::vector<std::int32_t> tokens;
  for (std::size_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<std::int32_t>((i * i * 7 + 3 * i) % 90));
  return tokens;
}

inline void expect_same_bits(const std::string& model, const EngineOptions& options, std::size_t tokens,
                             int most = 4, const NodesOptions& settings = {}) {
  const std::vector<std::int32_t> ids = some_tokens(tokens);
  const auto alone = load_model(model, options);
  const std::vector<float> want = transcript(*alone, ids);
  for (int count = 2; count <= std::min<std::int64_t>(most, alone->summary().layers); ++count) {
    std::vector<float> got;
    with_nodes(count, model, options, settings, [&](Engine& engine) { got = transcript(engine, ids); });
    EXPECT_EQ(got.size(), want.size());
    EXPECT_TRUE(got == want) << model << " on " << count << " nodes";
  }
}

inline const EngineOptions kOneThread{.backend = "cpu", .threads = 1};

// The beginning of a story: one of two prompts, greedy or sampled with a seed of its own.
inline Request story_request(Engine& engine, std::size_t i) {
  Request request;
  request.prompt = engine.encode(i % 2 == 0 ? "Once upon a time" : "There was a little cat who");
  request.options.max_tokens = 10;
  request.options.ignore_stop_ids = true;
  request.options.sampling = {.temperature = i % 3 == 0 ? 0.0 : 0.7, .seed = i};
  return request;
}

// Requests 0 to count - 1, run together by a scheduler of the engine, give the tokens of each alone on a
// single engine.
inline void expect_as_alone(Engine& engine, const std::string& model, const SchedulerOptions& options,
                            std::size_t count, const std::function<Request(Engine&, std::size_t)>& request) {
  Scheduler scheduler(engine.shared_from_this(), options);
  std::vector<std::vector<std::int32_t>> got(count);
  for (std::size_t i = 0; i < count; ++i)
    scheduler.submit(request(engine, i), {.done = [&got, i](const RequestResult& result) {
                       EXPECT_FALSE(result.error);
                       got[i] = result.generated.ids;
                     }});
  scheduler.drain();
  const auto alone = load_model(model, kOneThread);
  for (std::size_t i = 0; i < count; ++i) {
    const Request own = request(*alone, i);
    EXPECT_EQ(got[i], generate(*alone->new_session(options.context), own.prompt, own.options).ids) << i;
  }
}

}  // namespace sluice
