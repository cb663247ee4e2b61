// sluice chat: a conversation. The model keeps its state between turns; Ctrl-C stops the answer, not the
// program.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "chat/conversation.h"
#include "chat/line_reader.h"
#include "chat/wrapping_printer.h"
#include "commands/commands.h"
#include "commands/remote.h"
#include "json.h"
#include "options/cache_disk.h"
#include "options/generation.h"
#include "options/input.h"
#include "sluice/error.h"
#include "terminal/output.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace sluice::cli::commands {

namespace {

constexpr std::int64_t kDefaultContext = 8192;
constexpr const char* kQuotes = "\"\"\"";  // begin and end a message of several lines

struct Options {
  options::Model model;
  RemoteOptions remote;
  options::Generation generation;
  std::string system;
  std::string resume;
  std::string cache_disk;
  std::string when_full = "shift";
  bool stats = false;
};

void say(const std::string& text) {
  fmt::print(stderr, "{}\n", terminal::styled(terminal::Style::dim, terminal::printable(text, true), stderr));
}

class Chat {
 public:
  Chat(const Options& options, const GenerateOptions& generation, const Engine& engine,
       chat::Responder& responder)
      : options_(options),
        generation_(generation),
        conversation_(engine, responder,
                      options.when_full == "stop" ? chat::WhenFull::stop : chat::WhenFull::shift) {
    std::error_code ignored;
    if (!options.resume.empty() && std::filesystem::exists(options.resume, ignored)) load(options.resume);
    if (!options.system.empty()) conversation_.set_system(options.system);
  }

  void run() {
    const auto reader = chat::make_line_reader(command_names(), chat::history_file());
    // With --nodes, mpirun handles the signal.
    const char* const interrupt = options_.model.nodes.empty() ? "Ctrl-C stops an answer" : "Ctrl-C ends all";
    say(fmt::format("Type a message; /help lists what else there is. {}, Ctrl-D ends.", interrupt));
    terminal::note_every_interrupt();
    std::string message;
    while (!ended_ && read_message(*reader, message)) {
      terminal::forget_interrupt();
      if (message.empty()) continue;
      try {
        message.starts_with('/') ? obey(message) : ask(message);
      } catch (const Error& error) {
        fmt::print(stderr, "sluice: {}\n", terminal::printable(error.what()));
      }
    }
  }

 private:
  struct SlashCommand {
    const char* name;
    const char* argument;
    const char* meaning;
    void (Chat::*act)(const std::string& argument);
  };
  static const std::vector<SlashCommand>& slash_commands();

  static std::vector<std::string> command_names() {
    std::vector<std::string> names;
    for (const SlashCommand& command : slash_commands()) names.emplace_back(command.name);
    return names;
  }

  // False at the end of the input. Lines between """ and """, or after a trailing \, form one message.
  bool read_message(chat::LineReader& reader, std::string& message) {
    message.clear();
    bool quoted = false;
    for (std::string line;;) {
      const bool more = quoted || !message.empty();
      const auto outcome = reader.read(more ? more_prompt() : prompt(), line);
      if (outcome == chat::LineReader::Outcome::end) return !message.empty();
      if (outcome == chat::LineReader::Outcome::interrupted_empty && !more && hinted_) return false;
      hinted_ = outcome == chat::LineReader::Outcome::interrupted_empty;
      if (outcome != chat::LineReader::Outcome::line) {
        if (hinted_) say("(Ctrl-C again, Ctrl-D or /exit leaves)");
        terminal::forget_interrupt();
        message.clear();
        quoted = false;
        continue;
      }
      if (!more && line.starts_with(kQuotes)) {
        quoted = true;
        line.erase(0, 3);
      }
      const bool last = quoted ? line.ends_with(kQuotes) : !line.ends_with('\\');
      if (quoted && last) line.resize(line.size() - 3);
      if (!quoted && !last) line.pop_back();
      message += line;
      if (last) return true;
      message += '\n';
    }
  }

  static std::string prompt() { return colored_prompt("> "); }
  static std::string more_prompt() { return colored_prompt(". "); }
  // Marks characters that take no column, for the editor.
  static std::string colored_prompt(const std::string& text) {
    return terminal::has_colors(stderr) ? "\1\033[1;32m\1" + text + "\1\033[0m\1" : text;
  }

  void ask(const std::string& message) {
    show([&](const chat::Conversation::Show& token) {
      return conversation_.ask(message, generation_, token);
    });
  }

  // Runs `generate` and prints its answer as it arrives.
  template <class F>
  void show(F&& generate) {
    chat::WrappingPrinter printer;
    std::optional<terminal::Waiting> waiting(std::in_place, "reading");
    const chat::Answer answer = generate([&](const GeneratedToken& token) {
      waiting.reset();
      printer.write(token.text);
      return !terminal::interrupted();
    });
    waiting.reset();
    printer.finish();
    if (answer.forgotten > 0)
      say(fmt::format("[the context of {} tokens is full: the oldest {} messages were forgotten]",
                      conversation_.context_size(), answer.forgotten));
    if (answer.result.reason == FinishReason::length)
      say(conversation_.context_used() >= conversation_.context_size() - 1
              ? "[cut off: the context is full]"
              : fmt::format("[cut off after {} tokens; -n allows more]", answer.result.ids.size()));
    last_ = answer;
    if (options_.stats) stats("");
    if (!options_.resume.empty()) save(options_.resume);
  }

  void obey(const std::string& line) {
    const auto space = line.find(' ');
    const std::string name = line.substr(0, space);
    std::string argument = space == std::string::npos ? "" : line.substr(space + 1);
    argument.erase(0, std::min(argument.find_first_not_of(' '), argument.size()));
    for (const SlashCommand& command : slash_commands())
      if (name == command.name) return (this->*command.act)(argument);
    const std::string meant = nearest(name, command_names());
    throw Error(ErrorKind::input, meant.empty()
                                      ? fmt::format("there is no {}; /help lists what there is", name)
                                      : fmt::format("there is no {}; did you mean {}?", name, meant));
  }

  void help(const std::string&) {
    for (const SlashCommand& command : slash_commands())
      say(fmt::format("{:16} {}", fmt::format("{} {}", command.name, command.argument), command.meaning));
    say("Alt-Enter, a \\ at the end of a line, or \"\"\" around them make messages of several lines.");
  }

  void clear(const std::string&) {
    conversation_.clear();
    say("[forgotten]");
  }

  void undo(const std::string&) {
    if (!conversation_.undo()) throw Error(ErrorKind::input, "there is nothing to take back");
    say("[the last message and its answer are taken back]");
  }

  // With another seed, because the same one would give the same answer.
  void retry(const std::string&) {
    if (!conversation_.can_retry()) throw Error(ErrorKind::input, "there is nothing to answer again");
    ++generation_.sampling.seed;
    show([&](const chat::Conversation::Show& token) { return conversation_.retry(generation_, token); });
  }

  void system(const std::string& text) {
    if (text.empty()) return say(conversation_.system().empty() ? "[none]" : conversation_.system());
    conversation_.set_system(text);
    say("[from now on]");
  }

  void save_as(const std::string& file) {
    if (file.empty()) throw Error(ErrorKind::input, "/save needs a file name");
    save(file);
    say(fmt::format("[{} messages in {}]", conversation_.messages().size(), file));
  }

  void save(const std::string& file) {
    const Json all{{"model", options_.model.model}, {"messages", conversation_.messages()}};
    terminal::write_file(file, dump(all, 2) + "\n");
  }

  void load(const std::string& file) {
    if (file.empty()) throw Error(ErrorKind::input, "/load needs a file name");
    auto all = Json::parse(options::read_input(file), nullptr, false);
    if (all.is_object() && all.contains("messages")) all = Json(all["messages"]);
    if (!all.is_array()) throw Error(ErrorKind::input, fmt::format("'{}' contains no conversation", file));
    conversation_.set_messages(std::move(all));
    say(fmt::format("[{} messages]", conversation_.messages().size()));
  }

  void stats(const std::string&) {
    const GenerateResult& result = last_.result;
    const auto generated = static_cast<double>(result.ids.size());
    say(fmt::format(
        "prompt {} tokens after {} kept in {:.2f} s, {} tokens at {:.1f} tok/s, context {} of {}, seed {}",
        result.prompt_tokens, last_.kept, result.prompt_seconds, result.ids.size(),
        result.decode_seconds > 0 ? (generated - 1) / result.decode_seconds : 0.0,
        conversation_.context_used(), conversation_.context_size(), generation_.sampling.seed));
  }

  void exit(const std::string&) { ended_ = true; }

  const Options& options_;
  GenerateOptions generation_;
  chat::Conversation conversation_;
  chat::Answer last_;
  bool ended_ = false;
  bool hinted_ = false;  // whether the last input was Ctrl-C at an empty prompt
};

const std::vector<Chat::SlashCommand>& Chat::slash_commands() {
  static const std::vector<SlashCommand> commands{
      {"/help", "", "this list", &Chat::help},
      {"/clear", "", "forget the conversation", &Chat::clear},
      {"/undo", "", "take the last message and its answer back", &Chat::undo},
      {"/retry", "", "answer the last message again", &Chat::retry},
      {"/system", "[TEXT]", "what the model is told before the conversation", &Chat::system},
      {"/save", "FILE", "write the conversation", &Chat::save_as},
      {"/load", "FILE", "read one", &Chat::load},
      {"/stats", "", "speed of the last answer, context used", &Chat::stats},
      {"/exit", "", "leave, as Ctrl-D does", &Chat::exit},
  };
  return commands;
}

void run(Options& options) {
  if (!options.remote.url.empty()) return chat_remote(options.remote, options.generation, options.system);
  const auto engine = options.model.load();
  if (!engine->has_chat_template())
    throw Error(ErrorKind::unsupported, "this checkpoint has no chat template; use 'sluice run --raw'");
  const std::int64_t wanted = options.generation.context(*engine, kDefaultContext);
  SchedulerOptions cache{.context = std::min(wanted, engine->summary().max_positions)};
  options::read_cache_disk(options.cache_disk, cache);
  const auto responder = chat::make_responder(engine, cache);
  Chat(options, options.generation.resolve(options.model.folder()), *engine, *responder).run();
}

}  // namespace

void add_chat(Parser& parser) {
  auto options = std::make_shared<Options>();
  Command command = parser.add("chat", "Chat with a model");
  options::add_model(command, options->model.model);
  command.option("--system", options->system, "System message: instructions for the whole conversation");
  command.option("--resume", options->resume,
                 "Continue the conversation in this file, if it exists, and save it there after each answer");
  command.option("--cache-disk", options->cache_disk, options::kCacheDiskMeaning);
  command.choice("--when-full", options->when_full, {"shift", "stop"},
                 "When the context is full: forget the oldest turns, or stop");
  command.flag("--stats", options->stats, "Print speed and context used after each answer to stderr");
  options->generation.add(command);
  options->remote.add(command);
  options::add_engine(command, options->model);
  command.example("sluice chat --system \"You are brief.\"", "a conversation");
  command.example("sluice chat --resume friends.json", "a conversation that you can continue tomorrow");
  command.on_run([options] { run(*options); });
}

}  // namespace sluice::cli::commands
