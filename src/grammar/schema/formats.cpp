#include "grammar/schema/formats.h"

namespace sluice::grammar {
namespace {

#define DATE_4 "(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29"
#define DATE                                                                                      \
  "(?:\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|" \
  "02-(?:0[1-9]|1\\d|2[0-8]))|" DATE_4 ")"
#define OFFSET "(?:[Zz]|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)"
#define TIME                                                       \
  "(?:(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,9})?" OFFSET \
  "|23:59:60(?:\\.\\d{1,9})?(?:[Zz]|[+-]00:00))"
#define BYTE "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define IPV4 BYTE "(?:\\." BYTE "){3}"
#define H16 "[0-9A-Fa-f]{1,4}"
#define LS32 "(?:" H16 ":" H16 "|" IPV4 ")"
#define IPV6                                                                                              \
  "(?:(?:" H16 ":){6}" LS32 "|::(?:" H16 ":){5}" LS32 "|(?:" H16 ")?::(?:" H16 ":){4}" LS32 "|(?:(?:" H16 \
  ":){0,1}" H16 ")?::(?:" H16 ":){3}" LS32 "|(?:(?:" H16 ":){0,2}" H16 ")?::(?:" H16 ":){2}" LS32         \
  "|(?:(?:" H16 ":){0,3}" H16 ")?::" H16 ":" LS32 "|(?:(?:" H16 ":){0,4}" H16 ")?::" LS32 "|(?:(?:" H16   \
  ":){0,5}" H16 ")?::" H16 "|(?:(?:" H16 ":){0,6}" H16 ")?::)"
#define LABEL "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
#define HOSTNAME "(?!.{254})(?!..--|(?:[^.]*\\.)+..--)" LABEL "(?:\\." LABEL ")*"
#define ATOM "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
#define EMAIL                                                                                                \
  "(?:" ATOM "(?:\\." ATOM ")*|\"(?:[ !#-\\[\\]-~]|\\\\[ -~])*\")@(?:" LABEL "(?:\\." LABEL ")*|\\[(?:" IPV4 \
  "|IPv6:" IPV6 ")\\])"
#define PCHAR "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
#define USERINFO "(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*"
#define REGNAME "(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*"
#define AUTHORITY                                                                                 \
  "(?:" USERINFO "@)?(?:\\[(?:" IPV6 "|v[0-9A-Fa-f]+\\.[A-Za-z0-9._~!$&'()*+,;=:-]+)\\]|" REGNAME \
  ")(?::\\d*)?"
#define QUERY "(?:\\?(?:" PCHAR "|[/?])*)?(?:#(?:" PCHAR "|[/?])*)?"
#define HIER \
  "(?://" AUTHORITY "(?:/" PCHAR "*)*|/(?:" PCHAR "+(?:/" PCHAR "*)*)?|" PCHAR "+(?:/" PCHAR "*)*|)"
#define URI "[A-Za-z][A-Za-z0-9+.-]*:" HIER QUERY
#define NOCOLON "(?:[A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})"
#define RELATIVE \
  "(?://" AUTHORITY "(?:/" PCHAR "*)*|/(?:" PCHAR "+(?:/" PCHAR "*)*)?|" NOCOLON "+(?:/" PCHAR "*)*|)" QUERY
#define DURATION                                                                                          \
  "P(?:\\d+W|(?:\\d+Y(?:\\d+M(?:\\d+D)?)?|\\d+M(?:\\d+D)?|\\d+D)(?:T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?" \
  ":\\d+S)?|\\d+S))?|T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S))"
#define POINTER "(?:/(?:[^~/]|~[01])*)*"
#define URI_TEMPLATE_VARIABLE \
  "(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})(?:\\.?(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2}))*(?:\\*|:[1-9]\\d{0,3})?"
#define URI_TEMPLATE                                                                                    \
  "(?:[^\\x00-\\x20\"<>\\\\^`{|}%\\x7f-\\x9f]|%[0-9A-Fa-f]{2}|\\{[+#./;?&=,!@|]?" URI_TEMPLATE_VARIABLE \
  "(?:," URI_TEMPLATE_VARIABLE ")*\\})*"

struct Known {
  std::string_view name, pattern;
};

constexpr Known kFormatPatterns[] = {
    {"date", DATE},
    {"time", TIME},
    {"date-time", DATE "[Tt]" TIME},
    {"duration", DURATION},
    {"email", EMAIL},
    {"hostname", HOSTNAME},
    {"ipv4", IPV4},
    {"ipv6", IPV6},
    {"uri", URI},
    {"uri-reference", "(?:" URI "|" RELATIVE ")"},
    {"uri-template", URI_TEMPLATE},
    {"uuid", "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"},
    {"json-pointer", POINTER},
    {"relative-json-pointer", "(?:0|[1-9]\\d*)(?:#|" POINTER ")"},
};

#undef DATE_4
#undef DATE
#undef OFFSET
#undef TIME
#undef BYTE
#undef IPV4
#undef H16
#undef LS32
#undef IPV6
#undef LABEL
#undef HOSTNAME
#undef ATOM
#undef EMAIL
#undef PCHAR
#undef USERINFO
#undef REGNAME
#undef AUTHORITY
#undef QUERY
#undef HIER
#undef URI
#undef NOCOLON
#undef RELATIVE
#undef DURATION
#undef POINTER
#undef URI_TEMPLATE_VARIABLE
#undef URI_TEMPLATE

constexpr std::string_view kUnsupportedFormats[] = {"idn-email", "idn-hostname", "iri", "iri-reference",
                                                    "regex"};

}  // namespace

Format find_format(std::string_view name) {
  for (const Known& known : kFormatPatterns)
    if (known.name == name) return {Format::Kind::pattern, known.pattern};
  for (const std::string_view known : kUnsupportedFormats)
    if (known == name) return {Format::Kind::unsupported, {}};
  return {Format::Kind::annotation, {}};
}

}  // namespace sluice::grammar
