#include "grammar/schema/formats.h"

#include <fmt/format.h>
#include <vector>

namespace sluice::grammar::schema {
namespace {

const std::string kDate =
    "(?:\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|"
    "02-(?:0[1-9]|1\\d|2[0-8]))|"
    "(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)";
const std::string kSecondFraction = "(?:\\.\\d{1,18})?";

// A leap second is the last of a day in UTC; local clocks show another time then, on the same day west of
// Greenwich and on the next day east of it. Time zones are multiples of a quarter of an hour.
struct LeapSecond {
  std::string same_day, next_day;
};

LeapSecond leap_second() {
  constexpr int kDay = 24 * 60, kQuarter = 15;
  const auto clock = [](int minutes) { return fmt::format("{:02}:{:02}", minutes / 60, minutes % 60); };
  LeapSecond result{"23:59:60" + kSecondFraction + "(?:[Zz]|[+-]00:00)", ""};
  for (int local = kQuarter - 1; local < kDay - 1; local += kQuarter) {
    const std::string time = fmt::format("{}:60{}", clock(local), kSecondFraction);
    result.same_day += fmt::format("|{}-{}", time, clock(kDay - 1 - local));
    result.next_day += fmt::format("{}{}\\+{}", local < kQuarter ? "" : "|", time, clock(local + 1));
  }
  return result;
}

const std::string kTime =
    "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d" + kSecondFraction + "(?:[Zz]|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)";

std::string time() {
  const LeapSecond leap = leap_second();
  return "(?:" + kTime + "|" + leap.same_day + "|" + leap.next_day + ")";
}

// Leap seconds occur at the end of June or December (RFC 3339, section 5.7).
std::string date_time() {
  const LeapSecond leap = leap_second();
  return "(?:" + kDate + "[Tt]" + kTime + "|\\d{4}-(?:(?:06-30|12-31)[Tt](?:" + leap.same_day +
         ")|(?:07-01|01-01)[Tt](?:" + leap.next_day + ")))";
}

const std::string kByte = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const std::string kIpv4 = kByte + "(?:\\." + kByte + "){3}";

std::string ipv6() {
  const std::string h16 = "[0-9A-Fa-f]{1,4}", ls32 = "(?:" + h16 + ":" + h16 + "|" + kIpv4 + ")";
  const auto times = [&](int count) { return fmt::format("(?:{}:){{{}}}", h16, count); };
  const auto up_to = [&](int count) { return fmt::format("(?:(?:{}:){{0,{}}}{})?", h16, count, h16); };
  return "(?:" + times(6) + ls32 + "|::" + times(5) + ls32 + "|(?:" + h16 + ")?::" + times(4) + ls32 + "|" +
         up_to(1) + "::" + times(3) + ls32 + "|" + up_to(2) + "::" + times(2) + ls32 + "|" + up_to(3) +
         "::" + h16 + ":" + ls32 + "|" + up_to(4) + "::" + ls32 + "|" + up_to(5) + "::" + h16 + "|" +
         up_to(6) + "::)";
}

const std::string kLabel = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";

// `more` lists characters beyond ASCII.
std::string email(const std::string& more) {
  const std::string atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~" + more + "-]+";
  std::string label = kLabel;
  if (!more.empty())
    label = "[A-Za-z0-9" + more + "](?:[A-Za-z0-9" + more + "-]{0,61}[A-Za-z0-9" + more + "])?";
  return "(?:" + atom + "(?:\\." + atom + ")*|\"(?:[ !#-\\[\\]-~" + more + "]|\\\\[ -~])*\")@(?:" + label +
         "(?:\\." + label + ")*|\\[(?:" + kIpv4 + "|IPv6:" + ipv6() + ")\\])";
}

// URIs (RFC 3986) and, with characters beyond ASCII, IRIs (RFC 3987).
class Identifier {
 public:
  Identifier(const std::string& more, const std::string& more_in_query) {
    const std::string encoded = "|%[0-9A-Fa-f]{2})";
    const std::string plain = "(?:[A-Za-z0-9._~!$&'()*+,;=" + more;
    pchar_ = plain + ":@-]" + encoded;
    no_colon_ = plain + "@-]" + encoded;
    const std::string user = plain + ":-]" + encoded + "*", name = plain + "-]" + encoded + "*";
    authority_ = "(?:" + user + "@)?(?:\\[(?:" + ipv6() +
                 "|[Vv][0-9A-Fa-f]+\\.[A-Za-z0-9._~!$&'()*+,;=:-]+)\\]|" + name + ")(?::\\d*)?";
    query_ = "(?:\\?(?:" + pchar_ + "|[/?" + more_in_query + "])*)?(?:#(?:" + pchar_ + "|[/?])*)?";
  }

  std::string absolute() const {
    return "[A-Za-z][A-Za-z0-9+.-]*:(?:" + rooted() + "|" + pchar_ + "+(?:/" + pchar_ + "*)*|)" + query_;
  }
  std::string reference() const {
    return "(?:" + absolute() + "|(?:" + rooted() + "|" + no_colon_ + "+(?:/" + pchar_ + "*)*|)" + query_ +
           ")";
  }

 private:
  std::string rooted() const {
    return "//" + authority_ + "(?:/" + pchar_ + "*)*|/(?:" + pchar_ + "+(?:/" + pchar_ + "*)*)?";
  }

  std::string pchar_, no_colon_, authority_, query_;
};

const std::string kBeyondAscii = "\\u0080-\\uD7FF\\uE000-\U0010FFFF";
const std::string kPrivate = "\\uE000-\\uF8FF\U000F0000-\U000FFFFD\U00100000-\U0010FFFD";

std::string beyond_ascii_in_iris() {
  std::string result = "\\u00A0-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFEF";
  result += "\U00010000-\U0001FFFD\U00020000-\U0002FFFD\U00030000-\U0003FFFD\U00040000-\U0004FFFD";
  result += "\U00050000-\U0005FFFD\U00060000-\U0006FFFD\U00070000-\U0007FFFD\U00080000-\U0008FFFD";
  result += "\U00090000-\U0009FFFD\U000A0000-\U000AFFFD\U000B0000-\U000BFFFD\U000C0000-\U000CFFFD";
  return result + "\U000D0000-\U000DFFFD\U000E1000-\U000EFFFD";
}

const std::string kDuration =
    "P(?:\\d+W|(?:\\d+Y(?:\\d+M(?:\\d+D)?)?|\\d+M(?:\\d+D)?|\\d+D)(?:T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M"
    "(?:\\d+S)?|\\d+S))?|T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S))";
const std::string kPointer = "(?:/(?:[^~/]|~[01])*)*";

std::string uri_template() {
  const std::string name = "(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})";
  const std::string variable = name + "(?:\\.?" + name + ")*(?:\\*|:[1-9]\\d{0,3})?";
  return "(?:[^\\x00-\\x20\"<>\\\\^`{|}%\\x7f-\\x9f]|%[0-9A-Fa-f]{2}|\\{[+#./;?&=,!@|]?" + variable + "(?:," +
         variable + ")*\\})*";
}

struct Known {
  std::string_view name;
  std::string pattern;
};

const std::vector<Known>& known_formats() {
  static const std::vector<Known> known = [] {
    const Identifier uri("", ""), iri(beyond_ascii_in_iris(), kPrivate);
    return std::vector<Known>{
        {"date", kDate},
        {"time", time()},
        {"date-time", date_time()},
        {"duration", kDuration},
        {"email", email("")},
        {"idn-email", email(kBeyondAscii)},
        {"ipv4", kIpv4},
        {"ipv6", ipv6()},
        {"uri", uri.absolute()},
        {"uri-reference", uri.reference()},
        {"iri", iri.absolute()},
        {"iri-reference", iri.reference()},
        {"uri-template", uri_template()},
        {"uuid", "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"},
        {"json-pointer", kPointer},
        {"relative-json-pointer", "(?:0|[1-9]\\d*)(?:#|" + kPointer + ")"},
    };
  }();
  return known;
}

// Which host labels with the prefix xn-- are valid is beyond a regular expression.
constexpr std::string_view kUnsupportedFormats[] = {"hostname", "idn-hostname", "regex"};

}  // namespace

Format find_format(std::string_view name) {
  for (const Known& known : known_formats())
    if (known.name == name) return {Format::Kind::pattern, known.pattern};
  for (const std::string_view known : kUnsupportedFormats)
    if (known == name) return {Format::Kind::unsupported, {}};
  return {Format::Kind::annotation, {}};
}

}  // namespace sluice::grammar::schema
