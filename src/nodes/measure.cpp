#include "nodes/measure.h"

#include <unistd.h>

#include <algorithm>

#include "base/integer_cast.h"
#include "experts/disk_rate.h"
#include "nodes/wire.h"
#include "sluice/nodes.h"

namespace sluice {

namespace nodes {

namespace {

constexpr int kPings = 200;
constexpr int kLoads = 4;
constexpr std::size_t kLoadBytes = std::size_t{4} << 20;

double physical_memory() {
  return to_double(sysconf(_SC_PHYS_PAGES)) * to_double(sysconf(_SC_PAGESIZE));
}

// The median time of a message of this size that is answered with an empty one.
double time_of(Cluster& cluster, int other, int count, std::size_t bytes) {
  std::vector<double> seconds;
  for (int i = 0; i < count; ++i) {
    const auto start = std::chrono::steady_clock::now();
    cluster.send(other, Channel::rows, Message(bytes));
    cluster.receive(other, Channel::rows);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + count / 2, seconds.end());
  return seconds[to_size(count / 2)];
}

NetworkSpec measure_link(Cluster& cluster, int other) {
  NetworkSpec link;
  link.round_trip = time_of(cluster, other, kPings, 64);
  const double load = time_of(cluster, other, kLoads, kLoadBytes);
  link.bytes_per_second = to_double(kLoadBytes) / std::max(1e-9, load - link.round_trip);
  return link;
}

void answer_links(Cluster& cluster) {
  for (int i = 0; i < kPings + kLoads; ++i) {
    cluster.receive(0, Channel::rows);
    cluster.send(0, Channel::rows, {});
  }
}

}  // namespace

double memory_for_weights(const Cluster& cluster, const ops::Backend& backend, std::uint64_t allowed) {
  constexpr double kForWeights = 0.8;
  const std::vector<std::string>& hosts = cluster.hosts();
  const auto here = std::count(hosts.begin(), hosts.end(), hosts[to_size(cluster.rank())]);
  const double all =
      backend.traits().host_memory ? physical_memory() / to_double(here) : to_double(backend.memory_bytes());
  return kForWeights * (allowed > 0 ? to_double(allowed) : all);
}

NodesSpec measure(Cluster& cluster, const EngineOptions& options, const std::filesystem::path& file) {
  struct Own {
    double memory = 0;
    double bytes_per_second = 0;
    double disk_bytes_per_second = 0;
    double gpu_memory = 0;
    double gpu_bytes_per_second = 0;
  };
  const auto rate_of = [](ops::Backend& backend, std::uint64_t allowed) {
    return backend.measure_rates(allowed / 2).read_bytes_per_second;
  };
  const auto measure_own = [&] {
    const ops::BackendOptions processor{.threads = options.threads, .isa = options.isa};
    auto backend = ops::make_backend(options.backend, processor);
    Own own{.disk_bytes_per_second = file.empty() ? 0 : sluice::experts::measure_disk_rate(file)};
    if (!backend->traits().host_memory) {
      own.gpu_memory = memory_for_weights(cluster, *backend, options.vram);
      own.gpu_bytes_per_second = rate_of(*backend, options.vram);
      backend = ops::make_host_backend(processor);
    }
    own.memory = memory_for_weights(cluster, *backend, options.memory);
    own.bytes_per_second = rate_of(*backend, options.memory);
    return own;
  };
  if (cluster.rank() != 0) {
    cluster.receive(0, Channel::commands);
    Writer writer;
    writer.put(measure_own());
    cluster.send(0, Channel::replies, writer.take());
    answer_links(cluster);
    return {};
  }
  NodesSpec spec;
  const auto add = [&](int rank, const Own& own) {
    spec.nodes.push_back({cluster.hosts()[to_size(rank)], own.memory, own.bytes_per_second,
                          own.disk_bytes_per_second, own.gpu_memory, own.gpu_bytes_per_second});
  };
  add(0, measure_own());
  for (int other = 1; other < cluster.size(); ++other) {
    cluster.send(other, Channel::commands, {});
    const Message message = cluster.receive(other, Channel::replies);
    add(other, Reader(message).get<Own>());
    const NetworkSpec link = measure_link(cluster, other);
    const bool first = other == 1;
    NetworkSpec& slowest = spec.network;
    slowest.round_trip = std::max(slowest.round_trip, link.round_trip);
    slowest.bytes_per_second =
        first ? link.bytes_per_second : std::min(slowest.bytes_per_second, link.bytes_per_second);
  }
  return spec;
}

}  // namespace nodes

NodesSpec Nodes::measure(const EngineOptions& engine, const std::filesystem::path& file) {
  return nodes::measure(*cluster_, engine, file);
}

}  // namespace sluice
