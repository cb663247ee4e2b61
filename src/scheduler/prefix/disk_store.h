// Cached prompts in the files of a folder: written while prompts are computed, found again by later
// processes.
//
// Two threads of its own read and write; its owner, one thread at a time, never waits for a disk. Several
// processes may use one folder: a file is either complete or absent, and a file that another process removed
// is simply not cached.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "base/clock.h"
#include "engine/job_thread.h"
#include "scheduler/prefix/host_memory.h"
#include "scheduler/prefix/prefix_file.h"
#include "scheduler/prompt_budget.h"

namespace sluice::scheduler {

// A file of this model; used by the owner's thread.
struct StoredFile {
  std::string name;
  FileKind kind = FileKind::rows;
  std::int64_t begin = 0;  // rows
  std::int64_t end = 0;
  std::uint64_t bytes = 0;
  std::uint64_t gain = 0;      // tokens
  std::uint64_t checksum = 0;  // of its head; known once it is written
  std::uint64_t used = 0;      // when it was of use last, in ticks of its owner
  std::uint64_t owner = 0;     // whose share of the room it takes
  SavedState pending;          // what is in it, until it is on the disk
  bool gone = false;           // or about to be
};
using FilePtr = std::shared_ptr<StoredFile>;

struct DiskOptions {
  std::filesystem::path folder;
  std::uint64_t bytes = 0;  // for all files in it
  std::uint64_t fingerprint = 0;
  std::uint64_t row_bytes = 0;    // of one block
  std::uint64_t state_bytes = 0;  // 0: the model has no recurrent states
  // Clients, by the first half of their salts: each has its part of the room and evicts only its own files.
  std::int64_t shares = 1;
  // Called on any thread, with one line for each file that cannot be used or written.
  std::function<void(const std::string& line)> log = {};
};

class DiskStore {
 public:
  // Makes the folder if need be and finds what is in it. What killed writers left is removed, and files that
  // are damaged; those of other models stay as long as there is room. What it reads is in `memory`.
  DiskStore(DiskOptions options, HostMemory& memory);
  // Writes first what was asked for.
  ~DiskStore();

  // Files of this model that have appeared since this was last asked, in the order of their ends.
  struct Found {
    FilePtr file;
    Salt salt = {};
    std::vector<std::int32_t> ids;
  };
  std::vector<Found> found();
  // Whether a file of another model, or of other options, begins like a prompt.
  bool others_begin(const Salt& salt, std::span<const std::int32_t> prompt) const;

  // What a file is to hold: rows [begin, end of ids), or the states behind the ids.
  struct Content {
    FileKind kind = FileKind::rows;
    Salt salt = {};
    std::vector<std::int32_t> ids;
    std::int64_t begin = 0;
    std::uint64_t gain = 0;
    SavedState bytes = {};
  };
  // Queues the file for writing; null if it does not fit or too much is waiting already.
  FilePtr write(Content content);

  // Blocks of a file, of a state the only one; or one that is in memory already.
  struct Piece {
    FilePtr file = {};
    std::int64_t first = 0;
    std::int64_t count = 1;
    SavedState bytes = {};
  };
  // Pieces that are being read, long ones in several parts. They may be looked at once it is done.
  struct Reading {
    std::atomic<bool> done = false;
    bool failed = false;
    std::vector<SavedState> parts;
  };
  std::shared_ptr<Reading> read(std::vector<Piece> pieces);
  // Estimated seconds by earlier measurements; 0: none yet.
  double seconds(std::uint64_t bytes) const;
  std::uint64_t bytes_of(const Piece& piece) const;  // to be read

  // Takes over what its threads have done; every other call does that too.
  void settle();
  // Marks the files as used.
  void use(std::span<const FilePtr> files);
  void clear();
  std::uint64_t bytes() const { return total_; }

 private:
  // Something that a thread has to tell: done by settle().
  void tell(std::function<void()> news);
  void written(const FilePtr& file, std::uint64_t checksum, const std::string& error);
  void damaged(const FilePtr& file, const std::string& error);
  void set_aside(const FilePtr& file, const std::string& error);
  bool unlist(const FilePtr& file);
  // A piece of a file as it was when it was asked for.
  struct Wanted {
    Piece piece;
    SavedState pending;
    std::uint64_t checksum = 0;
  };
  void read_pieces(const std::vector<Wanted>& pieces, Reading& reading);
  // Of one piece; says how many bytes came from the disk.
  std::uint64_t read_piece(const Wanted& wanted, std::vector<SavedState>& parts);
  // What is in the folder under other names than these.
  std::vector<PrefixFile> scan(const std::vector<std::string>& known) const;
  void look_again();
  void adopt(PrefixFile head);
  std::uint64_t owner_of(const Salt& salt) const { return options_.shares > 1 ? salt[0] : 0; }
  std::uint64_t share(std::uint64_t bytes) const { return bytes / options_.shares; }
  void evict(std::uint64_t room, std::uint64_t owner);
  // Gives up the least of an owner's, or of all; false: there is none.
  bool evict_least(const std::uint64_t* owner);
  double worth(const StoredFile& file) const;
  void forget(const FilePtr& file);
  void log(const std::string& line) const;

  const DiskOptions options_;
  HostMemory& memory_;
  std::map<std::string, FilePtr> files_;  // by name, those of other models too
  std::vector<Found> found_;
  std::set<std::uint64_t> beginnings_;  // of files of other models
  std::uint64_t total_ = 0;             // bytes of all files
  struct Owner {
    std::uint64_t bytes = 0;    // of its files of this model
    std::uint64_t waiting = 0;  // of them, to be written
    std::uint64_t tick = 0;
  };
  std::map<std::uint64_t, Owner> owners_;
  CostLine rate_;         // seconds over bytes
  bool failing_ = false;  // the last file could not be written
  bool looking_ = false;
  Clock::time_point looked_;

  std::mutex mutex_;  // of what follows
  std::vector<std::function<void()>> news_;

  engine::JobThread reader_;  // last, both: they use the others
  engine::JobThread writer_;
};

}  // namespace sluice::scheduler
