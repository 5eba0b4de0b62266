/// `idle`, `herd` and `slow`: many clients at once.
#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// How many connections are opened before the first of them must have connected: below the usual
/// listen backlog, so that none waits for a retransmitted SYN.
private let openedAtOnceMax = 200
private let connectionsMax = 60_000

/// Opens connections in groups, runs one request on each, and holds them until the time is over.
func holdIdleConnections(_ options: Options) throws(UsageError) -> Int32 {
  let port = try options.requiredPort()
  guard options.count <= connectionsMax else {
    throw UsageError(reason: "at most \(connectionsMax) connections")
  }
  raiseDescriptorLimit()
  let endMilliseconds = monotonicMilliseconds() + options.timeLimitMilliseconds
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)
  defer { buffer.deallocate() }
  var held: [LoopbackConnection] = []
  var failures = Failures()
  while held.count + failures.total < options.count, monotonicMilliseconds() < endMilliseconds {
    let count = min(openedAtOnceMax, options.count - held.count - failures.total)
    var group: [LoopbackConnection] = []
    for number in 0..<count {
      do { group.append(try LoopbackConnection(port: port, number: number)) } catch {
        failures.add(error)
      }
    }
    for connection in group { connection.request(options.path, authority: options.authority) }
    // A server that is full may leave connections waiting: what it holds by then is the answer.
    let patienceMilliseconds = min(endMilliseconds, monotonicMilliseconds() + 5000)
    failures.add(run(group, until: patienceMilliseconds, buffer))
    held += group.filter { $0.responsesCompleted > 0 && !$0.peerHasClosed }
  }
  report("holding \(held.count)")
  while monotonicMilliseconds() < endMilliseconds {
    let ready = waitUntilReady(
      held, timeoutMilliseconds: Int32(max(1, endMilliseconds - monotonicMilliseconds())))
    for index in ready.reversed() {
      do { try held[index].advance(into: buffer) } catch { failures.add(error) }
      if held[index].peerHasClosed {
        held.remove(at: index)
        failures.closedEarly += 1
      }
    }
  }
  report("held \(held.count)")
  failures.explain()
  return held.count == options.count ? 0 : 1
}

/// Connects first and then asks all at once; every body must be whole and the same. The
/// milliseconds are those of the slowest client, from the moment when all asked.
func sendHerd(_ options: Options) throws(UsageError) -> Int32 {
  let port = try options.requiredPort()
  guard options.count <= connectionsMax else {
    throw UsageError(reason: "at most \(connectionsMax) connections")
  }
  raiseDescriptorLimit()
  let endMilliseconds = monotonicMilliseconds() + options.timeLimitMilliseconds
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)
  defer { buffer.deallocate() }
  var herd: [LoopbackConnection] = []
  var failures = Failures()
  while herd.count + failures.total < options.count {
    do {
      herd.append(try LoopbackConnection(port: port, number: herd.count))
      if herd.count % openedAtOnceMax == 0 { usleep(10_000) }
    } catch { failures.add(error) }
  }
  while herd.contains(where: { !$0.isConnected }), monotonicMilliseconds() < endMilliseconds {
    usleep(1000)
  }
  let askedMilliseconds = monotonicMilliseconds()
  for connection in herd { connection.request(options.path, authority: options.authority) }
  // What cannot be sent now is sent, or fails and is counted, below.
  for connection in herd { _ = try? connection.advance(into: buffer, readBytesMax: 0) }
  failures.add(run(herd, until: endMilliseconds, buffer))
  let doneMilliseconds = monotonicMilliseconds()

  let complete = herd.filter { $0.responsesCompleted > 0 }
  var statusCounts: [Int: Int] = [:]
  for connection in complete { statusCounts[connection.reader.statusCode, default: 0] += 1 }
  let bodies = Set(complete.map { [$0.reader.bodyBytes, $0.reader.digest] })
  for (statusCode, count) in statusCounts.sorted(by: { $0.key < $1.key }) {
    report("status \(statusCode) \(count)")
  }
  report("complete \(complete.count) of \(options.count)")
  report("bodies \(bodies.count == 1 ? "identical" : "\(bodies.count) different")")
  if let body = bodies.first, bodies.count == 1 { report("bytes \(body[0])") }
  report("milliseconds \(doneMilliseconds - askedMilliseconds)")
  failures.explain()
  let isGood = complete.count == options.count && bodies.count == 1
  return isGood && statusCounts[200] == options.count ? 0 : 1
}

/// Reads a fixed number of bytes a tick with a small receive buffer, so that the server feels it.
func readSlowly(_ options: Options) throws(UsageError) -> Int32 {
  let port = try options.requiredPort()
  guard options.count <= 1000 else { throw UsageError(reason: "at most 1000 slow clients") }
  let ticksPerSecond = 20
  let bytesPerTick = max(1, options.bytesPerSecond / ticksPerSecond)
  let startMilliseconds = monotonicMilliseconds()
  let endMilliseconds = startMilliseconds + options.timeLimitMilliseconds
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 16)
  defer { buffer.deallocate() }
  var clients: [LoopbackConnection] = []
  var failures = Failures()
  for _ in 0..<options.count {
    do {
      clients.append(try LoopbackConnection(port: port, receiveBufferBytes: 65_536))
    } catch { failures.add(error) }
  }
  for client in clients { client.request(options.path, authority: options.authority) }
  var bytes = 0
  var tick: Int64 = 0
  var running = clients
  while !running.isEmpty, monotonicMilliseconds() < endMilliseconds {
    for client in running {
      do throws(LoopbackConnection.Failure) {
        bytes += try client.advance(into: buffer, readBytesMax: bytesPerTick)
        if client.peerHasClosed, client.responsesCompleted == 0 { throw .closedEarly }
      } catch {
        failures.add(error)
        running.removeAll { $0 === client }
      }
    }
    running.removeAll { $0.responsesCompleted > 0 }
    tick += 1
    let nextMilliseconds = startMilliseconds + tick * 1000 / Int64(ticksPerSecond)
    usleep(UInt32(max(1, nextMilliseconds - monotonicMilliseconds()) * 1000))
  }
  let finished = clients.filter { $0.responsesCompleted > 0 }.count
  report("finished \(finished) of \(options.count)")
  report("bytes \(bytes)")
  failures.explain()
  return failures.total == 0 ? 0 : 1
}

/// Runs the connections until each has its response, has failed, or the time is over.
private func run(
  _ connections: [LoopbackConnection], until endMilliseconds: Int64,
  _ buffer: UnsafeMutableRawBufferPointer
) -> Failures {
  var failures = Failures()
  var running = connections
  while !running.isEmpty, monotonicMilliseconds() < endMilliseconds {
    var over: Set<Int> = []
    for index in waitUntilReady(running, timeoutMilliseconds: 100) {
      let connection = running[index]
      do throws(LoopbackConnection.Failure) {
        try connection.advance(into: buffer)
        if connection.responsesCompleted > 0 {
          over.insert(index)
        } else if connection.peerHasClosed {
          throw .closedEarly
        }
      } catch {
        failures.add(error)
        over.insert(index)
      }
    }
    running = running.indices.filter { !over.contains($0) }.map { running[$0] }
  }
  failures.timedOut += running.count
  return failures
}

/// What went wrong, counted by kind.
struct Failures {
  var closedEarly = 0
  var timedOut = 0
  private var malformed = 0
  private var system: [String: Int] = [:]
  var total: Int { closedEarly + timedOut + malformed + system.values.reduce(0, +) }

  mutating func add(_ failure: LoopbackConnection.Failure) {
    switch failure {
    case .closedEarly: closedEarly += 1
    case .response: malformed += 1
    case .system(let call, let code):
      system["\(call): \(String(cString: strerror(code)))", default: 0] += 1
    }
  }

  mutating func add(_ other: Failures) {
    closedEarly += other.closedEarly
    timedOut += other.timedOut
    malformed += other.malformed
    system.merge(other.system, uniquingKeysWith: +)
  }

  func explain() {
    if closedEarly > 0 { complain("closed early: \(closedEarly)") }
    if timedOut > 0 { complain("timed out: \(timedOut)") }
    if malformed > 0 { complain("malformed: \(malformed)") }
    for (reason, count) in system.sorted(by: { $0.key < $1.key }) {
      complain("\(reason): \(count)")
    }
  }
}
