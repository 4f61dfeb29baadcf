// The settings of the installed unit that limit where the service may write. They are read from its files, so no
// program is started, and it works without a running systemd.

import Diagnostics
import Glibc
import SystemPackage

/// Settings of hopd.service and its drop-ins.
package struct UnitFile: Sendable {
  /// The unit's name, for messages.
  package let name: String
  /// The value of `%i`; empty if the unit is not an instance.
  private let instance: String
  /// `User=`; nil for root.
  package private(set) var user: String?
  /// Values of `[Service]`, in the order of the files; assigning an empty text clears a list.
  private var values: [String: [String]] = [:]

  /// The folders in which systemd searches for units, the first before the later ones.
  private static let folders: [FilePath] = [
    "/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
    "/lib/systemd/system",
  ]

  /// Folders that `ProtectHome=` hides.
  static let homes: [FilePath] = ["/home", "/root", "/run/user"]
  /// Folders that `PrivateTmp=` hides.
  static let temporaries: [FilePath] = ["/tmp", "/var/tmp"]

  /// Reads the installed unit below `root`; nil if there is none.
  package static func installed(root: FilePath = "/", name: String = "hopd.service") -> UnitFile? {
    let folders = folders.map { root.pushing(FilePath(root: nil, $0.components)) }
    // An instance has its own file or the template's; its own drop-ins override those of the template.
    var names = [name]
    if let at = name.firstIndex(of: "@") { names.append("\(name[...at]).service") }
    guard
      let main = names.lazy.flatMap({ name in folders.lazy.compactMap { text($0.appending(name)) } }).first
    else { return nil }
    var dropIns: [String: FilePath] = [:]
    for unit in names.reversed() {
      for folder in folders.reversed() {
        for file in Self.names(folder.appending("\(unit).d")) where file.hasSuffix(".conf") {
          dropIns[file] = folder.appending("\(unit).d").appending(file)
        }
      }
    }
    let texts = dropIns.sorted { $0.key < $1.key }.compactMap { text($0.value) }
    return UnitFile([main] + texts, name: name)
  }

  /// The installed unit whose hopd reads a configuration: `hopd.service` for the installed configuration (nil) and for
  /// /etc/hopd/hopd.toml, `hopd@NAME.service` for /etc/hopd/NAME.toml. Nil for any other file.
  package static func serving(_ configuration: FilePath?, root: FilePath = "/") -> UnitFile? {
    name(serving: configuration, root: root).flatMap { installed(root: root, name: $0) }
  }

  /// The name of that unit, installed or not.
  package static func name(serving configuration: FilePath?, root: FilePath = "/") -> String? {
    guard let configuration else { return "hopd.service" }
    let folder = root.appending("etc").appending("hopd")
    guard configuration.removingLastComponent() == folder, configuration.extension == "toml",
      let name = configuration.stem
    else { return nil }
    return name == "hopd" ? "hopd.service" : "hopd@\(name).service"
  }

  /// Parses the texts of a unit and its drop-ins, in their order.
  package init(_ texts: [String], name: String = "hopd.service") {
    self.name = name
    instance =
      name.firstIndex(of: "@").map { at in
        let rest = name[name.index(after: at)...]
        return String(rest.hasSuffix(".service") ? rest.dropLast(8) : rest)
      } ?? ""
    for text in texts {
      var isService = false
      for line in text.replacing("\\\n", with: " ").split(separator: "\n") {
        let line = line.trimmed
        if line.hasPrefix("[") { isService = line == "[Service]" }
        guard isService, !line.hasPrefix("#"), !line.hasPrefix(";"), let equals = line.firstIndex(of: "=") else {
          continue
        }
        let key = String(line[..<equals].trimmed)
        let value = String(line[line.index(after: equals)...].trimmed)
        values[key] = value.isEmpty ? [] : (values[key] ?? []) + [value]
      }
    }
    user = values["User"]?.last.flatMap { $0 == "root" ? nil : $0 }
  }

  /// Why the service may not write below a path, as a predicate for the path; nil if the unit allows it.
  package func obstacle(to path: FilePath) -> String? {
    if let hidden = hiding(path) { return hidden }
    func isBelow(_ folders: [FilePath]) -> Bool { folders.contains { path.starts(with: $0) } }
    guard values["ProtectSystem"]?.last == "strict", !isBelow(listed), !isBelow(own) else { return nil }
    return "is read-only for \(name): no ReadWritePaths= of the unit names it"
  }

  /// Why the service cannot see a path, in the same form; nil if it can.
  package func hiding(_ path: FilePath) -> String? {
    func isBelow(_ folders: [FilePath]) -> Bool { folders.contains { path.starts(with: $0) } }
    let hidesHome = ["yes", "true", "1", "on"].contains(values["ProtectHome"]?.last ?? "")
    // `tmpfs` puts an empty file system over the home directories, in which only bound paths are visible.
    let emptiesHome = values["ProtectHome"]?.last == "tmpfs" && !isBelow(bound)
    if hidesHome || emptiesHome, isBelow(Self.homes) { return "is hidden from \(name) by ProtectHome=" }
    if ["yes", "true", "1", "on"].contains(values["PrivateTmp"]?.last ?? ""), isBelow(Self.temporaries),
      !isBelow(listed)
    {
      return "is hidden from \(name) by PrivateTmp="
    }
    return nil
  }

  /// The paths of `ReadWritePaths=` and `BindPaths=`.
  private var listed: [FilePath] { words("ReadWritePaths").map { FilePath($0).lexicallyNormalized() } + bound }

  /// The folders that systemd makes for the service.
  private var own: [FilePath] {
    [
      ("StateDirectory", "/var/lib"), ("CacheDirectory", "/var/cache"), ("LogsDirectory", "/var/log"),
      ("RuntimeDirectory", "/run"),
    ]
    .flatMap { key, base in words(key).map { FilePath(base).pushing(FilePath($0)) } }
  }

  private var bound: [FilePath] { words("BindPaths").map { FilePath(String($0.prefix { $0 != ":" })) } }

  /// The words of a list, without `-` and `+` in front; `%%` is a percent sign.
  private func words(_ key: String) -> [String] {
    (values[key] ?? []).flatMap { ShellWords.split($0, escapedInQuotes: "\"\\") ?? [] }.map { word in
      let parts = word.drop { "-+".contains($0) }.split(separator: "%%", omittingEmptySubsequences: false)
      return parts.map { $0.replacing("%i", with: instance).replacing("%I", with: instance) }.joined(separator: "%")
    }
  }

  private static func text(_ path: FilePath) -> String? {
    guard let file = path.withPlatformString({ fopen($0, "re") }) else { return nil }
    defer { fclose(file) }
    var buffer = [UInt8](repeating: 0, count: 1 << 18)
    let count = fread(&buffer, 1, buffer.count, file)
    return String(decoding: buffer.prefix(count), as: UTF8.self)
  }

  private static func names(_ folder: FilePath) -> [String] {
    var names: [String] = []
    // The unit only explains what may stop hopd, so what cannot be read is left out.
    try? folder.readEntries { entry in
      names.append(String(cString: entry.name))
      return true
    }
    return names
  }
}

extension Substring {
  fileprivate var trimmed: Substring {
    var text = drop { $0 == " " || $0 == "\t" || $0 == "\r" }
    while let last = text.last, last == " " || last == "\t" || last == "\r" { text.removeLast() }
    return text
  }
}
