// Asks a running server, as the command line does.
#pragma once

#include <functional>
#include <string>

namespace sluice::server {

// Posts a request whose answer is a stream of server-sent events and hands over the data of each, "[DONE]"
// left out, until `data` returns false. Throws Error with what the server says where it refuses. `url` is
// that of the server, http://HOST:PORT.
void ask_server(const std::string& url, const std::string& key, const std::string& path,
                const std::string& body, const std::function<bool(const std::string& data)>& data);

// What the server answers to GET. Throws Error as above.
std::string get_from_server(const std::string& url, const std::string& key, const std::string& path);

}  // namespace sluice::server
