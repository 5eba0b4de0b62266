import Backends
import CachePolicy
import Dispatch
import Synchronization
import Testing

/// What whoever uses a remote data source may rely on.
struct OriginClientTests {
  /// Notes whether it was told anything before it was given its transfer.
  private final class Receiver: OriginResponseReceiver, @unchecked Sendable {
    // @unchecked Sendable: touched on the client's loop alone, but for the two atomics.
    let wasToldTooSoon = Atomic(false)
    let hasEnded = DispatchSemaphore(value: 0)
    var transfer: (any OriginTransfer)?

    private func note() {
      if transfer == nil { wasToldTooSoon.store(true, ordering: .sequentiallyConsistent) }
    }

    func originSentInterim(status: UInt16, fields: Fields, version: ReceivedVersion) { note() }
    func originSentHead(_ head: OriginResponseHead) { note() }
    func originSentBody(_ bytes: UnsafeRawBufferPointer) { note() }
    func originFinished() { originEnded() }
    func originFailed(_ error: OriginError) { originEnded() }

    private func originEnded() {
      note()
      hasEnded.signal()
    }
  }

  /// libcurl knows at once that it cannot; and a port where nobody listens, for our own HTTP/1.1.
  @Test(arguments: ["nothing://127.0.0.1", "http://127.0.0.1:1"])
  func aReceiverHearsOfNothingBeforeItHasItsTransfer(_ url: String) {
    OriginClient.prepareProcess()
    let endpoint = OriginEndpoint(
      url: url, connectTimeoutMilliseconds: 5000,
      firstByteTimeoutMilliseconds: 5000, stallTimeoutMilliseconds: 5000, retriesMax: 0)
    let loop = EventLoop()
    let client = Unchecked(
      OriginClient(loop: loop, endpoints: [endpoint], connectionsMax: 8, idleConnectionsMax: 8))
    let receivers = (0..<8).map { _ in Receiver() }
    loop.post {
      for receiver in receivers {
        let request = OriginRequest(
          endpoint: endpoint, method: .get, methodToken: Array("GET".utf8), target: [0x2F])
        receiver.transfer = client.value.start(request, receiver: receiver)
      }
    }
    let thread = loop.start()
    for receiver in receivers {
      #expect(receiver.hasEnded.wait(timeout: .now() + 60) == .success)
      let wasToldTooSoon = receiver.wasToldTooSoon.load(ordering: .sequentiallyConsistent)
      #expect(!wasToldTooSoon)
    }
    loop.post { client.value.close() }
    loop.stop()
    thread.join()
  }

  /// What belongs to a loop, on its way there.
  private struct Unchecked<Value>: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
  }
}
