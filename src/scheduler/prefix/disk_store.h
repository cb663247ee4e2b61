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

namespace sluice::scheduler::prefix {

// A file of this model; used by the owner's thread.
struct StoredFile {
  std::string name;
  FileKind kind = FileKind::rows;
  std::int64_t begin = 0;  // rows
  std::int64_t end = 0;
  std::uint64_t bytes = 0;
  std::uint64_t gain = 0;      // tokens
  std::uint64_t checksum = 0;  // checksum of its head; known once it is written
  std::uint64_t used = 0;      // last use, in ticks of its owner
  std::uint64_t owner = 0;     // the client whose share it counts toward
  SavedState pending;          // the contents, until they are on disk
  bool gone = false;           // removed, or about to be
};
using FilePtr = std::shared_ptr<StoredFile>;

struct DiskOptions {
  std::filesystem::path folder;
  std::uint64_t bytes = 0;  // limit for all files in it
  std::uint64_t fingerprint = 0;
  std::uint64_t row_bytes = 0;    // per block
  std::uint64_t state_bytes = 0;  // 0: the model has no recurrent states
  // Number of clients, told apart by the first half of their salts: each has its part of the room and evicts
  // only its own files.
  std::int64_t shares = 1;
  // Called on any thread, with one line for each file that cannot be used or written.
  std::function<void(const std::string& line)> log = {};
};

class DiskStore {
 public:
  // Creates the folder if necessary and scans it. Removes damaged files and what killed writers left; files
  // of other models stay as long as there is room. Data it reads is put in `memory`.
  DiskStore(DiskOptions options, HostMemory& memory);
  // Finishes the queued writes first.
  ~DiskStore();

  // Files of this model that have appeared since the last call, ordered by their ends.
  struct Found {
    FilePtr file;
    Salt salt = {};
    std::vector<std::int32_t> ids;
  };
  std::vector<Found> found();
  // Whether a file of another model, or of other options, begins like the prompt.
  bool others_begin(const Salt& salt, std::span<const std::int32_t> prompt) const;

  // The contents of a file to be written: rows [begin, end of ids), or the states after the ids.
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

  // Blocks of a file (a state is its only block), or bytes that are in memory already.
  struct Piece {
    FilePtr file = {};
    std::int64_t first = 0;
    std::int64_t count = 1;
    SavedState bytes = {};
  };
  // Pieces being read, long ones in several parts. Valid once done.
  struct Reading {
    std::atomic<bool> done = false;
    bool failed = false;
    std::vector<SavedState> parts;
  };
  std::shared_ptr<Reading> read(std::vector<Piece> pieces);
  // Estimated seconds, from earlier reads; 0: none yet.
  double seconds(std::uint64_t bytes) const;
  std::uint64_t bytes_of(const Piece& piece) const;  // to be read

  // Processes the results of its threads; every other call does that too.
  void settle();
  // Marks the files as used.
  void use(std::span<const FilePtr> files);
  void clear();
  std::uint64_t bytes() const { return total_; }

 private:
  // Passes a thread's result to settle().
  void tell(std::function<void()> news);
  void written(const FilePtr& file, std::uint64_t checksum, const std::string& error);
  void damaged(const FilePtr& file, const std::string& error);
  void set_aside(const FilePtr& file, const std::string& error);
  bool unlist(const FilePtr& file);
  // A piece with the file's properties at the time of the request.
  struct Wanted {
    Piece piece;
    SavedState pending;
    std::uint64_t checksum = 0;
  };
  void read_pieces(const std::vector<Wanted>& pieces, Reading& reading);
  // Reads one piece; returns how many bytes came from the disk.
  std::uint64_t read_piece(const Wanted& wanted, std::vector<SavedState>& parts);
  // The files in the folder, without those of known names.
  std::vector<PrefixFile> scan(const std::vector<std::string>& known) const;
  void look_again();
  void adopt(PrefixFile head);
  std::uint64_t owner_of(const Salt& salt) const { return options_.shares > 1 ? salt[0] : 0; }
  std::uint64_t share(std::uint64_t bytes) const { return bytes / options_.shares; }
  void evict(std::uint64_t room, std::uint64_t owner);
  // Evicts the least valuable file of an owner, or of all; false if there is none.
  bool evict_least(const std::uint64_t* owner);
  double worth(const StoredFile& file) const;
  void forget(const FilePtr& file);
  void log(const std::string& line) const;

  const DiskOptions options_;
  HostMemory& memory_;
  std::map<std::string, FilePtr> files_;  // by name, including those of other models
  std::vector<Found> found_;
  std::set<std::uint64_t> beginnings_;  // of other models' files
  std::uint64_t total_ = 0;             // bytes of all files
  struct Owner {
    std::uint64_t bytes = 0;    // of its files for this model
    std::uint64_t waiting = 0;  // of them, still to be written
    std::uint64_t tick = 0;
  };
  std::map<std::uint64_t, Owner> owners_;
  CostLine rate_;         // seconds over bytes
  bool failing_ = false;  // the last write failed
  bool looking_ = false;
  Clock::time_point looked_;

  std::mutex mutex_;  // guards the members below
  std::vector<std::function<void()>> news_;

  engine::JobThread reader_;  // both last, because they use the others
  engine::JobThread writer_;
};

}  // namespace sluice::scheduler::prefix
