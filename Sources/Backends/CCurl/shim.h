// Typed faces on libcurl's variadic setters, which Swift cannot call.
#pragma once
#include <curl/curl.h>

static inline CURLcode larder_curl_set_long(CURL *handle, CURLoption option, long value) {
  return curl_easy_setopt(handle, option, value);
}
static inline CURLcode larder_curl_set_offset(CURL *handle, CURLoption option, curl_off_t value) {
  return curl_easy_setopt(handle, option, value);
}
static inline CURLcode larder_curl_set_pointer(CURL *handle, CURLoption option, void *value) {
  return curl_easy_setopt(handle, option, value);
}
static inline CURLcode larder_curl_set_string(CURL *handle, CURLoption option, const char *value) {
  return curl_easy_setopt(handle, option, value);
}
static inline CURLcode larder_curl_set_data(CURL *handle, CURLoption option,
                                            size_t (*value)(char *, size_t, size_t, void *)) {
  return curl_easy_setopt(handle, option, value);
}
static inline CURLcode larder_curl_get_long(CURL *handle, CURLINFO info, long *value) {
  return curl_easy_getinfo(handle, info, value);
}
static inline CURLcode larder_curl_get_pointer(CURL *handle, CURLINFO info, void **value) {
  return curl_easy_getinfo(handle, info, value);
}
static inline CURLcode larder_curl_get_socket(CURL *handle, CURLINFO info, curl_socket_t *value) {
  return curl_easy_getinfo(handle, info, value);
}
static inline CURLMcode larder_curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}
static inline CURLMcode larder_curl_multi_set_pointer(CURLM *multi, CURLMoption option, void *value) {
  return curl_multi_setopt(multi, option, value);
}
static inline CURLMcode larder_curl_multi_set_socket_callback(
    CURLM *multi, int (*value)(CURL *, curl_socket_t, int, void *, void *)) {
  return curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, value);
}
static inline CURLMcode larder_curl_multi_set_timer_callback(
    CURLM *multi, int (*value)(CURLM *, long, void *)) {
  return curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, value);
}
// Called with the ports of a connection before a request goes out on it; false aborts the transfer.
static inline CURLcode larder_curl_set_before_request(CURL *handle,
                                                      int (*value)(void *, char *, char *, int, int)) {
  return curl_easy_setopt(handle, CURLOPT_PREREQFUNCTION, value);
}
static inline CURLcode larder_curl_set_close_socket(CURL *handle,
                                                    int (*value)(void *, curl_socket_t)) {
  return curl_easy_setopt(handle, CURLOPT_CLOSESOCKETFUNCTION, value);
}
