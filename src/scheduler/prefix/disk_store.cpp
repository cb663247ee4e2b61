#include "scheduler/prefix/disk_store.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/temporary.h"

namespace sluice::scheduler {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostWaiting = std::uint64_t{1} << 30;  // bytes to be written
constexpr std::chrono::seconds kLookEvery{1};

void make_folder(const fs::path& folder) {
  std::error_code error;
  // What is in it tells what people wrote: nobody else is to read it.
  if (fs::create_directories(folder, error)) fs::permissions(folder, fs::perms::owner_all, error);
  if (!fs::is_directory(folder, error))
    fail(ErrorKind::input, "cannot remember prompts in '{}': it is no folder and cannot become one",
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
  for (const fs::path& path : left) remove_stale_temporaries(path);
}

FilePtr stored(const PrefixFile& head, std::uint64_t bytes) {
  const auto file = std::make_shared<StoredFile>();
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

}  // namespace

DiskStore::DiskStore(DiskOptions options) : options_(std::move(options)) {
  make_folder(options_.folder);
  remove_temporaries(options_.folder);
  for (PrefixFile& head : scan({})) adopt(std::move(head));
  const auto others =
      std::count_if(files_.begin(), files_.end(), [](const auto& one) { return one.second->gain == 0; });
  if (others > 0)
    log(fmt::format("{} of {} files in '{}' are of other models, options or programs and stay unused", others,
                    files_.size(), options_.folder.string()));
  evict(0);
  looked_ = std::chrono::steady_clock::now();
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
      if (failed.kind() != ErrorKind::input) continue;  // it may be readable another time
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
  if (!ours) file->gain = file->used = 0;
  tick_ = std::max(tick_, head.tick);
  total_ += file->bytes;
  files_.emplace(file->name, file);
  if (ours) found_.push_back({file, head.salt, std::move(head.ids)});
}

void DiskStore::look_again() {
  if (looking_ || std::chrono::steady_clock::now() - looked_ < kLookEvery) return;
  looking_ = true;
  std::vector<std::string> known;
  for (const auto& [name, file] : files_) known.push_back(name);
  reader_.post([this, known = std::move(known)] {
    auto heads = std::make_shared<std::vector<PrefixFile>>(scan(known));
    tell([this, heads] {
      for (PrefixFile& head : *heads) adopt(std::move(head));
      looking_ = false;
      looked_ = std::chrono::steady_clock::now();
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

FilePtr DiskStore::write(Content content) {
  settle();
  PrefixFile head;
  head.kind = content.kind;
  head.fingerprint = options_.fingerprint;
  head.salt = content.salt;
  head.tick = ++tick_;
  head.gain = std::max<std::uint64_t>(1, content.gain);
  head.begin = content.begin;
  head.ids = std::move(content.ids);
  const auto known = files_.find(head.name());
  if (known != files_.end()) {
    known->second->used = tick_;
    return known->second;
  }
  head.checksums.resize(
      content.kind == FileKind::state ? 1 : static_cast<std::size_t>((head.end() - head.begin) / kChunkUnit));
  const std::uint64_t bytes = head.head_bytes() + content.bytes->size();
  if (bytes > options_.bytes || waiting_ + bytes > kMostWaiting) return {};
  evict(bytes);
  const FilePtr file = stored(head, bytes);
  file->pending = content.bytes;
  files_.emplace(file->name, file);
  total_ += bytes;
  waiting_ += bytes;
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
  waiting_ -= file->bytes;
  file->pending.reset();
  file->checksum = checksum;
  if (!error.empty()) {
    if (!failing_) log(fmt::format("{}; prompts are remembered in memory alone until that works", error));
    forget(file);
  }
  failing_ = !error.empty();
}

std::uint64_t DiskStore::bytes_of(const Piece& piece) const {
  if (piece.bytes != nullptr) return 0;
  return piece.file->kind == FileKind::state ? options_.state_bytes
                                             : options_.row_bytes * static_cast<std::uint64_t>(piece.count);
}

double DiskStore::seconds(std::uint64_t bytes) const {
  return rate_.known() ? rate_.seconds(static_cast<double>(bytes)) : 0;
}

std::shared_ptr<DiskStore::Reading> DiskStore::read(std::vector<Piece> pieces) {
  settle();
  const auto reading = std::make_shared<Reading>();
  std::vector<SavedState> pending;
  std::vector<std::uint64_t> checksums;
  for (const Piece& piece : pieces) {
    pending.push_back(piece.file ? piece.file->pending : nullptr);
    checksums.push_back(piece.file ? piece.file->checksum : 0);
  }
  reader_.post([this, reading, pieces = std::move(pieces), pending = std::move(pending),
                checksums = std::move(checksums)] { read_pieces(pieces, pending, checksums, *reading); });
  return reading;
}

void DiskStore::read_pieces(const std::vector<Piece>& pieces, const std::vector<SavedState>& pending,
                            const std::vector<std::uint64_t>& checksums, Reading& reading) {
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t from_disk = 0;
  for (std::size_t i = 0; i < pieces.size() && !reading.failed; ++i) try {
      const Piece& piece = pieces[i];
      if (piece.bytes != nullptr) {
        reading.parts.push_back(piece.bytes);
        continue;
      }
      std::vector<std::byte> bytes;
      if (pending[i] != nullptr) {
        const auto at =
            static_cast<std::ptrdiff_t>(options_.row_bytes * static_cast<std::uint64_t>(piece.first));
        const auto begin = pending[i]->begin() + at;
        bytes.assign(begin, begin + static_cast<std::ptrdiff_t>(bytes_of(piece)));
      } else {
        bytes = read_blocks(options_.folder / piece.file->name, checksums[i], piece.first, piece.count);
        from_disk += bytes.size();
      }
      reading.parts.push_back(std::make_shared<const std::vector<std::byte>>(std::move(bytes)));
    } catch (const Error& failed) {
      reading.failed = true;
      const bool unreadable = failed.kind() != ErrorKind::input;
      tell([this, file = pieces[i].file, error = std::string(failed.what()), unreadable] {
        unreadable ? set_aside(file, error) : damaged(file, error);
      });
    } catch (const std::exception&) {  // there is no memory for it
      reading.failed = true;
    }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (from_disk > 0 && !reading.failed)
    tell([this, from_disk, seconds] { rate_.add(static_cast<double>(from_disk), seconds); });
  reading.done = true;
}

void DiskStore::damaged(const FilePtr& file, const std::string& error) {
  std::error_code ignored;
  const bool there = fs::exists(options_.folder / file->name, ignored);
  if (there) log(fmt::format("{}; it is removed", error));
  forget(file);
}

// The disk may give it another time, when the folder is looked at again.
void DiskStore::set_aside(const FilePtr& file, const std::string& error) {
  std::error_code ignored;
  const bool there = fs::exists(options_.folder / file->name, ignored);
  if (there) log(fmt::format("{}; its tokens are computed", error));  // else another process wanted the room
  unlist(file);
}

void DiskStore::use(std::span<const FilePtr> files) {
  ++tick_;
  for (const FilePtr& file : files) file->used = tick_;
}

// Tokens that would have to be computed without it, per byte and per time since it was of use.
double DiskStore::worth(const StoredFile& file) const {
  return static_cast<double>(file.gain) / static_cast<double>(file.bytes) /
         static_cast<double>(tick_ - std::min(tick_, file.used) + 1);
}

// Rows are of use only with those before them. These were used whenever later ones were, so that later ones
// go first if equals do.
void DiskStore::evict(std::uint64_t room) {
  while (total_ + room > options_.bytes && !files_.empty()) {
    const auto least = std::min_element(files_.begin(), files_.end(), [this](const auto& a, const auto& b) {
      return std::pair(worth(*a.second), -a.second->end) < std::pair(worth(*b.second), -b.second->end);
    });
    forget(FilePtr(least->second));
  }
}

bool DiskStore::unlist(const FilePtr& file) {
  file->gone = true;
  const auto known = files_.find(file->name);
  if (known == files_.end() || known->second != file) return false;
  files_.erase(known);
  total_ -= file->bytes;
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

}  // namespace sluice::scheduler
