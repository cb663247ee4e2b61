// A client for running servers, for the command line.
#pragma once

#include <functional>
#include <string>

namespace sluice::server {

// Posts a request whose answer is a stream of server-sent events, and passes on the data of each, without
// "[DONE]", until `data` returns false. Throws Error with the server's message if it refuses. `url` is that
// of the server, http://HOST:PORT.
void ask_server(const std::string& url, const std::string& key, const std::string& path,
                const std::string& body, const std::function<bool(const std::string& data)>& data);

// The body of the server's answer to GET. Throws Error as above.
std::string get_from_server(const std::string& url, const std::string& key, const std::string& path);

}  // namespace sluice::server
