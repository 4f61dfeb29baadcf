// The keys that an operator has set for this run.

/// Keys that an operator has set for this run.
struct RunSettings {
  private var changed: [String: (now: String, configured: String)] = [:]

  /// Notes that a key was set; one that is set to its configured value is not changed any more.
  mutating func set(_ key: String, to now: String, before: String) {
    let configured = changed[key]?.configured ?? before
    changed[key] = now == configured ? nil : (now, configured)
  }

  /// Sets the keys in a new setup.
  mutating func apply(to setup: inout DaemonSetup) {
    for (key, value) in changed {
      if let configured = setup.override(key, value.now) { changed[key] = (value.now, configured) }
    }
  }

  /// Each key with its value and the configured one.
  var lines: [String] { changed.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value.now) \($0.value.configured)" } }
}
