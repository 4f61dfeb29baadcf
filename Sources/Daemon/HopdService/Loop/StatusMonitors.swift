// The clients that read a status each second.

import HopdControl

/// Sends the status to monitoring clients.
struct StatusMonitors {
  private var clients: [ControlAnswer] = []
  private var sentAt: ContinuousClock.Instant?

  /// Adds a client, which gets a status at once.
  mutating func add(_ client: ControlAnswer) {
    clients.append(client)
    sentAt = nil
  }

  /// When the next status is due; nil without clients.
  func due(now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
    clients.isEmpty ? nil : (sentAt ?? now).advanced(by: .seconds(1))
  }

  /// Sends the status if it is due; skips a client that has not read the last one.
  mutating func send(now: ContinuousClock.Instant, status: () -> ControlValue) {
    guard !clients.isEmpty else { return }
    if let last = sentAt, now < last.advanced(by: .seconds(1)) { return }
    sentAt = now
    clients.removeAll(where: \.isGone)
    let ready = clients.filter(\.isReading)
    guard !ready.isEmpty else { return }
    let value = ControlValue.object(["status": status()])
    for client in ready { client.reply(value, continues: true) }
  }
}
