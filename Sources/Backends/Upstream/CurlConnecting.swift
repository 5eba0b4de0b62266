internal import CCurl
internal import CachePolicy

/// Connections that libcurl makes for others, who speak on them themselves.
extension CurlClient {
  /// Makes a connection to an endpoint: names, addresses of either family and the time it may take are
  /// libcurl's to see to. The descriptor is the caller's.
  func connect(
    to endpoint: OriginEndpoint,
    _ completion: @escaping (_ descriptor: Result<Int32, OriginError>) -> Void
  ) {
    afterCallbacks { [self] in
      let identity = ObjectIdentifier(endpoint)
      let pooled = connectors[identity]?.popLast()
      guard !isClosed,
        let handle = pooled ?? CurlHandle(endpoint: endpoint, client: self, connectsOnly: true)
      else { return completion(.failure(.unreachable("the proxy is stopping"))) }
      handle.use = .connecting(completion)
      connecting[ObjectIdentifier(handle)] = handle
      entered { curl_multi_add_handle(multi, handle.easy) }
    }
  }

  func connected(
    _ handle: CurlHandle, _ code: CURLcode,
    _ completion: (_ descriptor: Result<Int32, OriginError>) -> Void
  ) {
    let descriptor = code == CURLE_OK ? handle.takeConnection() : nil
    handle.use = .none
    connecting[ObjectIdentifier(handle)] = nil
    depth += 1
    // libcurl closes its own descriptor of the connection.
    curl_multi_remove_handle(multi, handle.easy)
    depth -= 1
    let identity = ObjectIdentifier(handle.endpoint)
    if let count = connectors[identity]?.count, count < CurlClient.pooledHandlesMax {
      connectors[identity]?.append(handle)
    }
    if let descriptor {
      completion(.success(descriptor))
    } else {
      completion(.failure(CurlClient.error(of: code)))
    }
  }
}
