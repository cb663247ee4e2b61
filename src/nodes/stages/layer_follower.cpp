#include "nodes/stages/layer_follower.h"

#include "base/error.h"
#include "nodes/stages/rows.h"

namespace sluice::nodes::stages {

namespace {

void change(Command command, state::StatePool& pool, Reader& reader) {
  if (command == Command::hold) return pool.hold(reader.get<std::int32_t>());
  if (command == Command::drop) return pool.drop(reader.get<std::int32_t>());
  const auto slot = reader.get<std::int64_t>();
  if (command == Command::reset) return pool.reset(slot);
  if (command == Command::adopt) return pool.adopt(slot, reader.get_all<std::int32_t>());
  if (command == Command::copy_to_snapshot) return pool.copy_to_snapshot(slot, reader.get<std::int32_t>());
  if (command == Command::copy_from_snapshot)
    return pool.copy_from_snapshot(slot, reader.get<std::int32_t>());
  if (command != Command::fork) fail(ErrorKind::internal, "a node received a message of an unknown kind");
  const auto to = reader.get<std::int64_t>();
  pool.fork(slot, to, reader.get<std::int64_t>());
}

// Whether the command copies bytes to or from the leading node.
bool copies(Command command) {
  return command == Command::save || command == Command::load || command == Command::save_blocks ||
         command == Command::load_blocks || command == Command::save_page_block ||
         command == Command::save_snapshot || command == Command::wait;
}

}  // namespace

void LayerFollower::connect(engine::Core& core) {
  Writer ready;
  ready.put(core.settings.prefill_chunk);
  cluster_->send(0, Channel::replies, ready.take());
  core.model.decoder.rows_in = [this, &core](const layers::Pass&, const ops::View& x) {
    unpack_rows(*core.backend, cluster_->receive(neighbours_.previous, Channel::rows), x);
  };
  core.model.decoder.rows_out = [this, &core](const layers::Pass& pass, const ops::View& x) {
    const bool last = neighbours_.next == 0;
    cluster_->send(neighbours_.next, Channel::rows,
                   last ? pack_rows(*core.backend, x, wanted_rows(pass)) : pack_rows(*core.backend, x));
  };
}

void LayerFollower::follow(engine::Core& core) {
  Groups groups;
  for (bool more = true; more;) {
    const Message message = cluster_->receive(0, Channel::commands);
    for (Reader reader(message); more && !reader.empty();) more = obey(core, groups, reader);
  }
}

bool LayerFollower::obey(engine::Core& core, Groups& groups, Reader& reader) {
  const auto command = reader.get<Command>();
  if (command == Command::quit) return false;
  if (command == Command::open) {
    open(core, groups, reader);
    return true;
  }
  const auto number = reader.get<int>();
  if (command == Command::close) {
    groups.erase(number);
    return true;
  }
  engine::ForwardPass& pass = groups.at(number)->pass;
  core.executor->run([&] {
    if (command == Command::promise) return promise(pass, reader);
    if (command == Command::release) return pass.close(to_int(reader.get<std::int64_t>()));
    if (command == Command::pass) return pass.run(get_batch(reader).batch);
    if (copies(command)) return copy(command, pass.pool(), reader);
    change(command, pass.pool(), reader);
  });
  return true;
}

void LayerFollower::open(engine::Core& core, Groups& groups, Reader& reader) {
  const auto number = reader.get<int>();
  const auto extent = reader.get<state::Extent>();
  const auto chunk = reader.get<std::int64_t>();
  std::string why;
  SavedSize size;
  try {
    groups[number] = core.executor->reserve(extent, chunk);
    const state::StatePool& pool = groups[number]->pass.pool();
    size.state = pool.saved_bytes(0, true);
    size.row = pool.saved_bytes(1, true) - size.state;
  } catch (const Error& error) {
    why = error.what();
  }
  Writer opened;
  opened.put(why);
  opened.put(size);
  cluster_->send(0, Channel::replies, opened.take());
}

void LayerFollower::promise(engine::ForwardPass& pass, Reader& reader) {
  const auto slot = reader.get<std::int64_t>();
  const auto capacity = reader.get<std::int64_t>();
  std::string why;
  try {
    pass.open(to_int(slot), capacity);
  } catch (const Error& error) {
    why = error.what();
  }
  Writer answer;
  answer.put(why);
  cluster_->send(0, Channel::replies, answer.take());
}

void LayerFollower::copy(Command command, state::StatePool& pool, Reader& reader) {
  const auto send = [&](std::size_t bytes, auto&& fill) {
    std::vector<std::byte> saved(bytes);
    fill(std::span(saved));
    cluster_->send_bytes(0, Channel::replies, saved);
  };
  const auto receive = [&](std::size_t bytes) {
    std::vector<std::byte> saved(bytes);
    cluster_->receive_bytes(0, Channel::replies, saved);
    return saved;
  };
  if (command == Command::wait) {
    pool.wait();
    return cluster_->send(0, Channel::replies, {});
  }
  if (command == Command::save_snapshot) {
    const auto place = reader.get<std::int32_t>();
    return send(pool.saved_bytes(0, false), [&](auto to) { pool.save_snapshot(place, to); });
  }
  if (command == Command::save_page_block) {
    const auto page = reader.get<std::int32_t>();
    const auto block = reader.get<std::int64_t>();
    return send(pool.block_bytes(), [&](auto to) { pool.save_page_block(page, block, to); });
  }
  const auto slot = reader.get<std::int64_t>();
  const auto first = reader.get<std::int64_t>();  // first row, or their number
  if (command == Command::save || command == Command::load) {
    const auto with_caches = reader.get<bool>();
    if (command == Command::save)
      return cluster_->send_bytes(0, Channel::replies, pool.save(slot, first, with_caches));
    return pool.load(slot, first, with_caches, receive(pool.saved_bytes(first, with_caches)));
  }
  const auto end = reader.get<std::int64_t>();
  const std::size_t bytes = pool.block_bytes() * to_size((end - first) / state::kBlockRows);
  if (command == Command::save_blocks)
    return send(bytes, [&](auto to) { pool.save_blocks(slot, first, end, to); });
  const std::vector<std::byte> saved = receive(bytes);
  pool.load_blocks(slot, first, end, saved);
  pool.wait();
}

}  // namespace sluice::nodes::stages
