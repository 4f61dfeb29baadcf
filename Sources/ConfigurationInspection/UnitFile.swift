// The installed unit, as far as it says where the service may write. It is read from its files: no program is started,
// and it works where systemd does not run.

import Glibc
import SystemPackage

/// Settings of hopd.service and its drop-ins.
package struct UnitFile: Sendable {
  /// `User=`; nil for root.
  package private(set) var user: String?
  /// Values of `[Service]`, in the order of the files; a list that was assigned the empty text is empty.
  private var values: [String: [String]] = [:]

  /// Where systemd looks for units, the first over the later ones.
  private static let folders: [FilePath] = [
    "/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
    "/lib/systemd/system",
  ]

  /// The installed unit below `root`; nil where there is none.
  package static func installed(root: FilePath = "/", name: String = "hopd.service") -> UnitFile? {
    let folders = folders.map { root.pushing(FilePath(root: nil, $0.components)) }
    guard let main = folders.lazy.compactMap({ text($0.appending(name)) }).first else { return nil }
    var dropIns: [String: FilePath] = [:]
    for folder in folders.reversed() {
      for file in names(folder.appending("\(name).d")) where file.hasSuffix(".conf") {
        dropIns[file] = folder.appending("\(name).d").appending(file)
      }
    }
    let texts = dropIns.sorted { $0.key < $1.key }.compactMap { text($0.value) }
    return UnitFile([main] + texts)
  }

  /// Reads the texts of a unit and its drop-ins in their order.
  package init(_ texts: [String]) {
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

  /// Why the service may not write below a path, in a sentence with the path as its subject; nil where the unit allows
  /// it.
  package func obstacle(to path: FilePath) -> String? {
    func isBelow(_ folders: [FilePath]) -> Bool { folders.contains { path.starts(with: $0) } }
    let named = isBelow(words("ReadWritePaths").map { FilePath($0).lexicallyNormalized() } + bound)
    if ["yes", "true", "1", "on", "tmpfs"].contains(values["ProtectHome"]?.last ?? ""),
      isBelow(["/home", "/root", "/run/user"])
    {
      return "is hidden from hopd.service by ProtectHome="
    }
    if ["yes", "true", "1", "on"].contains(values["PrivateTmp"]?.last ?? ""), isBelow(["/tmp", "/var/tmp"]), !named {
      return "is hidden from hopd.service by PrivateTmp="
    }
    guard values["ProtectSystem"]?.last == "strict", !named, !isBelow(own) else { return nil }
    return "is read-only for hopd.service: no ReadWritePaths= of the unit names it"
  }

  /// The folders that systemd makes for the service.
  private var own: [FilePath] {
    [
      ("StateDirectory", "/var/lib"), ("CacheDirectory", "/var/cache"), ("LogsDirectory", "/var/log"),
      ("RuntimeDirectory", "/run"),
    ]
    .flatMap { key, base in words(key).map { FilePath(base).pushing(FilePath($0)) } }
  }

  private var bound: [FilePath] { words("BindPaths").map { FilePath(String($0.prefix { $0 != ":" })) } }

  /// The words of a list, without `-` and `+` in front and without quotes.
  private func words(_ key: String) -> [String] {
    (values[key] ?? []).flatMap { $0.split { $0 == " " || $0 == "\t" } }.map { word in
      String(word.drop { "-+\"'".contains($0) }.filter { $0 != "\"" && $0 != "'" })
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
    guard let stream = folder.withPlatformString({ opendir($0) }) else { return [] }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { break }
      names.append(String(cString: (UnsafeRawPointer(entry) + offset).assumingMemoryBound(to: CChar.self)))
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
