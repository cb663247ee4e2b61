#include "commands/bench/bench_csv.h"

#include <build_info.h>  // made by the build
#include <fmt/chrono.h>
#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>

#include "sluice/error.h"

namespace sluice::cli {

namespace {

// In quotes where RFC 4180 wants them.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + '"';
}

// The words of the command line but `--csv FILE`, which says nothing of what was measured.
std::string command() {
  std::ifstream file("/proc/self/cmdline");
  std::stringstream all;
  all << file.rdbuf();
  std::string words = "sluice";
  std::string word;
  std::getline(all, word, '\0');  // the program
  while (std::getline(all, word, '\0')) {
    if (word == "--csv") {
      std::getline(all, word, '\0');
      continue;
    }
    if (!word.starts_with("--csv=")) words += ' ' + word;
  }
  return words;
}

}  // namespace

void append_figures(const std::string& file, const std::string& machine, const std::vector<Figure>& figures) {
  const bool fresh = std::ifstream(file).peek() == std::ifstream::traits_type::eof();
  std::ofstream out(file, std::ios::app);
  if (fresh) out << "machine,what,command,median,low,high,unit,peer,fraction,bar,intensity,commit,date\n";
  const std::string date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  for (const Figure& figure : figures) {
    const std::string columns[] = {
        machine,          figure.what,          command(),   figure.median,   figure.low,
        figure.high,      figure.unit,          figure.peer, figure.fraction, "",
        figure.intensity, std::string(kCommit), date};
    const char* separator = "";
    for (const std::string& column : columns) {
      out << separator << cell(column);
      separator = ",";
    }
    out << '\n';
  }
  out.flush();
  if (!out)
    throw Error(ErrorKind::resource, fmt::format("cannot write '{}': {}", file, std::strerror(errno)));
}

}  // namespace sluice::cli
