// The state of a worker's lock: the name of the one file in the lock's folder. All of it is in the name, because a file
// system between machines keeps names exactly and may show old content (docs/formats/worker-lock.md).

import Diagnostics
import DurableFiles
import FoundationEssentials
import SystemPackage

/// A worker that holds a lock, or wants one.
package struct LockHolder: Hashable, Sendable {
  /// Its process.
  package let process: ProcessIdentity
  /// Name of its machine, for people.
  package let host: String
  /// Name of its run, as in the results.
  package let job: String
  /// How long it may stay silent, in milliseconds.
  package let lease: Int64

  /// Names a worker.
  package init(process: ProcessIdentity, host: String, job: String, lease: Int64) {
    self.process = process
    self.host = LockHolder.plain(host, most: 63)
    self.job = LockHolder.plain(job, most: 32)
    self.lease = lease
  }

  /// Letters, digits, dots and hyphens of a text: nothing that separates fields.
  private static func plain(_ text: String, most: Int) -> String {
    String(
      String.UnicodeScalarView(
        text.unicodeScalars.filter {
          $0.isASCII && ($0.properties.isAlphabetic || ("0"..."9").contains($0) || $0 == "." || $0 == "-")
        }.prefix(most)))
  }
}

/// The state of a lock that is held.
package struct LockEntry: Hashable, Sendable {
  /// The name of the file: no two moments of any lock have the same.
  package let name: String
  /// Its holder; nil where this hopd did not make the name.
  package let holder: LockHolder?
  /// Since when, in seconds since 1970 by the holder's clock; for people.
  package let since: Int64?

  /// The nonce of a holder that has not yet removed what the silent holder before it could still put in place begins
  /// with this.
  private static let fencing = "fencing-"

  /// Whether a holder before this one could still replace the store. The worker that inherits such a lock removes its
  /// staged stores.
  var isFencing: Bool { name.hasPrefix(Self.fencing) }

  /// The entry of a holder; `nonce` must be unique to it.
  init(_ holder: LockHolder, since: Int64, nonce: String, isFencing: Bool = false) {
    self.holder = holder
    self.since = since
    let process = holder.process
    let fields = [
      (isFencing ? Self.fencing : "") + nonce, String(holder.lease), process.boot, String(process.space),
      String(process.process),
      String(process.started), String(since), holder.job, holder.host,
    ]
    name = fields.joined(separator: ",")
  }

  /// Reads a name.
  init(name: String) {
    self.name = name
    let fields = name.split(separator: ",", omittingEmptySubsequences: false).map { String($0) }
    guard fields.count == 9, let lease = Int64(fields[1]), let space = UInt64(fields[3]),
      let process = Int32(fields[4]), let started = UInt64(fields[5]), let since = Int64(fields[6])
    else {
      (holder, since) = (nil, nil)
      return
    }
    holder = LockHolder(
      process: ProcessIdentity(boot: fields[2], space: space, process: process, started: started), host: fields[8],
      job: fields[7], lease: lease)
    self.since = since
  }

  /// Whether its holder has provably ended.
  func isGone(seenFrom observer: ProcessIdentity) -> Bool { holder?.process.isGone(seenFrom: observer) == true }

  /// "hopctl on node-7, process 4711, run 8c1e, since 2026-11-23T20:14:54Z".
  package var description: String {
    guard let holder, let since else { return "a worker that this hopctl does not know" }
    let time = Date(timeIntervalSince1970: Double(since)).formatted(.iso8601)
    return "a worker on \(holder.host.isEmpty ? "a machine without a name" : holder.host), process "
      + "\(holder.process.process), run \(holder.job), since \(time)"
  }
}
