// The binding of policies to programs, and their start. The engine looks a program up by the class name that the
// mapping model has; PolicyProcess starts it, and ProgramConversation exchanges messages with it.

import Diagnostics
import MigrationPolicy
import SystemPackage

/// A program that implements a policy, and its limits.
package struct PolicyBinding: Sendable, Hashable {
  /// Program and arguments. A program without `/` is searched for in PATH; otherwise the path is absolute.
  package var command: [String]
  /// Time, memory, message size.
  package var limits: PolicyLimits

  /// Binds a command.
  package init(command: [String], limits: PolicyLimits = PolicyLimits()) {
    self.command = command
    self.limits = limits
  }
}

/// Policies in programs of their own, bound by class name.
package struct PolicyPrograms: PolicyProvider, Sendable {
  /// By class name, with or without module.
  private let bindings: [String: PolicyBinding]
  private let observer: @Sendable (_ policy: String, _ mapping: String, _ line: String) -> Void
  private let isStopped: @Sendable () -> Bool

  /// Binds programs; `observer` gets every line that a program writes to standard error, with class and entity mapping,
  /// `isStopped` ends a wait early.
  package init(
    _ bindings: [String: PolicyBinding], isStopped: @escaping @Sendable () -> Bool = { false },
    observer: @escaping @Sendable (_ policy: String, _ mapping: String, _ line: String) -> Void = { _, _, _ in }
  ) {
    self.bindings = bindings
    self.isStopped = isStopped
    self.observer = observer
  }

  package func isBound(_ policy: String) -> Bool { !names(for: policy).isEmpty }

  /// Names of the bindings that fit a class: the exact name alone, otherwise names that agree where one of the two has
  /// no module.
  private func names(for policy: String) -> [String] {
    if bindings[policy] != nil { return [policy] }
    let bare = PolicyClassName.bare(policy)
    return bindings.keys.filter { name in
      PolicyClassName.bare(name) == bare && (name == bare || policy == bare)
    }.sorted()
  }

  /// The binding of a class. Throws where there is none, or where the name alone is ambiguous.
  package func binding(for policy: String) throws -> PolicyBinding {
    let names = names(for: policy)
    guard let name = names.first, let binding = bindings[name] else {
      throw HopdError(
        .policyUnusable, "no program is bound to the policy \(policy)",
        hint: "bind one with --policy \(PolicyClassName.bare(policy))=/path/to/program (docs/POLICIES.md)")
    }
    guard names.count == 1 else {
      throw HopdError(
        .policyUnusable, "several programs are bound to the policy \(policy): \(names.joined(separator: ", "))",
        hint: "bind one to the name \(policy)")
    }
    return binding
  }

  /// Throws unless the class is bound to a program that can be started. For plans: nothing is started.
  package func check(_ policy: String) throws {
    _ = try executable(of: try binding(for: policy), policy: policy)
  }

  package func open(_ introduction: PolicyIntroduction) throws -> any PolicyConversation {
    let binding = try binding(for: introduction.policy)
    let executable = try executable(of: binding, policy: introduction.policy)
    let environment = Self.environment(introduction)
    let process: PolicyProcess
    do {
      process = try PolicyProcess.start(
        executable, arguments: binding.command, environment: environment, memory: binding.limits.memory)
    } catch {
      throw HopdError(
        .policyUnusable, "the program of the policy \(introduction.policy) cannot be started: \(executable.printable)",
        cause: error, hint: "start the script with a line such as #!/usr/bin/python3 whose program exists")
    }
    let (policy, mapping) = (introduction.policy, introduction.mapping)
    let exchange = PolicyExchange(
      process, limits: binding.limits, isStopped: isStopped, observer: { [observer] in observer(policy, mapping, $0) })
    let conversation = ProgramConversation(introduction, command: binding.command, exchange: exchange)
    do {
      try conversation.introduce()
    } catch {
      conversation.close()
      throw error
    }
    return conversation
  }

  /// The environment of a program: nothing of hopd's but the paths of programs, the languages, and the program's
  /// purpose.
  private static func environment(_ introduction: PolicyIntroduction) -> [String: String] {
    var variables = [
      "PATH": ProgramPath.folders, "LANG": "C.UTF-8", "HOPD_PROTOCOL": "\(PolicyWire.version)",
      "HOPD_POLICY": introduction.policy, "HOPD_MAPPING": introduction.mapping,
      // A Swift program that traps would otherwise spend seconds on a backtrace that is not read.
      "SWIFT_BACKTRACE": "enable=no",
    ]
    variables["PYTHONPATH"] = PolicyLibrary.folder
    return variables.filter { !$0.value.utf8.contains(0) }
  }

  private func executable(of binding: PolicyBinding, policy: String) throws(HopdError) -> FilePath {
    try ProgramPath.of(binding.command, called: "the program of the policy \(policy)", code: .policyUnusable)
  }
}
