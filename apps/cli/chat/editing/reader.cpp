#include "chat/editing/reader.h"

#include <histedit.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cwchar>
#include <optional>

#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace sluice::cli::chat::editing {

namespace {

namespace fs = std::filesystem;

// Makes Ctrl-C a key instead of a signal while it exists: otherwise the terminal would discard typed
// characters before anyone could read them. libedit takes over the terminal's characters when it begins to
// read.
class CtrlCAsKey {
 public:
  CtrlCAsKey() {
    if (tcgetattr(STDIN_FILENO, &before_) != 0) return;
    termios changed = before_;
    changed.c_cc[VINTR] = _POSIX_VDISABLE;
    tcsetattr(STDIN_FILENO, TCSANOW, &changed);
  }
  ~CtrlCAsKey() { tcsetattr(STDIN_FILENO, TCSANOW, &before_); }
  CtrlCAsKey(const CtrlCAsKey&) = delete;
  CtrlCAsKey& operator=(const CtrlCAsKey&) = delete;

 private:
  termios before_{};
};

class EditingReader : public LineReader {
 public:
  EditingReader(std::vector<std::string> words, fs::path file)
      : words_(std::move(words)),
        file_(std::move(file)),
        edit_(el_init("sluice", stdin, stderr, stderr), el_end),
        history_(history_init(), history_end) {
    EditLine* edit = edit_.get();
    el_set(edit, EL_CLIENTDATA, this);
    el_set(edit, EL_PROMPT_ESC, &EditingReader::prompt, kEscape);
    el_set(edit, EL_EDITOR, "emacs");
    el_set(edit, EL_SIGNAL, 0);
    el_set(edit, EL_GETCFN, &EditingReader::next_character);
    terminal::note_resizes();
    el_set(edit, EL_ADDFN, "sluice-paste", "Insert what is pasted", &EditingReader::paste);
    el_set(edit, EL_ADDFN, "sluice-newline", "Begin another line", &EditingReader::newline);
    el_set(edit, EL_ADDFN, "sluice-complete", "Complete a command", &EditingReader::complete);
    el_set(edit, EL_ADDFN, "sluice-interrupt", "Drop the line", &EditingReader::interrupt);
    bind();
    history(history_.get(), &event_, H_SETSIZE, kRemembered);
    history(history_.get(), &event_, H_SETUNIQUE, 1);
    if (!file_.empty()) history(history_.get(), &event_, H_LOAD, file_.c_str());
    el_set(edit, EL_HIST, history, history_.get());
    el_source(edit, nullptr);  // the user's own key bindings
  }

  ~EditingReader() override {
    if (file_.empty()) return;
    std::error_code ignored;
    fs::create_directories(file_.parent_path(), ignored);
    history(history_.get(), &event_, H_SAVE, file_.c_str());
  }

  Outcome read(const std::string& prompt, std::string& line) override {
    prompt_ = prompt;
    const bool pastes = terminal::has_colors(stderr) || std::getenv("TERM") != nullptr;
    if (pastes) std::fputs("\033[?2004h", stderr);
    interrupt_.reset();
    const CtrlCAsKey key;
    // Before the prompt is drawn: libedit would wait until the first key, which the terminal might then
    // handle itself.
    el_set(edit_.get(), EL_PREP_TERM, 1);
    el_resize(edit_.get());  // the size may have changed while an answer was printed
    int count = 0;
    const char* read = el_gets(edit_.get(), &count);
    if (pastes) std::fputs("\033[?2004l", stderr);
    if (read == nullptr || count <= 0) {
      std::fputs("\n", stderr);
      return interrupt_.value_or(Outcome::end);
    }
    line = read;
    while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
    if (!line.empty()) history(history_.get(), &event_, H_ENTER, line.c_str());
    return Outcome::line;
  }

 private:
  static constexpr char kEscape = '\1';  // encloses what takes no column
  static constexpr int kRemembered = 1000;
  static constexpr wchar_t kInterruptKey = 3;

  static EditingReader& self(EditLine* edit) {
    EditingReader* reader = nullptr;
    el_get(edit, EL_CLIENTDATA, &reader);
    return *reader;
  }

  // Reads a key for libedit, but redraws the line when the terminal's size changes, and treats an interrupt
  // from elsewhere as the key for it.
  static int next_character(EditLine* edit, wchar_t* character) {
    constexpr auto kInvalid = static_cast<std::size_t>(-1);
    constexpr auto kIncomplete = static_cast<std::size_t>(-2);
    std::mbstate_t state{};
    for (;;) {
      char byte = 0;
      const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
      if (count == 0 || (count < 0 && errno != EINTR)) return static_cast<int>(count);
      if (count < 0) {
        if (terminal::was_resized()) el_resize(edit);
        if (!terminal::interrupted()) continue;
        terminal::forget_interrupt();
        *character = kInterruptKey;
        return 1;
      }
      std::size_t length = std::mbrtowc(character, &byte, 1, &state);
      // Bytes that are not UTF-8 are skipped; the byte that shows it may begin another character.
      if (length == kInvalid) {
        state = {};
        length = std::mbrtowc(character, &byte, 1, &state);
      }
      if (length == kInvalid) state = {};
      if (length != kInvalid && length != kIncomplete) return 1;
    }
  }

  static char* prompt(EditLine* edit) { return self(edit).prompt_.data(); }

  // The terminal marks the end of pasted text; line ends in it do not send the message.
  static unsigned char paste(EditLine* edit, int) {
    constexpr std::wstring_view kEnd = L"\033[201~";
    std::wstring text;
    for (wchar_t c = 0; !text.ends_with(kEnd) && el_wgetc(edit, &c) == 1;) text += c == L'\r' ? L'\n' : c;
    if (text.ends_with(kEnd)) text.resize(text.size() - kEnd.size());
    while (text.ends_with(L'\n')) text.pop_back();
    return text.empty() || el_winsertstr(edit, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }

  static unsigned char newline(EditLine* edit, int) {
    return el_winsertstr(edit, L"\n") == 0 ? CC_REFRESH : CC_ERROR;
  }

  static unsigned char interrupt(EditLine* edit, int) {
    const LineInfo* typed = el_line(edit);
    self(edit).interrupt_ =
        typed->lastchar == typed->buffer ? Outcome::interrupted_empty : Outcome::interrupted;
    return CC_EOF;
  }

  static unsigned char complete(EditLine* edit, int) {
    const LineInfo* line = el_line(edit);
    const std::string_view typed(line->buffer, static_cast<std::size_t>(line->cursor - line->buffer));
    const std::string* found = nullptr;
    for (const std::string& word : self(edit).words_)
      if (!typed.empty() && word.starts_with(typed)) {
        if (found != nullptr) return CC_REFRESH_BEEP;
        found = &word;
      }
    if (found == nullptr) return CC_REFRESH_BEEP;
    return el_insertstr(edit, (found->substr(typed.size()) + " ").c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }

  void bind() {
    constexpr const char* kKeys[][2] = {
        {"\033[200~", "sluice-paste"},      {"\033\r", "sluice-newline"},  {"\033\n", "sluice-newline"},
        {"\t", "sluice-complete"},          {"^C", "sluice-interrupt"},    {"^R", "em-inc-search-prev"},
        {"\033[A", "ed-prev-history"},      {"\033[B", "ed-next-history"}, {"\033[C", "ed-next-char"},
        {"\033[D", "ed-prev-char"},         {"\033[H", "ed-move-to-beg"},  {"\033[F", "ed-move-to-end"},
        {"\033[3~", "ed-delete-next-char"}, {"\033[1;5C", "em-next-word"}, {"\033[1;5D", "ed-prev-word"}};
    for (const auto& [key, action] : kKeys) el_set(edit_.get(), EL_BIND, key, action, nullptr);
  }

  std::vector<std::string> words_;
  fs::path file_;
  std::unique_ptr<EditLine, void (*)(EditLine*)> edit_;
  std::unique_ptr<History, void (*)(History*)> history_;
  HistEvent event_{};
  std::optional<Outcome> interrupt_;  // how Ctrl-C ended the line
  std::string prompt_;
};

}  // namespace

std::unique_ptr<LineReader> make_reader(std::vector<std::string> words, const fs::path& history) {
  return std::make_unique<EditingReader>(std::move(words), history);
}

}  // namespace sluice::cli::chat::editing
