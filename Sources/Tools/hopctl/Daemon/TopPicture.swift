// What `hopctl top` shows: the daemon in a few words, the stores at work, and the queue.

import Diagnostics
import HopdControl

/// The picture of one status.
struct TopPicture: Sendable {
  let status: ControlValue
  /// Stores that wait, in the order of their paths.
  let waiting: [ControlValue]

  private static let work: [Table<ControlValue>.Column] = [
    Table.Column(name: "%", isNumber: true) { "\(min(Int(min(max($0["fraction"]?.real ?? 0, 0), 1) * 100), 99))" },
    Table.Column(name: "rows/s", isNumber: true, rank: 3) { job in
      let pace = isPaused(job) ? 0 : job["rowsPerSecond"]?.real ?? 0
      return "\(pace >= 1 && pace < 1e12 ? MessageFormatter.count(Int64(pace)) : "-")"
    },
    Table.Column(name: "eta", isNumber: true, rank: 1) { job in
      // In place of a time that does not pass; the last column that a narrow terminal loses.
      isPaused(job) ? "paused" : "\(job["remaining"]?.real.map { MessageFormatter.duration($0) } ?? "-")"
    },
    Table.Column(name: "hop", rank: 5) { job in
      let hop = job["hop"]?.whole ?? 0
      return "\(hop > 0 ? "\(hop)/\(job["hops"]?.whole ?? 0)" : "-")"
    },
    Table.Column(name: "activity", rank: 2) { TerminalText(activity($0)) },
    Table.Column(name: "versions", rank: 4) { "\(StoreText.versions($0["from"]?.text, $0["to"]?.text))" },
    Table.Column(name: "store", isPath: true) { "\($0["store"]?.text ?? "")" },
  ]

  /// The activity and its subject, such as "copying Book" and "creating index on Book.title".
  private static func activity(_ job: ControlValue) -> String {
    let (activity, subject) = (job["activity"]?.text ?? "", job["subject"]?.text ?? "")
    if subject.isEmpty { return activity }
    // The engine names the copy of the whole file by its step.
    if subject == "copy" { return "\(activity) file" }
    return activity == "indexing" ? "creating \(subject)" : "\(activity) \(subject)"
  }

  private static func isPaused(_ job: ControlValue) -> Bool { job["activity"]?.text == "paused" }

  private static let queue: [Table<ControlValue>.Column] = [
    Table.Column(name: "since", rank: 2) { "\($0["since"]?.text ?? "")" },
    Table.Column(name: "versions", rank: 1) { "\(StoreText.versions($0["version"]?.text, $0["target"]?.text))" },
    // The title stands for the whole table: a narrow terminal has no other column.
    Table.Column(name: "waiting-store", isPath: true) { "\($0["store"]?.text ?? "")" },
  ]

  /// The daemon and the counts of its stores.
  private var head: FittedLine {
    var line = FittedLine(separator: ", ")
    let counts = status["counts"]
    func count(_ key: String) -> Int64 { counts?[key]?.whole ?? 0 }
    line.add("hopd \(status["version"]?.text ?? "")", rank: 5)
    line.add(MessageFormatter.count(count("stores"), "store", "stores"), rank: 0)
    for (rank, part) in [
      ("failed", "failed"), ("migrating", "migrating"), ("waiting", "waiting"), ("retrying", "retrying"),
      ("toInspect", "to inspect"),
    ].enumerated() where count(part.0) > 0 {
      line.add("\(MessageFormatter.count(count(part.0))) \(part.1)", rank: 1 + rank)
    }
    if let remaining = status["remaining"]?.real {
      line.add("queue \(MessageFormatter.duration(remaining))", rank: 3)
    }
    return line
  }

  /// What keeps the queue waiting, and what the operator is to know.
  private var notes: [String] {
    func texts(_ key: String) -> String? {
      let texts = (status[key]?.list ?? []).compactMap(\.text)
      return texts.isEmpty ? nil : texts.joined(separator: ", ")
    }
    return [
      texts("paused").map { "paused: \($0)" }, texts("waits").map { "waits: \($0)" },
      texts("unavailable").map { "unavailable: \($0)" }, status["note"]?.text,
    ].compactMap { $0 }
  }

  /// The lines without a limit of their number; `width` is that of the terminal, nil for none.
  func lines(width: Int?) -> [TerminalText] {
    var lines = [TerminalText(head.text(columns: width ?? .max))] + notes.map { TerminalText($0) }
    let work = status["work"]?.list ?? []
    lines.append("")
    lines += work.isEmpty ? ["no migration is running"] : Table(Self.work).lines(of: work, width: width)
    return lines + (waiting.isEmpty ? [] : [""] + Table(Self.queue).lines(of: waiting, width: width))
  }

  /// The same for a screen: as many lines as it has, the last of which names the key that leaves it.
  func screen(rows: Int, columns: Int) -> [TerminalText] {
    let all = lines(width: columns)
    let room = max(0, rows - 1)
    if all.count <= room {
      return all + Array(repeating: "", count: room - all.count) + ["q: quit"]
    }
    let hidden = MessageFormatter.count(all.count - room, "more line", "more lines")
    return Array(all.prefix(room)) + ["q: quit; \(hidden)"]
  }
}
