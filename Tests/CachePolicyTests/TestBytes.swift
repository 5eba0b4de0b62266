import CachePolicy

/// Short ways in for the tables of this target's tests: texts in, texts out.
func text(_ bytes: some Sequence<UInt8>) -> String { String(decoding: Array(bytes), as: UTF8.self) }

func text(_ bytes: (some Sequence<UInt8>)?) -> String? { bytes.map { text($0) } }

/// 2001-09-09 01:46:40 UTC, a round number of seconds.
let noonSeconds: Int64 = 1_000_000_000
let noonMilliseconds: Int64 = noonSeconds * 1000

/// The IMF-fixdate of a second.
func date(_ seconds: Int64) -> String {
  var output: [UInt8] = []
  HTTPDate.format(seconds, into: &output)
  return text(output)
}
