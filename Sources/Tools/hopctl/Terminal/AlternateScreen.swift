// A screen that is redrawn in place, as top and less have it: the terminal's alternate screen, which leaves no trace
// when it ends. Whatever ends the program, the terminal is as before: keys and signals are taken by threads of their
// own, which restore it first.

import Diagnostics
import Glibc
import Synchronization

/// The alternate screen of the terminal on standard output.
final class AlternateScreen: Sendable {
  /// What is drawn, for a size of the terminal.
  typealias Picture = @Sendable (_ rows: Int, _ columns: Int) -> [TerminalText]

  private struct State {
    var picture: Picture?
    /// Whether the terminal shows the screen.
    var isShown = false
    /// The settings of the terminal before.
    var settings: termios?
  }

  private let state = Mutex(State())

  /// Whether standard output is a terminal that can show a screen.
  static var isPossible: Bool {
    StandardStreams.Stream.output.isTerminal && getenv("TERM").map { String(cString: $0) != "dumb" } ?? false
  }

  /// Shows the screen until the program ends: by `q`, by a signal, or when `end` was called.
  func begin() {
    // All threads block the signals, and a dedicated thread waits for them.
    var signals = Self.signals
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    show()
    start { screen in
      var signals = AlternateScreen.signals
      var signal: Int32 = 0
      while true {
        guard sigwait(&signals, &signal) == 0 else { continue }
        switch signal {
        case SIGWINCH: screen.redraw()
        case SIGTSTP:
          screen.end()
          kill(getpid(), SIGSTOP)
        case SIGCONT: screen.show()
        default: screen.leave()
        }
      }
    }
    guard isatty(STDIN_FILENO) == 1 else { return }
    start { screen in
      var key: UInt8 = 0
      while true {
        let count = read(STDIN_FILENO, &key, 1)
        if count < 0, errno == EINTR { continue }
        guard count == 1 else { return }
        if key == UInt8(ascii: "q") || key == UInt8(ascii: "Q") { screen.leave() }
      }
    }
  }

  /// Draws a picture, and draws it again when the size of the terminal changes.
  func draw(_ picture: @escaping Picture) {
    state.withLock { state in
      state.picture = picture
      Self.draw(state)
    }
  }

  /// Restores the terminal.
  func end() {
    state.withLock { state in
      guard state.isShown else { return }
      state.isShown = false
      try? StandardStreams.write("\u{1b}[?25h\u{1b}[?1049l", to: .output)
      if var settings = state.settings { tcsetattr(STDIN_FILENO, TCSANOW, &settings) }
    }
  }

  // MARK: Threads

  private func leave() -> Never {
    end()
    exit(ExitStatus.success.rawValue)
  }

  private func show() {
    state.withLock { state in
      guard !state.isShown else { return }
      state.isShown = true
      var settings = termios()
      if isatty(STDIN_FILENO) == 1, tcgetattr(STDIN_FILENO, &settings) == 0 {
        state.settings = settings
        // Keys arrive at once and are not shown. Ctrl-C still makes its signal.
        settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
        tcsetattr(STDIN_FILENO, TCSANOW, &settings)
      }
      try? StandardStreams.write("\u{1b}[?1049h\u{1b}[?25l", to: .output)
      Self.draw(state)
    }
  }

  private func redraw() { state.withLock { Self.draw($0) } }

  private static func draw(_ state: State) {
    guard state.isShown, let picture = state.picture, let size = StandardStreams.Stream.output.size else { return }
    // A character in the last column would leave the cursor between two lines.
    let columns = max(1, size.columns - 1)
    let inColor = StandardStreams.Stream.output.showsColor
    let lines = picture(size.rows, columns).prefix(size.rows).map {
      $0.escaped.cut(to: columns, at: .end).rendered(inColor: inColor) + "\u{1b}[K"
    }
    try? StandardStreams.write("\u{1b}[H" + lines.joined(separator: "\r\n") + "\u{1b}[J", to: .output)
  }

  private static var signals: sigset_t {
    var signals = sigset_t()
    sigemptyset(&signals)
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP, SIGCONT] { sigaddset(&signals, signal) }
    return signals
  }

  /// Runs `body` on a thread of its own.
  private func start(_ body: @escaping @Sendable (AlternateScreen) -> Void) {
    final class Work: Sendable {
      let body: @Sendable () -> Void
      init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    let work = Unmanaged.passRetained(Work { [self] in body(self) })
    var thread = pthread_t()
    let code = pthread_create(
      &thread, nil,
      { context in
        guard let context else { return nil }
        Unmanaged<Work>.fromOpaque(context).takeRetainedValue().body()
        return nil
      }, work.toOpaque())
    if code == 0 { pthread_detach(thread) } else { work.release() }
  }
}
