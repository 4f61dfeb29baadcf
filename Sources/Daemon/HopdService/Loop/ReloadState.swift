// Whether a reload is running, whether another must follow, and who waits for the end.

import HopdControl

/// The reload of the configuration.
struct ReloadState {
  private(set) var isRunning = false
  private var mustFollow = false
  private var clients: [ControlAnswer] = []

  /// Begins a reload; false while one is running, which another follows.
  mutating func begin() -> Bool {
    mustFollow = isRunning
    defer { isRunning = true }
    return !isRunning
  }

  /// Creates a reload follow the start.
  mutating func postpone() { mustFollow = true }

  /// Sends a client the reply at the end of the reload.
  mutating func notify(_ client: ControlAnswer) { clients.append(client) }

  /// Ends the reload.
  mutating func end(_ reply: ControlReply) {
    isRunning = false
    for client in clients { client.send(reply) }
    clients = []
  }

  /// Whether another reload must begin.
  var isDue: Bool { mustFollow && !isRunning }
}
