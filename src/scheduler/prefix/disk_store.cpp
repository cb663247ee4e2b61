#include "scheduler/prefix/disk_store.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/files/temporary.h"
#include "base/integer_cast.h"
#include "experts/fingerprint.h"

namespace sluice::scheduler::prefix {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostWaiting = std::uint64_t{1} << 30;  // bytes waiting to be written
constexpr std::uint64_t kMostAtOnce = std::uint64_t{32} << 20;  // bytes per part of a read
constexpr std::chrono::seconds kLookEvery{1};

void make_folder(const fs::path& folder) {
  std::error_code error;
  // The files reveal what people wrote, so no one else may read them.
  if (fs::create_directories(folder, error)) fs::permissions(folder, fs::perms::owner_all, error);
  if (!fs::is_directory(folder, error))
    fail(ErrorKind::input, "cannot cache prompts in '{}': it is not a folder and cannot be created as one",
         folder.string());
}

void remove_temporaries(const fs::path& folder) {
  std::set<fs::path> left;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const std::size_t at = name.find(kPrefixFileEnding);
    if (at != std::string::npos && at + kPrefixFileEnding.size() < name.size())
      left.insert(folder / name.substr(0, at + kPrefixFileEnding.size()));
  }
  for (const fs::path& path : left) files::remove_stale_temporaries(path);
}

FilePtr stored(const PrefixFile& head, std::uint64_t bytes) {
  auto file = std::make_shared<StoredFile>();
  file->name = head.name();
  file->kind = head.kind;
  file->begin = head.begin;
  file->end = head.end();
  file->bytes = bytes;
  file->gain = head.gain;
  file->checksum = head.checksum;
  file->used = head.tick;
  return file;
}

std::uint64_t beginning_of(const Salt& salt, std::span<const std::int32_t> ids) {
  const std::uint64_t seed = experts::fingerprint(std::as_bytes(std::span(salt)));
  return experts::fingerprint(std::as_bytes(ids.first(to_size(kChunkUnit))), seed);
}

}  // namespace

DiskStore::DiskStore(DiskOptions options, HostMemory& memory)
    : options_(std::move(options)), memory_(memory) {
  make_folder(options_.folder);
  remove_temporaries(options_.folder);
  for (PrefixFile& head : scan({})) adopt(std::move(head));
  const auto others =
      std::count_if(files_.begin(), files_.end(), [](const auto& one) { return one.second->gain == 0; });
  if (others > 0)
    log(fmt::format("{} of {} files in '{}' are of other models, options or programs and stay unused", others,
                    files_.size(), options_.folder.string()));
  for (const auto& [owner, held] : owners_) evict(0, owner);
  evict(0, {});
  looked_ = Clock::now();
}

DiskStore::~DiskStore() = default;

void DiskStore::log(const std::string& line) const {
  if (options_.log) options_.log(line);
}

void DiskStore::tell(std::function<void()> news) {
  const std::lock_guard lock(mutex_);
  news_.push_back(std::move(news));
}

void DiskStore::settle() {
  std::vector<std::function<void()>> news;
  {
    const std::lock_guard lock(mutex_);
    news.swap(news_);
  }
  for (const auto& one : news) one();
}

std::vector<PrefixFile> DiskStore::scan(const std::vector<std::string>& known) const {
  std::vector<PrefixFile> heads;
  std::error_code error;
  for (fs::directory_iterator entry(options_.folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.ends_with(kPrefixFileEnding) || std::binary_search(known.begin(), known.end(), name)) continue;
    try {
      PrefixFile head = read_prefix_file(entry->path());
      if (head.name() != name) fail(ErrorKind::input, "'{}' is under another file's name", name);
      heads.push_back(std::move(head));
    } catch (const Error& failed) {
      if (failed.kind() != ErrorKind::input) continue;  // it may be readable later
      log(fmt::format("{}; it is removed", failed.what()));
      std::error_code ignored;
      fs::remove(entry->path(), ignored);
    }
  }
  return heads;
}

void DiskStore::adopt(PrefixFile head) {
  if (files_.contains(head.name())) return;
  const FilePtr file = stored(head, head.file_bytes());
  const bool ours =
      head.fingerprint == options_.fingerprint &&
      head.block_bytes == (head.kind == FileKind::rows ? options_.row_bytes : options_.state_bytes);
  if (!ours) {
    file->gain = file->used = 0;
    if (head.end() >= kChunkUnit) beginnings_.insert(beginning_of(head.salt, head.ids));
  }
  if (ours) {
    file->owner = owner_of(head.salt);
    Owner& owner = owners_[file->owner];
    owner.tick = std::max(owner.tick, head.tick);
    owner.bytes += file->bytes;
  }
  total_ += file->bytes;
  files_.emplace(file->name, file);
  if (ours) found_.push_back({file, head.salt, std::move(head.ids)});
}

void DiskStore::look_again() {
  if (looking_ || Clock::now() - looked_ < kLookEvery) return;
  looking_ = true;
  std::vector<std::string> known;
  for (const auto& [name, file] : files_) known.push_back(name);
  reader_.post([this, known = std::move(known)] {
    auto heads = std::make_shared<std::vector<PrefixFile>>(scan(known));
    tell([this, heads] {
      for (PrefixFile& head : *heads) adopt(std::move(head));
      looking_ = false;
      looked_ = Clock::now();
    });
  });
}

std::vector<DiskStore::Found> DiskStore::found() {
  settle();
  look_again();
  std::sort(found_.begin(), found_.end(),
            [](const Found& a, const Found& b) { return a.file->end < b.file->end; });
  return std::exchange(found_, {});
}

bool DiskStore::others_begin(const Salt& salt, std::span<const std::int32_t> prompt) const {
  return std::ssize(prompt) >= kChunkUnit && beginnings_.contains(beginning_of(salt, prompt));
}

FilePtr DiskStore::write(Content content) {
  settle();
  PrefixFile head;
  head.kind = content.kind;
  head.fingerprint = options_.fingerprint;
  head.salt = content.salt;
  Owner& owner = owners_[owner_of(head.salt)];
  head.tick = ++owner.tick;
  head.gain = std::max<std::uint64_t>(1, content.gain);
  head.begin = content.begin;
  head.ids = std::move(content.ids);
  const auto known = files_.find(head.name());
  if (known != files_.end()) {
    known->second->used = owner.tick;
    return known->second;
  }
  head.checksums.resize(content.kind == FileKind::state ? 1
                                                        : to_size((head.end() - head.begin) / kChunkUnit));
  const std::uint64_t bytes = head.head_bytes() + content.bytes->size();
  if (bytes > share(options_.bytes) || owner.waiting + bytes > share(kMostWaiting)) return {};
  evict(bytes, owner_of(head.salt));
  FilePtr file = stored(head, bytes);
  file->owner = owner_of(head.salt);
  file->pending = content.bytes;
  files_.emplace(file->name, file);
  total_ += bytes;
  owner.bytes += bytes;
  owner.waiting += bytes;
  writer_.post([this, file, bytes = std::move(content.bytes), head = std::move(head)]() mutable {
    std::string error;
    try {
      write_prefix_file(options_.folder, head, *bytes);
    } catch (const std::exception& failed) {
      error = failed.what();
    }
    tell([this, file, checksum = head.checksum, error] { written(file, checksum, error); });
  });
  return file;
}

void DiskStore::written(const FilePtr& file, std::uint64_t checksum, const std::string& error) {
  owners_[file->owner].waiting -= file->bytes;
  file->pending.reset();
  file->checksum = checksum;
  if (!error.empty()) {
    if (!failing_) log(fmt::format("{}; prompts are cached in memory only until that works", error));
    forget(file);
  }
  failing_ = !error.empty();
}

std::uint64_t DiskStore::bytes_of(const Piece& piece) const {
  if (piece.bytes != nullptr) return 0;
  return piece.file->kind == FileKind::state ? options_.state_bytes : options_.row_bytes * piece.count;
}

double DiskStore::seconds(std::uint64_t bytes) const {
  return rate_.known() ? rate_.seconds(bytes) : 0;
}

std::shared_ptr<DiskStore::Reading> DiskStore::read(std::vector<Piece> pieces) {
  settle();
  auto reading = std::make_shared<Reading>();
  std::vector<Wanted> wanted;
  for (Piece& piece : pieces) {
    const FilePtr file = piece.file;
    wanted.push_back({std::move(piece), file ? file->pending : nullptr, file ? file->checksum : 0});
  }
  reader_.post([this, reading, wanted = std::move(wanted)] { read_pieces(wanted, *reading); });
  return reading;
}

std::uint64_t DiskStore::read_piece(const Wanted& wanted, std::vector<SavedState>& parts) {
  const Piece& piece = wanted.piece;
  if (piece.bytes != nullptr) {
    parts.push_back(piece.bytes);
    return 0;
  }
  const std::uint64_t all = bytes_of(piece);
  if (wanted.pending != nullptr) {
    parts.push_back(part_of(wanted.pending, options_.row_bytes * piece.first, all));
    return 0;
  }
  const std::uint64_t block = all / piece.count;
  const std::int64_t most = std::max<std::uint64_t>(1, kMostAtOnce / block);
  for (std::int64_t first = 0; first < piece.count; first += most) {
    const std::int64_t count = std::min(most, piece.count - first);
    parts.push_back(memory_.make(block * count, [&](std::span<std::byte> to) {
      read_blocks(options_.folder / piece.file->name, wanted.checksum, piece.first + first, to);
    }));
  }
  return all;
}

void DiskStore::read_pieces(const std::vector<Wanted>& pieces, Reading& reading) {
  const auto start = Clock::now();
  std::uint64_t from_disk = 0;
  for (std::size_t i = 0; i < pieces.size() && !reading.failed; ++i) try {
      from_disk += read_piece(pieces[i], reading.parts);
    } catch (const Error& failed) {
      reading.failed = true;
      const bool unreadable = failed.kind() != ErrorKind::input;
      tell([this, file = pieces[i].piece.file, error = std::string(failed.what()), unreadable] {
        unreadable ? set_aside(file, error) : damaged(file, error);
      });
    } catch (const std::exception&) {  // not enough memory for it
      reading.failed = true;
    }
  const double seconds = seconds_since(start);
  if (from_disk > 0 && !reading.failed) tell([this, from_disk, seconds] { rate_.add(from_disk, seconds); });
  reading.done = true;
}

void DiskStore::damaged(const FilePtr& file, const std::string& error) {
  std::error_code ignored;
  const bool there = fs::exists(options_.folder / file->name, ignored);
  if (there) log(fmt::format("{}; it is removed", error));
  forget(file);
}

// The file may become readable again, and is found when the folder is scanned.
void DiskStore::set_aside(const FilePtr& file, const std::string& error) {
  std::error_code ignored;
  const bool there = fs::exists(options_.folder / file->name, ignored);
  if (there) log(fmt::format("{}; its tokens are computed", error));  // otherwise another process removed it
  unlist(file);
}

void DiskStore::use(std::span<const FilePtr> files) {
  if (files.empty()) return;
  const std::uint64_t now = ++owners_[files[0]->owner].tick;
  for (const FilePtr& file : files) file->used = now;
}

// The tokens that would have to be computed without it, per byte and per time since its last use.
double DiskStore::worth(const StoredFile& file) const {
  const auto owner = owners_.find(file.owner);
  const std::uint64_t now = owner == owners_.end() ? 0 : owner->second.tick;
  return to_double(file.gain) / to_double(file.bytes) / to_double(now - std::min(now, file.used) + 1);
}

// Rows are useful only with those before them, which were used whenever later ones were; so of equals the
// later ones are evicted first.
bool DiskStore::evict_least(const std::uint64_t* owner) {
  FilePtr least;
  const auto order = [this](const StoredFile& file) { return std::pair(worth(file), -file.end); };
  for (const auto& [name, file] : files_)
    if ((owner == nullptr || (file->gain > 0 && file->owner == *owner)) &&
        (least == nullptr || order(*file) < order(*least)))
      least = file;
  if (least != nullptr) forget(least);
  return least != nullptr;
}

void DiskStore::evict(std::uint64_t room, std::uint64_t owner) {
  while (owners_[owner].bytes + room > share(options_.bytes) && evict_least(&owner)) {
  }
  while (total_ + room > options_.bytes && evict_least(nullptr)) {
  }
}

bool DiskStore::unlist(const FilePtr& file) {
  file->gone = true;
  const auto known = files_.find(file->name);
  if (known == files_.end() || known->second != file) return false;
  files_.erase(known);
  total_ -= file->bytes;
  if (file->gain > 0) owners_[file->owner].bytes -= file->bytes;
  return true;
}

void DiskStore::forget(const FilePtr& file) {
  if (!unlist(file)) return;
  writer_.post([path = options_.folder / file->name] {
    std::error_code ignored;
    fs::remove(path, ignored);
  });
}

void DiskStore::clear() {
  settle();
  std::vector<FilePtr> ours;
  for (const auto& [name, file] : files_)
    if (file->gain > 0) ours.push_back(file);
  for (const FilePtr& file : ours) forget(file);
  found_.clear();
}

}  // namespace sluice::scheduler::prefix
